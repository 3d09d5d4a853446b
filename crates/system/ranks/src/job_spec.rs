//! The description of a job, and why it cannot run.

use crate::mpi::Maker;
use abi::mailbox::POSTS;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use thiserror::Error;

/// The largest number of ranks of a job.
pub(super) const MAX_RANKS: usize = 1 << 16;

/// The usual number of polls in vain of all parked threads together, with nothing else between them, that make a deadlock: about a second of
/// real time. A program may poll now and then while it does something that the card does not see, such as computing, or communication of an
/// MPI's rank with itself.
pub const POLL_LIMIT: u64 = 300_000;

/// The usual value of [`JobSpec::cpu_limit`].
pub const CPU_LIMIT: Duration = Duration::from_millis(50);

/// The description of a job.
#[derive(Clone, Debug, Default)]
pub struct JobSpec {
    /// The program: a path, or a name that is searched in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Number of ranks, at least 1.
    pub ranks: usize,
    /// Variables to add to the environment of the ranks.
    pub env: Vec<(OsString, OsString)>,
    /// Whether each line of output is prefixed with `[rank] `.
    pub tag_output: bool,
    /// Libraries to preload into the ranks.
    pub preload: Vec<PathBuf>,
    /// Simulated time charged for a rank's own computation: picoseconds for each microsecond of its CPU time. With 0,
    /// computation takes no simulated time.
    pub compute_scale_milli: u64,
    /// Whether the ranks' library copies memory even where `process_vm_readv` is permitted.
    pub serve_copies: bool,
    /// How long a rank may make no call before its threads are inspected for loops that poll memory
    /// ([`Pause::Polls`](super::Pause::Polls)), in real time. `None` turns the inspection off.
    pub busy_wait_quantum: Option<Duration>,
    /// The CPU time after which a thread that may wait for another one no longer holds simulated time back; [`CPU_LIMIT`] unless it is
    /// given. A thread that evidently computes may use 400 times as much.
    pub cpu_limit: Option<Duration>,
    /// Whether the simulator and the ranks go to one CPU when that is faster.
    pub adapts_affinity: bool,
    /// How many calls whose answer is known a thread may make before it waits for the simulator.
    pub post_ahead: u32,
    /// Whether each call waits for its answer in any case: a rank that is to die must not have started what it would have done later.
    pub waits: bool,
    /// How many polls in vain of all parked threads together make a deadlock, when nothing else happens; [`POLL_LIMIT`] unless it is given.
    pub poll_limit: Option<u64>,
    /// Whether the ranks are copies of one process that has loaded the program's libraries. `libsimclock.so` must be among those that are
    /// preloaded, and the constructors of all libraries must do the same in every rank.
    pub forks: bool,
    /// Whether it is known that no rank will speak PMI, so that none gets a connection for it.
    pub speaks_no_pmi: bool,
    /// Makes the libfabric provider, when the first rank has loaded an MPI that uses libfabric.
    pub provider: Option<Maker>,
}

impl JobSpec {
    /// Returns how many calls a thread may post.
    pub(super) fn post_ahead(&self) -> u32 {
        if self.must_wait() { 0 } else { self.post_ahead.min(POSTS as u32) }
    }

    /// Returns the same for a thread that defers its calls.
    pub(super) fn defer(&self) -> u32 {
        if self.must_wait() { 0 } else { POSTS as u32 }
    }

    /// Whether each call must wait for its answer: because that is asked for; because the CPU time between calls is charged, which is
    /// known only at a call that waits; or because the library copies memory, which it does only during such a call.
    pub fn must_wait(&self) -> bool {
        self.waits || self.compute_scale_milli != 0 || self.serve_copies
    }

    /// Returns the value that a variable of the ranks' environment has when they start, before their libraries are preloaded.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        given.or_else(|| std::env::var_os(name))
    }
}

/// The reason why a job cannot run.
#[derive(Debug, Error)]
pub enum JobError {
    /// The number of ranks is out of range.
    #[error("{0} ranks: a job has 1 to {max} ranks", max = MAX_RANKS)]
    Ranks(usize),
    /// The system does not permit as much as the job needs.
    #[error("{needs}, and the limit of {name} is {limit}: {remedy}")]
    Limit {
        /// What the job needs, as a sentence.
        needs: String,
        /// What is limited.
        name: &'static str,
        /// The limit.
        limit: u64,
        /// How to raise it.
        remedy: String,
    },
    /// The program cannot be started.
    #[error("cannot start {program:?} as rank {rank}: {source}")]
    Spawn {
        /// The program.
        program: OsString,
        /// The rank.
        rank: usize,
        /// The system's reason.
        source: io::Error,
    },
    /// A system call that every job needs has failed.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried, as in "cannot … ".
        what: &'static str,
        /// The system's reason.
        source: io::Error,
    },
}

impl JobError {
    /// Returns a function that makes the error of a failed system call from the system's reason.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> JobError {
        move |source| Self::System { what, source: source.into() }
    }
}
