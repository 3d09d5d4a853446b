// SPDX-License-Identifier: Apache-2.0
//! Reasons for which the stepper returns.

use crate::architectural_state::further_words;
use crate::op::Class;
use crate::stop::Fault;

/// Reason for which [`Stepper::run`](crate::Stepper::run) returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pause {
    /// The next instruction is this access; [`Stepper::perform`](crate::Stepper::perform) executes it.
    Access(Access),
    /// The next instructions are in this line, which misses in the instruction cache.
    Line(u32),
    /// The handler issues a command; see [`Stop::Call`](crate::Stop::Call).
    Call {
        /// Number of the command.
        number: u32,
        /// Argument of the command.
        argument: u32,
    },
    /// The handler returned this value.
    Return(u32),
    /// The handler failed.
    Fault(Fault),
    /// The thread reached cycle `until`.
    Until,
}

/// A memory access that is ready to execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// First cycle of the access in the execute stage, in which it requests its memory.
    pub at: u64,
    /// Address of the first byte.
    pub address: u32,
    /// Size in bytes.
    pub bytes: u32,
    /// Class of the access: load, store or atomic operation.
    pub class: Class,
}

impl Access {
    /// Returns the number of words that the access touches. A core transfers one word at a time, so each needs a
    /// separate grant.
    pub fn words(&self) -> u32 {
        1 + further_words(self.address, self.bytes as usize)
    }
}
