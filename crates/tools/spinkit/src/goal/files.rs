// SPDX-License-Identifier: Apache-2.0
//! Reading and writing of schedules.

use std::io;
use std::path::Path;

use clap::ValueEnum;
use goal::lgs::{self, LgsWriteError};
use goal::{ReadError, Schedule, binary, text};
use output::Output;

use super::error::{GoalError, name_of};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// GOAL, which people and other tools can read
    Text,
    /// For spinkit alone: the file is mapped into memory
    Binary,
    /// The binary form of LogGOPSim and ATLAHS, as their txt2bin writes it
    Lgs,
}

impl Format {
    /// Returns the format for the suffix of a file's name.
    pub fn of(path: &Path) -> Option<Format> {
        match path.extension()?.to_str()? {
            "goal" | "txt" => Some(Format::Text),
            "bin" => Some(Format::Binary),
            _ => None,
        }
    }
}

/// Reads a schedule; `-` is standard input.
pub fn load(file: &Path) -> Result<Schedule, ReadError> {
    if file == Path::new("-") { goal::read(&mut io::stdin().lock(), name_of(file)) } else { goal::open(file) }
}

/// Writes a schedule; `-` is standard output.
pub fn save(schedule: &Schedule, path: &Path, format: Format) -> Result<(), GoalError> {
    let mut impossible = None;
    let write = |out: &mut Output| match format {
        Format::Text => text::write(schedule, 0..schedule.ranks(), out),
        Format::Binary => binary::write(schedule, out),
        Format::Lgs => lgs::write(schedule, out).map_err(|error| match error {
            LgsWriteError::Io(error) => error,
            error => {
                impossible = Some(error);
                io::ErrorKind::Unsupported.into()
            }
        }),
    };
    let written = output::write(path, write).map_err(GoalError::write(path));
    impossible.map_or(written, |error| Err(error.into()))
}

/// Prints on standard output. A reader that stops reading, such as `head`, causes no error.
pub fn print(write: impl FnOnce(&mut Output) -> io::Result<()>) -> Result<(), GoalError> {
    output::write(Path::new("-"), write).map_err(GoalError::write(Path::new("standard output")))
}
