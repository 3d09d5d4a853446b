//! The outcomes and the arguments of library calls.

use abi::portals::{Process, ReturnCode};
use cluster::Access;
use sim::Time;

use super::wait::Wait;
use ranks::Reply;

/// The next step of a call.
pub enum Step {
    /// The call is answered after this time.
    Reply(Time, Reply),
    /// The call is answered when this access to memory is over, after this time or later.
    Access(Time, Access),
    /// The call waits, at most for this time.
    Wait(Wait, Option<Time>),
}

/// The next step of a call, or the return code with which it is refused.
pub type Outcome = Result<Step, ReturnCode>;

/// Makes the outcome of a call that is answered at once.
pub fn done(reply: Reply) -> Outcome {
    after(Time::ZERO, reply)
}

/// Makes the outcome of a call that is answered after `delay`.
pub fn after(delay: Time, reply: Reply) -> Outcome {
    Ok(Step::Reply(delay, reply))
}

/// Makes the outcome of a call that reads or writes memory for `delay`, or longer if it shares the memory with others.
pub fn access((delay, access): (Time, Option<Access>)) -> Outcome {
    match access {
        Some(access) => Ok(Step::Access(delay, access)),
        None => after(delay, Reply::new(ReturnCode::Ok)),
    }
}

/// Makes the outcome of a call that is answered at once with a number.
pub fn value(value: u32) -> Outcome {
    done(Reply::value(u64::from(value)))
}

/// Makes the outcome of a call that is answered at once and has no result but its return code.
pub fn unit(result: Result<(), ReturnCode>) -> Outcome {
    result?;
    done(Reply::new(ReturnCode::Ok))
}

/// Packs a process into one word.
pub fn pack(process: Process) -> u64 {
    u64::from(process.nid) | u64::from(process.pid) << 32
}

/// The inverse of [`pack`].
pub fn unpack(word: u64) -> Process {
    Process { nid: word as u32, pid: (word >> 32) as u32 }
}

/// The arguments of a call.
pub struct Words<'a>(pub &'a [u64]);

impl Words<'_> {
    pub fn word(&self, index: usize) -> u64 {
        self.0[index]
    }

    pub fn u32(&self, index: usize) -> u32 {
        self.0[index] as u32
    }
}
