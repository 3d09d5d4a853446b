// SPDX-License-Identifier: Apache-2.0
//! Completion of messages and operations: answers, and notifications of the program.

use std::rc::Rc;

use abi::device::err;
use abi::portals::{List, NiFail, md};
use accel::{CommandId, Reply};

use super::nic::Nic;
use crate::drops::DropReason;
use crate::event::{NicEvent, Sending, Sent};
use crate::message::{Body, Header, MessageId, OpToken, Request, Response};
use crate::pipeline::{ArrivedMessage, Completion, RxMessage, Sink};
use crate::portals::{Ending, FOREIGN, InternalError, OperationKind, Placement};
use crate::ports::Ports;
use crate::spin::HostTransfer;

type Result = std::result::Result<(), InternalError>;

impl Nic {
    /// Completes a message once all its data has arrived and been handled and written. The notification crosses to the
    /// host after the data, or alone if none was written.
    pub(super) fn finish_if_done(&mut self, id: MessageId, ports: &mut impl Ports) -> Result {
        let rx = self.messages.live(id)?;
        let has_handlers = matches!(&rx.sink, Sink::Entry(delivery) if delivery.spin.is_some());
        if rx.remaining > 0 || rx.moving > 0 || rx.landing > 0 && !has_handlers {
            return Ok(());
        }
        let is_told_at_once = match &rx.sink {
            Sink::Nowhere => {
                self.refuse(id, ports);
                return Ok(());
            }
            Sink::Entry(_) if has_handlers => {
                if !self.spin.is_done(rx, ports)? {
                    return Ok(());
                }
                self.spin.message_ended(id, ports)?;
                false
            }
            Sink::Entry(_) => rx.deposited,
            // The notification follows the data, or the data stays on the card.
            &Sink::Operation(token, _) => rx.deposited || self.pipeline.portals.operation(token)?.card.is_some(),
        };
        if is_told_at_once {
            return self.complete(id, ports);
        }
        let dma = &mut self.pipeline.dma;
        let done = if has_handlers { dma.tell_behind_handlers(ports) } else { dma.tell(ports) };
        ports.schedule(done, NicEvent::Complete(id));
        Ok(())
    }

    /// Answers a message that no entry takes. Its last byte has left, so SEND precedes the failure event.
    fn refuse(&mut self, id: MessageId, ports: &mut impl Ports) {
        if let Some(rx) = self.messages.close(id)
            && !rx.answered
            && let Body::Request(request) = rx.header.body
        {
            let nowhere = Placement { offset: 0, mlength: 0 };
            self.pipeline.respond(&rx.header, &request, nowhere, List::Priority, rx.fail, ports);
        }
    }

    /// Completes a message: the card answers, and then the card or (rdma) the CPU notifies the program.
    pub(super) fn complete(&mut self, id: MessageId, ports: &mut impl Ports) -> Result {
        // The message is gone if its interface was closed after this event was scheduled.
        let Some(rx) = self.messages.close(id) else { return Ok(()) };
        match rx.sink {
            Sink::Nowhere => Ok(()),
            Sink::Operation(token, response) => {
                self.operation_progress(token, Some(Response { fail: rx.fail, ..response }), ports)
            }
            Sink::Entry(ref delivery) => {
                if let Body::Request(request) = rx.header.body
                    && !request.kind.replies()
                    && !self.messages.is_abandoned(id)
                {
                    let (outcome, list) = (delivery.outcome(), delivery.taken.list);
                    self.pipeline.respond(&rx.header, &request, outcome, list, rx.fail, ports);
                }
                if self.pipeline.host_completes()
                    && self.pipeline.portals.is_visible(rx.header.interface, &delivery.taken)
                {
                    let arrived = Box::new(ArrivedMessage(*rx));
                    self.pipeline.leave_to_cpu(Completion::Arrived(arrived), ports);
                    return Ok(());
                }
                self.finish_delivery(*rx, ports)
            }
        }
    }

    /// Notifies the program of a message that an entry took.
    pub(super) fn finish_delivery(&mut self, rx: RxMessage, ports: &mut impl Ports) -> Result {
        let (request, delivery) = rx.request()?;
        let spin = delivery.spin.as_deref();
        let ending = Ending {
            placement: delivery.outcome(),
            fail: rx.fail,
            pending: spin.is_some_and(|spin| spin.pending),
            dropped: spin.is_some_and(|spin| spin.is_dropped()),
            error: spin.and_then(|spin| spin.error.as_ref()).map(|error| (error.fail, error.detail)),
        };
        let (id, interface) = (rx.header.id, rx.header.interface);
        self.pipeline.portals.finish_delivery(id, interface, &request, &delivery.taken, ending);
        self.pipeline.apply(ports)
    }

    /// Notifies the program that its operation finished.
    pub(super) fn finish_operation(
        &mut self,
        token: OpToken,
        answer: Option<Response>,
        ports: &mut impl Ports,
    ) -> Result {
        self.pipeline.portals.finish_operation(token, answer);
        self.pipeline.apply(ports)
    }

    /// Records that an operation of this node sent its last byte (`None`) or got its answer.
    pub(super) fn operation_progress(
        &mut self,
        token: OpToken,
        answer: Option<Response>,
        ports: &mut impl Ports,
    ) -> Result {
        let operation = self.pipeline.portals.operation(token)?;
        if let (Some(place), Some(response)) = (operation.card, answer) {
            self.finish_operation(token, answer, ports)?;
            let result = if response.fail == NiFail::Ok { 0 } else { err::FAILED };
            return self.command_done(place.command, result, ports);
        }
        let seen = match (answer, operation.kind) {
            (None, _) => operation.send_md.sees(md::EVENT_CT_SEND, md::EVENT_SEND_DISABLE),
            (Some(_), OperationKind::Get) => operation.md.sees(md::EVENT_CT_REPLY, 0),
            (Some(_), OperationKind::Put(_)) => operation.md.sees(md::EVENT_CT_ACK, 0),
        };
        if !seen && operation.fail == NiFail::Ok {
            self.pipeline.portals.note_operation(token, answer.is_some());
            return self.pipeline.apply(ports);
        }
        if self.pipeline.host_completes() {
            self.pipeline.leave_to_cpu(Completion::Operation(token, answer), ports);
            Ok(())
        } else if answer.is_none() {
            // The notification of the answer has already crossed to the host; that of the departure crosses now.
            let told = self.pipeline.dma.tell(ports);
            ports.schedule(told, NicEvent::Sent(Sent::Told(token)));
            Ok(())
        } else {
            self.finish_operation(token, answer, ports)
        }
    }

    /// Adds a message to the send queue.
    pub(super) fn send(&mut self, message: Rc<Sending>, ports: &mut impl Ports) -> Result {
        if message.header.target >= self.pipeline.portals.nodes {
            return self.undeliverable(&message.header, message.sent, ports);
        }
        self.pipeline.send(message, ports);
        Ok(())
    }

    /// Completes a request to a nonexistent node with `PTL_NI_UNDELIVERABLE`, and one to a node of another job with
    /// `PTL_NI_PERM_VIOLATION`.
    fn undeliverable(&mut self, header: &Header, sent: Sent, ports: &mut impl Ports) -> Result {
        self.pipeline.stats.undeliverable += 1;
        let (fail, reason) = match header.target {
            FOREIGN => (NiFail::PermViolation, DropReason::Foreign),
            _ => (NiFail::Undeliverable, DropReason::NoProcess),
        };
        self.pipeline.count_dropped(reason, header, ports);
        let token = match (sent, header.body) {
            (Sent::Operation(token), _) => token,
            (_, Body::Request(Request { op: Some(token), .. })) => token,
            _ => return Ok(()), // no waiter
        };
        let operation = self.pipeline.portals.operation(token)?;
        operation.fail = fail;
        // Reported once: by SEND if it is visible, else by the failed answer.
        let departs = !operation.sent;
        if departs && (operation.answered || operation.send_md.sees(md::EVENT_CT_SEND, md::EVENT_SEND_DISABLE)) {
            operation.answered = true;
            self.operation_progress(token, None, ports)
        } else {
            operation.sent = true;
            self.pipeline.portals.answer_undeliverable(token, fail);
            self.pipeline.apply(ports)
        }
    }

    /// Handles the departure of a message's last byte.
    pub(super) fn sent(&mut self, sent: Sent, ports: &mut impl Ports) -> Result {
        match sent {
            Sent::Nothing => Ok(()),
            Sent::Operation(token) => self.operation_progress(token, None, ports),
            Sent::Told(token) => self.finish_operation(token, None, ports),
            Sent::Reply(message) => self.response_done(message, ports),
        }
    }

    /// Handles the departure of a reply's last byte, or the arrival of an atomic's result in host memory.
    pub(super) fn response_done(&mut self, id: MessageId, ports: &mut impl Ports) -> Result {
        self.messages.live(id)?.moving -= 1;
        self.finish_if_done(id, ports)
    }

    /// Completes a handler's blocking command with `result`.
    pub(super) fn command_done(&mut self, id: CommandId, result: i32, ports: &mut impl Ports) -> Result {
        self.spin.reply(id, Reply::Done(result), ports)
    }

    /// Completes a handler's transfer to or from host memory.
    pub(super) fn host_transfer_done(&mut self, transfer: &HostTransfer, ports: &mut impl Ports) -> Result {
        let mut rx = self.messages.live(transfer.message).ok();
        // Without handlers, the message's interface is closed.
        let is_wanted = rx.as_mut().is_some_and(|rx| rx.handlers().is_some());
        self.spin.transfer_done(rx, transfer, self.pipeline.portals.node, ports)?;
        if is_wanted && transfer.is_awaited { self.finish_if_done(transfer.message, ports) } else { Ok(()) }
    }
}
