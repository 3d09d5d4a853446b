// SPDX-License-Identifier: Apache-2.0
//! Memo of pipeline transitions.

use machine::TimingKind;
use rustc_hash::FxHashMap;

use super::inorder::InOrder;
use super::ooo::{CORTEX_A15, OutOfOrder};
use super::pipeline::{Exit, Pipeline, Timed};

/// A pipeline with numbered states; 0 is the empty one.
trait Numbered: Send + Sync {
    /// Calls [`Pipeline::run`], and also returns the number of the state after it.
    fn run(&mut self, state: u32, ops: &[Timed], exit: Exit) -> (u32, u32);

    /// Calls [`Pipeline::early`].
    fn early(&self, state: u32, next: &Timed) -> u32;

    /// Calls [`Pipeline::divided`].
    fn divided(&self, state: u32, division: &Timed) -> u32;

    /// Discards all states except the empty one and those for which `kept` returns true; these keep their numbers.
    fn forget(&mut self, kept: &dyn Fn(u32) -> bool);
}

struct Interned<P: Pipeline> {
    pipeline: P,
    /// States by number. A discarded state is empty.
    states: Vec<P::State>,
    /// Numbers of discarded states.
    free: Vec<u32>,
    numbers: FxHashMap<P::State, u32>,
}

impl<P: Pipeline> Interned<P> {
    fn new(pipeline: P) -> Interned<P> {
        let mut interned = Interned { pipeline, states: Vec::new(), free: Vec::new(), numbers: FxHashMap::default() };
        interned.number(P::State::default());
        interned
    }

    fn number(&mut self, state: P::State) -> u32 {
        *self.numbers.entry(state).or_insert_with_key(|state| match self.free.pop() {
            Some(number) => {
                self.states[number as usize] = state.clone();
                number
            }
            None => {
                self.states.push(state.clone());
                self.states.len() as u32 - 1
            }
        })
    }
}

impl<P: Pipeline + Send + Sync> Numbered for Interned<P> {
    fn run(&mut self, state: u32, ops: &[Timed], exit: Exit) -> (u32, u32) {
        let mut state = self.states[state as usize].clone();
        let cycles = self.pipeline.run(&mut state, ops, exit);
        (cycles, self.number(state))
    }

    fn early(&self, state: u32, next: &Timed) -> u32 {
        self.pipeline.early(&self.states[state as usize], next)
    }

    fn divided(&self, state: u32, division: &Timed) -> u32 {
        self.pipeline.divided(&self.states[state as usize], division)
    }

    fn forget(&mut self, kept: &dyn Fn(u32) -> bool) {
        let Interned { states, free, numbers, .. } = self;
        numbers.retain(|_, number| {
            let stays = *number == 0 || kept(*number);
            if !stays {
                states[*number as usize] = P::State::default();
                free.push(*number);
            }
            stays
        });
        free.sort_unstable_by(|a, b| b.cmp(a));
    }
}

/// Latest transition of a thread's pipeline. The default is an empty pipeline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    transition: u32,
    generation: u32,
    /// Number of the pipeline state while the thread is stopped ([`Memo::park`]).
    parked: Option<u32>,
}

struct Transition {
    /// Block of the transition.
    block: u32,
    cycles: u32,
    /// Previous successor transition for each [`Exit`] of the next block.
    next: [u32; Exit::COUNT],
}

/// Block number of transitions without a block.
const NO_BLOCK: u32 = u32::MAX;
/// Maximum number of transitions; most programs have at most a few hundred.
const CAPACITY: usize = 1 << 14;

/// Transitions seen so far.
///
/// A full memo is cleared, except for the states of the running thread and of parked ones. So a thread's time does not
/// depend on the contents of the memo. A thread that was not parked continues with an empty pipeline.
pub(crate) struct Memo {
    pipeline: Box<dyn Numbered>,
    /// Transitions; the first is the empty pipeline.
    transitions: Vec<Transition>,
    /// Pipeline state after each transition.
    states: Vec<u32>,
    /// Transitions by block, state before the block, and exit.
    known: FxHashMap<(u32, u32, Exit), u32>,
    generation: u32,
    /// Number of parked threads for each state.
    parked: Vec<u32>,
}

impl Memo {
    pub fn new(kind: TimingKind, scratchpad_cycles: u32) -> Memo {
        let scratchpad = scratchpad_cycles.max(1);
        let pipeline: Box<dyn Numbered> = match kind {
            TimingKind::InOrder => Box::new(Interned::new(InOrder { scratchpad })),
            TimingKind::OooA15 => Box::new(Interned::new(OutOfOrder { parameters: CORTEX_A15, scratchpad })),
        };
        let mut memo = Memo {
            pipeline,
            transitions: Vec::new(),
            states: Vec::new(),
            known: FxHashMap::default(),
            generation: 0,
            parked: Vec::new(),
        };
        memo.push(NO_BLOCK, 0, 0);
        memo
    }

    /// Keeps the state of a stopped thread until it [resumes](Memo::resume).
    #[inline]
    pub fn park(&mut self, position: &mut Position) {
        let state = self.states[position.transition as usize];
        if state as usize >= self.parked.len() {
            self.parked.resize(state as usize + 1, 0);
        }
        self.parked[state as usize] += 1;
        position.parked = Some(state);
    }

    /// Resumes a stopped thread. If the memo was cleared in the meantime, its pipeline is empty unless it was parked.
    #[inline]
    pub fn resume(&mut self, position: &mut Position) {
        let parked = position.parked.take();
        if let Some(state) = parked {
            let threads = &mut self.parked[state as usize];
            *threads = threads.saturating_sub(1);
        }
        if position.generation != self.generation {
            let transition = parked.map_or(0, |state| self.push(NO_BLOCK, 0, state));
            *position = Position { transition, generation: self.generation, parked: None };
        }
    }

    /// Advances the pipeline by `block` and returns its cycles. `ops` returns its instructions; it is called only for
    /// an unknown transition.
    #[inline(always)]
    pub fn advance<'a>(
        &mut self,
        position: &mut Position,
        block: u32,
        exit: Exit,
        ops: impl FnOnce() -> &'a [Timed],
    ) -> u32 {
        let (next, cycles) = self.find(position, block, exit, ops);
        position.transition = next;
        cycles
    }

    /// Returns the cycles of `block` as [`Memo::advance`] does, without advancing the thread. `position` changes only
    /// if the memo is cleared.
    #[inline(always)]
    pub fn peek<'a>(
        &mut self,
        position: &mut Position,
        block: u32,
        exit: Exit,
        ops: impl FnOnce() -> &'a [Timed],
    ) -> u32 {
        self.find(position, block, exit, ops).1
    }

    /// Returns the transition to `block`, and its cycles.
    #[inline(always)]
    fn find<'a>(
        &mut self,
        position: &mut Position,
        block: u32,
        exit: Exit,
        ops: impl FnOnce() -> &'a [Timed],
    ) -> (u32, u32) {
        let next = self.transitions[position.transition as usize].next[exit.index()];
        let known = &self.transitions[next as usize];
        if known.block == block {
            return (next, known.cycles);
        }
        let next = self.search(position, block, exit, ops());
        (next, self.transitions[next as usize].cycles)
    }

    /// Returns the cycles of the first instructions of a block, after which the thread does not continue.
    pub fn partial(&mut self, position: Position, ops: &[Timed]) -> u32 {
        self.pipeline.run(self.states[position.transition as usize], ops, Exit::NEXT).0
    }

    /// Returns the cycles that `next`, at `position`, spends in the execute stage before the previous instruction ends.
    pub fn early(&self, position: Position, next: &Timed) -> u32 {
        self.pipeline.early(self.states[position.transition as usize], next)
    }

    /// Returns the data-dependent cycles of a division at `position` that pass before the previous instruction ends.
    pub fn divided(&self, position: Position, division: &Timed) -> u32 {
        self.pipeline.divided(self.states[position.transition as usize], division)
    }

    /// Finds the transition that follows `position`, which changes only if the memo is cleared.
    #[cold]
    fn search(&mut self, position: &mut Position, block: u32, exit: Exit, ops: &[Timed]) -> u32 {
        if self.transitions.len() >= CAPACITY {
            self.start_afresh(position);
        }
        let state = self.states[position.transition as usize];
        let next = match self.known.get(&(block, state, exit)) {
            Some(next) => *next,
            None => {
                let (cycles, after) = self.pipeline.run(state, ops, exit);
                let next = self.push(block, cycles, after);
                self.known.insert((block, state, exit), next);
                next
            }
        };
        self.transitions[position.transition as usize].next[exit.index()] = next;
        next
    }

    fn start_afresh(&mut self, position: &mut Position) {
        let state = self.states[position.transition as usize];
        let parked = &self.parked;
        self.pipeline
            .forget(&|number| number == state || parked.get(number as usize).is_some_and(|threads| *threads > 0));
        self.transitions.clear();
        self.states.clear();
        self.known.clear();
        self.push(NO_BLOCK, 0, 0);
        self.generation += 1;
        let transition = self.push(NO_BLOCK, 0, state);
        *position = Position { transition, generation: self.generation, parked: None };
    }

    fn push(&mut self, block: u32, cycles: u32, state: u32) -> u32 {
        self.transitions.push(Transition { block, cycles, next: [0; Exit::COUNT] });
        self.states.push(state);
        self.transitions.len() as u32 - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Class, RegisterSet};

    fn op(class: Class, result: u8, sources: RegisterSet) -> [Timed; 1] {
        let results = RegisterSet::of(result);
        [Timed { class, sources, results, updates: RegisterSet::NONE, beats: 1, length: 4, split: false }]
    }

    /// Returns the cycles of a load in block 0 and of the use of its result in block `number`, which is new in each
    /// call.
    fn load_use(memo: &mut Memo, position: &mut Position, number: u32) -> u32 {
        let (load, user) = (op(Class::Load, 1, RegisterSet::NONE), op(Class::Alu, 2, RegisterSet::of(1)));
        memo.advance(position, 0, Exit::NEXT, || &load) + memo.advance(position, 1 + number, Exit::NEXT, || &user)
    }

    #[test]
    fn transitions_are_simulated_once() {
        let mut memo = Memo::new(TimingKind::OooA15, 1);
        let (mut position, mut first) = (Position::default(), 0);
        // After some rounds the buffers are full and the states repeat.
        for round in 0..400 {
            load_use(&mut memo, &mut position, 0);
            if round == 200 {
                first = memo.transitions.len();
            }
        }
        assert_eq!(memo.transitions.len(), first);
        let no_need = || -> &[Timed] { panic!("known") };
        memo.advance(&mut position, 0, Exit::NEXT, no_need);
    }

    #[test]
    fn a_full_memo_starts_afresh_in_the_same_state() {
        let mut memo = Memo::new(TimingKind::InOrder, 1);
        let mut position = Position::default();
        let (load, user) = (op(Class::Load, 1, RegisterSet::NONE), op(Class::Alu, 2, RegisterSet::of(1)));
        let (mut parked, mut old) = (Position::default(), Position::default());
        for number in 0..CAPACITY as u32 {
            // load, load-use, operation
            assert_eq!(load_use(&mut memo, &mut position, number), 3);
            if number == 0 {
                old = position;
                memo.advance(&mut parked, 0, Exit::NEXT, || &load);
                memo.park(&mut parked);
            }
        }
        assert_eq!(memo.generation, 1);
        assert!(memo.transitions.len() <= CAPACITY);
        // A thread parked after a load continues unaffected.
        memo.resume(&mut parked);
        assert_eq!(memo.advance(&mut parked, 1, Exit::NEXT, || &user), 2);
        // A thread that was not parked continues with an empty pipeline.
        memo.resume(&mut old);
        assert_eq!((old.transition, old.generation), (0, 1));
        assert_eq!(load_use(&mut memo, &mut old, 0), 3);
    }
}
