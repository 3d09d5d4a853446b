// SPDX-License-Identifier: Apache-2.0
//! Processing of a message's packets at its target, and answers.

use std::rc::Rc;

use abi::portals::{AckReq, List, NiFail};

use super::dma::Operands;
use super::pipelines::Pipeline;
use super::rx::{RxMessage, Sink};
use crate::drops::{DropReason, Part};
use crate::event::{AtomicWork, Initiator, NicEvent, Sending, Sent, Source};
use crate::message::{Body, Header, Packet, Request, RequestKind, Response};
use crate::portals::{InternalError, Placement};
use crate::ports::{PacketId, Ports};

impl Pipeline {
    /// Performs the operation of a message on a packet (the "default action" of sPIN App. B.3).
    ///
    /// # Errors
    /// Returns an error if the message is in an impossible state.
    pub fn act(
        &mut self,
        rx: &mut RxMessage,
        packet: Box<Packet>,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let kind = match rx.header.body {
            Body::Request(request) => request.kind,
            Body::Response(_) => RequestKind::Put, // data of a response goes to memory like that of a put
        };
        match kind {
            RequestKind::Put => self.deposit(rx, packet, ports),
            RequestKind::Get => self.serve_get(rx, ports),
            RequestKind::Atomic(_) | RequestKind::FetchAtomic(_) => self.fetch_operands(rx, packet.data, ports),
        }
    }

    /// Sends data of a message to its placement in host memory, as far as it fits.
    fn deposit(
        &mut self,
        rx: &mut RxMessage,
        mut packet: Box<Packet>,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let mlength = match &rx.sink {
            Sink::Nowhere => return Ok(()),
            Sink::Entry(delivery) => delivery.taken.placement.mlength,
            Sink::Operation(token, response) => match self.portals.operation(*token)? {
                operation if operation.open => response.mlength,
                _ => return Ok(()), // its interface is closed
            },
        };
        packet.data.truncate(mlength.saturating_sub(packet.offset).try_into().unwrap_or(usize::MAX));
        if packet.data.is_empty() {
            return Ok(());
        }
        *self.deposits(rx) += 1;
        rx.deposited = true;
        let done = self.dma.deposit(packet.data.len() as u64, "deposit", Some(packet.id()), ports);
        if self.dma.writes_at_once() {
            self.store(rx, &packet, ports);
            packet.data.clear();
        }
        ports.schedule(done, NicEvent::Written(rx.header.id, packet));
        Ok(())
    }

    /// Returns the count of a message's deposits in flight.
    fn deposits<'a>(&self, rx: &'a mut RxMessage) -> &'a mut u32 {
        if self.dma.writes_at_once() { &mut rx.landing } else { &mut rx.moving }
    }

    /// Handles the arrival of a packet's data in host memory.
    pub fn written(&mut self, rx: &mut RxMessage, packet: &Packet, ports: &mut impl Ports) {
        *self.deposits(rx) -= 1;
        self.store(rx, packet, ports);
    }

    /// Writes a packet's data to the message's placement in host memory.
    fn store(&mut self, rx: &mut RxMessage, packet: &Packet, ports: &mut impl Ports) {
        // The interface may have been closed since the data left for host memory.
        let (region, start) = match &rx.sink {
            Sink::Nowhere => return,
            Sink::Entry(delivery) => (&delivery.taken.region, delivery.taken.placement.offset),
            Sink::Operation(token, _) => match self.portals.operations.get_mut(*token) {
                Some(operation) if operation.open => (&operation.md.region, operation.local_offset),
                _ => return,
            },
        };
        if let Err(fault) = region.write(ports, start + packet.offset, &packet.data) {
            rx.fails(NiFail::Segv);
            let node = ports.name_of(self.portals.node);
            ports.warn(format!("{} at {node}: {fault}", rx.header.name()));
        }
    }

    /// Sends the data that a get requests.
    fn serve_get(&mut self, rx: &mut RxMessage, ports: &mut impl Ports) -> Result<(), InternalError> {
        let (request, delivery) = rx.request()?;
        let op = request.op.ok_or(InternalError::WrongKind(rx.header.id))?;
        let (region, list) = (delivery.taken.region.clone(), delivery.taken.list);
        let Placement { offset: remote_offset, mlength } = delivery.taken.placement;
        let response =
            Response { op, to: rx.header.id, mlength, remote_offset, fail: NiFail::Ok, list, length: mlength };
        rx.moving += 1;
        rx.answered = true;
        let right = Some(rx.reply.insert(Rc::default()).clone());
        let header = self.response_header(&rx.header, response);
        let sent = Sent::Reply(rx.header.id);
        let reply = Sending::new(header, Source::Host(region, remote_offset), sent, Initiator::Card);
        self.send(Rc::new(Sending { right, ..reply }), ports);
        Ok(())
    }

    /// Starts an atomic whose data has arrived (it fits into one packet): the card reads the operands at the target,
    /// and later combines and writes them.
    fn fetch_operands(
        &mut self,
        rx: &mut RxMessage,
        mut data: Vec<u8>,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let (_, delivery) = rx.request()?;
        data.truncate(delivery.taken.placement.mlength as usize);
        rx.moving += 1;
        let message = rx.header.id;
        let Operands { read, there } = self.dma.operands(data.len() as u64, PacketId { message, offset: 0 }, ports);
        let work = AtomicWork { message, data, there, combined: false };
        ports.schedule(read, NicEvent::Atomic(Box::new(work)));
        Ok(())
    }

    /// Handles the operands of an atomic, at their read or on their arrival at the card.
    ///
    /// # Errors
    /// Returns an error if the message is in an impossible state.
    pub fn atomic(
        &mut self,
        rx: &mut RxMessage,
        work: AtomicWork,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        if !matches!(rx.sink, Sink::Entry(_)) {
            rx.moving -= 1; // its interface is closed
            return Ok(());
        }
        if work.combined { self.combined(rx, work, ports) } else { self.combine(rx, work, ports) }
    }

    /// Combines the operands when the read reaches host memory. Read, combination and write are one step of simulated
    /// time, so that atomics of a card never mix and later messages come later (Portals 4.3 §3.3). The card's further
    /// work takes time.
    fn combine(
        &mut self,
        rx: &mut RxMessage,
        mut work: AtomicWork,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let (spec, operand) = rx.atomic()?;
        let (_, delivery) = rx.request()?;
        let (region, offset) = (delivery.taken.region.clone(), delivery.taken.placement.offset);
        let mut old = vec![0; work.data.len()];
        let result = region.read(ports, offset, &mut old).and_then(|()| {
            let mut new = old.clone();
            spec.apply(&mut new, &work.data, &operand);
            region.write(ports, offset, &new)
        });
        if let Err(fault) = result {
            rx.fail = NiFail::Segv;
            let node = ports.name_of(self.portals.node);
            ports.warn(format!("atomic at {node}: {fault}"));
        }
        (work.data, work.combined) = (old, true);
        ports.schedule(work.there, NicEvent::Atomic(Box::new(work)));
        Ok(())
    }

    /// Handles the arrival of the operands on the card: sends the result to host memory, and the old values to an
    /// initiator that requested them.
    fn combined(&mut self, rx: &mut RxMessage, work: AtomicWork, ports: &mut impl Ports) -> Result<(), InternalError> {
        let (id, old) = (work.message, work.data);
        let written = self.dma.deposit(old.len() as u64, "result", None, ports);
        let (request, delivery) = rx.request()?;
        let (Placement { offset: remote_offset, mlength }, list) = (delivery.taken.placement, delivery.taken.list);
        let reply = request.op.filter(|_| request.kind.replies());
        // The reply's departure also completes the write, except for a completion handler, which may read the result.
        let waits = reply.is_none() || delivery.spin.is_some();
        rx.moving = rx.moving - 1 + u32::from(reply.is_some()) + u32::from(waits);
        (rx.deposited, rx.answered) = (reply.is_none(), reply.is_some());
        if let Some(op) = reply {
            let (to, length) = (id, old.len() as u64);
            let response = Response { op, to, mlength, remote_offset, fail: rx.fail, list, length };
            let header = self.response_header(&rx.header, response);
            self.stats.messages_sent += 1;
            self.inject(Box::new(Packet::new(header, 0, old)), Sent::Reply(id), ports);
        }
        if waits {
            ports.schedule(written, NicEvent::ResponseDone(id));
        }
        Ok(())
    }

    fn response_header(&mut self, to: &Header, response: Response) -> Rc<Header> {
        let id = self.next_message_id();
        let (source, target, interface) = (self.portals.node, to.source, to.interface);
        Rc::new(Header { id, source, target, interface, body: Body::Response(response) })
    }

    /// Answers a request without data, if its initiator expects an answer.
    pub fn respond(
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
        let response = Response { op, to: header.id, mlength, remote_offset, fail, list, length: 0 };
        let header = self.response_header(header, response);
        self.stats.messages_sent += 1;
        self.inject(Box::new(Packet::new(header, 0, Vec::new())), Sent::Nothing, ports);
    }

    /// Drops a whole message: it fails, its room in the entry is freed, and an initiator that waits for data is
    /// notified.
    ///
    /// # Errors
    /// Returns an error if no entry receives the message.
    pub fn drop_message(
        &mut self,
        rx: &mut RxMessage,
        reason: NiFail,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        rx.fails(reason);
        let (request, delivery) = rx.request()?;
        let taken = &delivery.taken;
        self.portals.give_back(rx.header.interface, taken);
        if request.kind.replies() {
            let nothing = Placement { mlength: 0, ..taken.placement };
            self.respond(&rx.header, &request, nothing, taken.list, rx.fail, ports);
            rx.answered = true;
        }
        Ok(())
    }

    /// Counts bytes of a message as dropped: for its handlers, for its event, and (with a reason) for reports.
    ///
    /// # Errors
    /// Returns an error if the message has no handlers.
    pub fn drop_data(
        &mut self,
        rx: &mut RxMessage,
        reason: Option<DropReason>,
        offset: u64,
        bytes: u64,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let mlength = rx.request()?.1.taken.placement.mlength;
        let is_first = rx.spin()?.note_dropped(reason, offset, bytes, mlength);
        if let Some(reason) = reason {
            let part = Part { is_first, packets: 1, bytes };
            self.count_part(reason, &rx.header, part, ports);
        }
        Ok(())
    }
}
