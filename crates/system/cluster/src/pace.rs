// SPDX-License-Identifier: Apache-2.0
//! Keeps the clock of a live cluster in step with real time.

use std::time::{Duration, Instant};

use sim::Time;

use crate::event::Event;
use crate::nodes::Cluster;
use crate::real_time::RealTime;

impl<E> Cluster<E> {
    /// Makes real time since `since` the clock of the cluster.
    pub fn set_live(&mut self, since: Instant) {
        self.real_time = Some(RealTime::new(since));
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
