// SPDX-License-Identifier: Apache-2.0
//! Runs the ranks of a job as processes of this machine.
//!
//! A rank runs until its next library call and then waits for the reply in shared memory ([`abi::mailbox`]), so the
//! simulator decides when it resumes. [`Job::start`] and [`Job::resume`] run one rank and return at its next [`Pause`].
//! The simulator can read and write the memory of a paused rank.
//!
//! A rank with several threads pauses when each of them waits: in the library, in a polling loop, or in the kernel. Its
//! behaviour is therefore independent of how the machine schedules its threads. Calls that arrive with the same pause
//! are handed out one by one in thread creation order ([`Job::pending`]).
//!
//! A rank may also speak PMI-1 with the simulator. A PMI barrier appears as one more call, from slot [`PMI`].
//!
//! Modules, top-down:
//!
//! * `rank_state`: state of a job and of its ranks
//! * `pauses`, `idle_ranks`: run a rank to its next pause; resume ranks that poll or sleep
//! * `live`, `live_state`: ranks in real time, which run on while others do
//! * `threads`, `thread_files`: ranks with several threads, and the kernel's view of them
//! * `busy_wait`, `polling_threads`, `free_running`, `free_run_state`, `symbols`: detect and stop polling threads;
//!   threads that no longer hold back simulated time, with the source location of their loops
//! * `step_trace`, `loop_analysis`, `recurrence`, `polling_loop`: recognize a polling loop in the executed instructions
//! * `job_fingerprint`: detects that all ranks repeat an earlier state
//! * `stopped_thread`, `single_step`, `ptrace`: stop and single-step a thread
//! * `memory`, `card_access`, `pages`, `deferred_writes`, `write_batch`, `remote`: access to the memory of ranks
//! * `call`, `prediction`, `shared_memory`, `doorbell`, `signals`: calls, replies, predicted replies, and how they are
//!   exchanged
//! * `pmi`, `pmi_connections`, `output`: the PMI-1 server and tagged output
//! * `spawn`, `fork_server`, `program`, `launch`, `parked_descriptors`: start processes
//! * `embedded_ranks`: ranks that are threads of the simulator's process
//! * `process`, `process_tree`, `affinity`, `migration`: process state, descendants, and CPUs
//! * `job_spec`, `seating`, `limits`, `mpi`, `leftovers`: job description, system limits, MPI detection, cleanup

mod affinity;
mod busy_wait;
mod call;
mod card_access;
mod deferred_writes;
mod doorbell;
mod embedded_ranks;
mod fork_server;
mod free_run_state;
mod free_running;
mod idle_ranks;
#[cfg(target_arch = "x86_64")]
mod job_fingerprint;
#[cfg(not(target_arch = "x86_64"))]
#[path = "job_fingerprint_stub.rs"]
mod job_fingerprint;
mod job_spec;
mod launch;
pub mod leftovers;
mod limits;
mod live;
mod live_state;
#[cfg(target_arch = "x86_64")]
mod loop_analysis;
mod memory;
mod migration;
pub mod mpi;
mod output;
mod pages;
mod parked_descriptors;
mod pauses;
pub mod pmi;
mod pmi_connections;
mod polling_loop;
mod polling_threads;
mod prediction;
mod process;
pub mod process_tree;
mod program;
#[cfg(target_arch = "x86_64")]
mod ptrace;
mod rank_state;
#[cfg(target_arch = "x86_64")]
mod recurrence;
mod remote;
mod seating;
pub mod shared_memory;
mod signals;
#[cfg(target_arch = "x86_64")]
mod single_step;
mod spawn;
#[cfg(target_arch = "x86_64")]
mod step_trace;
#[cfg(not(target_arch = "x86_64"))]
#[path = "step_trace_stub.rs"]
mod step_trace;
#[cfg(target_arch = "x86_64")]
mod stopped_thread;
#[cfg(not(target_arch = "x86_64"))]
#[path = "stopped_thread_stub.rs"]
mod stopped_thread;
mod symbols;
mod thread_files;
mod threads;
mod write_batch;

pub use call::{Call, Caller, PMI, Pause, Reply, ReplyData};
pub use free_run_state::FreeRunReport;
pub use job_spec::{CPU_LIMIT, JobError, JobSpec, POLL_LIMIT, Program};
pub use memory::MemoryFault;
pub use polling_loop::{Location, Polling};
pub use rank_state::Job;
pub use seating::{Seat, Seating};
pub use shared_memory::Lookahead;
pub use signals::received as asked_to_end;

use abi::calls::Data;
use abi::mailbox::{COUNTERS, KnownCounter};
use abi::portals::{Event, Handle};
use affinity::Affinity;
use bytemuck::AnyBitPattern;
use fork_server::ForkServer;
use job_spec::MAX_RANKS;
use live_state::LiveState;
use output::Output;
use pmi_connections::Pmi;
use rank_state::{Posted, Process, Rank};
use rustix::process::Signal;
use shared_memory::SharedMemory;
use sim::Time;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use thread_files::ThreadFiles;
use write_batch::Batch;

/// Time granted to the ranks to exit by themselves when the job is killed.
const GRACE: Duration = Duration::from_millis(200);

impl Job {
    /// Maximum number of ranks of a job.
    pub const MAX_RANKS: usize = MAX_RANKS;

    /// Creates the shared memory of a job. Starts no rank.
    ///
    /// # Errors
    /// [`JobError::Ranks`], [`JobError::Limit`], or [`JobError::System`] when the system provides no memory.
    pub fn new(spec: JobSpec) -> Result<Job, JobError> {
        let seating = match spec.applications().all(|application| application.ranks > 0) {
            true => Seating::new(&spec).map_err(JobError::Seats)?,
            false => return Err(JobError::Ranks(0)),
        };
        let ranks = seating.places();
        if ranks > MAX_RANKS {
            return Err(JobError::Ranks(ranks));
        }
        let spare_descriptors = limits::check(&spec)?;
        let mut shared = SharedMemory::new(ranks, spec.compute_scale_milli, spec.post_ahead(), spec.defer())?;
        shared.watch_signals()?;
        let live = spec.live.then(|| LiveState::new(shared.begin_live()));
        let mut job = Job {
            ranks: std::iter::repeat_with(Rank::default).take(ranks).collect(),
            output: spec.tag_output.then(|| Output::new(seating.tags(&spec.job_names))),
            pmi: Pmi::new(&seating),
            thread_files: ThreadFiles::new(spare_descriptors / 2),
            server: None,
            embedded: None,
            deadline: None,
            live,
            children_seen: signals::children(),
            children_checked_at: Instant::now(),
            serve_copies: spec.serve_copies,
            asleep: Vec::new(),
            null_input: File::open("/dev/null").map_err(JobError::system("open /dev/null"))?.into(),
            touched: BTreeSet::new(),
            card_writes: Vec::new(),
            affinity: Affinity::new(spec.adapts_affinity),
            batch: Batch::default(),
            called: false,
            refused: None,
            uninspectable: None,
            reported_uninspectable: false,
            unreported_free_runs: Vec::new(),
            reported_free_runs: Vec::new(),
            free_running_checked_at: Instant::now(),
            shared,
            spec,
            seating,
        };
        job.embed()?;
        Ok(job)
    }

    /// Returns the number of consecutive unsuccessful polls that count as a deadlock.
    pub fn poll_limit(&self) -> u64 {
        self.spec.poll_limit.unwrap_or(POLL_LIMIT)
    }

    /// Returns the number of places, most of which have a rank.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// Returns the program, the job and the rank in it of each place.
    pub fn seating(&self) -> &Seating {
        &self.seating
    }

    /// Returns true if any rank has called the library or spoken PMI.
    pub fn has_spoken(&self) -> bool {
        self.called || self.pmi.has_spoken()
    }

    /// Returns [`JobSpec::compute_scale_milli`].
    pub fn compute_scale_milli(&self) -> u64 {
        self.spec.compute_scale_milli
    }

    /// Sets the real time at which [`Job::start`] and [`Job::resume`] return [`Pause::TimedOut`].
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Redirects tagged output, which goes to the simulator's standard output and error by default. Has no effect
    /// unless [`JobSpec::tag_output`] is set.
    pub fn set_output(&mut self, out: Box<dyn Write>, err: Box<dyn Write>) {
        if let Some(output) = &mut self.output {
            output.set_sinks(out, err);
        }
    }

    /// Returns the termination signal that the simulator received, if any.
    pub fn interrupted(&self) -> Option<i32> {
        signals::received()
    }

    /// Starts a rank and runs it to its first call; in a live run, returns [`Pause::Runs`] at once.
    ///
    /// # Errors
    /// [`JobError::Spawn`] when the program cannot be started.
    ///
    /// # Panics
    /// If the rank is already started.
    pub fn start(&mut self, rank: usize) -> Result<Pause, JobError> {
        assert!(matches!(self.ranks[rank].process, Process::NotStarted), "rank {rank} is started twice");
        if self.embedded.is_some() {
            self.start_embedded(rank)?;
            return Ok(self.wait(rank));
        }
        let null_input = self.null_input.as_fd();
        if rank == 0 && self.spec.forks {
            // If the fork server fails, each rank executes the program itself, and the first rank reports the reason.
            self.server = ForkServer::start(&self.spec, &self.seating, &self.shared).ok();
        }
        let (pmi, output, server) = (&mut self.pmi, self.output.as_mut(), self.server.as_ref());
        let common =
            spawn::Common { spec: &self.spec, seating: &self.seating, shared: &self.shared, null_device: null_input };
        let pid = spawn::spawn(common, rank, pmi, output, server).map_err(|source| {
            let program = self.seating.at(rank).map(|seat| self.spec.application(seat.application).program);
            JobError::Spawn { program: program.unwrap_or(&self.spec.program).clone(), rank, source }
        })?;
        self.ranks[rank].process = Process::Alive(pid);
        if rank + 1 == self.ranks.len() {
            self.server = None;
        }
        Ok(self.pause_of_running(rank))
    }

    /// Replies to a call at simulated time `now` and runs the rank to its next pause; in a live run, returns
    /// [`Pause::Runs`] at once.
    pub fn resume(&mut self, caller: Caller, now: Time, reply: &Reply) -> Pause {
        let rank = caller.rank as usize;
        debug_assert!(self.ranks[rank].inside & 1 << caller.slot != 0, "{caller:?} does not wait");
        self.ranks[rank].inside &= !(1 << caller.slot);
        let posted = self.ranks[rank].posted.take_if(|posted| posted.slot == caller.slot);
        // After a posted call, a rank stays asleep if its only thread waits for the reply to a later call.
        let sleeps = posted.is_some() && self.shared.requested(rank, caller.slot as usize) == Some(0);
        if sleeps {
            self.forget_silence(rank);
        } else {
            self.mark_running(rank);
        }
        self.shared.set_now(now);
        match (posted, caller.slot) {
            (Some(Posted { op, prediction, .. }), _) => {
                // The rank is already running; its next pause may be ready.
                if let Some(objection) = prediction.objection(op, reply) {
                    return Pause::Refused { rank, message: self.with_advice(&objection) };
                }
                self.ranks[rank].payload = None;
                self.shared.answer_post(caller, reply.out[0]);
            }
            (None, PMI) => self.pmi.leave_barrier(rank),
            (None, _) => self.shared.answer(caller, reply),
        }
        if !sleeps {
            return self.pause_of_running(rank);
        }
        // A sleeping rank changes nothing, so its posted calls are taken over one by one.
        match self.next_post(rank) {
            Some(call) => Pause::Call(call),
            None => self.next_pause(rank),
        }
    }

    /// Returns the message for the user if a call must not wait, because the rank already assumed its result.
    pub fn objection_to_wait(&self, caller: Caller) -> Option<String> {
        let posted = self.ranks[caller.rank as usize].posted.filter(|posted| posted.slot == caller.slot)?;
        posted.prediction.objection_to_wait(posted.op).map(|objection| self.with_advice(&objection))
    }

    fn with_advice(&self, objection: &str) -> String {
        let advice = if self.spec.post_ahead > 0 { "; --post-ahead 0 makes each call at its time" } else { "" };
        format!("{objection}{advice}")
    }

    /// Returns true if the calling thread may use the additional data of [`Job::tell`].
    pub fn may_know(&self, caller: Caller) -> bool {
        let posts = self.ranks[caller.rank as usize].posted.is_some_and(|posted| posted.slot == caller.slot);
        caller.slot != PMI && !posts && self.shared.may_know(caller)
    }

    /// Attaches to the next reply the events of a queue, the success counts of counters, and the lookahead.
    pub fn tell<'a>(
        &mut self,
        caller: Caller,
        queue: (Handle, impl Iterator<Item = &'a Event>),
        counters: [KnownCounter; COUNTERS],
        lookahead: Lookahead,
    ) {
        self.shared.tell(caller, queue, counters, lookahead);
    }

    /// Returns the number of posted calls of a rank that are not handed out yet.
    pub fn posts_left(&self, rank: usize) -> u32 {
        self.shared.all_posts_left(rank)
    }

    /// Returns a rank that violated the protocol, with the message for the user. Call it after [`Job::poll`].
    pub fn refusal(&mut self) -> Option<(usize, String)> {
        self.refused.take()
    }

    /// Returns true if this rank requested a job abort through PMI.
    pub fn has_aborted(&self, rank: usize) -> bool {
        self.pmi.has_aborted(rank)
    }

    /// Returns the ranks with refused PMI requests and the reasons. Each refusal is returned once.
    pub fn pmi_refusals(&mut self) -> Vec<(usize, &'static str)> {
        self.pmi.refusals()
    }

    /// Returns the structure argument of an outstanding call.
    pub fn structure<T: AnyBitPattern>(&self, caller: Caller, _argument: Data<T>) -> T {
        self.data(caller)
    }

    /// Returns the data of an outstanding call.
    pub fn data<T: AnyBitPattern>(&self, caller: Caller) -> T {
        let Rank { posted, payload, .. } = &self.ranks[caller.rank as usize];
        let payload = payload.as_ref().filter(|_| posted.is_some_and(|posted| posted.slot == caller.slot));
        payload.and_then(|payload| payload.structure()).unwrap_or_else(|| self.shared.data(caller))
    }

    /// Kills a rank and its descendants at once, as a node failure does. Returns its exit status.
    pub fn end_rank(&mut self, rank: usize) -> ExitStatus {
        loop {
            match self.ranks[rank].process {
                Process::Ended(status) => return status,
                Process::NotStarted => return ExitStatus::from_raw(Signal::KILL.as_raw()),
                Process::Embedded => return self.end_embedded(rank, Signal::KILL.as_raw()),
                Process::Alive(pid) => process::signal_group(pid, Signal::KILL),
            }
            self.release_all(rank);
            self.drain(rank); // a full pipe blocks its exit
            if self.reap(rank).is_none() {
                std::thread::sleep(Duration::from_micros(50));
            }
        }
    }

    /// Ends every process of the job: first with SIGTERM, shortly after with SIGKILL. Processes that wait in the
    /// library flush their output first.
    pub fn kill(&mut self) {
        self.server = None;
        (0..self.ranks.len()).for_each(|rank| self.release_all(rank));
        self.kill_embedded();
        self.kill_ranks(&(0..self.ranks.len()).collect::<Vec<_>>());
        self.pmi.remove_leftovers();
    }

    /// Ends these ranks, which are processes, as [`Job::kill`] does. Returns their exit statuses.
    pub fn kill_ranks(&mut self, ranks: &[usize]) -> Vec<ExitStatus> {
        ranks.iter().for_each(|rank| self.release_all(*rank));
        for &rank in ranks {
            let inside = self.ranks[rank].inside;
            for slot in (0..PMI).filter(|slot| inside & 1 << slot != 0) {
                self.shared.end(Caller { rank: rank as u32, slot });
            }
        }
        let waits = |rank: &Rank| matches!(rank.process, Process::Alive(_)) && rank.inside & !(1 << PMI) != 0;
        self.reap_within_grace(ranks, |job| ranks.iter().any(|rank| waits(&job.ranks[*rank])));
        self.signal(ranks, Signal::TERM);
        self.reap_within_grace(ranks, |_| true);
        self.signal(ranks, Signal::KILL);
        while self.reap_all(ranks) {
            for rank in ranks {
                if let Process::Alive(pid) = self.ranks[*rank].process {
                    process::reap_traced_threads(pid);
                }
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let processes = &self.ranks;
        self.asleep.retain(|rank| !matches!(processes[*rank].process, Process::Ended(_)));
        let status = |rank: &usize| match self.ranks[*rank].process {
            Process::Ended(status) => status,
            _ => ExitStatus::from_raw(Signal::KILL.as_raw()), // it never started
        };
        ranks.iter().map(status).collect()
    }

    /// Reaps ended ranks while one is alive and `goes_on` returns true, for at most [`GRACE`].
    fn reap_within_grace(&mut self, ranks: &[usize], goes_on: impl Fn(&Job) -> bool) {
        let deadline = Instant::now() + GRACE;
        while self.reap_all(ranks) && goes_on(self) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn signal(&self, ranks: &[usize], signal: Signal) {
        for rank in ranks {
            if let Process::Alive(pid) = self.ranks[*rank].process {
                process::signal_group(pid, signal);
            }
        }
    }

    /// Reaps those of the ranks that have ended. Returns true if one is still alive.
    fn reap_all(&mut self, ranks: &[usize]) -> bool {
        for rank in ranks {
            self.reap(*rank);
            self.drain(*rank); // a full pipe blocks its exit
        }
        ranks.iter().any(|rank| matches!(self.ranks[*rank].process, Process::Alive(_)))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
    }
}
