use sim::{EventQueue, Time};

use super::route::Hash;
use super::slab::Slab;
use super::{Event, Message, Packet, PacketNetwork, Routing};

/// A host's card: sends messages one after the other, in the order in which it was given them.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Card {
    /// Of messages.
    queue: List,
    /// Of packets that go first: answers, and those that were lost.
    urgent: List,
    /// When the next message may start.
    next: Time,
    /// When it goes on, if there is anything to do; else [`Time::MAX`].
    wake: Time,
    /// A packet waits for credit.
    is_stalled: bool,
}

impl Card {
    pub const IDLE: Card =
        Card { queue: List::EMPTY, urgent: List::EMPTY, next: Time::ZERO, wake: Time::MAX, is_stalled: false };

    /// The message that it sends or will send next.
    #[inline]
    pub fn first(&self) -> Option<u32> {
        self.queue.first()
    }
}

/// Members of a slab, one after the other; each knows the next.
#[derive(Clone, Copy, Debug)]
struct List {
    first: u32,
    last: u32,
}

const NOBODY: u32 = u32::MAX;

/// Who can be in a [`List`].
trait Member {
    fn next(&mut self) -> &mut u32;
}

impl Member for Transfer {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl Member for Packet {
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

impl List {
    const EMPTY: List = List { first: NOBODY, last: NOBODY };

    #[inline]
    fn first(self) -> Option<u32> {
        (self.first != NOBODY).then_some(self.first)
    }

    #[inline]
    fn push<T: Member>(&mut self, number: u32, all: &mut Slab<T>) {
        if self.first == NOBODY {
            self.first = number;
        } else {
            *all[self.last].next() = number;
        }
        self.last = number;
    }

    #[inline]
    fn pop<T: Member>(&mut self, all: &mut Slab<T>) -> Option<u32> {
        let first = self.first()?;
        self.first = if first == self.last { NOBODY } else { *all[first].next() };
        Some(first)
    }
}

/// A message on its way.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
pub(super) struct Transfer {
    pub from: u32,
    to: u32,
    pub token: u32,
    /// Behind it in the queue of its card.
    next: u32,
    tell_sent: bool,
    /// Keeps the next one waiting; once.
    pays_gap: bool,
    /// Some of it is in packets.
    is_begun: bool,
    /// Not before.
    at: Time,
    /// Bytes that are not yet in packets.
    left: u64,
    /// Packets of it that do not yet know when they will arrive.
    pub on_the_way: u32,
    /// Latest arrival of those that do.
    pub latest: Time,
}

impl Transfer {
    pub const NEW: Transfer = Transfer {
        from: 0,
        to: 0,
        token: 0,
        next: NOBODY,
        tell_sent: false,
        pays_gap: false,
        is_begun: false,
        at: Time::ZERO,
        left: 0,
        on_the_way: 0,
        latest: Time::ZERO,
    };

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
        let id = self.transfers.insert(Transfer { from, to, token, tell_sent, pays_gap, at, left, ..Transfer::NEW });
        if is_urgent && from != to {
            let packet = self.packet(id);
            self.hurry(from, packet);
        } else {
            self.cards[from as usize].queue.push(id, &mut self.transfers);
        }
        self.kick(now, from, queue);
    }

    /// Has a card send a packet before all messages.
    pub(super) fn hurry(&mut self, host: u32, packet: u32) {
        self.cards[host as usize].urgent.push(packet, &mut self.packets);
    }

    /// Has a card go on as soon as it can.
    pub(super) fn kick<E: From<Event>>(&mut self, now: Time, host: u32, queue: &mut EventQueue<E>) {
        let card = &mut self.cards[host as usize];
        if card.is_stalled {
            return;
        }
        let mut at = now.max(self.wires[self.topology.first(host) as usize].free);
        if card.urgent.first().is_none() {
            let Some(first) = card.queue.first() else { return };
            let transfer = &self.transfers[first];
            if !transfer.is_begun {
                at = at.max(transfer.at).max(card.next);
            }
        }
        if at < card.wake {
            card.wake = at;
            queue.push(at, Event::Card(host).into());
        }
    }

    /// Sends the next packet of a card.
    #[inline]
    pub(super) fn card_goes_on<E: From<Event>>(&mut self, now: Time, host: u32, queue: &mut EventQueue<E>) {
        let card = &mut self.cards[host as usize];
        // It may have been woken earlier, and then taken up what it was to do now.
        if card.wake != now || card.is_stalled {
            return;
        }
        card.wake = Time::MAX;
        let packet = match card.urgent.pop(&mut self.packets) {
            Some(packet) => packet,
            None => {
                let Some(first) = card.queue.first() else { return };
                let transfer = &self.transfers[first];
                if !transfer.is_begun && now < transfer.at.max(card.next) {
                    return self.kick(now, host, queue);
                }
                if transfer.to == host {
                    return self.turn_around(now, host, queue);
                }
                let packet = self.packet(first);
                if self.transfers[first].is_sent() {
                    self.cards[host as usize].queue.pop(&mut self.transfers);
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
        transfer.is_begun = true;
        transfer.on_the_way += 1;
        self.sent_packets += 1;
        self.packets.insert(Packet { transfer: id, to, bytes: bytes as u32, hash, ..Packet::NEW })
    }

    /// A packet of a message is on its card's link until `end`.
    pub(super) fn card_sent<E: From<Event>>(&mut self, id: u32, end: Time, queue: &mut EventQueue<E>) {
        let host = self.transfers[id].from;
        self.cards[host as usize].is_stalled = false;
        // A lost packet is not the last of its message.
        let is_last = self.transfers[id].is_sent() && self.cards[host as usize].queue.first() != Some(id);
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
        let Some(id) = self.cards[host as usize].queue.pop(&mut self.transfers) else { return };
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
