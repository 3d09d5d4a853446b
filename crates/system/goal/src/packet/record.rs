use std::collections::HashMap;
use std::ops::RangeInclusive;

use sim::Time;

use super::task::{Phase, Task};

/// The part of a run that is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// The ranks whose CPUs and cards are recorded
    pub ranks: RangeInclusive<u32>,
    /// Spans that end before are left out
    pub from: Time,
    /// Spans that start later are left out
    pub to: Time,
}

/// A task of a CPU, or a message on its way. 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The rank whose CPU or card does it
    pub rank: u32,
    /// The operation, or the send to which the message belongs
    pub op: u32,
    /// The part of the operation or message
    pub phase: Phase,
    /// Whether it is the message itself, from the moment when the card has it until all of it has arrived
    pub is_on_its_way: bool,
    /// When it began
    pub start: Time,
    /// When it ended
    pub end: Time,
}

/// Records the spans of a window.
#[derive(Debug)]
pub(super) struct Recorder {
    window: Window,
    /// For each message on its way, by token: the rank whose card sends it, and when it was given the message.
    sent: HashMap<u32, (u32, Time)>,
    pub spans: Vec<Span>,
}

impl Recorder {
    pub fn new(window: Window) -> Recorder {
        Recorder { window, sent: HashMap::new(), spans: Vec::new() }
    }

    /// A CPU of a rank does a task.
    pub fn works(&mut self, rank: u32, task: Task, start: Time, end: Time) {
        self.keep(rank, task, false, start, end);
    }

    /// The card of a rank is given a message.
    pub fn sends(&mut self, rank: u32, task: Task, at: Time) {
        if self.window.ranks.contains(&rank) && at <= self.window.to {
            self.sent.insert(task.token(), (rank, at));
        }
    }

    /// All of a message has arrived.
    pub fn arrived(&mut self, task: Task, at: Time) {
        if let Some((rank, start)) = self.sent.remove(&task.token()) {
            self.keep(rank, task, true, start, at);
        }
    }

    fn keep(&mut self, rank: u32, task: Task, is_on_its_way: bool, start: Time, end: Time) {
        let Window { ranks, from, to } = &self.window;
        if ranks.contains(&rank) && start <= *to && end >= *from {
            self.spans.push(Span { rank, op: task.op(), phase: task.phase(), is_on_its_way, start, end });
        }
    }
}
