// SPDX-License-Identifier: Apache-2.0
//! Description of a job, and the reasons why it cannot run.

use crate::mpi::ProviderBuilder;
use abi::mailbox::POSTS;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use thiserror::Error;

/// Maximum number of ranks of a job.
pub(super) const MAX_RANKS: usize = 1 << 16;

/// Default number of consecutive unsuccessful polls of all parked threads together that count as a deadlock: about a
/// second of real time. A program may poll occasionally while it does work that the card does not see, such as
/// computation, or messages that an MPI rank sends to itself.
pub const POLL_LIMIT: u64 = 300_000;

/// Default of [`JobSpec::cpu_limit`].
pub const CPU_LIMIT: Duration = Duration::from_millis(50);

/// Description of a job.
#[derive(Clone, Debug, Default)]
pub struct JobSpec {
    /// Program: a path, or a name that is searched in `PATH`.
    pub program: OsString,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Number of ranks, at least 1.
    pub ranks: usize,
    /// Additional environment variables of the ranks.
    pub env: Vec<(OsString, OsString)>,
    /// Prefixes each line of output with `[rank] `.
    pub tag_output: bool,
    /// Libraries to preload into the ranks.
    pub preload: Vec<PathBuf>,
    /// Simulated picoseconds charged per microsecond of a rank's CPU time. With 0, computation takes no simulated time.
    pub compute_scale_milli: u64,
    /// Has the ranks' library copy memory even where `process_vm_readv` is permitted.
    pub serve_copies: bool,
    /// Real time without a call after which the threads of a rank are inspected for polling loops
    /// ([`Pause::Polls`](super::Pause::Polls)). `None` disables the inspection.
    pub busy_wait_quantum: Option<Duration>,
    /// CPU time after which a thread that may wait for another one no longer holds back simulated time; default
    /// [`CPU_LIMIT`]. A thread that evidently computes may use 400 times as much.
    pub cpu_limit: Option<Duration>,
    /// Moves the simulator and the ranks to one CPU when that is faster.
    pub adapts_affinity: bool,
    /// Maximum number of calls with predictable results that a thread may post before it waits for the simulator.
    pub post_ahead: u32,
    /// Has every call wait for its reply. Required for ranks that are to fail, so that they start nothing ahead of
    /// their failure.
    pub waits: bool,
    /// Number of consecutive unsuccessful polls of all parked threads together that count as a deadlock; default
    /// [`POLL_LIMIT`].
    pub poll_limit: Option<u64>,
    /// Forks the ranks from one process that has loaded the program's libraries. `libsimclock.so` must be among the
    /// preloaded libraries, and all library constructors must behave identically in every rank.
    pub forks: bool,
    /// Set if no rank speaks PMI; the ranks then get no PMI connection.
    pub speaks_no_pmi: bool,
    /// Runs the ranks in real time: each runs on while others do, and every call waits for its reply.
    pub live: bool,
    /// Runs the ranks of this program, which is the job's, as threads of this process.
    pub embedded: Option<Rc<embedded::Program>>,
    /// Builds the libfabric provider when the first rank has loaded an MPI that uses libfabric.
    pub provider: Option<ProviderBuilder>,
    /// Working folder of the ranks; default: the simulator's.
    pub folder: Option<PathBuf>,
    /// Nodes of the ranks; empty for those that follow the last one.
    pub nodes: Vec<usize>,
    /// Number of consecutive ranks on a node, where no nodes are given; 0 counts as 1.
    pub ranks_per_node: usize,
    /// Programs of further ranks. The fields above describe those of the first program and the options of all.
    pub others: Vec<Program>,
    /// Names of the jobs, for tagged output; empty for a single job.
    pub job_names: Vec<String>,
}

/// Program of further ranks, with the fields of [`JobSpec`] that it has for itself.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// Program: a path, or a name that is searched in `PATH`.
    pub program: OsString,
    /// Arguments.
    pub args: Vec<OsString>,
    /// Number of ranks.
    pub ranks: usize,
    /// Additional environment variables of the ranks.
    pub env: Vec<(OsString, OsString)>,
    /// Libraries to preload into the ranks.
    pub preload: Vec<PathBuf>,
    /// Working folder of the ranks; default: the simulator's.
    pub folder: Option<PathBuf>,
    /// Nodes of the ranks; empty for those that follow the last one.
    pub nodes: Vec<usize>,
    /// Index of the job to which the ranks belong: that of the previous program, or the next one.
    pub job: usize,
}

/// A program of some ranks, the first one or another.
#[derive(Clone, Copy)]
pub(super) struct Application<'a> {
    pub(super) program: &'a OsString,
    pub(super) args: &'a [OsString],
    pub(super) ranks: usize,
    pub(super) env: &'a [(OsString, OsString)],
    pub(super) preload: &'a [PathBuf],
    pub(super) folder: Option<&'a PathBuf>,
    pub(super) nodes: &'a [usize],
    pub(super) job: usize,
}

impl Application<'_> {
    /// Returns the initial value of an environment variable of the ranks, before their libraries are preloaded.
    pub(super) fn variable(&self, name: &str) -> Option<OsString> {
        let given = self.env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        given.or_else(|| std::env::var_os(name))
    }
}

impl JobSpec {
    /// Returns the maximum number of calls that a thread may post.
    pub(super) fn post_ahead(&self) -> u32 {
        if self.must_wait() { 0 } else { self.post_ahead.min(POSTS as u32) }
    }

    /// Returns the maximum number of calls that a thread may defer.
    pub(super) fn defer(&self) -> u32 {
        if self.must_wait() { 0 } else { POSTS as u32 }
    }

    /// Returns true if each call must wait for its reply: on request; because the run is live; because CPU time is
    /// charged, which only a waiting call reports; or because the library copies memory, which it does only during such
    /// a call.
    pub fn must_wait(&self) -> bool {
        self.waits || self.live || self.compute_scale_milli != 0 || self.serve_copies
    }

    /// Returns the programs of all ranks.
    pub(super) fn applications(&self) -> impl Iterator<Item = Application<'_>> {
        let first = Application {
            program: &self.program,
            args: &self.args,
            ranks: self.ranks,
            env: &self.env,
            preload: &self.preload,
            folder: self.folder.as_ref(),
            nodes: &self.nodes,
            job: 0,
        };
        let others = self.others.iter().map(|other| Application {
            program: &other.program,
            args: &other.args,
            ranks: other.ranks,
            env: &other.env,
            preload: &other.preload,
            folder: other.folder.as_ref(),
            nodes: &other.nodes,
            job: other.job,
        });
        std::iter::once(first).chain(others)
    }

    /// Returns the program with this index.
    pub(super) fn application(&self, index: usize) -> Application<'_> {
        self.applications().nth(index).expect("the application exists")
    }

    /// Returns the number of processes of all programs.
    pub(super) fn processes(&self) -> usize {
        self.applications().map(|application| application.ranks).sum()
    }
}

/// Reason why a job cannot run.
#[derive(Debug, Error)]
pub enum JobError {
    /// The number of ranks is out of range.
    #[error("{0} ranks: a job has 1 to {max} ranks", max = MAX_RANKS)]
    Ranks(usize),
    /// The programs' ranks cannot be seated.
    #[error("{0}")]
    Seats(String),
    /// The job needs more than a system limit permits.
    #[error("{needs}, and the limit of {name} is {limit}: {remedy}")]
    Limit {
        /// Requirement of the job, as a sentence.
        needs: String,
        /// Name of the limited resource.
        name: &'static str,
        /// Limit.
        limit: u64,
        /// Instruction for raising the limit.
        remedy: String,
    },
    /// The program cannot be started.
    #[error("cannot start {program:?} as rank {rank}: {source}")]
    Spawn {
        /// Program.
        program: OsString,
        /// Rank number.
        rank: usize,
        /// Error of the system.
        source: io::Error,
    },
    /// A system call that every job needs failed.
    #[error("cannot {what}: {source}")]
    System {
        /// Failed action, as in "cannot … ".
        what: &'static str,
        /// Error of the system.
        source: io::Error,
    },
}

impl JobError {
    /// Returns a function that wraps a system error.
    pub(super) fn system<E: Into<io::Error>>(what: &'static str) -> impl FnOnce(E) -> JobError {
        move |source| Self::System { what, source: source.into() }
    }
}
