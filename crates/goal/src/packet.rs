//! Execution of a [`Schedule`] over a [packet network](net::packet): LogGOPS' CPUs and matching, real wires between.
//!
//! - **CPU.** Operations and arrived messages take a CPU one after the other, first come first served. A send takes
//!   o + (s-1) O, a calculation its time, a receive none. An arrived message takes o + (s-1) O of the CPU that has the
//!   number of its sender's, from the arrival of its last byte; then it is matched. In LogGOPS the CPU is also busy while
//!   the bytes come in, at the rate G; here that is the card's business.
//! - **Card.** o after the start of a send the message is the card's, which queues it: a CPU does not wait for its card.
//!   Cards start messages at least g + (s-1) G apart, and take arrived ones at least g apart. Each NIC of each rank is a
//!   host of the network; a message goes from and to NICs of the same number.
//! - **Rendezvous** (above S bytes) is played out: the send posts a request to send, which arrives as a message without
//!   bytes; when it is matched, the receiver's card answers that it is clear to send; the sender's card then sends the
//!   data by itself, and the send is done when the last byte has left. Requests and answers are packets like others.
//!
//! Alone in the network, with its receive posted and both CPUs idle, an eager message of s bytes from t on ends at
//! t + 2o + L + s G + (s-1) O, where L is the latency of the path: one G later than in LogGOPS with that L and O = 0, as
//! bytes count from the first. One above S ends at t + 3o + 3L + (s+2) G + (s-1) O.

mod engine;
mod record;
mod task;

use net::packet::Report;
use sim::{Rate, Time};

use crate::Schedule;
use crate::noise::Noise;

pub use crate::error::RunError;
pub use engine::{record, run};
pub use record::{Span, Window};
pub use task::Phase;

/// What the network does not know: CPUs and the protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// o: CPU time for a message
    pub overhead: Time,
    /// O: CPU time for each byte after the first
    pub overhead_per_byte: Rate,
    /// S: size in bytes of the largest message that does not wait for its receive
    pub eager: u64,
    /// What else the CPUs have to do
    pub noise: Option<Noise>,
    /// The network; its `gap` is also the least time between two messages that a card takes
    pub network: net::packet::Parameters,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// For each rank, when the last of its CPUs was free and the last of its messages had left.
    pub ends: Vec<Time>,
    /// Operations and messages.
    pub events: u64,
    /// The sends of messages that no receive took.
    pub unreceived: Vec<u32>,
    /// What became of the network.
    pub network: Report,
    /// What went on, if [asked for](record()); messages in the order of their arrival, all else in that of its start.
    pub spans: Vec<Span>,
}

impl Outcome {
    /// The end of the last rank.
    pub fn end(&self) -> Time {
        self.ends.iter().copied().max().unwrap_or_default()
    }
}

/// Most NICs and most CPUs of all ranks together, where a rank has more than one. A single high number in a schedule gives
/// every rank as many.
const MOST_OF_SEVERAL: usize = 1 << 20;

/// Hosts that a schedule needs: one for each NIC of each rank.
///
/// # Errors
/// When ranks with several NICs or CPUs have more of them together than memory has room for.
pub fn hosts(schedule: &Schedule) -> Result<usize, RunError> {
    let ranks = schedule.ranks() as usize;
    for (each, what) in [(schedule.nics(), "NICs"), (schedule.cpus(), "CPUs")] {
        if each > 1 && ranks * each > MOST_OF_SEVERAL {
            return Err(RunError::TooMany { ranks, each, what, most: MOST_OF_SEVERAL });
        }
    }
    Ok(ranks * schedule.nics())
}
