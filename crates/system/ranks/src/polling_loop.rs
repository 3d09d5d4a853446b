// SPDX-License-Identifier: Apache-2.0
//! Loops in which threads of ranks poll their memory.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Address range in the memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// First address.
    pub address: u64,
    /// Length in bytes.
    pub length: u64,
}

impl Location {
    /// Returns the addresses of all bytes.
    pub fn bytes(self) -> Range<u64> {
        self.address..self.address.saturating_add(self.length)
    }
}

/// Contents of a location; truncated if it is longer.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub type Value = [u8; 64];

/// Reason why no polling loop was found.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub enum NotPolling {
    /// The thread computes.
    Computes,
    /// The thread repeatedly accesses the same locations without other effects, so it may wait for another thread, but
    /// its progress depends on CPU time.
    Suspect,
    /// The thread would block in the kernel, waiting for another thread.
    Blocks,
    /// An event that the simulator must handle first interrupted the inspection.
    Disturbed,
    /// The system does not permit to inspect the thread.
    Denied,
}

/// A loop that polls memory.
#[derive(Clone)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub struct PollingLoop {
    /// Polled locations.
    pub reads: BTreeMap<Location, Polled>,
    /// True if only a write to one of these locations can end it.
    pub endless: bool,
    /// Addresses of its instructions.
    pub code: BTreeSet<u64>,
    /// Instruction pointer and stack pointer at which the thread is stopped.
    pub stop_point: (u64, u64),
}

/// State of a polled location when the thread was stopped.
#[derive(Clone, Copy)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub struct Polled {
    /// Contents; `None` if unreadable from outside of the process.
    pub seen: Option<Value>,
    /// True if the loop also writes the location, as it does a lock word.
    pub is_own: bool,
}

/// Kind of polling of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// None of its loops can end by itself.
    Stuck,
    /// Some loops also count, or read a clock, so they may end by themselves.
    Counting,
}
