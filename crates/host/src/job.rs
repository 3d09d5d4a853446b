//! The ranks of a job as processes of this machine.
//!
//! A rank runs until its next library call and then waits in shared memory ([`abi::mailbox`]) for its answer, so that the
//! simulator decides when it goes on. [`Job::start`] and [`Job::resume`] let one rank run and come back at its next
//! [`Pause`]. While a rank waits, its memory can be read and written.
//!
//! Threads: a rank with several threads pauses when each of them waits, in the library, in a loop that polls, or for
//! something else, so that what it does does not depend on how the machine schedules them. Calls that came with the same
//! pause are handed out one by one, in the order in which the threads were made ([`Job::pending`]).
//!
//! A rank may also speak PMI-1 with the simulator. Its barrier looks like one more call, from slot [`PMI`].

pub mod family;
#[cfg(target_arch = "x86_64")]
mod loops;
mod memory;
mod output;
mod pmi;
pub mod shared;
mod signals;
mod spawn;
mod spin;
#[cfg(target_arch = "x86_64")]
mod steps;
#[cfg(not(target_arch = "x86_64"))]
#[path = "job/no_steps.rs"]
mod steps;
mod threads;

pub use memory::MemoryFault;
pub use spin::{Place, Polling};

use abi::mailbox::{ARGS, Op, SLOTS};
use abi::portals::{Plain, Rc};
use output::Output;
use pmi::Pmi;
use shared::Shared;
use sim::Time;
use spin::{Experience, Poller, Silence};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use thiserror::Error;

/// What to run.
#[derive(Clone, Debug, Default)]
pub struct JobSpec {
    /// The program: a path, or a name to look for in `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Number of ranks, at least 1.
    pub ranks: usize,
    /// Additions to the environment.
    pub env: Vec<(OsString, OsString)>,
    /// Prefix each line of output with `[rank] `.
    pub tag_output: bool,
    /// Libraries to preload.
    pub preload: Vec<PathBuf>,
    /// Simulated picoseconds charged for each nanosecond of a rank's CPU time, times 1000; 0: none.
    pub compute_scale_milli: u64,
    /// Let the ranks' library copy memory even where `process_vm_readv` is permitted.
    pub serve_copies: bool,
    /// How long a rank may be silent before it is looked at: it may poll its own memory ([`Pause::Polls`]). `None`:
    /// never.
    pub spin_quantum: Option<Duration>,
}

/// Why a job cannot run.
#[derive(Debug, Error)]
pub enum JobError {
    /// The number of ranks is out of range.
    #[error("{0} ranks: a job has 1 to {max} ranks", max = Job::MAX_RANKS)]
    Ranks(usize),
    /// The program cannot be started.
    #[error("cannot start {program:?} as rank {rank}: {source}")]
    Spawn {
        /// The program.
        program: OsString,
        /// The rank.
        rank: usize,
        /// What the system said.
        source: io::Error,
    },
    /// The system refused something that every job needs.
    #[error("cannot {what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl JobError {
    fn last(what: &'static str) -> JobError {
        JobError::System { what, source: io::Error::last_os_error() }
    }
}

/// A thread of a rank that waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Caller {
    /// Its rank.
    pub rank: u32,
    /// Its slot, below [`SLOTS`], or [`PMI`].
    pub slot: u32,
}

/// In place of a slot: the rank's PMI connection.
pub const PMI: u32 = SLOTS as u32;

/// A library call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// Who made it.
    pub caller: Caller,
    /// Which it is.
    pub op: Op,
    /// CPU nanoseconds of the caller since its last answer; 0 unless the specification charges them.
    pub elapsed_ns: u64,
    /// Its arguments; see [`Op`].
    pub args: [u64; ARGS],
}

/// The answer to a call.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// Return code.
    pub rc: i32,
    /// Scalar results.
    pub out: [u64; 4],
    /// Structure result.
    pub data: ReplyData,
}

impl Reply {
    /// A return code without results.
    pub fn new(rc: Rc) -> Reply {
        Reply { rc: rc as i32, out: [0; 4], data: ReplyData::default() }
    }

    /// `PTL_OK` and one scalar result.
    pub fn value(value: u64) -> Reply {
        Reply { out: [value, 0, 0, 0], ..Reply::new(Rc::Ok) }
    }

    /// The same with a structure result.
    pub fn with(self, value: &impl Plain) -> Reply {
        Reply { data: ReplyData::new(value), ..self }
    }
}

/// A structure result.
#[derive(Clone, Copy, Debug)]
pub struct ReplyData {
    length: usize,
    bytes: [u8; ReplyData::CAPACITY],
}

impl Default for ReplyData {
    fn default() -> Self {
        ReplyData { length: 0, bytes: [0; ReplyData::CAPACITY] }
    }
}

impl ReplyData {
    /// Bytes of the largest structure result.
    pub const CAPACITY: usize = size_of::<abi::portals::NiLimits>();

    /// The bytes of a structure.
    pub fn new<T: Plain>(value: &T) -> ReplyData {
        const { assert!(size_of::<T>() <= ReplyData::CAPACITY) };
        let mut data = ReplyData { length: size_of::<T>(), ..ReplyData::default() };
        data.bytes[..data.length].copy_from_slice(value.as_bytes());
        data
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// Why the running rank no longer runs.
#[derive(Debug)]
pub enum Pause {
    /// It made a call, and waits.
    Call(Call),
    /// It has several threads, and none runs: some wait for answers to earlier calls, the others for something else, or
    /// they have ended. Should one wake by itself, [`Job::poll`] has its call.
    Asleep {
        /// The rank.
        rank: usize,
    },
    /// It polls its memory, and is held. Its next call comes after [`Job::carry_on`], when [`Job::touched`] names it, or
    /// after [`Job::not_polling`].
    Polls {
        /// The rank.
        rank: usize,
    },
    /// It has been silent for a while and may not be looked at, so it is not known whether it polls. It still runs:
    /// [`Job::wait`] goes on. Told once a job.
    Unseen {
        /// The rank.
        rank: usize,
    },
    /// A process has ended: usually the rank that ran; another one when something outside of the job ended it. Or the
    /// rank has asked by PMI that the job be aborted.
    Exited {
        /// The rank.
        rank: usize,
        /// Its exit code or signal.
        status: ExitStatus,
    },
    /// A rank has done something to what it shares with the simulator that no correct program does.
    Refused {
        /// The rank.
        rank: usize,
        /// What it has done.
        message: String,
    },
    /// The simulator got SIGINT, SIGTERM or SIGHUP.
    Interrupted {
        /// Which.
        signal: i32,
    },
    /// The deadline has passed.
    TimedOut,
}

/// A job: its processes, and the memory that they share with the simulator.
///
/// The thread that calls [`Job::start`] must live as long as the job: the ranks are killed when it ends.
pub struct Job {
    spec: JobSpec,
    shared: Shared,
    ranks: Vec<Rank>,
    deadline: Option<Instant>,
    output: Option<Output>,
    pmi: Pmi,
    children_seen: u32,
    serve_copies: bool,
    /// Ranks with several threads that have paused: one of them may still call.
    asleep: Vec<usize>,
    /// Ranks that poll what was written.
    touched: BTreeSet<usize>,
    /// Whether any rank has called the library.
    called: bool,
    /// What a rank did that no correct program does, until it is told.
    refused: Option<(usize, String)>,
    /// The first rank that may not be looked at, until that is told.
    unseen: Option<usize>,
    told_unseen: bool,
}

/// What is known of a rank's process.
#[derive(Clone, Copy, Default)]
enum Process {
    #[default]
    Unborn,
    Alive(u32),
    Ended(ExitStatus),
}

#[derive(Default)]
struct Rank {
    process: Process,
    /// The process that made the last call: `process`, or a descendant of it.
    caller_pid: u32,
    /// Bit k: the call in slot k was handed out and is not answered.
    inside: u32,
    silence: Silence,
    experience: Experience,
    /// Threads that are held in loops that poll.
    held: Vec<Poller>,
}

const _: () = assert!(PMI < u32::BITS);

impl Job {
    /// Most ranks of a job.
    pub const MAX_RANKS: usize = 1 << 16;
    /// How long ranks may take to end by themselves when the job is killed.
    const GRACE: Duration = Duration::from_millis(200);

    /// Makes the shared memory; starts nothing.
    ///
    /// # Errors
    /// [`JobError::Ranks`], or [`JobError::System`] when the system gives no memory.
    pub fn new(spec: JobSpec) -> Result<Job, JobError> {
        if !(1..=Job::MAX_RANKS).contains(&spec.ranks) {
            return Err(JobError::Ranks(spec.ranks));
        }
        spawn::raise_descriptor_limit();
        let shared = Shared::new(spec.ranks, spec.compute_scale_milli)?;
        shared.watch_signals()?;
        Ok(Job {
            ranks: std::iter::repeat_with(Rank::default).take(spec.ranks).collect(),
            output: spec.tag_output.then(|| Output::new(spec.ranks)),
            pmi: Pmi::new(spec.ranks),
            deadline: None,
            children_seen: signals::children(),
            serve_copies: spec.serve_copies,
            asleep: Vec::new(),
            touched: BTreeSet::new(),
            called: false,
            refused: None,
            unseen: None,
            told_unseen: false,
            shared,
            spec,
        })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks.len()
    }

    /// Whether any rank has called the library or spoken PMI.
    pub fn has_spoken(&self) -> bool {
        self.called || self.pmi.has_spoken()
    }

    /// The scale of [`JobSpec`].
    pub fn compute_scale_milli(&self) -> u64 {
        self.spec.compute_scale_milli
    }

    /// Ends [`Job::start`] and [`Job::resume`] at this time of the real clock.
    pub fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
    }

    /// Where tagged output goes; the process's own standard output and error by default. Without effect unless the
    /// specification asks for tags.
    pub fn set_output(&mut self, out: Box<dyn Write>, err: Box<dyn Write>) {
        if let Some(output) = &mut self.output {
            output.set_sinks(out, err);
        }
    }

    /// The signal that asks the simulator to end, when there was one.
    pub fn interrupted(&self) -> Option<i32> {
        signals::received()
    }

    /// Starts a rank and lets it run to its first call.
    ///
    /// # Errors
    /// [`JobError::Spawn`] when the program cannot be started.
    ///
    /// # Panics
    /// When the rank was started before.
    pub fn start(&mut self, rank: usize) -> Result<Pause, JobError> {
        assert!(matches!(self.ranks[rank].process, Process::Unborn), "rank {rank} is started twice");
        let pid = spawn::spawn(&self.spec, rank, &self.shared, &mut self.pmi, self.output.as_mut())?;
        self.ranks[rank].process = Process::Alive(pid);
        Ok(self.wait(rank))
    }

    /// Answers a call at simulated time `now` and lets the rank run to its next pause.
    pub fn resume(&mut self, caller: Caller, now: Time, reply: &Reply) -> Pause {
        let rank = caller.rank as usize;
        debug_assert!(self.ranks[rank].inside & 1 << caller.slot != 0, "{caller:?} does not wait");
        self.ranks[rank].inside &= !(1 << caller.slot);
        self.stir(rank);
        self.shared.set_now(now);
        match caller.slot {
            PMI => self.pmi.leave_barrier(rank),
            _ => self.shared.answer(caller, reply),
        }
        self.wait(rank)
    }

    /// Another call that came with the last pause of a rank with several threads. Ask after each pause whose call is
    /// not answered at once.
    pub fn pending(&mut self, rank: usize) -> Option<Call> {
        let (slot, _) = self.first_request(rank)?;
        let caller = Caller { rank: rank as u32, slot: slot as u32 };
        if caller.slot == PMI {
            self.ranks[rank].inside |= 1 << PMI;
            return Some(Call { caller, op: Op::PmiBarrier, elapsed_ns: 0, args: [0; ARGS] });
        }
        match self.shared.call(caller, |pid| self.is_of_rank(rank, pid)) {
            Ok((call, pid)) => {
                self.called = true;
                self.ranks[rank].inside |= 1 << slot;
                self.ranks[rank].caller_pid = pid;
                Some(call)
            }
            Err(message) => {
                self.shared.answer(caller, &Reply::new(Rc::Fail));
                self.refused.get_or_insert((rank, message));
                None
            }
        }
    }

    /// Why the rank that was the first of several to speak PMI cannot go on: it has loaded an MPI that cannot use the
    /// card, perhaps from a language whose executable does not show that.
    fn first_by_pmi(&mut self, rank: usize) -> Option<String> {
        let Process::Alive(pid) = self.ranks[rank].process else { return None };
        if !self.pmi.has_begun(rank) || self.ranks.len() == 1 {
            return None;
        }
        let variable = |name: &str| {
            let given = self.spec.env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
            given.or_else(|| std::env::var_os(name))?.into_string().ok()
        };
        family::of(pid).into_iter().find_map(|pid| {
            let files = family::mapped_files(pid);
            crate::mpi::objection(files.iter().map(PathBuf::as_path), variable)
        })
    }

    /// The slot and thread id of the new call that is handed out next; a PMI barrier comes last.
    fn first_request(&self, rank: usize) -> Option<(usize, u32)> {
        let inside = self.ranks[rank].inside;
        let barrier = || (inside & 1 << PMI == 0 && self.pmi.in_barrier(rank)).then_some((PMI as usize, u32::MAX));
        self.shared.first_request(rank, inside).or_else(barrier)
    }

    /// The pause of a rank one of whose threads has called by itself. Ask before each event, and before a deadlock is
    /// declared.
    pub fn poll(&mut self) -> Option<(usize, Pause)> {
        for rank in &self.asleep {
            self.pmi.serve(*rank);
        }
        let rank = *self.asleep.iter().find(|&&rank| self.first_request(rank).is_some())?;
        Some((rank, self.wait(rank)))
    }

    /// What a rank has done that no correct program does, after [`Job::poll`]; and which it was.
    pub fn refusal(&mut self) -> Option<(usize, String)> {
        self.refused.take()
    }

    /// Waits for the next pause of a rank that runs: after [`Pause::Exited`] of another one.
    pub fn wait(&mut self, rank: usize) -> Pause {
        self.asleep.retain(|&other| other != rank);
        let mut period = threads::PERIOD;
        loop {
            let seen = self.shared.doorbell();
            if let Some(signal) = signals::received() {
                return Pause::Interrupted { signal };
            }
            // Looked at in each turn: there may always be something to do.
            let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Pause::TimedOut;
            }
            self.pmi.serve(rank);
            let pause = self.rest(rank);
            if let Some((rank, message)) = self.refused.take() {
                return Pause::Refused { rank, message };
            }
            if let Some(pause) = pause {
                self.drain(rank);
                return pause;
            }
            // A rank whose connection was ended may die of that (SIGPIPE); the reason is what there is to tell.
            if let Some(message) = self.pmi.fault(rank) {
                return Pause::Refused { rank, message: format!("PMI: {message}") };
            }
            if let Some(code) = self.pmi.aborted(rank) {
                return Pause::Exited { rank, status: failure(code) };
            }
            if let Some((rank, status)) = self.ended(rank) {
                return Pause::Exited { rank, status };
            }
            if let Some(message) = self.first_by_pmi(rank) {
                return Pause::Refused { rank, message };
            }
            if self.shared.spin(seen) {
                continue;
            }
            // A full pipe would block the rank for ever, so it is emptied now and then.
            let output = self.drain(rank).then_some(Output::PERIOD);
            let look = self.listen(rank);
            if let Some(rank) = self.unseen.take().filter(|_| !std::mem::replace(&mut self.told_unseen, true)) {
                return Pause::Unseen { rank };
            }
            let threads = self.has_threads(rank).then_some(period);
            period = (period * 2).min(Output::PERIOD);
            self.shared.sleep(seen, [left, look, output, threads].into_iter().flatten().min());
        }
    }

    /// The pause of a rank all of whose threads wait.
    fn rest(&mut self, rank: usize) -> Option<Pause> {
        let alone = self.first_request(rank).is_some_and(|(_, tid)| tid == 0);
        if !alone {
            if !self.has_threads(rank) || !self.is_settled(rank) {
                return None;
            }
            let polling = self.holds(rank);
            let before = std::mem::replace(&mut self.ranks[rank].silence.polling, polling);
            self.asleep.push(rank);
            // Whether a loop that counts polls is not known here; calls of other threads wait until that is decided.
            if polling == Some(Polling::Counting) && before.is_none() {
                return Some(Pause::Polls { rank });
            }
        }
        let call = self.pending(rank).map(Pause::Call);
        call.or_else(|| {
            let polls = self.polling(rank).is_some();
            (!alone).then_some(if polls { Pause::Polls { rank } } else { Pause::Asleep { rank } })
        })
    }

    /// Whether it is known that a rank has several threads, or one that is held, or one that waits for the others in PMI.
    fn has_threads(&self, rank: usize) -> bool {
        let Rank { inside, held, .. } = &self.ranks[rank];
        *inside != 0 || !held.is_empty() || self.first_request(rank).is_some()
    }

    /// The structure argument of a call that is not answered.
    pub fn data<T: Plain>(&self, caller: Caller) -> T {
        self.shared.data(caller)
    }

    /// Ends every process of the job: asks, and after a moment kills. Those that wait in the library write their output
    /// first.
    pub fn kill(&mut self) {
        (0..self.ranks.len()).for_each(|rank| self.let_go(rank));
        for rank in 0..self.ranks.len() {
            let inside = self.ranks[rank].inside;
            for slot in (0..PMI).filter(|slot| inside & 1 << slot != 0) {
                self.shared.end(Caller { rank: rank as u32, slot });
            }
        }
        let waits = |rank: &Rank| matches!(rank.process, Process::Alive(_)) && rank.inside & !(1 << PMI) != 0;
        self.reap_for_a_moment(|job| job.ranks.iter().any(waits));
        self.signal(libc::SIGTERM);
        self.reap_for_a_moment(|_| true);
        self.signal(libc::SIGKILL);
        while self.reap_all() {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Takes note of ranks that end, while there are any and `goes_on`.
    fn reap_for_a_moment(&mut self, goes_on: impl Fn(&Job) -> bool) {
        let patience = Instant::now() + Job::GRACE;
        while self.reap_all() && goes_on(self) && Instant::now() < patience {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn signal(&self, signal: i32) {
        for rank in &self.ranks {
            if let Process::Alive(pid) = rank.process {
                spawn::signal_group(pid, signal);
            }
        }
    }

    /// Whether a rank is still alive.
    fn reap_all(&mut self) -> bool {
        for rank in 0..self.ranks.len() {
            self.reap(rank);
            self.drain(rank); // a full pipe keeps it from ending
        }
        self.ranks.iter().any(|rank| matches!(rank.process, Process::Alive(_)))
    }

    /// A rank that has ended: the one that runs, or, when children have changed since the last look, any.
    fn ended(&mut self, running: usize) -> Option<(usize, ExitStatus)> {
        if let Process::Ended(status) = self.ranks[running].process {
            return Some((running, status));
        }
        let children = signals::children();
        if children == self.children_seen {
            return None;
        }
        // The running one first; the counter is taken over only when nothing more is found.
        let found = std::iter::once(running).chain(0..self.ranks.len()).find_map(|rank| Some((rank, self.reap(rank)?)));
        if found.is_none() {
            self.children_seen = children;
        }
        found
    }

    /// The status of a rank that has ended since the last look. What it has left running ends with it.
    fn reap(&mut self, rank: usize) -> Option<ExitStatus> {
        let Process::Alive(pid) = self.ranks[rank].process else { return None };
        self.bury(rank);
        let status = spawn::reap(pid)?;
        let status = self.pmi.disconnect(rank).map_or(status, failure);
        self.ranks[rank] = Rank { process: Process::Ended(status), ..Rank::default() };
        if let Some(output) = &mut self.output {
            output.finish(rank);
        }
        Some(status)
    }

    /// Passes the rank's output on; whether output goes through the job at all.
    fn drain(&mut self, rank: usize) -> bool {
        self.output.as_mut().map(|output| output.drain(rank)).is_some()
    }
}

/// The exit status of a rank that has asked to end the job with this code, which is a failure whatever the code.
fn failure(code: i32) -> ExitStatus {
    ExitStatus::from_raw((code & 0xff).max(1) << 8)
}

impl Drop for Job {
    fn drop(&mut self) {
        self.kill();
    }
}
