//! The HPUs of a cluster, and what they share.

use super::cache::Cache;
use super::counters::CoreCounters;
use super::hpu::Hpu;
use crate::arbiter::Order;

/// The HPUs of one cluster.
pub struct Group<A, O> {
    /// The cycle in which each HPU does something; [`u64::MAX`] while it waits for others.
    pub next: Vec<u64>,
    /// The least of them.
    pub least: u64,
    pub hpus: Vec<Hpu<A, O>>,
    pub cache: Cache,
    /// The order in which HPUs ask for banks.
    pub order: Order,
    pub counters: CoreCounters,
}

impl<A, O> Group<A, O> {
    /// The set of HPUs that do something in cycle `at`.
    #[inline]
    pub fn due(&self, at: u64) -> u64 {
        self.next.iter().rev().fold(0, |due, next| due << 1 | u64::from(*next <= at))
    }

    /// Finds the least cycle.
    #[inline]
    pub fn settle(&mut self) {
        self.least = self.next.iter().copied().min().unwrap_or(u64::MAX);
    }
}
