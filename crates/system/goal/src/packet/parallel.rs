// SPDX-License-Identifier: Apache-2.0
//! Multithreaded execution, with bit-identical results.
//!
//! Each thread simulates a part of the network (or several, with fewer processors): some hosts, their ranks, and some switches. An event affects another part
//! a link's latency later or more, so the threads can run independently for that long from the earliest event on: a
//! window. At its end they exchange [`Parcels`]: packets, returning credit, frames and lost packets.
//!
//! Simultaneous events of a host or a switch are handled in an order that depends only on its past: that of their keys
//! ([`sim::DelayQueue`]). So the exchange needs no order of events across parts, and its cost is proportional to the
//! parcels.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use net::messages::{MessageNetwork, Parcels, Part};
use net::{Partition, Topology};
use sim::Time;

use super::engine::{self, Packets};
use super::record::{Recorder, Window};
use super::{Outcome, Parameters};
use crate::barrier::Barrier;
use crate::frame::Executor;
use crate::schedule::Schedule;

/// Numbers of events by window and part, which determine the possible gain of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WindowCounts {
    /// Number of parts
    pub parts: usize,
    /// Number of windows
    pub windows: u64,
    /// Number of events of all parts
    pub events: u64,
    /// Sum over windows of the number of events of the part that has most: the length of the critical path
    pub critical: u64,
    /// Number of parcels between parts
    pub parcels: u64,
}

/// Data that a part passes to the others at the end of a window.
#[derive(Debug, Default)]
struct Slot {
    /// For each part, the parcels for it.
    parcels: Vec<Mutex<Parcels>>,
    /// Lower bound of the times of all further events of this part and of the parcels, in picoseconds.
    next: AtomicU64,
    /// Number of events in the window, and of parcels.
    events: AtomicU64,
    sent: AtomicU64,
    failed: AtomicBool,
}

/// Data shared by the threads.
struct Exchange {
    /// Two slots for each part: its thread may write the slot of one window while another thread still reads that of the
    /// previous one.
    slots: [Vec<Slot>; 2],
    barrier: Barrier,
}

impl Exchange {
    fn new(parts: usize, threads: usize) -> Exchange {
        let slot = || Slot { parcels: (0..parts).map(|_| Mutex::default()).collect(), ..Slot::default() };
        let slots = || (0..parts).map(|_| slot()).collect();
        Exchange { slots: [slots(), slots()], barrier: Barrier::new(threads) }
    }
}

/// Finished part of a run.
type Finished = (crate::Outcome<()>, MessageNetwork<Part>, Option<Recorder>);

/// Executes a schedule, with a thread for each part or, with fewer processors, for several. Returns `None` if the schedule
/// cannot finish.
pub(super) fn run(
    schedule: &Schedule,
    topology: &Arc<Topology>,
    parameters: &Parameters,
    window: Option<&Window>,
    partition: Arc<Partition>,
) -> Option<(Outcome, WindowCounts)> {
    let (parts, processors) = (partition.parts(), thread::available_parallelism().map_or(1, usize::from));
    let threads = parts.min(processors);
    let (exchange, lookahead) = (Exchange::new(parts, threads), partition.lookahead(topology, &parameters.network));
    let new_part = |me: usize| {
        let nics = schedule.nics() as u32;
        let hosts = partition.hosts(me);
        // A topology may have more hosts than the schedule.
        let [first, end] = [hosts.start / nics, hosts.end.div_ceil(nics)].map(|rank| rank.min(schedule.ranks()));
        let recorder = window.map(|window| Recorder::new(window.clone(), true));
        let network =
            MessageNetwork::of_part(Arc::clone(topology), parameters.network.clone(), Arc::clone(&partition), me)
                .ok()?;
        let executor = engine::executor(schedule, first..end, parameters, network, recorder);
        Some(PartRun { me, executor, events: 0, failed: false })
    };
    let run_thread = |thread: usize| {
        let _member = exchange.barrier.member();
        let own = (parts * thread / threads..parts * (thread + 1) / threads).map(new_part);
        run_windows(own.collect::<Option<_>>()?, lookahead, &exchange)
    };
    let finished = thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || run_thread(thread))).collect();
        let first = run_thread(0);
        let others = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        [first].into_iter().chain(others).collect::<Option<Vec<_>>>()
    })?;
    let counts = finished.first()?.1;
    let mut finished = finished.into_iter().flat_map(|(parts, _)| parts);
    let (mut outcome, mut network, recorder) = finished.next()?;
    let mut recorders = Vec::from_iter(recorder);
    for (later, other, recorder) in finished {
        outcome.append(later);
        network.absorb(&other);
        recorders.extend(recorder);
    }
    let details = engine::details(&network, recorders, &outcome.ends);
    Some((outcome.with(details), counts))
}

/// Execution of a part.
struct PartRun<'a> {
    me: usize,
    executor: Executor<'a, Packets<'a, Part>>,
    /// Number of events in the latest window.
    events: u64,
    failed: bool,
}

impl PartRun<'_> {
    /// Passes the effects of the latest window to the others.
    fn publish(&mut self, slots: &[Slot]) {
        let (slot, network) = (&slots[self.me], &mut self.executor.model.network);
        let next = self.executor.queue.next_at().unwrap_or(Time::MAX).min(network.take_earliest());
        let mut sent = 0;
        for to in (0..slots.len()).filter(|&to| to != self.me) {
            let mut parcels = slot.parcels[to].lock().unwrap_or_else(PoisonError::into_inner);
            network.swap_parcels(to, &mut parcels);
            sent += parcels.len() as u64;
        }
        slot.next.store(next.as_ps(), Ordering::Relaxed);
        slot.events.store(self.events, Ordering::Relaxed);
        slot.sent.store(sent, Ordering::Relaxed);
        slot.failed.store(self.failed, Ordering::Relaxed);
    }

    /// Accepts the effects of the other parts' latest window. All events before `now` are handled.
    fn accept(&mut self, now: Time, slots: &[Slot]) {
        let Executor { model, queue, .. } = &mut self.executor;
        for from in (0..slots.len()).filter(|&from| from != self.me) {
            let mut parcels = slots[from].parcels[self.me].lock().unwrap_or_else(PoisonError::into_inner);
            model.network.accept(now, from, &mut parcels, queue);
        }
    }

    /// Handles the events of a window.
    fn run(&mut self, limit: Time) {
        match self.executor.run_until(limit) {
            Ok(events) => self.events = events,
            Err(_) => self.failed = true,
        }
    }

    fn finish(self) -> Option<Finished> {
        let (outcome, model) = self.executor.finish().ok()?;
        Some((outcome, model.network, model.recorder))
    }
}

/// Executes the parts of a thread in windows.
fn run_windows(
    mut parts: Vec<PartRun<'_>>,
    lookahead: Time,
    exchange: &Exchange,
) -> Option<(Vec<Finished>, WindowCounts)> {
    let mut counts = WindowCounts { parts: exchange.slots[0].len(), ..WindowCounts::default() };
    for part in &mut parts {
        part.failed = part.executor.start().is_err();
    }
    for slots in exchange.slots.iter().cycle() {
        parts.iter_mut().for_each(|part| part.publish(slots));
        exchange.barrier.wait();
        if slots.iter().any(|slot| slot.failed.load(Ordering::Relaxed)) {
            return None;
        }
        let read = |number: fn(&Slot) -> &AtomicU64| slots.iter().map(move |slot| number(slot).load(Ordering::Relaxed));
        let next = Time::from_ps(read(|slot| &slot.next).min().unwrap_or(u64::MAX));
        let most = read(|slot| &slot.events).max().unwrap_or(0);
        counts.windows += u64::from(most > 0);
        counts.critical += most;
        counts.events += read(|slot| &slot.events).sum::<u64>();
        counts.parcels += read(|slot| &slot.sent).sum::<u64>();
        parts.iter_mut().for_each(|part| part.accept(next, slots));
        if next == Time::MAX {
            break;
        }
        let limit = next.saturating_add(lookahead);
        parts.iter_mut().for_each(|part| part.run(limit));
    }
    Some((parts.into_iter().map(PartRun::finish).collect::<Option<_>>()?, counts))
}
