//! Execution of a [`Schedule`] over a [packet network](net::messages): CPUs and matching are those of LogGOPS.
//!
//! - **CPU.** Operations and arrived messages occupy a CPU one after the other, first come first served: a send for
//!   o + (s-1) O, a calculation for its time, a receive not at all. An arrived message occupies the CPU that has the number
//!   of its sender's CPU for o + (s-1) O from the arrival of its last byte; then it is matched. In LogGOPS the CPU is also
//!   busy while the bytes come in, at the rate G; here only the card is.
//! - **Card.** o after the start of a send the card has the message and queues it: a CPU does not wait for its card.
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

use net::fabric::Report;
use sim::{Time, TimePerByte};
use thiserror::Error;

use crate::run_progress::RunProgress;
use crate::schedule::Schedule;
use sim::noise::Noise;

pub use engine::{record, run};
pub use record::{Span, Window};
pub use task::Phase;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// o: CPU time for a message
    pub overhead: Time,
    /// O: CPU time for each byte after the first
    pub overhead_per_byte: TimePerByte,
    /// S: size in bytes of the largest message that does not wait for its receive
    pub eager: u64,
    /// The noise that the CPUs meet
    pub noise: Option<Noise>,
    /// The network; its `gap` is also the least time between two messages that a card takes
    pub network: net::fabric::Parameters,
    /// Shows how far the run is
    pub progress: RunProgress,
}

/// The results of a run; `ends` are when the last CPU of each rank was free and the last of its messages had left.
pub type Outcome = crate::Outcome<Details>;

/// Why a schedule cannot be executed to its end.
pub type RunError = crate::RunError<PacketError>;

/// What only this model tells.
#[derive(Clone, Debug, PartialEq)]
pub struct Details {
    /// What happened in the network
    pub network: Report,
    /// What happened when, if [asked for](record()): messages in the order of their arrival, everything else in the order
    /// of the starts
    pub spans: Vec<Span>,
}

/// What can be wrong in this model only.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PacketError {
    /// Ranks have several CPUs or NICs, and these are too many.
    #[error(
        "{ranks} ranks with {each} {what} each are more than {most} {what}: one operation with a high number gives all \
             ranks as many"
    )]
    TooMany {
        /// Number of ranks
        ranks: usize,
        /// Highest number, plus one
        each: usize,
        /// CPUs or NICs
        what: &'static str,
        /// The limit
        most: usize,
    },
}

impl From<PacketError> for RunError {
    fn from(error: PacketError) -> RunError {
        RunError::Model(error)
    }
}

/// Largest number of NICs, and of CPUs, of all ranks together if a rank has more than one. A single high number in a
/// schedule gives every rank as many.
const MOST_OF_SEVERAL: usize = 1 << 20;

/// Returns the number of hosts that a schedule needs: one for each NIC of each rank.
///
/// # Errors
/// When ranks with several NICs or CPUs have more of them together than fit into memory.
pub fn hosts(schedule: &Schedule) -> Result<usize, RunError> {
    let ranks = schedule.ranks() as usize;
    for (each, what) in [(schedule.nics(), "NICs"), (schedule.cpus(), "CPUs")] {
        if each > 1 && ranks * each > MOST_OF_SEVERAL {
            return Err(PacketError::TooMany { ranks, each, what, most: MOST_OF_SEVERAL }.into());
        }
    }
    Ok(ranks * schedule.nics())
}
