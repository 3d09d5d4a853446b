//! `spinkit goal`: reads, makes, converts and executes GOAL schedules.

mod files;
mod generate;
mod import;
mod run;
mod stats;
mod units;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use goal::loggops::{LogGops, Options, run as execute};
use goal::{ReadError, Schedule, text};
use machine::MachineError;
use thiserror::Error;

use crate::sdk::SdkError;
use files::Format;

/// GOAL schedules: what each rank of a parallel program sends, receives and computes.
///
/// FILE may be text or binary, and `-` is standard input. Exit status: 1 when a schedule is wrong, cannot finish or
/// cannot be read, 2 for wrong usage or a bad machine file.
#[derive(Debug, Parser)]
#[command(name = "spinkit goal", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Execute a schedule
    Run(Box<run::Arguments>),
    /// Check a schedule: that it can be read, that it finishes, and that all messages are received
    Check {
        /// The schedule
        file: PathBuf,
    },
    /// Count operations, messages, bytes and dependencies
    Stats(stats::Arguments),
    /// Convert between text and binary
    Convert {
        /// The schedule
        file: PathBuf,
        /// What to write, or `-`
        out: PathBuf,
        /// Form to write [default: by the ending of OUT: .goal and .txt are text, .bin is binary]
        #[arg(long, value_enum)]
        format: Option<Format>,
    },
    /// Make the schedule of a collective operation or of a pattern of applications
    Gen(generate::Arguments),
    /// Make a schedule of the traces of an MPI program
    Import(import::Arguments),
    /// Print a schedule as text
    Show {
        /// The schedule
        file: PathBuf,
        /// Only this rank; may be given several times
        #[arg(long)]
        rank: Vec<u32>,
    },
}

#[derive(Debug, Error)]
enum GoalError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("{}: {error}", file.display())]
    Run { file: PathBuf, error: Box<dyn Error> },
    #[error("{}: {}", file.display(), lost(schedule_lines))]
    Lost { file: PathBuf, schedule_lines: Vec<String> },
    #[error(transparent)]
    Import(#[from] mpi::ImportError),
    #[error("{}: {reason}", file.display())]
    Device { file: PathBuf, reason: String },
    #[error(transparent)]
    Sdk(#[from] SdkError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Network(#[from] net::NetError),
    #[error(transparent)]
    Spec(#[from] goal::generate::SpecError),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error("{0}")]
    Usage(String),
}

fn lost(messages: &[String]) -> String {
    format!("{} messages are never received:\n  {}", messages.len(), messages.join("\n  "))
}

impl GoalError {
    /// A run that failed, whatever the model.
    fn run(file: &Path, error: impl Error + 'static) -> GoalError {
        GoalError::Run { file: files::named(file).to_owned(), error: Box::new(error) }
    }

    /// A file that cannot be written.
    fn write(path: &Path) -> impl FnOnce(std::io::Error) -> GoalError {
        move |error| GoalError::Write { path: path.to_owned(), error }
    }

    fn status(&self) -> u8 {
        match self {
            GoalError::Machine(_) | GoalError::Network(_) | GoalError::Spec(_) | GoalError::Usage(_) => 2,
            _ => 1,
        }
    }
}

/// The command.
pub fn main() -> ExitCode {
    match dispatch(Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("spinkit goal: error: {error}");
            ExitCode::from(error.status())
        }
    }
}

fn dispatch(command: Command) -> Result<(), GoalError> {
    match command {
        Command::Run(arguments) => run::run(&arguments),
        Command::Check { file } => check(file),
        Command::Stats(arguments) => stats::run(&arguments),
        Command::Convert { file, out, format } => {
            let Some(format) = format.or_else(|| Format::of(&out)) else {
                return Err(GoalError::Usage(format!("{}: say --format text or --format binary", out.display())));
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
    println!("{}: {} ranks, {} operations: ok", file.display(), schedule.ranks(), schedule.len());
    Ok(())
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
