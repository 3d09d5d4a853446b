// SPDX-License-Identifier: Apache-2.0
//! Recording of CPU tasks and messages within a time window.

use std::collections::HashMap;
use std::ops::RangeInclusive;

use sim::Time;

use super::task::{Phase, Task};

/// Recorded part of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    /// Ranks whose CPUs and cards are recorded
    pub ranks: RangeInclusive<u32>,
    /// Spans that end earlier are omitted
    pub from: Time,
    /// Spans that start later are omitted
    pub to: Time,
}

/// A CPU task, or a message in flight, in 32 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Rank of the CPU or card
    pub rank: u32,
    /// Operation, or the send of the message
    pub op: u32,
    /// Part of the operation or message
    pub phase: Phase,
    /// True for the message itself, from its queueing at the card until its complete arrival
    pub is_on_its_way: bool,
    /// Start
    pub start: Time,
    /// End
    pub end: Time,
}

/// Records the spans of a window.
#[derive(Debug)]
pub(super) struct Recorder {
    window: Window,
    /// For each message in flight, by token: the rank of the sending card, and the time at which it got the message.
    sent: HashMap<u32, (u32, Time)>,
    pub spans: Vec<Span>,
}

impl Recorder {
    pub fn new(window: Window) -> Recorder {
        Recorder { window, sent: HashMap::new(), spans: Vec::new() }
    }

    /// Records a task of a rank's CPU.
    pub fn works(&mut self, rank: u32, task: Task, start: Time, end: Time) {
        self.keep(rank, task, false, start, end);
    }

    /// Records that a rank's card gets a message to send.
    pub fn sends(&mut self, rank: u32, task: Task, at: Time) {
        if self.window.ranks.contains(&rank) && at <= self.window.to {
            self.sent.insert(task.token(), (rank, at));
        }
    }

    /// Records the complete arrival of a message.
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
