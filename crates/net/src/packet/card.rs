use std::collections::VecDeque;

use sim::{EventQueue, Time};

use super::route::Hash;
use super::{Event, Message, NOWHERE, Packet, PacketNetwork, Routing};
use crate::topology::Trail;

/// A host's card: sends messages one after the other, in the order in which it was given them.
#[derive(Debug, Default)]
pub(super) struct Card {
    queue: VecDeque<u32>,
    /// Packets that go first: answers, and those that were lost.
    pub urgent: VecDeque<u32>,
    /// When the next message may start.
    next: Time,
    /// When it goes on, if there is anything to do.
    wake: Option<Time>,
    /// A packet waits for credit.
    is_stalled: bool,
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    pub from: u32,
    to: u32,
    pub token: u32,
    tell_sent: bool,
    /// Keeps the next one waiting; once.
    pays_gap: bool,
    /// Not before.
    at: Time,
    /// Bytes that are not yet in packets.
    left: u64,
    /// Packets that are.
    packets: u64,
    /// Of these, how many do not yet know when they will arrive.
    pub on_the_way: u64,
    /// Latest arrival of those that do.
    pub latest: Time,
}

impl Transfer {
    /// Whether all of it is in packets.
    pub fn is_sent(&self) -> bool {
        self.left == 0
    }
}

impl PacketNetwork {
    /// Gives a card a message to send, at `now` or, if it is not urgent, at a time to come.
    pub fn send<E: From<Event>>(&mut self, now: Time, at: Time, message: Message, queue: &mut EventQueue<E>) {
        let Message { from, to, bytes, token, tell_sent, is_urgent } = message;
        debug_assert!(from < self.hosts && to < self.hosts, "{from} to {to} of {} hosts", self.hosts);
        debug_assert!(!is_urgent || bytes <= u64::from(self.parameters.mtu), "an answer is a packet");
        let (pays_gap, left) = (!is_urgent, bytes.max(1));
        let (packets, on_the_way, latest) = (0, 0, Time::ZERO);
        let transfer = Transfer { from, to, token, tell_sent, pays_gap, at, left, packets, on_the_way, latest };
        let id = self.transfers.insert(transfer);
        if is_urgent && from != to {
            let packet = self.packet(id);
            self.cards[from as usize].urgent.push_back(packet);
        } else {
            self.cards[from as usize].queue.push_back(id);
        }
        self.kick(now, from, queue);
    }

    /// Has a card go on as soon as it can.
    pub(super) fn kick<E: From<Event>>(&mut self, now: Time, host: u32, queue: &mut EventQueue<E>) {
        let card = &mut self.cards[host as usize];
        if card.is_stalled {
            return;
        }
        let mut at = now.max(self.wires[self.topology.first(host) as usize].free);
        if card.urgent.is_empty() {
            let Some(&first) = card.queue.front() else { return };
            let transfer = &self.transfers[first];
            if transfer.packets == 0 {
                at = at.max(transfer.at).max(card.next);
            }
        }
        if card.wake.is_none_or(|wake| at < wake) {
            card.wake = Some(at);
            queue.push(at, Event::Card(host).into());
        }
    }

    /// Sends the next packet of a card.
    #[inline]
    pub(super) fn card_goes_on<E: From<Event>>(&mut self, now: Time, host: u32, queue: &mut EventQueue<E>) {
        let card = &mut self.cards[host as usize];
        // It may have been woken earlier, and then taken up what it was to do now.
        if card.wake != Some(now) || card.is_stalled {
            return;
        }
        card.wake = None;
        let packet = match card.urgent.pop_front() {
            Some(packet) => packet,
            None => {
                let Some(&first) = card.queue.front() else { return };
                let transfer = &self.transfers[first];
                if transfer.packets == 0 && now < transfer.at.max(card.next) {
                    return self.kick(now, host, queue);
                }
                if transfer.to == host {
                    return self.turn_around(now, host, queue);
                }
                let packet = self.packet(first);
                if self.transfers[first].is_sent() {
                    self.cards[host as usize].queue.pop_front();
                }
                packet
            }
        };
        self.packets[packet].joined = now;
        self.cards[host as usize].is_stalled = true;
        self.join(now, self.topology.first(host), 0, packet, queue);
    }

    /// Cuts the next packet of a message.
    fn packet(&mut self, id: u32) -> u32 {
        let transfer = &mut self.transfers[id];
        let to = transfer.to;
        let bytes = transfer.left.min(u64::from(self.parameters.mtu));
        let number = if self.parameters.routing == Routing::Adaptive { self.sent_packets + 1 } else { 0 };
        let hash = Hash::new(self.parameters.seed, transfer.from, to, number);
        transfer.left -= bytes;
        transfer.packets += 1;
        transfer.on_the_way += 1;
        self.sent_packets += 1;
        self.packets.insert(Packet {
            transfer: id,
            to,
            bytes: bytes as u32,
            hash,
            channel: NOWHERE,
            kind: 0,
            at: 0,
            next: 0,
            trail: Trail::default(),
            losses: 0,
            joined: Time::ZERO,
            sent: Time::ZERO,
        })
    }

    /// A packet of a message is on its card's link until `end`.
    pub(super) fn card_sent<E: From<Event>>(&mut self, id: u32, end: Time, queue: &mut EventQueue<E>) {
        let host = self.transfers[id].from;
        self.cards[host as usize].is_stalled = false;
        // A lost packet is not the last of its message.
        let is_last = self.transfers[id].is_sent() && self.cards[host as usize].queue.front() != Some(&id);
        if is_last {
            self.message_sent(host, id, end, queue);
        }
        self.kick(end, host, queue);
    }

    /// The last byte of a message leaves at `end`.
    fn message_sent<E: From<Event>>(&mut self, host: u32, id: u32, end: Time, queue: &mut EventQueue<E>) {
        let transfer = &mut self.transfers[id];
        if std::mem::take(&mut transfer.tell_sent) {
            queue.push(end, Event::Sent(id).into());
        }
        if std::mem::take(&mut transfer.pays_gap) {
            // LogGP: g and the bytes after the first.
            let gap = self.parameters.gap.saturating_sub(self.kind(self.topology.first(host)).transmission(1));
            let card = &mut self.cards[host as usize];
            card.next = card.next.max(end.saturating_add(gap));
        }
    }

    /// Sends the whole of a message to the card itself.
    fn turn_around<E: From<Event>>(&mut self, now: Time, host: u32, queue: &mut EventQueue<E>) {
        let Some(id) = self.cards[host as usize].queue.pop_front() else { return };
        let link = self.topology.first(host);
        let rate = self.kind(link).gap_per_byte;
        let transfer = &mut self.transfers[id];
        let end = now.saturating_add(rate.time(transfer.left));
        transfer.left = 0;
        self.message_sent(host, id, end, queue);
        queue.push(end, Event::Arrived(id).into());
        let free = &mut self.wires[link as usize].free;
        *free = end.max(*free);
        self.kick(now, host, queue);
    }
}
