// SPDX-License-Identifier: Apache-2.0
//! Runs handlers block by block.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use machine::TimingKind;

use crate::architectural_state::further_words;
use crate::blocks::{Blocks, Cut};
use crate::memory::{Memory, View, Watcher};
use crate::op::{Class, Flow, Op};
use crate::predictor::Predictor;
use crate::profile::Profile;
use crate::program::Program;
use crate::stop::{Fault, Stop};
use crate::thread::Thread;
use crate::timing::{Exit, Memo, SYSTEM};

/// Runs the handlers of one program on one kind of core; the HPUs of a card share it. Several cards can share an engine
/// if each has its own [`Predictor`].
pub struct Engine {
    program: Arc<Program>,
    blocks: Blocks,
    predictor: Predictor,
    memo: Memo,
    in_order: bool,
    profile: Option<Profile>,
}

impl Engine {
    /// Creates an engine for memories with a load latency of `scratchpad_cycles` cycles (at least 1).
    pub fn new(program: Arc<Program>, timing: TimingKind, scratchpad_cycles: u32) -> Engine {
        let in_order = timing == TimingKind::InOrder;
        let cut = Cut::Synchronisation { divisions: in_order && scratchpad_cycles > 1 };
        Engine {
            blocks: Blocks::new(program.clone(), cut),
            program,
            predictor: Predictor::default(),
            memo: Memo::new(timing, scratchpad_cycles),
            in_order,
            profile: None,
        }
    }

    /// Swaps the state of the branch predictor.
    #[inline]
    pub fn swap_predictor(&mut self, other: &mut Predictor) {
        std::mem::swap(&mut self.predictor, other);
    }

    /// Starts counting the executions of each instruction.
    pub fn set_profiling(&mut self) {
        self.profile.get_or_insert_default();
    }

    /// Returns the executions of each instruction, by the address of the handler's first instruction and then by
    /// instruction address. Empty unless [`Engine::set_profiling`] was called.
    pub fn profile(&self) -> BTreeMap<u32, BTreeMap<u32, u64>> {
        match &self.profile {
            Some(profile) => profile.instructions(&self.blocks.addresses()),
            None => BTreeMap::new(),
        }
    }

    /// Runs `thread` until the card must make a decision, or until the thread exceeds `max_cycles` cycles in total; the
    /// limit is checked between blocks.
    ///
    /// Some instructions must execute at their exact time: an atomic operation, a load or store next to a fence, an
    /// access to a word on which a handler waits. The engine stops before such an instruction ([`Stop::Sync`]), and the
    /// next call, at the simulated time of [`Thread::cycles`], executes it first. So these instructions of different
    /// HPUs execute in the order of simulated time.
    pub fn run(&mut self, thread: &mut Thread, memory: &mut Memory<'_>, max_cycles: u64) -> Stop {
        self.run_with::<false>(thread, memory, max_cycles, None)
    }

    /// Behaves as [`Engine::run`], instruction by instruction and in the same cycles. The watcher decides before each
    /// instruction whether to stop ([`Stop::Break`]), including the one at which the previous call stopped.
    pub fn run_stepwise(
        &mut self,
        thread: &mut Thread,
        memory: &mut Memory<'_>,
        max_cycles: u64,
        watcher: &mut dyn Watcher,
    ) -> Stop {
        self.run_with::<true>(thread, memory, max_cycles, Some(watcher))
    }

    fn run_with<'a, const STEPS: bool>(
        &mut self,
        thread: &mut Thread,
        memory: &'a mut Memory<'_>,
        max_cycles: u64,
        watcher: Option<&'a mut dyn Watcher>,
    ) -> Stop {
        if let Some(profile) = &mut self.profile {
            profile.begin(thread.entry);
        }
        // A debugger stop does not affect the thread.
        if !std::mem::take(&mut thread.broken) {
            thread.state.wait_detector.resume();
        }
        let mut view = View::new(memory);
        view.watcher = watcher;
        self.memo.resume(&mut thread.pipeline);
        let stop = self.run_to_stop::<STEPS>(thread, &mut view, max_cycles);
        if !matches!(stop, Stop::Return(_) | Stop::Fault(_)) {
            self.memo.park(&mut thread.pipeline);
        }
        stop
    }

    #[inline(always)]
    fn run_to_stop<const STEPS: bool>(&mut self, thread: &mut Thread, view: &mut View<'_>, max_cycles: u64) -> Stop {
        loop {
            let start = thread.state.pc;
            let found = if STEPS || thread.granted { self.blocks.piece(start, 1) } else { self.blocks.at(start) };
            let Some(number) = found else { return self.left_program(thread) };
            // The limit is checked between the blocks of an uninterrupted run.
            let is_within = STEPS && thread.within.is_some_and(|(next, _)| next == start);
            if thread.state.cycles > max_cycles && !is_within {
                return Stop::Limit;
            }
            let mut block = self.blocks.block(number);
            // The branch predictor identifies branches by the blocks that they end.
            let (mut whole, mut late) = (number, 0);
            if STEPS || thread.granted || block.special {
                if block.synchronises && !thread.granted {
                    thread.granted = true;
                    return Stop::Sync;
                }
                if STEPS {
                    view.orders = block.synchronises;
                    if view.watcher.as_mut().is_some_and(|watcher| watcher.stops(start)) {
                        thread.broken = true;
                        return Stop::Break;
                    }
                }
                view.granted = std::mem::take(&mut thread.granted);
                if STEPS {
                    whole = self.whole(thread, view.granted, number);
                }
                late = self.late(thread, number);
                block = self.blocks.block(number);
                let first = &self.blocks.timed[block.range().start];
                if first.class == Class::Divide {
                    thread.state.divided = self.memo.divided(thread.pipeline, first);
                }
            } else {
                view.granted = false;
            }

            let timed = &self.blocks.timed;
            let state = &mut thread.state;
            state.cycles = state.cycles.wrapping_add_signed(late);
            state.pc = block.end;
            state.data_cycles = 0;
            let flow = Op::run_all(&self.blocks.ops[block.range()], state, view);
            if !matches!(flow, Flow::Next | Flow::Jump | Flow::Command) {
                state.cycles = state.cycles.wrapping_add_signed(-late);
                return self.stop(thread, view, start, number, flow);
            }

            state.instructions += u64::from(block.instructions);
            if let Some(profile) = &mut self.profile {
                profile.add(number);
            }
            let taken = flow == Flow::Jump;
            let cycles = if self.in_order {
                state.cycles += u64::from(state.data_cycles);
                let exit = Exit { taken, ..Exit::NEXT };
                self.memo.advance(&mut thread.pipeline, number, exit, || &timed[block.range()])
            } else {
                let backward = if STEPS { self.blocks.block(whole).backward } else { block.backward };
                let mispredicted = self.predictor.mispredicts(whole, block.last, backward, taken, state.pc);
                let exit = Exit { taken, mispredicted, ..Exit::NEXT };
                self.memo.advance(&mut thread.pipeline, number, exit, || &timed[block.range()])
            };
            state.cycles = state.cycles.wrapping_add_signed(i64::from(cycles) - late);
            if flow == Flow::Command {
                thread.command = start;
                let convention = thread.convention;
                let (number, argument) = (state.word(convention.command), state.word(convention.command_argument));
                return Stop::Call { number, argument };
            }
        }
    }

    /// Returns the cycles from the start of block `number` until it reads a control register: until its instruction enters
    /// the execute stage. The value is negative if it stalls there behind an outstanding access. A jump target that is
    /// split over two words enters a cycle later.
    fn late(&mut self, thread: &mut Thread, number: u32) -> i64 {
        let block = self.blocks.block(number);
        if !self.in_order || block.last != Class::System {
            return 0;
        }
        let timed = &self.blocks.timed[block.range()];
        let begins = self.memo.peek(&mut thread.pipeline, number, Exit::NEXT, || timed) - SYSTEM;
        i64::from(begins) - i64::from(self.memo.early(thread.pipeline, &timed[0]))
    }

    /// Stops a thread in block `number` at `start`, before an operation that failed with `flow`.
    #[cold]
    fn stop(&mut self, thread: &mut Thread, view: &mut View<'_>, start: u32, number: u32, flow: Flow) -> Stop {
        let range = self.blocks.block(number).range();
        let at = range.len() - view.behind - 1;
        if std::mem::take(&mut view.synchronises) {
            return self.pause(thread, view, start, at);
        }
        self.fault(thread, view, start, &range, at, flow)
    }

    /// Returns the block of an uninterrupted run that contains the instruction of block `number`.
    fn whole(&mut self, thread: &mut Thread, granted: bool, number: u32) -> u32 {
        let (start, end) = (thread.state.pc, self.blocks.block(number).end);
        let within = std::mem::take(&mut thread.within).filter(|(next, _)| *next == start && !granted);
        let whole = match within {
            Some((_, whole)) => whole,
            None if granted => number,
            None => self.blocks.at(start).unwrap_or(number),
        };
        thread.within = Some((end, whole)).filter(|_| end < self.blocks.block(whole).end);
        whole
    }

    /// Stops a thread whose pc is outside the code: it returned, or jumped elsewhere.
    #[cold]
    fn left_program(&self, thread: &Thread) -> Stop {
        match thread.state.pc {
            pc if pc == self.program.return_address() => Stop::Return(thread.state.word(thread.convention.result)),
            pc => Stop::Fault(Fault::Fetch { pc }),
        }
    }

    /// Stops a thread before operation `at` of the block at `start`, an access to a watched word.
    #[cold]
    fn pause(&mut self, thread: &mut Thread, view: &View<'_>, start: u32, at: usize) -> Stop {
        thread.state.pc = start;
        thread.granted = true;
        if at > 0
            && let Some(number) = self.blocks.piece(start, at as u32)
        {
            let block = self.blocks.block(number);
            let state = &mut thread.state;
            state.pc = block.end;
            state.instructions += u64::from(block.instructions);
            if let Some(profile) = &mut self.profile {
                profile.add(number);
            }
            if self.in_order {
                // The access that stopped the block already counted its own cycles.
                let (address, len) = view.denied;
                state.cycles += u64::from(state.data_cycles - further_words(address, len as usize));
            }
            let (timed, range) = (&self.blocks.timed, block.range());
            state.cycles += u64::from(self.memo.advance(&mut thread.pipeline, number, Exit::NEXT, || &timed[range]));
        }
        Stop::Sync
    }

    /// Ends a thread with a fault at operation `at` of the block at `start`, and counts the operations before it.
    #[cold]
    fn fault(
        &mut self,
        thread: &mut Thread,
        view: &View<'_>,
        start: u32,
        range: &Range<usize>,
        at: usize,
        flow: Flow,
    ) -> Stop {
        let mut pc = start;
        let mut ops = self.blocks.timed[range.start..=range.start + at].to_vec();
        for timed in &ops[..at] {
            if let Some(profile) = &mut self.profile {
                profile.add_partial(thread.entry, pc);
            }
            pc += timed.length;
        }
        let state = &mut thread.state;
        state.pc = pc;
        state.instructions += at as u64;
        if self.in_order {
            state.cycles += u64::from(state.data_cycles);
            // A faulting control-register instruction does not execute.
            if ops[at].class == Class::System {
                ops[at].class = Class::Trap;
            }
        }
        state.cycles += u64::from(self.memo.partial(thread.pipeline, &ops));

        Stop::Fault(Fault::of(flow, pc, view.denied, self.blocks.encoding(pc, ops[at].length)))
    }
}
