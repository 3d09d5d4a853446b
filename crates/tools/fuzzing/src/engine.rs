// SPDX-License-Identifier: Apache-2.0
//! Runs arbitrary code on the HPU engine.

use std::sync::Arc;

use abi::device::map;
use hpu::isa::instruction_set;
use hpu::{Engine, Memory, Program, Sharing, Stop, Thread, Watched, Window};
use machine::TimingKind;
use nic::testing::code::executable;

/// Sizes of the windows, and of the gaps between them in the arena, in bytes.
const DATA: usize = 1024;
const STACK: usize = 512;
const CANARY: usize = 64;
const CANARY_BYTE: u8 = 0xc5;
/// Watchdog limit in cycles.
const MAX_CYCLES: u64 = 20_000;
/// Upper bound of the cycles of a block of straight-line code.
const BLOCK_CYCLES: u64 = 64 * 64;
/// Number of stops after which a thread is abandoned. Each stop needs an instruction, so stops cannot exceed cycles.
const MAX_STOPS: u64 = MAX_CYCLES + BLOCK_CYCLES;
const STACK_TOP: u32 = map::CONTEXTS + map::CONTEXT_STRIDE;

/// Final state of a handler.
#[derive(Debug, PartialEq)]
struct End {
    stop: Stop,
    registers: Vec<u32>,
    floats: Vec<u64>,
    memory: Vec<u8>,
    instructions: u64,
}

/// Runs an input: three arguments, a word with the cycles of a load, then code.
pub fn code(bytes: &[u8]) {
    let Some((start, code)) = bytes.split_first_chunk::<16>() else { return };
    let word = |at: usize| u32::from_le_bytes(start[at..at + 4].try_into().expect("4 bytes"));
    let args = [word(0), word(4), word(8)];
    let isa = instruction_set("rv32imafdc").expect("an instruction set");
    let Ok(program) = Program::load(&executable(code), isa, &nic::load_map()) else { return };
    let program = Arc::new(program);
    let load_cycles = 1 + word(12) % 64;
    let in_order = run(&program, TimingKind::InOrder, load_cycles, args);
    let out_of_order = run(&program, TimingKind::OooA15, load_cycles, args);
    // The results of code that reads the clock, or is stopped by it, depend on the timing model.
    if let (Some(one), Some(other)) = (in_order, out_of_order)
        && !reads_registers_of_the_core(code)
    {
        assert_eq!(one, other, "what code does must not depend on how it is timed");
    }
}

/// Runs a handler to its end. Returns `None` if it takes too long.
fn run(program: &Arc<Program>, timing: TimingKind, load_cycles: u32, args: [u32; 3]) -> Option<End> {
    let mut engine = Engine::new(program.clone(), timing, load_cycles);
    let mut arena = Vec::new();
    let mut windows = Vec::new();
    let code = program.program_segment();
    for (base, bytes, write, sharing) in [
        (map::DATA, &[0; DATA][..], true, Sharing::Shared),
        (STACK_TOP - STACK as u32, &[0; STACK][..], true, Sharing::Private),
        (map::PROGRAM, code, false, Sharing::Private),
    ] {
        arena.extend([CANARY_BYTE; CANARY]);
        windows.push(Window { base, len: bytes.len() as u32, offset: arena.len(), write, sharing });
        arena.extend_from_slice(bytes);
    }
    arena.extend([CANARY_BYTE; CANARY]);

    let mut watched = Watched::default();
    let mut thread = Thread::new(program, map::PROGRAM, STACK_TOP, args);
    let mut stop = None;
    for _ in 0..MAX_STOPS {
        let before = thread.cycles();
        let mut memory = Memory { arena: &mut arena, windows: &windows, watched: &mut watched };
        let now = engine.run(&mut thread, &mut memory, MAX_CYCLES);
        assert!(thread.cycles() >= before, "cycles went from {before} to {}", thread.cycles());
        assert!(thread.cycles() < MAX_CYCLES + BLOCK_CYCLES * u64::from(load_cycles), "{} cycles", thread.cycles());
        match now {
            // The card answers later.
            Stop::Call { number, argument } => thread.set_result(number ^ argument),
            Stop::Return(_) | Stop::Fault(_) | Stop::Limit => {
                stop = Some(now);
                break;
            }
            _ => {}
        }
    }
    let stop = stop.expect("a thread that goes on uses up its cycles");

    let mut outside = vec![true; arena.len()];
    for window in &windows {
        outside[window.offset..window.offset + window.len as usize].fill(false);
    }
    let changed = outside.iter().zip(&arena).position(|(outside, byte)| *outside && *byte != CANARY_BYTE);
    assert_eq!(changed, None, "a byte outside of all windows was written");
    let constant = windows[2].offset;
    assert_eq!(&arena[constant..constant + code.len()], code, "code was written");
    assert_eq!(thread.register(0), 0);
    if stop == Stop::Limit {
        return None;
    }
    Some(End {
        stop,
        registers: (0..32).map(|index| thread.register(index)).collect(),
        floats: (0..32).map(|index| thread.float_register(index)).collect(),
        memory: arena,
        instructions: thread.instructions(),
    })
}

/// Returns true if any half-word could start an instruction of Zicsr.
fn reads_registers_of_the_core(code: &[u8]) -> bool {
    code.windows(2).any(|half| half[0] & 0x7f == 0x73 && half[1] & 0x70 != 0)
}
