//! What a message's handlers decide about its packets (sPIN §3.2.1–3.2.3, App. B.3–B.5).

use std::rc::Rc;

use abi::device::{HeaderArgs, ret};
use abi::portals::{EventKind, NiFail, Plain};

use super::{Buffered, Role, Task};
use crate::card::Card;
use crate::entry::Placement;
use crate::handlers::{Handler, Handlers};
use crate::message::{Body, MessageId, Packet, RequestKind};
use crate::ports::Ports;

/// The handlers' side of a message.
#[derive(Debug)]
pub struct SpinMessage {
    /// Whether a handler's return code keeps the entry waiting for another message (`_PENDING`).
    pub pending: bool,
    /// Whether a handler failed; the program has been told by an event.
    pub failed: bool,
    pub(super) handlers: Rc<Handlers>,
    /// The payload handler: of puts only. Data of gets passes no handler (sPIN §5.4), atomics are the card's own work.
    payload: Option<Handler>,
    verdict: Verdict,
    /// Packets that wait for the header handler.
    waiting: Vec<Buffered>,
    /// Payload handlers queued or resident.
    pub(super) running: u32,
    /// DMA transfers of handlers that are not done.
    pub(super) transfers: u32,
    dropped: u64,
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
    /// Nothing.
    Drop,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    NotYet,
    Running,
    Done,
}

/// An error of a handler, as the program is told of it.
pub(super) struct HandlerError {
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
            failed: false,
            payload: handlers.payload.clone().filter(|_| kind == RequestKind::Put),
            verdict: if handlers.header.is_some() { Verdict::Open } else { Verdict::Process },
            handlers,
            waiting: Vec::new(),
            running: 0,
            transfers: 0,
            dropped: 0,
            flow_control: false,
            completion: Progress::NotYet,
        })
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
                None => self.drop_bytes(id, packet.data.len() as u64),
            },
            Verdict::Process | Verdict::Proceed => self.act(id, packet.offset, packet.data, ports),
            Verdict::Drop => self.drop_bytes(id, packet.data.len() as u64),
        }
        self.finish_if_done(id, ports);
    }

    /// Tells an initiator that waits for data that none will come.
    fn refuse(&mut self, id: MessageId, reason: NiFail, ports: &mut impl Ports) {
        let Some(inbound) = self.inbound(id) else { return };
        let header = inbound.header.clone();
        let fail = if inbound.fail == NiFail::Ok { reason } else { inbound.fail };
        let (Body::Request(request), Some(delivery)) = (header.body, self.delivery(id)) else { return };
        let (nothing, list) = (Placement { offset: delivery.placement.offset, mlength: 0 }, delivery.list);
        if request.kind.replies() {
            self.respond(&header, &request, nothing, list, fail, ports);
        }
    }

    pub(crate) fn drop_bytes(&mut self, id: MessageId, bytes: u64) {
        if let Some(message) = self.spin_message(id) {
            message.dropped += bytes;
        }
    }

    /// Keeps a packet in the packet memory. When that is full, flow control stops the portal table entry and the
    /// message's completion handler will be told (sPIN §3.2).
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
            if let Body::Request(request) = packet.header.body {
                self.disable_portal(interface, request.pt_index, true, ports);
            }
        }
        buffered
    }

    fn hold_for_header_handler(&mut self, packet: Packet, ports: &mut impl Ports) {
        let id = packet.header.id;
        let Some(buffered) = self.buffer_packet(&packet, ports) else {
            self.drop_bytes(id, packet.data.len() as u64);
            if packet.is_header()
                && let Some(message) = self.spin_message(id)
            {
                // Without its header packet the message cannot be processed.
                message.verdict = Verdict::Drop;
                self.refuse(id, NiFail::PtDisabled, ports);
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
                    ret::DROP | ret::DROP_PENDING => Verdict::Drop,
                    ret::PROCESS_DATA | ret::PROCESS_DATA_PENDING => Verdict::Process,
                    _ => Verdict::Proceed,
                };
                self.release_waiting(task.message, ports);
            }
            Role::Payload => {
                message.running -= 1;
                if value == ret::DROP {
                    message.dropped += task.payload_bytes();
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

    /// A handler has failed: the first error of a message becomes an event (App. B.3), its data counts as dropped.
    pub(super) fn handler_failed(&mut self, task: &Task, error: HandlerError, ports: &mut impl Ports) {
        let name = &task.handler.name;
        ports.warn(format!("node {}: {} handler '{name}' {}", self.node, task.role.name(), error.message));
        self.handler_stats(name).errors += 1;
        let Some(message) = self.spin_message(task.message) else { return };
        let first = !std::mem::replace(&mut message.failed, true);
        match task.role {
            Role::Header => message.verdict = Verdict::Drop,
            Role::Payload => {
                message.running -= 1;
                message.dropped += task.payload_bytes();
            }
            Role::Completion => message.completion = Progress::Done,
        }
        if first {
            self.report_handler_error(task.message, &error, ports);
        }
        match task.role {
            Role::Header => self.release_waiting(task.message, ports),
            Role::Payload => self.free_packet(task),
            Role::Completion => {}
        }
        self.finish_if_done(task.message, ports);
    }

    fn report_handler_error(&mut self, id: MessageId, error: &HandlerError, ports: &mut impl Ports) {
        let Some(inbound) = self.inbound(id) else { return };
        inbound.fail = error.fail;
        let (interface, Body::Request(request)) = (inbound.header.interface, inbound.header.body) else { return };
        let Some(delivery) = self.delivery(id) else { return };
        let (entry, placement) = (delivery.entry, delivery.placement);
        let Some(ni) = self.interface(interface) else { return };
        let Ok(entry) = ni.entries.get(entry) else { return };
        let mut event = entry.event(&request, placement);
        event.kind = EventKind::HandlerError as u8;
        event.ni_fail_type = error.fail as u8;
        event.start = error.detail;
        let Ok(portal) = ni.portal(request.pt_index) else { return };
        let eq = portal.eq;
        self.post(interface, eq, event, ports);
    }

    /// The header handler has decided: its packet and those that have arrived meanwhile go their way.
    fn release_waiting(&mut self, id: MessageId, ports: &mut impl Ports) {
        let Some(message) = self.spin_message(id) else { return };
        let process = message.verdict == Verdict::Process && message.payload.is_some();
        let drop = message.verdict == Verdict::Drop;
        for packet in std::mem::take(&mut message.waiting) {
            if process {
                self.payload_task(id, packet, ports);
                continue;
            }
            let data = self.spin.unbuffer(packet);
            if drop {
                self.drop_bytes(id, data.len() as u64);
            } else {
                self.act(id, packet.offset, data, ports);
            }
        }
        if drop {
            self.refuse(id, NiFail::Dropped, ports);
        }
    }

    fn free_packet(&mut self, task: &Task) {
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
                let state = message.handlers.state.map_or(0, |(address, _)| address);
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
