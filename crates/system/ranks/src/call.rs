// SPDX-License-Identifier: Apache-2.0
//! Calls of ranks, the replies to them, and the reasons for pauses.

use abi::calls::{Op, Output, StructureOutput, Word};
use abi::mailbox::{ARGS, SLOTS};
use abi::portals::ReturnCode;
use bytemuck::{AnyBitPattern, NoUninit};
use std::process::ExitStatus;

/// A thread of a rank that waits for a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller {
    /// Rank of the thread.
    pub rank: u32,
    /// Slot index below [`SLOTS`], or [`PMI`].
    pub slot: u32,
}

/// Value of [`Caller::slot`] for the rank's PMI connection.
pub const PMI: u32 = SLOTS as u32;

const _: () = assert!(PMI < u32::BITS);

/// A library call that waits for its reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Calling thread.
    pub caller: Caller,
    /// Called function.
    pub op: Op,
    /// CPU time of the caller since its last reply, in nanoseconds; 0 unless [`JobSpec`](super::JobSpec) charges it.
    pub elapsed_ns: u64,
    /// Arguments, see [`Op`].
    pub args: [u64; ARGS],
}

/// Reply to a call.
#[derive(Clone, Debug)]
pub struct Reply {
    /// Return code.
    pub rc: i32,
    /// Scalar results.
    pub out: [u64; 4],
    /// Structure result.
    pub data: ReplyData,
}

impl Reply {
    /// Creates a reply with a return code and no results.
    pub fn new(rc: ReturnCode) -> Reply {
        Reply { rc: rc as i32, out: [0; 4], data: ReplyData::default() }
    }

    /// Creates a reply with `PTL_OK` and the result of an output pointer.
    pub fn output<T: Word>(_pointer: Output<T>, value: T) -> Reply {
        Reply::value(value.to_word())
    }

    /// Creates a reply with `PTL_OK` and one scalar result.
    pub fn value(value: u64) -> Reply {
        Reply { out: [value, 0, 0, 0], ..Reply::new(ReturnCode::Ok) }
    }

    /// Returns the structure result if it has the size of `T`.
    pub fn structure<T: AnyBitPattern>(&self) -> Option<T> {
        let bytes = self.data.bytes();
        (bytes.len() == size_of::<T>()).then(|| bytemuck::pod_read_unaligned(bytes))
    }

    /// Adds the structure result of an output pointer.
    pub fn with<T: NoUninit>(self, _pointer: StructureOutput<T>, value: &T) -> Reply {
        Reply { data: ReplyData::new(value), ..self }
    }
}

/// Bytes of a structure result. Most replies have none and allocate no memory.
#[derive(Clone, Debug, Default)]
pub struct ReplyData(Box<[u8]>);

impl ReplyData {
    /// Size of the largest structure result, in bytes.
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

/// Reason why a running rank stopped.
#[derive(Debug)]
pub enum Pause {
    /// The rank made a call and waits for the reply.
    Call(Call),
    /// The rank of a live run runs on; its next call or its end comes from
    /// [`Job::next_live_pause`](super::Job::next_live_pause).
    Runs,
    /// All threads of the rank wait: some for replies to earlier calls, the others in the kernel, or they have ended.
    /// If one of them wakes and makes a call, [`Job::poll`](super::Job::poll) returns the call.
    Asleep {
        /// Rank number.
        rank: usize,
    },
    /// The rank polls its memory and is stopped. When [`Job::touched`](super::Job::touched) returns it,
    /// [`Job::resume_polling`](super::Job::resume_polling) runs it to its next call;
    /// [`Job::resume_computing`](super::Job::resume_computing) does so at any time.
    Polls {
        /// The rank.
        rank: usize,
    },
    /// The rank has made no call for a while, and the system does not permit to inspect it, so it may compute or poll. It
    /// still runs; continue with [`Job::wait`](super::Job::wait). Reported once per job.
    Uninspectable {
        /// Rank number.
        rank: usize,
    },
    /// A process ended: usually the rank that ran, but any rank can be killed from outside. Also returned when the rank
    /// aborts the job through PMI.
    Exited {
        /// Rank number.
        rank: usize,
        /// Exit code or signal.
        status: ExitStatus,
    },
    /// A rank violated the protocol of the shared memory or of its PMI connection.
    Refused {
        /// Rank number.
        rank: usize,
        /// Description of the violation, for the user.
        message: String,
    },
    /// The simulator received SIGINT, SIGTERM or SIGHUP.
    Interrupted {
        /// Signal number.
        signal: i32,
    },
    /// The deadline passed.
    TimedOut,
}
