// SPDX-License-Identifier: Apache-2.0
//! Hosts that send messages over a fabric.

use std::sync::Arc;

use sim::memory::{HugePageSlice, prefetch};
use sim::{DelayQueue, Time};

use super::in_flight::{Announcement, InFlightMessage};
use super::pace::Pace;
use super::scope::{Parcels, Part, Scope, Whole};
use crate::fabric::{
    self, Arrival, Edge, Fabric, Frame, Left, NewPacket, Packet, Parameters, Report, ReturnedCredit, Rounding, Signal,
    ranges,
};
use crate::order::{Class, key};
use crate::partition::Partition;
use crate::slab::{List, Slab};
use crate::{NetError, Topology};

/// An event of the network, in 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// An event of the fabric.
    Fabric(fabric::Event),
    /// A host continues to send.
    Send(u32),
    /// The last byte of a message leaves its host.
    Sent(u32),
    /// The last byte of a message arrives.
    Arrived(u32),
    /// A receiver may pull the next packet.
    Pull(u32),
}

/// A notice from the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The last byte of the message with this token has left its host. Sent only on request.
    Sent(u32),
    /// A whole message has arrived.
    Arrived {
        /// Token of the message.
        token: u32,
        /// Receiving host.
        to: u32,
    },
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Sending host.
    pub from: u32,
    /// Receiving host. A message to the same host turns around in it and uses no link.
    pub to: u32,
    /// Size in bytes; an empty message costs as much as one of one byte.
    pub bytes: u64,
    /// Token that identifies it in [`Notice`]s.
    pub token: u32,
    /// True to request a notice of its departure.
    pub tell_sent: bool,
    /// True for a message that overtakes all other messages of the host, between two packets, and pays no gap, like a
    /// card's own answers. Such a message has one packet.
    pub is_urgent: bool,
}

/// Hosts that send messages over a fabric, or those of a [`Part`](super::Part) of it.
#[derive(Debug)]
pub struct MessageNetwork<S = Whole> {
    pub(super) fabric: Fabric,
    pub(super) hosts: Hosts,
    pub(super) scope: S,
}

/// Hosts and their messages.
#[derive(Debug)]
pub(super) struct Hosts {
    senders: HugePageSlice<Sender>,
    pub messages: Slab<InFlightMessage>,
    pace: Pace,
    /// Minimum time between the starts of two messages, in addition to the bytes after the first.
    gap: Time,
}

/// A host, which sends its messages in sequence, in the order of submission.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Sender {
    /// Waiting messages.
    queue: List,
    /// Packets with priority: answers, and packets that were lost.
    urgent: List,
    /// Earliest start of the next message.
    next: Time,
    /// Time at which it continues; [`Time::MAX`] if idle.
    wake: Time,
    /// True while a packet waits for credit.
    is_stalled: bool,
}

impl Sender {
    const IDLE: Sender =
        Sender { queue: List::EMPTY, urgent: List::EMPTY, next: Time::ZERO, wake: Time::MAX, is_stalled: false };
}

/// Next item that a host sends.
#[derive(Clone, Copy, Debug)]
enum Next {
    /// A packet that arrived without its data.
    Refused(u32),
    /// A packet of a message, which follows the message `before` in the queue.
    Message { before: Option<u32>, message: u32 },
}

/// Hosts and event queue, as the fabric's edge.
struct Edges<'a, E, S> {
    hosts: &'a mut Hosts,
    scope: &'a mut S,
    queue: &'a mut DelayQueue<E>,
}

impl<E: Copy + From<Event>, S: Scope> Edge for Edges<'_, E, S> {
    #[inline]
    fn schedule(&mut self, at: Time, key: u64, event: fabric::Event) {
        self.queue.push(at, key, Event::Fabric(event).into());
    }

    #[inline(always)]
    fn has_vertex(&self, vertex: u32) -> bool {
        self.scope.has_vertex(vertex)
    }

    #[inline(always)]
    fn has_link(&self, link: u32) -> bool {
        self.scope.has_link(link)
    }

    fn send_packet(&mut self, vertex: u32, packet: Packet, subject: Option<Packet>) {
        self.scope.send_packet(vertex, packet, subject, &self.hosts.messages);
    }

    fn send_back(&mut self, packet: Packet) {
        self.scope.send_back(packet, &self.hosts.messages);
    }

    fn return_credit(&mut self, link: u32, credit: ReturnedCredit) {
        self.scope.return_credit(link, credit);
    }

    fn send_frame(&mut self, link: u32, frame: Frame) {
        self.scope.send_frame(link, frame);
    }

    #[inline]
    fn left(&mut self, left: Left) {
        self.hosts.packet_left(left, self.queue);
    }

    /// No link of these networks damages packets.
    fn lost(&mut self, _: u32, _: Time) {}

    /// Counts an arriving packet; the last one completes its message.
    fn arrives(&mut self, Arrival { token, last, .. }: Arrival) {
        let message = &mut self.hosts.messages[token];
        message.on_the_way -= 1;
        message.latest = message.latest.max(last);
        if message.on_the_way == 0 && message.is_sent() {
            self.queue.push(message.latest, key(Class::Arrived, message.to), Event::Arrived(token).into());
        }
    }
}

impl MessageNetwork {
    /// Creates an empty network.
    ///
    /// # Errors
    /// If a parameter is invalid.
    pub fn new(topology: impl Into<Arc<Topology>>, parameters: Parameters) -> Result<MessageNetwork, NetError> {
        MessageNetwork::with_scope(topology.into(), parameters, Whole)
    }
}

impl<S: Scope> MessageNetwork<S> {
    /// Creates an empty network, or its part in a scope.
    ///
    /// # Errors
    /// If a parameter is invalid.
    pub(super) fn with_scope(
        topology: Arc<Topology>,
        parameters: Parameters,
        scope: S,
    ) -> Result<MessageNetwork<S>, NetError> {
        let gap = parameters.gap;
        let fabric = Fabric::of_vertices(topology, parameters, Rounding::Up, |vertex| scope.has_vertex(vertex))?;
        let hosts = fabric.topology().hosts();
        let own = ranges(hosts, |host| scope.has_vertex(host));
        // SAFETY: a sender of zero bytes is valid.
        let senders = unsafe { HugePageSlice::partly_filled(Sender::IDLE, hosts as usize, &own) };
        let pace = Pace::new(fabric.parameters(), hosts);
        let hosts = Hosts { senders, messages: Slab::new(InFlightMessage::NEW), pace, gap };
        Ok(MessageNetwork { fabric, hosts, scope })
    }

    /// Returns the topology.
    pub fn topology(&self) -> &Topology {
        self.fabric.topology()
    }

    /// Returns the number of packet hops over links so far.
    pub fn packet_hops(&self) -> u64 {
        self.fabric.packet_hops()
    }

    /// Returns the number of messages that have not arrived.
    pub fn in_flight(&self) -> usize {
        self.hosts.messages.len()
    }

    /// Returns the statistics up to `end`, with at most `busiest` links of highest utilization.
    pub fn report(&self, end: Time, busiest: usize) -> Report {
        self.fabric.report(end, busiest)
    }

    /// Handles an event at `now`.
    #[inline]
    pub fn handle<E: Copy + From<Event>>(
        &mut self,
        now: Time,
        event: Event,
        queue: &mut DelayQueue<E>,
    ) -> Option<Notice> {
        match event {
            Event::Fabric(event) => {
                let MessageNetwork { fabric, hosts, scope } = self;
                let signal = fabric.handle(now, event, &mut Edges { hosts, scope, queue });
                if let Some(signal) = signal {
                    self.heed(now, signal, queue);
                }
                None
            }
            Event::Pull(host) => {
                self.pull(now, host, queue);
                None
            }
            Event::Send(host) => {
                self.go_on(now, host, queue);
                None
            }
            Event::Sent(message) => Some(Notice::Sent(self.hosts.messages[message].token)),
            Event::Arrived(message) => {
                let InFlightMessage { token, from, to, origin, .. } = self.hosts.messages.remove(message);
                if !self.scope.has_vertex(from) {
                    self.scope.is_received(from, origin);
                }
                Some(Notice::Arrived { token, to })
            }
        }
    }

    /// Handles a signal of the fabric to the hosts.
    fn heed<E: Copy + From<Event>>(&mut self, now: Time, signal: Signal, queue: &mut DelayQueue<E>) {
        match signal {
            Signal::Resend(packet) => {
                let from = self.fabric.packets()[packet].from;
                self.hurry(from, packet);
                self.kick(now, from, queue);
            }
            Signal::Congested(from, to) => {
                let fs = self.fabric.kind(self.fabric.link_of(from)).gap_per_byte.as_fs_per_byte();
                self.hosts.pace.congested(now, from, to, 1000.0 / fs.max(1) as f64);
            }
            Signal::Received { from, to, is_trimmed } => {
                if self.hosts.pace.received(from, to, is_trimmed) {
                    self.pull(now, to, queue);
                }
            }
            Signal::Refused(packet) => {
                let Packet { from, to, .. } = self.fabric.packets()[packet];
                self.hosts.pace.refused(from, to, packet);
                self.kick(now, from, queue);
            }
            Signal::Pulled(from, to) => {
                self.hosts.pace.pulled(from, to);
                self.kick(now, from, queue);
            }
        }
    }

    /// Makes a receiver pull a packet, and schedules the next pull after the transmission time of that packet.
    fn pull<E: Copy + From<Event>>(&mut self, now: Time, host: u32, queue: &mut DelayQueue<E>) {
        let Some(from) = self.hosts.pace.turn(host) else { return };
        let packet = self.fabric.parameters().mtu;
        let next = now + self.fabric.kind(self.fabric.link_of(host)).transmission(packet);
        queue.push(next, key(Class::Pull, host), Event::Pull(host).into());
        let MessageNetwork { fabric, hosts, scope } = self;
        fabric.pull(now, from, host, &mut Edges { hosts, scope, queue });
    }

    /// Submits a message to a host, at `now` or, if it is not urgent, at a future time.
    pub fn send<E: Copy + From<Event>>(&mut self, now: Time, at: Time, message: Message, queue: &mut DelayQueue<E>) {
        let Message { from, to, bytes, token, tell_sent, is_urgent } = message;
        debug_assert!(from.max(to) < self.topology().hosts(), "{from} to {to} of {} hosts", self.topology().hosts());
        debug_assert!(!is_urgent || bytes <= u64::from(self.fabric.parameters().mtu), "an answer is a packet");
        let (pays_gap, left) = (!is_urgent, bytes.max(1));
        let new = InFlightMessage { from, to, token, tell_sent, pays_gap, at, left, ..InFlightMessage::NEW };
        let id = self.hosts.messages.insert(new);
        if !self.scope.has_vertex(to) {
            let packets = left.div_ceil(self.fabric.parameters().mtu.into()) as u32;
            self.scope.announce(Announcement { from, to, token, packets, origin: id });
        }
        if is_urgent && from != to {
            let packet = self.packet(id);
            self.hosts.pace.has_more(from, to, left, self.fabric.parameters().mtu);
            self.hosts.pace.starts(from, to, packet);
            self.hurry(from, packet);
        } else {
            self.hosts.senders[from as usize].queue.push(id, &mut self.hosts.messages);
            if from != to {
                self.hosts.pace.has_more(from, to, left, self.fabric.parameters().mtu);
            }
        }
        self.kick(now, from, queue);
    }

    /// Makes a host send a packet before all messages.
    fn hurry(&mut self, host: u32, packet: u32) {
        self.hosts.senders[host as usize].urgent.push(packet, self.fabric.packets());
    }

    /// Makes a host continue as soon as it can.
    #[inline]
    fn kick<E: Copy + From<Event>>(&mut self, now: Time, host: u32, queue: &mut DelayQueue<E>) {
        self.hosts.kick(now.max(self.fabric.free(host)), host, queue);
    }

    /// Sends the next packet of a host.
    #[inline]
    fn go_on<E: Copy + From<Event>>(&mut self, now: Time, host: u32, queue: &mut DelayQueue<E>) {
        let sender = &mut self.hosts.senders[host as usize];
        // An earlier event may have done this already.
        if sender.wake != now || sender.is_stalled {
            return;
        }
        sender.wake = Time::MAX;
        if !self.hosts.pace.is_free() && self.hosts.senders[host as usize].urgent.first().is_none() {
            return self.go_on_at_pace(now, host, queue);
        }
        let sender = &mut self.hosts.senders[host as usize];
        let packet = match sender.urgent.pop(self.fabric.packets()) {
            Some(packet) => packet,
            None => {
                let Some(first) = sender.queue.first() else { return };
                let message = &self.hosts.messages[first];
                if now < message.may_begin(sender.next) {
                    return self.kick(now, host, queue);
                }
                if message.to == host {
                    return self.turn_around(now, host, None, first, queue);
                }
                let packet = self.packet(first);
                if self.hosts.messages[first].is_sent() {
                    self.hosts.senders[host as usize].queue.pop(&mut self.hosts.messages);
                }
                packet
            }
        };
        self.send_packet(now, host, packet, queue);
    }

    /// Sends the next packet of a host with individually paced flows.
    fn go_on_at_pace<E: Copy + From<Event>>(&mut self, now: Time, host: u32, queue: &mut DelayQueue<E>) {
        let Some((at, next)) = self.hosts.next(now, host) else { return };
        if at > now {
            return self.kick(now, host, queue);
        }
        let packet = match next {
            Next::Refused(packet) => packet,
            Next::Message { before, message } => {
                if self.hosts.messages[message].to == host {
                    return self.turn_around(now, host, before, message, queue);
                }
                let packet = self.packet(message);
                if self.hosts.messages[message].is_sent() {
                    self.hosts.senders[host as usize].queue.remove(before, message, &mut self.hosts.messages);
                }
                packet
            }
        };
        self.hosts.pace.starts(host, self.fabric.packets()[packet].to, packet);
        self.send_packet(now, host, packet, queue);
    }

    #[inline]
    fn send_packet<E: Copy + From<Event>>(&mut self, now: Time, host: u32, packet: u32, queue: &mut DelayQueue<E>) {
        self.hosts.senders[host as usize].is_stalled = true;
        let MessageNetwork { fabric, hosts, scope } = self;
        fabric.inject(now, packet, &mut Edges { hosts, scope, queue });
    }

    /// Creates the next packet of a message.
    fn packet(&mut self, id: u32) -> u32 {
        let message = &mut self.hosts.messages[id];
        let bytes = message.left.min(u64::from(self.fabric.parameters().mtu));
        message.left -= bytes;
        message.is_begun = true;
        message.on_the_way += 1;
        self.fabric.packet(NewPacket { from: message.from, to: message.to, bytes: bytes as u32, token: id })
    }

    /// Delivers a whole message to the sending host itself; it follows the message `before` in the queue.
    fn turn_around<E: Copy + From<Event>>(
        &mut self,
        now: Time,
        host: u32,
        before: Option<u32>,
        id: u32,
        queue: &mut DelayQueue<E>,
    ) {
        let Hosts { senders, messages, .. } = &mut self.hosts;
        senders[host as usize].queue.remove(before, id, messages);
        let kind = *self.fabric.kind(self.fabric.link_of(host));
        let message = &mut messages[id];
        let end = now.saturating_add(kind.gap_per_byte.time(message.left));
        message.left = 0;
        self.hosts.message_left(id, Left { token: id, start: now, end, bytes: 0, kind }, queue);
        queue.push(end, key(Class::Arrived, host), Event::Arrived(id).into());
        self.fabric.occupy(host, end);
        self.kick(now, host, queue);
    }
}

/// Event queue as the edge of a fabric that accepts parcels of other parts: their delays have no meaning here.
struct Imports<'a, E>(&'a mut DelayQueue<E>);

impl<E: Copy + From<Event>> Edge for Imports<'_, E> {
    fn schedule(&mut self, at: Time, key: u64, event: fabric::Event) {
        self.0.push_apart(at, key, Event::Fabric(event).into());
    }

    fn left(&mut self, _: Left) {}

    fn arrives(&mut self, _: Arrival) {}

    fn lost(&mut self, _: u32, _: Time) {}
}

impl MessageNetwork<Part> {
    /// Creates an empty part of a network: number `me` of a partition of this topology.
    ///
    /// # Errors
    /// If a parameter is invalid.
    pub fn of_part(
        topology: Arc<Topology>,
        parameters: Parameters,
        partition: Arc<Partition>,
        me: usize,
    ) -> Result<MessageNetwork<Part>, NetError> {
        MessageNetwork::with_scope(topology, parameters, Part::new(partition, me))
    }

    /// Returns the earliest time of the parcels since the last call.
    pub fn take_earliest(&mut self) -> Time {
        self.scope.take_earliest()
    }

    /// Exchanges the parcels for another part with an empty list.
    pub fn swap_parcels(&mut self, to: usize, parcels: &mut Parcels) {
        self.scope.swap_parcels(to, parcels);
    }

    /// Accepts the parcels of part `from` and empties the list. All events before `now` are handled.
    pub fn accept<E: Copy + From<Event>>(
        &mut self,
        now: Time,
        from: usize,
        parcels: &mut Parcels,
        queue: &mut DelayQueue<E>,
    ) {
        let MessageNetwork { fabric, hosts, scope } = self;
        let edge = &mut Imports(queue);
        for announcement in parcels.announcements.drain(..) {
            let id = hosts.messages.insert(InFlightMessage::announced(&announcement));
            scope.is_announced(from, announcement.origin, id);
        }
        let mut packets = parcels.packets.drain(..);
        while let Some(packet) = packets.next() {
            let subject = if packet.marks.has_subject() { packets.next() } else { None };
            fabric.import(scope.accept(packet), subject, edge);
        }
        for packet in parcels.returned.drain(..) {
            fabric.import_lost(packet, edge);
        }
        for credit in parcels.credits.drain(..) {
            fabric.import_credit(now, credit, edge);
        }
        for frame in parcels.frames.drain(..) {
            edge.schedule(frame.at, key(Class::Frame, frame.channel), frame.event);
        }
        for message in parcels.received.drain(..) {
            hosts.messages.remove(message);
        }
    }

    /// Adds the counts of another part, and takes the state of its links for the [report](MessageNetwork::report).
    pub fn absorb(&mut self, other: &MessageNetwork<Part>) {
        let links =
            ranges(self.topology().hosts() + self.topology().switches(), |vertex| other.scope.has_vertex(vertex));
        self.fabric.absorb(&other.fabric, &links);
    }
}

impl Hosts {
    #[inline]
    pub fn prefetch(&self, host: u32) {
        prefetch(&raw const self.senders[host as usize]);
    }

    /// Prefetches the current or next message of a host.
    #[inline]
    pub fn prefetch_first(&self, host: u32) {
        if let Some(first) = self.senders[host as usize].queue.first() {
            self.messages.prefetch(first);
        }
    }

    /// Makes a host continue as soon as it can; its link is free at `at`.
    fn kick<E: Copy + From<Event>>(&mut self, mut at: Time, host: u32, queue: &mut DelayQueue<E>) {
        let sender = &self.senders[host as usize];
        if sender.is_stalled {
            return;
        }
        if sender.urgent.first().is_none() {
            if !self.pace.is_free() {
                let Some((next, _)) = self.next(at, host) else { return };
                at = next;
            } else {
                let Some(first) = sender.queue.first() else { return };
                at = at.max(self.messages[first].may_begin(sender.next));
            }
        }
        let sender = &mut self.senders[host as usize];
        if at < sender.wake {
            sender.wake = at;
            queue.push(at, key(Class::Send, host), Event::Send(host).into());
        }
    }

    /// Returns the packet or message of a host that may leave first from `at` on, and the time, for individually paced
    /// flows: among those that may leave at the same time, the one that has waited longest. A packet that arrived
    /// without its data precedes the messages.
    fn next(&self, at: Time, host: u32) -> Option<(Time, Next)> {
        let sender = &self.senders[host as usize];
        if let Some(packet) = self.pace.next_refused(host) {
            return Some((at, Next::Refused(packet)));
        }
        let (mut best, mut before, mut place) = (None, None, sender.queue.first());
        while let Some(id) = place {
            let message = &self.messages[id];
            let when = at.max(message.may_begin(sender.next)).max(self.pace.when(host, message.to));
            if when < best.map_or(Time::MAX, |(best, _)| best) {
                best = Some((when, Next::Message { before, message: id }));
            }
            if when == at {
                break;
            }
            (before, place) = (Some(id), sender.queue.after(id, &self.messages));
        }
        best
    }

    /// Records the time of a message's packet on its host's link.
    fn packet_left<E: Copy + From<Event>>(&mut self, left: Left, queue: &mut DelayQueue<E>) {
        let id = left.token;
        let (host, to) = (self.messages[id].from, self.messages[id].to);
        self.pace.leaves(left.start, host, to, left.bytes);
        let sender = &mut self.senders[host as usize];
        sender.is_stalled = false;
        // A lost packet is not the last of its message.
        if self.messages[id].is_sent() && sender.queue.first() != Some(id) {
            self.message_left(id, left, queue);
        }
        self.kick(left.end, host, queue);
    }

    /// Records the time of a message's last packet on its host's link.
    fn message_left<E: Copy + From<Event>>(
        &mut self,
        id: u32,
        Left { end, kind, .. }: Left,
        queue: &mut DelayQueue<E>,
    ) {
        let message = &mut self.messages[id];
        if std::mem::take(&mut message.tell_sent) {
            queue.push(end, key(Class::Sent, message.from), Event::Sent(id).into());
        }
        if std::mem::take(&mut message.pays_gap) {
            // LogGP: g and the bytes after the first.
            let gap = self.gap.saturating_sub(kind.transmission(1));
            let sender = &mut self.senders[message.from as usize];
            sender.next = sender.next.max(end.saturating_add(gap));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_messages_are_small() {
        assert_eq!((size_of::<Event>(), size_of::<Option<Event>>()), (8, 8));
        assert_eq!((size_of::<InFlightMessage>(), size_of::<Sender>()), (64, 64));
    }
}
