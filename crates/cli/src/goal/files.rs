//! Schedules in and out.

use std::io;
use std::path::Path;

use clap::ValueEnum;
use goal::{ReadError, Schedule, binary, text};
use output::Output;

use super::GoalError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// GOAL, for people and other tools
    Text,
    /// Mapped into memory: no reading
    Binary,
}

impl Format {
    /// By the ending of a file's name.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "goal" | "txt" => Some(Format::Text),
            "bin" => Some(Format::Binary),
            _ => None,
        }
    }
}

/// What messages call a file.
pub fn named(file: &Path) -> &Path {
    if file == Path::new("-") { Path::new("<stdin>") } else { file }
}

pub fn load(file: &Path) -> Result<Schedule, ReadError> {
    if file == Path::new("-") { goal::read(&mut io::stdin().lock(), named(file)) } else { goal::open(file) }
}

pub fn save(schedule: &Schedule, path: &Path, format: Format) -> Result<(), GoalError> {
    let write = |out: &mut Output| match format {
        Format::Text => text::write(schedule, 0..schedule.ranks(), out),
        Format::Binary => binary::write(schedule, out),
    };
    output::write(path, write).map_err(GoalError::write(path))
}

/// Prints on standard output; a reader that has seen enough (`| head`) is no error.
pub fn print(write: impl FnOnce(&mut Output) -> io::Result<()>) -> Result<(), GoalError> {
    output::write(Path::new("-"), write).map_err(GoalError::write(Path::new("standard output")))
}
