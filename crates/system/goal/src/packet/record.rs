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
    /// True for a recorder of some of the ranks.
    is_part: bool,
    /// For each message in flight, by token: the rank of the sending card, and the time at which it got the message.
    sent: HashMap<u32, (u32, Time)>,
    /// Messages that arrived without having been sent here, with the times of their arrival.
    arrived: Vec<(Task, Time)>,
    spans: Vec<Span>,
}

/// Returns the spans of all parts of a run, in the order of the time at which they were recorded: messages at their
/// arrival, everything else at its start.
pub(super) fn join(mut recorders: Vec<Recorder>) -> Vec<Span> {
    for here in 0..recorders.len() {
        for (task, at) in std::mem::take(&mut recorders[here].arrived) {
            if let Some(sender) = recorders.iter_mut().find(|other| other.sent.contains_key(&task.token())) {
                sender.arrived(task, at);
            }
        }
    }
    let mut spans: Vec<Span> = recorders.into_iter().flat_map(|recorder| recorder.spans).collect();
    // Tasks of a rank are all in one list, in their order.
    spans.sort_by_key(|span| {
        let message = if span.is_on_its_way { (span.op, span.phase as u32) } else { (0, 0) };
        (if span.is_on_its_way { span.end } else { span.start }, !span.is_on_its_way, span.rank, message)
    });
    spans
}

impl Recorder {
    pub fn new(window: Window, is_part: bool) -> Recorder {
        Recorder { window, is_part, sent: HashMap::new(), arrived: Vec::new(), spans: Vec::new() }
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
        match self.sent.remove(&task.token()) {
            Some((rank, start)) => self.keep(rank, task, true, start, at),
            None if self.is_part => self.arrived.push((task, at)),
            None => {}
        }
    }

    fn keep(&mut self, rank: u32, task: Task, is_on_its_way: bool, start: Time, end: Time) {
        let Window { ranks, from, to } = &self.window;
        if ranks.contains(&rank) && start <= *to && end >= *from {
            self.spans.push(Span { rank, op: task.op(), phase: task.phase(), is_on_its_way, start, end });
        }
    }
}
