// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal`: reads, generates, converts and executes GOAL schedules.

mod error;
mod files;
mod generate;
mod import;
mod run;
mod stats;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory, Parser, Subcommand};
use goal::loggops::{LogGops, Options, run as execute};
use goal::{Schedule, text};

use error::GoalError;
use files::Format;

/// GOAL schedules: the sends, receives and computations of each rank of a parallel program.
///
/// FILE may be text, binary, or a binary file of LogGOPSim and ATLAHS, and `-` is standard input. Exit status: 1 when a schedule is wrong, cannot finish or
/// cannot be read, 2 for wrong usage or a bad machine file.
#[derive(Debug, Parser)]
#[command(name = "spinkit goal", bin_name = "spinkit goal", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Execute a schedule in a model
    #[command(subcommand)]
    Run(run::Model),
    /// Check that a schedule can be read, that it finishes, and that all messages are received
    Check {
        /// The schedule
        file: PathBuf,
    },
    /// Count operations, messages, bytes and dependencies
    Stats(stats::Arguments),
    /// Convert between text, binary, and the binary form of LogGOPSim
    Convert {
        /// The schedule
        file: PathBuf,
        /// The file to write, or `-` for standard output
        out: PathBuf,
        /// Format to write [default: by the ending of OUT: .goal and .txt are text, .bin is binary]
        #[arg(long, visible_alias = "to", value_enum)]
        format: Option<Format>,
    },
    /// Generate the schedule of a collective operation or of an application's communication pattern
    Gen(generate::Arguments),
    /// Make a schedule from the traces of an MPI program
    Import(import::Arguments),
    /// Print a schedule as text
    Show {
        /// The schedule
        file: PathBuf,
        /// Print only this rank; may be given several times
        #[arg(long)]
        rank: Vec<u32>,
    },
}

/// Describes the command line of `spinkit goal`.
pub fn command() -> clap::Command {
    Arguments::command()
}

/// Runs the command.
pub fn main() -> ExitCode {
    let arguments = run::with_model_as_subcommand(std::env::args_os().collect());
    let done = arguments.and_then(|arguments| dispatch(parse(arguments).command));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spinkit goal: error: {error}");
            ExitCode::from(error.status())
        }
    }
}

/// Parses the command line, or ends the process with a message.
fn parse(arguments: Vec<OsString>) -> Arguments {
    Arguments::try_parse_from(arguments).unwrap_or_else(|mut error| {
        let command = Arguments::command();
        if let Some(tip) = command.find_subcommand("run").and_then(|run| run::models_with(run, &error)) {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        error.exit()
    })
}

fn dispatch(command: Command) -> Result<(), GoalError> {
    match command {
        Command::Run(model) => run::run(&model),
        Command::Check { file } => check(file),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Convert { file, out, format } => {
            let Some(format) = format.or_else(|| Format::of(&out)) else {
                return Err(GoalError::Usage(format!("{}: say --format text, binary or lgs", out.display())));
            };
            files::save(&files::load(&file)?, &out, format)
        }
        Command::Gen(arguments) => generate::run(&arguments),
        Command::Import(arguments) => import::run(arguments),
        Command::Show { file, rank } => show(&files::load(&file)?, rank),
    }
}

fn check(file: PathBuf) -> Result<(), GoalError> {
    let schedule = files::load(&file)?;
    let outcome = match execute(&schedule, &LogGops::default(), &Options::default()) {
        Ok(outcome) => outcome,
        Err(error) => return Err(GoalError::run(&file, error)),
    };
    if !outcome.unreceived.is_empty() {
        let schedule_lines = outcome.unreceived.iter().map(|&op| schedule.describe(op).to_string()).collect();
        return Err(GoalError::Lost { file, schedule_lines });
    }
    files::print(|out| {
        writeln!(out, "{}: {} ranks, {} operations: ok", file.display(), schedule.ranks(), schedule.len())
    })
}

fn show(schedule: &Schedule, ranks: Vec<u32>) -> Result<(), GoalError> {
    if let Some(rank) = ranks.iter().find(|&&rank| rank >= schedule.ranks()) {
        return Err(GoalError::Usage(format!("rank {rank} does not exist: there are {}", schedule.ranks())));
    }
    files::print(|out| match ranks.is_empty() {
        true => text::write(schedule, 0..schedule.ranks(), out),
        false => text::write(schedule, ranks.into_iter(), out),
    })
}
