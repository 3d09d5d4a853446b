// SPDX-License-Identifier: Apache-2.0
//! Memory descriptors.

use abi::portals::{self as ptl, Handle};

use crate::region::Region;

/// A memory descriptor (Portals 4.3 §3.10).
#[derive(Debug)]
pub struct MemoryDescriptor {
    /// Memory.
    pub region: Region,
    /// `PTL_MD_*`
    pub options: u32,
    /// Queue for full events, or `PTL_EQ_NONE`.
    pub eq: Handle,
    /// Counter, or `PTL_CT_NONE`.
    pub ct: Handle,
}

impl MemoryDescriptor {
    /// Returns true if an option is set.
    pub fn has(&self, option: u32) -> bool {
        self.options & option != 0
    }

    /// Returns true if the program can see a step of an operation: it is counted if option `counted` is set, and posts
    /// a full event unless option `disabled` is set.
    pub fn sees(&self, counted: u32, disabled: u32) -> bool {
        self.ct != ptl::CT_NONE && self.has(counted) || self.eq != ptl::EQ_NONE && !self.has(disabled)
    }
}
