//! Calling conventions: what a handler sees of its task, what its return codes mean, and which commands it has.
//!
//! A convention translates between handlers and an accelerator. It knows the layouts in a handler's memory and the
//! numbers; it knows nothing about processors and the execution of commands.

mod format;
mod p4spin;

pub use p4spin::P4spin;

use abi::portals::CtEvent;

use crate::command::Command;
use crate::outcome::{HandlerError, Outcome};
use crate::task::{Role, Task};

/// The arguments of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    /// The bytes of the argument block.
    pub block: Vec<u8>,
    /// The values of the argument registers.
    pub registers: [u32; 3],
}

/// A call of a handler to its accelerator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The number of the command.
    pub number: u32,
    /// Its argument: a value, or the card address of a structure.
    pub argument: u32,
}

/// The meaning of a handler's call.
#[derive(Debug, PartialEq, Eq)]
pub enum Request {
    /// The card executes a command, and the handler waits for its reply.
    Call(Command),
    /// The card executes a command while the handler continues; the handler gets a [`Answer::Handle`].
    Start(Command),
    /// Tests whether the command with this handle is done.
    Test(u32),
    /// Waits until the command with this handle is done.
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
    /// Adds to 64 bits of card memory, where adding nothing is reading; answered with [`Answer::Before`].
    FetchAndAdd {
        /// Card address.
        address: u32,
        /// The summand.
        increment: u64,
    },
    /// Returns the number of the processor that runs the handler.
    MyHpu,
    /// Returns the number of processors.
    HpuCount,
    /// Lets another handler use the processor.
    Yield,
    /// Shows a text to the user.
    Print(String),
    /// Ends the handler with an error.
    Abort(HandlerError),
}

/// The reasons for which a call is not carried out.
#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The handler gets this result and continues.
    Result(i32),
    /// The handler is ended: it named memory that is not its own, or a command that does not exist.
    Fault {
        /// Text that describes the error: it continues a sentence that begins with the handler's name.
        what: String,
        /// The card address, or the number of the command.
        detail: u32,
    },
}

/// A value that a call returns in the handler's memory, in addition to its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The handle of the command that was started.
    Handle(u32),
    /// The previous 64 bits of an atomic operation.
    Before(u64),
    /// The value of a counter.
    Counter(CtEvent),
}

/// The memory of a handler, with the same protection as for the handler itself.
pub trait HandlerMemory {
    /// Reads bytes; `None` when they are not the handler's own.
    fn read(&mut self, address: u32, length: u32) -> Option<Vec<u8>>;
    /// Reads a word; `None` when it is not the handler's own.
    fn word(&mut self, address: u32) -> Option<u32> {
        self.read(address, 4)?.try_into().ok().map(u32::from_le_bytes)
    }
    /// Writes bytes if the handler may.
    fn write(&mut self, address: u32, bytes: &[u8]);
}

/// A calling convention.
pub trait Convention {
    /// The arguments of a handler with its argument block at card address `block`; `user_header` has the bytes before
    /// the payload of its packet.
    fn arguments(&self, task: &Task, block: u32, user_header: &[u8]) -> Arguments;

    /// The meaning of a handler's return value.
    fn outcome(&self, role: Role, value: u32) -> Outcome;

    /// Whether this command only tests whether something has arrived, as in a waiting loop.
    fn only_looks(&self, number: u32) -> bool;

    /// Decodes a call of a handler.
    ///
    /// # Errors
    /// When the call cannot be carried out.
    fn request(&self, call: Call, memory: &mut dyn HandlerMemory) -> Result<Request, Refusal>;

    /// Writes the answer of a call to the handler's memory, as far as the handler may write there.
    fn answer(&self, call: Call, answer: Answer, memory: &mut dyn HandlerMemory);
}
