//! Loops in which threads of ranks poll their memory.

use std::collections::BTreeSet;
use std::ops::Range;

/// A range of addresses in the memory of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The first address.
    pub address: u64,
    /// The number of bytes.
    pub length: u64,
}

impl Place {
    /// Returns the addresses of all bytes.
    pub fn bytes(self) -> Range<u64> {
        self.address..self.address.saturating_add(self.length)
    }
}

/// The contents of a place; only the beginning if it is longer.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub type Value = [u8; 32];

/// The reason why no loop was found in which a thread polls.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub enum NoLoop {
    /// The thread computes.
    Computes,
    /// Something has happened that the simulator must handle first.
    Disturbed,
    /// The system does not permit to inspect the thread.
    Denied,
}

/// A loop that polls memory.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "threads are inspected on x86-64 only"))]
pub struct Loop {
    /// The places that it polls.
    pub reads: BTreeSet<Place>,
    /// Whether it can end only after one of these places is written.
    pub endless: bool,
    /// The addresses of its instructions.
    pub code: BTreeSet<u64>,
    /// The contents of the places when the thread was stopped, in the order of `reads`.
    pub seen: Vec<Option<Value>>,
}

/// How a rank polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// None of its loops can end by itself.
    Stuck,
    /// Some loops also count, or read a clock, so they may end by themselves.
    Counting,
}
