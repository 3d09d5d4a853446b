// SPDX-License-Identifier: Apache-2.0
//! A card with memory only: program, 4 KiB of data and a stack.

use std::sync::Arc;

use abi::device::map;
use hpu::isa::instruction_set;
use hpu::{
    ElfError, Engine, LoadMap, Memory, Predictor, Program, Region, Sharing, Stop, Thread, Watched, Watcher, Window,
};
use machine::TimingKind;

use crate::elf::image;
use crate::{interpreter, stepper};

pub const STACK_TOP: u32 = map::CONTEXTS + 0x4000;
const DATA_BYTES: usize = 4096;
const STACK_BYTES: usize = 1024;

/// Returns the address space of the sPIN card.
pub fn load_map() -> LoadMap {
    let region = |name, base, end| Region { name, base, bytes: end - base };
    LoadMap {
        name: "the test card",
        program: region("program memory", map::PROGRAM, map::RETURN),
        data: region("static data", map::DATA, map::PACKETS),
        others: vec![region("packet buffers", map::PACKETS, map::PROGRAM)],
        return_address: map::RETURN,
    }
}

/// Loads a program for cores of this kind.
pub fn load(elf: &[u8], kind: &str) -> Result<Program, ElfError> {
    Program::load(elf, instruction_set(kind).unwrap(), &load_map())
}

pub struct Card {
    pub program: Arc<Program>,
    pub engine: Engine,
    pub arena: Vec<u8>,
    pub watched: Watched,
    pub windows: [Window; 3],
    /// Load latency of an in-order core in cycles.
    in_order: Option<u32>,
}

impl Card {
    /// Creates a card with an in-order core and one-cycle memory.
    pub fn new(words: &[u32]) -> Card {
        Card::timed(words, TimingKind::InOrder, 1)
    }

    pub fn timed(words: &[u32], timing: TimingKind, scratchpad_cycles: u32) -> Card {
        let code: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        Card::of_bytes(&code, timing, scratchpad_cycles)
    }

    pub fn of_bytes(code: &[u8], timing: TimingKind, scratchpad_cycles: u32) -> Card {
        Card::of_kind(code, "rv32imafdc", timing, scratchpad_cycles)
    }

    pub fn of_kind(code: &[u8], kind: &str, timing: TimingKind, scratchpad_cycles: u32) -> Card {
        let program = Arc::new(load(&image(code, &[], &[]), kind).unwrap());
        let stack_bytes = STACK_BYTES as u32;
        let stack = Window {
            base: STACK_TOP - stack_bytes,
            len: stack_bytes,
            offset: DATA_BYTES,
            write: true,
            sharing: Sharing::Private,
        };
        let data = Window { base: map::DATA, len: DATA_BYTES as u32, offset: 0, write: true, sharing: Sharing::Shared };
        let code_window = Window {
            base: map::PROGRAM,
            len: code.len() as u32,
            offset: DATA_BYTES + STACK_BYTES,
            write: false,
            sharing: Sharing::Private,
        };
        let mut arena = vec![0; DATA_BYTES + STACK_BYTES];
        arena.extend_from_slice(program.program_segment());
        let engine = Engine::new(program.clone(), timing, scratchpad_cycles);
        let in_order = (timing == TimingKind::InOrder).then_some(scratchpad_cycles);
        Card { program, engine, arena, watched: Watched::default(), windows: [data, stack, code_window], in_order }
    }

    pub fn thread(&self, args: [u32; 3]) -> Thread {
        Thread::new(&self.program, map::PROGRAM, STACK_TOP, args)
    }

    pub fn resume(&mut self, thread: &mut Thread, max_cycles: u64) -> Stop {
        let mut memory = Memory { arena: &mut self.arena, windows: &self.windows, watched: &mut self.watched };
        self.engine.run(thread, &mut memory, max_cycles)
    }

    /// Runs a whole handler, executing synchronising instructions immediately, and checks that its thread can be
    /// restarted. Runs it again under a debugger with stops, in the interpreter and, for an in-order core, in a
    /// stepper; all must agree.
    pub fn run(&mut self, args: [u32; 3]) -> (Stop, Thread) {
        let (mut thread, before) = (self.thread(args), self.arena.clone());
        let predictor = self.predictor();
        let stop = loop {
            match self.resume(&mut thread, 1_000_000) {
                Stop::Sync => {}
                stop => break stop,
            }
        };
        let mut restarted = thread.clone();
        restarted.restart(&self.program, map::PROGRAM, STACK_TOP, args);
        assert_eq!(format!("{restarted:?}"), format!("{:?}", self.thread(args)));
        if stop != Stop::Limit {
            if self.engine.profile().is_empty() {
                self.debug(before.clone(), args, predictor, stop, &thread); // it would count again
            }
            interpreter::lockstep(self, before.clone(), args, stop, &thread);
        }
        if let Some(cycles) = self.in_order.filter(|_| stop != Stop::Limit) {
            stepper::lockstep(self, before, args, u64::from(cycles - 1), stop, &thread);
        }
        (stop, thread)
    }

    /// Returns the state of the branch predictor.
    fn predictor(&mut self) -> Predictor {
        let mut predictor = Predictor::default();
        self.engine.swap_predictor(&mut predictor);
        let copy = predictor.clone();
        self.engine.swap_predictor(&mut predictor);
        copy
    }

    /// Runs the program again, instruction by instruction, from this memory and branch predictor, stopping before every
    /// third instruction, and compares the visible state with the first run.
    fn debug(&mut self, mut arena: Vec<u8>, args: [u32; 3], mut predictor: Predictor, stop: Stop, thread: &Thread) {
        let (mut stepped, mut watched, mut debugger) = (self.thread(args), Watched::default(), EveryThird::default());
        self.engine.swap_predictor(&mut predictor);
        let stepped_stop = loop {
            let mut memory = Memory { arena: &mut arena, windows: &self.windows, watched: &mut watched };
            match self.engine.run_stepwise(&mut stepped, &mut memory, 1_000_000, &mut debugger) {
                Stop::Sync | Stop::Break => {}
                stop => break stop,
            }
        };
        self.engine.swap_predictor(&mut predictor);
        assert_eq!(stepped_stop, stop);
        stepper::same(&stepped, thread);
        assert!(arena == self.arena, "memory differs");
        // Also seen: an instruction that fails or issues a command.
        assert!(debugger.seen >= stepped.instructions(), "{} of {}", debugger.seen, stepped.instructions());
    }

    pub fn word(&self, offset: usize) -> u32 {
        u32::from_le_bytes(self.arena[offset..offset + 4].try_into().unwrap())
    }

    pub fn double(&self, offset: usize) -> u64 {
        u64::from_le_bytes(self.arena[offset..offset + 8].try_into().unwrap())
    }

    pub fn set(&mut self, offset: usize, bytes: &[u8]) {
        self.arena[offset..offset + bytes.len()].copy_from_slice(bytes);
    }
}

/// Returns the result of a handler with these words, followed by a return.
pub fn result(words: &[u32], args: [u32; 3]) -> u32 {
    match Card::new(&[words, &[hpu::testing::RET]].concat()).run(args).0 {
        Stop::Return(value) => value,
        stop => panic!("{stop:?}"),
    }
}

/// Stops a thread before every third instruction.
#[derive(Default)]
struct EveryThird {
    /// Number of instructions seen.
    seen: u64,
    is_leaving: bool,
}

impl Watcher for EveryThird {
    fn stops(&mut self, _: u32) -> bool {
        if std::mem::take(&mut self.is_leaving) {
            return false;
        }
        self.seen += 1;
        self.is_leaving = self.seen.is_multiple_of(3);
        self.is_leaving
    }

    fn wants_accesses(&self) -> bool {
        true
    }

    fn accesses(&mut self, _: u32, _: u32, _: bool, _: bool) {}
}
