// SPDX-License-Identifier: Apache-2.0
//! A bench of cards with one event queue.

use std::collections::VecDeque;
use std::rc::Rc;

use accel::Printed;
use sim::{EventQueue, SerialResource, Time, TimePerByte};

use crate::accelerator::CardModel;
use crate::card::Nic;
use crate::drops::{DropReason, Drops};
use crate::event::NicEvent;
use crate::message::{Header, Packet};
use crate::portals::InternalError;
use crate::ports::{Departure, MemoryFault, Notice, Ports, Slice};

/// Environment of the cards of a [`Bench`]: host memories, the wire, and observers.
pub trait Surroundings {
    /// Reads the memory of a node's host.
    ///
    /// # Errors
    /// Returns an error if some of the bytes are unreadable.
    fn read(&mut self, node: usize, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault>;

    /// Writes the memory of a node's host.
    ///
    /// # Errors
    /// Returns an error if some of the bytes are not writable.
    fn write(&mut self, now: Time, node: usize, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault>;

    /// Returns the time from the departure of a packet's first byte to its arrival; `None` if the packet has no
    /// receiver.
    fn latency(&self, from: usize, to: usize) -> Option<Time>;

    /// Observes a packet that a card put on the wire; its first byte leaves at `depart`.
    fn transmitted(&mut self, now: Time, depart: Time, packet: &Packet);

    /// Observes a card's notification of its host.
    fn notified(&mut self, now: Time, node: usize, notice: Notice);

    /// Observes a warning of a card to the user.
    fn warned(&mut self, now: Time, node: usize, message: String);

    /// Observes a slice of a card's timeline.
    fn sliced(&mut self, node: usize, slice: Slice<'_>);
}

/// Cards with one event queue.
pub struct Bench<S> {
    /// Cards, by node.
    pub cards: Vec<Nic>,
    /// Environment of the cards.
    pub around: S,
    /// Current time.
    pub now: Time,
    /// Peak number of pending events.
    pub most_events: usize,
    /// True if the network is full: packets are blocked until [`Bench::admit`].
    pub is_full: bool,
    senders: Vec<Sender>,
    gap_per_byte: TimePerByte,
    queue: EventQueue<(usize, NicEvent)>,
}

/// Sending port of a card.
#[derive(Clone, Debug, Default)]
struct Sender {
    port: SerialResource,
    /// Bytes and gap of the blocked packets.
    blocked: VecDeque<(u64, Time)>,
}

impl Sender {
    fn depart(&mut self, now: Time, bytes: u64, rate: TimePerByte, gap: Time) -> Departure {
        let (start, end) = self.port.reserve(now, bytes, rate, gap);
        Departure { ticket: 0, start, end }
    }
}

/// Ports of one node's card.
pub struct BenchPorts<'a, S> {
    now: Time,
    node: usize,
    around: &'a mut S,
    sender: &'a mut Sender,
    is_full: bool,
    gap_per_byte: TimePerByte,
    queue: &'a mut EventQueue<(usize, NicEvent)>,
    most_events: &'a mut usize,
}

impl<S: Surroundings> Bench<S> {
    /// Creates cards of one machine for `nodes` nodes, whose processes have this user id.
    pub fn new(model: &Rc<CardModel>, nodes: u32, uid: u32, around: S) -> Bench<S> {
        let cards = (0..nodes).map(|node| Nic::new(model.clone(), node, nodes, uid)).collect();
        Bench {
            cards,
            around,
            now: Time::ZERO,
            most_events: 0,
            is_full: false,
            senders: vec![Sender::default(); nodes as usize],
            gap_per_byte: model.machine().network.gap_per_byte,
            queue: EventQueue::default(),
        }
    }

    /// Runs `act` on a card at the current time.
    pub fn act<R>(&mut self, node: usize, act: impl FnOnce(&mut Nic, &mut BenchPorts<'_, S>) -> R) -> R {
        let Bench { cards, around, now, most_events, is_full, senders, gap_per_byte, queue } = self;
        let (is_full, gap_per_byte, sender) = (*is_full, *gap_per_byte, &mut senders[node]);
        let mut ports = BenchPorts { now: *now, node, around, sender, is_full, gap_per_byte, queue, most_events };
        act(&mut cards[node], &mut ports)
    }

    /// Admits the first blocked packet of a card at the current time; returns false if none is blocked.
    pub fn admit(&mut self, node: usize) -> bool {
        let Some((bytes, gap)) = self.senders[node].blocked.pop_front() else { return false };
        let departure = self.senders[node].depart(self.now, bytes, self.gap_per_byte, gap);
        self.act(node, |card, ports| card.handle(NicEvent::Departs(Box::new(departure)), ports));
        true
    }

    /// Schedules the arrival of a packet's first byte at its target card at `at`.
    pub fn arrive(&mut self, at: Time, packet: Packet) {
        let node = packet.header.target as usize;
        self.act(node, |_, ports| ports.schedule(at, NicEvent::Arrive(Box::new(packet))));
    }

    /// Handles the next event; returns false if there is none.
    ///
    /// # Panics
    /// Panics if time would go backwards.
    pub fn step(&mut self) -> bool {
        let Some((at, (node, event))) = self.queue.pop() else { return false };
        assert!(at >= self.now, "an event of {at} is handled at {}", self.now);
        self.now = at;
        self.act(node, |card, ports| card.handle(event, ports));
        true
    }

    /// Handles all events up to `end`, the new current time.
    pub fn run_until(&mut self, end: Time) {
        while self.queue.peek_time().is_some_and(|at| at <= end) {
            self.step();
        }
        self.now = self.now.max(end);
    }

    /// Handles all events; returns the time of the last one.
    pub fn run(&mut self) -> Time {
        while self.step() {}
        self.now
    }

    /// Executes the next work item of a node's CPU; returns false if there is none.
    pub fn complete(&mut self, node: usize) -> bool {
        let due = self.cards[node].next_completion().is_some();
        self.act(node, |card, ports| card.process_completion(ports));
        due
    }

    /// Handles all events, and executes the CPUs' work items immediately.
    pub fn settle(&mut self) -> Time {
        loop {
            self.run();
            if !(0..self.cards.len()).any(|node| self.complete(node)) {
                return self.now;
            }
        }
    }
}

impl<S: Surroundings> Ports for BenchPorts<'_, S> {
    fn now(&self) -> Time {
        self.now
    }

    fn horizon(&self) -> Time {
        self.queue.peek_time().unwrap_or(Time::MAX)
    }

    fn schedule(&mut self, at: Time, event: NicEvent) {
        assert!(at >= self.now, "an event is scheduled for {at} at {}", self.now);
        self.queue.push(at, (self.node, event));
        *self.most_events = self.queue.len().max(*self.most_events);
    }

    fn inject(&mut self, _: u32, bytes: u64, gap: Time) -> Option<Departure> {
        if self.is_full || !self.sender.blocked.is_empty() {
            self.sender.blocked.push_back((bytes, gap));
            return None;
        }
        Some(self.sender.depart(self.now, bytes, self.gap_per_byte, gap))
    }

    fn transmit(&mut self, departure: Departure, packet: Box<Packet>) {
        let depart = departure.start;
        assert!(depart >= self.now, "a packet leaves at {depart}, before {}", self.now);
        self.around.transmitted(self.now, depart, &packet);
        let target = packet.header.target as usize;
        if let Some(latency) = self.around.latency(self.node, target) {
            self.queue.push(depart + latency, (target, NicEvent::Arrive(packet)));
            *self.most_events = self.queue.len().max(*self.most_events);
        }
    }

    fn give_up(&mut self, header: Rc<Header>, place: u64) {
        self.queue.push(self.now, (header.target as usize, NicEvent::GivenUp(header, place)));
    }

    fn is_lossy(&self) -> bool {
        false
    }

    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.around.read(self.node, addr, out)
    }

    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.around.write(self.now, self.node, addr, bytes)
    }

    fn memory_rate(&mut self, rate: TimePerByte, _: u64, _: impl FnOnce() -> Time) -> TimePerByte {
        rate
    }

    fn notify(&mut self, notice: Notice) {
        self.around.notified(self.now, self.node, notice);
    }

    fn name_of(&self, node: u32) -> String {
        format!("node {node}")
    }

    fn warn(&mut self, message: String) {
        self.around.warned(self.now, self.node, message);
    }

    fn dropped(&mut self, _: DropReason, _: Drops) {}

    fn found(&mut self, _: u32, _: String) {}

    fn print(&mut self, printed: Printed) {
        self.around.warned(printed.at, self.node, printed.text);
    }

    fn internal_error(&mut self, error: InternalError) {
        panic!("node {}: {error}", self.node);
    }

    fn tracing(&self) -> bool {
        true
    }

    fn slice(&mut self, slice: Slice<'_>) {
        assert!(slice.start <= slice.end, "{slice:?} ends before it starts");
        self.around.sliced(self.node, slice);
    }
}
