// SPDX-License-Identifier: Apache-2.0
//! Real time as the clock of a cluster (`spinrun --live`).
//!
//! Events execute as soon as possible, in the order of their times. The clock of the cluster is real time while none is
//! pending, and the time of the latest event otherwise. Only delays that programs ask for, such as sleeps and time limits,
//! pass in real time. Events with earlier times still precede the end of a delay, so that a message of 2 us arrives
//! within a sleep of 100 us on the slowest computer.

use std::time::{Duration, Instant};

use sim::{EventQueue, Time};

use crate::event::Event;
use crate::nodes::Cluster;

/// Real time, and the events that wait for it.
pub(crate) struct RealTime<E> {
    since: Instant,
    timers: EventQueue<E>,
}

impl<E> RealTime<E> {
    fn now(&self) -> Time {
        Time::from_ns(self.since.elapsed().as_nanos() as u64)
    }

    /// Schedules an event after `delay` of real time, when the cluster's clock is `now`.
    pub(crate) fn schedule(&mut self, now: Time, delay: Time, event: E) {
        self.timers.push(now.max(self.now()).saturating_add(delay), event);
    }
}

impl<E> Cluster<E> {
    /// Makes real time since `since` the clock of the cluster.
    pub fn set_live(&mut self, since: Instant) {
        self.real_time = Some(RealTime { since, timers: EventQueue::default() });
    }

    /// Advances the clock to real time, but not beyond a pending event, and schedules the events whose delays are over.
    pub fn keep_pace(&mut self) {
        let Some(real_time) = &mut self.real_time else { return };
        let now = real_time.now();
        while real_time.timers.peek_time().is_some_and(|at| at <= now)
            && let Some((at, event)) = real_time.timers.pop()
        {
            self.queue.push(at.max(self.now), Event::Rank(event));
        }
        self.now = self.now.max(now.min(self.queue.peek_time().unwrap_or(Time::MAX)));
    }

    /// Returns the real time until the next delay ends, if any.
    pub fn time_to_timer(&self) -> Option<Duration> {
        let real_time = self.real_time.as_ref()?;
        let left = real_time.timers.peek_time()?.saturating_sub(real_time.now());
        Some(Duration::from_nanos(left.as_ps().div_ceil(1000)))
    }
}
