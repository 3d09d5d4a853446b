//! `spinkit goal run`: one module a model, each with options of its own and a report.

mod loggops;
mod report;

use std::path::PathBuf;

use clap::ValueEnum;
use machine::Machine;

use super::{GoalError, files};
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
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// LogGP with CPU time a byte (O) and rendezvous above a size (S)
    Loggops,
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
}

impl Common {
    /// The machine, if one was named.
    fn machine(&self) -> Result<Option<Machine>, GoalError> {
        let Some(name) = &self.machine else { return Ok(None) };
        Ok(Some(Machine::load(name, &[Sdk::find()?.home.join("machines")], &self.set)?))
    }
}

pub fn run(arguments: &Arguments) -> Result<(), GoalError> {
    let schedule = files::load(&arguments.common.file)?;
    let report = match arguments.model {
        Model::Loggops => loggops::run(&schedule, &arguments.common, &arguments.loggops),
    }?;
    report.deliver(&schedule, arguments.common.json.as_deref())
}
