//! From a message to packets on the wire.

use std::rc::Rc;

use abi::portals::{AckReq, NiFail, md};
use sim::Time;

use crate::atomic::MAX_OPERAND;

use super::{Card, CardEvent, Fetch, Operation, OperationKind, Outgoing, Sent, Source};
use crate::drops::DropReason;
use crate::message::{Body, Header, Packet, Request, RequestKind};
use crate::ports::{PacketId, Ports, Slice, Track};
use crate::triggered::{Action, Transfer};

impl Card {
    /// Starts a put or get whose descriptor reaches the card at `at`.
    pub(crate) fn start_transfer(&mut self, transfer: Transfer, at: Time, ports: &mut impl Ports) {
        let outgoing = self.prepare(transfer, ports);
        match outgoing {
            Some(outgoing) => ports.schedule(at, CardEvent::Send(Box::new(outgoing))),
            None => self.stats.undeliverable += 1,
        }
    }

    fn prepare(&mut self, transfer: Transfer, ports: &mut impl Ports) -> Option<Outgoing> {
        let Transfer { action, interface: index, md, local_offset, length, target } = transfer;
        let (kind, ack, send_md, send_offset, operand) = match action {
            Action::Put(ack) => (RequestKind::Put, ack, md.clone(), local_offset, [0; MAX_OPERAND]),
            Action::Get => (RequestKind::Get, AckReq::None, md.clone(), 0, [0; MAX_OPERAND]),
            Action::Atomic(ack, spec) => (RequestKind::Atomic(spec), ack, md.clone(), local_offset, [0; MAX_OPERAND]),
            Action::Fetch(fetch) => {
                (RequestKind::FetchAtomic(fetch.spec), AckReq::None, fetch.put_md, fetch.put_offset, fetch.operand)
            }
        };
        let answered = ack == AckReq::None && !kind.replies();
        let interface = self.interfaces[usize::from(index)].as_deref()?;
        let place = interface.locate(target.process);
        let initiator = self.identity(interface);
        let volatile = send_md.has(md::VOLATILE) && length <= interface.limits.max_volatile_size;
        let token = self.operations.insert(Operation {
            interface: index,
            md,
            send_md: send_md.clone(),
            card: None,
            local_offset,
            length,
            user_ptr: target.user_ptr,
            kind: if kind.replies() { OperationKind::Get } else { OperationKind::Put(ack) },
            sent: kind == RequestKind::Get,
            answered,
            fail: NiFail::Ok,
        });
        let request = Request {
            kind,
            pt_index: target.pt_index,
            match_bits: target.match_bits,
            remote_offset: target.remote_offset,
            length,
            hdr_data: target.hdr_data,
            ack,
            initiator,
            target: target.process,
            uid: self.uid,
            op: (!answered).then_some(token),
            operand,
            fail: NiFail::Ok,
        };
        let id = self.next_message_id();
        // A node that does not exist is found out by the network, which answers in the node's place.
        let node = place.map_or(self.nodes, |place| place.nid);
        let header =
            Rc::new(Header { id, source: self.node, target: node, interface: index, body: Body::Request(request) });
        let mut data = vec![0; if volatile { length as usize } else { 0 }];
        let source = if kind == RequestKind::Get {
            Source::Descriptor(Vec::new())
        } else if volatile && send_md.region.read(ports, send_offset, &mut data).is_ok() {
            Source::Descriptor(data)
        } else {
            Source::Host(send_md.region.clone(), send_offset)
        };
        let sent = if kind == RequestKind::Get { Sent::Nothing } else { Sent::Operation(token) };
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
        let (region, start) = match source {
            Source::Host(region, start) => (region, start),
            Source::Card(data) => {
                debug_assert!(data.len() as u64 <= mtu, "card-side messages are single packets (sPIN App. B.6)");
                self.inject(Packet { header, offset: 0, data }, sent, ports);
                return;
            }
            Source::Descriptor(data) => {
                self.send_ready = self.send_ready.max(ports.now());
                let fetch = Fetch { header, from: None, data, offset: 0, ready: self.send_ready, sent };
                ports.schedule(self.send_ready, CardEvent::Fetched(Box::new(fetch)));
                return;
            }
        };
        let serves = matches!(header.body, Body::Response(_));
        let mut offset = 0;
        loop {
            let bytes = mtu.min(length - offset);
            let fetched = if bytes > 0 {
                self.dma_read(bytes, "fetch", Some(PacketId { message: header.id, offset }), ports)
            } else {
                ports.now()
            };
            self.send_ready = self.send_ready.max(fetched);
            let last = offset + bytes >= length;
            let fetch = Fetch {
                header: header.clone(),
                from: Some((region.clone(), start.wrapping_add(offset))),
                data: vec![0; bytes as usize],
                offset,
                ready: self.send_ready,
                sent: if last { sent } else { Sent::Nothing },
            };
            // What a get reads is what its target's memory holds when the request reaches it: DMA keeps reads and writes
            // in order, and a later message must not change it (Portals 4.3 §3.3: write after read).
            let read = if serves { fetched.saturating_sub(self.machine.dma.latency) } else { self.send_ready };
            ports.schedule(read.max(ports.now()), CardEvent::Fetched(Box::new(fetch)));
            offset += bytes;
            if last {
                break;
            }
        }
    }

    pub(super) fn fetched(&mut self, mut fetch: Fetch, ports: &mut impl Ports) {
        if let Some((region, start)) = fetch.from.take()
            && let Err(fault) = region.read(ports, start, &mut fetch.data)
        {
            self.local_fault(&mut fetch, fault.to_string(), ports);
        }
        if ports.now() < fetch.ready {
            return ports.schedule(fetch.ready, CardEvent::Fetched(Box::new(fetch)));
        }
        let Fetch { header, data, offset, sent, .. } = fetch;
        self.inject(Packet { header, offset, data }, sent, ports);
    }

    /// The program's own memory is not there: the operation fails, or the answer says so, and the packet.
    fn local_fault(&mut self, fetch: &mut Fetch, fault: String, ports: &mut impl Ports) {
        ports.warn(format!("{} to node {}: {fault}", fetch.header.name(), fetch.header.target));
        match &mut Rc::make_mut(&mut fetch.header).body {
            Body::Request(request) => {
                request.fail = NiFail::Segv;
                let token = match fetch.sent {
                    Sent::Operation(token) => Some(token),
                    _ => request.op,
                };
                if let Some(operation) = token.and_then(|token| self.operations.get_mut(token)) {
                    operation.fail = NiFail::Segv;
                }
            }
            Body::Response(response) => response.fail = NiFail::Segv,
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
            ports.slice(Slice {
                track: Track::NicOut,
                start,
                end,
                name,
                packet: Some(packet.id()),
                bytes: Some(bytes),
            });
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
        self.count_message(DropReason::NoProcess, header, ports.now());
        let token = match (sent, header.body) {
            (Sent::Operation(token), _) => token,
            (_, Body::Request(Request { op: Some(token), .. })) => token,
            _ => return,
        };
        let Some(operation) = self.operations.get_mut(token) else { return };
        operation.fail = NiFail::Undeliverable;
        // Told once: by SEND when anybody sees that, else by the answer that will not come.
        let departs = !operation.sent;
        if departs && (operation.answered || operation.send_md.sees(md::EVENT_CT_SEND, md::EVENT_SEND_DISABLE)) {
            operation.answered = true;
            self.sent(Sent::Operation(token), ports);
        } else {
            operation.sent = true;
            self.answer_undeliverable(token, ports);
        }
    }

    /// The last byte of a message has left.
    pub(super) fn sent(&mut self, sent: Sent, ports: &mut impl Ports) {
        match sent {
            Sent::Nothing => {}
            Sent::Operation(token) => self.operation_progress(token, None, ports),
            Sent::Told(token) => self.finish_operation(token, None, ports),
            Sent::Reply(message) => self.moved(message, ports),
        }
    }
}
