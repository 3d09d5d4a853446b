// SPDX-License-Identifier: Apache-2.0
//! Real time as the clock of a cluster (`spinrun --live`).
//!
//! Events execute as soon as possible, in the order of their times. The clock of the cluster is real time while none is
//! pending, and the time of the latest event otherwise. Only delays that programs ask for, such as sleeps and time limits,
//! pass in real time. Events with earlier times still precede the end of a delay, so that a message of 2 us arrives
//! within a sleep of 100 us on the slowest computer.

use std::time::Instant;

use sim::{EventQueue, Time};

/// Real time, and the events that wait for it.
pub(crate) struct RealTime<E> {
    since: Instant,
    pub(crate) timers: EventQueue<E>,
}

impl<E> RealTime<E> {
    /// Creates real time since `since`.
    pub(crate) fn new(since: Instant) -> RealTime<E> {
        RealTime { since, timers: EventQueue::default() }
    }

    /// Returns the time of the run.
    pub(crate) fn now(&self) -> Time {
        Time::from_ns(self.since.elapsed().as_nanos() as u64)
    }

    /// Schedules an event after `delay` of real time, when the cluster's clock is `now`.
    pub(crate) fn schedule(&mut self, now: Time, delay: Time, event: E) {
        self.timers.push(now.max(self.now()).saturating_add(delay), event);
    }
}
