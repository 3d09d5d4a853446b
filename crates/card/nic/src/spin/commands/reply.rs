// SPDX-License-Identifier: Apache-2.0
//! Replies to handler commands.

use std::rc::Rc;

use accel::{CommandId, HostMemory, Reply};

use crate::portals::InternalError;
use crate::region::Region;

/// Handler that issued a command.
#[derive(Debug)]
pub struct Issuer {
    /// Command.
    pub id: CommandId,
    /// Name of the handler.
    pub handler: Rc<str>,
}

/// Reply to a command, or the reason for its refusal.
pub type Executed = Result<Reply, Refusal>;

/// Reason for refusing a command.
pub enum Refusal {
    /// Reply that reports the refusal to the handler.
    Reply(Reply),
    /// The simulator is in an impossible state.
    Internal(InternalError),
}

/// Refuses a command with an argument out of range.
pub fn refused(why: String) -> Refusal {
    Refusal::Reply(Reply::Refused(why))
}

/// Refuses a command on bytes outside its host memory.
pub fn outside(command: &str, offset: u64, length: u64, host: HostMemory, region: &Region) -> Refusal {
    let (name, bytes) = (host_name(host), region.length());
    refused(format!("{command}: {offset} + {length} B exceeds {name} {bytes} B"))
}

fn host_name(host: HostMemory) -> &'static str {
    match host {
        HostMemory::Entry => "the entry's",
        HostMemory::Handlers => "handler_host_mem_length,",
    }
}

impl<E: Into<InternalError>> From<E> for Refusal {
    fn from(error: E) -> Refusal {
        Refusal::Internal(error.into())
    }
}

/// Refuses an access to memory outside the handler's own; `what` describes the access.
pub fn fault(what: String, address: u32) -> Refusal {
    Refusal::Reply(Reply::Fault { what, address })
}

/// Returns true if the bytes are inside the host memory of a command.
pub fn inside(region: &Region, offset: u64, len: u64) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= region.length())
}
