// SPDX-License-Identifier: Apache-2.0
//! Results of a LogGOPS run.

use sim::Time;

use super::queues::Queues;

/// Results of a run; `ends` are the times at which each rank's last CPU became free.
pub type Outcome = crate::Outcome<Details>;

/// Results specific to LogGOPS.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Lengths of the queues of posted receives and unexpected messages.
    pub queues: Queues,
    /// All spans, if [requested](super::Options::record), in the order of their starts.
    pub spans: Vec<Span>,
    /// Matches of sends above S, if requested.
    pub matches: Vec<Match>,
}

/// A send, a calculation, or the reception of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Rank
    pub rank: u32,
    /// Operation, or the send of the received message
    pub op: u32,
    /// True for the reception of a message
    pub is_message: bool,
    /// Start
    pub start: Time,
    /// Arrival of the message; for other spans, the start
    pub arrival: Time,
    /// Time at which it releases the CPU
    pub cpu_end: Time,
    /// Time at which it releases the NIC
    pub nic_end: Time,
}

/// Match of a send above S with its receive, which lets the sender continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// Send
    pub op: u32,
    /// Time of the match
    pub at: Time,
    /// Number of spans that started before
    pub spans: usize,
}

/// Joins the outcomes of two consecutive parts of the ranks, without [spans](Details::spans).
pub(super) fn join(mut first: Outcome, next: Outcome) -> Outcome {
    first.ends.extend(next.ends);
    first.events += next.events;
    first.unreceived.extend(next.unreceived);
    first.unreceived.sort_unstable();
    first.details.queues = first.details.queues.and(next.details.queues);
    first
}
