// SPDX-License-Identifier: Apache-2.0
//! Handlers of a message: selection of their packets, and the effects of their outcomes (sPIN §3.2.1–3.2.3, App.
//! B.3–B.5).

use abi::portals::NiFail;
use accel::{Failure, Finished, HandlerError, Input, MessageHeader, MessageKind, Outcome, Role, Task};

use super::handler_state::Spin;
use super::verdict::{Completion, FirstError, MessageVerdict, Owner, SpinMessage, fail_code};
use crate::drops::DropReason;
use crate::message::{Packet, Request, RequestKind};
use crate::pipeline::{Pipeline, RxMessage};
use crate::portals::InternalError;
use crate::ports::Ports;

impl Spin {
    /// Handles an arrived packet of a message with handlers.
    ///
    /// # Errors
    /// Returns an error if the message or the accelerator is in an impossible state.
    pub fn packet(
        &mut self,
        rx: &mut RxMessage,
        packet: Box<Packet>,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let message = rx.spin()?;
        match message.verdict {
            MessageVerdict::Open => self.keep_for_header_handler(rx, &packet, pipeline, ports),
            MessageVerdict::Process if message.has_payload_handler => {
                match self.store(rx, &packet, pipeline, ports)? {
                    Some(stored) => self.offer_payload(rx, stored, ports),
                    None => drop_packet(rx, &packet, DropReason::NoBuffer, pipeline, ports),
                }
            }
            MessageVerdict::Process | MessageVerdict::Proceed => pipeline.act(rx, packet, ports),
            MessageVerdict::Drop(reason) => drop_packet(rx, &packet, reason, pipeline, ports),
        }
    }

    /// Stores a packet in the accelerator's packet memory. If that is full, flow control stops the portal table entry,
    /// the message's completion handler is notified (sPIN §3.2), and the message fails.
    fn store(
        &mut self,
        rx: &mut RxMessage,
        packet: &Packet,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Result<Option<accel::Packet>, InternalError> {
        let (request, _) = rx.request()?;
        let message = rx.spin()?;
        let user_hdr = message.handlers.set.user_hdr;
        let user_header = if packet.is_header() { user_hdr.min(packet.data.len() as u32) } else { 0 };
        let stored =
            self.call(ports, |accelerator, env| accelerator.store(packet.offset, &packet.data, user_header, env))?;
        if stored.is_none() {
            message.flow_control = true;
            rx.fails(NiFail::PtDisabled);
            pipeline.stats.packets_dropped += 1;
            pipeline.stop_portal(packet.header.interface, request.pt_index, ports)?;
        }
        Ok(stored)
    }

    fn keep_for_header_handler(
        &mut self,
        rx: &mut RxMessage,
        packet: &Packet,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let Some(stored) = self.store(rx, packet, pipeline, ports)? else {
            drop_packet(rx, packet, DropReason::NoBuffer, pipeline, ports)?;
            if packet.is_header() {
                // Without its header packet the message cannot be processed.
                rx.spin()?.verdict = MessageVerdict::Drop(DropReason::NoBuffer);
                pipeline.drop_message(rx, NiFail::PtDisabled, ports)?;
            }
            return Ok(());
        };
        rx.spin()?.waiting.push(stored);
        if !packet.is_header() {
            return Ok(());
        }
        let (request, delivery) = rx.request()?;
        let input = Input::Header(message_header(&request, delivery.taken.placement.offset));
        self.offer(rx, input, Some(stored), ports)
    }

    fn offer_payload(
        &mut self,
        rx: &mut RxMessage,
        packet: accel::Packet,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        if packet.payload_bytes() == 0 {
            // Payload handlers process only packets with payload (sPIN §3.2.2).
            self.accelerator.free(packet);
            return Ok(());
        }
        rx.spin()?.running += 1;
        self.offer(rx, Input::Payload, Some(packet), ports)
    }

    /// Offers a handler of a message to the accelerator.
    fn offer(
        &mut self,
        rx: &mut RxMessage,
        input: Input,
        packet: Option<accel::Packet>,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let (message, length) = (rx.header.id, rx.header.data_length());
        let SpinMessage { handlers, owner, .. } = rx.spin()?;
        let (handlers, Owner { process, tenant, share }) = (handlers.set.clone(), *owner);
        let role = match input {
            Input::Header(_) => Role::Header,
            Input::Payload => Role::Payload,
            Input::Completion { .. } => Role::Completion,
        };
        let handler = handlers.get(role).cloned().ok_or(InternalError::WrongKind(message))?;
        let end_of_message = packet.is_none_or(|packet| packet.offset + u64::from(packet.length) >= length);
        let task = Task { message, process, handlers, handler, input, packet, end_of_message, tenant, share };
        self.call(ports, |accelerator, env| accelerator.offer(task, env))
    }

    /// Handles the end of a message's handler.
    ///
    /// # Errors
    /// Returns an error if the message or the accelerator is in an impossible state.
    pub fn ended(
        &mut self,
        rx: &mut RxMessage,
        finished: Finished,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let Finished { task, outcome, usage } = finished;
        let bytes = if task.role() == Role::Payload { task.payload_bytes() } else { 0 };
        let full = bytes == u64::from(pipeline.machine.network.mtu);
        let stats = self.stats_of(&task.handler.name);
        stats.add_call(usage.instructions, usage.cycles, usage.occupancy, bytes, full);
        let message = rx.spin()?;
        match outcome {
            Outcome::Header { verdict, pending } => {
                message.pending |= pending;
                message.verdict = match verdict {
                    accel::Verdict::Drop => MessageVerdict::Drop(DropReason::HandlerDropped),
                    accel::Verdict::Process => MessageVerdict::Process,
                    accel::Verdict::Proceed => MessageVerdict::Proceed,
                };
                self.release_waiting(rx, pipeline, ports)?;
            }
            Outcome::Payload { dropped } => {
                message.running -= 1;
                if dropped {
                    drop_payload(rx, &task, DropReason::HandlerDropped, pipeline, ports)?;
                }
                self.free_packet(&task);
            }
            Outcome::Completion { pending } => {
                message.pending |= pending;
                message.completion = Completion::Done;
            }
            Outcome::Failed(error) => self.failed(rx, &task, error, pipeline, ports)?,
        }
        Ok(())
    }

    /// Records the failure of a handler: its data counts as dropped, and the first error of a message becomes its event
    /// (App. B.3).
    fn failed(
        &mut self,
        rx: &mut RxMessage,
        task: &Task,
        error: HandlerError,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let (name, node) = (&task.handler.name, ports.name_of(pipeline.portals.node));
        ports.warn(format!("{node}: {} handler '{name}' {}", task.role().name(), error.message));
        self.stats_of(name).errors += 1;
        let message = rx.spin()?;
        match task.role() {
            Role::Header => message.verdict = MessageVerdict::Drop(DropReason::HandlerFailed),
            Role::Payload => message.running -= 1,
            Role::Completion => message.completion = Completion::Done,
        }
        // §7 recommends "to kill handlers after a fixed number of cycles and move the interface into flow control".
        let stops = error.failure == Failure::Timeout && pipeline.machine.accelerator.watchdog_flow_control();
        message.flow_control |= stops;
        if message.error.is_none() {
            let fail = fail_code(error.failure);
            message.error = Some(FirstError { fail, detail: error.detail });
            rx.fail = fail;
        }
        if stops {
            let (request, _) = rx.request()?;
            pipeline.stop_portal(rx.header.interface, request.pt_index, ports)?;
        }
        match task.role() {
            Role::Header => self.release_waiting(rx, pipeline, ports),
            Role::Payload => {
                drop_payload(rx, task, DropReason::HandlerFailed, pipeline, ports)?;
                self.free_packet(task);
                Ok(())
            }
            Role::Completion => Ok(()),
        }
    }

    /// Processes the header packet, and those that arrived in the meantime, according to the header handler's verdict.
    fn release_waiting(
        &mut self,
        rx: &mut RxMessage,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let message = rx.spin()?;
        let process = message.verdict == MessageVerdict::Process && message.has_payload_handler;
        let drop = match message.verdict {
            MessageVerdict::Drop(reason) => Some(reason),
            _ => None,
        };
        for packet in std::mem::take(&mut message.waiting) {
            if process {
                self.offer_payload(rx, packet, ports)?;
                continue;
            }
            let data = self.accelerator.take(packet)?;
            match drop {
                Some(_) => pipeline.drop_data(rx, drop, packet.offset, data.len() as u64, ports)?,
                None => {
                    let packet = Box::new(Packet::new(rx.header.clone(), packet.offset, data));
                    pipeline.act(rx, packet, ports)?;
                }
            }
        }
        match drop {
            Some(_) => pipeline.drop_message(rx, NiFail::Dropped, ports),
            None => Ok(()),
        }
    }

    fn free_packet(&mut self, task: &Task) {
        if let Some(packet) = task.packet {
            self.accelerator.free(packet);
        }
    }

    /// Returns true if the handlers of a message are done; called when all its data has arrived and been written.
    /// Offers the completion handler, which follows all payload handlers and deposits (sPIN §3.2.3). It runs after
    /// every verdict: the listing in App. C.3.1 answers from it after PROCEED.
    ///
    /// # Errors
    /// Returns an error if the message or the accelerator is in an impossible state.
    pub fn is_done(&mut self, rx: &mut RxMessage, ports: &mut impl Ports) -> Result<bool, InternalError> {
        let message = rx.spin()?;
        if message.verdict == MessageVerdict::Open || !message.waiting.is_empty() || message.running > 0 {
            return Ok(false);
        }
        match message.completion {
            Completion::NotYet if message.handlers.set.completion.is_some() => {
                message.completion = Completion::Running;
                let input = Input::Completion { dropped: message.dropped, flow_control: message.flow_control };
                self.offer(rx, input, None, ports)?;
                Ok(false)
            }
            Completion::Running => Ok(false),
            Completion::NotYet | Completion::Done => Ok(message.transfers == 0),
        }
    }
}

fn drop_packet(
    rx: &mut RxMessage,
    packet: &Packet,
    reason: DropReason,
    pipeline: &mut Pipeline,
    ports: &mut impl Ports,
) -> Result<(), InternalError> {
    pipeline.drop_data(rx, Some(reason), packet.offset, packet.data.len() as u64, ports)
}

/// Drops the payload of a handler's packet.
fn drop_payload(
    rx: &mut RxMessage,
    task: &Task,
    reason: DropReason,
    pipeline: &mut Pipeline,
    ports: &mut impl Ports,
) -> Result<(), InternalError> {
    let offset = task.packet.map_or(0, |packet| packet.payload_offset());
    pipeline.drop_data(rx, Some(reason), offset, task.payload_bytes(), ports)
}

/// Returns a request's header as handlers see it, with its offset in the entry.
fn message_header(request: &Request, offset: u64) -> MessageHeader {
    MessageHeader {
        kind: match request.kind {
            RequestKind::Put => MessageKind::Put,
            RequestKind::Get => MessageKind::Get,
            RequestKind::Atomic(_) => MessageKind::Atomic,
            RequestKind::FetchAtomic(_) => MessageKind::FetchAtomic,
        },
        length: request.length,
        target: request.target,
        source: request.initiator,
        match_bits: request.match_bits,
        offset,
        hdr_data: request.hdr_data,
    }
}
