// SPDX-License-Identifier: Apache-2.0
//! End of a run, and its reason.

use std::process::ExitStatus;

use sim::Time;

/// End of a run, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every rank exited with status 0.
    Finished,
    /// A rank requested, with status 0, the end of the job (`shmem_global_exit(0)`).
    Aborted {
        /// Rank number.
        rank: usize,
    },
    /// A rank failed.
    RankFailed {
        /// Rank number.
        rank: usize,
        /// Exit status or signal.
        status: ExitStatus,
        /// Simulated time at which it ended.
        at: Time,
    },
    /// A rank's program cannot run on this machine.
    BadProgram {
        /// Rank number.
        rank: usize,
        /// Reason, for the user.
        message: String,
    },
    /// Every rank waits, in the library or polling its memory, and no event is left.
    Deadlock {
        /// Simulated time of the last event.
        at: Time,
        /// Description of each rank's wait.
        waits: Vec<String>,
        /// Total number of unsuccessful polls of parked threads since the last other activity; 0 if they are known to
        /// repeat forever.
        polls: u64,
    },
    /// A signal ended the run.
    Interrupted {
        /// Signal number.
        signal: i32,
        /// Rank that ran user code at that time; all others are stopped meanwhile.
        running: usize,
        /// Simulated time.
        at: Time,
    },
    /// Simulated time would exceed [`Time::LIMIT`].
    OutOfTime {
        /// Rank with an event after the limit.
        rank: usize,
    },
    /// The limit of real time was reached.
    TimedOut {
        /// Rank that ran user code at that time.
        running: usize,
        /// Simulated time.
        at: Time,
        /// Simulated time since which nothing is in flight and ranks only poll.
        idle_since: Option<Time>,
    },
}
