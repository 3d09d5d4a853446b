// SPDX-License-Identifier: Apache-2.0
//! From a message to packets on the wire.

use std::rc::Rc;

use abi::portals::NiFail;
use machine::Injection;
use sim::{Time, Train};

use super::pipelines::Pipeline;
use crate::event::{Content, Fetching, Initiator, Leaving, NicEvent, Sending, Sent, Source, Unread};
use crate::message::{Body, Header, Packet, RequestKind};
use crate::portals::{Initiated, InternalError, RmaOp};
use crate::ports::{Departure, PacketId, Ports, Slice, Track};

/// Number of packets of a message that are fetched ahead of the leaving one.
const FETCHES: u64 = 64;

impl Pipeline {
    /// Starts an operation whose descriptor reaches the card at `at`.
    pub fn start(&mut self, transfer: RmaOp, at: Time, ports: &mut impl Ports) {
        match self.prepare(transfer, ports) {
            Some(message) => ports.schedule(at, NicEvent::Send(Rc::new(message))),
            None => self.stats.undeliverable += 1,
        }
    }

    fn prepare(&mut self, transfer: RmaOp, ports: &mut impl Ports) -> Option<Sending> {
        let interface = transfer.interface;
        let Initiated { request, target, token, data: (md, offset), volatile } = self.portals.initiate(transfer)?;
        let id = self.next_message_id();
        // The network detects a nonexistent node, and answers in its place.
        let body = Body::Request(request);
        let header = Rc::new(Header { id, source: self.portals.node, target, interface, body });
        self.portals.operations.sent_as(token, &header);
        let mut data = vec![0; if volatile { request.length as usize } else { 0 }];
        let source = if request.kind == RequestKind::Get {
            Source::Descriptor(Vec::new())
        } else if volatile && md.region.read(ports, offset, &mut data).is_ok() {
            Source::Descriptor(data)
        } else {
            Source::Host(md.region.clone(), offset)
        };
        let sent = if request.kind == RequestKind::Get { Sent::Nothing } else { Sent::Operation(token) };
        Some(Sending::new(header, source, sent, Initiator::Host))
    }

    /// Cuts a message into packets. Those from host memory are fetched by DMA, back to back, and leave in the order of
    /// the send queue; those on the card leave immediately.
    pub fn send(&mut self, mut message: Rc<Sending>, ports: &mut impl Ports) {
        self.stats.messages_sent += 1;
        let sending = Rc::make_mut(&mut message); // still the only reference
        match &mut sending.source {
            Source::Host(..) => {}
            Source::Card(data) => {
                debug_assert!(data.len() <= self.machine.network.mtu as usize, "one packet (sPIN App. B.6)");
                let packet = Packet::new(sending.header.clone(), 0, std::mem::take(data));
                self.inject(Box::new(packet), sending.sent, ports);
                return;
            }
            Source::Descriptor(data) => {
                let packet = Packet::new(sending.header.clone(), 0, std::mem::take(data));
                sending.not_before = self.reaches_port(sending.initiator, ports.now());
                ports.schedule(sending.not_before, NicEvent::Ready(message, Box::new(packet)));
                return;
            }
        }
        let length = sending.header.data_length();
        sending.not_before = self.reaches_port(sending.initiator, ports.now());
        sending.fetching = self.dma.fetch(length, ports);
        if let Some(Fetching { train, .. }) = sending.fetching {
            self.send_ready = message.ready(length, self.dma.latency());
            if ports.tracing() {
                self.show_fetches(&message, &train, ports);
            }
        }
        let mtu = u64::from(self.machine.network.mtu);
        self.fetch(&message, 0, ports);
        let first = (1..FETCHES).map(|packet| packet * mtu).take_while(|offset| *offset < length);
        first.for_each(|offset| self.fetch(&message, offset, ports));
    }

    /// Returns the time at which a message sent now reaches the port, apart from its data: behind the previous one or,
    /// with `dma.messages = "latency"`, after a time that depends on the initiator.
    fn reaches_port(&mut self, initiator: Initiator, now: Time) -> Time {
        match self.dma.way_to_port(initiator) {
            Some(way) => now + way,
            None => {
                self.send_ready = self.send_ready.max(now);
                self.send_ready
            }
        }
    }

    fn show_fetches(&self, message: &Sending, train: &Train, ports: &mut impl Ports) {
        let (mtu, length) = (self.machine.network.mtu, message.header.data_length());
        for offset in (0..length).step_by(mtu as usize) {
            let bytes = u64::from(mtu).min(length - offset);
            let (start, end) = (train.passed(offset), train.passed(offset + bytes));
            let packet = Some(PacketId { message: message.header.id, offset });
            ports.slice(Slice { track: Track::Dma, start, end, name: "fetch", packet, bytes: Some(bytes) });
        }
    }

    /// Fetches the packet at `offset` from host memory, if the message is that long.
    fn fetch_if_any(&self, message: &Rc<Sending>, offset: u64, ports: &mut impl Ports) {
        if offset < message.header.data_length() {
            self.fetch(message, offset, ports);
        }
    }

    fn fetch(&self, message: &Rc<Sending>, offset: u64, ports: &mut impl Ports) {
        let (end, latency) = (offset + self.packet_bytes(message, offset), self.dma.latency());
        let at = if message.serves() {
            // A get reads the target's memory as of the arrival of its request: DMA keeps reads and writes in order,
            // and a later message must not change the data (Portals 4.3 §3.3: write after read).
            message.read(offset, end, latency)
        } else {
            message.ready(end, latency)
        };
        ports.schedule(at.max(ports.now()), NicEvent::Fetched(message.clone(), offset));
    }

    fn packet_bytes(&self, message: &Sending, offset: u64) -> u64 {
        u64::from(self.machine.network.mtu).min(message.header.data_length() - offset)
    }

    /// Handles the arrival of the data of the packet at `offset` from host memory.
    pub fn fetched(&mut self, message: Rc<Sending>, offset: u64, ports: &mut impl Ports) {
        let bytes = self.packet_bytes(&message, offset);
        self.fetch_if_any(&message, offset + FETCHES * u64::from(self.machine.network.mtu), ports);
        if message.serves() {
            let packet = self.read(&message, offset, ports);
            let ready = message.ready(offset + bytes, self.dma.latency());
            return if ports.now() < ready {
                ports.schedule(ready, NicEvent::Ready(message, packet));
            } else {
                self.ready(&message, packet, ports);
            };
        }
        let sent = message.completes(offset + bytes);
        self.leave(Leaving { content: Content::Host(message, offset), sent, then: None }, ports);
    }

    /// Releases a packet with its data for departure.
    pub fn ready(&mut self, message: &Sending, packet: Box<Packet>, ports: &mut impl Ports) {
        let sent = message.completes(packet.offset + packet.data.len() as u64);
        self.inject(packet, sent, ports);
    }

    /// Reads the data of packets that leave soon, so that the card never holds all of a long message.
    pub fn refill(&mut self, ports: &mut impl Ports) {
        let soon = ports.now() + self.read_ahead() * 2;
        while self.unread.front().is_some_and(|next| next.departure.start <= soon)
            && let Some(next) = self.unread.pop_front()
        {
            let packet = self.read(&next.message, next.offset, ports);
            transmit(packet, next.place, next.departure, ports);
        }
        if let Some(next) = self.unread.front() {
            ports.schedule(next.departure.start.saturating_sub(self.read_ahead()), NicEvent::Refill);
        }
    }

    /// Returns the minimum time from the read of a packet's data to its departure.
    fn read_ahead(&self) -> Time {
        let network = &self.machine.network;
        network.gap_per_byte.time(FETCHES * u64::from(network.mtu))
    }

    /// Builds a packet with its data from host memory.
    fn read(&mut self, message: &Sending, offset: u64, ports: &mut impl Ports) -> Box<Packet> {
        let data = vec![0; self.packet_bytes(message, offset) as usize];
        let mut packet = Box::new(Packet::new(message.header.clone(), offset, data));
        let is_revoked = message.right.as_ref().is_some_and(|right| right.is_revoked());
        if is_revoked || self.process_is_dead {
            // The interface of the data has been closed, or the process has died.
            self.local_fault(&mut packet, message.sent, NiFail::Dropped);
        } else if let Source::Host(region, start) = &message.source
            && let Err(fault) = region.read(ports, start.wrapping_add(offset), &mut packet.data)
        {
            let target = ports.name_of(packet.header.target);
            ports.warn(format!("{} to {target}: {fault}", packet.header.name()));
            self.local_fault(&mut packet, message.sent, NiFail::Segv);
        }
        packet
    }

    /// Handles a packet whose data is inaccessible: the operation fails, or the answer reports it, and so does the
    /// packet.
    fn local_fault(&mut self, packet: &mut Packet, sent: Sent, fail: NiFail) {
        match &mut Rc::make_mut(&mut packet.header).body {
            Body::Request(request) => {
                request.fail = fail;
                let token = match sent {
                    Sent::Operation(token) => Some(token),
                    _ => request.op,
                };
                if let Some(operation) = token.and_then(|token| self.portals.operations.get_mut(token)) {
                    operation.fail = fail;
                }
            }
            Body::Response(response) => response.fail = fail,
        }
    }

    /// Sends a packet that is on the card.
    pub fn inject(&mut self, packet: Box<Packet>, sent: Sent, ports: &mut impl Ports) {
        self.leave(Leaving { content: Content::Packet(packet), sent, then: None }, ports);
    }

    /// Sends a packet that is on the card. Returns the time at which its last byte has left, or `None` for a blocked
    /// packet: `then` happens when its last byte leaves.
    pub fn inject_then(
        &mut self,
        packet: Box<Packet>,
        sent: Sent,
        then: NicEvent,
        ports: &mut impl Ports,
    ) -> Option<Time> {
        self.leave(Leaving { content: Content::Packet(packet), sent, then: Some(then) }, ports)
    }

    /// Asks the interconnect to take a packet. Returns the time at which its last byte has left, or `None` if
    /// back-pressure blocks it. `leaving.then` happens only for a blocked packet.
    fn leave(&mut self, leaving: Leaving, ports: &mut impl Ports) -> Option<Time> {
        let (header, offset, bytes) = self.extent(&leaving.content);
        let (target, gap) = (header.target, self.gap(header, offset, bytes));
        match ports.inject(target, bytes, gap) {
            Some(departure) => {
                self.depart(Leaving { then: None, ..leaving }, departure, ports);
                Some(departure.end)
            }
            None => {
                self.blocked.push_back(leaving);
                None
            }
        }
    }

    /// Returns the minimum time between the departures of a packet and of the port's next one.
    fn gap(&self, header: &Header, offset: u64, bytes: u64) -> Time {
        let network = &self.machine.network;
        match network.injection {
            Injection::Max if offset == 0 => network.gap,
            // Each earlier packet took s G.
            Injection::Sum if offset + bytes >= header.data_length() => {
                network.gap + network.gap_per_byte.time(bytes.saturating_sub(1))
            }
            Injection::Max | Injection::Sum => Time::ZERO,
        }
    }

    /// Handles the departure of the first blocked packet.
    ///
    /// # Errors
    /// Returns an error if no packet is blocked.
    pub fn departs(&mut self, departure: Departure, ports: &mut impl Ports) -> Result<(), InternalError> {
        let leaving = self.blocked.pop_front().ok_or(InternalError::NothingBlocked)?;
        self.depart(leaving, departure, ports);
        Ok(())
    }

    /// Sends a packet with a fixed departure. Its data stays in host memory until shortly before.
    fn depart(&mut self, leaving: Leaving, departure: Departure, ports: &mut impl Ports) {
        let Departure { start, end, .. } = departure;
        let (header, offset, bytes) = self.extent(&leaving.content);
        let (name, id) = (header.name(), header.id);
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += bytes;
        if ports.tracing() {
            let packet = Some(PacketId { message: id, offset });
            ports.slice(Slice { track: Track::NicOut, start, end, name, packet, bytes: Some(bytes) });
        }
        let place = self.place(&leaving.content, ports);
        match leaving.content {
            Content::Packet(packet) => transmit(packet, place, departure, ports),
            Content::Host(message, offset) if start > ports.now() + self.read_ahead() => {
                if self.unread.is_empty() {
                    ports.schedule(start.saturating_sub(self.read_ahead()), NicEvent::Refill);
                }
                self.unread.push_back(Unread { message, offset, departure, place });
            }
            Content::Host(message, offset) => {
                let packet = self.read(&message, offset, ports);
                transmit(packet, place, departure, ports);
            }
        }
        if leaving.sent != Sent::Nothing {
            ports.schedule(end, NicEvent::Sent(leaving.sent));
        }
        if let Some(event) = leaving.then {
            ports.schedule(end, event);
        }
    }

    /// Returns the sequence number of a leaving packet among the requests to its target; a retransmitted packet keeps
    /// its number.
    fn place(&mut self, content: &Content, ports: &impl Ports) -> u64 {
        let header = match content {
            Content::Packet(packet) if packet.place > 0 => return packet.place,
            Content::Packet(packet) => &packet.header,
            Content::Host(message, _) => &message.header,
        };
        if !ports.is_lossy() || matches!(header.body, Body::Response(_)) {
            return 0;
        }
        let last = self.losses.get_or_insert_default().places.entry(header.target).or_default();
        *last += 1;
        *last
    }

    /// Returns a packet's header, the offset of its data in the message, and its length in bytes.
    fn extent<'a>(&self, content: &'a Content) -> (&'a Header, u64, u64) {
        match content {
            Content::Packet(packet) => (&packet.header, packet.offset, packet.data.len() as u64),
            Content::Host(message, offset) => (&message.header, *offset, self.packet_bytes(message, *offset)),
        }
    }
}

fn transmit(mut packet: Box<Packet>, place: u64, departure: Departure, ports: &mut impl Ports) {
    (packet.left, packet.place) = (departure.start, place);
    ports.transmit(departure, packet);
}

impl Sending {
    /// Returns true if the message answers a get.
    fn serves(&self) -> bool {
        matches!(self.header.body, Body::Response(_))
    }

    /// Returns the completion by the packet that ends after the first `bytes` bytes.
    fn completes(&self, bytes: u64) -> Sent {
        if bytes >= self.header.data_length() { self.sent } else { Sent::Nothing }
    }

    /// Returns the time at which the first `bytes` bytes are on the card. Their request crosses first (sPIN App. C.3.2:
    /// "we pay two DMA latencies to read the data").
    fn fetched(&self, bytes: u64, latency: Time) -> Time {
        match &self.fetching {
            Some(Fetching { train, .. }) if bytes > 0 => train.passed(bytes) + latency * 2,
            _ => Time::ZERO,
        }
    }

    /// Returns the time at which host memory is read for the packet from `offset` to `end`. Only data that fits into
    /// one packet is ordered before later writes (`max_war_ordered_size`).
    fn read(&self, offset: u64, end: u64, latency: Time) -> Time {
        match self.fetching {
            Some(Fetching { requested: Some(requested), .. }) if offset == 0 => requested,
            _ => self.fetched(end, latency).saturating_sub(latency),
        }
    }

    /// Returns the earliest departure of the packet that ends after the first `bytes` bytes.
    fn ready(&self, bytes: u64, latency: Time) -> Time {
        self.not_before.max(self.fetched(bytes, latency))
    }
}
