use sim::Time;

use super::queues::Queues;

/// The results of a run; `ends` are when the last CPU of each rank was free.
pub type Outcome = crate::Outcome<Details>;

/// What only LogGOPS tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Details {
    /// Lengths of the queues of posted receives and unexpected messages.
    pub queues: Queues,
    /// When everything ran, if [asked for](super::Options::record), in the order of the starts.
    pub spans: Vec<Span>,
    /// When sends above S were matched, if asked for.
    pub matches: Vec<Match>,
}

/// A send, a calculation, or the reception of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The rank where it runs
    pub rank: u32,
    /// The operation, or the send whose message is received
    pub op: u32,
    /// Whether it is the reception of a message
    pub is_message: bool,
    /// When it began
    pub start: Time,
    /// When the message arrived; the start for everything else
    pub arrival: Time,
    /// When it released the CPU
    pub cpu_end: Time,
    /// When it released the NIC
    pub nic_end: Time,
}

/// A send above S finds its receive, which lets the sender continue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Match {
    /// The send
    pub op: u32,
    /// When it was matched
    pub at: Time,
    /// Number of spans that had begun before
    pub spans: usize,
}

/// Joins the outcomes of two parts of the ranks, of which `next` follows `first`, without [spans](Details::spans).
pub(super) fn join(mut first: Outcome, next: Outcome) -> Outcome {
    first.ends.extend(next.ends);
    first.events += next.events;
    first.unreceived.extend(next.unreceived);
    first.unreceived.sort_unstable();
    first.details.queues = first.details.queues.and(next.details.queues);
    first
}
