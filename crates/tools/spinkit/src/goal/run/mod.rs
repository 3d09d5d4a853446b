// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal run`: one subcommand and one module for each model, with its own options and report.

mod common;
mod critical;
mod legacy;
mod loggops;
mod nic;
mod packet;
mod protocol;
mod report;
mod timeline;

use clap::Subcommand;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use output::Output;
use sim::trace::Trace;

use super::error::GoalError;
use super::files;
pub use legacy::with_model_as_subcommand;

#[derive(Debug, Subcommand)]
pub enum Model {
    /// LogGP with CPU time for each byte (O) and rendezvous above a size (S)
    ///
    /// The parameters are those of LogGOPSim unless a machine is named.
    Loggops(Box<loggops::Arguments>),
    /// Packets that queue for the links of a network
    ///
    /// The machine is sc17-int unless another is named.
    Packet(Box<packet::Arguments>),
    /// Message passing where the CPU, the card or handlers match, copy and answer (sPIN paper §5.1)
    ///
    /// The machine is sc17-int unless another is named.
    Protocol(Box<protocol::Arguments>),
    /// Cards that match messages and run handlers
    ///
    /// The machine is sc17-int unless another is named. Its parameters are changed with --machine and --set.
    Nic(Box<nic::Arguments>),
}

/// Returns the models that have the unexpected option of an error, if any. `run` is the command.
pub fn models_with(run: &clap::Command, error: &clap::Error) -> Option<String> {
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else { return None };
    let has = |argument: &clap::Arg| match option.strip_prefix("--") {
        Some(long) => argument.get_long() == Some(long),
        None => argument.get_short().is_some_and(|short| option.strip_prefix('-') == Some(short.to_string().as_str())),
    };
    let models = run.get_subcommands().filter(|model| model.get_arguments().any(has));
    let models: Vec<String> = models.map(|model| format!("'spinkit goal run {}'", model.get_name())).collect();
    let is_unexpected = error.kind() == ErrorKind::UnknownArgument && !models.is_empty();
    is_unexpected.then(|| format!("'{option}' is an option of {}", models.join(", ")))
}

/// Executes the command.
pub fn run(model: &Model) -> Result<(), GoalError> {
    let (common, trace) = match model {
        Model::Loggops(arguments) => (&arguments.common, arguments.timeline.file()),
        Model::Packet(arguments) => (&arguments.common, arguments.timeline.file()),
        Model::Protocol(arguments) => (&arguments.common, None),
        Model::Nic(arguments) => (&arguments.common, arguments.trace.as_deref()),
    };
    // Detect files that cannot be written before the run.
    let json = common.json.as_deref();
    let output = json.map(|path| Output::create(path).map_err(GoalError::write(path))).transpose()?;
    let trace = match trace {
        Some(path) => Trace::to_file(path).map_err(GoalError::write(path))?,
        None => Trace::off(),
    };
    let schedule = common.slowly("reading", &common.file, || files::load(&common.file))?;
    let report = match model {
        Model::Loggops(arguments) => loggops::run(&schedule, arguments, trace),
        Model::Packet(arguments) => packet::run(&schedule, arguments, trace),
        Model::Protocol(arguments) => protocol::run(&schedule, arguments),
        Model::Nic(arguments) => nic::run(&schedule, arguments, trace),
    }?;
    report.deliver(&schedule, common, output)
}
