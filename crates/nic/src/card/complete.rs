//! What a finished message or operation means to the programs: events, counters, triggered operations.

use std::collections::VecDeque;

use abi::device::err;
use abi::portals::{self as ptl, AckReq, CtEvent, Event, EventKind, Handle, List, NiFail, md, me};

use super::{ArrivedMessage, Card, CardEvent, Completion, Inbound, OperationKind, Sent, Sink};
use crate::interface::Portal;
use crate::message::{Body, OpToken, Response};
use crate::ports::{Notice, Ports};
use crate::spin::SpinMessage;
use crate::triggered::TriggeredOp;

impl Card {
    /// A message is done: the card answers, and then it or (rdma) the CPU tells the program.
    pub(super) fn complete(&mut self, id: u64, ports: &mut impl Ports) {
        let Some(inbound) = self.close(id) else { return };
        match inbound.sink {
            Sink::Nowhere => {}
            Sink::Operation(token, response) => {
                let response = Response { fail: inbound.fail, ..response };
                self.operation_progress(token, Some(response), ports);
            }
            Sink::Entry(ref delivery) => {
                if let Body::Request(request) = inbound.header.body
                    && !request.kind.replies()
                {
                    let (outcome, list) = (delivery.outcome(), delivery.list);
                    self.respond(&inbound.header, &request, outcome, list, inbound.fail, ports);
                }
                if self.host_completes() && self.is_visible(&inbound) {
                    self.completions.push_back(Completion::Arrived(Box::new(ArrivedMessage(*inbound))));
                    ports.notify(Notice::Completion);
                } else {
                    self.finish_delivery(*inbound, ports);
                }
            }
        }
    }

    /// Whether the program can notice the end of the message: a plain RDMA write or read costs the CPU nothing.
    fn is_visible(&mut self, inbound: &Inbound) -> bool {
        let Sink::Entry(delivery) = &inbound.sink else { return false };
        let Some(interface) = self.interface(inbound.header.interface) else { return false };
        let Ok(entry) = interface.entries.get(delivery.entry) else { return false };
        let counted = entry.ct != ptl::CT_NONE && entry.has(me::EVENT_CT_COMM);
        let queued = interface.portals[entry.pt_index as usize].as_ref().is_some_and(|p| p.eq != ptl::EQ_NONE)
            && !entry.has(me::EVENT_COMM_DISABLE | me::EVENT_SUCCESS_DISABLE);
        counted || queued || delivery.unlinked || entry.list == List::Overflow
    }

    /// Tells the program about a message that an entry has taken (Portals 4.3 §3.13: events; §3.14: counters). Nothing
    /// works for the message any more, so its memory is the program's. An error of a handler is told here, too, in place
    /// of the message's own event.
    pub(super) fn finish_delivery(&mut self, inbound: Inbound, ports: &mut impl Ports) {
        let (Sink::Entry(delivery), Body::Request(request)) = (inbound.sink, inbound.header.body) else { return };
        let index = inbound.header.interface;
        let outcome = delivery.outcome();
        let spin = delivery.spin.as_deref();
        let pending = spin.is_some_and(|spin| spin.pending);
        let dropped = spin.is_some_and(SpinMessage::is_dropped);
        let error = spin.and_then(|spin| spin.error.as_ref());
        let Some(interface) = self.interface(index) else { return };
        let Ok(entry) = interface.entries.get_mut(delivery.entry) else { return };
        let mut event = entry.event(&request, outcome);
        event.ni_fail_type = inbound.fail as u8;
        let told = event;
        if let Some(error) = error {
            event.kind = EventKind::HandlerError as u8;
            event.ni_fail_type = error.fail as u8;
            event.start = error.detail;
        }
        entry.in_flight -= 1;
        let ok = inbound.fail == NiFail::Ok;
        let silent = entry.has(me::EVENT_COMM_DISABLE) || ok && entry.has(me::EVENT_SUCCESS_DISABLE);
        let bytes = entry.has(me::EVENT_CT_BYTES);
        let ct = if entry.has(me::EVENT_CT_COMM) { entry.ct } else { ptl::CT_NONE };
        let (pt_index, user_ptr) = (entry.pt_index, entry.user_ptr);
        // App. B.1: a PENDING message does not complete the entry, which waits for another message. Nor does a message
        // use it up that has given its room back.
        let waits_on = delivery.unlinked && (pending || !entry.used_up());
        entry.linked |= waits_on;
        let tell_unlink = delivery.unlinked && !entry.has(me::EVENT_UNLINK_DISABLE) && !waits_on;
        let Ok(portal) = interface.portal(pt_index) else { return };
        portal.in_flight -= 1;
        if waits_on {
            portal.list_mut(delivery.list).push_front(delivery.entry);
        }
        let eq = portal.eq;
        if let Ok(queue) = interface.queues.get_mut(eq) {
            queue.promised -= delivery.promised;
        }
        if error.is_some() || !silent && !pending {
            self.post(index, eq, event, ports);
        }
        if !pending {
            let amount = if bytes { outcome.mlength } else { 1 };
            self.count(index, ct, if ok { success(amount) } else { FAILURE }, ports);
        }
        let claim = delivery.claim;
        match claim {
            Some(claim) => self.report_overflow(index, told, claim, ports),
            None => self.unexpected_complete(index, inbound.header.id, told, dropped, ports),
        }
        if tell_unlink {
            self.post(index, eq, plain_event(EventKind::AutoUnlink, pt_index, user_ptr), ports);
        }
        self.release_entry(index, delivery.entry, ports);
        if let Some(claim) = claim {
            self.report_claim_unlink(index, pt_index, claim, ports);
        }
        self.portal_drained(index, pt_index, ports);
    }

    /// Frees an entry that nothing refers to any more; an overflow entry is told of (AUTO_FREE).
    pub(crate) fn release_entry(&mut self, index: u8, handle: Handle, ports: &mut impl Ports) {
        let Some(interface) = self.interface(index) else { return };
        if !interface.entries.get(handle).is_ok_and(|entry| entry.is_free()) {
            return;
        }
        let Ok(entry) = interface.entries.remove(handle) else { return };
        if entry.list == List::Overflow && !entry.has(me::EVENT_UNLINK_DISABLE) {
            let eq = interface.portal(entry.pt_index).map_or(ptl::EQ_NONE, |portal| portal.eq);
            self.post(index, eq, plain_event(EventKind::AutoFree, entry.pt_index, entry.user_ptr), ports);
        }
    }

    /// Stops a portal table entry (Portals 4.3 §3.6.1: flow control); the event follows the messages under way.
    /// Nobody is told unless `tell`.
    pub(crate) fn disable_portal(&mut self, index: u8, pt_index: u32, tell: bool, ports: &mut impl Ports) {
        let Some(Ok(portal)) = self.interface(index).map(|interface| interface.portal(pt_index)) else { return };
        if !portal.enabled {
            return;
        }
        portal.enabled = false;
        portal.disable_event_due = tell;
        self.stats.flow_control += 1;
        self.portal_drained(index, pt_index, ports);
    }

    /// The event queue of a portal table entry is full: stops it and all flow-controlled others with that queue.
    pub(super) fn disable_portals_of_queue(&mut self, index: u8, pt_index: u32, tell: bool, ports: &mut impl Ports) {
        let Some(interface) = self.interface(index) else { return };
        let Ok(eq) = interface.portal(pt_index).map(|portal| portal.eq) else { return };
        let shares = |portal: &Portal| portal.flow_controlled() && portal.eq == eq;
        let portals = interface.portals.iter().zip(0..);
        let all: Vec<u32> = portals.filter(|(p, _)| p.as_ref().is_some_and(shares)).map(|(_, index)| index).collect();
        for other in all {
            self.disable_portal(index, other, tell || other != pt_index, ports);
        }
    }

    fn portal_drained(&mut self, index: u8, pt_index: u32, ports: &mut impl Ports) {
        let Some(interface) = self.interface(index) else { return };
        let Ok(portal) = interface.portal(pt_index) else { return };
        if portal.in_flight > 0 {
            return;
        }
        let (told, eq) = (!std::mem::take(&mut portal.disable_event_due), portal.eq);
        ports.notify(Notice::Portal(interface.handle(), pt_index));
        if told {
            return;
        }
        let mut event = plain_event(EventKind::PtDisabled, pt_index, 0);
        event.ni_fail_type = NiFail::PtDisabled as u8;
        self.post(index, eq, event, ports);
    }

    /// An operation of this node has sent its last byte (`None`) or got its answer.
    pub(super) fn operation_progress(&mut self, token: OpToken, answer: Option<Response>, ports: &mut impl Ports) {
        let Some(operation) = self.operations.get_mut(token) else { return };
        if let (Some(place), Some(response)) = (operation.card, answer) {
            self.finish_operation(token, answer, ports);
            let result = if response.fail == NiFail::Ok { 0 } else { err::FAILED };
            return self.command_done(place.command, result, ports);
        }
        let seen = match (answer, operation.kind) {
            (None, _) => operation.send_md.sees(md::EVENT_CT_SEND, md::EVENT_SEND_DISABLE),
            (Some(_), OperationKind::Get) => operation.md.sees(md::EVENT_CT_REPLY, 0),
            (Some(_), OperationKind::Put(_)) => operation.md.sees(md::EVENT_CT_ACK, 0),
        };
        if !seen && operation.fail == NiFail::Ok {
            return self.note_operation(token, answer.is_some());
        }
        if self.host_completes() {
            self.completions.push_back(Completion::Operation(token, answer));
            ports.notify(Notice::Completion);
        } else if answer.is_none() {
            // The answer's news has crossed to the host already; that of the departure crosses now.
            let told = self.dma_write(0, "", None, ports);
            ports.schedule(told, CardEvent::Sent(Sent::Told(token)));
        } else {
            self.finish_operation(token, answer, ports);
        }
    }

    pub(super) fn note_operation(&mut self, token: OpToken, answered: bool) {
        if let Some(operation) = self.operations.get_mut(token) {
            if answered {
                operation.answered = true;
            } else {
                operation.sent = true;
            }
        }
        self.operations.remove_if_over(token);
    }

    /// Tells the program about its own operation.
    pub(super) fn finish_operation(&mut self, token: OpToken, answer: Option<Response>, ports: &mut impl Ports) {
        let Some(operation) = self.operations.get_mut(token).map(|operation| operation.clone()) else { return };
        let index = operation.interface;
        let md = if answer.is_none() { &operation.send_md } else { &operation.md };
        let (kind, fail, counted, amount) = match (answer, operation.kind) {
            (None, _) => (EventKind::Send, operation.fail, md::EVENT_CT_SEND, operation.length),
            (Some(response), OperationKind::Get) => {
                (EventKind::Reply, response.fail, md::EVENT_CT_REPLY, response.mlength)
            }
            (Some(response), OperationKind::Put(AckReq::Oc)) => {
                (EventKind::Ack, NiFail::Ok, md::EVENT_CT_ACK, u64::from(response.fail == NiFail::Ok))
            }
            (Some(response), OperationKind::Put(_)) => {
                (EventKind::Ack, response.fail, md::EVENT_CT_ACK, response.mlength)
            }
        };
        let wanted = match kind {
            EventKind::Send => !md.has(md::EVENT_SEND_DISABLE),
            EventKind::Ack => operation.kind == OperationKind::Put(AckReq::Ack),
            _ => true,
        };
        let ok = fail == NiFail::Ok;
        if wanted && !(ok && md.has(md::EVENT_SUCCESS_DISABLE)) {
            let mut event = Event { kind: kind as u8, user_ptr: operation.user_ptr, ..Event::default() };
            event.ni_fail_type = fail as u8;
            if let Some(response) = answer {
                (event.mlength, event.remote_offset) = (response.mlength, response.remote_offset);
                event.ptl_list = response.list as u8;
            }
            self.post(index, md.eq, event, ports);
        }
        if md.has(counted) {
            let bytes = md.has(md::EVENT_CT_BYTES) && operation.kind != OperationKind::Put(AckReq::Oc);
            let change = if ok { success(if bytes { amount } else { 1 }) } else { FAILURE };
            self.count(index, md.ct, change, ports);
        }
        self.note_operation(token, answer.is_some());
    }

    /// Ends an operation to a node that does not exist.
    pub(super) fn answer_undeliverable(&mut self, token: OpToken, ports: &mut impl Ports) {
        let Some(operation) = self.operations.get_mut(token) else { return };
        if operation.answered {
            return;
        }
        let fail = NiFail::Undeliverable;
        let answer = Response { op: token, mlength: 0, remote_offset: 0, fail, list: List::Priority, length: 0 };
        self.finish_operation(token, Some(answer), ports);
    }

    /// Adds an event to a queue; without a queue it vanishes.
    pub(crate) fn post(&mut self, index: u8, eq: Handle, event: Event, ports: &mut impl Ports) {
        let Some(interface) = self.interface(index) else { return };
        if let Ok(queue) = interface.queues.get_mut(eq) {
            queue.post(event);
            ports.notify(Notice::Queue(eq));
        }
    }

    /// Adds to a counter and fires what has waited for it.
    pub(crate) fn count(&mut self, index: u8, ct: Handle, change: CtEvent, ports: &mut impl Ports) {
        self.change_counters(index, VecDeque::from([(ct, Change::Add(change))]), ports);
    }

    /// Sets a counter and fires what has waited for it.
    pub(crate) fn set_counter(&mut self, index: u8, ct: Handle, value: CtEvent, ports: &mut impl Ports) {
        self.change_counters(index, VecDeque::from([(ct, Change::Set(value))]), ports);
    }

    /// Applies changes of counters, and those that they trigger, without recursion: chains may be long.
    fn change_counters(&mut self, index: u8, mut changes: VecDeque<(Handle, Change)>, ports: &mut impl Ports) {
        while let Some((ct, change)) = changes.pop_front() {
            let Some(interface) = self.interfaces[usize::from(index & 3)].as_deref_mut() else { return };
            let Ok(counter) = interface.counters.get_mut(ct) else { continue };
            match change {
                Change::Add(amount) => {
                    counter.value.success = counter.value.success.wrapping_add(amount.success);
                    counter.value.failure = counter.value.failure.wrapping_add(amount.failure);
                }
                Change::Set(value) => counter.value = value,
            }
            ports.notify(Notice::Counter(ct));
            let mut due = Vec::new();
            while let Some(op) = counter.take_due() {
                due.push(op);
            }
            interface.triggered -= due.len();
            for op in due {
                match op {
                    op if self.host_completes() => {
                        self.completions.push_back(Completion::Triggered(index, op));
                        ports.notify(Notice::Completion);
                    }
                    TriggeredOp::CtInc(ct, amount) => changes.push_back((ct, Change::Add(amount))),
                    TriggeredOp::CtSet(ct, value) => changes.push_back((ct, Change::Set(value))),
                    op => self.fire(index, op, ports),
                }
            }
        }
    }

    /// Carries out a triggered operation whose counter has been reached.
    pub(crate) fn fire(&mut self, index: u8, op: TriggeredOp, ports: &mut impl Ports) {
        match op {
            TriggeredOp::Transfer(transfer) => self.start_transfer(transfer, ports.now(), ports),
            TriggeredOp::CtInc(ct, amount) => self.count(index, ct, amount, ports),
            TriggeredOp::CtSet(ct, value) => self.set_counter(index, ct, value, ports),
            TriggeredOp::Append(entry, list) => self.link(index, entry, list, ports),
            // An entry in use stays: a triggered unlink has nobody to tell.
            TriggeredOp::Unlink(entry) => drop(self.unlink(entry)),
        }
    }
}

enum Change {
    Add(CtEvent),
    Set(CtEvent),
}

/// One failed event, which counts 1 even where successes count bytes (Portals 4.3 §3.14).
pub(crate) const FAILURE: CtEvent = CtEvent { success: 0, failure: 1 };

/// `amount` successes or bytes.
pub(crate) fn success(amount: u64) -> CtEvent {
    CtEvent { success: amount, failure: 0 }
}

/// An event that says no more than where it happened.
pub(crate) fn plain_event(kind: EventKind, pt_index: u32, user_ptr: u64) -> Event {
    Event { kind: kind as u8, pt_index, user_ptr, ..Event::default() }
}
