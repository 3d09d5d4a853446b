use crate::isa::Convention;
use crate::program::Program;
use crate::state::State;
use crate::timing::Position;
use crate::ways::Ways;

/// One invocation of a handler: its registers, and the cycles and instructions that it has used.
#[derive(Clone, Debug)]
pub struct Thread {
    pub(crate) state: State,
    pub(crate) convention: &'static Convention,
    /// Address of the handler's first instruction.
    pub(crate) entry: u32,
    /// Address of the latest command instruction.
    pub(crate) command: u32,
    /// The time of the synchronising instruction at the pc has come.
    pub(crate) granted: bool,
    /// While a debugger runs the thread instruction by instruction within a block: the address of the next one, and the block.
    pub(crate) within: Option<(u32, u32)>,
    /// The latest stop was that of a debugger ([`Stop::Break`](crate::Stop::Break)).
    pub(crate) broken: bool,
    /// State of the pipeline, in the engine's memo.
    pub(crate) pipeline: Position,
    /// The block whose access the thread waits for, in a [`Stepper`](crate::Stepper).
    pub(crate) block: u32,
    /// Cycles since the next instruction is in the execute stage, where it waits for the answer to the latest access.
    pub(crate) executed_since: u64,
    /// The ways from one access to the next that it knows by heart.
    pub(crate) ways: Ways,
    /// Whether what it has done since its latest access depends on the time of the answer: it has read a control register, or divided
    /// meanwhile.
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

    /// Makes the thread what [`Thread::new`] creates, in place: for one that has ended that is less than a new one.
    #[inline]
    pub fn restart(&mut self, program: &Program, entry: u32, stack_top: u32, args: [u32; 3]) {
        let convention = program.isa().convention();
        let state = &mut self.state;
        *state = State::ZERO;
        // The lowest bit of a code address is not part of the address in any instruction set.
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

    /// Cycles since the handler started, up to the completion of its latest instruction.
    pub fn cycles(&self) -> u64 {
        self.state.cycles
    }

    /// Number of instructions that have completed.
    pub fn instructions(&self) -> u64 {
        self.state.instructions
    }

    /// Answers a [`Stop::Call`](crate::Stop::Call): the handler sees `result` as the result of its command.
    pub fn set_result(&mut self, result: u32) {
        self.ways.forget();
        self.state.set_word(self.convention.result, result);
    }

    /// Lets the command of the latest [`Stop::Call`](crate::Stop::Call) take so many cycles of the core.
    pub fn take_cycles(&mut self, cycles: u64) {
        self.state.cycles += cycles;
    }

    /// Notes that the card has executed a command for the handler, so the handler does not wait in a loop.
    pub fn note_work(&mut self) {
        self.state.attention.rest();
    }

    /// Address of the next instruction, or of the one that failed.
    pub fn pc(&self) -> u32 {
        self.state.pc
    }

    /// Lets the thread go on at `pc`.
    pub fn set_pc(&mut self, pc: u32) {
        self.ways.forget();
        (self.granted, self.within) = (false, None);
        self.state.pc = pc;
    }

    /// Address of the instruction that caused the latest [`Stop::Call`](crate::Stop::Call).
    pub fn command_pc(&self) -> u32 {
        self.command
    }

    /// The 32-bit register `index` of the instruction set's register file, for debuggers and tests. RISC-V: `x0` to
    /// `x31`.
    pub fn register(&self, index: u8) -> u32 {
        self.state.word(index)
    }

    /// The stack pointer.
    pub fn stack_pointer(&self) -> u32 {
        self.state.word(self.convention.stack_pointer)
    }

    /// Writes the 32-bit register `index` of the instruction set's register file. RISC-V: `x1` to `x31`.
    pub fn set_register(&mut self, index: u8, value: u32) {
        self.ways.forget();
        self.state.set_word(index, value);
    }

    /// Bits of the 64-bit register `index` of the instruction set's register file, for debuggers and tests. RISC-V:
    /// `f0` to `f31`.
    pub fn float_register(&self, index: u8) -> u64 {
        self.state.wide(index)
    }

    /// Writes the bits of the 64-bit register `index` of the instruction set's register file. RISC-V: `f0` to `f31`.
    pub fn set_float_register(&mut self, index: u8, bits: u64) {
        self.ways.forget();
        self.state.set_wide(index, bits);
    }
}
