// SPDX-License-Identifier: Apache-2.0
//! Control transfer, calls, counters, faults, memory protection.

use abi::device::map;
use hpu::{Fault, Stop};
use machine::TimingKind;

use crate::card::{Card, STACK_TOP, result};
use hpu::testing::*;

#[test]
fn branches() {
    const NEG: u32 = u32::MAX;
    let cases = [
        (0, 3, 3, true),
        (0, 3, 4, false),
        (1, 3, 4, true),
        (1, 3, 3, false),
        (4, NEG, 0, true),
        (4, 0, 0, false),
        (5, 0, NEG, true),
        (5, NEG, 0, false),
        (6, 0, NEG, true),
        (6, NEG, 0, false),
        (7, NEG, NEG, true),
        (7, 0, NEG, false),
    ];
    for (f3, a, b, taken) in cases {
        let words = [branch(f3, A0, A1, 12), addi(A0, 0, 0), RET, addi(A0, 0, 1)];
        assert_eq!(result(&words, [a, b, 0]), u32::from(taken), "{f3} {a:#x} {b:#x}");
    }
}

#[test]
fn jumps_link_and_clear_the_low_bit() {
    // jal a0, +8 from PROGRAM links PROGRAM + 4
    assert_eq!(result(&[jal(A0, 8), NOP], [0; 3]), map::PROGRAM + 4);
    // jalr a0, 1(a0) to PROGRAM + 8: the destination is read first, bit 0 is dropped
    assert_eq!(result(&[jalr(A0, A0, 1), NOP], [map::PROGRAM + 8, 0, 0]), map::PROGRAM + 4);
    // c.jr ra, 16 bits at the end of the program
    let mut card = Card::of_bytes(&0x8082_u16.to_le_bytes(), TimingKind::InOrder, 1);
    assert_eq!(card.run([3, 0, 0]).0, Stop::Return(3));
}

#[test]
fn loops_count() {
    // Sum of 1..=a0
    let words = [addi(A1, 0, 0), add(A1, A1, A0), addi(A0, A0, -1), branch(1, A0, 0, -8), addi(A0, A1, 0), RET];
    let (stop, thread) = Card::new(&words).run([100, 0, 0]);
    assert_eq!((stop, thread.instructions()), (Stop::Return(5050), 1 + 3 * 100 + 2));
}

#[test]
fn registers_at_the_start() {
    let card = Card::new(&[RET]);
    let thread = card.thread([7, 8, 9]);
    let registers = [1, 2, 10, 11, 12].map(|r| thread.register(r));
    assert_eq!(registers, [map::RETURN, STACK_TOP, 7, 8, 9]);
}

#[test]
fn a_call_stops_after_the_instruction_and_continues_with_the_answer() {
    let mut card = Card::new(&[addi(17, 0, 5), ECALL, addi(A0, A0, 1), RET]);
    let mut thread = card.thread([77, 0, 0]);
    assert_eq!(card.resume(&mut thread, 100), Stop::Call { number: 5, argument: 77 });
    assert_eq!((thread.pc(), thread.instructions()), (map::PROGRAM + 8, 2));
    thread.set_result(41);
    assert_eq!(card.resume(&mut thread, 100), Stop::Return(42));
}

#[test]
fn an_endless_loop_stops_at_the_limit_and_can_continue() {
    let mut card = Card::new(&[addi(A0, A0, 1), jal(0, -4)]);
    let mut thread = card.thread([0; 3]);
    // 3 cycles per iteration
    assert_eq!(card.resume(&mut thread, 300), Stop::Limit);
    assert_eq!((thread.cycles(), thread.register(10)), (303, 101));
    assert_eq!(card.resume(&mut thread, 600), Stop::Limit);
    assert_eq!((thread.cycles(), thread.register(10)), (603, 201));
}

#[test]
fn counters() {
    // instret after two instructions; cycle after that CSR access, which costs 4 on this core
    let words = [NOP, NOP, csrr(A0, 0xc02)];
    assert_eq!(result(&words, [0; 3]), 2);
    assert_eq!(result(&[NOP, NOP, csrr(A1, 0xc02), csrr(A0, 0xc00)], [0; 3]), 6);
    assert_eq!(result(&[csrr(A0, 0xc80)], [9, 0, 0]), 0);
    assert_eq!(result(&[csrr(A0, 0xc82)], [9, 0, 0]), 0);
}

#[test]
fn csrs_that_are_not_modelled_are_illegal() {
    let illegal = |word: u32| {
        let (stop, thread) = Card::new(&[NOP, word, RET]).run([1, 0, 0]);
        assert_eq!(stop, Stop::Fault(Fault::Illegal { pc: map::PROGRAM + 4, word }));
        assert_eq!((thread.pc(), thread.instructions()), (map::PROGRAM + 4, 1));
    };
    illegal(csrr(A0, 0x001)); // fflags are not recorded
    illegal(csrr(A0, 0x003));
    illegal(csrr(A0, 0xc01)); // time
    illegal(csrr(A0, 0x300)); // mstatus
    illegal(0xc005_1073); // csrw cycle, a0
    illegal(0x0020_d073); // csrwi frm, 1
    illegal(0x0025_1073); // csrw frm, a0
    // frm reads 0; flags may be cleared: csrrwi a0, frm, 0; csrw fcsr, x0; csrci fflags, 31
    assert_eq!(result(&[0x0020_5573, 0x0030_1073, 0x001f_f073], [5, 0, 0]), 0);
}

#[test]
fn illegal_words_are_named() {
    for (word, seen) in [(0x0000_0000, 0), (0xffff_ffff, 0xffff_ffff), (0x3020_0073, 0x3020_0073), (0x9002, 0)] {
        let (stop, thread) = Card::new(&[NOP, word]).run([0; 3]);
        let pc = map::PROGRAM + 4;
        let expected = if word == 0x9002 { Fault::Breakpoint { pc } } else { Fault::Illegal { pc, word: seen } };
        assert_eq!((stop, thread.pc()), (Stop::Fault(expected), pc), "{word:#x}");
    }
}

#[test]
fn code_is_fetched_from_the_program_only() {
    for target in [0, map::DATA, map::PROGRAM - 2, map::PROGRAM + 4, map::RETURN + 4, 0xffff_fffe] {
        let (stop, thread) = Card::new(&[jalr(0, A0, 0)]).run([target, 0, 0]);
        assert_eq!((stop, thread.pc()), (Stop::Fault(Fault::Fetch { pc: target }), target));
    }
    // Execution past the end, and into half an instruction.
    let (stop, _) = Card::new(&[NOP]).run([0; 3]);
    assert_eq!(stop, Stop::Fault(Fault::Fetch { pc: map::PROGRAM + 4 }));
    let mut card = Card::of_bytes(&[0x13, 0, 0, 0, 0x13, 0], TimingKind::OooA15, 1);
    assert_eq!(card.run([0; 3]).0, Stop::Fault(Fault::Fetch { pc: map::PROGRAM + 4 }));
}

#[test]
fn memory_outside_the_windows_is_denied() {
    let stack_bottom = STACK_TOP - 1024;
    let load = |addr: u32, f3: u32| Card::new(&[NOP, i(0x03, f3, A1, A0, 0), RET]).run([addr, 0, 0]);
    let store = |addr: u32, f3: u32| Card::new(&[NOP, s(0x23, f3, A0, A1, 0), RET]).run([addr, 0, 0]);
    let pc = map::PROGRAM + 4;
    for (addr, f3, len) in [
        (0, 2, 4),
        (u32::MAX, 2, 4),
        (map::DATA - 1, 0, 1),
        (map::DATA + 4095, 1, 2),
        (map::DATA + 4096, 0, 1),
        (stack_bottom - 1, 2, 4),
        (STACK_TOP - 3, 2, 4),
    ] {
        let (stop, thread) = load(addr, f3);
        assert_eq!(stop, Stop::Fault(Fault::Load { pc, addr, len }));
        assert_eq!((thread.pc(), thread.instructions()), (pc, 1));
        assert_eq!(store(addr, f3).0, Stop::Fault(Fault::Store { pc, addr, len }));
    }
    assert_eq!(load(map::DATA + 4092, 2).0, Stop::Return(map::DATA + 4092));
    // Program memory is read-only.
    assert_eq!(load(map::PROGRAM, 2).1.register(11), NOP);
    assert_eq!(store(map::PROGRAM, 2).0, Stop::Fault(Fault::Store { pc, addr: map::PROGRAM, len: 4 }));
    assert_eq!(
        Fault::Store { pc, addr: 16, len: 4 }.to_string(),
        "store of 4 B at 0x00000010 is not allowed (pc 0x1d000004)"
    );
}

#[test]
fn a_window_outside_the_arena_is_denied() {
    let mut card = Card::new(&[lw(A0, A0, 0), RET]);
    card.arena.truncate(100);
    let (stop, _) = card.run([map::DATA, 0, 0]);
    assert_eq!(stop, Stop::Fault(Fault::Load { pc: map::PROGRAM, addr: map::DATA, len: 4 }));
}
