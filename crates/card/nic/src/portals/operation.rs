// SPDX-License-Identifier: Apache-2.0
//! Pending operations of this node.

use std::rc::Rc;

use abi::portals::{AckReq, CT_NONE, EQ_NONE, NiFail};
use sim::memory::push_frugally;

use super::descriptor::MemoryDescriptor;
use crate::message::{Header, MessageId, OpToken};

/// A pending operation of this node.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Interface of its memory descriptors.
    pub interface: u8,
    /// True if the interface is still open.
    pub open: bool,
    /// Memory, queue and counter for the answer.
    pub md: Rc<MemoryDescriptor>,
    /// Memory, queue and counter for the departure.
    pub send_md: Rc<MemoryDescriptor>,
    /// Card memory for the answer's data, instead of host memory.
    pub card: Option<CardPlace>,
    /// Offset in `md`.
    pub local_offset: u64,
    /// Length in bytes.
    pub length: u64,
    /// `user_ptr`
    pub user_ptr: u64,
    /// Kind of the operation.
    pub kind: OperationKind,
    /// True if its last byte has left, or if its departure is not observed.
    pub sent: bool,
    /// True if its answer has arrived, or none is requested.
    pub answered: bool,
    /// First failure.
    pub fail: NiFail,
    /// Number of its message, once known.
    pub message: MessageId,
    /// Target node of the message.
    pub peer: u32,
}

/// Handler memory for an answer, and the handler's command that waits for it.
#[derive(Clone, Copy, Debug)]
pub struct CardPlace {
    /// Command.
    pub command: accel::CommandId,
    /// Card address.
    pub start: u32,
}

/// Kind of an operation, as far as its events depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A put or an atomic, with this acknowledgement.
    Put(AckReq),
    /// A get or a fetching atomic.
    Get,
}

/// Pending operations of a node, by token.
#[derive(Debug, Default)]
pub struct Operations {
    slots: Vec<Option<Operation>>,
    free: Vec<OpToken>,
}

impl Operations {
    /// Adds an operation.
    pub fn insert(&mut self, operation: Operation) -> OpToken {
        match self.free.pop() {
            Some(token) => {
                self.slots[token as usize] = Some(operation);
                token
            }
            None => {
                push_frugally(&mut self.slots, Some(operation));
                (self.slots.len() - 1) as OpToken
            }
        }
    }

    /// Returns the operation if it is still pending.
    pub fn get_mut(&mut self, token: OpToken) -> Option<&mut Operation> {
        self.slots.get_mut(token as usize)?.as_mut()
    }

    /// Records the message of an operation.
    pub fn sent_as(&mut self, token: OpToken, header: &Header) {
        if let Some(operation) = self.get_mut(token) {
            (operation.message, operation.peer) = (header.id, header.target);
        }
    }

    /// Returns the operations that wait for an answer of a node, and their messages.
    pub fn unanswered_by(&self, node: u32) -> Vec<(OpToken, MessageId)> {
        let operations = self.slots.iter().enumerate().filter_map(|(token, slot)| Some((token, slot.as_ref()?)));
        let waits = |operation: &Operation| operation.message != 0 && operation.peer == node && !operation.answered;
        let waiting = operations.filter(|(_, operation)| waits(operation));
        waiting.map(|(token, operation)| (token as OpToken, operation.message)).collect()
    }

    /// Closes an interface. The ends of its operations are no longer reported, and answers bring no data.
    pub fn close(&mut self, interface: u8) {
        for operation in self.slots.iter_mut().flatten().filter(|operation| operation.interface == interface) {
            (operation.open, operation.card) = (false, None);
            for md in [&mut operation.md, &mut operation.send_md] {
                let MemoryDescriptor { region, options, .. } = &**md;
                let (region, options) = (region.clone(), *options);
                *md = Rc::new(MemoryDescriptor { region, options, eq: EQ_NONE, ct: CT_NONE });
            }
        }
    }

    /// Returns true if the interface of an operation is still open.
    pub fn is_open(&mut self, token: OpToken) -> bool {
        self.get_mut(token).is_some_and(|operation| operation.open)
    }

    /// Removes an operation that has left and is answered.
    pub fn remove_if_over(&mut self, token: OpToken) {
        if self.get_mut(token).is_some_and(|operation| operation.sent && operation.answered) {
            self.slots[token as usize] = None;
            self.free.push(token);
        }
    }
}
