//! From a message to packets on the wire.

use std::rc::Rc;

use abi::portals::{AckReq, NiFail};
use sim::Time;

use super::{Card, CardEvent, Fetch, Operation, OperationKind, Outgoing, Sent, Source};
use crate::message::{Body, Header, MessageId, Packet, Request, RequestKind};
use crate::ports::{Ports, Slice, Track};
use crate::triggered::Transfer;

impl Card {
    /// Starts a put or get whose descriptor reaches the card at `at`.
    pub(crate) fn start_transfer(&mut self, transfer: Transfer, at: Time, ports: &mut impl Ports) {
        let outgoing = self.prepare(transfer);
        match outgoing {
            Some(outgoing) => ports.schedule(at, CardEvent::Send(Box::new(outgoing))),
            None => self.stats.undeliverable += 1,
        }
    }

    fn prepare(&mut self, transfer: Transfer) -> Option<Outgoing> {
        let Transfer { put, interface: index, md, local_offset, length, target, .. } = transfer;
        let interface = self.interfaces[usize::from(index)].as_deref()?;
        let place = interface.locate(target.process);
        let initiator = self.identity(interface);
        let kind = put.map_or(OperationKind::Get, OperationKind::Put);
        let token = self.operations.insert(Operation {
            interface: index,
            md: md.clone(),
            local_offset,
            length,
            user_ptr: target.user_ptr,
            kind,
            sent: put.is_none(),
            answered: put == Some(AckReq::None),
            fail: NiFail::Ok,
        });
        let request = Request {
            kind: if put.is_some() { RequestKind::Put } else { RequestKind::Get },
            pt_index: target.pt_index,
            match_bits: target.match_bits,
            remote_offset: target.remote_offset,
            length,
            hdr_data: target.hdr_data,
            ack: put.unwrap_or(AckReq::None),
            initiator,
            target: target.process,
            uid: self.uid,
            op: (put != Some(AckReq::None)).then_some(token),
        };
        let id = self.next_message_id();
        // A node that does not exist is found out by the network, which answers in the node's place.
        let node = place.map_or(self.nodes, |place| place.nid);
        let header =
            Rc::new(Header { id, source: self.node, target: node, interface: index, body: Body::Request(request) });
        let source = match put {
            Some(_) => Source::Host(md.region.clone(), local_offset),
            None => Source::Card(Vec::new()),
        };
        let sent = if put.is_some() { Sent::Operation(token) } else { Sent::Nothing };
        Some(Outgoing { header, source, sent })
    }

    /// Cuts a message into packets. Those from host memory are fetched by DMA, back to back, and leave in the order of
    /// the send queue; those on the card leave at once.
    pub(crate) fn send(&mut self, outgoing: Outgoing, ports: &mut impl Ports) {
        let Outgoing { header, source, sent } = outgoing;
        if header.target >= self.nodes {
            return self.undeliverable(&header, sent, ports);
        }
        let length = header.data_length();
        let mtu = u64::from(self.machine.network.mtu);
        self.stats.messages_sent += 1;
        let Source::Host(region, start) = source else {
            let Source::Card(data) = source else { return };
            debug_assert!(data.len() as u64 <= mtu, "card-side messages are single packets (sPIN App. B.6)");
            self.inject(Packet { header, offset: 0, data }, sent, ports);
            return;
        };
        let mut offset = 0;
        loop {
            let bytes = mtu.min(length - offset);
            let fetched = if bytes > 0 { self.dma_read(bytes, "fetch", Some(header.id), ports) } else { ports.now() };
            self.send_ready = self.send_ready.max(fetched);
            let last = offset + bytes >= length;
            let fetch = Fetch {
                header: header.clone(),
                region: region.clone(),
                region_offset: start + offset,
                offset,
                length: bytes as u32,
                sent: if last { sent } else { Sent::Nothing },
            };
            ports.schedule(self.send_ready, CardEvent::Fetched(Box::new(fetch)));
            offset += bytes;
            if last {
                break;
            }
        }
    }

    pub(super) fn fetched(&mut self, fetch: Fetch, ports: &mut impl Ports) {
        let Fetch { header, region, region_offset, offset, length, sent } = fetch;
        let mut data = vec![0; length as usize];
        if let Err(fault) = region.read(ports, region_offset, &mut data) {
            self.local_fault(&header, fault.to_string(), ports);
        }
        self.inject(Packet { header, offset, data }, sent, ports);
    }

    fn local_fault(&mut self, header: &Header, fault: String, ports: &mut impl Ports) {
        ports.warn(format!("{} to node {}: {fault}", header.name(), header.target));
        if let Body::Request(Request { op: Some(token), .. }) = header.body
            && let Some(operation) = self.operations.get_mut(token)
        {
            operation.fail = NiFail::Segv;
        }
    }

    /// Puts a packet on the wire when the port is free, and returns when its last byte has left.
    pub(crate) fn inject(&mut self, packet: Packet, sent: Sent, ports: &mut impl Ports) -> Time {
        let network = &self.machine.network;
        let bytes = packet.data.len() as u64;
        let gap = if packet.is_header() { network.gap } else { Time::ZERO };
        let (start, end) = self.tx.reserve(ports.now(), bytes, network.gap_per_byte, gap);
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += bytes;
        if ports.tracing() {
            let name = packet.header.name();
            let message = Some(packet.header.id);
            ports.slice(Slice { track: Track::NicOut, start, end, name, message, bytes: Some(bytes) });
        }
        ports.transmit(start, Box::new(packet));
        if sent != Sent::Nothing {
            ports.schedule(end, CardEvent::Sent(sent));
        }
        end
    }

    /// The network has no such node: what was asked for ends as `PTL_NI_UNDELIVERABLE`.
    fn undeliverable(&mut self, header: &Header, sent: Sent, ports: &mut impl Ports) {
        self.stats.undeliverable += 1;
        let token = match (sent, header.body) {
            (Sent::Operation(token), _) => token,
            (_, Body::Request(Request { op: Some(token), .. })) => token,
            _ => return,
        };
        if let Some(operation) = self.operations.get_mut(token) {
            operation.fail = NiFail::Undeliverable;
        }
        self.sent(Sent::Operation(token), ports);
        self.answer_undeliverable(token, ports);
    }

    /// The last byte of a message has left.
    pub(super) fn sent(&mut self, sent: Sent, ports: &mut impl Ports) {
        match sent {
            Sent::Nothing => {}
            Sent::Operation(token) => self.operation_progress(token, None, ports),
            Sent::Told(token) => self.finish_operation(token, None, ports),
            Sent::Get(message) => self.get_served(message, ports),
        }
    }

    fn get_served(&mut self, message: MessageId, ports: &mut impl Ports) {
        let done = self.dma_write(0, "", None, ports);
        ports.schedule(done, CardEvent::Complete(message));
    }
}
