// SPDX-License-Identifier: Apache-2.0
//! Runs a thread access by access on an in-order core.

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
/// [`Stepper::run`] executes a thread up to its next access, and returns the cycle in which the access requests its
/// memory. The card arbitrates, and calls [`Stepper::perform`] when the access happens. So every access happens at its
/// exact time, and a thread whose memories are never busy takes the same cycles as in an [`Engine`](crate::Engine) with
/// the timing `inorder`.
pub struct Stepper {
    program: Arc<Program>,
    blocks: Blocks,
    steps: Vec<Step>,
    memo: Memo,
    /// Line size of the instruction cache in bytes.
    line: u32,
    /// Empty: a stepper watches no words, because all accesses happen at their exact time.
    nothing: Watched,
}

/// Delay of an access relative to a memory that is always ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Cycles from the request of the first word to the grant of the last one. The following instructions stall.
    pub grant: u64,
    /// Cycles by which the answer is late after that. The next instruction executes, but cannot complete.
    pub answer: u64,
}

impl Stall {
    /// No delay.
    pub const NONE: Stall = Stall { grant: 0, answer: 0 };

    /// Returns the delay of a late grant with an immediate answer.
    pub const fn grant(grant: u64) -> Stall {
        Stall { grant, answer: 0 }
    }

    /// Returns the delay of an immediate grant with a late answer.
    pub const fn answer(answer: u64) -> Stall {
        Stall { grant: 0, answer }
    }

    /// Returns the additional cycles of the access, including those of its further words, and the wait that the
    /// pipeline sees.
    fn cycles(self, further_words: u32) -> (u64, Wait) {
        (self.grant.max(further_words.into()) + self.answer, Wait::new(self.grant, self.answer))
    }
}

/// Memo numbers of transitions without a block: the wait for an answer, cycles without an instruction, and the call at
/// the start.
const ANSWER: u32 = u32::MAX - 4;
const ONE_CYCLE: u32 = u32::MAX - 1;
const CYCLES: u32 = u32::MAX - 2;
const CALL: u32 = u32::MAX - 3;

const fn timed(class: Class, results: RegisterSet) -> Timed {
    Timed { class, sources: RegisterSet::NONE, results, updates: RegisterSet::NONE, beats: 1, length: 4, split: false }
}

/// Cycles of a division that the pipeline counts as hidden by the wait for an answer; data-dependent cycles are extra.
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

    /// Returns the number of lines of the program.
    pub fn lines(&self) -> u32 {
        (self.program.program_segment().len() as u32).div_ceil(self.line)
    }

    /// Starts `thread` at cycle `at` as a function that other code just called by an indirect jump: the jump produces
    /// its return address, and its first instruction is the target.
    pub fn call(&mut self, thread: &mut Thread, at: u64) {
        let link = [timed(Class::JumpIndirect, RegisterSet::of(thread.convention.return_address % 64))];
        self.memo.resume(&mut thread.pipeline);
        self.memo.advance(&mut thread.pipeline, CALL, Exit { taken: true, ..Exit::NEXT }, || &link);
        thread.state.cycles = at;
    }

    /// Delays the answer to the latest access of `thread` to `cycles` cycles after the thread continued.
    pub fn answer(&mut self, thread: &mut Thread, cycles: u64) {
        self.memo.resume(&mut thread.pipeline);
        let exit = Exit { wait: Wait::new(0, cycles), ..Exit::NEXT };
        self.memo.advance(&mut thread.pipeline, ANSWER, exit, || &[]);
        thread.state.cycles += cycles;
        thread.executed_since += cycles;
    }

    /// Stalls `thread` for `cycles` cycles in which no instruction enters its pipeline.
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

    /// Runs `thread` up to its next access or another reason to pause. From cycle `until` on, it stops at the end of
    /// the current block. `lines` is the content of the instruction cache.
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
            // A counter is read when its instruction enters the execute stage, where it may wait for the answer to an
            // access. A jump target that is split over two words enters a cycle later.
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
            // A division in the execute stage proceeds while it waits for the answer to an access.
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
            // A branch that is not taken frees the execute stage.
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

    /// Executes the access of the latest [`Pause::Access`] on the bytes of `window` in `arena`, `stall` later than in a
    /// memory that is always ready. A device is a window of a few bytes: it writes the bytes before a load, and reads
    /// them after a store.
    ///
    /// # Errors
    /// Returns a fault if the access is not completely inside the window, writes to a read-only window, or is a
    /// misaligned atomic operation.
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
        // The access, and possibly the end of a hardware loop's body after it.
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

    /// Executes the access of the latest [`Pause::Access`], at `address`, on a device register, and then runs for at
    /// most `ahead` cycles, like [`Stepper::perform`] and [`Stepper::run`]. The device answers `stall` cycles late with
    /// `answer` and ignores stores. Repeated register sequences of a runtime around short handlers are memoised after
    /// their first executions.
    ///
    /// # Errors
    /// Returns the faults of [`Stepper::perform`].
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

    /// Executes a path that is not memoised, and memoises it if the registers are unchanged at its end.
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

    /// Ends a thread with a fault at operation `at` of a block, and counts the operations before it.
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
        // A faulting control-register instruction does not execute.
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

/// Returns true if the first instruction of a step reads the result of the access at the end of block `number`.
#[cold]
fn needs_access(steps: &[Step], blocks: &Blocks, number: u32, step: &Step) -> bool {
    let Some(before) = steps.get(number as usize) else { return false };
    blocks.timed[step.first as usize].sources.intersects(blocks.timed[before.before_access as usize].results)
}

/// Returns the pause of a thread whose pc is outside the code: it returned, or jumped elsewhere.
#[cold]
fn left_program(program: &Program, thread: &Thread) -> Pause {
    match thread.state.pc {
        pc if pc == program.return_address() => Pause::Return(thread.state.word(thread.convention.result)),
        pc => Pause::Fault(Fault::Fetch { pc }),
    }
}

/// Adds the steps of newly decoded blocks.
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
