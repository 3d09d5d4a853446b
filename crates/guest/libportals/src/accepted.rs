// SPDX-License-Identifier: Apache-2.0
//! Calls that the simulator accepted: the memory of [`crate::posting`].

use abi::portals::{Handle, Md};
use std::collections::{BTreeMap, BTreeSet};

/// Properties in which a posted call must equal an accepted one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Way {
    pub op: u32,
    /// Memory descriptor, or the modified counter.
    pub object: Handle,
    /// Triggering counter.
    pub trigger: Option<Handle>,
    /// Acknowledgement request, atomic operation and datatype; for a counter, 1 for each of success and failure that
    /// changes. 0 if the call has none.
    pub rest: [u64; 3],
    pub pid: u32,
}

/// Properties that must not exceed those of an accepted call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub length: u64,
    pub end: u64,
    pub nid: u32,
    pub pt_index: u32,
}

impl Extent {
    /// Returns true if no property exceeds the other's.
    pub fn is_within(self, other: Extent) -> bool {
        self.length <= other.length && self.end <= other.end && self.nid <= other.nid && self.pt_index <= other.pt_index
    }

    /// Extends the properties to include the other's.
    pub fn cover(&mut self, other: Extent) {
        self.length = self.length.max(other.length);
        self.end = self.end.max(other.end);
        self.nid = self.nid.max(other.nid);
        self.pt_index = self.pt_index.max(other.pt_index);
    }
}

/// Accepted calls of a process.
#[derive(Debug, Default)]
pub struct Known {
    /// Bound memory descriptors, by handle.
    pub bound: BTreeMap<Handle, Md>,
    /// Accepted calls.
    pub accepted: BTreeMap<Way, Extent>,
    /// Appended entries, as returned by [`entry`].
    pub appended: BTreeSet<[u64; 5]>,
}

impl Known {
    /// Creates the state before the first accepted call.
    pub const fn new() -> Known {
        Known { bound: BTreeMap::new(), accepted: BTreeMap::new(), appended: BTreeSet::new() }
    }
}
