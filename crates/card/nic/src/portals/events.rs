//! Event queues and counting events.

use std::collections::VecDeque;

use abi::portals::{CtEvent, Event, EventKind};
use sim::memory::push_back_frugally;

use super::triggered::TriggeredOp;

/// A full event queue: a ring that loses the oldest event when it is full (Portals 4.3 §3.13).
#[derive(Debug)]
pub struct EventRing {
    events: VecDeque<Event>,
    capacity: usize,
    lost: bool,
    /// Slots promised to messages that are under way to flow-controlled portal table entries.
    pub promised: usize,
    /// Extra slots, one for the `PTL_EVENT_PT_DISABLED` of each flow-controlled portal table entry.
    pub reserved: usize,
}

impl EventRing {
    /// A queue with room for `capacity` events.
    pub fn new(capacity: usize) -> EventRing {
        EventRing { events: VecDeque::new(), capacity: capacity.max(1), lost: false, promised: 0, reserved: 0 }
    }

    /// Adds an event.
    pub fn post(&mut self, event: Event) {
        if self.events.len() >= self.capacity + self.reserved {
            // News of flow control is never lost: the oldest other event goes.
            let oldest = self.events.iter().position(|event| event.kind != EventKind::PtDisabled as u8);
            self.events.remove(oldest.unwrap_or(0));
            self.lost = true;
        }
        push_back_frugally(&mut self.events, event);
    }

    /// Takes the oldest event, and whether others were lost before it.
    pub fn take(&mut self) -> Option<(Event, bool)> {
        let event = self.events.pop_front()?;
        Some((event, std::mem::take(&mut self.lost)))
    }

    /// Returns the events that will be taken next, oldest first, if none was lost before them and it is unlikely that one will be: the
    /// queue is at most half full.
    pub fn known(&self) -> impl Iterator<Item = &Event> {
        let is_safe = !self.lost && self.events.len() <= self.capacity / 2;
        self.events.iter().take(if is_safe { self.events.len() } else { 0 })
    }

    /// Whether there is room for this number of further events.
    pub fn has_room(&self, events: usize) -> bool {
        self.events.len() + self.promised + events <= self.capacity
    }
}

/// A counting event with the operations that wait for it.
#[derive(Debug, Default)]
pub struct Counter {
    /// Its value.
    pub value: CtEvent,
    /// Number of messages that have ended on entries which name this counter, but have no option by which it counts them.
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

    /// Takes the next operation that may fire now.
    pub fn take_due(&mut self) -> Option<TriggeredOp> {
        let reached = self.value.success.saturating_add(self.value.failure);
        match self.waiting.first() {
            Some((threshold, _)) if *threshold <= reached => Some(self.waiting.remove(0).1),
            _ => None,
        }
    }

    /// Drops the waiting operations and tells how many there were.
    pub fn cancel(&mut self) -> usize {
        std::mem::take(&mut self.waiting).len()
    }

    /// Number of waiting operations.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }
}
