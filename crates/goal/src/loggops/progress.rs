use crate::op::ON_START;
use crate::schedule::Schedule;

/// In place of a number of dependencies: the operation is done.
const DONE: u32 = u32::MAX;

/// Where an operation is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Waits for other operations.
    Held,
    /// Free to start, or started and not done.
    Going,
    Done,
}

/// Which operations have started and are done, and whom that frees.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    schedule: &'a Schedule,
    /// Dependencies of each operation that are not yet satisfied.
    held: Vec<u32>,
    /// When the last of each operation's dependencies was satisfied, in picoseconds. Only for schedules with several CPUs:
    /// on a single one, no dependency ends after the CPU is free.
    ready: Vec<u64>,
    /// Operations freed since they were last taken.
    pub freed: Vec<u32>,
    pub done: usize,
}

impl<'a> Progress<'a> {
    pub fn new(schedule: &'a Schedule, with_ready_times: bool) -> Progress<'a> {
        let mut held = vec![0; schedule.len()];
        for edge in &*schedule.edges {
            held[(edge & !ON_START) as usize] += 1;
        }
        let ready = if with_ready_times { vec![0; schedule.len()] } else { Vec::new() };
        Progress { schedule, held, ready, freed: Vec::new(), done: 0 }
    }

    /// When all that the operation waited for had happened.
    #[inline]
    pub fn ready(&self, op: u32) -> u64 {
        self.ready.get(op as usize).copied().unwrap_or(0)
    }

    /// Raises the above.
    #[inline]
    pub fn not_before(&mut self, op: u32, at: u64) {
        if let Some(ready) = self.ready.get_mut(op as usize) {
            *ready = (*ready).max(at);
        }
    }

    pub fn state(&self, op: u32) -> State {
        match self.held[op as usize] {
            DONE => State::Done,
            0 => State::Going,
            _ => State::Held,
        }
    }

    /// Where dependencies are counted; for prefetching.
    #[inline]
    pub fn counts(&self) -> &[u32] {
        &self.held
    }

    #[inline]
    pub fn started(&mut self, op: u32, at: u64) {
        let schedule = self.schedule;
        for edge in schedule.edges_of(op).iter().take_while(|edge| *edge & ON_START != 0) {
            self.satisfy(edge & !ON_START, at);
        }
    }

    #[inline]
    pub fn done(&mut self, op: u32, at: u64) {
        self.held[op as usize] = DONE;
        self.done += 1;
        let schedule = self.schedule;
        for &edge in schedule.edges_of(op).iter().skip_while(|edge| *edge & ON_START != 0) {
            self.satisfy(edge, at);
        }
    }

    #[inline]
    fn satisfy(&mut self, op: u32, at: u64) {
        self.not_before(op, at);
        let held = &mut self.held[op as usize];
        *held -= 1;
        if *held == 0 {
            self.freed.push(op);
        }
    }
}
