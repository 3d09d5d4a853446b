// SPDX-License-Identifier: Apache-2.0
//! The handlers of an entry (sPIN §3.2, App. B.1).

use std::rc::Rc;

use abi::portals::{Handle, Me};
use accel::HandlerSet;

use crate::region::Region;

/// Handlers of an entry, and the host memory that they may use beside the entry's own.
#[derive(Debug)]
pub struct Handlers {
    /// Handlers, and the HPU memory that they share.
    pub set: Rc<HandlerSet>,
    /// Second range of host memory (`handler_host_mem_start`).
    pub host_memory: Region,
}

/// Handlers of an ME, by the addresses of their host twins.
#[derive(Clone, Copy, Debug)]
pub struct HandlerRequest {
    /// `header_handler`
    pub header: u64,
    /// `payload_handler`
    pub payload: u64,
    /// `completion_handler`
    pub completion: u64,
    /// `hpu_memory`
    pub memory: Handle,
}

impl HandlerRequest {
    /// Returns the handlers of an ME; `None` if it has none.
    pub fn of(me: &Me) -> Option<HandlerRequest> {
        let request = HandlerRequest {
            header: me.header_handler,
            payload: me.payload_handler,
            completion: me.completion_handler,
            memory: me.hpu_memory,
        };
        (request.header | request.payload | request.completion != 0).then_some(request)
    }
}
