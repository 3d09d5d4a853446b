// SPDX-License-Identifier: Apache-2.0
//! GOAL as text.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: calc 100 cpu 0                    // nanoseconds
//!   l2: send 1024b to 1 tag 7 cpu 0 nic 0
//!   l2 requires l1                        // starts when l1 is done
//! }
//! rank 1 {
//!   l1: recv 1024b from any tag any       // or -1
//!   l2: calc 5
//!   l2 irequires l1                       // starts when l1 has started
//! }
//! ```
//!
//! Labels are local to a rank and optional; `tag`, `cpu` and `nic` default to 0. The Portals 4 and sPIN operations of
//! LogGOPSim 2 are [`NicOp`](crate::NicOp)s. One extension is ours: `space N` puts a message into a separate matching
//! space, so that an application's wildcard receives cannot take the messages of collectives.

#![deny(clippy::cast_possible_truncation)] // values come from input

mod attributes;
mod cursor;
mod labels;
mod nic;
mod read;
mod write;

pub use cursor::{Problem, TextError};
pub(crate) use nic::read_nic_op;
pub use read::{read, read_stream};
pub use write::write;
