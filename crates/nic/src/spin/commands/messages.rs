//! Messages that handlers send.

use std::rc::Rc;

use abi::portals::{AckReq, AtomicOp, Datatype, EQ_NONE, NiFail, Process, md};
use accel::{Place, Reply};

use super::{Executed, INVALID, Issuer, inside};
use crate::atomic::{AtomicSpec, MAX_OPERAND};
use crate::card::Card;
use crate::event::{CardEvent, Outgoing, Sent, Source};
use crate::message::{Body, Header, Packet, Request, RequestKind};
use crate::portals::MemoryDescriptor;
use crate::portals::{CardPlace, Operation, OperationKind};
use crate::ports::Ports;
use crate::region::Region;

/// A message of a handler, ready to go.
struct Ready {
    header: Rc<Header>,
    sent: Sent,
    /// Memory of the handler's entry.
    region: Rc<Region>,
}

impl Card {
    /// A put: a single packet from device memory, or from the ME's host memory as if the host had posted it.
    pub(super) fn put_by_handler(
        &mut self,
        issuer: &Issuer,
        message: &accel::Message,
        ports: &mut impl Ports,
    ) -> Executed {
        self.send_by_handler(issuer, message, RequestKind::Put, ports)
    }

    /// An atomic, likewise.
    pub(super) fn atomic_by_handler(
        &mut self,
        issuer: &Issuer,
        message: &accel::Message,
        op: AtomicOp,
        datatype: Datatype,
        ports: &mut impl Ports,
    ) -> Executed {
        let spec = AtomicSpec { op, datatype };
        if !spec.is_plain() || !spec.is_defined() {
            return Err(INVALID);
        }
        self.send_by_handler(issuer, message, RequestKind::Atomic(spec), ports)
    }

    /// A get into the ME's host memory, or into device memory: that one is a single packet, and its handler waits for it.
    pub(super) fn get_by_handler(
        &mut self,
        issuer: &Issuer,
        message: &accel::Message,
        ports: &mut impl Ports,
    ) -> Executed {
        let mut place = None;
        if let Place::Device(local) = message.place {
            if message.length > u64::from(self.machine.network.mtu) {
                return Err(INVALID);
            }
            let address = local as u32;
            if !self.spin.accelerator.may_write(issuer.id, address, message.length as u32) {
                let what = format!("got {} bytes to {address:#x}, which are not its own", message.length);
                return Err(Reply::Fault { what, address });
            }
            place = Some(CardPlace { command: issuer.id, start: address });
        }
        let ready = self.handler_message(issuer, message, RequestKind::Get, place)?;
        self.send(Outgoing { header: ready.header, source: Source::Card(Vec::new()), sent: Sent::Nothing }, ports);
        Ok(if place.is_some() { Reply::Blocked } else { Reply::Done(0) })
    }

    fn send_by_handler(
        &mut self,
        issuer: &Issuer,
        message: &accel::Message,
        kind: RequestKind,
        ports: &mut impl Ports,
    ) -> Executed {
        let local = match message.place {
            Place::Host(offset) => {
                let ready = self.handler_message(issuer, message, kind, None)?;
                let source = Source::Host(ready.region, offset);
                self.send(Outgoing { header: ready.header, source, sent: ready.sent }, ports);
                return Ok(Reply::Done(0));
            }
            Place::Device(local) => local as u32,
        };
        if message.length > u64::from(self.machine.network.mtu) {
            return Err(INVALID);
        }
        let length = message.length as u32;
        let data = self.spin.accelerator.read(issuer.id, local, length);
        let data = self.report(data, ports).flatten().ok_or_else(|| Reply::Fault {
            what: format!("put {length} bytes from {local:#x}, which are not its own"),
            address: local,
        })?;
        let ready = self.handler_message(issuer, message, kind, None)?;
        self.stats.messages_sent += 1;
        let left = self.inject(Packet { header: ready.header, offset: 0, data }, ready.sent, ports);
        Ok(left.map_or_else(
            || {
                self.when_departed(CardEvent::CommandDone(issuer.id));
                Reply::Queued
            },
            Reply::Leaves,
        ))
    }

    /// The header of a handler's message; what the call does not say is inherited from the ME (App. B.6). `card` is where
    /// the answer goes if it stays on the card.
    fn handler_message(
        &mut self,
        issuer: &Issuer,
        message: &accel::Message,
        kind: RequestKind,
        card: Option<CardPlace>,
    ) -> Result<Ready, Reply> {
        let (local, host) = match message.place {
            Place::Host(offset) => (offset, true),
            Place::Device(address) => (address, false),
        };
        let entry = self.delivery(issuer.message).ok_or(INVALID)?.taken.entry;
        let index = self.rx(issuer.message).ok_or(INVALID)?.header.interface;
        let interface = self.portals.interfaces[usize::from(index)].as_deref().ok_or(INVALID)?;
        let entry = interface.entries.get(entry).map_err(|_| INVALID)?;
        let limits = &interface.limits;
        let most = if matches!(kind, RequestKind::Atomic(_)) { limits.max_atomic_size } else { limits.max_msg_size };
        if message.length > most || host && !inside(&entry.region, local, message.length) {
            return Err(INVALID);
        }
        let portal = interface.portals.get(entry.pt_index as usize).and_then(Option::as_ref).ok_or(INVALID)?;
        let target: Process =
            interface.locate(message.target).filter(|place| place.nid < self.portals.nodes).ok_or(INVALID)?;
        let (pt_index, initiator, region) = (entry.pt_index, self.portals.identity(interface), entry.region.clone());
        let counts = match (message.counted, kind.replies()) {
            (false, _) => 0,
            (true, false) => md::EVENT_CT_SEND | md::EVENT_CT_ACK,
            (true, true) => md::EVENT_CT_REPLY,
        };
        let descriptor = Rc::new(MemoryDescriptor {
            region: region.clone(),
            options: md::EVENT_SEND_DISABLE | counts,
            eq: if card.is_some() { EQ_NONE } else { portal.eq },
            ct: entry.ct,
        });
        let answered = message.ack == AckReq::None && !kind.replies();
        let token = (message.counted || !answered).then(|| {
            self.portals.operations.insert(Operation {
                interface: index,
                open: true,
                send_md: descriptor.clone(),
                md: descriptor,
                card,
                local_offset: local,
                length: message.length,
                user_ptr: message.user_ptr,
                kind: if kind.replies() { OperationKind::Get } else { OperationKind::Put(message.ack) },
                sent: kind.replies(),
                answered,
                fail: NiFail::Ok,
            })
        });
        self.handler_stats(&issuer.handler).puts += 1;
        let request = Request {
            kind,
            pt_index,
            match_bits: message.match_bits,
            remote_offset: message.remote_offset,
            length: message.length,
            hdr_data: if kind == RequestKind::Get { 0 } else { message.hdr_data },
            ack: message.ack,
            initiator,
            target: message.target,
            uid: self.portals.uid,
            op: token.filter(|_| !answered),
            operand: [0; MAX_OPERAND],
            fail: NiFail::Ok,
        };
        let id = self.next_message_id();
        let body = Body::Request(request);
        let header = Rc::new(Header { id, source: self.portals.node, target: target.nid, interface: index, body });
        Ok(Ready { header, sent: token.map_or(Sent::Nothing, Sent::Operation), region })
    }
}
