//! What a message's handlers decide about its packets (sPIN §3.2.1–3.2.3, App. B.3–B.5).

use std::rc::Rc;

use abi::device::{HeaderArgs, ret};
use abi::portals::{NiFail, Plain};
use sim::Time;

use super::{Buffered, Role, Task};
use crate::card::Card;
use crate::drops::{self, DropReason, Part};
use crate::entry::Placement;
use crate::handlers::{Handler, Handlers};
use crate::message::{Body, MessageId, Packet, RequestKind};
use crate::ports::Ports;

/// The handlers' side of a message.
#[derive(Debug)]
pub struct SpinMessage {
    /// Whether a handler's return code keeps the entry waiting for another message (`_PENDING`).
    pub pending: bool,
    /// The first error of a handler, of which the program is told when the message is done.
    pub error: Option<HandlerError>,
    pub(super) handlers: Rc<Handlers>,
    /// The payload handler: of puts only. Data of gets passes no handler (sPIN §5.4), atomics are the card's own work.
    payload: Option<Handler>,
    verdict: Verdict,
    /// Packets that wait for the header handler.
    pub(super) waiting: Vec<Buffered>,
    /// Payload handlers queued or resident.
    pub(super) running: u32,
    /// DMA transfers of handlers that are not done.
    pub(super) transfers: u32,
    /// Bytes that were dropped, as the completion handler is told.
    dropped: u64,
    /// How many of them would have been moved, as the event and the acknowledgement are told.
    not_moved: u64,
    /// A bit for each reason for which something was dropped.
    reasons: u32,
    flow_control: bool,
    completion: Progress,
}

/// What the header handler decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// It has not returned.
    Open,
    /// Payload handlers, or the default action where there are none.
    Process,
    /// The default action.
    Proceed,
    /// Nothing, for this reason.
    Drop(DropReason),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    NotYet,
    Running,
    Done,
}

/// An error of a handler.
#[derive(Debug)]
pub struct HandlerError {
    /// As the program is told.
    pub fail: NiFail,
    /// What happened, for people.
    pub message: String,
    /// Address on the card that the handler touched, or its return code.
    pub detail: u64,
}

impl SpinMessage {
    /// The state of a message that has just been matched.
    pub fn new(handlers: Rc<Handlers>, kind: RequestKind) -> Box<SpinMessage> {
        Box::new(SpinMessage {
            pending: false,
            error: None,
            payload: handlers.payload.clone().filter(|_| kind == RequestKind::Put),
            verdict: if handlers.header.is_some() { Verdict::Open } else { Verdict::Process },
            handlers,
            waiting: Vec::new(),
            running: 0,
            transfers: 0,
            dropped: 0,
            not_moved: 0,
            reasons: 0,
            flow_control: false,
            completion: Progress::NotYet,
        })
    }

    /// Whether the message was dropped as a whole.
    pub fn is_dropped(&self) -> bool {
        matches!(self.verdict, Verdict::Drop(_))
    }

    /// How many of the bytes that the match has placed are moved, as far as that is known.
    pub fn moved(&self, placement: Placement) -> u64 {
        if self.is_dropped() { 0 } else { placement.mlength - self.not_moved }
    }
}

impl Card {
    pub(super) fn spin_message(&mut self, id: MessageId) -> Option<&mut SpinMessage> {
        self.delivery(id)?.spin.as_deref_mut()
    }

    /// A packet of a message with handlers has arrived.
    pub(crate) fn spin_packet(&mut self, packet: Packet, ports: &mut impl Ports) {
        let id = packet.header.id;
        let Some(message) = self.spin_message(id) else { return };
        match message.verdict {
            Verdict::Open => self.hold_for_header_handler(packet, ports),
            Verdict::Process if message.payload.is_some() => match self.buffer_packet(&packet, ports) {
                Some(buffered) => self.payload_task(id, buffered, ports),
                None => self.drop_packet(&packet, DropReason::NoBuffer, ports.now()),
            },
            Verdict::Process | Verdict::Proceed => self.act(id, packet.offset, packet.data, ports),
            Verdict::Drop(reason) => self.drop_packet(&packet, reason, ports.now()),
        }
        self.finish_if_done(id, ports);
    }

    /// A message is dropped as a whole: it fails, its room in the entry is free again, and an initiator that waits for
    /// data hears that none will come.
    fn message_dropped(&mut self, id: MessageId, reason: NiFail, ports: &mut impl Ports) {
        let Some(inbound) = self.inbound(id) else { return };
        if inbound.fail == NiFail::Ok {
            inbound.fail = reason;
        }
        let (header, fail) = (inbound.header.clone(), inbound.fail);
        let (Body::Request(request), Some(delivery)) = (header.body, self.delivery(id)) else { return };
        let (entry, placement, list) = (delivery.entry, delivery.placement, delivery.list);
        if let Some(Ok(entry)) = self.interface(header.interface).map(|interface| interface.entries.get_mut(entry)) {
            entry.give_back(placement);
        }
        if request.kind.replies() {
            if let Some(inbound) = self.inbound(id) {
                inbound.answered = true;
            }
            self.respond(&header, &request, Placement { mlength: 0, ..placement }, list, fail, ports);
        }
    }

    fn drop_packet(&mut self, packet: &Packet, reason: DropReason, at: Time) {
        self.drop_data(packet.header.id, Some(reason), packet.offset, packet.data.len() as u64, at);
    }

    /// Counts bytes of a message as dropped: for its handlers, for its event, and (with a reason) for reports.
    pub(crate) fn drop_data(&mut self, id: MessageId, reason: Option<DropReason>, offset: u64, bytes: u64, at: Time) {
        let Some(inbound) = self.inbound(id) else { return };
        let header = inbound.header.clone();
        let Some(delivery) = self.delivery(id) else { return };
        let mlength = delivery.placement.mlength;
        let Some(message) = delivery.spin.as_deref_mut() else { return };
        message.dropped += bytes;
        message.not_moved += (offset + bytes).min(mlength) - offset.min(mlength);
        if let Some(reason) = reason {
            let bit = 1 << reason as u32;
            let is_first = message.reasons & bit == 0;
            message.reasons |= bit;
            drops::count(&mut self.stats.drops, reason, &header, Part { is_first, packets: 1, bytes }, at);
        }
    }

    /// Keeps a packet in the packet memory. When that is full, flow control stops the portal table entry, the message's
    /// completion handler will be told (sPIN §3.2), and the message fails.
    fn buffer_packet(&mut self, packet: &Packet, ports: &mut impl Ports) -> Option<Buffered> {
        let user_hdr = self.spin_message(packet.header.id).map_or(0, |message| message.handlers.user_hdr);
        let skip = if packet.is_header() { user_hdr.min(packet.data.len() as u32) } else { 0 };
        let buffered = self.spin.buffer(packet.offset, &packet.data, skip);
        if buffered.is_none() {
            self.stats.packets_dropped += 1;
            let interface = packet.header.interface;
            if let Some(message) = self.spin_message(packet.header.id) {
                message.flow_control = true;
            }
            if let Some(inbound) = self.inbound(packet.header.id)
                && inbound.fail == NiFail::Ok
            {
                inbound.fail = NiFail::PtDisabled;
            }
            if let Body::Request(request) = packet.header.body {
                self.disable_portal(interface, request.pt_index, true, ports);
            }
        }
        buffered
    }

    fn hold_for_header_handler(&mut self, packet: Packet, ports: &mut impl Ports) {
        let id = packet.header.id;
        let Some(buffered) = self.buffer_packet(&packet, ports) else {
            self.drop_packet(&packet, DropReason::NoBuffer, ports.now());
            if packet.is_header()
                && let Some(message) = self.spin_message(id)
            {
                // Without its header packet the message cannot be processed.
                message.verdict = Verdict::Drop(DropReason::NoBuffer);
                self.message_dropped(id, NiFail::PtDisabled, ports);
            }
            return;
        };
        let Some(message) = self.spin_message(id) else { return };
        message.waiting.push(buffered);
        if packet.is_header()
            && let Some(handler) = message.handlers.header.clone()
        {
            let skip = message.handlers.user_hdr.min(buffered.length);
            let task = Task { message: id, role: Role::Header, handler, packet: Some(buffered), skip, args: [0; 3] };
            self.run_task(task, ports);
        }
    }

    fn payload_task(&mut self, id: MessageId, packet: Buffered, ports: &mut impl Ports) {
        let Some(message) = self.spin_message(id) else { return };
        let Some(handler) = message.payload.clone() else { return };
        let user_hdr = message.handlers.user_hdr;
        let skip = if packet.offset == 0 { user_hdr.min(packet.length) } else { 0 };
        if packet.length == skip {
            // Payload handlers see packets that carry a payload (sPIN §3.2.2).
            self.spin.unbuffer(packet);
            return;
        }
        message.running += 1;
        let task = Task { message: id, role: Role::Payload, handler, packet: Some(packet), skip, args: [0; 3] };
        self.run_task(task, ports);
    }

    /// A handler has returned `value`.
    pub(super) fn handler_returned(&mut self, task: &Task, value: u32, ports: &mut impl Ports) {
        let known = match task.role {
            Role::Header => value <= ret::PROCEED_PENDING,
            Role::Payload => matches!(value, ret::DROP | ret::SUCCESS),
            Role::Completion => matches!(value, ret::SUCCESS | ret::SUCCESS_PENDING),
        };
        if !known {
            let message = match value {
                ret::FAIL => "returned FAIL".into(),
                ret::SEGV => "returned SEGV".into(),
                other => format!("returned {other}, which is no return code of a {} handler", task.role.name()),
            };
            let fail = if value == ret::SEGV { NiFail::Segv } else { NiFail::HandlerFail };
            return self.handler_failed(task, HandlerError { fail, message, detail: u64::from(value) }, ports);
        }
        let Some(message) = self.spin_message(task.message) else { return };
        match task.role {
            Role::Header => {
                message.pending |=
                    matches!(value, ret::DROP_PENDING | ret::PROCESS_DATA_PENDING | ret::PROCEED_PENDING);
                message.verdict = match value {
                    ret::DROP | ret::DROP_PENDING => Verdict::Drop(DropReason::HandlerDropped),
                    ret::PROCESS_DATA | ret::PROCESS_DATA_PENDING => Verdict::Process,
                    _ => Verdict::Proceed,
                };
                self.release_waiting(task.message, ports);
            }
            Role::Payload => {
                message.running -= 1;
                if value == ret::DROP {
                    self.drop_payload(task, DropReason::HandlerDropped, ports.now());
                }
                self.free_packet(task);
            }
            Role::Completion => {
                message.pending |= value == ret::SUCCESS_PENDING;
                message.completion = Progress::Done;
            }
        }
        self.finish_if_done(task.message, ports);
    }

    /// A handler has failed: its data counts as dropped, and the first error of a message becomes its event (App. B.3).
    pub(super) fn handler_failed(&mut self, task: &Task, error: HandlerError, ports: &mut impl Ports) {
        let name = &task.handler.name;
        ports.warn(format!("node {}: {} handler '{name}' {}", self.node, task.role.name(), error.message));
        self.handler_stats(name).errors += 1;
        let fail = error.fail;
        let Some(message) = self.spin_message(task.message) else { return };
        let is_first = message.error.is_none();
        message.error.get_or_insert(error);
        match task.role {
            Role::Header => message.verdict = Verdict::Drop(DropReason::HandlerFailed),
            Role::Payload => message.running -= 1,
            Role::Completion => message.completion = Progress::Done,
        }
        if is_first && let Some(inbound) = self.inbound(task.message) {
            inbound.fail = fail;
        }
        match task.role {
            Role::Header => self.release_waiting(task.message, ports),
            Role::Payload => {
                self.drop_payload(task, DropReason::HandlerFailed, ports.now());
                self.free_packet(task);
            }
            Role::Completion => {}
        }
        self.finish_if_done(task.message, ports);
    }

    /// The payload that a handler was for is dropped.
    fn drop_payload(&mut self, task: &Task, reason: DropReason, at: Time) {
        let offset = task.packet.map_or(0, |packet| packet.offset + u64::from(task.skip));
        self.drop_data(task.message, Some(reason), offset, task.payload_bytes(), at);
    }

    /// The header handler has decided: its packet and those that have arrived meanwhile go their way.
    fn release_waiting(&mut self, id: MessageId, ports: &mut impl Ports) {
        let Some(message) = self.spin_message(id) else { return };
        let process = message.verdict == Verdict::Process && message.payload.is_some();
        let drop = match message.verdict {
            Verdict::Drop(reason) => Some(reason),
            _ => None,
        };
        for packet in std::mem::take(&mut message.waiting) {
            if process {
                self.payload_task(id, packet, ports);
                continue;
            }
            let data = self.spin.unbuffer(packet);
            match drop {
                Some(_) => self.drop_data(id, drop, packet.offset, data.len() as u64, ports.now()),
                None => self.act(id, packet.offset, data, ports),
            }
        }
        if drop.is_some() {
            self.message_dropped(id, NiFail::Dropped, ports);
        }
    }

    pub(super) fn free_packet(&mut self, task: &Task) {
        if let Some(packet) = task.packet {
            self.spin.free_buffers.push(packet.buffer);
        }
    }

    /// Called when all data of a message has arrived and been written: whether its handlers are done too. Starts the
    /// completion handler, which follows all payload handlers and deposits (sPIN §3.2.3). It runs after every verdict:
    /// the listing in App. C.3.1 answers from it after PROCEED.
    pub(crate) fn spin_message_done(&mut self, id: MessageId, ports: &mut impl Ports) -> bool {
        let Some(message) = self.spin_message(id) else { return true };
        if message.verdict == Verdict::Open || !message.waiting.is_empty() || message.running > 0 {
            return false;
        }
        match (message.completion, message.handlers.completion.clone()) {
            (Progress::NotYet, Some(handler)) => {
                message.completion = Progress::Running;
                let dropped = i32::try_from(message.dropped).unwrap_or(i32::MAX) as u32;
                let state = message.handlers.state.as_ref().map_or(0, |state| state.address);
                let args = [dropped, u32::from(message.flow_control), state];
                let task = Task { message: id, role: Role::Completion, handler, packet: None, skip: 0, args };
                self.run_task(task, ports);
                false
            }
            (Progress::Running, _) => false,
            (Progress::NotYet | Progress::Done, _) => message.transfers == 0,
        }
    }

    /// The header handler's argument (App. B.3): `ptl_header_t` and the user header behind it.
    pub(super) fn header_argument(&mut self, task: &Task) -> Vec<u8> {
        let Some(inbound) = self.inbound(task.message) else { return Vec::new() };
        let Body::Request(request) = inbound.header.body else { return Vec::new() };
        let offset = self.delivery(task.message).map_or(0, |delivery| delivery.placement.offset);
        let arguments = HeaderArgs {
            kind: match request.kind {
                RequestKind::Put => 0,
                RequestKind::Get => 1,
                RequestKind::Atomic(_) => 2,
                RequestKind::FetchAtomic(_) => 3,
            },
            pad: 0,
            length: request.length,
            target_id: request.target,
            source_id: request.initiator,
            match_bits: request.match_bits,
            offset,
            hdr_data: request.hdr_data,
        };
        let mut bytes = arguments.as_bytes().to_vec();
        let user_hdr = self.spin_message(task.message).map_or(0, |message| message.handlers.user_hdr);
        let end = bytes.len() + user_hdr as usize;
        if let Some(packet) = task.packet {
            bytes.extend_from_slice(self.spin.memory.slice(packet.start, task.skip));
        }
        bytes.resize(end, 0); // a message may be shorter than the user header
        bytes
    }
}

impl Task {
    /// Bytes of payload that the handler sees.
    pub(super) fn payload_bytes(&self) -> u64 {
        self.packet.map_or(0, |packet| u64::from(packet.length - self.skip))
    }
}
