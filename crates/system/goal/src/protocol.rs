// SPDX-License-Identifier: Apache-2.0
//! Execution of a [`Schedule`](crate::Schedule) with the message-passing protocols of the sPIN paper (§5.1, Fig. 5b):
//! matching, copying and answering by the CPU, the card, or handlers on it.
//!
//! A CPU executes one task at a time, first come first served and without interrupts: while it computes, its messages
//! make no progress. Offloading changes that. The terms are those of the machine file and of the experiment `matching`:
//!
//! | step | RDMA | Portals 4 | sPIN |
//! | --- | --- | --- | --- |
//! | send | CPU: o | CPU: o | CPU: o |
//! | receive is posted | CPU: match (the library's list) | CPU: o (an entry for the card) | CPU: o |
//! | … with its message present | + copy (eager), or + o (get) | + poll, and copy (eager) or o (get) | as Portals 4 |
//! | message finds its receive | CPU: poll, match, and copy (eager) or o (get) | card: deposits (eager), gets (see
//! below) | card: deposits (eager), gets (handler) |
//! | data is in place | CPU: poll, if fetched by a get | CPU: poll | CPU: poll |
//! | … of a get | CPU: + o for the message that ends the send | – | – |
//! | long send is done | CPU: poll, when that message arrives | CPU: poll, when the card has answered the get | as
//! Portals 4 |
//!
//! - **Eager** messages (up to S bytes) travel with their data. Under RDMA they land in a bounce buffer and are always
//!   copied; a matching card deposits them in place, unless the receive is posted later.
//! - **Rendezvous** messages announce themselves by a header; the receiver gets the data, which the sender's card
//!   serves without its CPU. Under Portals 4 the header triggers a get that the receive has prepared; that takes a
//!   second descriptor (o more to post the receive, unless the message is present) and a known source: with any source,
//!   the CPU gets the data when it sees the header (§5.1: the protocol "does not support wildcard receives"). A header
//!   handler needs neither.
//! - **Collective traffic** is never offloaded ("We only considered point-to-point operations"): messages in
//!   odd-numbered matching spaces, where the trace reader puts them, use the RDMA protocol on every card.
//!
//! The time of a message of s bytes is: DMA from host memory (2 L + G of one packet), injection (s G, at least g
//! apart), the path's latency, reception (one message after the other), the card's match (30 ns, or 2 ns for a last
//! packet that is not the first), DMA to host memory (L + G of the last packet). Messages without data need no DMA.
//! Machines with other rules (`network.injection`, `network.reception`, `nic.match_overlaps`, `dma.messages`) have
//! other terms. For one message at a time, these are the times of a card, except that a short last packet there waits
//! for the one before (`crates/system/goal-cards/tests/protocol.rs`).

mod engine;
mod timing;

use machine::{Machine, NicKind, TimingKind};
use sim::Time;
use thiserror::Error;

use crate::run_progress::RunProgress;
pub use engine::run;
use sim::noise::Noise;

/// Parameters of a run.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    /// Host, card and network; one rank per node
    pub machine: &'a Machine,
    /// Kind of card: the CPU, the card, or handlers match and answer
    pub card: NicKind,
    /// S: maximum size in bytes of a message that travels with its data
    pub eager: u64,
    /// Run time of the header handler that gets the data of a long message
    pub handler: Time,
    /// CPU noise
    pub noise: Option<Noise>,
    /// Receives the progress of the run
    pub progress: RunProgress,
}

impl<'a> Parameters<'a> {
    /// Returns the parameters of a machine: its own card, and the header handler of the library.
    pub fn new(machine: &'a Machine, eager: u64) -> Parameters<'a> {
        let cycles = header_handler_cycles(machine.hpu.timing);
        Parameters {
            machine,
            card: machine.nic.kind,
            eager,
            handler: machine.hpu.clock.time(cycles),
            noise: None,
            progress: RunProgress::default(),
        }
    }
}

/// Returns the cycles of the library's header handler `matching_header` for a long message, on HPUs with this timing.
///
/// The handler is not run. The values are those in the table of `sdk/handlers/README.md`, which is generated from runs
/// of the handlers and checked against them (`tests/python/test_handlers.py`); a test of this crate compares both.
fn header_handler_cycles(timing: TimingKind) -> u64 {
    match timing {
        TimingKind::InOrder => 60,
        TimingKind::OooA15 => 30,
    }
}

/// Results of a run; `ends` are the times at which each rank's last operation was done.
pub type Outcome = crate::Outcome<Details>;

/// Error of an unfinished run.
pub type RunError = crate::RunError<ProtocolError>;

/// Time of all CPUs together, by purpose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Calculations
    pub compute: Time,
    /// Point-to-point messages: CPU time for them, and idle time that such a message ended
    pub point_to_point: Time,
    /// Messages of collectives: CPU time and idle time in the same way
    pub collective: Time,
}

/// Results specific to this model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Number of point-to-point messages
    pub messages: u64,
    /// Number of point-to-point messages above S
    pub long: u64,
    /// Number of messages that arrived before their receive was posted, including those of collectives
    pub unexpected: u64,
    /// Bytes that CPUs copied from bounce buffers
    pub copied: u64,
    /// CPU time by purpose
    pub shares: Shares,
}

/// Error specific to this model.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ProtocolError {
    /// Ranks have several CPUs or NICs.
    #[error("the protocol model has one CPU and one NIC a rank; the schedule uses {cpus} and {nics}")]
    Resources {
        /// Highest CPU number, plus one
        cpus: usize,
        /// Highest NIC number, plus one
        nics: usize,
    },
}

impl From<ProtocolError> for RunError {
    fn from(error: ProtocolError) -> RunError {
        RunError::Model(error)
    }
}
