//! The ends of messages and operations: answers, and who tells the program.

use abi::device::err;
use abi::portals::{NiFail, md};

use super::{ArrivedMessage, Card, Completion};
use crate::event::{CardEvent, Sent};
use crate::message::{Body, OpToken, Response};
use crate::portals::{Effect, Ending, InternalError, Notice, OperationKind};
use crate::ports::Ports;
use crate::rx::{RxMessage, Sink};

impl Card {
    /// A message is done: the card answers, and then it or (rdma) the CPU tells the program.
    pub(super) fn complete(&mut self, id: u64, ports: &mut impl Ports) {
        // A message whose interface was closed after this had been scheduled is over.
        let Some(rx) = self.close(id) else { return };
        match rx.sink {
            Sink::Nowhere => {}
            Sink::Operation(token, response) => {
                let response = Response { fail: rx.fail, ..response };
                self.operation_progress(token, Some(response), ports);
            }
            Sink::Entry(ref delivery) => {
                if let Body::Request(request) = rx.header.body
                    && !request.kind.replies()
                {
                    let (outcome, list) = (delivery.outcome(), delivery.taken.list);
                    self.respond(&rx.header, &request, outcome, list, rx.fail, ports);
                }
                if self.host_completes() && self.portals.is_visible(rx.header.interface, &delivery.taken) {
                    self.completions.push_back(Completion::Arrived(Box::new(ArrivedMessage(*rx))));
                    ports.notify(Notice::Completion);
                } else {
                    self.finish_delivery(*rx, ports);
                }
            }
        }
    }

    /// Tells the program about a message that an entry has taken.
    pub(super) fn finish_delivery(&mut self, rx: RxMessage, ports: &mut impl Ports) {
        let (Sink::Entry(delivery), Body::Request(request)) = (&rx.sink, &rx.header.body) else {
            return self.report_internal(InternalError::WrongKind(rx.header.id), ports);
        };
        let spin = delivery.spin.as_deref();
        let ending = Ending {
            placement: delivery.outcome(),
            fail: rx.fail,
            pending: spin.is_some_and(|spin| spin.pending),
            dropped: spin.is_some_and(|spin| spin.is_dropped()),
            error: spin.and_then(|spin| spin.error.as_ref()).map(|error| (error.fail, error.detail)),
        };
        let (id, interface) = (rx.header.id, rx.header.interface);
        self.portals.finish_delivery(id, interface, request, &delivery.taken, ending);
        self.apply(ports);
    }

    /// Tells the program about its own operation.
    pub(super) fn finish_operation(&mut self, token: OpToken, answer: Option<Response>, ports: &mut impl Ports) {
        self.portals.finish_operation(token, answer);
        self.apply(ports);
    }

    /// An operation of this node has sent its last byte (`None`) or got its answer.
    pub(super) fn operation_progress(&mut self, token: OpToken, answer: Option<Response>, ports: &mut impl Ports) {
        let operation = match self.portals.operation(token) {
            Ok(operation) => operation,
            Err(error) => return self.report_internal(error, ports),
        };
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
            self.portals.note_operation(token, answer.is_some());
            return self.apply(ports);
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

    /// Does what a change of Portals objects has left to the card, in its order.
    pub(crate) fn apply(&mut self, ports: &mut impl Ports) {
        let mut effects = std::mem::take(&mut self.portals.effects);
        for effect in effects.drain(..) {
            match effect {
                Effect::Notify(notice) => ports.notify(notice),
                Effect::Start(transfer) => self.start_transfer(transfer, ports.now(), ports),
                Effect::Due(interface, op) => {
                    self.completions.push_back(Completion::Triggered(interface, op));
                    ports.notify(Notice::Completion);
                }
                Effect::Internal(error) => self.report_internal(error, ports),
            }
        }
        if self.portals.effects.is_empty() {
            self.portals.effects = effects; // keeps its memory
        }
    }

    /// Tells of an error of the simulator.
    pub(crate) fn report_internal(&self, error: InternalError, ports: &mut impl Ports) {
        report_internal(self.portals.node, error, ports);
    }
}

/// Tells of an error of the simulator at a node.
pub(crate) fn report_internal(node: u32, error: InternalError, ports: &mut impl Ports) {
    ports.warn(format!("node {node}: internal error: {error}, please report"));
}
