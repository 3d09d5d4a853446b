use sim::{Rate, Time};

use super::error::{RunError, needs_card};
use super::parameters::LogGops;
use super::queue::{Entry, Queue};
use super::waiting::{Needs, Waiting};
use crate::matching::Matching;
use crate::op::{Kind, Op};
use crate::prefetch::prefetch;
use crate::progress::Progress;
use crate::schedule::Schedule;
use crate::stuck::Stuck;

/// How to execute.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// As LogGOPSim does, start an operation that depends on one of another CPU of its rank when its own CPU is free, even
    /// if what it depends on ends later.
    pub ignore_other_cpus: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// For each rank, when the last of its CPUs was free.
    pub ends: Vec<Time>,
    /// Operations and messages.
    pub events: u64,
    /// The sends of messages that no receive took.
    pub unreceived: Vec<u32>,
}

impl Outcome {
    /// The end of the last rank.
    pub fn end(&self) -> Time {
        self.ends.iter().copied().max().unwrap_or_default()
    }
}

/// Marks the arrival of the message of a send.
const MESSAGE: u32 = 1 << 30;
/// Marks that a rank may go on with what waits there.
const WAKE: u32 = 1 << 31;
const OP: u32 = MESSAGE - 1;

/// Executes a schedule.
///
/// # Errors
/// When the schedule cannot finish, with what each rank waits for, or has operations that are not of this model.
pub fn run(schedule: &Schedule, parameters: &LogGops, options: &Options) -> Result<Outcome, RunError> {
    if !schedule.nic_ops.is_empty()
        && let Some(error) = needs_card(schedule)
    {
        return Err(error);
    }
    let mut engine = Engine::new(schedule, parameters, options);
    engine.begin()?;
    while let Some(Entry { at, number, event }) = engine.queue.pop() {
        engine.prefetch();
        engine.entry(at, number, event)?;
    }
    let left = engine.matching.left(&engine.progress);
    if engine.progress.count() < schedule.len() {
        let is_blocked = |op: &u32| {
            let record = &schedule.ops[*op as usize];
            record.kind() == Kind::Recv || schedule.bytes(record) > parameters.eager
        };
        let blocked: Vec<u32> = left.into_iter().filter(is_blocked).collect();
        return Err(Stuck::new(schedule, &engine.progress, &blocked).into());
    }
    let cpus = |free: &[u64]| Time::from_ps(free[..schedule.cpus].iter().copied().max().unwrap_or(0));
    Ok(Outcome {
        ends: engine.free.chunks(engine.stride).map(cpus).collect(),
        events: schedule.len() as u64 + engine.messages,
        unreceived: left,
    })
}

struct Engine<'a> {
    schedule: &'a Schedule,
    ops: &'a [Op],
    parameters: &'a LogGops,
    progress: Progress<'a>,
    matching: Matching<'a>,
    queue: Queue,
    /// For each rank: when its CPUs, then the sending, then the receiving sides of its NICs are free, in picoseconds.
    free: Vec<u64>,
    stride: usize,
    waiting: Vec<Waiting>,
    number: u32,
    messages: u64,
    freed: Vec<u32>,
}

impl<'a> Engine<'a> {
    fn new(schedule: &'a Schedule, parameters: &'a LogGops, options: &Options) -> Engine<'a> {
        let ranks = schedule.ranks() as usize;
        let stride = schedule.cpus + 2 * schedule.nics;
        Engine {
            schedule,
            ops: &schedule.ops,
            parameters,
            progress: Progress::new(schedule, schedule.cpus > 1 && !options.ignore_other_cpus),
            matching: Matching::new(schedule),
            queue: Queue::new(),
            free: vec![0; ranks * stride],
            stride,
            waiting: std::iter::repeat_with(Waiting::default).take(ranks).collect(),
            number: 0,
            messages: 0,
            freed: Vec::new(),
        }
    }

    /// Takes all operations that depend on nothing: rank by rank, at time zero, before anything else.
    fn begin(&mut self) -> Result<(), RunError> {
        self.number = self.progress.words.iter().filter(|&&word| word == 0).count() as u32;
        let (mut number, mut of_rank) = (0, Vec::new());
        for rank in 0..self.schedule.ranks() {
            // Before any of them is executed, as that frees others.
            of_rank.clear();
            of_rank.extend(self.schedule.of_rank(rank).filter(|&op| !self.progress.is_held(op)));
            of_rank.sort_by_key(|&op| self.ops[op as usize].kind());
            for &op in &of_rank {
                self.entry(0, number, op)?;
                number += 1;
            }
        }
        Ok(())
    }

    /// Fetches what the events that are due soon will need: with many ranks, little of it is in the cache.
    #[inline]
    fn prefetch(&self) {
        if let Some(event) = self.queue.soon(12) {
            prefetch(&raw const self.ops[(event & OP) as usize]);
        }
        if let Some(event) = self.queue.soon(8) {
            let record = &self.ops[(event & OP) as usize];
            let rank = rank_of(event, record) as usize;
            prefetch(&raw const self.free[rank * self.stride]);
            prefetch(&raw const self.waiting[rank]);
            if record.kind() == Kind::Recv || event & MESSAGE != 0 {
                prefetch(self.matching.slot_of(record));
            } else {
                prefetch(self.schedule.edges.as_ptr().wrapping_add(record.edges as usize));
            }
        }
        if let Some(event) = self.queue.soon(4) {
            let record = &self.ops[(event & OP) as usize];
            prefetch(self.waiting[rank_of(event, record) as usize].place());
            if record.kind() == Kind::Recv || event & MESSAGE != 0 {
                let last = (*self.matching.slot_of(record) as u32).wrapping_sub(1) as usize;
                if last < self.progress.words.len() {
                    prefetch(&raw const self.ops[last]);
                    prefetch(&raw const self.progress.words[last]);
                }
            }
        }
    }

    #[inline]
    fn entry(&mut self, now: u64, number: u32, event: u32) -> Result<(), RunError> {
        let record = &self.ops[(event & OP) as usize];
        let rank = rank_of(event, record);
        if event & WAKE != 0 {
            return self.wake(now, number, rank);
        }
        if record.kind() == Kind::Recv {
            self.receive(now, event);
            self.enqueue_freed();
            return Ok(());
        }
        let needs = self.needs(event, record, rank);
        let free = self.free[needs.cpu].max(self.free[needs.nic]);
        if free > now {
            let waiting = &mut self.waiting[rank as usize];
            waiting.add(needs, number, event);
            if waiting.wake.is_none_or(|wake| (free, number) < wake) {
                waiting.wake = Some((free, number));
                self.queue.push(Entry { at: free, number, event: event | WAKE });
            }
            return Ok(());
        }
        self.execute(now, event, record, needs)
    }

    /// Lets the first of those who wait at a rank go, if it is its turn.
    fn wake(&mut self, now: u64, number: u32, rank: u32) -> Result<(), RunError> {
        let waiting = &mut self.waiting[rank as usize];
        // A wake-up may have become unnecessary by an earlier one.
        if waiting.wake != Some((now, number)) {
            return Ok(());
        }
        waiting.wake = None;
        let Some((at, first, event, place)) = waiting.first(&self.free) else { return Ok(()) };
        if (at, first) == (now, number) {
            waiting.take(place);
            let record = &self.ops[(event & OP) as usize];
            self.execute(now, event, record, self.needs(event, record, rank))?;
        }
        let waiting = &mut self.waiting[rank as usize];
        if let Some((at, number, event, _)) = waiting.first(&self.free) {
            waiting.wake = Some((at, number));
            self.queue.push(Entry { at, number, event: event | WAKE });
        }
        Ok(())
    }

    #[inline]
    fn needs(&self, event: u32, record: &Op, rank: u32) -> Needs {
        let base = rank as usize * self.stride;
        let cpu = base + record.cpu();
        let sides = base + self.schedule.cpus + record.nic();
        let nic = if event & MESSAGE != 0 {
            sides + self.schedule.nics
        } else if record.kind() == Kind::Send {
            sides
        } else {
            cpu
        };
        Needs { cpu, nic }
    }

    /// Executes what found its resources free.
    #[inline]
    fn execute(&mut self, now: u64, event: u32, record: &Op, needs: Needs) -> Result<(), RunError> {
        let op = event & OP;
        let Needs { cpu, nic } = needs;
        if record.kind() == Kind::Calc {
            let end = now.saturating_add(record.calc_ns() * 1000);
            self.free[cpu] = self.in_time(end, op)?;
            self.progress.started(op, Time::from_ps(now));
            self.progress.done(op, Time::from_ps(end));
            self.enqueue_freed();
            return Ok(());
        }
        let LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager } = *self.parameters;
        let bytes = self.schedule.bytes(record);
        // An empty message costs what one of a byte costs.
        let more = bytes.saturating_sub(1);
        let time = |fixed: Time, rate: Rate| now.saturating_add((fixed.saturating_add(rate.time(more))).as_ps());
        self.free[nic] = self.in_time(time(gap, gap_per_byte), op)?;
        if event & MESSAGE == 0 {
            let end = self.in_time(time(overhead, overhead_per_byte), op)?;
            self.free[cpu] = end;
            let at = now.saturating_add(overhead.saturating_add(latency).as_ps());
            let at = self.in_time(at, op)?;
            self.messages += 1;
            let number = self.next_number();
            self.queue.push(Entry { at, number, event: op | MESSAGE });
            self.progress.started(op, Time::from_ps(now));
            if bytes <= eager {
                self.progress.done(op, Time::from_ps(end));
            }
        } else {
            let end = self.in_time(time(overhead, overhead_per_byte.max(gap_per_byte)), op)?;
            self.free[cpu] = end;
            match self.matching.arrive(op, &mut self.progress) {
                Some(receive) => {
                    if bytes > eager {
                        self.release_sender(now, op, record);
                    }
                    self.progress.done(receive, Time::from_ps(end));
                }
                None => self.progress.not_before(op, Time::from_ps(end)),
            }
        }
        self.enqueue_freed();
        Ok(())
    }

    fn receive(&mut self, now: u64, op: u32) {
        self.progress.started(op, Time::from_ps(now));
        if let Some(message) = self.matching.post(op, &mut self.progress) {
            let send = &self.ops[message as usize];
            if self.schedule.bytes(send) > self.parameters.eager {
                self.release_sender(now, message, send);
            }
            self.progress.done(op, Time::from_ps(now).max(self.progress.ready(message)));
        }
    }

    /// A send above S is done when it is matched.
    fn release_sender(&mut self, now: u64, op: u32, record: &Op) {
        let Needs { cpu, nic } = self.needs(op, record, record.rank);
        for free in [cpu, nic] {
            let free = &mut self.free[free];
            *free = (*free).max(now);
        }
        self.progress.done(op, Time::from_ps(now));
    }

    /// Gives numbers to the operations that an event has freed.
    #[inline]
    fn enqueue_freed(&mut self) {
        self.progress.take_freed(&mut self.freed);
        for index in 0..self.freed.len() {
            let op = self.freed[index];
            let record = &self.ops[op as usize];
            let Needs { cpu, nic } = self.needs(op, record, record.rank);
            let free = self.free[cpu].max(self.free[nic]);
            let number = self.next_number();
            self.queue.push(Entry { at: free.max(self.progress.ready(op).as_ps()), number, event: op });
        }
    }

    #[inline]
    fn next_number(&mut self) -> u32 {
        self.number += 1;
        self.number - 1
    }

    /// The end of an operation, unless it is beyond the end of time.
    #[inline]
    fn in_time(&self, at: u64, op: u32) -> Result<u64, RunError> {
        if at == u64::MAX { Err(self.too_late(op)) } else { Ok(at) }
    }

    #[cold]
    fn too_late(&self, op: u32) -> RunError {
        RunError::TooLate(self.schedule.describe(op).to_string())
    }
}

/// Where an event happens.
#[inline]
fn rank_of(event: u32, record: &Op) -> u32 {
    if event & MESSAGE != 0 { record.peer } else { record.rank }
}
