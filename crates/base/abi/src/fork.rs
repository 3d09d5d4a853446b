// SPDX-License-Identifier: Apache-2.0
//! Protocol between spinrun and a fork server: a process that runs the program up to its first instruction, then forks
//! once for each rank.
//!
//! `libsimclock.so` turns a process into a fork server if its variable [`RANK`](crate::mailbox::env::RANK) is
//! [`SERVER`]. [`SIM_FD`](crate::mailbox::env::SIM_FD) names the descriptor of its `SOCK_SEQPACKET` connection. The
//! server first sends one answer: 0 or an error number. Each [`Request`] then carries the descriptors of a rank: its
//! three standard streams, and its PMI connection if it uses PMI. The answer to a request is the process id of the
//! rank, or a negated error number. The server exits when the connection closes.

use bytemuck::{Pod, Zeroable};

/// Value of [`VARIABLES`] in a fork server. It is at least as long as any rank number, so a copy overwrites it in place
/// with its number.
pub const SERVER: &str = "server";
/// Environment variables that hold the rank number.
pub const VARIABLES: [&str; 3] = ["SPIN_RANK", "PMI_RANK", "PMI_ID"];
/// Number of standard streams, the first descriptors of a request.
pub const STREAMS: usize = 3;
/// Maximum number of descriptors in a request.
pub const DESCRIPTORS: usize = STREAMS + 1;
/// Size of ancillary data with [`DESCRIPTORS`] descriptors, in units of its alignment (8 bytes).
pub const ANCILLARY: usize = 8;

/// A request to start a rank.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Request {
    /// Rank number.
    pub rank: u32,
}

/// Answer of a fork server: a process id, or a negated error number.
pub type Answer = i32;
