//! Loops in which threads of ranks poll their memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// A range of addresses in the memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The first address.
    pub address: u64,
    /// The number of bytes.
    pub length: u64,
}

impl Location {
    /// Returns the addresses of all bytes.
    pub fn bytes(self) -> Range<u64> {
        self.address..self.address.saturating_add(self.length)
    }
}

/// The contents of a place; only the beginning if it is longer.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub type Value = [u8; 64];

/// The reason why no loop was found in which a thread polls.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub enum NotPolling {
    /// The thread computes.
    Computes,
    /// It reads and writes the same places again and again and has no other effect, so it may wait for another thread, but uses
    /// processor time to decide when it goes on.
    Suspect,
    /// It would wait in the kernel for another thread.
    Blocks,
    /// Something has happened that the simulator must handle first.
    Disturbed,
    /// The system does not permit to inspect the thread.
    Denied,
}

/// A loop that polls memory.
#[derive(Clone)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub struct PollingLoop {
    /// The places that it polls.
    pub reads: BTreeMap<Location, Polled>,
    /// Whether it can end only after one of these places is written.
    pub endless: bool,
    /// The addresses of its instructions.
    pub code: BTreeSet<u64>,
    /// The instruction before which the thread stop_point, and its stack pointer there.
    pub stop_point: (u64, u64),
}

/// A polled place, when the thread was stopped.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub struct Polled {
    /// Its contents; `None` if they cannot be read from outside of the process.
    pub seen: Option<Value>,
    /// Whether the loop writes it, too, as it does the word of a lock.
    pub is_own: bool,
}

/// How a rank polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// None of its loops can end by itself.
    Stuck,
    /// Some loops also count, or read a clock, so they may end by themselves.
    Counting,
}
