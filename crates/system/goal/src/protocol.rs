//! Execution of a [`Schedule`](crate::Schedule) with the message-passing protocols of the sPIN paper (§5.1, Fig. 5b): who matches, copies
//! and answers, the CPU, the card, or handlers on it.
//!
//! A CPU does one task after the other, first come first served, and is not interrupted: while it computes it makes no
//! progress with messages. That is what offloading changes. The terms are those of the machine file and of the
//! experiment `matching`:
//!
//! | step | RDMA | Portals 4 | sPIN |
//! | --- | --- | --- | --- |
//! | send | CPU: o | CPU: o | CPU: o |
//! | receive is posted | CPU: match (the library's list) | CPU: o (an entry for the card) | CPU: o |
//! | … whose message is there | + copy (eager), or + o (get) | + poll, and copy (eager) or o (get) | as Portals 4 |
//! | message finds its receive | CPU: poll, match, and copy (eager) or o (get) | card: deposits (eager), gets (see below) | card: deposits (eager), gets (handler) |
//! | data is in place | CPU: poll, if it came by a get | CPU: poll | CPU: poll |
//! | … of a get | CPU: + o for the message that ends the send | – | – |
//! | long send is done | CPU: poll, when that message is there | CPU: poll, when the card has answered the get | as Portals 4 |
//!
//! - **Eager** messages (up to S bytes) travel with their data. Under RDMA they land in a bounce buffer and are always
//!   copied; a card that matches puts them in place, unless the receive comes later.
//! - **Rendezvous** messages announce themselves by a header; the receiver gets the data, which the sender's card serves
//!   alone. Under Portals 4 a get that the receive has prepared is triggered by the header; that takes a second
//!   descriptor (o more to post the receive, unless the message is there) and a known source: with any source, the CPU gets the data when it sees the
//!   header (§5.1: the protocol "does not support wildcard receives"). A header handler needs neither.
//! - **Collective traffic** is never offloaded ("We only considered point-to-point operations"): messages in matching
//!   spaces of odd number, where the trace reader puts them, use the RDMA protocol on every card.
//!
//! A message of s bytes is on its way: DMA from host memory (2 L + G of one packet), injection (s G, at least g apart),
//! the path's latency, reception (one message after the other), the card's match (30 ns, or 2 ns for a last packet that is
//! not the first), DMA to host memory (L + G of the last packet). Messages without data need no DMA. Machines with other rules
//! (`network.injection`, `network.reception`, `nic.match_overlaps`, `dma.messages`) have other terms. With one message at a
//! time that is what a card takes, except that a short last packet there waits for the one before
//! (`crates/system/goal-cards/tests/protocol.rs`).

mod engine;
mod timing;

use machine::{Machine, NicKind, TimingKind};
use sim::Time;
use thiserror::Error;

use crate::run_progress::RunProgress;
pub use engine::run;
use sim::noise::Noise;

/// The parameters of a run.
#[derive(Clone, Debug)]
pub struct Parameters<'a> {
    /// Host, card and network; one rank a node
    pub machine: &'a Machine,
    /// The kind of card, which decides whether the CPU, the card or handlers match and answer
    pub card: NicKind,
    /// S: size in bytes of the largest message that travels with its data
    pub eager: u64,
    /// Time of the header handler that gets the data of a long message
    pub handler: Time,
    /// The noise that the CPUs meet
    pub noise: Option<Noise>,
    /// Shows how far the run is
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
/// The handler is not run. These are the figures in the table of `sdk/handlers/README.md`, which is written from runs of the
/// handlers and checked against them (`tests/python/test_handlers.py`); a test of this crate compares both.
fn header_handler_cycles(timing: TimingKind) -> u64 {
    match timing {
        TimingKind::InOrder => 60,
        TimingKind::OooA15 => 30,
    }
}

/// The results of a run; `ends` are when the last operation of each rank was done.
pub type Outcome = crate::Outcome<Details>;

/// Why a schedule cannot be executed to its end.
pub type RunError = crate::RunError<ProtocolError>;

/// What the CPUs of all ranks together spent their time on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// Calculations
    pub compute: Time,
    /// Point-to-point messages: the CPU's part of them, and idle time that such a message ended
    pub point_to_point: Time,
    /// Messages of collectives, likewise
    pub collective: Time,
}

/// What only this model tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Number of point-to-point messages
    pub messages: u64,
    /// Number of point-to-point messages above S
    pub long: u64,
    /// Number of messages that arrived before their receive was posted, those of collectives included
    pub unexpected: u64,
    /// Bytes that CPUs copied from bounce buffers
    pub copied: u64,
    /// What the CPUs spent their time on
    pub shares: Shares,
}

/// What can be wrong in this model only.
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
