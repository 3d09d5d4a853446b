use std::ops::AddAssign;

/// What the HPUs of a cluster have done, and for what they have waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreCounters {
    /// Accesses to the cluster's own L1.
    pub local: u64,
    /// Accesses to other memories.
    pub remote: u64,
    /// Accesses to registers of devices.
    pub device: u64,
    /// Cycles for which HPUs waited for a bank of their L1 that another HPU or a transfer had.
    pub conflicts: u64,
    /// Lines that were fetched into the instruction cache.
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
