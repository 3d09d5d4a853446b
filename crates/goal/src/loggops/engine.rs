use std::ops::Range;

use sim::memory::prefetch;
use sim::{Rate, Time};

use super::options::Options;
use super::order::Order;
use super::outcome::{Details, Match, Outcome, Span};
use super::parameters::LogGops;
use super::queue::{Entry, Queue};
use super::queues::Lengths;
use super::resources::{NO_NUMBER, Place, Resources, Side};
use crate::deadlock::Deadlock;
use crate::error::RunError;
use crate::frame::RunState;
use crate::noise::CpuTime;
use crate::op::{Kind, Op};
use crate::schedule::Schedule;

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

/// Executes some ranks of a schedule.
pub(super) struct Engine<'a, R, X, O> {
    state: RunState<'a>,
    parameters: &'a LogGops,
    pub queue: Queue,
    resources: R,
    noise: X,
    pub order: O,
    queues: Lengths,
    record: Option<(Vec<Span>, Vec<Match>)>,
    /// See [`DependencyTracker::prefetch`](crate::DependencyTracker).
    ahead: usize,
}

impl<'a, R: Resources, X: CpuTime, O: Order> Engine<'a, R, X, O> {
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
        let progress = options.progress.clone();
        Engine {
            state: RunState::new(schedule, ranks.clone(), parameters.eager, with_ready_times, progress),
            parameters,
            queue: Queue::new(),
            resources: R::new(schedule, ranks.clone()),
            noise,
            order,
            queues: Lengths::new(ranks.clone()),
            record: options.record.then(Default::default),
            ahead: if ranks.len() <= CACHED_RANKS { AHEAD } else { 0 },
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

    /// Ends the run when nothing happens any more.
    pub fn finish(self) -> Result<Outcome, Deadlock> {
        let (ranks, ops, resources) = (self.state.ranks(), self.state.schedule.len(), self.resources);
        let ends = ranks.map(|rank| Time::from_ps(resources.end(rank))).collect();
        let (spans, matches) = self.record.unwrap_or_default();
        self.state.finish(ends, |_| Details {
            queues: self.queues.all,
            spans: with_arrivals(spans, ops, self.parameters),
            matches,
        })
    }

    /// About how many receives depend on nothing, from some of the ranks.
    fn first_receives(&self) -> usize {
        const SAMPLE: usize = 256;
        let step = self.state.ranks().len().div_ceil(SAMPLE).max(1);
        let is_first =
            |&op: &u32| !self.state.dependencies.is_blocked(op) && self.state.ops[op as usize].kind() == Kind::Recv;
        let sample = self.state.ranks().step_by(step);
        sample.map(|rank| self.state.schedule.of_rank(rank).filter(is_first).count()).sum::<usize>() * step
    }

    /// Takes all operations that depend on nothing, rank by rank.
    pub fn begin(&mut self) {
        self.state.matching.reserve(self.first_receives());
        let mut first = Vec::new();
        let nothing_arrives = self.parameters.overhead + self.parameters.latency > Time::ZERO;
        for rank in self.state.ranks() {
            // The receives of ranks with few, for which looking ahead within the rank is too late.
            if rank + (BEGIN_AHEAD as u32) < self.state.ranks().end {
                for op in self.state.schedule.of_rank(rank + BEGIN_AHEAD as u32).take(BEGIN_AHEAD) {
                    prefetch(self.state.matching.slot_of(&self.state.ops[op as usize]));
                }
            }
            self.state.dependencies.take_first(self.state.schedule.of_rank(rank), &mut first);
            self.enqueue(0, &first, nothing_arrives);
        }
    }

    /// Fetches what the events that are due soon will need: with many ranks, little of it is in the cache.
    #[inline(always)]
    fn prefetch(&self) {
        if let Some(event) = self.queue.soon(12) {
            prefetch(&raw const self.state.ops[(event & OP) as usize]);
        }
        if let Some(event) = self.queue.soon(8) {
            let record = &self.state.ops[(event & OP) as usize];
            let rank = rank_of(event, record);
            self.resources.prefetch(rank);
            self.queues.prefetch(rank);
            if record.kind() == Kind::Recv || event & MESSAGE != 0 {
                prefetch(self.state.matching.slot_of(record));
            } else {
                self.state.dependencies.prefetch_dependents(record);
            }
        }
        if let Some(event) = self.queue.soon(4) {
            let record = &self.state.ops[(event & OP) as usize];
            if record.kind() == Kind::Recv || event & MESSAGE != 0 {
                let last = (*self.state.matching.slot_of(record) as u32).wrapping_sub(1) as usize;
                if last < self.state.dependencies.words.len() {
                    prefetch(&raw const self.state.ops[last]);
                    self.state.dependencies.words.prefetch(last);
                }
            }
        }
    }

    #[inline(always)]
    fn entry(&mut self, now: u64, number: u32, event: u32) -> Result<(), RunError> {
        let op = event & OP;
        let record = &self.state.ops[op as usize];
        if event & MESSAGE == 0 {
            self.state.dependencies.prefetch(op, self.ahead);
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
            self.resources.take(rank, first.list, &self.state.dependencies.words);
            let record = &self.state.ops[first.op as usize];
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
        let cpu = place.rank as usize * self.state.schedule.cpus + place.cpu;
        if place.side == Side::Calc {
            let end = self.noise.end(cpu, now, record.calc_ns() * 1000);
            let end = self.in_time(end, op)?;
            self.resources.occupy(place, end, end);
            self.record(now, op, place, end, end);
            self.state.dependencies.started(op, Time::from_ps(now));
            self.state.dependencies.done(op, Time::from_ps(end));
            return Ok(());
        }
        let LogGops { latency, overhead, gap, gap_per_byte, overhead_per_byte, eager } = *self.parameters;
        let bytes = self.state.schedule.bytes(record);
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
            self.state.messages += 1;
            let number = self.order.next();
            self.insert(record.peer, Entry { at, number, event: op | MESSAGE });
            self.state.dependencies.started(op, Time::from_ps(now));
            if bytes <= eager {
                self.state.dependencies.done(op, Time::from_ps(end));
            }
        } else {
            let end = self.in_time(after(overhead_end, overhead_per_byte.max(gap_per_byte)), op)?;
            self.resources.occupy(place, end, nic_end);
            self.record(now, op, place, end, nic_end);
            let receive = self.state.arrive(op);
            self.queues.arrived(place.rank, receive.is_some());
            match receive {
                Some(receive) => {
                    if bytes > eager {
                        self.release_sender(now, op, record);
                    }
                    self.state.dependencies.done(receive, Time::from_ps(end));
                }
                None => self.state.dependencies.not_before(op, Time::from_ps(end)),
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
        self.state.dependencies.started(op, Time::from_ps(now));
        let message = self.state.post(op);
        self.queues.posted(self.state.ops[op as usize].rank, message.is_some());
        if let Some(message) = message {
            let send = &self.state.ops[message as usize];
            if self.state.schedule.bytes(send) > self.parameters.eager {
                self.release_sender(now, message, send);
            }
            self.state.dependencies.done(op, Time::from_ps(now).max(self.state.dependencies.ready_at(message)));
        }
    }

    /// A send above S is done when it is matched.
    fn release_sender(&mut self, now: u64, op: u32, record: &Op) {
        if let Some((spans, matches)) = &mut self.record {
            matches.push(Match { op, at: Time::from_ps(now), spans: spans.len() });
        }
        self.resources.raise(place(record, false), now);
        self.state.dependencies.done(op, Time::from_ps(now));
    }

    /// Gives numbers to the operations that an event at a rank has freed.
    #[inline(always)]
    fn settle(&mut self, now: u64) {
        if self.state.dependencies.ready.is_empty() {
            return;
        }
        let ready = self.state.take_ready();
        for of_rank in
            ready.chunk_by(|&one, &other| self.state.ops[one as usize].rank == self.state.ops[other as usize].rank)
        {
            self.enqueue(now, of_rank, false);
        }
        self.state.recycle(ready);
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
                prefetch(self.state.matching.slot_of(&self.state.ops[soon as usize]));
            }
            let number = self.order.next();
            let record = &self.state.ops[op as usize];
            let ready = self.state.dependencies.ready_at(op).as_ps();
            if record.kind() == Kind::Recv {
                if nothing_arrives && !self.state.dependencies.unblocks_on_start(op) {
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
            self.schedule_wake(self.state.ops[ops[0] as usize].rank);
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
        self.resources.add(place, number, op, &mut self.state.dependencies.words);
    }

    /// Gives an operation that may be waiting another number, which does not change its place among others.
    pub fn renumber(&mut self, op: u32, from: u32, to: u32) {
        let place = place(&self.state.ops[op as usize], false);
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
        self.state.too_late(op, u64::BITS)
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
