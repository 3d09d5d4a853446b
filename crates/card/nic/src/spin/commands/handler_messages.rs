// SPDX-License-Identifier: Apache-2.0
//! Messages that handlers send.

use std::rc::Rc;

use abi::portals::{AckReq, EQ_NONE, NiFail, Process, md};
use accel::{Fetch, HostMemory, Place, Reply};

use super::reply::{Executed, Issuer, Refusal, fault, inside, outside, refused};
use crate::atomic::{self, AtomicSpec, MAX_OPERAND};
use crate::event::{Initiator, NicEvent, Sending, Sent, Source};
use crate::message::{Body, Header, Packet, Request, RequestKind};
use crate::pipeline::{Pipeline, RxMessage};
use crate::portals::{CardPlace, MemoryDescriptor, Operation, OperationKind};
use crate::ports::Ports;
use crate::region::Region;
use crate::spin::handler_state::Spin;

/// A handler's message that is ready to send.
struct Ready {
    header: Rc<Header>,
    sent: Sent,
    /// Memory of the handler's entry.
    region: Region,
}

/// Returns the name of a command that sends a message.
fn name(kind: RequestKind, place: Place) -> &'static str {
    match (kind, place) {
        (RequestKind::Atomic(_), Place::Device(_)) => "atomic message from the card",
        (RequestKind::Atomic(_), Place::Host(_)) => "atomic message from host",
        (RequestKind::FetchAtomic(_), _) => "fetching atomic",
        (kind, Place::Device(_)) if kind.replies() => "get to the card",
        (kind, Place::Host(_)) if kind.replies() => "get to host",
        (_, Place::Device(_)) => "put from the card",
        (_, Place::Host(_)) => "put from host",
    }
}

/// Refuses a message from card memory that does not fit into a packet.
fn fits(length: u64, command: &str, pipeline: &Pipeline) -> Result<(), Refusal> {
    let most = pipeline.machine.network.mtu;
    if length > u64::from(most) {
        return Err(refused(format!("{command}: {length} B exceeds a packet's {most} B (network.mtu_bytes)")));
    }
    Ok(())
}

/// Refuses a message to a nonexistent process.
fn nobody(command: &str, target: Process, is_logical: bool, map: Option<&[Process]>, nodes: u32) -> Refusal {
    let why = match map {
        Some(map) if is_logical => format!("rank {} of {}", target.nid, map.len()),
        None if is_logical => "no map: spin_set_map was not called".to_owned(),
        _ => format!("process {} of node {} of {nodes}", target.pid, target.nid),
    };
    refused(format!("{command}: {why}"))
}

impl Spin {
    /// Executes a put: a single packet from device memory, or from the ME's host memory as if posted by the host.
    pub(super) fn put(
        &mut self,
        issuer: &Issuer,
        rx: &RxMessage,
        message: &accel::Message,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Executed {
        self.send(issuer, rx, message, RequestKind::Put, pipeline, ports)
    }

    /// Executes an atomic, with the same sources as a put.
    pub(super) fn atomic(
        &mut self,
        issuer: &Issuer,
        rx: &RxMessage,
        message: &accel::Message,
        spec: AtomicSpec,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Executed {
        if !spec.is_plain() || !spec.is_defined() {
            let AtomicSpec { op, datatype } = spec;
            return Err(refused(format!("atomic message: {op:?} of {datatype:?} is no operation of PtlAtomic")));
        }
        self.send(issuer, rx, message, RequestKind::Atomic(spec), pipeline, ports)
    }

    /// Executes a get into the ME's host memory or into device memory. The latter is a single packet that its handler
    /// waits for.
    pub(super) fn get(
        &mut self,
        issuer: &Issuer,
        rx: &RxMessage,
        message: &accel::Message,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Executed {
        let mut place = None;
        if let Place::Device(local) = message.place {
            fits(message.length, "get to the card", pipeline)?;
            let address = local as u32;
            if !self.accelerator.may_write(issuer.id, address, message.length as u32) {
                let what = format!("got {} bytes to {address:#x}, which are not its own", message.length);
                return Err(fault(what, address));
            }
            place = Some(CardPlace { command: issuer.id, start: address });
        }
        let Ready { header, .. } = self.message(issuer, rx, message, RequestKind::Get, place, pipeline)?;
        let get = Sending::new(header, Source::Card(Vec::new()), Sent::Nothing, Initiator::Handler);
        pipeline.send(Rc::new(get), ports);
        Ok(if place.is_some() { Reply::Blocked } else { Reply::Done(0) })
    }

    /// Executes a fetching atomic or swap with data in device memory. Its handler waits for the target's previous data.
    pub(super) fn fetch_atomic(
        &mut self,
        issuer: &Issuer,
        rx: &RxMessage,
        message: &accel::Message,
        fetch: &Fetch,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Executed {
        let (op, datatype) = (fetch.operation, fetch.datatype);
        let (spec, item) = (AtomicSpec { op, datatype }, atomic::size(datatype) as u64);
        if !spec.is_defined() {
            return Err(refused(format!("fetching atomic: {op:?} of {datatype:?} is no operation")));
        }
        if spec.is_conditional() && message.length != item {
            return Err(refused(format!(
                "fetching atomic: {op:?} takes one item of {item} B, not {} B",
                message.length
            )));
        }
        let Place::Device(local) = message.place else {
            return Err(refused("fetching atomic: its data is not on the card".to_owned()));
        };
        let kind = RequestKind::FetchAtomic(spec);
        fits(message.length, name(kind, message.place), pipeline)?;
        let (local, length) = (local as u32, message.length as u32);
        let foreign =
            |at| fault(format!("issued a fetching atomic of {length} bytes at {at:#x}, which are not its own"), at);
        if !self.accelerator.may_write(issuer.id, fetch.result, length) {
            return Err(foreign(fetch.result));
        }
        let data = self.accelerator.read(issuer.id, local, length)?.ok_or_else(|| foreign(local))?;
        let place = CardPlace { command: issuer.id, start: fetch.result };
        let Ready { mut header, .. } = self.message(issuer, rx, message, kind, Some(place), pipeline)?;
        if let Body::Request(request) = &mut Rc::make_mut(&mut header).body {
            request.operand = fetch.operand;
        }
        let sending = Sending::new(header, Source::Card(data), Sent::Nothing, Initiator::Handler);
        pipeline.send(Rc::new(sending), ports);
        Ok(Reply::Blocked)
    }

    fn send(
        &mut self,
        issuer: &Issuer,
        rx: &RxMessage,
        message: &accel::Message,
        kind: RequestKind,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Executed {
        let local = match message.place {
            Place::Host(offset) => {
                let Ready { header, sent, region } = self.message(issuer, rx, message, kind, None, pipeline)?;
                let message = Sending::new(header, Source::Host(region, offset), sent, Initiator::Handler);
                pipeline.send(Rc::new(message), ports);
                return Ok(Reply::Done(0));
            }
            Place::Device(local) => local as u32,
        };
        fits(message.length, name(kind, message.place), pipeline)?;
        let length = message.length as u32;
        let data = self.accelerator.read(issuer.id, local, length)?;
        let foreign = || fault(format!("put {length} bytes from {local:#x}, which are not its own"), local);
        let data = data.ok_or_else(foreign)?;
        let Ready { header, sent, .. } = self.message(issuer, rx, message, kind, None, pipeline)?;
        pipeline.stats.messages_sent += 1;
        let packet = Box::new(Packet::new(header, 0, data));
        let leaves = pipeline.inject_then(packet, sent, NicEvent::CommandDone(issuer.id), ports);
        Ok(leaves.map_or(Reply::Queued, Reply::Leaves))
    }

    /// Builds the header of a handler's message; parameters that the call does not set come from the ME (App. B.6).
    /// `card` is the destination of an answer that stays on the card.
    fn message(
        &mut self,
        issuer: &Issuer,
        rx: &RxMessage,
        message: &accel::Message,
        kind: RequestKind,
        card: Option<CardPlace>,
        pipeline: &mut Pipeline,
    ) -> Result<Ready, Refusal> {
        let (local, host) = match message.place {
            Place::Host(offset) => (offset, true),
            Place::Device(address) => (address, false),
        };
        let (index, entry) = (rx.header.interface, rx.request()?.1.taken.entry);
        let command = name(kind, message.place);
        let gone = || refused(format!("{command}: the handler's entry is no longer there"));
        let portals = &mut pipeline.portals;
        let interface = portals.interfaces[usize::from(index)].as_deref().ok_or_else(gone)?;
        let entry = interface.entries.get(entry).map_err(|_| gone())?;
        let limits = &interface.limits;
        let most = match kind {
            RequestKind::Atomic(_) => limits.max_atomic_size,
            RequestKind::FetchAtomic(_) => limits.max_fetch_atomic_size,
            RequestKind::Put | RequestKind::Get => limits.max_msg_size,
        };
        if message.length > most {
            return Err(refused(format!("{command}: {} B exceeds the interface's limit of {most} B", message.length)));
        }
        if host && !inside(&entry.region, local, message.length) {
            return Err(outside(command, local, message.length, HostMemory::Entry, &entry.region));
        }
        let portal = interface.portals.get(entry.pt_index as usize).and_then(Option::as_ref).ok_or_else(gone)?;
        let place = interface.locate(message.target);
        let place = place.map(|place| portals.find(place)).filter(|node| *node < portals.nodes);
        let (is_logical, map) = (interface.logical(), interface.map.as_deref());
        let target = place.ok_or_else(|| nobody(command, message.target, is_logical, map, portals.reachable()))?;
        let (pt_index, initiator, region) = (entry.pt_index, portals.identity(interface), entry.region.clone());
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
            portals.operations.insert(Operation {
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
                message: 0,
                peer: 0,
            })
        });
        self.stats_of(&issuer.handler).puts += 1;
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
            uid: portals.uid,
            op: token.filter(|_| !answered),
            operand: [0; MAX_OPERAND],
            fail: NiFail::Ok,
            may_be_lost: false,
        };
        let (id, node) = (pipeline.next_message_id(), pipeline.portals.node);
        let body = Body::Request(request);
        let header = Rc::new(Header { id, source: node, target, interface: index, body });
        if let Some(token) = token {
            pipeline.portals.operations.sent_as(token, &header);
        }
        Ok(Ready { header, sent: token.map_or(Sent::Nothing, Sent::Operation), region })
    }
}
