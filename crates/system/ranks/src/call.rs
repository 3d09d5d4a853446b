//! Calls of ranks, the answers to them, and why ranks pause.

use abi::calls::{Op, Output, Word};
use abi::mailbox::{ARGS, SLOTS};
use abi::portals::ReturnCode;
use bytemuck::{AnyBitPattern, NoUninit};
use std::process::ExitStatus;

/// A thread of a rank that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller {
    /// Its rank.
    pub rank: u32,
    /// The index of its slot, below [`SLOTS`], or [`PMI`].
    pub slot: u32,
}

/// The number that [`Caller::slot`] has for the rank's PMI connection.
pub const PMI: u32 = SLOTS as u32;

const _: () = assert!(PMI < u32::BITS);

/// A call of the library that waits for its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The thread that made it.
    pub caller: Caller,
    /// The function that was called.
    pub op: Op,
    /// CPU time of the caller since its last answer, in nanoseconds; 0 unless [`JobSpec`](super::JobSpec) charges it.
    pub elapsed_ns: u64,
    /// Its arguments, see [`Op`].
    pub args: [u64; ARGS],
}

/// The answer to a call.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The return code.
    pub rc: i32,
    /// The scalar results.
    pub out: [u64; 4],
    /// The structure result.
    pub data: ReplyData,
}

impl Reply {
    /// Makes an answer with a return code and no results.
    pub fn new(rc: ReturnCode) -> Reply {
        Reply { rc: rc as i32, out: [0; 4], data: ReplyData::default() }
    }

    /// Makes an answer with `PTL_OK` and the result of an output pointer.
    pub fn output<T: Word>(_pointer: Output<T>, value: T) -> Reply {
        Reply::value(value.to_word())
    }

    /// Makes an answer with `PTL_OK` and one scalar result.
    pub fn value(value: u64) -> Reply {
        Reply { out: [value, 0, 0, 0], ..Reply::new(ReturnCode::Ok) }
    }

    /// Returns the structure result, if there is one of this type.
    pub fn structure<T: AnyBitPattern>(&self) -> Option<T> {
        let bytes = self.data.bytes();
        (bytes.len() == size_of::<T>()).then(|| bytemuck::pod_read_unaligned(bytes))
    }

    /// Adds a structure result.
    pub fn with(self, value: &impl NoUninit) -> Reply {
        Reply { data: ReplyData::new(value), ..self }
    }
}

/// The bytes of a structure result. Most answers have none, and no memory for it.
#[derive(Clone, Debug, Default)]
pub struct ReplyData(Box<[u8]>);

impl ReplyData {
    /// The size of the largest structure result in bytes.
    pub const CAPACITY: usize = size_of::<abi::portals::NiLimits>();

    /// Copies the bytes of a structure.
    pub fn new<T: NoUninit>(value: &T) -> ReplyData {
        const { assert!(size_of::<T>() <= ReplyData::CAPACITY) };
        ReplyData(bytemuck::bytes_of(value).into())
    }

    /// Returns the bytes of the structure.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The reason why the rank that ran no longer runs.
#[derive(Debug)]
pub enum Pause {
    /// It made a call and waits for the answer.
    Call(Call),
    /// It has several threads and none runs: some wait for answers to earlier calls, the others are blocked in the kernel
    /// or have ended. If one of them wakes and makes a call, [`Job::poll`](super::Job::poll) returns the call.
    Asleep {
        /// The rank.
        rank: usize,
    },
    /// It polls its memory and is stopped. When [`Job::touched`](super::Job::touched) names it,
    /// [`Job::resume_polling`](super::Job::resume_polling) runs it to its next call; [`Job::resume_computing`](super::Job::resume_computing) does
    /// so at any time.
    Polls {
        /// The rank.
        rank: usize,
    },
    /// It has made no call for a while and the system does not permit to inspect it, so it is not known whether it polls.
    /// It still runs: [`Job::wait`](super::Job::wait) waits on. Reported once in a job.
    Uninspectable {
        /// The rank.
        rank: usize,
    },
    /// A process has ended: usually the rank that ran, but any rank can be ended from outside of the job. Or the rank has
    /// asked by PMI to abort the job.
    Exited {
        /// The rank.
        rank: usize,
        /// Its exit code or signal.
        status: ExitStatus,
    },
    /// A rank has written something to the shared memory or to its PMI connection that no correct program writes.
    Refused {
        /// The rank.
        rank: usize,
        /// What the rank has done, for the user.
        message: String,
    },
    /// The simulator has received SIGINT, SIGTERM or SIGHUP.
    Interrupted {
        /// The number of the signal.
        signal: i32,
    },
    /// The deadline has passed.
    TimedOut,
}
