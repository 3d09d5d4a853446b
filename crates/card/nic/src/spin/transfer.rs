// SPDX-License-Identifier: Apache-2.0
//! DMA transfers between handlers and host memory.

use std::rc::Rc;

use abi::portals::Datatype;
use accel::{CommandId, HandlerSet};

use crate::message::MessageId;
use crate::region::Region;

/// A DMA transfer in flight between a handler and host memory.
#[derive(Debug)]
pub struct HostTransfer {
    /// Message of the handler.
    pub message: MessageId,
    /// Command that the transfer completes; `None` for a posted write, which is already complete.
    pub(super) command: Option<CommandId>,
    /// True if the end of the message waits for the transfer. The end may be reported behind a posted write instead.
    pub is_awaited: bool,
    /// Keeps the handler's HPU memory allocated.
    pub(super) _handlers: Rc<HandlerSet>,
    /// Host memory range.
    pub(super) region: Region,
    /// Offset in the host memory in bytes.
    pub(super) offset: u64,
    /// Operation on host memory.
    pub(super) action: Action,
}

/// Operation of a transfer on host memory.
#[derive(Debug)]
pub(super) enum Action {
    /// Writes data.
    Write(Vec<u8>),
    /// Reads data to a card address.
    Read {
        /// Card address.
        address: u32,
        /// Length in bytes.
        length: u32,
    },
    /// Compares and swaps; on failure the previous value goes to a card address.
    CompareAndSwap {
        /// Value to compare with.
        compare: u64,
        /// Value to store.
        swap: u64,
        /// Card address of the previous value.
        result: u32,
    },
    /// Adds; the previous value goes to a card address.
    FetchAndAdd {
        /// Type of the word.
        datatype: Datatype,
        /// Summand.
        increment: u64,
        /// Card address of the previous value.
        result: u32,
    },
}
