//! `spinrun -n N PROG`: to sPIN what mpirun is to MPI. N ordinary processes run the program; network, cards, handlers
//! and time are simulated.

mod drops;
mod links;
mod report;

use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Parser, ValueEnum};
use host::job::{Job, JobError, JobSpec};
use host::{End, World};
use machine::{Machine, MachineError, NicKind};
use nic::{Stats, merge_drops};
use output::Output;
use sim::Time;
use sim::trace::Trace;
use thiserror::Error;

use crate::card::Card;
use crate::progress::{self, Task, When};
use crate::sdk::{Sdk, SdkError};

/// A run of this length may well be a long one.
const PROGRESS_AFTER: Duration = Duration::from_secs(2);
/// Exit status when `--timeout` ends the run, as that of timeout(1).
const TIMED_OUT: u8 = 124;
/// A test that cannot run here exits with this (automake, meson).
const SKIPPED: i32 = 77;
/// Tells `libsimclock.so` that clocks show simulated time, too.
const SIMULATED_CLOCK: &str = "SPIN_SIMULATED_CLOCK";
/// Tells `libsimclock.so` the speed of the time-stamp counter.
const TSC_HZ: &str = "SPIN_TSC_HZ";
/// Added to a signal's number for the exit status of what it ended.
const SIGNALLED: i32 = 128;

/// Run a program as N ranks on a simulated cluster with programmable network cards.
///
/// Exit status: that of the first rank that fails (128 + signal for a crash), 0 when all end with 0, 1 for a deadlock,
/// a program that cannot run, --fail-on-drop and --fail-on-handler-error, 2 for wrong usage or a bad machine file, 124
/// after --timeout.
#[derive(Debug, Parser)]
#[command(name = "spinrun", version)]
struct Options {
    /// Number of ranks
    #[arg(short, long = "ranks", visible_alias = "np", value_name = "N", default_value_t = 1,
          value_parser = clap::value_parser!(u32).range(1..=Job::MAX_RANKS as i64))]
    n: u32,
    /// Machine to simulate: a name from `spinkit machines`, or a TOML file
    #[arg(long, value_name = "NAME|FILE", default_value = "sc17-int")]
    machine: String,
    /// Kind of network card, instead of the machine's own
    #[arg(long, value_enum)]
    nic: Option<Card>,
    /// Change a parameter of the machine, such as accelerator.hpus=8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Write the timeline for ui.perfetto.dev; `-` is standard output
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write a report of the run as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Count instructions by source line, for the report (handlers compiled with -g)
    #[arg(long, requires = "json")]
    profile: bool,
    /// End the run after this many seconds of real time
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    timeout: Option<Duration>,
    /// End with status 1 instead of 0 if a message, or a part of it, was not delivered
    #[arg(long)]
    #[arg(long_help = "End with status 1 instead of 0 if a message, or a part of it, was not delivered.\n\n\
        The run goes on to its end. spinrun warns of such messages in any case. What a handler drops by its return code \
        does not count; what a handler drops because it fails is --fail-on-handler-error's.")]
    fail_on_drop: bool,
    /// End with status 1 instead of 0 if a handler failed
    #[arg(long)]
    fail_on_handler_error: bool,
    /// Prefix each line of output with its rank
    #[arg(long)]
    tag_output: bool,
    /// Tell on standard error how far the run is after so many seconds, or never [default: 2 on a terminal, if standard
    /// output is none and the ranks' output thus elsewhere; else off]
    #[arg(long, value_name = "SECONDS|off", value_parser = When::parse)]
    progress: Option<When>,
    /// CPU time of the ranks' own code between library calls
    #[arg(long, value_name = "zero|measured:SCALE", default_value = "zero", value_parser = parse_compute)]
    compute: u64,
    /// What clock_gettime and its kin, and the time-stamp counter, tell the ranks; they sleep in simulated time with either
    #[arg(long, value_enum, default_value_t = Clock::Real)]
    clock: Clock,
    /// Look whether a rank polls its memory after so long without a library call
    #[arg(long, value_name = "MS|off", default_value = "20", value_parser = parse_quantum)]
    #[arg(long_help = "Look whether a rank polls its memory after so many milliseconds without a library call.\n\n\
        A rank that spins until a message changes its memory makes no call, so nothing would ever happen. spinrun follows \
        a silent rank for a few rounds of its loop (ptrace). If nothing but memory can end the loop, whatever it computes \
        meanwhile, it is held until that memory is written, sees it after one poll, and goes on at that simulated time. \
        If nothing is left that could write it, the run ends as a deadlock. A loop that also counts its tries, or reads \
        a clock, is held if a message may write that memory, and goes on to its limit when nothing else is left. A rank \
        that computes is left alone, and computing takes no simulated time however long it takes. A rank that has polled \
        before is looked at sooner. Where ptrace is not permitted (containers) or taken (gdb, strace) nothing is \
        inferred: the rank is taken to compute, a warning says so, and --timeout ends a run that hangs.")]
    spin_quantum: Quantum,
    /// Set an environment variable for the ranks
    #[arg(short = 'x', long = "env", value_name = "NAME=VALUE", value_parser = parse_variable)]
    env: Vec<(OsString, OsString)>,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Clock {
    /// The time of this computer
    Real,
    /// Simulated time
    Simulated,
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
    Network(#[from] net::NetError),
    #[error("{} {objection}", program.display())]
    Mpi { program: PathBuf, objection: String },
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
}

impl RunError {
    /// A file that cannot be written.
    fn write(path: &Path) -> impl FnOnce(io::Error) -> RunError {
        move |error| RunError::Write { path: path.to_owned(), error }
    }

    fn status(&self) -> u8 {
        match self {
            RunError::Machine(_) | RunError::Network(_) => 2,
            _ => 1,
        }
    }
}

/// The command.
pub fn main() -> ExitCode {
    let options = Options::parse();
    match run(&options) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("spinrun: error: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn run(options: &Options) -> Result<u8, RunError> {
    let sdk = Sdk::find()?;
    let machine = load_machine(options, &sdk)?;
    let mut env: Vec<_> = pmi_library(&sdk);
    if options.clock == Clock::Simulated {
        env.push((SIMULATED_CLOCK.into(), "1".into()));
        env.push((TSC_HZ.into(), tsc_hz().to_string().into()));
    }
    env.extend(options.env.iter().cloned()); // what the user sets comes last and rules
    let libraries = links::of(&options.program[0], &env);
    if let Some(objection) = foreign_mpi(options, &libraries) {
        return Err(RunError::Mpi { program: options.program[0].clone().into(), objection });
    }
    env.extend(lenient_sanitizer(&libraries, &env));
    let mut job = Job::new(JobSpec {
        program: options.program[0].clone(),
        args: options.program[1..].to_vec(),
        ranks: options.n as usize,
        env,
        tag_output: options.tag_output,
        preload: vec![sdk.lib_dir()?.join("libsimclock.so")],
        compute_scale_milli: options.compute,
        serve_copies: false,
        busy_wait_quantum: options.spin_quantum.0,
    })?;
    // Opened before the run, which would be lost if they could not be written.
    let report = match &options.json {
        Some(path) => Some((path, Output::create(path).map_err(RunError::write(path))?)),
        None => None,
    };
    let trace = match &options.trace {
        Some(path) => Trace::to_file(path).map_err(RunError::write(path))?,
        None => Trace::off(),
    };
    job.set_deadline(options.timeout.map(|limit| Instant::now() + limit));
    let warn = Box::new(|message: &str| progress::say(&format!("spinrun: warning: {message}")));
    let mut world = World::new(machine, job, trace, warn)?;
    if options.profile {
        world.set_profiling();
    }
    let reached = world.progress();
    let task = Task::Simulated { now: &|| reached.now(), events: &|| reached.events() };
    let when = options.progress.unwrap_or_else(|| progress_by_default(options));
    let end = progress::watch("spinrun", Some(when), &task, || world.run()).0?;
    for (message, count) in world.repeated_warnings() {
        eprintln!("spinrun: warning: ({count} times) {message}");
    }
    if end == End::Finished && options.n > 1 && !world.has_heard_ranks() {
        let (program, n) = (options.program[0].to_string_lossy(), options.n);
        eprintln!(
            "spinrun: warning: no rank has used Portals or PMI: {n} copies of {program} have run, each by itself (for MPI \
             programs see docs/mpi.md)"
        );
    }
    let cards: Vec<Stats> = world.card_stats().collect();
    let flow_control = cards.iter().map(|card| card.flow_control).sum();
    let lost = drops::sentences(&merge_drops(cards.iter().map(|card| &card.drops)), flow_control);
    if !matches!(end, End::Deadlock { .. }) {
        lost.iter().for_each(|sentence| eprintln!("spinrun: warning: {sentence}"));
    }
    let status = match tell(&end, &lost, &options.program[0]) {
        0 => judge(options, &lost, &cards),
        status => status,
    };
    if let Some((path, output)) = report {
        let text = report::json(&world, &end, options.profile);
        output::complete(output, path, |out| out.write_all(text.as_bytes())).map_err(RunError::write(path))?;
    }
    if let Some(path) = &options.trace {
        world.finish_trace().map_err(RunError::write(path))?;
    }
    Ok(status)
}

/// Speed of the simulated time-stamp counter: the one that the kernel names for this machine's first CPU, by which programs
/// convert ticks into time; without one, a tick a nanosecond.
fn tsc_hz() -> u64 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let speed = text.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split_once(':')?.1.trim().parse().ok());
    let speed = speed.filter(|mhz: &f64| (1.0..1e6).contains(mhz));
    speed.map_or(1_000_000_000, |mhz| (mhz * 1e6).round() as u64)
}

/// The exit status of a run that has ended well, by what the options demand of it.
fn judge(options: &Options, lost: &[String], cards: &[Stats]) -> u8 {
    let program = options.program[0].to_string_lossy();
    let errors: u64 = cards.iter().flat_map(|card| card.handlers.values()).map(|handler| handler.errors).sum();
    let is_lossy = options.fail_on_drop && !lost.is_empty();
    let has_failed = options.fail_on_handler_error && errors > 0;
    if is_lossy {
        eprintln!("spinrun: {program}: the run fails because messages were dropped (--fail-on-drop)");
    }
    if has_failed {
        eprintln!("spinrun: {program}: the run fails because handlers failed: {errors} (--fail-on-handler-error)");
    }
    u8::from(is_lossy || has_failed)
}

/// What makes programs find `libpmi.so` that load one, as Open MPI 4 does by its component for Flux. A job has a number
/// there, which ranks of jobs that run at the same time use for files.
fn pmi_library(sdk: &Sdk) -> Vec<(OsString, OsString)> {
    let library = sdk.lib_dir().map(|folder| folder.join("libpmi.so")).ok().filter(|library| library.is_file());
    let job = || std::process::id().to_string().into();
    library.map_or(Vec::new(), |library| {
        vec![("FLUX_PMI_LIBRARY_PATH".into(), library.into()), ("FLUX_JOB_ID".into(), job())]
    })
}

/// Why the program's MPI lets a job of several ranks not work, when it links one of that kind.
fn foreign_mpi(options: &Options, libraries: &[PathBuf]) -> Option<String> {
    if options.n == 1 {
        return None;
    }
    let variable = |name: &str| {
        let given = options.env.iter().rev().find(|(given, _)| given == name).map(|(_, value)| value.clone());
        given.or_else(|| std::env::var_os(name))?.into_string().ok()
    };
    host::mpi::objection(libraries.iter().map(PathBuf::as_path), variable)
}

/// Lets GCC's address sanitizer, which wants to be the first of all libraries, come behind `libsimclock.so`.
fn lenient_sanitizer(libraries: &[PathBuf], env: &[(OsString, OsString)]) -> Option<(OsString, OsString)> {
    const OPTIONS: &str = "ASAN_OPTIONS";
    let is_sanitizer = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_bytes().starts_with(b"libasan.so"));
    if !libraries.iter().any(is_sanitizer) {
        return None;
    }
    let given = env.iter().rev().find(|(name, _)| name == OPTIONS).map(|(_, value)| value.clone());
    let mut value = given.or_else(|| std::env::var_os(OPTIONS)).unwrap_or_default();
    value.push(":verify_asan_link_order=0");
    Some((OPTIONS.into(), value))
}

/// A line that changes would garble the ranks' output on the same terminal, and lines that stay are not the ranks'.
fn progress_by_default(options: &Options) -> When {
    let is_apart = io::stderr().is_terminal() && !io::stdout().is_terminal() && !options.tag_output;
    if is_apart { When::Every(PROGRESS_AFTER) } else { When::Off }
}

fn load_machine(options: &Options, sdk: &Sdk) -> Result<Machine, MachineError> {
    let mut overrides = options.set.clone();
    overrides.extend(options.nic.map(|card| format!("nic.kind={}", NicKind::from(card).name())));
    let machine = Machine::load(&options.machine, &[sdk.home.join("machines")], &overrides)?;
    for notice in &machine.notices {
        eprintln!("spinrun: note: {notice}");
    }
    Ok(machine)
}

/// Says on standard error why a run has failed; its exit status. A deadlock may come from messages that were `lost`.
fn tell(end: &End, lost: &[String], program: &OsString) -> u8 {
    let program = program.to_string_lossy();
    match end {
        End::Finished => 0,
        End::RankFailed { rank, status, at } => {
            let status = *status;
            match (status.code(), status.signal()) {
                // The test's own word for it; a test suite shows what else it said.
                (Some(code @ SKIPPED), _) => code as u8,
                (Some(code), _) => {
                    eprintln!("spinrun: {program}: rank {rank} exited with status {code} at {at} of simulated time");
                    code as u8
                }
                (None, signal) => {
                    let signal = signal.unwrap_or(0);
                    let name = signal_name(signal);
                    eprintln!("spinrun: {program}: rank {rank} was ended by {name} at {at} of simulated time");
                    (SIGNALLED + signal) as u8
                }
            }
        }
        End::BadProgram { rank, message } => {
            eprintln!("spinrun: {program}: rank {rank}: {message}");
            1
        }
        End::Deadlock { at, waits } => {
            eprintln!("spinrun: {program}: deadlock at {at} of simulated time: nothing is under way that could go on");
            for line in waits.iter().chain(lost) {
                eprintln!("spinrun:   {line}");
            }
            1
        }
        End::Interrupted { signal, running, at } => {
            let name = signal_name(*signal);
            eprintln!("spinrun: interrupted by {name} at {at} of simulated time, in rank {running}'s own code");
            (SIGNALLED + signal) as u8
        }
        End::OutOfTime { rank } => {
            let limit = Time::LIMIT.as_ps() / 1_000_000_000_000;
            eprintln!(
                "spinrun: {program}: simulated time has reached its limit of {limit} s (2^63 ps): what comes next, at rank \
                 {rank}, is later"
            );
            1
        }
        End::TimedOut { running, at } => {
            eprintln!("spinrun: {program}: time limit reached at {at} of simulated time, in rank {running}'s own code");
            TIMED_OUT
        }
    }
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

/// Simulated picoseconds for 1000 nanoseconds of CPU time.
fn parse_compute(text: &str) -> Result<u64, String> {
    if text == "zero" {
        return Ok(0);
    }
    let scale = text.strip_prefix("measured:").ok_or("is `zero` or `measured:SCALE`")?;
    let scale: f64 = scale.parse().map_err(|_| format!("the scale is a number, not `{scale}`"))?;
    if !(1e-6..=1e6).contains(&scale) {
        return Err(format!("the scale is between 0.000001 and 1000000, not {scale}"));
    }
    Ok((scale * 1e6).round() as u64)
}

/// After how much silence to look at a rank, if ever.
#[derive(Clone, Copy, Debug)]
struct Quantum(Option<Duration>);

fn parse_quantum(text: &str) -> Result<Quantum, String> {
    match text.parse() {
        _ if text == "off" => Ok(Quantum(None)),
        Ok(milliseconds @ 1..=3_600_000) => Ok(Quantum(Some(Duration::from_millis(milliseconds)))),
        _ => Err("is a number of milliseconds from 1 on, or `off`".into()),
    }
}

fn parse_variable(text: &str) -> Result<(OsString, OsString), String> {
    let (name, value) = text.split_once('=').ok_or("is NAME=VALUE")?;
    Ok((name.into(), value.into()))
}
