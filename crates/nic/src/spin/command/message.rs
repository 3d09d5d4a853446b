//! Messages that handlers send.

use std::rc::Rc;

use abi::device::{AtomicCmd, PutCmd};
use abi::portals::{AckReq, AtomicOp, Datatype, NiFail, Process, md};

use super::{Commanded, INVALID, Outcome, inside};
use crate::atomic::{AtomicSpec, MAX_OPERAND};
use crate::card::{Card, CardPlace, Operation, OperationKind, Outgoing, Sent, Source};
use crate::interface::MemoryDescriptor;
use crate::message::{Body, Header, Packet, Request, RequestKind};
use crate::ports::Ports;
use crate::region::Region;

/// `PTL_LOCAL_ME_CT`: the operation counts on the ME's counter.
const LOCAL_ME_CT: u16 = 1;

/// A message of a handler, ready to go.
struct Ready {
    header: Rc<Header>,
    sent: Sent,
    /// Memory of the handler's entry.
    region: Rc<Region>,
}

impl Card {
    /// A single-packet put from device memory.
    pub(super) fn put_from_device(&mut self, context: u16, argument: u32, ports: &mut impl Ports) -> Commanded {
        let command: PutCmd = self.spin.argument(context, argument)?;
        self.send_from_device(context, &command, RequestKind::Put, ports)
    }

    /// A put from the ME's host memory, as if the host had posted it.
    pub(super) fn put_from_host(&mut self, context: u16, argument: u32, ports: &mut impl Ports) -> Commanded {
        let command: PutCmd = self.spin.argument(context, argument)?;
        self.send_from_host(context, &command, RequestKind::Put, ports)
    }

    pub(super) fn atomic_by_handler(
        &mut self,
        context: u16,
        host: bool,
        argument: u32,
        ports: &mut impl Ports,
    ) -> Commanded {
        let command: AtomicCmd = self.spin.argument(context, argument)?;
        let spec = AtomicSpec {
            op: AtomicOp::from_raw(u64::from(command.operation)).ok_or(INVALID)?,
            datatype: Datatype::from_raw(u64::from(command.datatype)).ok_or(INVALID)?,
        };
        if !spec.is_plain() || !spec.is_defined() {
            return Err(INVALID);
        }
        match host {
            true => self.send_from_host(context, &command.put, RequestKind::Atomic(spec), ports),
            false => self.send_from_device(context, &command.put, RequestKind::Atomic(spec), ports),
        }
    }

    /// A get into the ME's host memory, or into device memory: that one is a single packet and waits for it.
    pub(super) fn get_by_handler(
        &mut self,
        context: u16,
        host: bool,
        argument: u32,
        ports: &mut impl Ports,
    ) -> Commanded {
        let command: PutCmd = self.spin.argument(context, argument)?;
        let mut place = None;
        if !host {
            if command.len > u64::from(self.spin.mtu) {
                return Err(INVALID);
            }
            let addr = command.local as u32;
            if !self.spin.owns(context, addr, command.len as u32, true) {
                let what = format!("got {} bytes to {addr:#x}, which are not its own", command.len);
                return Err(Outcome::Fault(what, addr));
            }
            place = Some(CardPlace { context, start: addr });
        }
        let ready = self.handler_message(context, &command, RequestKind::Get, host, place)?;
        self.send(Outgoing { header: ready.header, source: Source::Card(Vec::new()), sent: Sent::Nothing }, ports);
        Ok(if host { Outcome::Continue(0) } else { Outcome::ForEvent })
    }

    fn send_from_device(
        &mut self,
        context: u16,
        command: &PutCmd,
        kind: RequestKind,
        ports: &mut impl Ports,
    ) -> Commanded {
        if command.len > u64::from(self.spin.mtu) {
            return Err(INVALID);
        }
        let (addr, len) = (command.local as u32, command.len as u32);
        let fault = || Outcome::Fault(format!("put {len} bytes from {addr:#x}, which are not its own"), addr);
        let data = self.spin.bytes_of(context, addr, len).ok_or_else(fault)?;
        let ready = self.handler_message(context, command, kind, false, None)?;
        self.stats.messages_sent += 1;
        let left = self.inject(Packet { header: ready.header, offset: 0, data }, ready.sent, ports);
        Ok(match left {
            _ if !self.spin.config.put_blocks => Outcome::Continue(0),
            Some(left) => Outcome::Until(left),
            None => Outcome::ForDeparture,
        })
    }

    fn send_from_host(
        &mut self,
        context: u16,
        command: &PutCmd,
        kind: RequestKind,
        ports: &mut impl Ports,
    ) -> Commanded {
        let ready = self.handler_message(context, command, kind, true, None)?;
        let source = Source::Host(ready.region, command.local);
        self.send(Outgoing { header: ready.header, source, sent: ready.sent }, ports);
        Ok(Outcome::Continue(0))
    }

    /// The header of a handler's message; what the call does not say is inherited from the ME (App. B.6). `host`: its
    /// data is in the ME's memory.
    fn handler_message(
        &mut self,
        context: u16,
        command: &PutCmd,
        kind: RequestKind,
        host: bool,
        card: Option<CardPlace>,
    ) -> Result<Ready, Outcome> {
        let ack =
            if kind.replies() { AckReq::None } else { AckReq::from_raw(command.ack_req.into()).ok_or(INVALID)? };
        let task = &self.spin.contexts[usize::from(context)].as_ref().ok_or(INVALID)?.task;
        let (message, handler) = (task.message, task.handler.name.clone());
        let entry = self.delivery(message).ok_or(INVALID)?.entry;
        let index = self.inbound(message).ok_or(INVALID)?.header.interface;
        let interface = self.interfaces[usize::from(index)].as_deref().ok_or(INVALID)?;
        let entry = interface.entries.get(entry).map_err(|_| INVALID)?;
        let limits = &interface.limits;
        let most = if matches!(kind, RequestKind::Atomic(_)) { limits.max_atomic_size } else { limits.max_msg_size };
        if command.ct > LOCAL_ME_CT || command.len > most || host && !inside(&entry.region, command.local, command.len)
        {
            return Err(INVALID);
        }
        let portal = interface.portals.get(entry.pt_index as usize).and_then(Option::as_ref).ok_or(INVALID)?;
        let place: Process =
            interface.locate(command.target_id).filter(|place| place.nid < self.nodes).ok_or(INVALID)?;
        let (pt_index, initiator, region) = (entry.pt_index, self.identity(interface), entry.region.clone());
        let counts = match (command.ct, kind.replies()) {
            (0, _) => 0,
            (LOCAL_ME_CT.., false) => md::EVENT_CT_SEND | md::EVENT_CT_ACK,
            (LOCAL_ME_CT.., true) => md::EVENT_CT_REPLY,
        };
        let descriptor = Rc::new(MemoryDescriptor {
            region: region.clone(),
            options: md::EVENT_SEND_DISABLE | counts,
            eq: if card.is_some() { abi::portals::EQ_NONE } else { portal.eq },
            ct: entry.ct,
        });
        let answered = ack == AckReq::None && !kind.replies();
        let token = (command.ct != 0 || !answered).then(|| {
            self.operations.insert(Operation {
                interface: index,
                open: true,
                send_md: descriptor.clone(),
                md: descriptor,
                card,
                local_offset: command.local,
                length: command.len,
                user_ptr: u64::from(command.user_ptr),
                kind: if kind.replies() { OperationKind::Get } else { OperationKind::Put(ack) },
                sent: kind.replies(),
                answered,
                fail: NiFail::Ok,
            })
        });
        self.handler_stats(&handler).puts += 1;
        let request = Request {
            kind,
            pt_index,
            match_bits: command.match_bits,
            remote_offset: command.remote_offset,
            length: command.len,
            hdr_data: if kind == RequestKind::Get { 0 } else { command.hdr_data },
            ack,
            initiator,
            target: command.target_id,
            uid: self.uid,
            op: token.filter(|_| !answered),
            operand: [0; MAX_OPERAND],
            fail: NiFail::Ok,
        };
        let id = self.next_message_id();
        let body = Body::Request(request);
        let header = Rc::new(Header { id, source: self.node, target: place.nid, interface: index, body });
        Ok(Ready { header, sent: token.map_or(Sent::Nothing, Sent::Operation), region })
    }
}
