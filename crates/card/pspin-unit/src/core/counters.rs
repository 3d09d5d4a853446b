// SPDX-License-Identifier: Apache-2.0
//! Counters of the cores.

use std::ops::AddAssign;

/// Accesses, stalls and failures of the HPUs of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Accesses to the cluster's own L1.
    pub local: u64,
    /// Accesses to other memories.
    pub remote: u64,
    /// Accesses to device registers.
    pub device: u64,
    /// Cycles for which HPUs stalled on bank conflicts with another HPU or a transfer.
    pub conflicts: u64,
    /// Lines fetched into the instruction cache.
    pub misses: u64,
    /// Handlers that failed or were killed.
    pub failed: u64,
}

impl AddAssign for CoreCounters {
    fn add_assign(&mut self, other: CoreCounters) {
        self.local += other.local;
        self.remote += other.remote;
        self.device += other.device;
        self.conflicts += other.conflicts;
        self.misses += other.misses;
        self.failed += other.failed;
    }
}
