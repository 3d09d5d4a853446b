// SPDX-License-Identifier: Apache-2.0
//! State of a job and of its ranks.

use super::affinity::Affinity;
use super::call::PMI;
use super::fork_server::ForkServer;
use super::free_run_state::{FreeRunReport, FreeRunState};
use super::job_spec::JobSpec;
use super::live_state::LiveState;
use super::output::Output;
use super::pages::Pages;
use super::pmi_connections::Pmi;
use super::polling_loop::{Location, Polling, PollingLoop};
use super::prediction::Prediction;
use super::process_tree;
use super::seating::Seating;
use super::shared_memory::{Payload, SharedMemory};
use super::stopped_thread::StoppedThread;
use super::thread_files::ThreadFiles;
use super::write_batch::Batch;
use abi::calls::Op;
use embedded::Host;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// A job: its processes, and the memory that they share with the simulator.
///
/// The thread that calls [`Job::start`] must outlive the job, because the kernel kills the ranks when that thread
/// exits.
pub struct Job {
    pub(super) spec: JobSpec,
    pub(super) seating: Seating,
    pub(super) shared: SharedMemory,
    pub(super) ranks: Vec<Rank>,
    pub(super) deadline: Option<Instant>,
    /// State of a live run; `None` for a simulated one.
    pub(super) live: Option<LiveState>,
    pub(super) output: Option<Output>,
    pub(super) pmi: Pmi,
    pub(super) thread_files: ThreadFiles,
    /// Fork server; present until all ranks are started, if they are forked from it.
    pub(super) server: Option<ForkServer>,
    /// Ranks in this process, if they are not processes.
    pub(super) embedded: Option<Host>,
    pub(super) children_seen: u32,
    /// Time of the last check of all children.
    pub(super) children_checked_at: Instant,
    /// `/dev/null`, the standard input of all ranks but the first.
    pub(super) null_input: OwnedFd,
    pub(super) serve_copies: bool,
    /// Paused ranks with several threads, any of which may still make a call.
    pub(super) asleep: Vec<usize>,
    /// Polling ranks with a write to a polled location.
    pub(super) touched: BTreeSet<usize>,
    /// Ranks to whose memory their cards wrote, until [`Job::take_card_write`].
    pub(super) card_writes: Vec<u32>,
    pub(super) affinity: Affinity,
    pub(super) batch: Batch,
    /// Set once any rank calls the library.
    pub(super) called: bool,
    /// Rank that violated the protocol, with the message for the user, until it is reported.
    pub(super) refused: Option<(usize, String)>,
    /// First rank that the system does not permit to inspect, until it is reported.
    pub(super) uninspectable: Option<usize>,
    pub(super) reported_uninspectable: bool,
    /// Threads that no longer hold back simulated time and are not reported yet.
    pub(super) unreported_free_runs: Vec<FreeRunReport>,
    /// Reported threads that no longer hold back simulated time.
    pub(super) reported_free_runs: Vec<FreeRunReport>,
    /// Time of the last check of the free-running threads.
    pub(super) free_running_checked_at: Instant,
}

/// State of a rank's process.
#[derive(Clone, Copy, Default)]
pub(super) enum Process {
    #[default]
    /// Not started yet.
    NotStarted,
    /// Running, with this process id.
    Alive(u32),
    /// A thread of the simulator's process.
    Embedded,
    /// Exited with this status.
    Ended(ExitStatus),
}

/// State of a rank.
#[derive(Default)]
pub(super) struct Rank {
    pub(super) process: Process,
    /// Id of the process that made the last call, `process` or one of its descendants; 0 before the first call.
    pub(super) caller_pid: u32,
    /// Bit k is set while the call in slot k is handed out and not answered.
    pub(super) inside: u32,
    /// Latest posted call that was handed out, until it completes.
    pub(super) posted: Option<Posted>,
    /// Data copied with the posted call.
    pub(super) payload: Option<Payload>,
    pub(super) pages: Pages,
    pub(super) silence: SilentPeriod,
    pub(super) history: PollingHistory,
    /// Threads stopped in polling loops.
    pub(super) stopped: Vec<PollingThread>,
    /// Running threads that do not hold back simulated time, by thread id.
    pub(super) free_running: BTreeMap<u32, FreeRunState>,
}

/// A posted call that was handed out.
#[derive(Clone, Copy)]
pub(super) struct Posted {
    /// Slot of the calling thread.
    pub(super) slot: u32,
    pub(super) op: Op,
    /// Predicted result, compared with the real one.
    pub(super) prediction: Prediction,
}

/// A thread stopped in a polling loop.
pub(super) struct PollingThread {
    pub(super) thread: StoppedThread,
    pub(super) polls: PollingLoop,
    /// Time at which it was found polling.
    pub(super) since: Instant,
    /// Time after which the stopped thread is checked again.
    pub(super) hold: Duration,
}

/// Period since the last call of a rank, with the findings about it.
#[derive(Default)]
pub(super) struct SilentPeriod {
    /// Start of the period.
    pub(super) since: Option<Instant>,
    /// CPU time of its threads at the start of the period.
    pub(super) used_before: Option<Duration>,
    /// Age of the period at the next inspection; zero until the first one is scheduled.
    pub(super) inspect_after: Duration,
    /// Number of inspections, and their total duration.
    pub(super) inspections: u32,
    pub(super) inspected_for: Duration,
    /// Locations polled at the last inspection.
    pub(super) suspect: BTreeSet<Location>,
    /// CPU time in nanoseconds of each computing thread when it was first seen computing.
    pub(super) cpu: BTreeMap<u32, u64>,
    /// Set when a polled location is written. The rank notices the write at its simulated time.
    pub(super) is_written: bool,
    /// Kind of polling if all threads of the rank wait and some of them are stopped in polling loops.
    pub(super) polling: Option<Polling>,
}

/// Findings from earlier silent periods of a rank.
#[derive(Default)]
pub(super) struct PollingHistory {
    /// Locations polled by stopped loops that could end by themselves.
    loops: BTreeSet<Location>,
    /// Locations of each loop that could end by itself but polls memory that no card can write.
    pub(super) closed: BTreeSet<BTreeSet<Location>>,
    /// True if the last inspection found the rank polling.
    pub(super) eager: bool,
    /// Loops in which each thread was stopped most recently.
    pub(super) recent: BTreeMap<u32, RecentLoops>,
    /// Number of inspections before the last loop was found.
    pub(super) inspections: u32,
    /// Code addresses of threads that held back simulated time for long.
    pub(super) slow_code: BTreeSet<u64>,
}

/// Loops in which a thread was stopped.
#[derive(Default)]
pub struct RecentLoops {
    /// Most recent loops, the latest first.
    pub loops: VecDeque<PollingLoop>,
    /// Number of times that the thread was stopped.
    pub(super) stops: u32,
}

/// Number of loops remembered per thread.
const MAX_RECENT: usize = 4;
/// Number of sets of locations remembered per rank.
const MAX_LOOPS: usize = 256;
/// Number of locations remembered per rank.
const MAX_LOCATIONS: usize = 8192;

impl PollingHistory {
    /// Records the locations polled by loops that could end by themselves.
    pub(super) fn note_loop(&mut self, locations: BTreeSet<Location>) {
        if self.loops.len() < MAX_LOCATIONS {
            self.loops.extend(locations);
        }
    }

    /// Returns true if more than half of these locations were polled by loops that could end by themselves.
    pub(super) fn is_known_loop(&self, locations: &BTreeSet<Location>) -> bool {
        self.loops.intersection(locations).count() * 2 > locations.len()
    }

    /// Records the loop in which a thread is stopped.
    pub(super) fn note_recent(&mut self, tid: u32, polls: &PollingLoop) {
        let recent = self.recent.entry(tid).or_default();
        recent.stops += 1;
        recent.loops.retain(|other| other.stop_point != polls.stop_point);
        recent.loops.truncate(MAX_RECENT - 1);
        recent.loops.push_front(polls.clone());
    }

    /// Records the locations of a loop that could end by itself but polls memory that no card can write.
    pub(super) fn note_closed(&mut self, locations: BTreeSet<Location>) {
        if self.closed.len() < MAX_LOOPS {
            self.closed.insert(locations);
        }
    }
}

impl Job {
    /// Returns true if a process is the rank's process or one of its descendants.
    pub(super) fn is_of_rank(&self, rank: usize, pid: u32) -> bool {
        match self.ranks[rank].process {
            Process::Alive(own) => process_tree::belongs(pid, own),
            Process::Embedded => true,
            Process::NotStarted | Process::Ended(_) => false,
        }
    }

    /// Returns the slot and thread id of the next call to hand out. A PMI barrier comes last. Returns `None` during a
    /// posted call, which the rank made before it had a second thread.
    pub(super) fn first_request(&self, rank: usize) -> Option<(usize, u32)> {
        if self.ranks[rank].posted.is_some() {
            return None;
        }
        let inside = self.ranks[rank].inside;
        let barrier = || (inside & 1 << PMI == 0 && self.pmi.in_barrier(rank)).then_some((PMI as usize, u32::MAX));
        self.shared.first_request(rank, inside).or_else(barrier)
    }

    /// Returns true if a rank is known to have several threads, a stopped thread, or a thread in a PMI barrier.
    pub(super) fn has_threads(&self, rank: usize) -> bool {
        let Rank { inside, stopped, free_running, .. } = &self.ranks[rank];
        *inside != 0 || !stopped.is_empty() || !free_running.is_empty() || self.first_request(rank).is_some()
    }

    /// Returns true if a thread of the rank waits for the reply to a call.
    pub fn has_callers(&self, rank: usize) -> bool {
        self.ranks[rank].inside != 0 || self.first_request(rank).is_some()
    }

    /// Forwards the rank's output. Returns true if output passes through the job.
    pub(super) fn drain(&mut self, rank: usize) -> bool {
        let Some(output) = &mut self.output else { return false };
        output.drain(rank);
        if let Some(host) = &mut self.embedded {
            output.forward(rank, host.take_output(rank));
        }
        true
    }
}
