//! Ranks that wait for their own memory to change, without a library call (Portals 4.3 §2.2: progress needs none).
//!
//! Their simulated time goes on with the events. When one of these writes what the rank polls, the rank sees it after
//! one look of its CPU, as if it had waited in `PtlCTWait`, and makes its next call at that time.

use std::time::Duration;

use super::{Event, World};
use crate::job::{Polled, Polling};
use sim::Time;

/// Idle time that threads may sleep through; the shortest time-out of a poll.
const IDLE: Time = Time::from_ns(1_000_000);

impl World {
    /// A rank goes round in a loop that reads its memory. That is no computation if the loop cannot end by itself, or
    /// reads what a message may write. An address on the stack tells nothing when all memory is open to messages: it may
    /// as well be the limit of a loop that counts; unless that has lasted.
    pub(super) fn polls(&mut self, rank: usize, patient: bool) {
        let open = |place: &Polled| {
            let overlaps = |region: &&nic::Region| region.overlaps(place.address, place.length);
            let told = |region: &nic::Region| !region.is_everything() || !place.on_stack || patient;
            self.cards[rank].exposed().filter(overlaps).any(told)
        };
        match self.job.polling(rank) {
            Some(Polling::Counting) if !self.job.polled(rank).any(|place| open(&place)) => {
                let pause = self.job.not_polling(rank);
                self.paused(rank, pause);
            }
            Some(Polling::Unproven) => {
                let message = "it is taken to poll its memory, as it has computed for a second and may not be looked at \
                               (ptrace); simulated times may vary from run to run";
                self.warn(rank, message);
            }
            _ => self.progress(rank),
        }
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

    /// No event is left. A rank that counts while it polls may come to its limit; whether one has done anything.
    pub(super) fn last_chances(&mut self) -> bool {
        for rank in 0..self.ranks.len() {
            if let Some(pause) = self.job.last_chance(rank, self.now) {
                self.paused(rank, pause);
                return true;
            }
        }
        false
    }

    /// Time is about to pass without anything happening, or nothing is left. A thread that sleeps in real time may call
    /// before; whether one has done anything.
    pub(super) fn sleepers(&mut self) -> bool {
        if !self.job.has_free_threads() {
            return false;
        }
        // What is due beyond the limit of simulated time never happens.
        let next = self.queue.peek_time().filter(|at| *at <= Time::LIMIT);
        let idle = next.map(|at| at - self.now);
        if idle.is_some_and(|idle| idle < IDLE) {
            return false;
        }
        let span = idle.map(|idle| Duration::from_nanos(idle.as_ps() / 1000));
        let Some((rank, pause)) = self.job.await_sleepers(span) else { return false };
        self.paused(rank, pause);
        true
    }

    pub(super) fn describe_polling(&self, rank: usize) -> String {
        let polled = || self.job.polled(rank);
        let open = |place: &Polled| {
            self.cards[rank]
                .exposed()
                .any(|region| !region.is_everything() && region.overlaps(place.address, place.length))
        };
        let place = polled().find(open).or_else(|| polled().next());
        let place = place.map_or(String::new(), |place| format!(" at {:#x}", place.address));
        format!("rank {rank} spins on its own memory{place}, which nothing will change")
    }
}
