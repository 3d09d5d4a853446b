// SPDX-License-Identifier: Apache-2.0
//! Message table of a card: numbers each message, delivers its header packet first ("header first", PsPIN §III-D2), and
//! marks its last packet.

use std::cmp::Reverse;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::field::Match;
use crate::frame::Frame;
use crate::rules::{Action, Processing, Rule};

/// Outcome of a packet's arrival.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate<T> {
    /// The packet is ready, as are packets that waited for it: [`Matcher::next_ready`].
    Ready,
    /// The packet waits for the header packet of its message.
    Held,
    /// The packet is for the host: a rule says so, or no rule matches.
    Host(T),
    /// A rule discards it.
    Dropped(T),
    /// The packet is discarded: it arrives before its header packet, and the maximum number of packets already waits.
    Overtook(T),
}

/// A packet ready for handlers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ready<T> {
    /// Packet.
    pub packet: T,
    /// Index of the matching rule, in the order in which rules were given.
    pub rule: usize,
    /// Message number, never reused.
    pub message: u64,
    /// True for the header packet of the message.
    pub is_first: bool,
    /// True for the last packet of the message.
    pub is_last: bool,
    /// Number of bytes copied to the handlers' memory.
    pub transfer: usize,
}

/// Rule, and the values of the fields that identify the message.
type Key = (usize, Vec<Option<u128>>);

/// An incomplete message.
struct Open<T> {
    number: u64,
    /// Number of packets and payload bytes that have arrived.
    packets: u64,
    bytes: u64,
    /// Payload bytes announced by the header packet.
    length: Option<u64>,
    has_header: bool,
    has_ended: bool,
    /// Packets that wait for the header packet, and the number of bytes that handlers get.
    held: Vec<(T, usize)>,
}

/// Sorts packets of type `T` into messages.
pub struct Matcher<T> {
    /// Rules and their indices, by descending priority.
    rules: Vec<(usize, Rule)>,
    open: FxHashMap<Key, Open<T>>,
    /// Scratch key of the arriving packet, kept for its allocation.
    key: Key,
    ready: VecDeque<Ready<T>>,
    next_message: u64,
    held: usize,
    most_held: usize,
}

impl<T> Matcher<T> {
    /// Creates a table of these rules; at most `most_held` packets wait for header packets.
    pub fn new(rules: Vec<Rule>, most_held: usize) -> Matcher<T> {
        let mut rules: Vec<(usize, Rule)> = rules.into_iter().enumerate().collect();
        rules.sort_by_key(|(_, rule)| Reverse(rule.priority));
        Matcher {
            rules,
            open: FxHashMap::default(),
            key: Key::default(),
            ready: VecDeque::new(),
            next_message: 0,
            held: 0,
            most_held,
        }
    }

    /// Returns the number of packets that wait for header packets.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Returns the number of incomplete messages.
    pub fn open(&self) -> usize {
        self.open.len()
    }

    /// Processes the arrival of a packet.
    pub fn arrive(&mut self, frame: &Frame<'_>, packet: T) -> Fate<T> {
        let all = |matches: &[Match]| matches.iter().all(|one| one.holds(frame));
        let Some((number, rule)) = self.rules.iter().find(|(_, rule)| all(&rule.matches)) else {
            return Fate::Host(packet);
        };
        let rule_number = *number;
        let processing = match &rule.action {
            Action::Host => return Fate::Host(packet),
            Action::Drop => return Fate::Dropped(packet),
            Action::Context(processing) => processing,
        };
        self.key.0 = rule_number;
        self.key.1.clear();
        self.key.1.extend(processing.message.iter().map(|field| field.of(frame)));
        let open = self.open.get(&self.key);
        let is_header = match open {
            Some(open) if open.has_header => false,
            _ => all(&processing.header),
        };
        let has_header = is_header || open.is_some_and(|open| open.has_header);
        if !has_header && self.held == self.most_held {
            return Fate::Overtook(packet);
        }
        let transfer = processing.transfer.of(frame);
        if open.is_none() {
            self.open.insert(self.key.clone(), Open::new(self.next_message));
            self.next_message += 1;
        }
        let open = self.open.get_mut(&self.key).expect("inserted above, unless it was there");
        open.count(processing, frame, is_header);
        if !has_header {
            open.held.push((packet, transfer));
            self.held += 1;
            return Fate::Held;
        }
        self.held -= open.held.len();
        let waiting = open.held.drain(..).map(|(packet, transfer)| (packet, transfer, false));
        let mut packets = std::iter::once((packet, transfer, is_header)).chain(waiting).peekable();
        while let Some((packet, transfer, is_first)) = packets.next() {
            let is_last = open.has_ended && packets.peek().is_none();
            let message = open.number;
            self.ready.push_back(Ready { packet, rule: rule_number, message, is_first, is_last, transfer });
        }
        drop(packets);
        if open.has_ended {
            self.open.remove(&self.key);
        }
        Fate::Ready
    }

    /// Returns the next packet ready for handlers.
    pub fn next_ready(&mut self) -> Option<Ready<T>> {
        self.ready.pop_front()
    }

    /// Aborts a message. A later packet with the same key starts a new message. Returns the packets that waited for its
    /// header packet.
    pub fn forget(&mut self, message: u64) -> Vec<T> {
        let Some(key) = self.open.iter().find(|(_, open)| open.number == message).map(|(key, _)| key.clone()) else {
            return Vec::new();
        };
        let held = self.open.remove(&key).map_or(Vec::new(), |open| open.held);
        self.held -= held.len();
        held.into_iter().map(|(packet, _)| packet).collect()
    }
}

impl<T> Open<T> {
    fn new(number: u64) -> Open<T> {
        Open { number, packets: 0, bytes: 0, length: None, has_header: false, has_ended: false, held: Vec::new() }
    }

    /// Counts a packet and checks if the message is complete.
    fn count(&mut self, processing: &Processing, frame: &Frame<'_>, is_header: bool) {
        let end = &processing.end;
        self.packets += 1;
        self.bytes += frame.payload().len() as u64;
        if is_header {
            self.has_header = true;
            let length = end.bytes.and_then(|field| field.of(frame));
            self.length = length.map(|bytes| u64::try_from(bytes).unwrap_or(u64::MAX));
        }
        self.has_ended |= !end.matches.is_empty() && end.matches.iter().all(|one| one.holds(frame))
            || end.packets.is_some_and(|packets| self.packets >= packets.into())
            || self.length.is_some_and(|length| self.bytes >= length);
    }
}
