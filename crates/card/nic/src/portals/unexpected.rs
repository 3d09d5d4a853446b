// SPDX-License-Identifier: Apache-2.0
//! Claims of entries on unexpected headers.

use abi::portals::Handle;

use super::entry::Entry;

/// Parameters for reporting an unexpected header to the entry that took it.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// Interface of the entry.
    pub interface: u8,
    /// `user_ptr` of the entry.
    pub user_ptr: u64,
    /// Options of the entry.
    pub options: u32,
    /// Counter of the entry.
    pub ct: Handle,
    /// True if an AUTO_UNLINK follows.
    pub unlink: bool,
}

impl Claim {
    /// Creates the claim of an entry; `unlink` is true if the header uses up the entry.
    pub fn of(interface: u8, entry: &Entry, unlink: bool) -> Claim {
        Claim { interface, user_ptr: entry.user_ptr, options: entry.options, ct: entry.ct, unlink }
    }
}

/// Result of offering an entry to the unexpected headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offered {
    /// The entry is used up and never linked.
    UsedUp,
    /// The entry must be linked.
    Link,
}
