use std::collections::HashMap;
use std::ops::RangeInclusive;

use sim::Time;

use super::task::{Phase, Task};

/// What of a run is to be kept: what goes on at these ranks in this time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Those whose CPU or card does it
    pub ranks: RangeInclusive<u32>,
    /// What ends before is left out
    pub from: Time,
    /// What starts later is left out
    pub to: Time,
}

/// What a CPU does, or a message on its way. 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Whose CPU it is, or whose card sends it
    pub rank: u32,
    /// The operation, or the send whose message it is
    pub op: u32,
    /// Which part of the operation or message
    pub phase: Phase,
    /// Whether it is the message itself: from the moment that the card has it until all of it has arrived
    pub is_on_its_way: bool,
    /// When it began
    pub start: Time,
    /// When it was over
    pub end: Time,
}

/// Keeps what goes on in a window.
#[derive(Debug)]
pub(super) struct Recorder {
    window: Window,
    /// Of messages on their way by token, whose card sent it, and when.
    sent: HashMap<u32, (u32, Time)>,
    pub spans: Vec<Span>,
}

impl Recorder {
    pub fn new(window: Window) -> Recorder {
        Recorder { window, sent: HashMap::new(), spans: Vec::new() }
    }

    /// A CPU of a rank does something.
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
