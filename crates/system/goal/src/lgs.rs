// SPDX-License-Identifier: Apache-2.0
//! Binary schedules of LogGOPSim and ATLAHS, as their `txt2bin` writes them.
//!
//! The form, derived from files that `txt2bin` wrote (all numbers little-endian and unaligned):
//!
//! | part | contents |
//! | --- | --- |
//! | start | 4223 (u64); from here on, positions count from the end of this number |
//! | header | ranks (u32), highest CPU (u8), highest NIC (u8) |
//! | directory | for each rank: start and end of its section (u64 each); sections are contiguous, in the order of ranks |
//! | section | operations (u32), operations without dependencies (u32), indices of the latter (u32 each), nodes, edges |
//! | node | 39 bytes, see [`node`] |
//! | edges | indices of dependents in the section (u32 each) |

#![deny(clippy::cast_possible_truncation)] // values come from input

mod read;
mod spill;
mod write;

pub use read::{LgsError, read};
pub use spill::{SpillError, open};
pub use write::{LgsWriteError, write};

/// First number of a file.
pub const MAGIC: [u8; 8] = 4223u64.to_le_bytes();

/// Bytes of the header behind the first number.
const HEADER: usize = 6;

/// Wildcard in the peer or tag of a receive.
const ANY: u32 = u32::MAX;

/// Kinds of operations.
mod kind {
    pub const SEND: u8 = 1;
    pub const RECV: u8 = 2;
    pub const CALC: u8 = 3;
}

/// Offsets of a node's fields, in bytes.
mod node {
    /// Number of operations that it waits for (u32).
    pub const WAITS: usize = 0;
    /// Kind (u8).
    pub const KIND: usize = 4;
    /// Peer of a message (u32), or [`super::ANY`]; 0 in a calculation.
    pub const PEER: usize = 5;
    /// Bytes of a message, nanoseconds of a calculation (u64).
    pub const SIZE: usize = 9;
    /// Tag of a message (u32), or [`super::ANY`]; 0 in a calculation.
    pub const TAG: usize = 17;
    /// CPU (u8), which ATLAHS uses for the streams of a GPU.
    pub const CPU: usize = 21;
    /// NIC (u8).
    pub const NIC: usize = 22;
    /// Number of dependents on its end, and the first of them among the section's edges (u32 each).
    pub const ON_DONE: usize = 23;
    /// Number of dependents on its start, and the first of them among the section's edges (u32 each).
    pub const ON_START: usize = 31;
    /// Size of a node.
    pub const LENGTH: usize = 39;
}
