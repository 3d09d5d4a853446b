// SPDX-License-Identifier: Apache-2.0
//! Card address ranges for the segments of device programs.

use std::fmt;

/// A range of card addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Description for messages: "program memory".
    pub name: &'static str,
    /// First address.
    pub base: u32,
    /// Size in bytes.
    pub bytes: u32,
}

impl Region {
    /// Returns the offset of `bytes` bytes at `address`, if all of them are in this region.
    pub(crate) fn offset(&self, address: u32, bytes: u32) -> Option<usize> {
        let at = address.checked_sub(self.base)?;
        (u64::from(at) + u64::from(bytes) <= u64::from(self.bytes)).then_some(at as usize)
    }
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:#010x}, {} B)", self.name, self.base, self.bytes)
    }
}

/// Card address space of a device program: the addresses for its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadMap {
    /// Name of the map, for messages.
    pub name: &'static str,
    /// Code and constants.
    pub program: Region,
    /// Static data.
    pub data: Region,
    /// Memories that the card fills, such as stacks and packet buffers. Segments must not be there.
    pub others: Vec<Region>,
    /// Return address of a handler. It must be outside `program`: reaching it ends the handler.
    pub return_address: u32,
}
