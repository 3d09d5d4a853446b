use std::rc::Rc;

use accel::{CommandId, HostMemory, Reply};

use crate::portals::InternalError;
use crate::region::Region;

/// The handler that has issued a command.
#[derive(Debug)]
pub struct Issuer {
    /// The command.
    pub id: CommandId,
    /// The handler's name.
    pub handler: Rc<str>,
}

/// The reply to a command, or why it is not carried out.
pub type Executed = Result<Reply, Refusal>;

/// Why a command is not carried out.
pub enum Refusal {
    /// The handler is told so.
    Reply(Reply),
    /// The simulator is in a state that cannot occur.
    Internal(InternalError),
}

/// A command of which an argument is out of range: why.
pub fn refused(why: String) -> Refusal {
    Refusal::Reply(Reply::Refused(why))
}

/// A command on bytes that are not in the host memory that it means: why.
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

/// The handler gave memory that is not its own: `what` it did, and where.
pub fn fault(what: String, address: u32) -> Refusal {
    Refusal::Reply(Reply::Fault { what, address })
}

/// Whether these bytes lie in the host memory that a command means.
pub fn inside(region: &Region, offset: u64, len: u64) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= region.length())
}
