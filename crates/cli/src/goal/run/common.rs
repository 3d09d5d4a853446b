use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use goal::{RunProgress, Schedule};
use machine::Machine;

use super::super::error::{GoalError, name_of};
use crate::clock;
use crate::progress::{self, Task, When};
use crate::sdk::Sdk;

/// How long something took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    /// CPU time of this process, all threads
    pub cpu: Duration,
    /// Real time
    pub wall: Duration,
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

impl Common {
    /// Does `work`, which may take long, and shows how far it is.
    pub fn watch<T>(&self, task: &Task<'_>, work: impl FnOnce() -> T) -> (T, Duration) {
        progress::watch("spinkit goal", self.progress, task, work)
    }

    /// Writes a file with `write`, and shows that unless it is standard output.
    pub fn writing<T>(&self, file: &Path, write: impl FnOnce() -> T) -> T {
        if file == Path::new("-") { write() } else { self.slowly("writing", file, write) }
    }

    /// Does `work` with a file, which may take long.
    pub fn slowly<T>(&self, what: &str, file: &Path, work: impl FnOnce() -> T) -> T {
        self.watch(&Task::Unknown(format!("{what} {}", name_of(file).display())), work).0
    }

    /// Executes a schedule and measures how long that takes.
    pub fn timed<T>(&self, schedule: &Schedule, progress: &RunProgress, execute: impl FnOnce() -> T) -> (T, Took) {
        let task = Task::Counted { done: &|| progress.operations(), all: schedule.len() as u64 };
        let ((result, took), watching) = self.watch(&task, || {
            let (cpu, clock) = (clock::of_process(), Instant::now());
            let result = execute();
            (result, Took { cpu: clock::of_process() - cpu, wall: clock.elapsed() })
        });
        (result, Took { cpu: took.cpu.saturating_sub(watching), ..took })
    }

    /// Returns the machine that the user named, if any.
    ///
    /// # Errors
    /// When it cannot be read or has wrong parameters.
    pub fn machine(&self) -> Result<Option<Machine>, GoalError> {
        self.machine.as_deref().map(|name| self.machine_or(name)).transpose()
    }

    /// Returns the machine that the user named, or else `default`.
    ///
    /// # Errors
    /// When it cannot be read or has wrong parameters.
    pub fn machine_or(&self, default: &str) -> Result<Machine, GoalError> {
        let name = self.machine.as_deref().unwrap_or(default);
        let machine = Machine::load(name, &[Sdk::find()?.home.join("machines")], &self.set)?;
        for notice in &machine.notices {
            eprintln!("spinkit goal: note: {notice}");
        }
        Ok(machine)
    }
}
