use std::process::ExitStatus;

use sim::Time;

/// The end of a run, and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// Every rank has ended by itself with status 0.
    Finished,
    /// A rank has asked, with status 0, that the job ends (`shmem_global_exit(0)`).
    Aborted {
        /// The rank.
        rank: usize,
    },
    /// A rank has failed.
    RankFailed {
        /// The rank.
        rank: usize,
        /// Its exit status or signal.
        status: ExitStatus,
        /// The simulated time at which it ended.
        at: Time,
    },
    /// A rank's program cannot run on this machine.
    BadProgram {
        /// The rank.
        rank: usize,
        /// The reason.
        message: String,
    },
    /// Every rank waits, in the library or polling its memory, and nothing is left that could happen.
    Deadlock {
        /// The simulated time of the last event.
        at: Time,
        /// What each rank waits for.
        waits: Vec<String>,
        /// How often parked threads have polled in empty, all together, since something else happened; 0 if they are known to wait for ever.
        polls: u64,
    },
    /// The user or the system asked the run to end.
    Interrupted {
        /// The signal.
        signal: i32,
        /// The rank whose own code ran then: all others stand still meanwhile.
        running: usize,
        /// The simulated time.
        at: Time,
    },
    /// Simulated time would go beyond [`Time::LIMIT`].
    OutOfTime {
        /// The rank that has something to do after the limit.
        rank: usize,
    },
    /// The limit of real time was reached.
    TimedOut {
        /// The rank whose own code ran then.
        running: usize,
        /// The simulated time.
        at: Time,
        /// Since when nothing was under way, and ranks have only polled.
        idle_since: Option<Time>,
    },
}
