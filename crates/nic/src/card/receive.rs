//! From packets on the wire to host memory or handlers.

use std::rc::Rc;

use abi::portals::{AckReq, List, NiFail};

use super::Card;
use super::complete::report_internal;
use crate::drops::{self, DropReason, Part};
use crate::event::{AtomicWork, CardEvent, HostWrite, Outgoing, Sent, Source};
use crate::message::{Body, Header, Packet, Request, RequestKind, Response};
use crate::portals::{InternalError, Placement};
use crate::ports::{PacketId, Ports, Slice, Track};
use crate::rx::{Channel, Delivery, EarlyPackets, RxMessage, Sink};
use crate::spin::SpinMessage;
use sim::Time;

impl Card {
    /// The first byte of a packet is at the port. The port takes one packet at a time; matching proceeds in parallel
    /// with reception of the next (sPIN §4.2).
    pub(super) fn arrive(&mut self, packet: Box<Packet>, ports: &mut impl Ports) {
        let network = &self.machine.network;
        let bytes = packet.data.len() as u64;
        let gap = if packet.is_header() { network.gap } else { Time::ZERO };
        let (start, end) = self.rx.reserve(ports.now(), bytes, network.gap_per_byte, gap);
        self.stats.packets_received += 1;
        self.stats.bytes_received += bytes;
        let nic = &self.machine.nic;
        let matched = match (packet.is_header(), &packet.header.body) {
            (true, Body::Request(_)) => end + nic.match_header,
            (true, Body::Response(_)) => end + nic.match_cam,
            (false, _) => match self.channels.get(&packet.header.id) {
                Some(Channel::Matching(until, _)) => end.max(*until) + nic.match_cam,
                _ => end + nic.match_cam,
            },
        };
        if packet.is_header() {
            self.stats.messages_received += 1;
            let early = match self.channels.remove(&packet.header.id) {
                Some(Channel::Early(early)) => early,
                _ => EarlyPackets::default(),
            };
            self.channels.insert(packet.header.id, Channel::Matching(matched, early));
        }
        if ports.tracing() {
            let name = packet.header.name();
            ports.slice(Slice { track: Track::NicIn, start, end, name, packet: Some(packet.id()), bytes: Some(bytes) });
        }
        ports.schedule(matched, CardEvent::Received(packet));
    }

    /// A packet is in the card and its channel is known.
    pub(super) fn received(&mut self, packet: Packet, ports: &mut impl Ports) {
        let id = packet.header.id;
        if packet.is_header() {
            let rx = self.open(&packet.header, ports);
            if let Some(Channel::Matching(_, early)) = self.channels.insert(id, Channel::Open(Box::new(rx))) {
                self.release_early(id, early, ports);
            }
        }
        let rx = match self.channels.get_mut(&id) {
            Some(Channel::Open(rx)) => rx,
            // The header packet arrived while this packet, which is earlier, was looked up.
            Some(Channel::Matching(until, _)) => {
                let at = *until + self.machine.nic.match_cam;
                return ports.schedule(at, CardEvent::Received(Box::new(packet)));
            }
            Some(Channel::Early(_)) | None => return self.hold_early(packet, ports),
        };
        rx.remaining -= packet.data.len() as u64;
        let fail = packet.header.body.fail();
        if rx.fail == NiFail::Ok {
            rx.fail = fail; // found out after the first packet had left
        }
        match &rx.sink {
            Sink::Nowhere => {}
            // What could not be read where it came from is not written.
            Sink::Entry(delivery) if delivery.spin.is_some() && fail != NiFail::Ok => {
                self.drop_data(id, None, packet.offset, packet.data.len() as u64, ports);
            }
            _ if fail != NiFail::Ok => {}
            Sink::Entry(delivery) if delivery.spin.is_some() => return self.spin_packet(packet, ports),
            Sink::Entry(_) | Sink::Operation(..) => self.act(id, packet.offset, packet.data, ports),
        }
        self.finish_if_done(id, ports);
    }

    /// Keeps a packet that has overtaken its header packet, as long as there is room.
    fn hold_early(&mut self, packet: Packet, ports: &mut impl Ports) {
        let (id, room) = (packet.header.id, self.early_packets < self.early_limit);
        let channel = self.channels.entry(id).or_insert_with(|| Channel::Early(EarlyPackets::default()));
        let Channel::Early(early) = channel else {
            return self.report_internal(InternalError::WrongKind(id), ports);
        };
        if room {
            early.held.push(packet);
            self.early_packets += 1;
            self.stats.packets_held += 1;
        } else {
            early.lost.push((packet.offset, packet.data.len() as u64));
            self.stats.packets_dropped += 1;
        }
    }

    /// The header packet has been matched: the packets that have overtaken it are looked up now. When some were lost the
    /// message fails, and flow control stops the portal table entry, as when handlers' packets find no room (sPIN §3.2).
    fn release_early(&mut self, id: u64, early: EarlyPackets, ports: &mut impl Ports) {
        self.early_packets -= early.held.len() as u32;
        let found = ports.now() + self.machine.nic.match_cam;
        for packet in early.held {
            ports.schedule(found, CardEvent::Received(Box::new(packet)));
        }
        let Some(rx) = self.rx(id).filter(|_| !early.lost.is_empty()) else { return };
        rx.remaining -= early.lost.iter().map(|(_, bytes)| bytes).sum::<u64>();
        let header = rx.header.clone();
        let is_entry = matches!(rx.sink, Sink::Entry(_));
        if rx.fail == NiFail::Ok {
            rx.fail = if is_entry { NiFail::PtDisabled } else { NiFail::Dropped };
        }
        let has_handlers = self.delivery(id).is_some_and(|delivery| delivery.spin.is_some());
        for (number, (offset, bytes)) in early.lost.into_iter().enumerate() {
            if has_handlers {
                self.drop_data(id, Some(DropReason::NoBuffer), offset, bytes, ports);
            } else {
                let part = Part { is_first: number == 0, packets: 1, bytes };
                drops::count(&mut self.stats.drops, DropReason::NoBuffer, &header, part, ports.now());
            }
        }
        if let (Body::Request(request), true) = (header.body, is_entry) {
            self.stop_portal(header.interface, request.pt_index, ports);
        }
    }

    /// Flow control stops a portal table entry, and the program is told.
    pub(crate) fn stop_portal(&mut self, interface: u8, pt_index: u32, ports: &mut impl Ports) {
        self.portals.disable_portal(interface, pt_index, true);
        self.apply(ports);
    }

    /// Does with a packet what its message asks for (the "default action" of sPIN App. B.3).
    pub(crate) fn act(&mut self, id: u64, offset: u64, data: Vec<u8>, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        let kind = match rx.header.body {
            Body::Request(request) => request.kind,
            Body::Response(_) => RequestKind::Put, // a response's data goes to memory as a put's does
        };
        match kind {
            RequestKind::Put => self.deposit(id, offset, data, ports),
            RequestKind::Get => self.serve_get(id, ports),
            RequestKind::Atomic(_) | RequestKind::FetchAtomic(_) => self.fetch_operands(id, data, ports),
        }
    }

    /// A message whose header has been matched, unless it is over.
    pub(crate) fn rx(&mut self, id: u64) -> Option<&mut RxMessage> {
        match self.channels.get_mut(&id)? {
            Channel::Open(rx) => Some(rx),
            Channel::Early(_) | Channel::Matching(..) => None,
        }
    }

    /// A message that cannot be over: that it is gone is reported.
    pub(crate) fn live_rx(&mut self, id: u64, ports: &mut impl Ports) -> Option<&mut RxMessage> {
        let node = self.portals.node;
        let rx = self.rx(id);
        if rx.is_none() {
            report_internal(node, InternalError::NoMessage(id), ports);
        }
        rx
    }

    /// The entry that has taken a message, and its handlers; `None` when its interface has been closed, too.
    pub(crate) fn delivery(&mut self, id: u64) -> Option<&mut Delivery> {
        match &mut self.rx(id)?.sink {
            Sink::Entry(delivery) => Some(delivery),
            _ => None,
        }
    }

    /// Forgets a message that is over.
    pub(super) fn close(&mut self, id: u64) -> Option<Box<RxMessage>> {
        match self.channels.remove(&id)? {
            Channel::Open(rx) => Some(rx),
            Channel::Early(_) | Channel::Matching(..) => None,
        }
    }

    /// Sends data of a message to the host memory that it was placed in, as far as it fits.
    pub(crate) fn deposit(&mut self, id: u64, offset: u64, mut data: Vec<u8>, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        let (region, start, mlength) = match &rx.sink {
            Sink::Nowhere => return,
            Sink::Entry(delivery) => {
                let Placement { offset, mlength } = delivery.taken.placement;
                (delivery.taken.region.clone(), offset, mlength)
            }
            Sink::Operation(token, response) => {
                let (token, mlength) = (*token, response.mlength);
                let operation = match self.portals.operation(token) {
                    Ok(operation) if operation.open => operation,
                    Ok(_) => return, // its interface has been closed
                    Err(error) => return self.report_internal(error, ports),
                };
                if let Some(place) = operation.card {
                    return self.deliver(place.command, place.start + offset as u32, &data, ports);
                }
                (operation.md.region.clone(), operation.local_offset, mlength)
            }
        };
        data.truncate(mlength.saturating_sub(offset).try_into().unwrap_or(usize::MAX));
        if data.is_empty() {
            return;
        }
        let Some(rx) = self.live_rx(id, ports) else { return };
        rx.moving += 1;
        rx.deposited = true;
        let done = self.dma_write(data.len() as u64, "deposit", Some(PacketId { message: id, offset }), ports);
        let write = HostWrite { message: id, region, offset: start + offset, data };
        ports.schedule(done, CardEvent::Written(Box::new(write)));
    }

    /// Data of a message reaches host memory.
    pub(super) fn written(&mut self, write: HostWrite, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(write.message, ports) else { return };
        rx.moving -= 1;
        // The interface may have been closed since the data was sent to host memory.
        let wanted = match rx.sink {
            Sink::Nowhere => false,
            Sink::Entry(_) => true,
            Sink::Operation(token, _) => self.portals.operations.is_open(token),
        };
        let result = if wanted { write.region.write(ports, write.offset, &write.data) } else { Ok(()) };
        if let (Err(fault), Some(rx)) = (result, self.rx(write.message)) {
            if rx.fail == NiFail::Ok {
                rx.fail = NiFail::Segv;
            }
            let name = rx.header.name();
            ports.warn(format!("{name} at node {}: {fault}", self.portals.node));
        }
        self.finish_if_done(write.message, ports);
    }

    /// Ends a message whose data has all arrived, been handled and been written. The news itself crosses to the host
    /// behind the data, or alone when there was none.
    pub(crate) fn finish_if_done(&mut self, id: u64, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        if rx.remaining > 0 || rx.moving > 0 {
            return;
        }
        let deposited = rx.deposited;
        match &rx.sink {
            Sink::Nowhere => return self.refuse(id, ports),
            Sink::Entry(delivery) if delivery.spin.is_some() => {
                if !self.spin_message_done(id, ports) {
                    return;
                }
            }
            Sink::Entry(_) if deposited => return self.complete(id, ports),
            Sink::Entry(_) => {}
            &Sink::Operation(token, _) => {
                let stays = self.portals.operations.get_mut(token).is_some_and(|operation| operation.card.is_some());
                if stays || deposited {
                    return self.complete(id, ports); // the news comes with the data, or the data stays on the card
                }
            }
        }
        let done = self.dma_write(0, "", None, ports);
        ports.schedule(done, CardEvent::Complete(id));
    }

    /// A message that nobody takes has arrived: its initiator hears of it. The last byte has left, so SEND comes before the
    /// bad news.
    fn refuse(&mut self, id: u64, ports: &mut impl Ports) {
        if let Some(rx) = self.close(id)
            && !rx.answered
            && let Body::Request(request) = rx.header.body
        {
            let nowhere = Placement { offset: 0, mlength: 0 };
            self.respond(&rx.header, &request, nowhere, List::Priority, rx.fail, ports);
        }
    }

    /// Counts a whole message as dropped.
    pub(super) fn count_message(&mut self, reason: DropReason, header: &Header, at: Time) {
        let bytes = header.data_length();
        let packets = bytes.div_ceil(u64::from(self.machine.network.mtu)).max(1);
        drops::count(&mut self.stats.drops, reason, header, Part { is_first: true, packets, bytes }, at);
    }

    /// Decides what becomes of a message from its header packet.
    fn open(&mut self, header: &Rc<Header>, ports: &mut impl Ports) -> RxMessage {
        let mut rx = RxMessage {
            header: header.clone(),
            remaining: header.data_length(),
            moving: 0,
            deposited: false,
            fail: NiFail::Ok,
            answered: false,
            sink: Sink::Nowhere,
        };
        match header.body {
            Body::Response(response) => {
                rx.fail = response.fail;
                rx.sink = Sink::Operation(response.op, response);
            }
            Body::Request(Request { fail, .. }) if fail != NiFail::Ok => rx.fail = fail,
            Body::Request(request) => {
                let taken = self.portals.match_request(header.id, header.interface, &request);
                self.apply(ports);
                match taken {
                    Ok(taken) => {
                        let handlers = taken.handlers.clone();
                        let spin = handlers.map(|handlers| SpinMessage::new(handlers, request.kind));
                        rx.sink = Sink::Entry(Box::new(Delivery { taken, spin }));
                    }
                    Err((fail, reason)) => {
                        rx.fail = fail;
                        self.count_message(reason, header, ports.now());
                    }
                }
            }
        }
        rx
    }

    /// Sends what a get asks for.
    fn serve_get(&mut self, id: u64, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        let header = rx.header.clone();
        let (Body::Request(Request { op: Some(op), .. }), Sink::Entry(delivery)) = (header.body, &rx.sink) else {
            return self.report_internal(InternalError::WrongKind(id), ports);
        };
        let (region, list) = (delivery.taken.region.clone(), delivery.taken.list);
        let Placement { offset: remote_offset, mlength } = delivery.taken.placement;
        rx.moving += 1;
        rx.answered = true;
        let response = Response { op, mlength, remote_offset, fail: NiFail::Ok, list, length: mlength };
        let reply = self.response_header(&header, response);
        self.send(
            Outgoing { header: reply, source: Source::Host(region, remote_offset), sent: Sent::Reply(id) },
            ports,
        );
    }

    /// The last byte of a reply has left, or the result of an atomic is in host memory.
    pub(super) fn response_done(&mut self, id: u64, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        rx.moving -= 1;
        self.finish_if_done(id, ports);
    }

    /// An atomic and its data have arrived (they fit into one packet): the card reads the operands at the target, and
    /// combines and writes them when they are there.
    fn fetch_operands(&mut self, id: u64, mut data: Vec<u8>, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        let Sink::Entry(delivery) = &rx.sink else {
            return self.report_internal(InternalError::WrongKind(id), ports);
        };
        data.truncate(delivery.taken.placement.mlength as usize);
        rx.moving += 1;
        let latency = self.machine.dma.latency;
        let read = self
            .dma_read(data.len() as u64, "operands", Some(PacketId { message: id, offset: 0 }), ports)
            .saturating_sub(latency);
        let work = AtomicWork { message: id, data, combined: false };
        ports.schedule(read, CardEvent::Atomic(Box::new(work)));
    }

    /// The read has reached host memory. Reading, combining and writing is one step of simulated time, so that atomics
    /// of a card never mix and later messages come later (Portals 4.3 §3.3); what the card has to do goes on.
    pub(super) fn combine(&mut self, mut work: AtomicWork, ports: &mut impl Ports) {
        let id = work.message;
        if work.combined {
            return self.combined(work, ports);
        }
        let Some(rx) = self.live_rx(id, ports) else { return };
        let Some((spec, operand)) = rx.atomic() else {
            return self.report_internal(InternalError::WrongKind(id), ports);
        };
        // Without an entry the interface has been closed meanwhile.
        let Sink::Entry(delivery) = &rx.sink else { return self.response_done(id, ports) };
        let (region, offset) = (delivery.taken.region.clone(), delivery.taken.placement.offset);
        let mut old = vec![0; work.data.len()];
        let result = region.read(ports, offset, &mut old).and_then(|()| {
            let mut new = old.clone();
            spec.apply(&mut new, &work.data, &operand);
            region.write(ports, offset, &new)
        });
        if let (Err(fault), Some(rx)) = (result, self.rx(id)) {
            rx.fail = NiFail::Segv;
            ports.warn(format!("atomic at node {}: {fault}", self.portals.node));
        }
        (work.data, work.combined) = (old, true);
        ports.schedule(ports.now() + self.machine.dma.latency, CardEvent::Atomic(Box::new(work)));
    }

    /// The operands are on the card: the result goes to host memory, and the old values to who wants them.
    fn combined(&mut self, work: AtomicWork, ports: &mut impl Ports) {
        let (id, old) = (work.message, work.data);
        let written = self.dma_write(old.len() as u64, "result", None, ports);
        let Some(rx) = self.live_rx(id, ports) else { return };
        let (header, fail) = (rx.header.clone(), rx.fail);
        let (Sink::Entry(delivery), Body::Request(request)) = (&rx.sink, header.body) else {
            return self.response_done(id, ports);
        };
        let (Placement { offset: remote_offset, mlength }, list) = (delivery.taken.placement, delivery.taken.list);
        let reply = request.op.filter(|_| request.kind.replies());
        // The reply's departure stands for the write too, but for a completion handler: it may read the result.
        let waits = reply.is_none() || delivery.spin.is_some();
        rx.moving = rx.moving - 1 + u32::from(reply.is_some()) + u32::from(waits);
        (rx.deposited, rx.answered) = (reply.is_none(), reply.is_some());
        if let Some(op) = reply {
            let response = Response { op, mlength, remote_offset, fail, list, length: old.len() as u64 };
            let reply = self.response_header(&header, response);
            self.stats.messages_sent += 1;
            self.inject(Packet { header: reply, offset: 0, data: old }, Sent::Reply(id), ports);
        }
        if waits {
            ports.schedule(written, CardEvent::ResponseDone(id));
        }
    }

    fn response_header(&mut self, to: &Header, response: Response) -> Rc<Header> {
        let id = self.next_message_id();
        let (source, target, interface) = (self.portals.node, to.source, to.interface);
        Rc::new(Header { id, source, target, interface, body: Body::Response(response) })
    }

    /// Answers a request without data, if its initiator wants an answer.
    pub(crate) fn respond(
        &mut self,
        header: &Header,
        request: &Request,
        placement: Placement,
        list: List,
        fail: NiFail,
        ports: &mut impl Ports,
    ) {
        let Some(op) = request.op else { return };
        if !request.kind.replies() && request.ack == AckReq::None {
            return;
        }
        let Placement { offset: remote_offset, mlength } = placement;
        let reply = self.response_header(header, Response { op, mlength, remote_offset, fail, list, length: 0 });
        self.stats.messages_sent += 1;
        self.inject(Packet { header: reply, offset: 0, data: Vec::new() }, Sent::Nothing, ports);
    }
}
