use std::rc::Rc;

use abi::portals::{AckReq, CT_NONE, EQ_NONE, NiFail};
use sim::memory::push_frugally;

use super::descriptor::MemoryDescriptor;
use crate::message::{Header, MessageId, OpToken};

/// An operation of this node that is not over.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Interface of its memory descriptors.
    pub interface: u8,
    /// Whether the interface is still open.
    pub open: bool,
    /// Memory, queue and counter for the answer.
    pub md: Rc<MemoryDescriptor>,
    /// Memory, queue and counter for the departure.
    pub send_md: Rc<MemoryDescriptor>,
    /// Where on the card the answer's data goes, instead of to host memory.
    pub card: Option<CardPlace>,
    /// Offset in `md`.
    pub local_offset: u64,
    /// Bytes.
    pub length: u64,
    /// `user_ptr`
    pub user_ptr: u64,
    /// What it is.
    pub kind: OperationKind,
    /// Whether its last byte has left, as far as anybody wants to know.
    pub sent: bool,
    /// Whether its answer has come, or none is asked for.
    pub answered: bool,
    /// What went wrong first.
    pub fail: NiFail,
    /// The number of its message, once that is known.
    pub message: MessageId,
    /// The node that the message is for.
    pub peer: u32,
}

/// A place in a handler's memory, and the command of the handler that waits for it to be filled.
#[derive(Clone, Copy, Debug)]
pub struct CardPlace {
    /// The command.
    pub command: accel::CommandId,
    /// Card address.
    pub start: u32,
}

/// What an operation is, as far as its events tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A put or an atomic, with this acknowledgement.
    Put(AckReq),
    /// A get or a fetching atomic.
    Get,
}

/// The operations of a node that are not over, by token.
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

    /// The operation, unless it is over.
    pub fn get_mut(&mut self, token: OpToken) -> Option<&mut Operation> {
        self.slots.get_mut(token as usize)?.as_mut()
    }

    /// Notes the message of an operation.
    pub fn sent_as(&mut self, token: OpToken, header: &Header) {
        if let Some(operation) = self.get_mut(token) {
            (operation.message, operation.peer) = (header.id, header.target);
        }
    }

    /// The operations that wait for an answer of a node, and their messages.
    pub fn unanswered_by(&self, node: u32) -> Vec<(OpToken, MessageId)> {
        let operations = self.slots.iter().enumerate().filter_map(|(token, slot)| Some((token, slot.as_ref()?)));
        let waits = |operation: &Operation| operation.message != 0 && operation.peer == node && !operation.answered;
        let waiting = operations.filter(|(_, operation)| waits(operation));
        waiting.map(|(token, operation)| (token as OpToken, operation.message)).collect()
    }

    /// An interface is closed. Nobody is told of the end of its operations any more, and answers bring no data.
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

    /// Whether the interface of an operation is still open.
    pub fn is_open(&mut self, token: OpToken) -> bool {
        self.get_mut(token).is_some_and(|operation| operation.open)
    }

    /// Forgets an operation that has left and been answered.
    pub fn remove_if_over(&mut self, token: OpToken) {
        if self.get_mut(token).is_some_and(|operation| operation.sent && operation.answered) {
            self.slots[token as usize] = None;
            self.free.push(token);
        }
    }
}
