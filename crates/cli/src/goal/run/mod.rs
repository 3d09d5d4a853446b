//! `spinkit goal run`: one module a model, each with options of its own and a report.

mod critical;
mod loggops;
mod nic;
mod noise;
mod packet;
mod protocol;
mod report;
mod timeline;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use goal::{RunProgress, Schedule};
use machine::Machine;
use output::Output;

use self::report::Took;
use super::{GoalError, files};
use crate::clock;
use crate::progress::{self, Task, When};
use crate::sdk::Sdk;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// What to simulate
    #[arg(long, value_enum, default_value_t = Model::Loggops)]
    model: Model,
    #[command(flatten)]
    common: Common,
    #[command(flatten)]
    loggops: loggops::Arguments,
    #[command(flatten)]
    packet: packet::Arguments,
    #[command(flatten)]
    nic: nic::Arguments,
    #[command(flatten)]
    protocol: protocol::Arguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// LogGP with CPU time a byte (O) and rendezvous above a size (S)
    Loggops,
    /// Packets that queue for the links of a network
    Packet,
    /// Cards that match messages and run handlers
    Nic,
    /// Message passing where the CPU, the card or handlers match, copy and answer (sPIN paper §5.1)
    Protocol,
}

/// What all models have.
#[derive(Debug, clap::Args)]
struct Common {
    /// The schedule
    file: PathBuf,
    /// Take parameters from this machine, a name or a TOML file; options rule
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Change a parameter of the machine, such as network.g_ns=5
    #[arg(long, value_name = "KEY=VALUE", requires = "machine")]
    set: Vec<String>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Tell on standard error how far the run is after so many seconds, or never [default: 1 on a terminal, else every 10]
    #[arg(long, value_name = "SECONDS|off", value_parser = When::parse)]
    progress: Option<When>,
}

impl Common {
    /// Does something that may take long and says how far it is.
    fn watch<T>(&self, task: &Task<'_>, work: impl FnOnce() -> T) -> (T, Duration) {
        progress::watch("spinkit goal", self.progress, task, work)
    }

    /// Writes a file; who reads what is printed knows how far it is.
    fn writing<T>(&self, file: &Path, write: impl FnOnce() -> T) -> T {
        if file == Path::new("-") { write() } else { self.slowly("writing", file, write) }
    }

    /// Does something with a file that takes time.
    fn slowly<T>(&self, what: &str, file: &Path, work: impl FnOnce() -> T) -> T {
        self.watch(&Task::Unknown(format!("{what} {}", files::named(file).display())), work).0
    }

    /// Executes a schedule and says how long that took.
    fn timed<T>(&self, schedule: &Schedule, progress: &RunProgress, execute: impl FnOnce() -> T) -> (T, Took) {
        let task = Task::Counted { done: &|| progress.operations(), all: schedule.len() as u64 };
        let ((result, took), watching) = self.watch(&task, || {
            let (cpu, clock) = (clock::of_process(), Instant::now());
            let result = execute();
            (result, Took { cpu: clock::of_process() - cpu, wall: clock.elapsed() })
        });
        (result, Took { cpu: took.cpu.saturating_sub(watching), ..took })
    }

    /// The machine, if one was named.
    fn machine(&self) -> Result<Option<Machine>, GoalError> {
        self.machine.as_deref().map(|name| self.machine_or(name)).transpose()
    }

    /// The machine that was named, or else this one.
    fn machine_or(&self, default: &str) -> Result<Machine, GoalError> {
        let name = self.machine.as_deref().unwrap_or(default);
        let machine = Machine::load(name, &[Sdk::find()?.home.join("machines")], &self.set)?;
        for notice in &machine.notices {
            eprintln!("spinkit goal: note: {notice}");
        }
        Ok(machine)
    }
}

/// The first of these options that was given.
fn first_given(options: impl IntoIterator<Item = (&'static str, bool)>) -> Option<&'static str> {
    options.into_iter().find_map(|(name, is_given)| is_given.then_some(name))
}

pub fn run(arguments: &Arguments) -> Result<(), GoalError> {
    let own = [
        (Model::Packet, "packet", arguments.packet.given()),
        (Model::Nic, "nic", arguments.nic.given()),
        (Model::Protocol, "protocol", arguments.protocol.given()),
    ];
    for (model, name, given) in own {
        if let Some(option) = given.filter(|_| arguments.model != model) {
            return Err(GoalError::Usage(format!("{option} is for --model {name}")));
        }
    }
    let (common, file) = (&arguments.common, &arguments.common.file);
    let json = common.json.as_deref();
    let output = json.map(|path| Output::create(path).map_err(GoalError::write(path))).transpose()?;
    let trace = arguments.loggops.timeline.open()?;
    let schedule = common.slowly("reading", file, || files::load(file))?;
    let report = match arguments.model {
        Model::Loggops => loggops::run(&schedule, common, &arguments.loggops, trace),
        Model::Packet => packet::run(&schedule, common, &arguments.loggops, &arguments.packet, trace),
        Model::Nic => nic::run(&schedule, common, &arguments.loggops, &arguments.nic, trace),
        Model::Protocol => protocol::run(&schedule, common, &arguments.loggops, &arguments.protocol),
    }?;
    report.deliver(&schedule, common, output)
}
