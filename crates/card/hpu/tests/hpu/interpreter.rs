// SPDX-License-Identifier: Apache-2.0
//! Threads that run instruction by instruction, in lockstep with the engine, and the reported effects of each
//! instruction.

use abi::device::map;
use hpu::isa::Class;
use hpu::{Accessed, Fault, Interpreter, Retired, Stop, Thread, Window};

use crate::card::Card;
use hpu::testing::*;

/// Returns the arena position of an access, if a window contains it.
fn place(windows: &[Window], address: u32, bytes: u32, write: bool) -> Option<usize> {
    let inside = |w: &&Window| u64::from(address.wrapping_sub(w.base)) + u64::from(bytes) <= u64::from(w.len);
    let window = windows.iter().find(|window| inside(window) && (window.write || !write))?;
    Some(window.offset + (address - window.base) as usize)
}

/// Runs the program of `card` again from memory `arena`, instruction by instruction, and compares the visible state
/// with the engine's. An interpreter has no time and no memory protection.
pub fn lockstep(card: &Card, mut arena: Vec<u8>, args: [u32; 3], stop: Stop, thread: &Thread) {
    let mut interpreter = Interpreter::new(card.program.clone());
    let mut single = card.thread(args);
    let refused = matches!(stop, Stop::Fault(Fault::Load { .. } | Fault::Store { .. }));
    loop {
        let load = |address: u32, bytes: u32| {
            let place = place(&card.windows, address, bytes, false);
            let found = place.map_or(&[][..], |place| &arena[place..place + bytes as usize]);
            std::array::from_fn(|at| found.get(at).copied().unwrap_or_default())
        };
        if refused && single.pc() == thread.pc() && single.instructions() == thread.instructions() {
            return;
        }
        let pc = single.pc();
        let retired = match interpreter.step(&mut single, load) {
            Ok(retired) => retired,
            Err(fault) => {
                match stop {
                    Stop::Return(value) => assert_eq!((fault.pc(), single.register(10)), (map::RETURN, value)),
                    Stop::Call { .. } => assert_eq!(fault.pc(), thread.command_pc()),
                    stop => assert_eq!(stop, Stop::Fault(fault)),
                }
                break;
            }
        };
        assert_eq!(retired.pc, pc);
        for (register, value) in [retired.result, retired.update].into_iter().flatten() {
            assert_eq!(single.register(register), value);
        }
        if retired.class == Class::System {
            return;
        }
        if let Some(Accessed { address, bytes, stored: Some(stored), .. }) = retired.access {
            let place = place(&card.windows, address, bytes, true).expect("the engine has stored there");
            arena[place..place + bytes as usize].copy_from_slice(&stored.to_le_bytes()[..bytes as usize]);
        }
    }
    (0..64).for_each(|register| assert_eq!(single.register(register), thread.register(register), "{register}"));
    (0..32).for_each(|register| assert_eq!(single.float_register(register), thread.float_register(register)));
    assert_eq!(single.instructions(), thread.instructions());
    assert!(arena == card.arena, "memory differs");
}

/// Returns the executed instructions of a program that accesses one word with this value.
fn retired(kind: &str, words: &[u32], word: u32) -> Vec<Retired> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let card = Card::of_kind(&code, kind, machine::TimingKind::InOrder, 1);
    let (mut interpreter, mut thread) = (Interpreter::new(card.program.clone()), card.thread([7, 0, 0]));
    let mut step = || interpreter.step(&mut thread, |_, _| u64::from(word).to_le_bytes()).unwrap();
    words.iter().map(|_| step()).collect()
}

#[test]
fn an_instruction_says_what_it_has_done() {
    let found =
        retired("rv32imac", &[DATA_A5, lw(A1, A5, 8), sw(A0, A5, 12), lw(0, A5, 0), addi(0, 0, 0)], 0x8765_4321);
    let base = map::DATA;
    let access = |address, loaded, stored| Some(Accessed { address, bytes: 4, loaded, stored });
    let of = |index: u32, class, result, access| Retired {
        pc: map::PROGRAM + 4 * index,
        class,
        result,
        update: None,
        access,
    };
    let loaded = 0x8765_4321;
    assert_eq!(
        found,
        [
            of(0, Class::Alu, Some((15, base)), None),
            of(1, Class::Load, Some((11, 0x8765_4321)), access(base + 8, loaded, None)),
            of(2, Class::Store, None, access(base + 12, 0, Some(7))),
            of(3, Class::Load, None, access(base, loaded, None)),
            of(4, Class::Alu, None, None),
        ]
    );
}

#[test]
fn post_increment_changes_two_registers() {
    // cv.lw a2, (a5), 4
    let found = retired("rv32imac-corev", &[DATA_A5, 0x0047_a60b], 5);
    assert_eq!((found[1].result, found[1].update), (Some((12, 5)), Some((15, map::DATA + 4))));
    assert_eq!(found[1].access.unwrap().address, map::DATA);
}

/// LR stores nothing, SC only on success, AMO always.
#[test]
fn an_atomic_operation_says_whether_it_has_stored() {
    let amo = |f5: u32, rd| r(0x2f, 2, f5 << 2, rd, A5, A0);
    let (lr, sc, or) = (2, 3, 8);
    let words = [DATA_A5, amo(lr, A1) & !(31 << 20), amo(sc, A2), amo(sc, A3), amo(or, A4)];
    let found = retired("rv32imac", &words, 1);
    let seen: Vec<_> = found[1..].iter().map(|one| (one.result.unwrap(), one.access.unwrap().stored)).collect();
    assert_eq!(seen, [((11, 1), None), ((12, 0), Some(7)), ((13, 1), None), ((14, 1), Some(7))]);
}
