// SPDX-License-Identifier: Apache-2.0
//! Calling conventions: the handler's view of its task, the meaning of its return codes, and its commands.
//!
//! A convention translates between handlers and an accelerator. It defines the layouts in a handler's memory and the
//! numbers of commands and return codes, independent of HPUs and of command execution.

mod format;
mod p4spin;

pub use p4spin::P4spin;

use abi::portals::CtEvent;

use crate::command::Command;
use crate::outcome::{HandlerError, Outcome};
use crate::task::{Role, Task};

/// Arguments of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// Bytes of the argument block.
    pub block: Vec<u8>,
    /// Values of the argument registers.
    pub registers: [u32; 3],
}

/// A call from a handler to its accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// Number of the command.
    pub number: u32,
    /// Argument of the command: a value, or the card address of a structure.
    pub argument: u32,
}

/// Decoded call of a handler.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// Executes a command on the card; the handler waits for the reply.
    Call(Command),
    /// Executes a command on the card while the handler continues with an [`Answer::Handle`].
    Start(Command),
    /// Tests whether the command with this handle is complete.
    Test(u32),
    /// Waits until the command with this handle is complete.
    Wait(u32),
    /// Compares 64 bits of card memory and swaps them if they are equal; answered with [`Answer::Before`].
    CompareAndSwap {
        /// Card address.
        address: u32,
        /// The value to compare with.
        compare: u64,
        /// The value to store.
        swap: u64,
    },
    /// Adds to 64 bits of card memory; adding 0 reads them. Answered with [`Answer::Before`].
    FetchAndAdd {
        /// Card address.
        address: u32,
        /// The summand.
        increment: u64,
    },
    /// Returns the number of the HPU that runs the handler.
    MyHpu,
    /// Returns the number of HPUs.
    HpuCount,
    /// Yields the HPU to another handler.
    Yield,
    /// Shows a text to the user.
    Print(String),
    /// Ends the handler with an error.
    Abort(HandlerError),
}

/// Reason for rejecting a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The handler gets this result and continues.
    Result(i32),
    /// Ends the handler: it addressed memory outside its own, or issued an unknown command.
    Fault {
        /// Description of the error, as the continuation of a sentence that begins with the handler's name.
        what: String,
        /// The card address, or the number of the command.
        detail: u32,
    },
}

/// Value that a call returns in the handler's memory, in addition to its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Handle of the started command.
    Handle(u32),
    /// Previous 64 bits of an atomic operation.
    Before(u64),
    /// Value of a counter.
    Counter(CtEvent),
}

/// A handler's memory, accessed with the handler's own permissions.
pub trait HandlerMemory {
    /// Reads bytes; `None` if they are outside the handler's memory.
    fn read(&mut self, address: u32, length: u32) -> Option<Vec<u8>>;
    /// Reads a word; `None` if it is outside the handler's memory.
    fn word(&mut self, address: u32) -> Option<u32> {
        self.read(address, 4)?.try_into().ok().map(u32::from_le_bytes)
    }
    /// Writes bytes if the handler has write permission.
    fn write(&mut self, address: u32, bytes: &[u8]);
}

/// A calling convention.
pub trait Convention {
    /// Returns the arguments of a handler whose argument block is at card address `block`; `user_header` holds the
    /// bytes before the payload of its packet.
    fn arguments(&self, task: &Task, block: u32, user_header: &[u8]) -> Arguments;

    /// Decodes a handler's return value.
    fn outcome(&self, role: Role, value: u32) -> Outcome;

    /// Returns true if this command only polls for a completion, as in a waiting loop.
    fn only_looks(&self, number: u32) -> bool;

    /// Decodes a call of a handler.
    ///
    /// # Errors
    /// Returns an error if the call cannot be carried out.
    fn request(&self, call: Call, memory: &mut dyn HandlerMemory) -> Result<Request, Refusal>;

    /// Writes the answer of a call to the handler's memory, where the handler has write permission.
    fn answer(&self, call: Call, answer: Answer, memory: &mut dyn HandlerMemory);
}
