use std::rc::Rc;

use abi::portals::Datatype;
use accel::{CommandId, HandlerSet};

use crate::message::MessageId;
use crate::region::Region;

/// A DMA transfer between a handler and host memory that is under way.
#[derive(Debug)]
pub struct HostTransfer {
    /// The message that the handler works for.
    pub message: MessageId,
    /// The command that the end of the transfer completes; a posted write has completed already.
    pub(super) command: Option<CommandId>,
    /// Whether the end of the message waits for it. That of a posted write may be reported behind it instead.
    pub is_awaited: bool,
    /// Keeps the HPU memory of the handler reserved.
    pub(super) _handlers: Rc<HandlerSet>,
    /// The host memory.
    pub(super) region: Region,
    /// Offset in the host memory.
    pub(super) offset: u64,
    /// What is done there.
    pub(super) action: Action,
}

/// What a transfer does in host memory when it gets there.
#[derive(Debug)]
pub(super) enum Action {
    /// Writes data.
    Write(Vec<u8>),
    /// Reads data to a card address.
    Read {
        /// The card address.
        address: u32,
        /// Bytes.
        length: u32,
    },
    /// Compares and swaps; the value before goes to a card address when that fails.
    CompareAndSwap {
        /// The value to compare with.
        compare: u64,
        /// The value to store.
        swap: u64,
        /// The card address.
        result: u32,
    },
    /// Adds; the value before goes to a card address.
    FetchAndAdd {
        /// The type of the word.
        datatype: Datatype,
        /// What is added.
        increment: u64,
        /// The card address.
        result: u32,
    },
}
