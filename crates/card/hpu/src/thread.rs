// SPDX-License-Identifier: Apache-2.0
//! Threads: invocations of handlers.

use crate::architectural_state::State;
use crate::isa::Convention;
use crate::program::Program;
use crate::timing::Position;
use crate::ways::Ways;

/// One invocation of a handler: its registers, and its cycle and instruction counts.
#[derive(Clone, Debug)]
pub struct Thread {
    pub(crate) state: State,
    pub(crate) convention: &'static Convention,
    /// Address of the handler's first instruction.
    pub(crate) entry: u32,
    /// Address of the latest command instruction.
    pub(crate) command: u32,
    /// Set when the time of the synchronising instruction at the pc is reached.
    pub(crate) granted: bool,
    /// In instruction-by-instruction mode, within a block: address of the next instruction, and the block.
    pub(crate) within: Option<(u32, u32)>,
    /// True if the latest stop was a debugger's ([`Stop::Break`](crate::Stop::Break)).
    pub(crate) broken: bool,
    /// State of the pipeline in the engine's memo.
    pub(crate) pipeline: Position,
    /// Block whose access is outstanding, in a [`Stepper`](crate::Stepper).
    pub(crate) block: u32,
    /// Cycles that the next instruction has spent in the execute stage, waiting for the answer to the latest access.
    pub(crate) executed_since: u64,
    /// Memoised paths from one access to the next.
    pub(crate) ways: Ways,
    /// True if execution since the latest access depends on the time of its answer: the thread read a control register,
    /// or divided in the meantime.
    pub(crate) depends_on_time: bool,
}

impl Thread {
    /// Creates a handler at its first instruction (an address from [`Program::entry`]), with up to three arguments, a
    /// stack that grows down from `stack_top`, and a return address that ends it.
    pub fn new(program: &Program, entry: u32, stack_top: u32, args: [u32; 3]) -> Thread {
        let mut thread = Thread {
            state: State::ZERO,
            convention: program.isa().convention(),
            entry,
            command: entry,
            granted: false,
            within: None,
            broken: false,
            pipeline: Position::default(),
            block: 0,
            executed_since: 0,
            ways: Ways::default(),
            depends_on_time: false,
        };
        thread.restart(program, entry, stack_top, args);
        thread
    }

    /// Reinitialises an ended thread as by [`Thread::new`], without an allocation.
    #[inline]
    pub fn restart(&mut self, program: &Program, entry: u32, stack_top: u32, args: [u32; 3]) {
        let convention = program.isa().convention();
        let state = &mut self.state;
        *state = State::ZERO;
        // No instruction set uses the lowest bit of a code address as part of the address.
        state.pc = entry & !1;
        state.set_word(convention.return_address, program.return_address());
        state.set_word(convention.stack_pointer, stack_top);
        if let Some((register, _)) = convention.global_pointer {
            state.set_word(register, program.global_pointer());
        }
        for (register, argument) in convention.arguments.iter().zip(args) {
            state.set_word(*register, argument);
        }
        self.convention = convention;
        (self.entry, self.command) = (entry, entry);
        (self.granted, self.within, self.broken) = (false, None, false);
        (self.pipeline, self.block, self.executed_since) = (Position::default(), 0, 0);
        self.ways.forget();
        self.depends_on_time = false;
    }

    /// Returns the cycles from the start of the handler to the completion of its latest instruction.
    pub fn cycles(&self) -> u64 {
        self.state.cycles
    }

    /// Returns the number of completed instructions.
    pub fn instructions(&self) -> u64 {
        self.state.instructions
    }

    /// Answers a [`Stop::Call`](crate::Stop::Call): `result` is the handler's result of the command.
    pub fn set_result(&mut self, result: u32) {
        self.ways.forget();
        self.state.set_word(self.convention.result, result);
    }

    /// Charges `cycles` core cycles for the command of the latest [`Stop::Call`](crate::Stop::Call).
    pub fn take_cycles(&mut self, cycles: u64) {
        self.state.cycles += cycles;
    }

    /// Records that the card executed a command, so that the handler is not considered to wait in a loop.
    pub fn note_work(&mut self) {
        self.state.wait_detector.rest();
    }

    /// Returns the address of the next instruction, or of the failed one.
    pub fn pc(&self) -> u32 {
        self.state.pc
    }

    /// Sets the address of the next instruction.
    pub fn set_pc(&mut self, pc: u32) {
        self.ways.forget();
        (self.granted, self.within) = (false, None);
        self.state.pc = pc;
    }

    /// Returns the address of the instruction that caused the latest [`Stop::Call`](crate::Stop::Call).
    pub fn command_pc(&self) -> u32 {
        self.command
    }

    /// Returns the 32-bit register `index` of the instruction set's register file, for debuggers and tests. RISC-V:
    /// `x0` to `x31`.
    pub fn register(&self, index: u8) -> u32 {
        self.state.word(index)
    }

    /// Returns the stack pointer.
    pub fn stack_pointer(&self) -> u32 {
        self.state.word(self.convention.stack_pointer)
    }

    /// Writes the 32-bit register `index` of the instruction set's register file. RISC-V: `x1` to `x31`.
    pub fn set_register(&mut self, index: u8, value: u32) {
        self.ways.forget();
        self.state.set_word(index, value);
    }

    /// Returns the bits of the 64-bit register `index` of the instruction set's register file, for debuggers and tests.
    /// RISC-V: `f0` to `f31`.
    pub fn float_register(&self, index: u8) -> u64 {
        self.state.wide(index)
    }

    /// Writes the bits of the 64-bit register `index` of the instruction set's register file. RISC-V: `f0` to `f31`.
    pub fn set_float_register(&mut self, index: u8, bits: u64) {
        self.ways.forget();
        self.state.set_wide(index, bits);
    }
}
