use std::ops::Range;

use sim::memory::prefetch;
use sim::{Rate, Time};
use thiserror::Error;

use super::error::RunError;
use super::order::{Alone, Order};
use super::parallel;
use super::parameters::LogGops;
use super::queue::{Entry, Queue};
use super::queues::{Lengths, Queues};
use super::resources::{Many, NO_NUMBER, One, Place, Resources, Side};
use crate::matching::Matching;
use crate::noise::{Noise, Noisy, Quiet, Stretch};
use crate::op::{Kind, Op};
use crate::progress::Progress;
use crate::schedule::Schedule;
use crate::stuck::Stuck;

/// How to execute.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// As LogGOPSim does, start an operation that depends on one of another CPU of its rank when its own CPU is free, even
    /// if what it depends on ends later.
    pub ignore_other_cpus: bool,
    /// What else the CPUs have to do.
    pub noise: Option<Noise>,
    /// Keep what ran when: 48 bytes an operation and a message.
    pub record: bool,
    /// So many threads execute, each a part of the ranks, unless the schedule allows only [one](one_thread()); 0 is one.
    /// The outcome is the same.
    pub threads: usize,
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
    /// Of the queues of posted receives and unexpected messages.
    pub queues: Queues,
    /// What ran when, if [asked for](Options::record), in the order of its start.
    pub spans: Vec<Span>,
    /// When sends above S were matched, likewise.
    pub matches: Vec<Match>,
}

/// A send, a calculation, or the taking in of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where
    pub rank: u32,
    /// The operation, or the send whose message it is
    pub op: u32,
    /// Whether it is the message of the send
    pub is_message: bool,
    /// When it began
    pub start: Time,
    /// When the message arrived; else the start
    pub arrival: Time,
    /// When it let the CPU go
    pub cpu_end: Time,
    /// When it let the NIC go
    pub nic_end: Time,
}

/// A send above S finds its receive, which lets the sender go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The send
    pub op: u32,
    /// When
    pub at: Time,
    /// What had begun before: the first so many of all spans
    pub spans: usize,
}

impl Outcome {
    /// The end of the last rank.
    pub fn end(&self) -> Time {
        self.ends.iter().copied().max().unwrap_or_default()
    }

    /// Of these ranks and those that follow, without [spans](Outcome::spans).
    pub(super) fn and(mut self, next: Outcome) -> Outcome {
        self.ends.extend(next.ends);
        self.events += next.events;
        self.unreceived.extend(next.unreceived);
        self.unreceived.sort_unstable();
        self.queues = self.queues.and(next.queues);
        self
    }
}

/// Marks the arrival of the message of a send.
pub(super) const MESSAGE: u32 = 1 << 30;
/// Marks that a rank may go on with what waits there.
const WAKE: u32 = 1 << 31;
const OP: u32 = MESSAGE - 1;

/// How many operations ahead of the present one of a rank are fetched.
const AHEAD: usize = 16;
/// So many receives ahead the place of a receive that is posted at the beginning is fetched.
const BEGIN_AHEAD: usize = 8;
/// Of so many ranks the cache holds what is fetched ahead until it is needed.
const CACHED_RANKS: usize = 1 << 15;

/// Executes a schedule.
///
/// # Errors
/// When the schedule cannot finish, with what each rank waits for, or has operations that are not of this model.
pub fn run(schedule: &Schedule, parameters: &LogGops, options: &Options) -> Result<Outcome, RunError> {
    if let Some(op) = schedule.first_of_card() {
        return Err(RunError::NeedsCard(schedule.describe(op)));
    }
    match &options.noise {
        None => run_with(schedule, parameters, options, || Quiet),
        Some(noise) => {
            let cpus = schedule.ranks() as usize * schedule.cpus;
            run_with(schedule, parameters, options, || Noisy::new(noise, cpus))
        }
    }
}

fn run_with<X: Stretch>(
    schedule: &Schedule,
    parameters: &LogGops,
    options: &Options,
    noise: impl Fn() -> X + Sync,
) -> Result<Outcome, RunError> {
    let is_single = (schedule.cpus, schedule.nics) == (1, 1);
    if options.threads > 1 && one_thread(schedule, parameters, options).is_none() {
        let bounds = parallel::bounds(schedule, options.threads);
        let run = if is_single { parallel::run::<One, X> } else { parallel::run::<Many, X> };
        if let Some(outcome) = run(schedule, parameters, options, &noise, &bounds) {
            return Ok(outcome);
        }
        // What cannot finish is run again in one thread, which knows best where it ended.
    }
    let run = if is_single { run_alone::<One, X> } else { run_alone::<Many, X> };
    run(schedule, parameters, options, noise())
}

/// Why a schedule cannot be executed by several threads.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OneThread {
    /// There is no time in which they could go on by themselves.
    #[error("o + L is 0")]
    NoLatency,
    /// The match of a message above S acts at the sender at once.
    #[error("{0} sends more than S bytes, and its match acts at once in another part of the ranks")]
    Rendezvous(String),
    /// What starts in the past can send messages that arrive in the past.
    #[error("with --compat cross-cpu and several CPUs a rank, operations may start in the past")]
    Past,
    /// The order of what happens is known only afterwards.
    #[error("what ran when is recorded in the order of its start")]
    Record,
}

/// Whether [`Options::threads`] would have no effect, and why.
pub fn one_thread(schedule: &Schedule, parameters: &LogGops, options: &Options) -> Option<OneThread> {
    if parameters.overhead + parameters.latency == Time::ZERO {
        return Some(OneThread::NoLatency);
    }
    if options.record {
        return Some(OneThread::Record);
    }
    if options.ignore_other_cpus && schedule.cpus > 1 {
        return Some(OneThread::Past);
    }
    if schedule.largest_message() <= parameters.eager {
        return None;
    }
    let bounds = parallel::bounds(schedule, options.threads);
    let part = |rank: u32| bounds.partition_point(|&first| first <= rank);
    let is_obstacle = |record: &Op| {
        let is_long = record.kind() == Kind::Send && schedule.bytes(record) > parameters.eager;
        is_long && part(record.rank) != part(record.peer)
    };
    let op = schedule.ops[..schedule.len()].iter().position(is_obstacle)?;
    Some(OneThread::Rendezvous(schedule.describe(op as u32)))
}

fn run_alone<R: Resources, X: Stretch>(
    schedule: &Schedule,
    parameters: &LogGops,
    options: &Options,
    noise: X,
) -> Result<Outcome, RunError> {
    let ranks = 0..schedule.ranks();
    let mut engine = Engine::<R, _, _>::new(schedule, parameters, options, noise, Alone::default(), ranks);
    engine.begin();
    engine.run(u64::MAX)?;
    Ok(engine.finish()?)
}

pub(super) struct Engine<'a, R, X, O> {
    schedule: &'a Schedule,
    ops: &'a [Op],
    parameters: &'a LogGops,
    progress: Progress<'a>,
    matching: Matching<'a>,
    pub queue: Queue,
    resources: R,
    noise: X,
    pub order: O,
    ranks: Range<u32>,
    messages: u64,
    freed: Vec<u32>,
    queues: Lengths,
    record: Option<(Vec<Span>, Vec<Match>)>,
    /// See [`Progress::prefetch`].
    ahead: usize,
}

impl<'a, R: Resources, X: Stretch, O: Order> Engine<'a, R, X, O> {
    pub fn new(
        schedule: &'a Schedule,
        parameters: &'a LogGops,
        options: &Options,
        noise: X,
        order: O,
        ranks: Range<u32>,
    ) -> Engine<'a, R, X, O> {
        // On a single CPU no dependency ends after the CPU is free.
        let with_ready_times = schedule.cpus > 1 && !options.ignore_other_cpus;
        Engine {
            schedule,
            ops: &schedule.ops,
            parameters,
            progress: Progress::of_ranks(schedule, ranks.clone(), with_ready_times),
            matching: Matching::new(schedule),
            queue: Queue::new(),
            resources: R::new(schedule, ranks.clone()),
            noise,
            order,
            messages: 0,
            freed: Vec::new(),
            queues: Lengths::new(ranks.clone()),
            record: options.record.then(Default::default),
            ahead: if ranks.len() <= CACHED_RANKS { AHEAD } else { 0 },
            ranks,
        }
    }

    /// Goes on up to a time.
    #[inline]
    pub fn run(&mut self, limit: u64) -> Result<(), RunError> {
        while let Some(Entry { at, number, event }) = self.queue.pop(limit) {
            self.prefetch();
            self.entry(at, number, event)?;
        }
        Ok(())
    }

    /// What has become of the ranks when nothing happens any more.
    pub fn finish(self) -> Result<Outcome, Stuck> {
        let (schedule, left) = (self.schedule, self.matching.left(&self.progress));
        let operations: usize = self.ranks.clone().map(|rank| schedule.of_rank(rank).len()).sum();
        if self.progress.count() < operations {
            let is_blocked = |op: &u32| {
                let record = &schedule.ops[*op as usize];
                record.kind() == Kind::Recv || schedule.bytes(record) > self.parameters.eager
            };
            let blocked: Vec<u32> = left.into_iter().filter(is_blocked).collect();
            return Err(Stuck::new(schedule, &self.progress, &blocked));
        }
        let (spans, matches) = self.record.unwrap_or_default();
        Ok(Outcome {
            ends: self.ranks.map(|rank| Time::from_ps(self.resources.end(rank))).collect(),
            events: operations as u64 + self.messages,
            unreceived: left,
            queues: self.queues.all,
            spans: with_arrivals(spans, schedule.len(), self.parameters),
            matches,
        })
    }

    /// About how many receives depend on nothing, from some of the ranks.
    fn first_receives(&self) -> usize {
        const SAMPLE: usize = 256;
        let step = self.ranks.len().div_ceil(SAMPLE).max(1);
        let is_first = |&op: &u32| !self.progress.is_held(op) && self.ops[op as usize].kind() == Kind::Recv;
        let sample = self.ranks.clone().step_by(step);
        sample.map(|rank| self.schedule.of_rank(rank).filter(is_first).count()).sum::<usize>() * step
    }

    /// Takes all operations that depend on nothing, rank by rank.
    pub fn begin(&mut self) {
        self.matching.reserve(self.first_receives());
        let mut first = Vec::new();
        let nothing_arrives = self.parameters.overhead + self.parameters.latency > Time::ZERO;
        for rank in self.ranks.clone() {
            // The receives of ranks with few, for which looking ahead within the rank is too late.
            if rank + (BEGIN_AHEAD as u32) < self.ranks.end {
                for op in self.schedule.of_rank(rank + BEGIN_AHEAD as u32).take(BEGIN_AHEAD) {
                    prefetch(self.matching.slot_of(&self.ops[op as usize]));
                }
            }
            self.progress.take_first(self.schedule.of_rank(rank), &mut first);
            self.enqueue(0, &first, nothing_arrives);
        }
    }

    /// Fetches what the events that are due soon will need: with many ranks, little of it is in the cache.
    #[inline(always)]
    fn prefetch(&self) {
        if let Some(event) = self.queue.soon(12) {
            prefetch(&raw const self.ops[(event & OP) as usize]);
        }
        if let Some(event) = self.queue.soon(8) {
            let record = &self.ops[(event & OP) as usize];
            let rank = rank_of(event, record);
            self.resources.prefetch(rank);
            self.queues.prefetch(rank);
            if record.kind() == Kind::Recv || event & MESSAGE != 0 {
                prefetch(self.matching.slot_of(record));
            } else {
                self.progress.prefetch_dependents(record);
            }
        }
        if let Some(event) = self.queue.soon(4) {
            let record = &self.ops[(event & OP) as usize];
            if record.kind() == Kind::Recv || event & MESSAGE != 0 {
                let last = (*self.matching.slot_of(record) as u32).wrapping_sub(1) as usize;
                if last < self.progress.words.len() {
                    prefetch(&raw const self.ops[last]);
                    prefetch(&raw const self.progress.words[last]);
                }
            }
        }
    }

    #[inline(always)]
    fn entry(&mut self, now: u64, number: u32, event: u32) -> Result<(), RunError> {
        let op = event & OP;
        let record = &self.ops[op as usize];
        if event & MESSAGE == 0 {
            self.progress.prefetch(op, self.ahead);
        }
        if event & WAKE != 0 {
            return self.wake(now, number, rank_of(event, record));
        }
        if event & MESSAGE == 0 && record.kind() == Kind::Recv {
            self.order.begin(now, number);
            self.receive(now, op);
            self.settle(now);
            return Ok(());
        }
        let place = place(record, event & MESSAGE != 0);
        if self.resources.free(place) > now {
            self.wait(place, number, op);
        } else {
            self.order.begin(now, number);
            self.execute(now, op, record, place)?;
            self.settle(now);
        }
        self.schedule_wake(place.rank);
        Ok(())
    }

    /// Lets the first of those who wait at a rank go, if it is its turn.
    #[inline]
    fn wake(&mut self, now: u64, number: u32, rank: u32) -> Result<(), RunError> {
        // A wake-up may have become unnecessary by an earlier one.
        if *self.resources.wake(rank) != number {
            return Ok(());
        }
        *self.resources.wake(rank) = NO_NUMBER;
        if let Some(first) = self.resources.first(rank)
            && (first.at, first.number) == (now, number)
        {
            self.resources.take(rank, first.list, &self.progress.words);
            let record = &self.ops[first.op as usize];
            self.order.begin(now, number);
            self.execute(now, first.op, record, place(record, first.is_message))?;
            self.settle(now);
        }
        self.schedule_wake(rank);
        Ok(())
    }

    /// Has the queue come back to a rank when the first of those who wait there can go. All times only ever grow later, so
    /// a wake-up is never too late; if it is too early, there is another.
    #[inline(always)]
    fn schedule_wake(&mut self, rank: u32) {
        let Some(first) = self.resources.first(rank) else { return };
        let wake = self.resources.wake(rank);
        if self.order.is_early(first.at, first.number) {
            *wake = NO_NUMBER;
        } else if *wake != first.number {
            *wake = first.number;
            let event = first.op | WAKE | if first.is_message { MESSAGE } else { 0 };
            self.queue.push(Entry { at: first.at, number: first.number, event });
        }
    }

    /// Executes what found its resources free.
    #[inline(always)]
    fn execute(&mut self, now: u64, op: u32, record: &Op, place: Place) -> Result<(), RunError> {
        let cpu = place.rank as usize * self.schedule.cpus + place.cpu;
        if place.side == Side::Calc {
            let end = self.noise.end(cpu, now, record.calc_ns() * 1000);
            let end = self.in_time(end, op)?;
            self.resources.occupy(place, end, end);
            self.record(now, op, place, end, end);
            self.progress.started(op, Time::from_ps(now));
            self.progress.done(op, Time::from_ps(end));
            return Ok(());
        }
        let LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager } = *self.parameters;
        let bytes = self.schedule.bytes(record);
        // An empty message costs what one of a byte costs.
        let more = bytes.saturating_sub(1);
        let after = |time: u64, rate: Rate| time.saturating_add(rate.time(more).as_ps());
        let nic_end = self.in_time(after(now.saturating_add(gap.as_ps()), gap_per_byte), op)?;
        // Noise meets the constant part of the CPU's work.
        let overhead_end = self.noise.end(cpu, now, overhead.as_ps());
        if place.side == Side::Send {
            let end = self.in_time(after(overhead_end, overhead_per_byte), op)?;
            self.resources.occupy(place, end, nic_end);
            self.record(now, op, place, end, nic_end);
            let at = now.saturating_add(overhead.saturating_add(latency).as_ps());
            let at = self.in_time(at, op)?;
            self.messages += 1;
            let number = self.order.next();
            self.insert(record.peer, Entry { at, number, event: op | MESSAGE });
            self.progress.started(op, Time::from_ps(now));
            if bytes <= eager {
                self.progress.done(op, Time::from_ps(end));
            }
        } else {
            let end = self.in_time(after(overhead_end, overhead_per_byte.max(gap_per_byte)), op)?;
            self.resources.occupy(place, end, nic_end);
            self.record(now, op, place, end, nic_end);
            let receive = self.matching.arrive(op, &mut self.progress);
            self.queues.arrived(place.rank, receive.is_some());
            match receive {
                Some(receive) => {
                    if bytes > eager {
                        self.release_sender(now, op, record);
                    }
                    self.progress.done(receive, Time::from_ps(end));
                }
                None => self.progress.not_before(op, Time::from_ps(end)),
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn record(&mut self, now: u64, op: u32, place: Place, cpu_end: u64, nic_end: u64) {
        if let Some((spans, _)) = &mut self.record {
            let is_message = place.side == Side::Message;
            let [start, cpu_end, nic_end] = [now, cpu_end, nic_end].map(Time::from_ps);
            spans.push(Span { rank: place.rank, op, is_message, start, arrival: start, cpu_end, nic_end });
        }
    }

    #[inline(always)]
    fn receive(&mut self, now: u64, op: u32) {
        self.progress.started(op, Time::from_ps(now));
        let message = self.matching.post(op, &mut self.progress);
        self.queues.posted(self.ops[op as usize].rank, message.is_some());
        if let Some(message) = message {
            let send = &self.ops[message as usize];
            if self.schedule.bytes(send) > self.parameters.eager {
                self.release_sender(now, message, send);
            }
            self.progress.done(op, Time::from_ps(now).max(self.progress.ready(message)));
        }
    }

    /// A send above S is done when it is matched.
    fn release_sender(&mut self, now: u64, op: u32, record: &Op) {
        if let Some((spans, matches)) = &mut self.record {
            matches.push(Match { op, at: Time::from_ps(now), spans: spans.len() });
        }
        self.resources.raise(place(record, false), now);
        self.progress.done(op, Time::from_ps(now));
    }

    /// Gives numbers to the operations that an event at a rank has freed.
    #[inline(always)]
    fn settle(&mut self, now: u64) {
        if self.progress.freed.is_empty() {
            return;
        }
        let mut freed = std::mem::take(&mut self.freed);
        self.progress.take_freed(&mut freed);
        for of_rank in freed.chunk_by(|&one, &other| self.ops[one as usize].rank == self.ops[other as usize].rank) {
            self.enqueue(now, of_rank, false);
        }
        self.freed = freed;
    }

    /// Gives operations of one rank that wait for no other their numbers. A receive comes when its CPU is free as of now,
    /// whatever happens until then; if nothing can have arrived by then and nobody waits for its start, it may as well be
    /// posted at once.
    #[inline]
    fn enqueue(&mut self, now: u64, ops: &[u32], nothing_arrives: bool) {
        // The first goes straight to the queue if it can go now. It will let the others follow.
        let (mut is_first, mut goes) = (true, false);
        for (index, &op) in ops.iter().enumerate() {
            if nothing_arrives && let Some(&soon) = ops.get(index + BEGIN_AHEAD) {
                prefetch(self.matching.slot_of(&self.ops[soon as usize]));
            }
            let number = self.order.next();
            let record = &self.ops[op as usize];
            let ready = self.progress.ready(op).as_ps();
            if record.kind() == Kind::Recv {
                if nothing_arrives && !self.progress.frees_by_start(op) {
                    self.receive(now, op);
                    continue;
                }
                let at = self.resources.cpu_free(record.rank, record.cpu()).max(ready);
                self.insert(record.rank, Entry { at, number, event: op });
                continue;
            }
            let place = place(record, false);
            let free = self.resources.free(place);
            if ready > free {
                self.insert(record.rank, Entry { at: ready, number, event: op });
            } else if is_first && free <= now && self.resources.is_idle(place) {
                self.insert(record.rank, Entry { at: free, number, event: op });
                goes = true;
            } else {
                self.wait(place, number, op);
            }
            is_first = false;
        }
        if !is_first && !goes {
            self.schedule_wake(self.ops[ops[0] as usize].rank);
        }
    }

    /// Inserts what has just got its number.
    #[inline(always)]
    fn insert(&mut self, rank: u32, entry: Entry) {
        if !self.order.keeps(rank, entry) {
            self.queue.push(entry);
        }
    }

    /// Lets an operation or a message wait for its resources.
    #[inline(always)]
    fn wait(&mut self, place: Place, number: u32, op: u32) {
        self.order.waits(number, op);
        self.resources.add(place, number, op, &mut self.progress.words);
    }

    /// Gives an operation that may be waiting another number, which does not change its place among others.
    pub fn renumber(&mut self, op: u32, from: u32, to: u32) {
        let place = place(&self.ops[op as usize], false);
        if self.resources.renumber(place, op, from, to) {
            self.schedule_wake(place.rank);
        }
    }

    /// The end of an operation, unless it is beyond the end of time.
    #[inline(always)]
    fn in_time(&self, at: u64, op: u32) -> Result<u64, RunError> {
        if at == u64::MAX { Err(self.too_late(op)) } else { Ok(at) }
    }

    #[cold]
    fn too_late(&self, op: u32) -> RunError {
        RunError::TooLate(self.schedule.describe(op))
    }
}

/// Sets when messages arrived, from when they were sent.
fn with_arrivals(mut spans: Vec<Span>, ops: usize, parameters: &LogGops) -> Vec<Span> {
    let mut arrivals = vec![Time::ZERO; if spans.is_empty() { 0 } else { ops }];
    for span in &mut spans {
        if span.is_message {
            span.arrival = arrivals[span.op as usize];
        } else {
            arrivals[span.op as usize] = span.start + parameters.overhead + parameters.latency;
        }
    }
    spans
}

/// Where an event happens.
#[inline]
fn rank_of(event: u32, record: &Op) -> u32 {
    if event & MESSAGE != 0 { record.peer } else { record.rank }
}

/// What an operation or its message needs.
#[inline]
fn place(record: &Op, is_message: bool) -> Place {
    let (rank, side) = match (is_message, record.kind()) {
        (true, _) => (record.peer, Side::Message),
        (false, Kind::Send) => (record.rank, Side::Send),
        (false, _) => (record.rank, Side::Calc),
    };
    Place { rank, cpu: record.cpu(), nic: record.nic(), side }
}
