// SPDX-License-Identifier: Apache-2.0
//! `spinkit machines`: lists machines and shows their parameters.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use machine::{Assumption, Machine, MachineError, Plausible, Sourced};
use output::Output;
use serde::Serialize;
use thiserror::Error;

use command::sdk::{Sdk, SdkError};

/// List the machines that come with spinkit, or show the parameters of some.
///
/// Exit status: 2 for wrong usage or a bad machine file.
#[derive(Debug, Parser)]
#[command(name = "spinkit machines", bin_name = "spinkit machines", version)]
struct Arguments {
    /// Machines to show: a name, or a TOML file [default: list all]
    names: Vec<String>,
    /// Change a parameter, such as accelerator.hpus=8
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print all parameters, with units and sources, as JSON
    #[arg(long)]
    json: bool,
    /// Write the packages of SystemVerilog with which the hardware of one machine is built
    #[arg(long, requires = "output", conflicts_with = "json")]
    systemverilog: bool,
    /// Folder for the packages; it is made if it is missing
    #[arg(short, long, value_name = "FOLDER", requires = "systemverilog")]
    output: Option<PathBuf>,
}

#[derive(Debug, Error)]
enum Error {
    #[error(transparent)]
    Sdk(#[from] SdkError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error("standard output: {0}")]
    Output(#[from] io::Error),
    #[error("--systemverilog is for one machine")]
    OneMachine,
    #[error("{0} has no PsPIN unit, and so no hardware")]
    NoHardware(String),
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// Machine in JSON.
#[derive(Serialize)]
struct Description {
    name: String,
    description: String,
    /// File of the machine, and those that it is based on.
    files: Vec<PathBuf>,
    /// Parameters in the order of the sections.
    parameters: Vec<Parameter>,
}

#[derive(Serialize)]
struct Parameter {
    key: &'static str,
    /// Value as in a machine file, without quotes.
    value: String,
    unit: &'static str,
    /// Comment beside or above the value in its file, or the option that sets it; "assumed" for an assumption.
    source: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    assumed: Option<Assumed>,
}

/// Assumption in JSON: other plausible values, and the reason.
#[derive(Serialize)]
struct Assumed {
    /// Least and greatest value; present unless `values` is. All values are written as in a machine file, without
    /// quotes.
    #[serde(skip_serializing_if = "Option::is_none")]
    range: Option<[String; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    values: Option<Vec<String>>,
    reason: String,
    /// Sentence or number of a source that the value should reproduce.
    #[serde(skip_serializing_if = "Option::is_none")]
    anchor: Option<String>,
    /// "12 to 102", or "max, sum".
    #[serde(skip)]
    plausible: String,
}

impl From<Assumption> for Assumed {
    fn from(Assumption { plausible, reason, anchor }: Assumption) -> Assumed {
        let text = plausible.to_string();
        let (range, values) = match plausible {
            Plausible::Range(least, most) => (Some([least, most]), None),
            Plausible::Values(values) => (None, Some(values)),
        };
        Assumed { range, values, reason, anchor, plausible: text }
    }
}

impl From<Sourced> for Description {
    fn from(sourced: Sourced) -> Description {
        let Sourced { machine, files, sources, mut assumed } = sourced;
        let mut parameter = |(key, value, unit)| {
            let assumed = assumed.remove(key).map(Assumed::from);
            let usual = if assumed.is_some() { "assumed" } else { "" };
            let source = sources.get(key).cloned().unwrap_or_else(|| usual.to_owned());
            Parameter { key, value, unit, source, assumed }
        };
        let parameters = machine.describe().into_iter().map(&mut parameter).collect();
        Description { parameters, name: machine.name, description: machine.description, files }
    }
}

/// Describes the command line of `spinkit machines`.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Error::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spinkit machines: error: {error}");
            let is_wrong_usage = matches!(error, Error::Machine(_) | Error::OneMachine | Error::NoHardware(_));
            ExitCode::from(if is_wrong_usage { 2 } else { 1 })
        }
    }
}

fn run(arguments: &Arguments) -> Result<(), Error> {
    let search = [Sdk::find()?.home.join("machines")];
    let names = if arguments.names.is_empty() { Machine::names(&search) } else { arguments.names.clone() };
    let mut machines = Vec::new();
    for name in &names {
        let sourced = Machine::load_with_sources(name, &search, &arguments.set)?;
        for notice in sourced.machine.notices.iter().chain(&sourced.machine.unused) {
            eprintln!("spinkit machines: note: {notice}");
        }
        if let Some(folder) = &arguments.output {
            return match arguments.names.len() {
                1 => write_systemverilog(&sourced.machine, folder),
                _ => Err(Error::OneMachine),
            };
        }
        machines.push(Description::from(sourced));
    }
    let mut out = io::stdout().lock();
    if arguments.json {
        serde_json::to_writer_pretty(&mut out, &machines).map_err(io::Error::from)?;
        writeln!(out)?;
    } else if arguments.names.is_empty() {
        let width = names.iter().map(String::len).max().unwrap_or(0);
        for Description { name, description, .. } in &machines {
            writeln!(out, "{name:width$}  {description}")?;
        }
    } else {
        for (index, machine) in machines.iter().enumerate() {
            writeln!(out, "{}{}: {}", if index == 0 { "" } else { "\n" }, machine.name, machine.description)?;
            show(machine, &mut out)?;
        }
    }
    out.flush()?;
    Ok(())
}

/// Writes the packages of the machine's hardware.
fn write_systemverilog(machine: &Machine, folder: &Path) -> Result<(), Error> {
    let files = machine.systemverilog().ok_or_else(|| Error::NoHardware(machine.name.clone()))?;
    let failed = |path: &Path| {
        let path = path.to_owned();
        |source| Error::Write { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    for (name, text) in files {
        let path = folder.join(name);
        let write = || {
            let mut file = Output::create(&path)?;
            file.write_all(text.as_bytes())?;
            file.finish()
        };
        write().map_err(failed(&path))?;
    }
    Ok(())
}

/// Writes a line for each parameter: key, value with its unit, source or assumption.
fn show(machine: &Description, out: &mut impl Write) -> io::Result<()> {
    let value = |row: &Parameter| format!("{} {}", row.value, row.unit).trim_end().to_owned();
    let keys = machine.parameters.iter().map(|row| row.key.len()).max().unwrap_or(0);
    let values = machine.parameters.iter().map(|row| value(row).len()).max().unwrap_or(0);
    for row in &machine.parameters {
        let mut line = format!("  {:keys$}  {:values$}  {}", row.key, value(row), row.source);
        if let Some(Assumed { plausible, reason, anchor, .. }) = &row.assumed {
            let anchor = anchor.as_ref().map(|anchor| format!(" ({anchor})")).unwrap_or_default();
            line += &format!("; plausible: {plausible}; {reason}{anchor}");
        }
        writeln!(out, "{}", line.trim_end())?;
    }
    Ok(())
}
