// SPDX-License-Identifier: Apache-2.0
//! Operations of this node: their start, and the program's notification of their ends (Portals 4.3 §3.13, §3.15).

use std::rc::Rc;

use abi::portals::{AckReq, Event, EventKind, List, NiFail, md};

use super::descriptor::MemoryDescriptor;
use super::effect::InternalError;
use super::lists::{FAILURE, success};
use super::operation::{Operation, OperationKind};
use super::process::Portals;
use super::triggered::{Action, RmaOp};
use crate::atomic::MAX_OPERAND;
use crate::message::{OpToken, Request, RequestKind, Response};

/// A started operation.
#[derive(Debug)]
pub struct Initiated {
    /// Request to the target.
    pub request: Request,
    /// Target node. For a nonexistent process, a node outside the network.
    pub target: u32,
    /// Token of the operation.
    pub token: OpToken,
    /// Source memory of its data, and the offset in it.
    pub data: (Rc<MemoryDescriptor>, u64),
    /// True if the CPU hands over the data with the descriptor.
    pub volatile: bool,
}

impl Portals {
    /// Starts an operation; `None` if its interface is closed.
    pub(crate) fn initiate(&mut self, transfer: RmaOp) -> Option<Initiated> {
        let RmaOp { action, interface: index, md, local_offset, length, target } = transfer;
        let (kind, ack, send_md, send_offset, operand) = match action {
            Action::Put(ack) => (RequestKind::Put, ack, md.clone(), local_offset, [0; MAX_OPERAND]),
            Action::Get => (RequestKind::Get, AckReq::None, md.clone(), 0, [0; MAX_OPERAND]),
            Action::Atomic(ack, spec) => (RequestKind::Atomic(spec), ack, md.clone(), local_offset, [0; MAX_OPERAND]),
            Action::Fetch(fetch) => {
                (RequestKind::FetchAtomic(fetch.spec), AckReq::None, fetch.put_md, fetch.put_offset, fetch.operand)
            }
        };
        let answered = ack == AckReq::None && !kind.replies();
        let interface = self.interfaces[usize::from(index)].as_deref()?;
        let place = interface.locate(target.process);
        let initiator = self.identity(interface);
        let volatile = send_md.has(md::VOLATILE) && length <= interface.limits.max_volatile_size;
        let may_be_lost = send_md.has(md::UNRELIABLE);
        let token = self.operations.insert(Operation {
            interface: index,
            open: true,
            md,
            send_md: send_md.clone(),
            card: None,
            local_offset,
            length,
            user_ptr: target.user_ptr,
            kind: if kind.replies() { OperationKind::Get } else { OperationKind::Put(ack) },
            sent: kind == RequestKind::Get,
            answered,
            fail: NiFail::Ok,
            message: 0,
            peer: 0,
        });
        let request = Request {
            kind,
            pt_index: target.pt_index,
            match_bits: target.match_bits,
            remote_offset: target.remote_offset,
            length,
            hdr_data: target.hdr_data,
            ack,
            initiator,
            target: target.process,
            uid: self.uid,
            op: (!answered).then_some(token),
            operand,
            fail: NiFail::Ok,
            may_be_lost,
        };
        let target = place.map_or(self.nodes, |place| self.find(place));
        Some(Initiated { request, target, token, data: (send_md, send_offset), volatile })
    }

    /// Returns an operation of this node.
    pub(crate) fn operation(&mut self, token: OpToken) -> Result<&mut Operation, InternalError> {
        self.operations.get_mut(token).ok_or(InternalError::NoOperation(token))
    }

    /// Records that an operation sent its last byte, or (`answered`) got its answer.
    pub(crate) fn note_operation(&mut self, token: OpToken, answered: bool) {
        match self.operation(token) {
            Ok(operation) if answered => operation.answered = true,
            Ok(operation) => operation.sent = true,
            Err(error) => self.check(Err(error)),
        }
        self.operations.remove_if_over(token);
    }

    /// Notifies the program that the last byte of its operation left, or of the answer.
    pub(crate) fn finish_operation(&mut self, token: OpToken, answer: Option<Response>) {
        let operation = match self.operation(token) {
            Ok(operation) => operation.clone(),
            Err(error) => return self.check(Err(error)),
        };
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
            self.post(index, md.eq, event);
        }
        if md.has(counted) {
            let bytes = md.has(md::EVENT_CT_BYTES) && operation.kind != OperationKind::Put(AckReq::Oc);
            let change = if ok { success(if bytes { amount } else { 1 }) } else { FAILURE };
            self.count(index, md.ct, change);
        }
        self.note_operation(token, answer.is_some());
    }

    /// Ends an operation to a node that does not exist or belongs to another job, with this status.
    pub(crate) fn answer_undeliverable(&mut self, token: OpToken, fail: NiFail) {
        let (answered, to) = match self.operation(token) {
            Ok(operation) => (operation.answered, operation.message),
            Err(error) => return self.check(Err(error)),
        };
        if !answered {
            let list = List::Priority;
            let answer = Response { op: token, to, mlength: 0, remote_offset: 0, fail, list, length: 0 };
            self.finish_operation(token, Some(answer));
        }
    }
}
