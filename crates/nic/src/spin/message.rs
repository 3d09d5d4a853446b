//! What a message's handlers decide about its packets (sPIN §3.2.1–3.2.3, App. B.3–B.5).

use abi::portals::NiFail;
use accel::{Finished, HandlerError, Input, MessageHeader, MessageKind, Outcome, Role, Task};

use super::handling::{Completion, FirstError, MessageVerdict, SpinMessage, fail_code};
use crate::card::{Card, report_internal};
use crate::drops::{self, DropReason, Part};
use crate::message::{Body, MessageId, Packet, Request, RequestKind};
use crate::portals::{InternalError, Placement};
use crate::ports::Ports;
use crate::rx::Sink;

impl Card {
    pub(super) fn spin_message(&mut self, id: MessageId) -> Option<&mut SpinMessage> {
        self.delivery(id)?.spin.as_deref_mut()
    }

    /// The handlers' state of a message that cannot be over: that it is gone is reported.
    fn live_spin(&mut self, id: MessageId, ports: &mut impl Ports) -> Option<&mut SpinMessage> {
        let node = self.portals.node;
        let message = self.spin_message(id);
        if message.is_none() {
            report_internal(node, InternalError::NoMessage(id), ports);
        }
        message
    }

    /// A packet of a message with handlers has arrived.
    pub(crate) fn spin_packet(&mut self, packet: Packet, ports: &mut impl Ports) {
        let id = packet.header.id;
        let Some(message) = self.live_spin(id, ports) else { return };
        match message.verdict {
            MessageVerdict::Open => self.hold_for_header_handler(packet, ports),
            MessageVerdict::Process if message.has_payload_handler => match self.store_packet(&packet, ports) {
                Some(stored) => self.offer_payload(id, stored, ports),
                None => self.drop_packet(&packet, DropReason::NoBuffer, ports),
            },
            MessageVerdict::Process | MessageVerdict::Proceed => self.act(id, packet.offset, packet.data, ports),
            MessageVerdict::Drop(reason) => self.drop_packet(&packet, reason, ports),
        }
        self.finish_if_done(id, ports);
    }

    /// A message is dropped as a whole: it fails, its room in the entry is free again, and an initiator that waits for
    /// data hears that none will come.
    fn message_dropped(&mut self, id: MessageId, reason: NiFail, ports: &mut impl Ports) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        if rx.fail == NiFail::Ok {
            rx.fail = reason;
        }
        let (header, fail) = (rx.header.clone(), rx.fail);
        let (Body::Request(request), Sink::Entry(delivery)) = (header.body, &rx.sink) else {
            return self.report_internal(InternalError::WrongKind(id), ports);
        };
        let taken = delivery.taken.clone();
        let (placement, list) = (taken.placement, taken.list);
        self.portals.give_back(header.interface, &taken);
        if request.kind.replies() {
            if let Some(rx) = self.rx(id) {
                rx.answered = true;
            }
            self.respond(&header, &request, Placement { mlength: 0, ..placement }, list, fail, ports);
        }
    }

    fn drop_packet(&mut self, packet: &Packet, reason: DropReason, ports: &mut impl Ports) {
        self.drop_data(packet.header.id, Some(reason), packet.offset, packet.data.len() as u64, ports);
    }

    /// Counts bytes of a message as dropped: for its handlers, for its event, and (with a reason) for reports.
    pub(crate) fn drop_data(
        &mut self,
        id: MessageId,
        reason: Option<DropReason>,
        offset: u64,
        bytes: u64,
        ports: &mut impl Ports,
    ) {
        let Some(rx) = self.live_rx(id, ports) else { return };
        let header = rx.header.clone();
        // Without an entry the interface has been closed, and nothing counts what is dropped.
        let Sink::Entry(delivery) = &mut rx.sink else { return };
        let mlength = delivery.taken.placement.mlength;
        let Some(message) = delivery.spin.as_deref_mut() else {
            return self.report_internal(InternalError::WrongKind(id), ports);
        };
        message.dropped += bytes;
        message.not_moved += (offset + bytes).min(mlength) - offset.min(mlength);
        if let Some(reason) = reason {
            let bit = 1 << reason as u32;
            let is_first = message.reasons & bit == 0;
            message.reasons |= bit;
            drops::count(&mut self.stats.drops, reason, &header, Part { is_first, packets: 1, bytes }, ports.now());
        }
    }

    /// Keeps a packet in the accelerator's packet memory. When that is full, flow control stops the portal table entry,
    /// the message's completion handler will be told (sPIN §3.2), and the message fails.
    fn store_packet(&mut self, packet: &Packet, ports: &mut impl Ports) -> Option<accel::Packet> {
        let user_hdr = self.spin_message(packet.header.id).map_or(0, |message| message.handlers.set.user_hdr);
        let user_header = if packet.is_header() { user_hdr.min(packet.data.len() as u32) } else { 0 };
        let stored = self.spin.accelerator.store(packet.offset, &packet.data, user_header);
        let stored = self.report(stored, ports).flatten();
        if stored.is_none() {
            self.stats.packets_dropped += 1;
            let interface = packet.header.interface;
            if let Some(message) = self.spin_message(packet.header.id) {
                message.flow_control = true;
            }
            if let Some(rx) = self.rx(packet.header.id)
                && rx.fail == NiFail::Ok
            {
                rx.fail = NiFail::PtDisabled;
            }
            if let Body::Request(request) = packet.header.body {
                self.stop_portal(interface, request.pt_index, ports);
            }
        }
        stored
    }

    fn hold_for_header_handler(&mut self, packet: Packet, ports: &mut impl Ports) {
        let id = packet.header.id;
        let Some(stored) = self.store_packet(&packet, ports) else {
            self.drop_packet(&packet, DropReason::NoBuffer, ports);
            if packet.is_header()
                && let Some(message) = self.spin_message(id)
            {
                // Without its header packet the message cannot be processed.
                message.verdict = MessageVerdict::Drop(DropReason::NoBuffer);
                self.message_dropped(id, NiFail::PtDisabled, ports);
            }
            return;
        };
        let Some(message) = self.live_spin(id, ports) else { return };
        message.waiting.push(stored);
        if packet.is_header()
            && let Body::Request(request) = packet.header.body
        {
            let offset = self.delivery(id).map_or(0, |delivery| delivery.taken.placement.offset);
            let input = Input::Header(message_header(&request, offset));
            self.offer(id, input, Some(stored), ports);
        }
    }

    fn offer_payload(&mut self, id: MessageId, packet: accel::Packet, ports: &mut impl Ports) {
        if packet.payload_bytes() == 0 {
            // Payload handlers see packets that carry a payload (sPIN §3.2.2).
            return self.spin.accelerator.free(packet);
        }
        let Some(message) = self.live_spin(id, ports) else { return };
        message.running += 1;
        self.offer(id, Input::Payload, Some(packet), ports);
    }

    /// Offers a handler of a message to the accelerator.
    fn offer(&mut self, id: MessageId, input: Input, packet: Option<accel::Packet>, ports: &mut impl Ports) {
        let Some(length) = self.live_rx(id, ports).map(|rx| rx.header.data_length()) else { return };
        let Some(message) = self.live_spin(id, ports) else { return };
        let handlers = message.handlers.set.clone();
        let role = match input {
            Input::Header(_) => Role::Header,
            Input::Payload => Role::Payload,
            Input::Completion { .. } => Role::Completion,
        };
        let Some(handler) = handlers.get(role).cloned() else {
            return self.report_internal(InternalError::WrongKind(id), ports);
        };
        let end_of_message = packet.is_none_or(|packet| packet.offset + u64::from(packet.length) >= length);
        let task = Task { message: id, handlers, handler, input, packet, end_of_message };
        self.accelerate(ports, |accelerator, env| accelerator.offer(task, env));
    }

    /// A handler has ended.
    pub(super) fn handler_finished(&mut self, finished: Finished, ports: &mut impl Ports) {
        let Finished { task, outcome, usage } = finished;
        let bytes = if task.role() == Role::Payload { task.payload_bytes() } else { 0 };
        let full = bytes == u64::from(self.machine.network.mtu);
        let stats = self.handler_stats(&task.handler.name);
        stats.add_call(usage.instructions, usage.cycles, usage.occupancy, bytes, full);
        match outcome {
            Outcome::Failed(error) => self.handler_failed(&task, error, ports),
            outcome => self.handler_returned(&task, &outcome, ports),
        }
        self.accelerate(ports, |accelerator, env| accelerator.resume(env));
    }

    fn handler_returned(&mut self, task: &Task, outcome: &Outcome, ports: &mut impl Ports) {
        let Some(message) = self.live_spin(task.message, ports) else { return };
        match *outcome {
            Outcome::Header { verdict, pending } => {
                message.pending |= pending;
                message.verdict = match verdict {
                    accel::Verdict::Drop => MessageVerdict::Drop(DropReason::HandlerDropped),
                    accel::Verdict::Process => MessageVerdict::Process,
                    accel::Verdict::Proceed => MessageVerdict::Proceed,
                };
                self.release_waiting(task.message, ports);
            }
            Outcome::Payload { dropped } => {
                message.running -= 1;
                if dropped {
                    self.drop_payload(task, DropReason::HandlerDropped, ports);
                }
                self.free_packet(task);
            }
            Outcome::Completion { pending } => {
                message.pending |= pending;
                message.completion = Completion::Done;
            }
            Outcome::Failed(_) => {}
        }
        self.finish_if_done(task.message, ports);
    }

    /// A handler has failed: its data counts as dropped, and the first error of a message becomes its event (App. B.3).
    fn handler_failed(&mut self, task: &Task, error: HandlerError, ports: &mut impl Ports) {
        let name = &task.handler.name;
        ports.warn(format!("node {}: {} handler '{name}' {}", self.node, task.role().name(), error.message));
        self.handler_stats(name).errors += 1;
        let fail = fail_code(error.failure);
        let Some(message) = self.live_spin(task.message, ports) else { return };
        let is_first = message.error.is_none();
        message.error.get_or_insert(FirstError { fail, detail: error.detail });
        match task.role() {
            Role::Header => message.verdict = MessageVerdict::Drop(DropReason::HandlerFailed),
            Role::Payload => message.running -= 1,
            Role::Completion => message.completion = Completion::Done,
        }
        if is_first && let Some(rx) = self.rx(task.message) {
            rx.fail = fail;
        }
        match task.role() {
            Role::Header => self.release_waiting(task.message, ports),
            Role::Payload => {
                self.drop_payload(task, DropReason::HandlerFailed, ports);
                self.free_packet(task);
            }
            Role::Completion => {}
        }
        self.finish_if_done(task.message, ports);
    }

    /// The payload that a handler was for is dropped.
    fn drop_payload(&mut self, task: &Task, reason: DropReason, ports: &mut impl Ports) {
        let offset = task.packet.map_or(0, |packet| packet.payload_offset());
        self.drop_data(task.message, Some(reason), offset, task.payload_bytes(), ports);
    }

    /// The header handler has decided: its packet and those that have arrived meanwhile go their way.
    fn release_waiting(&mut self, id: MessageId, ports: &mut impl Ports) {
        let Some(message) = self.live_spin(id, ports) else { return };
        let process = message.verdict == MessageVerdict::Process && message.has_payload_handler;
        let drop = match message.verdict {
            MessageVerdict::Drop(reason) => Some(reason),
            _ => None,
        };
        for packet in std::mem::take(&mut message.waiting) {
            if process {
                self.offer_payload(id, packet, ports);
                continue;
            }
            let data = self.spin.accelerator.take(packet);
            let Some(data) = self.report(data, ports) else { continue };
            match drop {
                Some(_) => self.drop_data(id, drop, packet.offset, data.len() as u64, ports),
                None => self.act(id, packet.offset, data, ports),
            }
        }
        if drop.is_some() {
            self.message_dropped(id, NiFail::Dropped, ports);
        }
    }

    fn free_packet(&mut self, task: &Task) {
        if let Some(packet) = task.packet {
            self.spin.accelerator.free(packet);
        }
    }

    /// Called when all data of a message has arrived and been written: whether its handlers are done too. Offers the
    /// completion handler, which follows all payload handlers and deposits (sPIN §3.2.3). It runs after every verdict:
    /// the listing in App. C.3.1 answers from it after PROCEED.
    pub(crate) fn spin_message_done(&mut self, id: MessageId, ports: &mut impl Ports) -> bool {
        let Some(message) = self.spin_message(id) else { return true };
        if message.verdict == MessageVerdict::Open || !message.waiting.is_empty() || message.running > 0 {
            return false;
        }
        match message.completion {
            Completion::NotYet if message.handlers.set.completion.is_some() => {
                message.completion = Completion::Running;
                let input = Input::Completion { dropped: message.dropped, flow_control: message.flow_control };
                self.offer(id, input, None, ports);
                false
            }
            Completion::Running => false,
            Completion::NotYet | Completion::Done => message.transfers == 0,
        }
    }
}

/// A request's header as handlers see it, with its offset in the entry.
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
