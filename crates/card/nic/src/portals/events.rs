// SPDX-License-Identifier: Apache-2.0
//! Event queues and counting events.

use std::collections::VecDeque;

use abi::portals::{CtEvent, Event, EventKind};
use sim::memory::push_back_frugally;

use super::triggered::TriggeredOp;

/// A full event queue: a ring that overwrites the oldest event when full (Portals 4.3 §3.13).
#[derive(Debug)]
pub struct EventRing {
    events: VecDeque<Event>,
    capacity: usize,
    lost: bool,
    /// Slots promised to messages in flight to flow-controlled portal table entries.
    pub promised: usize,
    /// Extra slots, one for the `PTL_EVENT_PT_DISABLED` of each flow-controlled portal table entry.
    pub reserved: usize,
}

impl EventRing {
    /// Creates a queue for `capacity` events.
    pub fn new(capacity: usize) -> EventRing {
        EventRing { events: VecDeque::new(), capacity: capacity.max(1), lost: false, promised: 0, reserved: 0 }
    }

    /// Adds an event.
    pub fn post(&mut self, event: Event) {
        if self.events.len() >= self.capacity + self.reserved {
            // Flow-control events are never lost: the oldest other event is overwritten.
            let oldest = self.events.iter().position(|event| event.kind != EventKind::PtDisabled as u8);
            self.events.remove(oldest.unwrap_or(0));
            self.lost = true;
        }
        push_back_frugally(&mut self.events, event);
    }

    /// Takes the oldest event, with true if earlier ones were lost.
    pub fn take(&mut self) -> Option<(Event, bool)> {
        let event = self.events.pop_front()?;
        Some((event, std::mem::take(&mut self.lost)))
    }

    /// Returns the events that are taken next, oldest first. Empty if one was lost before them, or if a loss is likely:
    /// the queue is more than half full.
    pub fn known(&self) -> impl Iterator<Item = &Event> {
        let is_safe = !self.lost && self.events.len() <= self.capacity / 2;
        self.events.iter().take(if is_safe { self.events.len() } else { 0 })
    }

    /// Returns true if `events` further events fit.
    pub fn has_room(&self, events: usize) -> bool {
        self.events.len() + self.promised + events <= self.capacity
    }
}

/// A counting event, and the operations that wait for it.
#[derive(Debug, Default)]
pub struct Counter {
    /// Value.
    pub value: CtEvent,
    /// Number of messages that ended on entries that name this counter without the option to count them.
    pub uncounted: u64,
    /// Waiting operations by threshold, then by order of posting.
    waiting: Vec<(u64, TriggeredOp)>,
}

impl Counter {
    /// Adds an operation that fires when success + failure reaches `threshold`.
    pub fn add(&mut self, threshold: u64, op: TriggeredOp) {
        let place = self.waiting.partition_point(|(other, _)| *other <= threshold);
        self.waiting.insert(place, (threshold, op));
    }

    /// Takes the next operation that is due.
    pub fn take_due(&mut self) -> Option<TriggeredOp> {
        let reached = self.value.success.saturating_add(self.value.failure);
        match self.waiting.first() {
            Some((threshold, _)) if *threshold <= reached => Some(self.waiting.remove(0).1),
            _ => None,
        }
    }

    /// Drops the waiting operations and returns their number.
    pub fn cancel(&mut self) -> usize {
        std::mem::take(&mut self.waiting).len()
    }

    /// Returns the number of waiting operations.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
