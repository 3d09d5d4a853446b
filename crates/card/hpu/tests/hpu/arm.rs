// SPDX-License-Identifier: Apache-2.0
//! ARM programs: a compiled one gives the results of the same source on RISC-V, and code that the cores do not execute is
//! refused. `src/isa/arm/differential.rs` tests single instructions.

use std::sync::Arc;

use abi::device::map;
use hpu::{Engine, Memory, Sharing, Stop, Thread, Watched, Watcher, Window};
use machine::TimingKind;

use crate::card::{STACK_TOP, load};
use crate::elf::{MIX, image};

/// `mix.c`, compiled by `zig cc -target arm-freestanding-eabihf -mcpu=cortex_a15 -marm` with
/// `-fomit-frame-pointer -Wl,-z,max-page-size=16` and the other flags of `mix.elf`.
const MIX_ARM: &[u8] = include_bytes!("mix-arm.elf");
const KIND: &str = "armv7a";

/// Never stops, so that a thread runs instruction by instruction.
struct Onward;

impl Watcher for Onward {
    fn stops(&mut self, _: u32) -> bool {
        false
    }

    fn wants_accesses(&self) -> bool {
        false
    }

    fn accesses(&mut self, _: u32, _: u32, _: bool, _: bool) {}
}

/// Runs a function of a program; returns the stop, the thread and the data memory.
fn run(elf: &[u8], kind: &str, name: &str, args: [u32; 3], steps: bool) -> (Stop, Thread, Vec<u8>) {
    let program = Arc::new(load(elf, kind).unwrap());
    let mut engine = Engine::new(program.clone(), TimingKind::OooA15, 1);
    let (data, code) = (program.data_segment(), program.program_segment());
    let mut arena = vec![0; 8192];
    arena[..data.len()].copy_from_slice(data);
    arena[2048..2048 + code.len()].copy_from_slice(code);
    let window = |base, len: usize, offset, write, sharing| Window { base, len: len as u32, offset, write, sharing };
    let windows = [
        window(map::DATA, data.len(), 0, true, Sharing::Shared),
        window(STACK_TOP - 512, 512, 1024, true, Sharing::Private),
        window(map::PROGRAM, code.len(), 2048, false, Sharing::Private),
    ];
    let mut thread = Thread::new(&program, program.entry(name).unwrap_or(map::PROGRAM), STACK_TOP, args);
    let mut memory = Memory { arena: &mut arena, windows: &windows, watched: &mut Watched::default() };
    let stop = if steps {
        engine.run_stepwise(&mut thread, &mut memory, u64::MAX, &mut Onward)
    } else {
        engine.run(&mut thread, &mut memory, u64::MAX)
    };
    (stop, thread, arena[..data.len()].to_vec())
}

#[test]
fn a_compiled_program_gives_the_results_of_risc_v() {
    for args in [[0xdead_beef, 1000, 7], [1, 1, 0], [0, 37, u32::MAX], [0x8000_0001, 5000, 3]] {
        for name in ["mix", "hash"] {
            let (theirs, _, their_data) = run(MIX, "rv32imac", name, args, false);
            let (stop, thread, data) = run(MIX_ARM, KIND, name, args, false);
            assert!(matches!(stop, Stop::Return(_)), "{stop:?}");
            assert_eq!((stop, &data), (theirs, &their_data), "{name} {args:?}");
            // Looking changes neither results nor times.
            let (stepped, slowly, _) = run(MIX_ARM, KIND, name, args, true);
            assert_eq!(
                (stepped, slowly.cycles(), slowly.instructions()),
                (stop, thread.cycles(), thread.instructions())
            );
        }
    }
}

/// Builds a program of ARM; `mark` is the mapping symbol at its start.
fn program(words: &[u32], mark: &str, function: u32) -> Vec<u8> {
    let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut elf = image(&code, &[], &[(mark, map::PROGRAM, 0, 0), ("handler", function, code.len() as u32, 2)]);
    // EM_ARM
    elf[18..20].copy_from_slice(&40_u16.to_le_bytes());
    // The section of the code has instructions (SHF_EXECINSTR).
    elf
}

const BX_LR: u32 = 0xe12f_ff1e;

#[test]
fn thumb_is_refused() {
    let error = load(&program(&[0x4770_4770], "$t", map::PROGRAM + 1), KIND).err().unwrap().to_string();
    assert_eq!(
        error,
        "device program: its function 'handler' is Thumb code (T32), which armv7a cores here do not execute: compile it \
         with -marm"
    );
}

#[test]
fn conditions_loads_of_the_pc_and_faults() {
    let runs = |words: &[u32], args| {
        let (stop, thread, _) = run(&program(words, "$a", map::PROGRAM), KIND, "handler", args, false);
        (stop, thread.instructions(), thread.pc().wrapping_sub(map::PROGRAM))
    };
    // cmp r0, #5; addgt r0, r0, r1, lsl #2; bxle lr; rsb r0, r0, #0; push {r0, lr}; pop {r0, pc}
    let code = [0xe350_0005, 0xc080_0101, 0xd12f_ff1e, 0xe260_0000, 0xe92d_4001, 0xe8bd_8001];
    assert_eq!(runs(&code, [5, 9, 0]).0, Stop::Return(5));
    assert_eq!(runs(&code, [5, 9, 0]).1, 3);
    assert_eq!((runs(&code, [6, 9, 0]).0, runs(&code, [6, 9, 0]).1), (Stop::Return(42_u32.wrapping_neg()), 6));
    // udf #0; a jump to Thumb; ldrd from an address that is no multiple of 4
    for (words, at, text) in [
        ([0xe7f0_00f0, BX_LR], 0, "breakpoint"),
        ([0xe280_0001, 0xe12f_ff10], 4, "illegal instruction 0xe12fff10"),
        ([0xe1c1_20d2, BX_LR], 0, "misaligned"),
    ] {
        let (stop, _, pc) = runs(&words, [0x40, map::DATA, 0]);
        let Stop::Fault(fault) = stop else { panic!("{stop:?}") };
        assert!(fault.to_string().contains(text) && pc == at, "{fault}");
    }
}
