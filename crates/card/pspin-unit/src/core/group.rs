// SPDX-License-Identifier: Apache-2.0
//! The HPUs of a cluster and their shared state.

use super::cache::Cache;
use super::counters::CoreCounters;
use super::hpu::Hpu;
use crate::arbiter::Order;

/// The HPUs of one cluster.
pub struct Group<A, O> {
    /// Next active cycle of each HPU; [`u64::MAX`] while it waits for others.
    pub next: Vec<u64>,
    /// Minimum of `next`.
    pub least: u64,
    pub hpus: Vec<Hpu<A, O>>,
    pub cache: Cache,
    /// Order in which HPUs request banks.
    pub order: Order,
    pub counters: CoreCounters,
}

impl<A, O> Group<A, O> {
    /// Returns the set of HPUs that are active in cycle `at`.
    #[inline]
    pub fn due(&self, at: u64) -> u64 {
        self.next.iter().rev().fold(0, |due, next| due << 1 | u64::from(*next <= at))
    }

    /// Recomputes the minimum.
    #[inline]
    pub fn settle(&mut self) {
        self.least = self.next.iter().copied().min().unwrap_or(u64::MAX);
    }
}
