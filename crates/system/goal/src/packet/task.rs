// SPDX-License-Identifier: Apache-2.0
//! CPU tasks of the packet model, and their encoding as message tokens.

/// A CPU task: an operation, or the reception of a message of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::packet) struct Task {
    token: u32,
    /// True if the end of the task is the end of its operation, and no operation waits for it.
    is_last: bool,
}

/// A part of an operation, or a message of a send.
//
// The numbers are also part of the network's message tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The operation itself, which is not a message
    Operation,
    /// An eager message, or the request to send a longer one
    Message,
    /// Data of a longer message
    Data,
    /// Clear to send, which only the cards see
    Clear,
}

const SHIFT: u32 = 30;

impl Task {
    pub fn new(op: u32, phase: Phase) -> Task {
        Task::from_token(op | (phase as u32) << SHIFT)
    }

    /// Returns the task of a message with this token.
    #[inline]
    pub fn from_token(token: u32) -> Task {
        Task { token, is_last: false }
    }

    #[inline]
    pub fn token(self) -> u32 {
        self.token
    }

    #[inline]
    pub fn op(self) -> u32 {
        self.token & ((1 << SHIFT) - 1)
    }

    #[inline]
    pub fn phase(self) -> Phase {
        match self.token >> SHIFT {
            0 => Phase::Operation,
            1 => Phase::Message,
            2 => Phase::Data,
            _ => Phase::Clear,
        }
    }

    /// Returns this task with `is_last` set. It spares a look at the operation, which is seldom in the processor's
    /// cache.
    #[inline]
    pub fn ending(self, is_last: bool) -> Task {
        Task { is_last, ..self }
    }

    #[inline]
    pub fn is_last(self) -> bool {
        self.is_last
    }
}
