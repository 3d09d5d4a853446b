// SPDX-License-Identifier: Apache-2.0
//! Event loop of the LogGOPS model.

use std::ops::Range;

use sim::memory::prefetch;
use sim::{Time, TimePerByte};

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
use crate::op::{Kind, Op};
use crate::schedule::Schedule;
use sim::noise::CpuTime;

/// Event flag: the message of the send arrives.
pub(super) const MESSAGE: u32 = 1 << 30;
/// Event flag: the first waiting operation or message of a rank can start.
const WAKE: u32 = 1 << 31;
const OP: u32 = MESSAGE - 1;

/// Prefetch distance, in operations of a rank.
const AHEAD: usize = 4;
/// Prefetch distance, in receives, while the first receives are posted.
const BEGIN_AHEAD: usize = 8;
/// Maximum number of ranks for which prefetched data stays in the cache until needed.
const CACHED_RANKS: usize = 1 << 15;
/// Bytes of rank state and lists that stay in the cache, for which prefetching is only overhead.
const CACHED_BYTES: usize = 1 << 18;
/// Bytes of the state of a rank.
const BYTES_OF_RANK: usize = 72;

/// Receives of a rank posted back to back: at the same time, with consecutive numbers. The words of the operations link
/// them; the last links to itself.
#[derive(Clone, Copy, Debug)]
struct Batch {
    at: u64,
    /// Number of the first receive.
    number: u32,
    first: u32,
    last: u32,
    /// True if an operation waits for the start of one of them.
    unblocks: bool,
}

/// A key greater than all event keys.
const END: (u64, u32) = (u64::MAX, NO_NUMBER);

/// Executes a range of ranks of a schedule.
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
    /// Number of lists with slots above which events are prefetched.
    cached_slots: usize,
    /// True if operations may start in the past.
    has_past: bool,
    /// True if the posting of receives may be delayed until a message searches them.
    delays: bool,
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
        // With a single CPU, no dependency ends after the CPU becomes free.
        let with_ready_times = schedule.cpus > 1 && !options.ignore_other_cpus;
        let progress = options.progress.clone();
        Engine {
            state: RunState::new(schedule, ranks.clone(), parameters.eager, with_ready_times, progress),
            parameters,
            queue: Queue::new(ranks.len()),
            resources: R::new(schedule, ranks.clone()),
            noise,
            order,
            queues: Lengths::new(ranks.clone()),
            record: options.record.then(Default::default),
            ahead: if ranks.len() <= CACHED_RANKS { AHEAD } else { 0 },
            has_past: schedule.cpus > 1 && options.ignore_other_cpus,
            delays: O::IS_FINAL && R::KEEPS_NUMBERS,
            cached_slots: CACHED_BYTES.saturating_sub(ranks.len() * BYTES_OF_RANK) / size_of::<u64>(),
        }
    }

    /// Executes all events before `limit`, in picoseconds.
    ///
    /// # Errors
    /// If an operation ends too late.
    #[inline]
    pub fn run(&mut self, limit: u64) -> Result<(), RunError> {
        while let Some(entry) = self.queue.pop(limit) {
            if self.state.matching.slots() > self.cached_slots {
                self.prefetch();
            }
            self.entry(entry.at(), entry.number(), entry.event())?;
        }
        Ok(())
    }

    /// Ends a run without further events.
    pub fn finish(mut self) -> Result<Outcome, Deadlock> {
        for rank in self.state.ranks() {
            if let Some(delayed) = self.take_delayed(rank, END) {
                self.post(delayed.at(), delayed.number(), delayed.event());
            }
        }
        let (ranks, ops, resources) = (self.state.ranks(), self.state.schedule.len(), self.resources);
        let ends = ranks.map(|rank| Time::from_ps(resources.end(rank))).collect();
        let (spans, matches) = self.record.unwrap_or_default();
        let outcome = self.state.finish(ends)?;
        Ok(outcome.with(Details {
            queues: self.queues.all,
            spans: with_arrivals(spans, ops, self.parameters),
            matches,
        }))
    }

    /// Takes all operations without dependencies, rank by rank.
    pub fn begin(&mut self) {
        self.state.reserve_matching();
        let mut first = Vec::new();
        let nothing_arrives = self.parameters.overhead + self.parameters.latency > Time::ZERO;
        for rank in self.state.ranks() {
            // In ranks with few receives, prefetching within the rank is too late.
            if rank + (BEGIN_AHEAD as u32) < self.state.ranks().end {
                for op in self.state.schedule.of_rank(rank + BEGIN_AHEAD as u32).take(BEGIN_AHEAD) {
                    prefetch(self.state.matching.slot_of(&self.state.ops[op as usize]));
                }
            }
            self.state.dependencies.take_first(self.state.schedule.of_rank(rank), &mut first);
            self.enqueue(0, &first, nothing_arrives);
        }
    }

    /// Prefetches data for the events that are due soon. With many ranks or lists, little of it is in the cache.
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
                if last < self.state.dependencies.operations.len() {
                    prefetch(&raw const self.state.ops[last]);
                    self.state.dependencies.operations.prefetch(last);
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
            self.resources.prefetch_member(op as usize + self.ahead);
        }
        if event & WAKE != 0 {
            return self.wake(now, number, rank_of(event, record));
        }
        if event & MESSAGE == 0 && record.kind() == Kind::Recv {
            self.post(now, number, op);
            return Ok(());
        }
        let place = place(record, event & MESSAGE != 0);
        if self.resources.free(place) > now {
            self.wait(place, number, op);
        } else {
            self.order.begin(now, number);
            self.execute(now, number, op, record, place)?;
            self.settle(now);
        }
        self.schedule_wake(place.rank);
        Ok(())
    }

    /// Executes the first waiting operation or message of a rank, if it is its turn.
    #[inline]
    fn wake(&mut self, now: u64, number: u32, rank: u32) -> Result<(), RunError> {
        // An earlier wake-up may have handled this one.
        if *self.resources.wake(rank) != number {
            return Ok(());
        }
        *self.resources.wake(rank) = NO_NUMBER;
        if let Some(first) = self.resources.first(rank)
            && (first.at, first.number) == (now, number)
        {
            self.resources.take(rank, first.list, &self.state.dependencies.operations);
            let record = &self.state.ops[first.op as usize];
            self.order.begin(now, number);
            self.execute(now, number, first.op, record, place(record, first.is_message))?;
            self.settle(now);
        }
        self.schedule_wake(rank);
        Ok(())
    }

    /// Inserts a wake-up for the time at which the first waiting operation or message of a rank can start. Resources
    /// can only become free later than predicted, so a wake-up is never too late; one that is too early inserts
    /// another.
    #[inline(always)]
    fn schedule_wake(&mut self, rank: u32) {
        let Some(first) = self.resources.first(rank) else { return };
        let wake = self.resources.wake(rank);
        if self.order.is_early(first.at, first.number) {
            *wake = NO_NUMBER;
        } else if *wake != first.number {
            *wake = first.number;
            let event = first.op | WAKE | if first.is_message { MESSAGE } else { 0 };
            self.queue.push(Entry::new(first.at, first.number, event));
        }
    }

    /// Executes an operation or message with free resources.
    #[inline(always)]
    fn execute(&mut self, now: u64, number: u32, op: u32, record: &Op, place: Place) -> Result<(), RunError> {
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
        // An empty message costs as much as a message of one byte.
        let more = bytes.saturating_sub(1);
        let after = |time: u64, rate: TimePerByte| time.saturating_add(rate.time(more).as_ps());
        let nic_end = self.in_time(after(now.saturating_add(gap.as_ps()), gap_per_byte), op)?;
        // Noise affects the constant part of the CPU's work.
        let overhead_end = self.noise.end(cpu, now, overhead.as_ps());
        if place.side == Side::Send {
            let end = self.in_time(after(overhead_end, overhead_per_byte), op)?;
            self.resources.occupy(place, end, nic_end);
            self.record(now, op, place, end, nic_end);
            let at = now.saturating_add(overhead.saturating_add(latency).as_ps());
            let at = self.in_time(at, op)?;
            self.state.messages += 1;
            let number = self.order.next();
            self.insert(record.peer, Entry::new(at, number, op | MESSAGE));
            self.state.dependencies.started(op, Time::from_ps(now));
            if bytes <= eager {
                self.state.dependencies.done(op, Time::from_ps(end));
            }
        } else {
            let end = self.in_time(after(overhead_end, overhead_per_byte.max(gap_per_byte)), op)?;
            self.resources.occupy(place, end, nic_end);
            self.record(now, op, place, end, nic_end);
            if let Some(delayed) = self.take_delayed(place.rank, (now, number)) {
                self.post(delayed.at(), delayed.number(), delayed.event());
            }
            let receive = self.state.arrive(op);
            if receive.is_none() {
                self.hurry(place.rank);
            }
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

    /// Posts the receives of a batch that starts with `op`. Operations unblocked by one of them follow all of them, as
    /// they get greater numbers.
    #[inline(never)]
    fn post(&mut self, at: u64, mut number: u32, mut op: u32) {
        loop {
            let next = self.state.dependencies.operations.next(op);
            self.order.begin(at, number);
            self.receive(at, op);
            self.settle(at);
            if next == op {
                return;
            }
            (op, number) = (next, number + 1);
        }
    }

    /// Posts receives at their time. Only messages of the rank search its posted receives. So while no message waits
    /// for one, they are posted when the next message is received. With a single CPU, receives are posted in the order
    /// in which they become ready, so it suffices to delay the most recent batch.
    #[inline(always)]
    fn post_later(&mut self, rank: u32, batch: Batch) {
        self.hurry(rank);
        if self.delays && !batch.unblocks && self.queues.delay(rank, batch.at, batch.first) {
            self.resources.keep_number(batch.first, batch.number);
        } else {
            self.insert(rank, Entry::new(batch.at, batch.number, batch.first));
        }
    }

    /// Takes the event of receives with delayed posting, if it precedes this time and number.
    #[inline(always)]
    fn take_delayed(&mut self, rank: u32, before: (u64, u32)) -> Option<Entry> {
        let (at, first) = self.queues.delayed(rank)?;
        let number = self.resources.kept_number(first);
        if (at, number) >= before {
            return None;
        }
        self.queues.end_delay(rank);
        Some(Entry::new(at, number, first))
    }

    /// Inserts the event of receives with delayed posting.
    #[inline(always)]
    fn hurry(&mut self, rank: u32) {
        if let Some(delayed) = self.take_delayed(rank, END) {
            self.insert(rank, delayed);
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

    /// Ends a matched send above S.
    fn release_sender(&mut self, now: u64, op: u32, record: &Op) {
        if let Some((spans, matches)) = &mut self.record {
            matches.push(Match { op, at: Time::from_ps(now), spans: spans.len() });
        }
        self.resources.raise(place(record, false), now);
        self.state.dependencies.done(op, Time::from_ps(now));
    }

    /// Assigns numbers to the operations that an event made ready.
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

    /// Assigns numbers to ready operations of one rank. A receive is posted at the time at which its CPU becomes free,
    /// as predicted now, regardless of later events. If no message can arrive before and no operation waits for its
    /// start, it is posted at once.
    #[inline]
    fn enqueue(&mut self, now: u64, ops: &[u32], nothing_arrives: bool) {
        // The first operation may go directly into the queue. At its turn it wakes the others, except those that can
        // start earlier.
        let (mut is_first, mut goes_at, mut wakes) = (true, u64::MAX, false);
        // Events in the past, and immediate posts, are ordered between the others.
        let batches = !self.has_past && !nothing_arrives;
        let mut receives: Option<Batch> = None;
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
                let unblocks = self.state.dependencies.unblocks_on_start(op);
                self.state.dependencies.operations.set_next(op, op);
                match &mut receives {
                    Some(batch) if batch.at == at && batches => {
                        self.state.dependencies.operations.set_next(batch.last, op);
                        batch.last = op;
                        batch.unblocks |= unblocks;
                    }
                    _ => {
                        let batch = Batch { at, number, first: op, last: op, unblocks };
                        if let Some(before) = receives.replace(batch) {
                            self.post_later(record.rank, before);
                        }
                    }
                }
                continue;
            }
            let place = place(record, false);
            let free = self.resources.free(place);
            if ready > free {
                self.insert(record.rank, Entry::new(ready, number, op));
            } else if is_first && self.goes(now, free, place) {
                self.insert(record.rank, Entry::new(free, number, op));
                goes_at = free;
            } else {
                self.wait(place, number, op);
                wakes |= free.max(now) < goes_at;
            }
            is_first = false;
        }
        if let Some(batch) = receives {
            self.post_later(self.state.ops[ops[0] as usize].rank, batch);
        }
        if wakes {
            self.schedule_wake(self.state.ops[ops[0] as usize].rank);
        }
    }

    /// Returns true if an operation that is ready goes directly into the queue: either no waiting operation of its rank
    /// could start earlier, or it starts now.
    #[inline(always)]
    fn goes(&self, now: u64, free: u64, place: Place) -> bool {
        (!self.has_past && self.resources.none_waits(place.rank)) || (free <= now && self.resources.is_idle(place))
    }

    /// Inserts an event with a new number.
    #[inline(always)]
    fn insert(&mut self, rank: u32, entry: Entry) {
        if !self.order.keeps(rank, entry) {
            self.queue.push(entry);
        }
    }

    /// Makes an operation or a message wait for its resources.
    #[inline(always)]
    fn wait(&mut self, place: Place, number: u32, op: u32) {
        self.order.waits(number, op);
        self.resources.add(place, number, op, &mut self.state.dependencies.operations);
    }

    /// Changes the number of an operation that may be waiting. Its position among others must stay the same.
    pub fn renumber(&mut self, op: u32, from: u32, to: u32) {
        let place = place(&self.state.ops[op as usize], false);
        if self.resources.renumber(place, op, from, to) {
            self.schedule_wake(place.rank);
        }
    }

    /// Returns the end of an operation, or an error if it exceeds the clock.
    #[inline(always)]
    fn in_time(&self, at: u64, op: u32) -> Result<u64, RunError> {
        if at == u64::MAX { Err(self.too_late(op)) } else { Ok(at) }
    }

    #[cold]
    fn too_late(&self, op: u32) -> RunError {
        self.state.too_late(op, u64::BITS)
    }
}

/// Sets the arrivals of messages, computed from the starts of their sends.
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

/// Returns the rank of an event.
#[inline]
fn rank_of(event: u32, record: &Op) -> u32 {
    if event & MESSAGE != 0 { record.peer } else { record.rank }
}

/// Returns the resources of an operation or its message.
#[inline]
fn place(record: &Op, is_message: bool) -> Place {
    let (rank, side) = match (is_message, record.kind()) {
        (true, _) => (record.peer, Side::Message),
        (false, Kind::Send) => (record.rank, Side::Send),
        (false, _) => (record.rank, Side::Calc),
    };
    Place { rank, cpu: record.cpu(), nic: record.nic(), side }
}
