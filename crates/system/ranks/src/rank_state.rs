//! The state of a job.

use super::affinity::Affinity;
use super::call::PMI;
use super::fork_server::ForkServer;
use super::free_run_state::{FreeRunReport, FreeRunState};
use super::job_spec::JobSpec;
use super::output::Output;
use super::pages::Pages;
use super::pmi_connections::Pmi;
use super::polling_loop::{Location, Polling, PollingLoop};
use super::prediction::Prediction;
use super::process_tree;
use super::shared_memory::{Payload, SharedMemory};
use super::stopped_thread::StoppedThread;
use super::write_batch::Batch;
use abi::calls::Op;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// A job: its processes, and the memory that they share with the simulator.
///
/// The thread that calls [`Job::start`] must live as long as the job: the ranks are killed when it ends.
pub struct Job {
    pub(super) spec: JobSpec,
    pub(super) shared: SharedMemory,
    pub(super) ranks: Vec<Rank>,
    pub(super) deadline: Option<Instant>,
    pub(super) output: Option<Output>,
    pub(super) pmi: Pmi,
    /// Until all ranks have started, if they are copies of it.
    pub(super) server: Option<ForkServer>,
    pub(super) children_seen: u32,
    /// When all children were last looked at.
    pub(super) children_checked_at: Instant,
    /// The input of ranks that have none.
    pub(super) null_input: OwnedFd,
    pub(super) serve_copies: bool,
    /// The paused ranks with several threads, of which one may still make a call by itself.
    pub(super) asleep: Vec<usize>,
    /// Polling ranks of which a polled place has been written.
    pub(super) touched: BTreeSet<usize>,
    /// Whether a card has written memory of its rank since that was last asked.
    pub(super) card_write: bool,
    pub(super) affinity: Affinity,
    pub(super) batch: Batch,
    /// Whether any rank has called the library.
    pub(super) called: bool,
    /// A rank, and what it did that no correct program does, until that is reported.
    pub(super) refused: Option<(usize, String)>,
    /// The first rank that the system does not permit to inspect, until that is reported.
    pub(super) uninspectable: Option<usize>,
    pub(super) reported_uninspectable: bool,
    /// The threads that no longer hold simulated time back, until they are reported.
    pub(super) unreported_free_runs: Vec<FreeRunReport>,
    /// The threads that were reported.
    pub(super) reported_free_runs: Vec<FreeRunReport>,
    /// When the threads that are free_running were looked at last.
    pub(super) free_running_checked_at: Instant,
}

/// The state of a rank's process.
#[derive(Clone, Copy, Default)]
pub(super) enum Process {
    #[default]
    /// It was not started yet.
    NotStarted,
    /// It runs, with this process id.
    Alive(u32),
    /// It has ended.
    Ended(ExitStatus),
}

/// A rank.
#[derive(Default)]
pub(super) struct Rank {
    pub(super) process: Process,
    /// The id of the process that made the last call: `process`, or a descendant of it. 0 before the first call.
    pub(super) caller_pid: u32,
    /// Bit k is set while the call in slot k was handed out and is not answered.
    pub(super) inside: u32,
    /// The posted call that was handed out last, until it is over.
    pub(super) posted: Option<Posted>,
    /// The data that were copied for it.
    pub(super) payload: Option<Payload>,
    pub(super) pages: Pages,
    pub(super) silence: SilentPeriod,
    pub(super) history: PollingHistory,
    /// The threads that are stopped in loops that poll.
    pub(super) stopped: Vec<PollingThread>,
    /// The threads that run and do not hold simulated time back, by their ids.
    pub(super) free_running: BTreeMap<u32, FreeRunState>,
}

/// A posted call that was handed out.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    /// The slot of its thread.
    pub(super) slot: u32,
    pub(super) op: Op,
    /// What the thread believes about the answer.
    pub(super) prediction: Prediction,
}

/// A thread that is stopped in a loop that polls.
pub(super) struct PollingThread {
    pub(super) thread: StoppedThread,
    pub(super) polls: PollingLoop,
    /// When it was found to poll.
    pub(super) since: Instant,
    /// The longest time for which it then stays stopped.
    pub(super) hold: Duration,
}

/// The time since a rank last made a call, and what was found out about it since.
#[derive(Default)]
pub(super) struct SilentPeriod {
    /// When it began.
    pub(super) since: Option<Instant>,
    /// The CPU time that its threads had used then.
    pub(super) used_before: Option<Duration>,
    /// The age at which the rank is inspected next; zero before the first inspection is scheduled.
    pub(super) inspect_after: Duration,
    /// The number of its inspections, and the time that they have taken.
    pub(super) inspections: u32,
    pub(super) inspected_for: Duration,
    /// The places that its loops polled at the last inspection.
    pub(super) suspect: BTreeSet<Location>,
    /// The CPU time that threads which compute had used when that was first seen, in nanoseconds.
    pub(super) cpu: BTreeMap<u32, u64>,
    /// True if a place that the rank polls was written. The rank notices that at its simulated time.
    pub(super) is_written: bool,
    /// How the rank polls, if it does: all its threads wait, and some of them are stopped in their loops.
    pub(super) polling: Option<Polling>,
}

/// What is known from earlier silent periods of a rank.
#[derive(Default)]
pub(super) struct PollingHistory {
    /// The places polled by loops that could end by themselves, when they were stopped.
    loops: BTreeSet<Location>,
    /// The places polled by each loop that could end by itself, if no card could write them.
    pub(super) closed: BTreeSet<BTreeSet<Location>>,
    /// Whether the last inspection found the rank polling.
    pub(super) eager: bool,
    /// The loops in which each thread was stopped last.
    pub(super) recent: BTreeMap<u32, RecentLoops>,
    /// The number of inspections before the one that found its last loop.
    pub(super) inspections: u32,
    /// The code of threads that have stopped simulated time back for long.
    pub(super) slow_code: BTreeSet<u64>,
}

/// The loops in which a thread was stopped.
#[derive(Default)]
pub struct RecentLoops {
    /// The last ones, the latest first.
    pub loops: VecDeque<PollingLoop>,
    /// The number of times that it was stopped.
    pub(super) stops: u32,
}

/// The number of loops that are remembered for each thread.
const RECENT: usize = 4;
/// The number of groups of places that are remembered for each rank.
const LOOPS: usize = 256;
/// The number of places that are remembered for each rank.
const PLACES: usize = 8192;

impl PollingHistory {
    /// Takes note of loops that could end by themselves and poll these places.
    pub(super) fn note_loop(&mut self, places: BTreeSet<Location>) {
        if self.loops.len() < PLACES {
            self.loops.extend(places);
        }
    }

    /// Returns true if most of these places were polled by loops that could end by themselves.
    pub(super) fn is_known_loop(&self, places: &BTreeSet<Location>) -> bool {
        self.loops.intersection(places).count() * 2 > places.len()
    }

    /// Takes note that a thread is stopped in a loop.
    pub(super) fn note_recent(&mut self, tid: u32, polls: &PollingLoop) {
        let recent = self.recent.entry(tid).or_default();
        recent.stops += 1;
        recent.loops.retain(|other| other.stop_point != polls.stop_point);
        recent.loops.truncate(RECENT - 1);
        recent.loops.push_front(polls.clone());
    }

    /// Takes note that no card can write what a loop polls that could end by itself.
    pub(super) fn note_closed(&mut self, places: BTreeSet<Location>) {
        if self.closed.len() < LOOPS {
            self.closed.insert(places);
        }
    }
}

impl Job {
    /// Whether a process is a rank's or a descendant of it.
    pub(super) fn is_of_rank(&self, rank: usize, pid: u32) -> bool {
        matches!(self.ranks[rank].process, Process::Alive(own) if process_tree::belongs(pid, own))
    }

    /// Returns the slot and the thread id of the call that is handed out next. A PMI barrier comes last. While a posted call is under way,
    /// there is none: it was made before there was a second thread.
    pub(super) fn first_request(&self, rank: usize) -> Option<(usize, u32)> {
        if self.ranks[rank].posted.is_some() {
            return None;
        }
        let inside = self.ranks[rank].inside;
        let barrier = || (inside & 1 << PMI == 0 && self.pmi.in_barrier(rank)).then_some((PMI as usize, u32::MAX));
        self.shared.first_request(rank, inside).or_else(barrier)
    }

    /// Whether a rank is known to have several threads, a stopped thread, or a thread that waits in a PMI barrier.
    pub(super) fn has_threads(&self, rank: usize) -> bool {
        let Rank { inside, stopped, free_running, .. } = &self.ranks[rank];
        *inside != 0 || !stopped.is_empty() || !free_running.is_empty() || self.first_request(rank).is_some()
    }

    /// Whether a thread of a rank waits for the answer to a call.
    pub fn has_callers(&self, rank: usize) -> bool {
        self.ranks[rank].inside != 0 || self.first_request(rank).is_some()
    }

    /// Passes the rank's output on. Returns whether output goes through the job at all.
    pub(super) fn drain(&mut self, rank: usize) -> bool {
        self.output.as_mut().map(|output| output.drain(rank)).is_some()
    }
}
