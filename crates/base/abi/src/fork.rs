//! How spinrun asks a fork server for ranks: a process that has executed the program up to the program's first instruction, and copies
//! itself.
//!
//! `libsimclock.so` makes a process a fork server if its variable [`RANK`](crate::mailbox::env::RANK) is [`SERVER`]. Its end of a
//! connection of sequenced packets has the number that [`SIM_FD`](crate::mailbox::env::SIM_FD) names. The server first sends one
//! answer, 0 or the number of an error. Then each [`Request`] comes with the descriptors of a rank: its three standard streams, and
//! the one over which it speaks PMI if it does. The answer to a request is the process id of the rank, or the number of an error,
//! negated. The server ends with the connection.

use bytemuck::{Pod, Zeroable};

/// The value of [`VARIABLES`] in a fork server. No rank has more digits, so that they can be overwritten in place.
pub const SERVER: &str = "server";
/// The variables that tell a rank its number.
pub const VARIABLES: [&str; 3] = ["SPIN_RANK", "PMI_RANK", "PMI_ID"];
/// The number of standard streams, which come first among the descriptors of a request.
pub const STREAMS: usize = 3;
/// The largest number of descriptors that come with a request.
pub const DESCRIPTORS: usize = STREAMS + 1;
/// The size of ancillary data with [`DESCRIPTORS`] descriptors, in units of the alignment that it needs, 8 bytes.
pub const ANCILLARY: usize = 8;

/// The wish for a rank.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct Request {
    /// The number of the rank.
    pub rank: u32,
}

/// An answer of a fork server.
pub type Answer = i32;
