use std::rc::Rc;

use abi::device::err;
use accel::{CommandId, Reply};

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

/// An argument of the command is out of range.
pub const INVALID: Refusal = Refusal::Reply(Reply::Done(err::INVALID));

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
