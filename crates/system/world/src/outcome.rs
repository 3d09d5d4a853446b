//! Outcomes of library calls.

use abi::portals::ReturnCode;
use cluster::Access;
use sim::Time;

use super::wait::Wait;
use ranks::Reply;

/// The next step of a call.
pub enum Action {
    /// The call is answered after this time.
    Reply(Time, Reply),
    /// The call is answered when this access to memory is over, after this time or later.
    Access(Time, Access),
    /// The call waits, at most for this time.
    Wait(Wait, Option<Time>),
}

/// The next step of a call, or the return code with which it is refused.
pub type Outcome = Result<Action, ReturnCode>;

/// Makes the outcome of a call that is answered at once.
pub fn done(reply: Reply) -> Outcome {
    after(Time::ZERO, reply)
}

/// Makes the outcome of a call that is answered after `delay`.
pub fn after(delay: Time, reply: Reply) -> Outcome {
    Ok(Action::Reply(delay, reply))
}

/// Makes the outcome of a call that reads or writes memory for `delay`, or longer if it shares the memory with others.
pub fn access((delay, access): (Time, Option<Access>)) -> Outcome {
    match access {
        Some(access) => Ok(Action::Access(delay, access)),
        None => after(delay, Reply::new(ReturnCode::Ok)),
    }
}

/// Makes the outcome of a call that is answered at once and has no result but its return code.
pub fn unit(result: Result<(), ReturnCode>) -> Outcome {
    result?;
    done(Reply::new(ReturnCode::Ok))
}
