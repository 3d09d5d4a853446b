//! Ranks that wait for their own memory to change, without a library call (Portals 4.3 §2.2: progress needs none).
//!
//! Their simulated time goes on with the events. When one of these writes what the rank polls, the rank sees it after
//! one look of its CPU, as if it had waited in `PtlCTWait`, and makes its next call at that time.

use std::time::Duration;

use super::{Event, World};
use crate::job::{Place, Polling};
use sim::Time;

/// Idle time that threads may sleep through; the shortest time-out of a poll.
const IDLE: Time = Time::from_ns(1_000_000);

impl World {
    /// A rank goes round in a loop that waits for its memory. If the loop may also end by itself, that is no computation
    /// only when a message may write that memory.
    pub(super) fn polls(&mut self, rank: usize) {
        let open = |place: Place| self.cards[rank].exposed().any(|region| region.overlaps(place.address, place.length));
        if self.job.polling(rank) == Some(Polling::Counting) && !self.job.polled(rank).any(open) {
            let pause = self.job.not_polling(rank);
            self.paused(rank, pause);
        } else {
            self.progress(rank);
        }
    }

    /// A rank is silent and may not be looked at.
    pub(super) fn unseen(&mut self, rank: usize) {
        let message = "it may not be looked at (ptrace: another tracer has it, or there is no permission), so it is taken \
                       to compute while it makes no call. If it waits for its memory to change, or its threads wait for \
                       each other without sleeping, nothing else happens, and no deadlock is found: --timeout ends such \
                       a run";
        self.warn(rank, message);
        let pause = self.job.wait(rank);
        self.paused(rank, pause);
    }

    /// Tells ranks that what they poll was written.
    pub(super) fn notify_pollers(&mut self) {
        while let Some(rank) = self.job.touched() {
            let poll = self.machine.host.poll;
            self.timeline.cpu(rank, self.now, self.now + poll, "poll");
            self.queue.push(self.now + poll, Event::Notice(rank as u32));
        }
    }

    /// A rank sees what was written, and reacts or polls on.
    pub(super) fn notice(&mut self, rank: usize) {
        if self.job.polling(rank).is_some() {
            let pause = self.job.carry_on(rank, self.now);
            self.paused(rank, pause);
        }
    }

    /// No event is left. Ranks that count while they poll, or look at a clock, go on to their limits; whether there is
    /// one.
    pub(super) fn last_chances(&mut self) -> bool {
        let counts = |&rank: &usize| self.job.polling(rank) == Some(Polling::Counting);
        let counting: Vec<usize> = (0..self.ranks.len()).filter(counts).collect();
        let Some(&first) = counting.first() else { return false };
        let message = "it polls its memory with a limit of tries or of time, and nothing is left that could change that \
                       memory, so it goes on to its limit. How far it had come before depends on real time";
        self.warn(first, message);
        let (rank, pause) = std::iter::repeat(counting)
            .flatten()
            .find_map(|rank| Some((rank, self.job.last_chance(rank, self.now)?)))
            .expect("an endless iterator");
        self.paused(rank, pause);
        true
    }

    /// No event is left. Before that is called a deadlock, ranks that poll are looked at anew, once; whether they were.
    pub(super) fn second_looks(&mut self) -> bool {
        let events = self.queue.inserted();
        if self.looked_again_after.replace(events) == Some(events) {
            return false;
        }
        let polls = |&rank: &usize| self.job.polling(rank).is_some();
        let polling: Vec<usize> = (0..self.ranks.len()).filter(polls).collect();
        for &rank in &polling {
            // An earlier one may have ended it.
            if self.end.is_none() && self.job.polling(rank).is_some() {
                let pause = self.job.look_again(rank);
                self.paused(rank, pause);
            }
        }
        !polling.is_empty()
    }

    /// Time is about to pass without anything happening, or nothing is left. A thread that sleeps in real time may call
    /// before; whether one has done anything.
    pub(super) fn sleepers(&mut self) -> bool {
        // What is due beyond the limit of simulated time never happens.
        let next = self.queue.peek_time().filter(|at| *at <= Time::LIMIT);
        let idle = next.map(|at| at - self.now);
        if idle.is_some_and(|idle| idle < IDLE) || !self.job.has_sleepers() {
            return false;
        }
        let span = idle.map(|idle| Duration::from_nanos(idle.as_ps() / 1000));
        let Some((rank, pause)) = self.job.await_sleepers(span) else { return false };
        let message = "one of its threads has slept in real time, in a system call past the C library's sleeps; when it \
                       goes on in simulated time may vary from run to run";
        self.warn(rank, message);
        self.paused(rank, pause);
        true
    }

    pub(super) fn describe_polling(&self, rank: usize) -> String {
        let polled = || self.job.polled(rank);
        let open = |place: &Place| {
            self.cards[rank]
                .exposed()
                .any(|region| !region.is_everything() && region.overlaps(place.address, place.length))
        };
        let place = polled().find(open).or_else(|| polled().next());
        let place = place.map_or(String::new(), |place| format!(" at {:#x}", place.address));
        format!("rank {rank} spins on its own memory{place}, which nothing will change")
    }
}
