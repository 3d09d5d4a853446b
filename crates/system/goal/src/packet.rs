// SPDX-License-Identifier: Apache-2.0
//! Execution of a [`Schedule`] over a [packet network](net::messages): CPUs and matching are those of LogGOPS.
//!
//! - **CPU.** Operations and arrived messages occupy a CPU in sequence, first come first served: a send for o + (s-1)
//!   O, a calculation for its time, a receive not at all. An arrived message occupies the CPU with the number of its
//!   sender's CPU for o + (s-1) O from the arrival of its last byte; then it is matched. In LogGOPS the CPU is also
//!   busy while the bytes arrive, at the rate G; here only the card is.
//! - **Card.** o after the start of a send, the card gets the message and queues it: a CPU does not wait for its card.
//!   Cards start messages at least g + (s-1) G apart, and accept arriving ones at least g apart. Each NIC of each rank
//!   is a host of the network; a message travels between NICs of the same number.
//! - **Rendezvous** (above S bytes) is simulated explicitly: the send posts a request to send, which arrives as a
//!   message without bytes; when it is matched, the receiver's card answers clear to send; the sender's card then sends
//!   the data autonomously, and the send is done when the last byte has left. Requests and answers are packets like
//!   others.
//!
//! Alone in the network, with its receive posted and both CPUs idle, an eager message of s bytes sent at t ends at t +
//! 2o + L + s G + (s-1) O, where L is the latency of the path: one G later than in LogGOPS with that L and O = 0, as
//! bytes count from the first. A message above S ends at t + 3o + 3L + (s+2) G + (s-1) O.

mod engine;
mod parallel;
mod record;
mod run;
mod task;

use net::fabric::Report;
use sim::{Time, TimePerByte};
use thiserror::Error;

use crate::run_progress::RunProgress;
use crate::schedule::Schedule;
use sim::noise::Noise;

pub use crate::thread_benefit::single_thread_reason_for_packets as single_thread_reason;
pub use parallel::WindowCounts;
pub use record::{Span, Window};
pub use run::{OneThread, count, one_thread, packets, record, run};
pub use task::Phase;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Parameters {
    /// o: CPU time per message
    pub overhead: Time,
    /// O: CPU time per byte after the first
    pub overhead_per_byte: TimePerByte,
    /// S: maximum size in bytes of a message that does not wait for its receive
    pub eager: u64,
    /// CPU noise
    pub noise: Option<Noise>,
    /// Network; its `gap` is also the minimum time between two messages that a card accepts
    pub network: net::fabric::Parameters,
    /// Number of simulation threads, each for a part of the network, unless the run allows only [one](one_thread()); 0
    /// means one. The outcome is the same
    pub threads: usize,
    /// Receives the progress of the run
    pub progress: RunProgress,
}

/// Results of a run; `ends` are the times at which each rank's last CPU is free and its last message has left.
pub type Outcome = crate::Outcome<Details>;

/// Error of an unfinished run.
pub type RunError = crate::RunError<PacketError>;

/// Results specific to this model.
#[derive(Clone, Debug, PartialEq)]
pub struct Details {
    /// Network statistics
    pub network: Report,
    /// Spans, if [requested](record()): messages in arrival order, everything else in the order of the starts
    pub spans: Vec<Span>,
}

/// Error specific to this model.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PacketError {
    /// Ranks with several CPUs or NICs have too many of them in total.
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
        /// Limit
        most: usize,
    },
}

impl From<PacketError> for RunError {
    fn from(error: PacketError) -> RunError {
        RunError::Model(error)
    }
}

/// Maximum total number of NICs, and of CPUs, of all ranks if a rank has more than one. A single high number in a
/// schedule gives every rank as many.
const MOST_OF_SEVERAL: usize = 1 << 20;

/// Returns the number of hosts of a schedule: one for each NIC of each rank.
///
/// # Errors
/// If ranks with several NICs or CPUs have more of them in total than fit into memory.
pub fn hosts(schedule: &Schedule) -> Result<usize, RunError> {
    let ranks = schedule.ranks() as usize;
    for (each, what) in [(schedule.nics(), "NICs"), (schedule.cpus(), "CPUs")] {
        if each > 1 && ranks * each > MOST_OF_SEVERAL {
            return Err(PacketError::TooMany { ranks, each, what, most: MOST_OF_SEVERAL }.into());
        }
    }
    Ok(ranks * schedule.nics())
}
