use std::sync::Arc;

use machine::TimingKind;

use super::lines::Lines;
use super::pause::{Access, Pause};
use super::step::Step;
use crate::blocks::{Blocks, Cut};
use crate::memory::View;
use crate::op::{Class, Flow, Op, RegisterSet};
use crate::program::Program;
use crate::stop::Fault;
use crate::thread::Thread;
use crate::timing::{Exit, Memo, SYSTEM, Timed, Wait};
use crate::watch::Watched;
use crate::ways::{End, Registers, Start};
use crate::window::Window;

/// Runs handlers of one program on in-order cores, access by access; all cores of a card share it.
///
/// [`Stepper::run`] executes a thread's instructions up to its next access, which it does not execute: it says in which
/// cycle the access asks for its memory. The card arbitrates, and calls [`Stepper::perform`] when the access happens.
/// So every access happens at its exact time, and a thread whose memories are never busy takes the same cycles as in an
/// [`Engine`](crate::Engine) with the timing `inorder`.
pub struct Stepper {
    program: Arc<Program>,
    blocks: Blocks,
    steps: Vec<Step>,
    memo: Memo,
    /// Size of a line of the instruction cache in bytes.
    line: u32,
    /// A stepper watches no words: all accesses happen at their time.
    nothing: Watched,
}

/// How much later than in a memory that is ready at once an access happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// The memory takes the last word of the access so many cycles after it was asked for the first: the instructions behind it
    /// wait.
    pub grant: u64,
    /// Then it answers so many cycles late: the next instruction is executed, and waits for its end.
    pub answer: u64,
}

impl Stall {
    /// The memory is ready.
    pub const NONE: Stall = Stall { grant: 0, answer: 0 };

    /// The memory takes the access late, and then answers at once.
    pub const fn grant(grant: u64) -> Stall {
        Stall { grant, answer: 0 }
    }

    /// The memory takes the access at once, and answers late.
    pub const fn answer(answer: u64) -> Stall {
        Stall { grant: 0, answer }
    }

    /// The cycles by which the access is longer, of which its further words need some, and how the pipeline sees that.
    fn cycles(self, further_words: u32) -> (u64, Wait) {
        (self.grant.max(further_words.into()) + self.answer, Wait::new(self.grant, self.answer))
    }
}

/// Numbers in the memo of what is no block: cycles in which a thread waits, for an answer or without an instruction, and the call
/// with which it starts.
const ANSWER: u32 = u32::MAX - 4;
const ONE_CYCLE: u32 = u32::MAX - 1;
const CYCLES: u32 = u32::MAX - 2;
const CALL: u32 = u32::MAX - 3;

const fn timed(class: Class, results: RegisterSet) -> Timed {
    Timed { class, sources: RegisterSet::NONE, results, updates: RegisterSet::NONE, beats: 1, length: 4, split: false }
}

/// Cycles of a division that the pipeline counts as hidden by the answer for which it waits; those that depend on its data come on top.
const DIVISION: u64 = 2;

/// Two cycles without an instruction; after more, no instruction waits for an earlier one either.
const WAIT: [Timed; 2] = [timed(Class::Alu, RegisterSet::NONE); 2];

impl Stepper {
    /// Creates a stepper for cores whose instruction cache has lines of `line` bytes, a power of two.
    pub fn new(program: Arc<Program>, line: u32) -> Stepper {
        let line = line.max(4);
        Stepper {
            blocks: Blocks::new(program.clone(), Cut::Accesses { line }),
            steps: Vec::new(),
            memo: Memo::new(TimingKind::InOrder, 1),
            line,
            nothing: Watched::default(),
            program,
        }
    }

    /// Number of lines of the program.
    pub fn lines(&self) -> u32 {
        (self.program.program_segment().len() as u32).div_ceil(self.line)
    }

    /// Lets `thread` begin at cycle `at` as a function that other code has just called by an indirect jump: its return
    /// address is the result of that jump, and its first instruction is the target.
    pub fn call(&mut self, thread: &mut Thread, at: u64) {
        let link = [timed(Class::JumpIndirect, RegisterSet::of(thread.convention.return_address % 64))];
        self.memo.resume(&mut thread.pipeline);
        self.memo.advance(&mut thread.pipeline, CALL, Exit { taken: true, ..Exit::NEXT }, || &link);
        thread.state.cycles = at;
    }

    /// The answer to the access that `thread` has made last comes `cycles` cycles after it has gone on.
    pub fn answer(&mut self, thread: &mut Thread, cycles: u64) {
        self.memo.resume(&mut thread.pipeline);
        let exit = Exit { wait: Wait::new(0, cycles), ..Exit::NEXT };
        self.memo.advance(&mut thread.pipeline, ANSWER, exit, || &[]);
        thread.state.cycles += cycles;
        thread.executed_since += cycles;
    }

    /// Lets `thread` wait for `cycles` cycles, in which no instruction enters its pipeline.
    pub fn wait(&mut self, thread: &mut Thread, cycles: u64) {
        let (number, waiting) = match cycles {
            0 => return,
            1 => (ONE_CYCLE, &WAIT[..1]),
            _ => (CYCLES, &WAIT[..]),
        };
        self.memo.resume(&mut thread.pipeline);
        self.memo.advance(&mut thread.pipeline, number, Exit::NEXT, || waiting);
        thread.state.cycles += cycles;
        thread.executed_since = 0;
    }

    /// Runs `thread` up to its next access, or until something else must be decided. It stops at the end of straight
    /// code when cycle `until` has begun. `lines` are those of the instruction cache.
    pub fn run(&mut self, thread: &mut Thread, lines: &Lines, until: u64) -> Pause {
        self.memo.resume(&mut thread.pipeline);
        let mut view = View::of_window(&mut [], Window::default(), &mut self.nothing);
        loop {
            let start = thread.state.pc;
            let Some(number) = self.blocks.at(start) else { return left_program(&self.program, thread) };
            if thread.state.cycles >= until {
                return Pause::Until;
            }
            let Some(step) = self.steps.get(number as usize) else {
                extend(&mut self.steps, &self.blocks, &self.program, self.line);
                continue;
            };
            let (first, last) = step.lines;
            if !lines.contains(first) || first != last && !lines.contains(last) {
                return Pause::Line(if lines.contains(first) { last } else { first });
            }

            let timed = || &self.blocks.timed[step.range()];
            let executed_since = std::mem::take(&mut thread.executed_since);
            // A counter is read when its instruction comes to the execute stage, where it may wait for the answer to an access; a target
            // that is split over two words does so a cycle later.
            let late = if step.is_system {
                let begins = self.memo.peek(&mut thread.pipeline, number, Exit::NEXT, timed) - SYSTEM;
                i64::from(begins) - executed_since as i64
            } else {
                0
            };
            let state = &mut thread.state;
            state.cycles = state.cycles.wrapping_add_signed(late);
            state.pc = step.end;
            state.data_cycles = 0;
            let ops = &self.blocks.ops[step.first as usize..step.before_access as usize];
            // A division that waits in the execute stage for the answer to an access divides meanwhile.
            if step.divides && executed_since > DIVISION && !needs_access(&self.steps, &self.blocks, thread.block, step)
            {
                state.divided = u32::try_from(executed_since - DIVISION).unwrap_or(u32::MAX);
                thread.depends_on_time = true;
            }
            let flow = Op::run_all(ops, state, &mut view);
            if !matches!(flow, Flow::Next | Flow::Jump | Flow::Command) {
                let at = ops.len() - view.behind - 1;
                let denied = view.denied;
                state.cycles = state.cycles.wrapping_add_signed(-late);
                return Pause::Fault(self.fault(thread, (start, number), at, flow, denied));
            }
            state.cycles += u64::from(state.data_cycles);
            if let Some(access) = &step.access {
                let cycles = self.memo.peek(&mut thread.pipeline, number, Exit::NEXT, timed);
                state.cycles += u64::from(cycles - access.cycles);
                state.instructions += u64::from(step.instructions - 1);
                state.pc = step.end - access.length;
                thread.block = number;
                return Pause::Access(Access {
                    at: state.cycles,
                    address: access.address(state),
                    bytes: access.bytes,
                    class: access.class,
                });
            }
            state.instructions += u64::from(step.instructions);
            thread.depends_on_time |= step.is_system;
            let exit = Exit { taken: flow == Flow::Jump, ..Exit::NEXT };
            // A branch that is not taken makes room in the execute stage.
            if step.is_branch
                && !exit.taken
                && executed_since > 1
                && !needs_access(&self.steps, &self.blocks, thread.block, step)
            {
                thread.executed_since = executed_since - 1;
            }
            let cycles = i64::from(self.memo.advance(&mut thread.pipeline, number, exit, timed));
            state.cycles = state.cycles.wrapping_add_signed(cycles - late);
            if flow == Flow::Command {
                thread.command = start;
                let convention = thread.convention;
                let (number, argument) = (state.word(convention.command), state.word(convention.command_argument));
                return Pause::Call { number, argument };
            }
        }
    }

    /// Executes the access of the latest [`Pause::Access`] on the bytes of `window` in `arena`, `stall` later than in a memory that is
    /// ready at once. A device is a window on a few bytes: it writes what a load reads, and reads what a store has written.
    ///
    /// # Errors
    /// When the access is not completely inside the window, when it writes to a window that is read-only, or when the
    /// address of an atomic operation is not aligned.
    pub fn perform(
        &mut self,
        thread: &mut Thread,
        arena: &mut [u8],
        window: Window,
        stall: Stall,
    ) -> Result<(), Fault> {
        let number = thread.block;
        let Some(step @ Step { access: Some(access), .. }) = self.steps.get(number as usize) else {
            return Err(Fault::Fetch { pc: thread.state.pc });
        };
        let mut view = View::of_window(arena, window, &mut self.nothing);
        thread.ways.forget();
        let state = &mut thread.state;
        let at = state.pc;
        state.pc = step.end;
        state.data_cycles = 0;
        // The access, and possibly the end of a hardware loop's body behind it.
        let flow = Op::run_all(&self.blocks.ops[step.before_access as usize..step.behind as usize], state, &mut view);
        let (late, wait) = stall.cycles(state.data_cycles);
        state.cycles += late + u64::from(access.cycles);
        if !matches!(flow, Flow::Next | Flow::Jump) {
            state.pc = at;
            let word = self.blocks.encoding(at, access.length);
            return Err(Fault::of(flow, at, view.denied, word));
        }
        state.instructions += 1;
        thread.executed_since = stall.answer + u64::from(access.cycles - 1);
        let exit = Exit { taken: flow == Flow::Jump, wait, ..Exit::NEXT };
        self.memo.resume(&mut thread.pipeline);
        self.memo.advance(&mut thread.pipeline, number, exit, || &self.blocks.timed[step.range()]);
        Ok(())
    }

    /// Executes the access of the latest [`Pause::Access`], to `address`, on a register of a device, which answers `stall`
    /// cycles late with these bytes and ignores what is stored, and then runs for at most `ahead` cycles: like
    /// [`Stepper::perform`] and [`Stepper::run`]. What a runtime does around short handlers, again and again from one
    /// register to the next, is executed only the first times.
    ///
    /// # Errors
    /// Like [`Stepper::perform`].
    #[inline]
    pub fn pass(
        &mut self,
        thread: &mut Thread,
        lines: &Lines,
        address: u32,
        answer: [u8; 8],
        stall: u64,
        ahead: u64,
    ) -> Result<Pause, Fault> {
        self.memo.resume(&mut thread.pipeline);
        let (block, pipeline) = (thread.block, thread.pipeline);
        let start = Start { block, pipeline, waits: Wait::new(0, stall), answer, removed: lines.removed() };
        if let Some(end) = thread.ways.find(&start) {
            let state = &mut thread.state;
            state.cycles += stall + end.cycles;
            state.instructions += end.instructions;
            state.pc = end.pc;
            (thread.block, thread.pipeline) = (end.block, end.pipeline);
            let (address, bytes, class) = end.access;
            return Ok(Pause::Access(Access { at: state.cycles, address, bytes, class }));
        }
        self.find_way(thread, lines, address, start, stall, ahead)
    }

    /// Goes a way that is not known, and remembers it if it leaves the registers as they were.
    fn find_way(
        &mut self,
        thread: &mut Thread,
        lines: &Lines,
        address: u32,
        start: Start,
        stall: u64,
        ahead: u64,
    ) -> Result<Pause, Fault> {
        let (registers, ways) = (Registers::of(&thread.state), std::mem::take(&mut thread.ways));
        let (cycles, instructions) = (thread.cycles() + stall, thread.instructions());
        thread.depends_on_time = false;
        let window = Window { base: address, len: 8, write: true, ..Window::default() };
        self.perform(thread, &mut { start.answer }, window, Stall::answer(stall))?;
        let pause = self.run(thread, lines, thread.cycles() + ahead);
        if let Pause::Access(access) = pause
            && registers.are_those_of(&thread.state, thread.convention.sink)
            && !thread.depends_on_time
        {
            let (cycles, instructions) = (thread.cycles() - cycles, thread.instructions() - instructions);
            let (block, pipeline, access) =
                (thread.block, thread.pipeline, (access.address, access.bytes, access.class));
            thread.ways = ways;
            thread.ways.add(start, End { block, pipeline, pc: thread.pc(), cycles, instructions, access });
        }
        Ok(pause)
    }

    /// Ends a thread at operation `at` of a block, and counts the operations before it.
    #[cold]
    fn fault(
        &mut self,
        thread: &mut Thread,
        (start, number): (u32, u32),
        at: usize,
        flow: Flow,
        denied: (u32, u32),
    ) -> Fault {
        let first = self.blocks.block(number).range().start;
        let mut ops = self.blocks.timed[first..=first + at].to_vec();
        let pc = ops[..at].iter().fold(start, |pc, timed| pc + timed.length);
        // An instruction for a control register that fails is not executed.
        if ops[at].class == Class::System {
            ops[at].class = Class::Trap;
        }
        let state = &mut thread.state;
        state.pc = pc;
        state.instructions += at as u64;
        state.cycles += u64::from(state.data_cycles + self.memo.partial(thread.pipeline, &ops));
        Fault::of(flow, pc, denied, self.blocks.encoding(pc, ops[at].length))
    }
}

/// Whether the first instruction of a step reads what the access at the end of block `number` has read.
#[cold]
fn needs_access(steps: &[Step], blocks: &Blocks, number: u32, step: &Step) -> bool {
    let Some(before) = steps.get(number as usize) else { return false };
    blocks.timed[step.first as usize].sources.intersects(blocks.timed[before.before_access as usize].results)
}

/// What a thread does whose pc is outside the code: it has returned, or has jumped somewhere else.
#[cold]
fn left_program(program: &Program, thread: &Thread) -> Pause {
    match thread.state.pc {
        pc if pc == program.return_address() => Pause::Return(thread.state.word(thread.convention.result)),
        pc => Pause::Fault(Fault::Fetch { pc }),
    }
}

/// Adds the steps of blocks that have been decoded since the last time.
#[cold]
fn extend(steps: &mut Vec<Step>, blocks: &Blocks, program: &Program, line: u32) {
    while let Some(block) = blocks.get(steps.len()) {
        let timed = &blocks.timed[block.range()];
        let start = timed.iter().fold(block.end, |end, timed| end - timed.length);
        let length = timed[usize::from(block.instructions) - 1].length;
        let (isa, code, base) = (program.isa(), program.program_segment(), program.base());
        steps.push(Step::new(isa, code, base, block, start, length, line));
    }
}
