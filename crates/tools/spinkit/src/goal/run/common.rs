// SPDX-License-Identifier: Apache-2.0
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use goal::loggops::LogGops;
use goal::{RunProgress, Schedule};
use machine::{Machine, NetworkModel};
use sim::{Time, TimePerByte};

use super::super::error::{GoalError, name_of};
use command::clock;
use command::progress::{self, Task, When};
use command::sdk::Sdk;
use command::units::{parse_ns, parse_ns_per_byte};

/// Duration of a run.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// CPU time of this process, all threads
    pub cpu: Duration,
    /// Real time
    pub wall: Duration,
}

/// Default machine: that of the sPIN paper.
const MACHINE: &str = "sc17-int";

/// Network model that a model of execution uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Latencies without contention, whatever the machine's model is
    Latency,
    /// Links and switches, whatever the machine's model is
    Fabric,
    /// The model of the machine
    OfMachine,
}

/// Options of all models.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// The schedule; `-` is standard input
    pub file: PathBuf,
    /// Machine whose parameters are used, a name or a TOML file; options have precedence
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Change a parameter of the machine, such as network.g_ns=5
    #[arg(long, value_name = "KEY=VALUE", requires = "machine")]
    set: Vec<String>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Seconds between reports of progress on standard error [default: 1 on a terminal, else 10]
    #[arg(long, value_name = "SECONDS|off", value_parser = When::parse)]
    progress: Option<When>,
}

/// Times of a CPU and a NIC for messages.
#[derive(Debug, clap::Args)]
pub struct Costs {
    /// CPU time o for a message in ns [default: the machine's; loggops without --machine: 1500]
    #[arg(short = 'o', value_name = "NS", value_parser = parse_ns)]
    pub overhead: Option<Time>,
    /// NIC time g for a message in ns [default: the machine's; loggops without --machine: 1000]
    #[arg(short = 'g', value_name = "NS", value_parser = parse_ns)]
    pub gap: Option<Time>,
    /// NIC time G for a byte in ns [default: the machine's; loggops without --machine: 6]
    #[arg(short = 'G', value_name = "NS", value_parser = parse_ns_per_byte)]
    pub gap_per_byte: Option<TimePerByte>,
    /// CPU time O for a byte in ns [default: 0]
    #[arg(short = 'O', value_name = "NS", value_parser = parse_ns_per_byte)]
    pub overhead_per_byte: Option<TimePerByte>,
}

/// The threshold of the eager protocol.
#[derive(Debug, clap::Args)]
pub struct Eager {
    /// Size S in bytes of the largest message that does not wait for its receive
    #[arg(short = 'S', value_name = "BYTES", default_value_t = LogGops::default().eager)]
    pub eager: u64,
}

impl Common {
    /// Performs `work` and shows its progress.
    pub fn watch<T>(&self, task: &Task<'_>, work: impl FnOnce() -> T) -> (T, Duration) {
        progress::watch("spinkit goal", self.progress, task, work)
    }

    /// Writes a file with `write`, and shows progress if that takes long, unless the file is standard output.
    pub fn writing<T>(&self, file: &Path, write: impl FnOnce() -> T) -> T {
        if file == Path::new("-") { write() } else { self.slowly("writing", file, write) }
    }

    /// Performs `work` with a file, and shows progress if that takes long.
    pub fn slowly<T>(&self, what: &str, file: &Path, work: impl FnOnce() -> T) -> T {
        self.watch(&Task::Unknown(format!("{what} {}", name_of(file).display())), work).0
    }

    /// Executes a schedule and measures its duration.
    pub fn timed<T>(&self, schedule: &Schedule, progress: &RunProgress, execute: impl FnOnce() -> T) -> (T, Took) {
        let task = Task::Counted { done: &|| progress.operations(), all: schedule.len() as u64 };
        let ((result, took), watching) = self.watch(&task, || {
            let (cpu, clock) = (clock::of_process(), Instant::now());
            let result = execute();
            (result, Took { cpu: clock::of_process() - cpu, wall: clock.elapsed() })
        });
        (result, Took { cpu: took.cpu.saturating_sub(watching), ..took })
    }

    /// Returns the machine named by the user, if any.
    ///
    /// # Errors
    /// When it cannot be read or has wrong parameters.
    pub fn machine(&self, network: Network) -> Result<Option<Machine>, GoalError> {
        self.machine.is_some().then(|| self.machine_or_default(network)).transpose()
    }

    /// Returns the machine named by the user, or else that of the paper.
    ///
    /// # Errors
    /// When it cannot be read or has wrong parameters.
    pub fn machine_or_default(&self, network: Network) -> Result<Machine, GoalError> {
        let name = self.machine.as_deref().unwrap_or(MACHINE);
        let machine = Machine::load(name, &[Sdk::find()?.home.join("machines")], &self.set)?;
        if !machine.network.switch_cards.handlers.is_empty() {
            let what = "network.switch.handlers: schedules have no handlers on switches; programs have (spinrun)";
            return Err(GoalError::Usage(what.to_owned()));
        }
        let no_contention = "network.model=fabric has no effect on this model, which has no contention: use `goal run nic` \
                             or `goal run packet`";
        let unused = match network {
            Network::Fabric => None,
            Network::OfMachine => machine.unused.clone(),
            Network::Latency if machine.network.model == NetworkModel::Fabric => Some(no_contention.into()),
            Network::Latency => machine.unused.as_ref().map(|_| no_contention.replace("model=fabric", "fabric")),
        };
        let unshared = machine.host.shared_memory.then(|| {
            "host.shared_memory: a calculation of a schedule is a time, so it uses no memory that the card could wait for"
                .to_owned()
        });
        for notice in machine.notices.iter().chain(&unused).chain(&unshared) {
            eprintln!("spinkit goal: note: {notice}");
        }
        Ok(machine)
    }
}
