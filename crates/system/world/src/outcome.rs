// SPDX-License-Identifier: Apache-2.0
//! Outcomes of library calls.

use abi::portals::ReturnCode;
use cluster::Access;
use sim::Time;

use super::wait::Wait;
use ranks::Reply;

/// Next action of an accepted call.
pub enum Action {
    /// Reply after this time.
    Reply(Time, Reply),
    /// Reply when this memory access ends, after this time or later.
    Access(Time, Access),
    /// Wait, for at most this time.
    Wait(Wait, Option<Time>),
}

/// Next action of a call, or the return code with which it is refused.
pub type Outcome = Result<Action, ReturnCode>;

/// Returns the outcome of a call with an immediate reply.
pub fn done(reply: Reply) -> Outcome {
    after(Time::ZERO, reply)
}

/// Returns the outcome of a call with a reply after `delay`.
pub fn after(delay: Time, reply: Reply) -> Outcome {
    Ok(Action::Reply(delay, reply))
}

/// Returns the outcome of a call that accesses memory for `delay`, or longer if it shares the memory with others.
pub fn access((delay, access): (Time, Option<Access>)) -> Outcome {
    match access {
        Some(access) => Ok(Action::Access(delay, access)),
        None => after(delay, Reply::new(ReturnCode::Ok)),
    }
}

/// Returns the outcome of a call with an immediate reply and no result but its return code.
pub fn unit(result: Result<(), ReturnCode>) -> Outcome {
    result?;
    done(Reply::new(ReturnCode::Ok))
}
