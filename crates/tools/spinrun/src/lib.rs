// SPDX-License-Identifier: Apache-2.0
//! `spinrun -n N PROG` is to sPIN what mpirun is to MPI: it runs a program as N ordinary processes, and simulates network,
//! cards, handlers and time.

#[macro_use]
extern crate command;

mod clocks;
mod compute;
mod environment;
mod gdb;
mod isolation;
mod jobs;
mod links;
mod page;
mod plan;
mod provider;
mod report;
mod start;

use std::cell::Cell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::rc::Rc;
use std::time::{Duration, Instant};

use abi::mailbox::POSTS;
use clap::{CommandFactory, Parser, ValueEnum};
use machine::{Machine, MachineError, NicKind};
use nic::{CardModel, Observation, Stats, Unobservable, merge_drops};
use output::Output;
use ranks::mpi::ProviderBuilder;
use ranks::{CPU_LIMIT, Job, JobError, JobSpec, POLL_LIMIT, leftovers};
use sim::Time;
use sim::trace::Trace;
use thiserror::Error;
use world::{End, World};

use clocks::Clock;
use command::card::Card;
use command::card_messages;
use command::drops;
use command::failures;
use command::listable::Listable;
use command::noise;
use command::progress::{self, Task, When};
use command::sdk::{Sdk, SdkError};
use compute::Compute;
use embedded::Program;
use environment::{parse_variable, variable};
use isolation::{Isolation, Needs};
use plan::{Application, Plan};
use provider::Provider;
use start::{Facts, Start};

/// Real time until progress is first shown.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Exit status when `--timeout` ends the run, as of timeout(1).
const TIMED_OUT: u8 = 124;
/// Exit status of a test that cannot run on this system (automake, meson).
const SKIPPED: i32 = 77;
/// Variable with the kind of the cards, by which the libfabric provider chooses its protocols.
const NIC_KIND: &str = "SPIN_NIC";
/// The variable that tells `libsimclock.so` that only the process which spinrun has started is a rank before it calls `libportals.so`.
const PLAIN: &str = "SPIN_PLAIN";
/// Variable that is 1 for the ranks of a live run.
const LIVE: &str = "SPIN_LIVE";
/// Forms of the command line.
const USAGE: &str = "spinrun [OPTIONS] <PROGRAM>... [: [-n N] [-x NAME[=VALUE]] [--wdir DIR] <PROGRAM>...]...\n       \
                     spinrun [OPTIONS] --jobs <FILE>";
/// Reason for which the ranks of several programs are executed processes.
const SEVERAL: &str = "the run has several programs";
/// Reason for which the ranks of a live run are executed processes.
const REAL: &str = "the run is live";
/// The exit status of a process that a signal has ended is this number plus the signal's.
const SIGNALLED: i32 = 128;

/// Run a program as N ranks on a simulated cluster with programmable network cards.
///
/// Ranks of one job may run several programs, separated by colons: spinrun -n 2 ./server : -n 4 ./client. Each has
/// -n, -x and --wdir. --jobs runs several jobs.
///
/// Exit status: that of the first rank that fails (128 + signal for a crash), 0 when all end with 0, 1 for a deadlock,
/// a program that cannot run, --fail-on-drop and --fail-on-handler-error, 2 for wrong usage or a bad machine file, 124
/// after --timeout. With --jobs: that of the first job of the file that fails.
#[derive(Debug, Parser)]
#[command(name = "spinrun", version, override_usage = USAGE)]
struct Options {
    /// Run the ranks in real time on this computer, with the card as a program (docs/live.md)
    #[arg(long, conflicts_with_all = [
        "jobs", "gdb", "compute", "clock", "clock_start", "busy_wait_quantum", "spin_quantum", "patience", "bind_to", "start",
        "isolation", "post_ahead", "poll_limit", "noise", "fail", "kill_card", "drop", "progress",
    ])]
    #[arg(long_help = "Run the ranks in real time on this computer, with the card as a program (docs/live.md).\n\n\
        The same programs run unchanged. All ranks run at once; spinrun is the card of each, whose handlers it executes. \
        spin_time_ps and sleeps are real. The times of the machine file only order the events of the cards. Ranks that all wait for \
        cards for a second end the run as a deadlock. Programs see SPIN_LIVE=1.")]
    live: bool,
    /// Number of ranks
    #[arg(short, long = "ranks", visible_alias = "np", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=Job::MAX_RANKS as i64))]
    n: u32,
    /// Machine to simulate: a name from `spinkit machines`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "sc17-int")]
    machine: String,
    /// Kind of network card, instead of the machine's
    #[arg(long, value_enum)]
    nic: Option<Card>,
    /// Set a parameter of the machine, such as accelerator.hpus=8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write a page of the run to the folder DIR: index.html, with timeline.html, and the report and timeline from which they are made
    #[arg(long, value_name = "DIR", conflicts_with_all = ["trace", "json"])]
    report: Option<PathBuf>,
    /// Write a timeline for `spinkit view` and ui.perfetto.dev to FILE; `-` is standard output
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write a report of the run as JSON to FILE; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Count executed instructions for each source line in the report (handlers compiled with -g)
    #[arg(long, requires = "json")]
    profile: bool,
    /// Let gdb debug the handlers of a rank's card: stop at the first handler, or the first called HANDLER
    #[arg(long, value_name = "RANK[:HANDLER]", value_parser = gdb::Place::parse)]
    gdb: Option<gdb::Place>,
    /// Let gdb connect to this port of this computer, which all its users can reach, instead of a socket that only you can; 0 is any port
    #[arg(long, value_name = "PORT", requires = "gdb")]
    gdb_port: Option<u16>,
    /// Find data races of handlers on HPU memory and static data, and reads of HPU memory that was never written; the run ends with
    /// status 1 instead of 0 if there are any
    #[arg(long, conflicts_with = "gdb")]
    sanitize: bool,
    /// Let the texts that handlers print with spin_printf take no time on the card, instead of 100 cycles each
    #[arg(long)]
    print_free: bool,
    /// End the run after this many seconds of real time
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// End with status 1 instead of 0 if a message, or a part of it, was not delivered
    #[arg(long)]
    #[arg(long_help = "End with status 1 instead of 0 if a message, or a part of it, was not delivered.\n\n\
        The run continues to its end. spinrun warns of such messages in any case. Drops by a handler's return code do not \
        count; for drops by a failed handler, see --fail-on-handler-error.")]
    fail_on_drop: bool,
    /// End with status 1 instead of 0 if a handler failed
    #[arg(long)]
    #[arg(long_help = "End with status 1 instead of 0 if a handler failed.\n\n\
        The environment SPIN_FAIL_ON_HANDLER_ERROR=1 does the same, and so does CI=true, which continuous integration \
        sets; SPIN_FAIL_ON_HANDLER_ERROR=0 overrides CI.")]
    fail_on_handler_error: bool,
    /// Report each drop as it happens, with its reason, and the first refusal of each call
    #[arg(short, long)]
    verbose: bool,
    /// Prefix each line of output with its rank
    #[arg(long)]
    tag_output: bool,
    /// Show the progress of the run on standard error after SECONDS, or never [default: 2 if standard error is a terminal and
    /// standard output is not; else off]
    #[arg(long, value_name = "SECONDS|off", value_parser = When::parse)]
    progress: Option<When>,
    /// Simulated time that the ranks' own code takes between library calls
    #[arg(long, value_name = "zero|measured:SCALE|record:FILE|perf:FILE", default_value = "zero", value_parser = Compute::parse)]
    #[arg(long_help = "Simulated time that the ranks' own code takes between library calls.\n\n\
        zero: none. measured:SCALE: its CPU time on this computer, times SCALE; runs differ. \
        record:FILE: its CPU time, which is also written to FILE. perf:FILE: the recorded times; \
        all runs of the same program on the same machine file are equal, to the bit.")]
    compute: Compute,
    /// Clock that ranks read by clock_gettime, similar functions and the time-stamp counter; sleeps always take simulated time
    #[arg(long, value_enum, default_value_t = Clock::Real)]
    #[arg(
        long_help = "Clock that ranks read by clock_gettime, similar functions and the time-stamp counter; sleeps always take simulated \
        time.\n\n\
        Simulated clocks begin on 2017-11-12 at 0:00 UTC in every run, unless --clock-start sets another date, so that runs are \
        equal. A program that names files by the date therefore writes the same files in every run."
    )]
    clock: Clock,
    /// Date at which the clocks of --clock simulated begin: `now`, or seconds since 1970 [default: 2017-11-12 0:00 UTC]
    #[arg(long, value_name = "now|SECONDS", value_parser = clocks::Start::parse)]
    #[arg(
        long_help = "Date at which the clocks of --clock simulated begin: `now`, or seconds since 1970 [default: 2017-11-12 0:00 UTC].\n\n\
        With `now`, dates in a program's output differ from run to run."
    )]
    clock_start: Option<clocks::Start>,
    /// Check whether a rank busy-waits on its memory after MS milliseconds without a library call
    #[arg(long, value_name = "MS|off", default_value = "20", value_parser = parse_quantum)]
    #[arg(
        long_help = "Check whether a rank busy-waits on its memory after MS milliseconds without a library call.\n\n\
        A rank that reads its memory in a loop until a message changes it makes no call, so simulated time would stand \
        still for ever. spinrun executes a few iterations of the loop step by step (ptrace). If the loop can end only when \
        memory is written, the rank is stopped until that memory is written. It then continues at that simulated time plus \
        the time of one poll. If nothing can write the memory, the run ends as a deadlock. A loop that also \
        counts its tries, or reads a clock, is stopped while a message may write the memory, and runs to its \
        limit when no other event is left. A rank that computes continues, and takes no simulated time. A rank that \
        polled before is checked sooner. Where ptrace is forbidden (containers) or in use \
        (gdb, strace), spinrun assumes that every rank without calls computes, and warns; --timeout ends a run that \
        hangs."
    )]
    busy_wait_quantum: Quantum,
    /// CPU time that a thread uses between library calls before it no longer holds simulated time back, if it may wait for others
    #[arg(long, value_name = "MS", default_value_t = CPU_LIMIT.as_millis() as u64, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    #[arg(
        long_help = "CPU time that a thread uses between library calls before it no longer holds simulated time back, in milliseconds, if \
        it may wait for others.\n\n\
        Simulated time stands still while a rank computes, and a rank that waits for its memory is stopped (--busy-wait-quantum). Where \
        spinrun cannot distinguish the two, because a thread returns to the same places in memory in a loop of unknown \
        form, time continues after MS milliseconds of the thread's CPU time. A thread that evidently computes may use 400 times as much. \
        A warning then names the thread and the place in its code: another run may differ."
    )]
    patience: u64,
    /// Former name of --busy-wait-quantum
    #[arg(long, hide = true, value_name = "MS|off", value_parser = parse_quantum, conflicts_with = "busy_wait_quantum")]
    spin_quantum: Option<Quantum>,
    /// CPUs of this computer that the simulator and the ranks use: `auto` moves them to one CPU while that is faster
    #[arg(long, value_enum, default_value_t = BindTo::Auto)]
    #[arg(
        long_help = "CPUs of this computer that the simulator and the ranks use; results and times are the same.\n\n\
        auto: they share one CPU while switching between them is faster there, and leave it when another program \
        needs it; ranks with several threads are not moved. none: the kernel chooses."
    )]
    bind_to: BindTo,
    /// Start of the ranks: each executes the program, or all are forked from one process that executes it
    #[arg(long, value_enum, default_value_t = Start::Auto)]
    #[arg(long_help = "Start of the ranks; results and times are the same.\n\n\
        exec: each rank executes the program. fork: one process executes the program up to its own code, and forks \
        each rank, so that libraries are loaded once. auto: fork for 4 ranks and more, if the program links only \
        Portals and the libraries of C and C++, LD_PRELOAD and similar variables are not set, and CPU time is not measured; else exec. \
        -v prints the choice and its reason.")]
    start: Start,
    /// Isolation of the ranks: each is a process, or a thread of the simulator's process
    #[arg(long, value_enum, default_value_t = Isolation::Auto)]
    #[arg(long_help = "Isolation of ranks; results and times are the same.\n\n\
        process: each rank is a separate process. thread: each rank is a thread of the simulator's process, with separate globals, heap, \
        stack and output, so that a call needs no switch between processes. A crash of a rank ends only the rank, but a wild store may \
        damage the simulator. auto: threads, if the program uses only functions of the C library that need no process, and neither \
        --compute measures CPU time nor --clock simulated or --start is given; else processes. -v says which, and why.")]
    isolation: Isolation,
    /// Largest number of calls with predictable answers that a rank makes before it waits for the simulator
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(..=POSTS as i64))]
    #[arg(
        long_help = "Largest number of calls with predictable answers that a rank makes before it waits for the simulator: puts, gets and \
        atomic operations, also triggered ones, increments of counters, PtlEQGet, PtlEQWait and PtlEQPoll of one queue with a known \
        event, and spin_ct_await of a counter that has reached the value.\n\n\
        A larger number (up to 128) is faster; simulated times are the same. Between two such calls, a program that reads \
        memory without a call sees its contents before the first call, and may behave differently. A program that \
        writes a buffer too early may send the new data. Output of a rank between two such calls precedes concurrent output of \
        other ranks. Any other call, such as spin_time_ps, waits. If an event queue overflows, or a triggered operation finds no \
        room, the run may end with a message that asks for --post-ahead 0."
    )]
    post_ahead: u32,
    /// Number of unsuccessful polls, of all ranks together, that end a run as a deadlock
    #[arg(long, value_name = "N", default_value_t = POLL_LIMIT, value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(
        long_help = "Number of unsuccessful polls, of all ranks together, that end a run as a deadlock, when the simulation has no events \
        left and ranks only poll.\n\n\
        A program that works by itself between its polls, such as an MPI rank that uses only its own window while the others wait, \
        may need more polls; 300,000 take about a second of real time. Each waiting thread polls 1000 times in any case."
    )]
    poll_limit: u64,
    /// Set an environment variable for the ranks of a program; NAME alone takes the value of spinrun's variable
    #[arg(short = 'x', long = "env", value_name = "NAME[=VALUE]", value_parser = parse_variable)]
    env: Vec<(OsString, OsString)>,
    /// Working folder of the ranks of a program
    #[arg(long, value_name = "DIR")]
    wdir: Option<PathBuf>,
    /// Number of consecutive ranks that share a node and its card
    #[arg(long, value_name = "K", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=Job::MAX_RANKS as i64))]
    #[arg(long_help = "Number of consecutive ranks that share a node and its card.\n\n\
        Rank r is on node r / K, with pid 1 + r % K. Ranks of a node share its links, HPUs, DMA engine, CPU cores and memory bandwidth; \
        messages between them turn around in the card (docs/jobs.md).")]
    ranks_per_node: u32,
    /// Run the jobs of a TOML file, which share the simulated network, instead of one program (docs/jobs.md)
    #[arg(long, value_name = "FILE",
          conflicts_with_all = ["n", "env", "wdir", "gdb", "fail", "kill_card", "ranks_per_node", "program"])]
    jobs: Option<PathBuf>,
    #[command(flatten)]
    noise: noise::Arguments,
    #[command(flatten)]
    failures: failures::Arguments,
    /// The program and its arguments
    #[arg(required_unless_present = "jobs", trailing_var_arg = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
    /// Programs after colons
    #[arg(skip)]
    others: Vec<Application>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BindTo {
    Auto,
    None,
}

#[derive(Debug, Error)]
enum RunError {
    #[error(transparent)]
    Sdk(#[from] SdkError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Job(#[from] JobError),
    #[error(transparent)]
    Run(#[from] world::RunError),
    #[error(transparent)]
    Network(#[from] net::NetError),
    #[error(transparent)]
    Failure(#[from] world::FailureError),
    #[error(transparent)]
    Card(#[from] nic::NotOnCards),
    #[error("{} {objection}", program.display())]
    Mpi { program: PathBuf, objection: String },
    #[error("the libraries of {} are not known, and so neither is its MPI: {why}", program.display())]
    Libraries { program: PathBuf, why: String },
    #[error("--start fork: ranks of {} cannot be copies of one process: {objection}; use --start auto", program.display())]
    Start { program: PathBuf, objection: String },
    #[error("--isolation thread: ranks of {} cannot be threads: {objection}; use --isolation auto", program.display())]
    Isolation { program: PathBuf, objection: String },
    #[error(transparent)]
    Jobs(#[from] jobs::JobsError),
    #[error(
        "--jobs: the network has switches with handlers, which are not divided among jobs: run one job, or unset network.switch.handlers"
    )]
    Switches,
    #[error(
        "--ranks-per-node: the network has switches with handlers, whose numbers follow those of the ranks: unset network.switch.handlers"
    )]
    SwitchesBesideNodes,
    #[error(
        "machine {0}: several processes are on a node, and a card with accelerator.kind = \"pspin\" runs the handlers of one process: \
         use --machine sc17-int, a card without handlers (--nic portals4), or a node for each process"
    )]
    Indivisible(String),
    #[error("--gdb debugs the card of one rank: it does not go together with --ranks-per-node {0}")]
    GdbOnShared(u32),
    #[error("--wdir: cannot enter {}: {error}", path.display())]
    Wdir { path: PathBuf, error: io::Error },
    #[error("{} ranks: a job has 1 to {max} ranks", .0, max = Job::MAX_RANKS)]
    TooMany(u64),
    #[error("{0} programs: a job has 1 to {max} programs", max = plan::MAX_PROGRAMS)]
    TooManyPrograms(usize),
    #[error(transparent)]
    Compute(#[from] compute::ComputeError),
    #[error("{0} is a source, no program: compile it with spincc, such as `spincc -O2 -o {1} {0}`, and run ./{1}")]
    Source(String, String),
    #[error("the sources of the libfabric provider (sdk/ofi) cannot be read: {0}")]
    Provider(io::Error),
    #[error("--gdb: {0}")]
    Gdb(io::Error),
    #[error("--gdb: there is no rank {rank}; the last is {last}")]
    GdbRank { rank: usize, last: u32 },
    #[error("{option}: {error}; use a machine with accelerator.kind = \"sc17\", such as --machine sc17-int")]
    Observation { option: &'static str, error: Unobservable },
    #[error("cannot open {}: {error}", path.display())]
    Folder { path: PathBuf, error: io::Error },
    #[error(transparent)]
    Page(#[from] page::PageError),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
}

impl From<Unobservable> for RunError {
    fn from(error: Unobservable) -> RunError {
        let option = match error {
            Unobservable::Sanitizer => "--sanitize",
            Unobservable::Debugger => "--gdb",
        };
        RunError::Observation { option, error }
    }
}

impl RunError {
    /// Returns a function that makes the error of a file that cannot be written.
    fn write(path: &Path) -> impl FnOnce(io::Error) -> RunError {
        move |error| RunError::Write { path: path.to_owned(), error }
    }

    fn status(&self) -> u8 {
        match self {
            RunError::Machine(_)
            | RunError::Network(_)
            | RunError::Failure(_)
            | RunError::Card(_)
            | RunError::GdbRank { .. }
            | RunError::Observation { .. }
            | RunError::Start { .. }
            | RunError::Isolation { .. }
            | RunError::Source(..)
            | RunError::Jobs(_)
            | RunError::Switches
            | RunError::SwitchesBesideNodes
            | RunError::Indivisible(_)
            | RunError::GdbOnShared(_)
            | RunError::Wdir { .. }
            | RunError::TooMany(_)
            | RunError::TooManyPrograms(_)
            | RunError::Compute(_) => 2,
            _ => 1,
        }
    }
}

/// Describes the command line of `spinrun`.
pub fn command() -> clap::Command {
    Options::command()
}

/// Runs the command `spinrun` with the arguments of this process.
pub fn main() -> ExitCode {
    let mut options = Options::of_command_line();
    let status = options.open_report().and_then(|()| run(&options)).and_then(|status| {
        options.report.as_deref().map_or(Ok(()), page::write)?;
        Ok(status)
    });
    match status {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("spinrun: error: {error}");
            ExitCode::from(error.status())
        }
    }
}

impl Options {
    /// Parses the command line.
    fn of_command_line() -> Options {
        let words: Vec<OsString> = std::env::args_os().collect();
        let mut parts = plan::split(&words).into_iter();
        let mut options: Options = plan::parse(parts.next().unwrap_or_default()).unwrap_or_else(|error| error.exit());
        if options.jobs.is_some() && parts.len() > 0 {
            Options::command()
                .error(clap::error::ErrorKind::ArgumentConflict, "--jobs runs the programs of its file: give none")
                .exit();
        }
        options.others =
            parts.map(|part| plan::further(part, Options::command()).unwrap_or_else(|error| error.exit())).collect();
        options
    }

    /// Returns the programs and jobs to run.
    fn plan(&self) -> Result<Plan, RunError> {
        let plan = match &self.jobs {
            Some(file) => jobs::read(file)?,
            None => {
                let first = Application {
                    words: self.program.clone(),
                    ranks: self.n,
                    env: self.env.clone(),
                    folder: self.wdir.clone(),
                    job: 0,
                    nodes: Vec::new(),
                };
                let applications = std::iter::once(first).chain(self.others.iter().cloned()).collect();
                Plan { applications, jobs: Vec::new(), deaths: Vec::new() }
            }
        };
        let ranks = plan.applications.iter().map(|application| u64::from(application.ranks)).sum();
        if ranks > Job::MAX_RANKS as u64 {
            return Err(RunError::TooMany(ranks));
        }
        if plan.jobs.is_empty() && plan.applications.len() > plan::MAX_PROGRAMS {
            return Err(RunError::TooManyPrograms(plan.applications.len()));
        }
        for application in &plan.applications {
            refuse_source(Path::new(&application.words[0]))?;
            if let Some(path) = &application.folder {
                let entered = fs::read_dir(path).map(drop);
                entered.map_err(|error| RunError::Wdir { path: path.clone(), error })?;
            }
        }
        Ok(plan)
    }

    /// Lets the run write the files of `--report`.
    fn open_report(&mut self) -> Result<(), RunError> {
        if let Some(folder) = &self.report {
            fs::create_dir_all(folder).map_err(RunError::write(folder))?;
            self.json = Some(folder.join(page::REPORT));
            self.trace = Some(folder.join(page::TIMELINE));
            self.profile = true;
        }
        Ok(())
    }
}

/// Runs the program on the simulated machine. Returns the exit status.
fn run(options: &Options) -> Result<u8, RunError> {
    let plan = &options.plan()?;
    if options.gdb.is_some() && options.ranks_per_node > 1 {
        return Err(RunError::GdbOnShared(options.ranks_per_node));
    }
    let sdk = Sdk::find()?;
    let model = load_machine(options, &sdk)?;
    if options.live && !options.set.is_empty() {
        eprintln!(
            "spinrun: note: --live: times of the machine order the events of the cards, and do not pass in real time"
        );
    }
    let lib_dir = sdk.lib_dir()?;
    // Ranks load libraries by this name of the folder as long as the job runs.
    let listed = Listable::new(lib_dir.clone()).map_err(|error| RunError::Folder { path: lib_dir.clone(), error })?;
    let spec = job_spec(options, plan, &sdk, &model, &lib_dir, listed.name())?;
    if spec.must_wait() && spec.post_ahead > 0 {
        eprintln!("spinrun: note: --post-ahead has no effect with --fail, --kill-card and --compute");
    }
    let mut job = Job::new(spec)?;
    let computation = options.compute.computation(job.ranks())?;
    // Open files before the run: results would be lost if they could not be written.
    let recording = match &options.compute {
        Compute::Record(path) => Some((path, Output::create(path).map_err(RunError::write(path))?)),
        _ => None,
    };
    let report = match &options.json {
        Some(path) => Some((path, Output::create(path).map_err(RunError::write(path))?)),
        None => None,
    };
    let trace = match &options.trace {
        Some(path) => Trace::to_file(path).map_err(RunError::write(path))?,
        None => Trace::off(),
    };
    job.set_deadline(options.timeout.map(|limit| Instant::now() + limit));
    let found = Rc::new(Cell::new(0));
    let model = observe_handlers(model, options, plan)?;
    let rows = plan.rows(job.seating());
    let listener = card_messages::listener("spinrun", options.verbose, found.clone());
    if job.seating().shares_cards() && !model.is_divisible() {
        return Err(RunError::Indivisible(model.machine().name.clone()));
    }
    let mut world = World::with_rows(model, job, (trace, &rows), listener)?;
    if options.ranks_per_node > 1 && !world.switches().is_empty() {
        return Err(RunError::SwitchesBesideNodes);
    }
    if !plan.jobs.is_empty() {
        if !world.switches().is_empty() {
            return Err(RunError::Switches);
        }
        world.separate(plan.jobs.clone());
    }
    world.set_computation(computation);
    let noise = options.noise.noise();
    if let Some(noise) = &noise {
        world.set_noise(noise);
    }
    let failures = options.failures.with_deaths(plan.deaths(world.seating()));
    if let Some(failures) = &failures {
        world.set_failures(failures)?;
    }
    let reached = world.progress();
    let task = Task::Simulated { now: &|| reached.now(), events: &|| reached.events() };
    let when = options.progress.unwrap_or_else(|| progress_by_default(options));
    let end = progress::watch("spinrun", Some(when), &task, || world.run()).0?;
    warn_of_run(&world, &end, options, plan);
    let lost_packets = failures.as_ref().map(|failures| world.lost_packets(failures.losses.len()));
    if let Some(links) = world.links(report::BUSIEST) {
        report::tell_links(&links);
    }
    let cards: Vec<Stats> = world.card_stats().collect();
    tell_lost_packets(&cards, lost_packets.as_deref());
    let flow_control = cards.iter().map(|card| card.flow_control).sum();
    let lost = drops::sentences(&merge_drops(cards.iter().map(|card| &card.counts.drops)), flow_control);
    let ends = world.job_ends();
    if !ends.iter().flatten().chain([&end]).any(|end| matches!(end, End::Deadlock { .. })) {
        lost.iter().for_each(|sentence| eprintln!("spinrun: warning: {sentence}"));
    }
    let statuses = tell_ends(&world, &end, &ends, &lost, plan);
    let status = match statuses.iter().copied().find(|status| *status > 0) {
        None => judge(options, plan, &lost, &cards, found.get()),
        Some(status) => status,
    };
    if let Some((path, output)) = report {
        let failures = failures.as_ref().zip(lost_packets.as_deref());
        let jobs = report::Jobs { plan, ends: &ends, statuses: &statuses };
        let text = report::json(&world, &end, noise.as_ref(), failures, options.profile, &jobs);
        output::complete(output, path, |out| out.write_all(text.as_bytes())).map_err(RunError::write(path))?;
    }
    if let (Some((path, output)), Some(times)) = (recording, world.computation().recorded()) {
        compute::write(output, path, times).map_err(RunError::write(path))?;
    }
    if let Some(path) = &options.trace {
        world.finish_trace().map_err(RunError::write(path))?;
    }
    Ok(status)
}

/// Returns the processes to start: the program with the environment and the libraries of the simulation.
/// `lib_dir` is the folder with libraries, and `listed` a name of it that a list may contain.
fn job_spec(
    options: &Options,
    plan: &Plan,
    sdk: &Sdk,
    machine: &Machine,
    lib_dir: &Path,
    listed: &Path,
) -> Result<JobSpec, RunError> {
    let mut common = vec![(NIC_KIND.into(), machine.nic.kind.name().into())];
    if options.live {
        common.push((LIVE.into(), "1".into()));
    }
    common.extend(clocks::variables(options.clock, options.clock_start));
    if options.clock == Clock::Real && options.clock_start.is_some() {
        eprintln!("spinrun: note: --clock-start has no effect without --clock simulated");
    }
    let provider = Provider::find(sdk, lib_dir).map_err(RunError::Provider)?;
    common.extend(provider.iter().flat_map(Provider::variables));
    // Do not build the provider if the user supplies one.
    let names_provider = |application: &Application| application.env.iter().any(|(name, _)| name == provider::PATH);
    let is_given = plan.applications.iter().all(names_provider);
    let provider =
        provider.map(|provider| ProviderBuilder::new(move || if is_given { Ok(()) } else { provider.make() }));
    let mut starts = Vec::new();
    for application in &plan.applications {
        let mut env = pmi_library(lib_dir, application.job);
        env.extend(common.iter().cloned());
        env.extend(application.env.iter().cloned()); // later values win, so the user's follow
        starts.push(program_start(options, plan, application, env, (lib_dir, listed), provider.as_ref())?);
    }
    let speaks_no_pmi = starts.iter().all(|start| start.speaks_no_pmi);
    let mut starts = starts.into_iter();
    let first = starts.next().expect("a plan has a program");
    let ranks::Program { program, args, ranks, env, preload, folder, nodes, .. } = first.program;
    Ok(JobSpec {
        program,
        args,
        ranks,
        env,
        preload,
        folder,
        nodes,
        ranks_per_node: options.ranks_per_node as usize,
        others: starts.map(|start| start.program).collect(),
        job_names: plan.jobs.iter().map(|job| job.name.clone()).collect(),
        tag_output: options.tag_output,
        compute_scale_milli: options.compute.scale(),
        serve_copies: false,
        busy_wait_quantum: if options.live { None } else { busy_wait_quantum(options).0 },
        cpu_limit: Some(Duration::from_millis(options.patience)),
        post_ahead: options.post_ahead,
        poll_limit: Some(options.poll_limit),
        waits: options.failures.kills() || !plan.deaths.is_empty(),
        live: options.live,
        adapts_affinity: options.bind_to == BindTo::Auto && first.threads.is_none() && !options.live,
        forks: first.forks,
        embedded: first.threads,
        speaks_no_pmi,
        provider,
    })
}

/// Start of the ranks of a program.
struct ProgramStart {
    program: ranks::Program,
    speaks_no_pmi: bool,
    /// True if the ranks are copies of one process.
    forks: bool,
    /// The program, if its ranks are threads of this process.
    threads: Option<Rc<Program>>,
}

/// Returns the start of the ranks of a program with these variables. `lib_dir` is the folder with libraries, and
/// `listed` a name of it that a list may contain.
fn program_start(
    options: &Options,
    plan: &Plan,
    application: &Application,
    mut env: Vec<(OsString, OsString)>,
    (lib_dir, listed): (&Path, &Path),
    provider: Option<&ProviderBuilder>,
) -> Result<ProgramStart, RunError> {
    let program = &application.words[0];
    let threads = threads(options, plan, application, &env)?;
    // The libraries of a program whose ranks are threads are known, and the system's loader takes a while to list them.
    let libraries = match threads {
        Ok(_) => Vec::new(),
        Err(_) => links::of(program, &env, (listed != lib_dir).then_some(listed))
            .map_err(|why| RunError::Libraries { program: program.into(), why })?,
    };
    let ranks = plan.ranks_of_job(application.job);
    if let Some(objection) = foreign_mpi(ranks, &application.env, &libraries, provider) {
        return Err(RunError::Mpi { program: program.into(), objection });
    }
    env.extend(lenient_sanitizer(&libraries, &env));
    let mut preloaded = preloaded(&libraries, options.clock, lib_dir);
    if threads.is_ok() {
        preloaded = Preloaded { libraries: &[], is_only_for_clocks: false };
    } else if options.live {
        let libraries = preloaded.libraries.strip_prefix(&[CLOCKS]).unwrap_or(preloaded.libraries);
        preloaded = Preloaded { libraries, is_only_for_clocks: false };
    }
    if preloaded.is_only_for_clocks {
        env.push((PLAIN.into(), "1".into()));
    }
    let mut facts = Facts::of(program, &libraries, |name| variable(&env, name));
    if options.live {
        facts.objection = Some(REAL.into());
    }
    if !plan.is_simple() {
        facts.objection.get_or_insert_with(|| SEVERAL.into());
    }
    let copies = options.start.decide(&facts, application.ranks, options.compute.scale() != 0);
    let copies = copies.map_err(|objection| RunError::Start { program: program.into(), objection })?;
    if options.verbose && plan.ranks() > 1 && threads.is_err() {
        match &copies {
            Ok(()) => eprintln!("spinrun: ranks are copies of one process (--start fork)"),
            Err(why) => eprintln!("spinrun: each rank executes {} (--start exec): {why}", program.display()),
        }
    }
    let preload = preloaded.libraries.iter().map(|library| listed.join(library)).collect();
    Ok(ProgramStart {
        program: application.start(env, preload),
        speaks_no_pmi: facts.speaks_no_pmi,
        forks: copies.is_ok() && threads.is_err(),
        threads: threads.ok(),
    })
}

/// Returns the program if its ranks are threads of this process, or else the reason why they are processes.
fn threads(
    options: &Options,
    plan: &Plan,
    application: &Application,
    env: &[(OsString, OsString)],
) -> Result<Result<Rc<Program>, String>, RunError> {
    let program = &application.words[0];
    let mut facts = Facts::of(program, &[], |name| variable(env, name));
    if options.live {
        facts.objection = Some(REAL.into());
    } else if !plan.is_simple() {
        facts.objection = Some(SEVERAL.into());
    } else if options.ranks_per_node > 1 {
        facts.objection = Some("--ranks-per-node places processes".into());
    } else if application.folder.is_some() {
        facts.objection = Some("--wdir is a folder of processes".into());
    }
    let needs = Needs {
        measures: options.compute.scale() != 0,
        simulates_clocks: options.clock == Clock::Simulated,
        starts_processes: options.start != Start::Auto,
    };
    let threads = options.isolation.decide(program, &facts, needs);
    let threads = threads.map_err(|objection| RunError::Isolation { program: program.into(), objection })?;
    if options.verbose {
        match &threads {
            Ok(_) => eprintln!("spinrun: ranks are threads of the simulator (--isolation thread)"),
            Err(why) => eprintln!("spinrun: ranks are processes (--isolation process): {why}"),
        }
    }
    Ok(threads)
}

/// Adds the profile, the debugger, the sanitizer and the free printing that the options request for handlers.
fn observe_handlers(model: CardModel, options: &Options, plan: &Plan) -> Result<CardModel, RunError> {
    let observation =
        Observation { sanitize: options.sanitize, free_prints: options.print_free, profile: options.profile };
    let model = match &options.gdb {
        Some(place) => {
            let Some(application) = plan.application_of_rank(place.rank) else {
                return Err(RunError::GdbRank { rank: place.rank, last: plan.ranks() - 1 });
            };
            let program = Path::new(&application.words[0]);
            let gdb = gdb::Gdb::new(place.clone(), program, &model.hpu.kind, options.gdb_port);
            model.debugged(place.rank as u32, Box::new(gdb.map_err(RunError::Gdb)?))?
        }
        None => model,
    };
    Ok(model.observed(observation)?)
}

/// Warns of free computation, repeated warnings, unused ranks, and recorded computation and failures left over.
fn warn_of_run(world: &World, end: &End, options: &Options, plan: &Plan) {
    if options.clock == Clock::Simulated {
        options.compute.tell_if_free(plan.ranks(), world.now());
    }
    for (message, count) in world.repeated_warnings() {
        eprintln!("spinrun: warning: ({count} times) {message}");
    }
    if *end == End::Finished && plan.ranks() > 1 && plan.jobs.is_empty() && !world.has_heard_ranks() {
        let (program, n) = (plan.title(0), plan.ranks());
        eprintln!(
            "spinrun: warning: no rank has used Portals or PMI: {n} copies of {program} have run, each by itself (for MPI \
             programs see docs/mpi.md)"
        );
    }
    let left_over = if *end == End::Finished { world.computation().left_over() } else { Vec::new() };
    for (rank, made, there) in left_over {
        eprintln!(
            "spinrun: warning: rank {rank} has made {made} library calls, and --compute perf has the computation before {there}: \
             program, input or machine are not those of the recording"
        );
    }
    for death in world.survivors() {
        let (name, at, now) = (world.name(death.rank as usize), death.at, world.now());
        eprintln!("spinrun: warning: {name} was to fail at {at}, and the run was over at {now}");
    }
}

/// Prints the number of lost packets, if any can be lost.
fn tell_lost_packets(cards: &[Stats], lost_packets: Option<&[u64]>) {
    if lost_packets.is_some_and(|lost| !lost.is_empty()) || cards.iter().any(|card| card.counts.packets_lost > 0) {
        let (lost, resent) = cards
            .iter()
            .fold((0, 0), |sums, card| (sums.0 + card.counts.packets_lost, sums.1 + card.counts.packets_resent));
        eprintln!(
            "spinrun: {lost} packets were lost, as --drop or --kill-card asks; cards sent a packet again {resent} times"
        );
    }
}

/// Refuses C or C++ source as the program. A script that begins with `#!` may have any name.
fn refuse_source(program: &Path) -> Result<(), RunError> {
    const SOURCES: [&str; 5] = ["c", "cc", "cpp", "cxx", "C"];
    let is_named_so = program.extension().is_some_and(|end| SOURCES.iter().any(|source| end == *source));
    let is_source = |bytes: Vec<u8>| !bytes.starts_with(b"\x7fELF") && !bytes.starts_with(b"#!");
    if !is_named_so || !fs::read(program).is_ok_and(is_source) {
        return Ok(());
    }
    let name = program.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Err(RunError::Source(program.display().to_string(), name))
}

/// Returns the exit status of a run whose ranks all succeeded: 1 if an option makes it fail.
fn judge(options: &Options, plan: &Plan, lost: &[String], cards: &[Stats], found: u64) -> u8 {
    let program = options.jobs.as_ref().map_or_else(|| plan.title(0), |file| file.display().to_string());
    let errors: u64 = cards.iter().flat_map(|card| card.handlers.values()).map(|handler| handler.errors).sum();
    let is_lossy = options.fail_on_drop && !lost.is_empty();
    let cause = if errors > 0 { handler_errors_fail(options) } else { None };
    if is_lossy {
        eprintln!("spinrun: {program}: the run fails because messages were dropped (--fail-on-drop)");
    }
    if let Some(cause) = cause {
        eprintln!("spinrun: {program}: the run fails because handlers failed: {errors} ({cause})");
    }
    if found > 0 {
        eprintln!("spinrun: {program}: the run fails because of reports of the sanitizer: {found} (--sanitize)");
    }
    u8::from(is_lossy || cause.is_some() || found > 0)
}

/// Returns the option or variable, if any, by which failed handlers make a run fail.
fn handler_errors_fail(options: &Options) -> Option<&'static str> {
    if options.fail_on_handler_error {
        return Some("--fail-on-handler-error");
    }
    match std::env::var_os("SPIN_FAIL_ON_HANDLER_ERROR").filter(|value| !value.is_empty()) {
        Some(value) if value == "0" => None,
        Some(_) => Some("SPIN_FAIL_ON_HANDLER_ERROR"),
        None => (std::env::var_os("CI")? == "true").then_some("CI=true; SPIN_FAIL_ON_HANDLER_ERROR=0 turns this off"),
    }
}

/// Returns the variables that point programs which load a PMI library at run time to `libpmi.so`, as Open MPI 4 does
/// for Flux. The job id separates files of concurrent jobs, also of those of one run.
fn pmi_library(lib_dir: &Path, job: usize) -> Vec<(OsString, OsString)> {
    let library = Some(lib_dir.join("libpmi.so")).filter(|library| library.is_file());
    let id = match job {
        0 => std::process::id().to_string(),
        job => format!("{}{job:05}", std::process::id()),
    };
    library.map_or(Vec::new(), |library| {
        vec![("FLUX_PMI_LIBRARY_PATH".into(), library.into()), ("FLUX_JOB_ID".into(), id.into())]
    })
}

/// Library by which ranks sleep in simulated time.
const CLOCKS: &str = "libsimclock.so";

/// Libraries to preload into a program.
struct Preloaded {
    libraries: &'static [&'static str],
    /// True if only the simulated clocks need `libportals.so`: the program may not use it.
    is_only_for_clocks: bool,
}

/// Returns the libraries to preload into a program with these libraries. A program that starts through PMIx, as Open
/// MPI 5 does, reads clocks before it loads libfabric's providers, so `libportals.so` must be present from the start.
/// An interpreter may load such an MPI later. A program cannot find `libportals.so` by itself in a folder whose name
/// contains a colon or a dollar sign, because its RUNPATH is a list.
fn preloaded(libraries: &[PathBuf], clock: Clock, lib_dir: &Path) -> Preloaded {
    let has = |start: &str| {
        let named = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(start.as_bytes()));
        libraries.iter().any(named)
    };
    let all = &[CLOCKS, "libsimpmix.so", "libportals.so"];
    let is_lost = lib_dir.as_os_str().as_bytes().iter().any(|byte| matches!(byte, b':' | b'$'));
    let (libraries, is_only_for_clocks): (&[_], _) =
        match (has("libpmix") || is_lost, has("libportals") || has("libmpi")) {
            (true, _) => (all, false),
            (false, true) => (&all[..1], false),
            (false, false) if clock == Clock::Simulated => (all, true),
            (false, false) => (&all[..2], false),
        };
    Preloaded { libraries, is_only_for_clocks }
}

/// Returns the reason for which the job cannot use the MPI library linked by the program.
fn foreign_mpi(
    ranks: u32,
    env: &[(OsString, OsString)],
    libraries: &[PathBuf],
    provider: Option<&ProviderBuilder>,
) -> Option<String> {
    let variable = |name: &str| variable(env, name);
    ranks::mpi::judge(libraries.iter().map(PathBuf::as_path), variable).objection(ranks as usize, provider)
}

/// Returns a variable that permits GCC's address sanitizer, which demands to be the first library, to be loaded after
/// `libsimclock.so`.
fn lenient_sanitizer(libraries: &[PathBuf], env: &[(OsString, OsString)]) -> Option<(OsString, OsString)> {
    const OPTIONS: &str = "ASAN_OPTIONS";
    let is_sanitizer = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libasan.so"));
    if !libraries.iter().any(is_sanitizer) {
        return None;
    }
    let mut value = variable(env, OPTIONS).unwrap_or_default();
    value.push(":verify_asan_link_order=0");
    Some((OPTIONS.into(), value))
}

/// Returns the default of progress: shown only where it cannot mix with the ranks' output, i.e. if standard error is a
/// terminal and standard output is not.
fn progress_by_default(options: &Options) -> When {
    let is_apart = io::stderr().is_terminal() && !io::stdout().is_terminal() && !options.tag_output;
    if is_apart { When::Every(PROGRESS_AFTER) } else { When::Off }
}

/// Returns the value of `--busy-wait-quantum`, or of its former name after a notice.
fn busy_wait_quantum(options: &Options) -> Quantum {
    if options.spin_quantum.is_some() {
        eprintln!("spinrun: note: --spin-quantum is now called --busy-wait-quantum");
    }
    options.spin_quantum.unwrap_or(options.busy_wait_quantum)
}

fn load_machine(options: &Options, sdk: &Sdk) -> Result<CardModel, RunError> {
    let mut overrides = options.set.clone();
    overrides.extend(options.nic.map(|card| format!("nic.kind={}", NicKind::from(card).name())));
    let machine = Machine::load(&options.machine, &[sdk.home.join("machines")], &overrides)?;
    for notice in machine.notices.iter().chain(&machine.unused) {
        eprintln!("spinrun: note: {notice}");
    }
    let machine = CardModel::new(machine)?;
    let keys = options.set.iter().filter_map(|setting| setting.split_once('=')).map(|(key, _)| key.trim());
    for key in keys.filter(|key| nic::is_unused_on_cards(&machine, key)) {
        eprintln!(
            "spinrun: note: {key} decides nothing on the cards of a cluster: its engines, its path to host memory and its \
             flow control are those of [nic], [dma] and [network]"
        );
    }
    if options.profile && !nic::counts_instructions(&machine) {
        eprintln!(
            "spinrun: note: --profile counts no instructions on cards with accelerator.kind = \"pspin\"; use a machine with \
             accelerator.kind = \"sc17\", such as --machine sc17-int"
        );
    }
    Ok(machine)
}

/// Prints the reasons of a failed run, and of each failed job. Returns the exit status of each job.
fn tell_ends(world: &World, end: &End, ends: &[Option<End>], lost: &[String], plan: &Plan) -> Vec<u8> {
    let told = |(job, end): (usize, &End)| {
        // Lost messages are not known by job.
        let is_of_job =
            |node: usize| plan.jobs.is_empty() || world.seating().at(node).is_some_and(|seat| seat.job == job);
        let doubts: Vec<String> = lost.iter().cloned().chain(world.refusals().sentences(is_of_job)).collect();
        let status = tell(end, &doubts, plan, world, job);
        if let (End::RankFailed { rank, .. }, true) = (end, status > 0 && status != SKIPPED as u8)
            && let Some(refusal) = world.refusals().last(*rank)
        {
            eprintln!("spinrun:   {}'s last refused call: {refusal}", world.name(*rank));
        }
        status
    };
    if ends.is_empty() {
        return vec![told((0, end))];
    }
    // A limit of the whole run gives one message.
    let of_run = ends.contains(&None).then(|| told((0, end)));
    let own = ends.iter().enumerate().map(|(job, end)| end.as_ref().map(|end| told((job, end))));
    own.map(|status| status.or(of_run).unwrap_or(0)).collect()
}

/// Prints the reason of a failed run or job and returns its exit status. Lost messages and refused calls (`doubts`) may be the
/// cause of a deadlock.
fn tell(end: &End, doubts: &[String], plan: &Plan, world: &World, job: usize) -> u8 {
    let rank_in_job = |node: usize| world.seating().at(node).map_or(node, |seat| seat.rank);
    let program_of = |node: usize| plan.program_of(world.seating(), node);
    let moment = |at: Time| match world.is_live() {
        true => format!("{:.6} s of the run", at.as_ns_f64() / 1e9),
        false => format!("{at} of simulated time"),
    };
    // All ranks of a live run go on at the same time.
    let place = |running: usize| match world.is_live() {
        true => String::new(),
        false => format!(", in {}'s own code", world.name(running)),
    };
    match end {
        End::Finished | End::Aborted { .. } => 0,
        End::RankFailed { rank, status, at } => {
            let status = *status;
            match (status.code(), status.signal()) {
                // A skipped test prints its own report.
                (Some(code @ SKIPPED), _) => code as u8,
                (Some(code), _) => {
                    let (program, rank) = (program_of(*rank), rank_in_job(*rank));
                    eprintln!("spinrun: {program}: rank {rank} exited with status {code} at {}", moment(*at));
                    code as u8
                }
                // `spinrun … | head`
                (None, Some(libc::SIGPIPE)) if has_lost_reader() => SIGNALLED as u8 + libc::SIGPIPE as u8,
                (None, signal) => {
                    let signal = signal.unwrap_or(0);
                    let name = signal_name(signal);
                    let (program, rank) = (program_of(*rank), rank_in_job(*rank));
                    eprintln!("spinrun: {program}: rank {rank} was ended by {name} at {}", moment(*at));
                    if signal == libc::SIGBUS
                        && let Some(why) = leftovers::shortage(plan.ranks() as usize)
                    {
                        eprintln!("spinrun:   {why}");
                    }
                    (SIGNALLED + signal) as u8
                }
            }
        }
        End::BadProgram { rank, message } => {
            eprintln!("spinrun: {}: rank {}: {message}", program_of(*rank), rank_in_job(*rank));
            1
        }
        End::Deadlock { at, waits, polls } => {
            let program = plan.label(job);
            eprintln!("spinrun: {program}: deadlock at {}: nothing is under way that could go on", moment(*at));
            for line in merged(waits).iter().chain(doubts) {
                eprintln!("spinrun:   {line}");
            }
            if *polls > 0 {
                eprintln!(
                    "spinrun:   {polls} unsuccessful polls: a program that works by itself between its polls may need a larger \
                     --poll-limit"
                );
            }
            1
        }
        End::Interrupted { signal, running, at } => {
            let name = signal_name(*signal);
            eprintln!("spinrun: interrupted by {name} at {}{}", moment(*at), place(*running));
            (SIGNALLED + signal) as u8
        }
        End::OutOfTime { rank } => {
            let limit = Time::LIMIT.as_ps() / 1_000_000_000_000;
            eprintln!(
                "spinrun: {}: simulated time has reached its limit of {limit} s (2^63 ps): what comes next, at rank {}, is \
                 later",
                program_of(*rank),
                rank_in_job(*rank)
            );
            1
        }
        End::TimedOut { running, at, idle_since } => {
            let idle = idle_since.map_or(String::new(), |since| {
                format!("; nothing has been under way since {since}, and ranks have only polled")
            });
            let (program, moment, place) = (program_of(*running), moment(*at), place(*running));
            eprintln!("spinrun: {program}: time limit reached at {moment}{place}{idle}");
            TIMED_OUT
        }
    }
}

/// Returns true if standard output is a pipe without a reader.
fn has_lost_reader() -> bool {
    let mut output = libc::pollfd { fd: libc::STDOUT_FILENO, events: libc::POLLOUT, revents: 0 };
    // SAFETY: one descriptor, and a place for the result.
    unsafe { libc::poll(&raw mut output, 1, 0) == 1 && output.revents & libc::POLLERR != 0 }
}

/// Merges equal lines about ranks (the first about rank 0, and so on) into one.
fn merged(waits: &[String]) -> Vec<String> {
    let mut same: Vec<(&str, Vec<usize>)> = Vec::new();
    for (rank, wait) in waits.iter().enumerate() {
        let what = wait.strip_prefix(&format!("rank {rank} ")).unwrap_or(wait);
        match same.iter_mut().find(|(other, _)| *other == what) {
            Some((_, ranks)) => ranks.push(rank),
            None => same.push((what, vec![rank])),
        }
    }
    let lines = same.into_iter().map(|(what, ranks)| match *ranks {
        [rank] => format!("rank {rank} {what}"),
        _ => format!("each of ranks {} {what}", intervals(&ranks)),
    });
    lines.collect()
}

/// Returns numbers in ascending order as a list of intervals: "0, 2-5".
fn intervals(numbers: &[usize]) -> String {
    let list = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match *run {
        [only] => only.to_string(),
        _ => format!("{}-{}", run[0], run[run.len() - 1]),
    });
    list.collect::<Vec<_>>().join(", ")
}

fn signal_name(signal: i32) -> String {
    let known = [
        (libc::SIGHUP, "SIGHUP"),
        (libc::SIGINT, "SIGINT"),
        (libc::SIGQUIT, "SIGQUIT"),
        (libc::SIGILL, "SIGILL"),
        (libc::SIGTRAP, "SIGTRAP"),
        (libc::SIGABRT, "SIGABRT"),
        (libc::SIGBUS, "SIGBUS"),
        (libc::SIGFPE, "SIGFPE"),
        (libc::SIGKILL, "SIGKILL"),
        (libc::SIGSEGV, "SIGSEGV"),
        (libc::SIGPIPE, "SIGPIPE"),
        (libc::SIGTERM, "SIGTERM"),
        (libc::SIGXCPU, "SIGXCPU"),
        (libc::SIGXFSZ, "SIGXFSZ"),
        (libc::SIGSYS, "SIGSYS"),
    ];
    match known.iter().find(|(number, _)| *number == signal) {
        Some((number, name)) => format!("signal {number} ({name})"),
        None => format!("signal {signal}"),
    }
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_string())?;
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// Real time without a library call after which a rank is inspected; `None` for never.
#[derive(Clone, Copy, Debug)]
struct Quantum(Option<Duration>);

fn parse_quantum(text: &str) -> Result<Quantum, String> {
    match text.parse() {
        _ if text == "off" => Ok(Quantum(None)),
        Ok(milliseconds @ 1..=3_600_000) => Ok(Quantum(Some(Duration::from_millis(milliseconds)))),
        _ => Err("is a number of milliseconds from 1 on, or `off`".into()),
    }
}
