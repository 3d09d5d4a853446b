// SPDX-License-Identifier: Apache-2.0
//! Reading of schedules in text, binary, or LogGOPSim's binary format.

#![deny(clippy::cast_possible_truncation)] // values come from input

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::binary::{self, BinaryError};
use crate::lgs::{self, LgsError, SpillError};
use crate::schedule::Schedule;
use crate::text::{self, TextError};

/// Name of text schedules in the crate `formats`.
const GOAL: &str = "a GOAL schedule in text";

/// Error when reading a schedule.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Reading failed.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// Input
        path: PathBuf,
        /// Reason
        error: io::Error,
    },
    /// The file has another format.
    #[error("{}: it is no schedule; it looks like {format}", path.display())]
    Format {
        /// File
        path: PathBuf,
        /// Name of its format
        format: &'static str,
    },
    /// The text is invalid.
    #[error("{}:{error}", path.display())]
    Text {
        /// Input
        path: PathBuf,
        /// Location and reason
        error: TextError,
    },
    /// The binary file is invalid.
    #[error("{}: {error}", path.display())]
    Binary {
        /// Input
        path: PathBuf,
        /// Reason
        error: BinaryError,
    },
    /// The binary file of LogGOPSim is invalid.
    #[error("{}: {error}", path.display())]
    Lgs {
        /// Input
        path: PathBuf,
        /// Reason
        error: SpillError,
    },
}

/// Reads a schedule from a file, text or binary.
///
/// # Errors
/// See [`ReadError`].
pub fn open(path: &Path) -> Result<Schedule, ReadError> {
    let failed = |error| ReadError::Io { path: path.to_owned(), error };
    let mut file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return read(&mut file, path);
    }
    let start = start_of(&mut file).map_err(failed)?;
    if start.starts_with(&binary::MAGIC) {
        return binary::open(path).map_err(|error| ReadError::Binary { path: path.to_owned(), error });
    }
    if start.starts_with(&lgs::MAGIC) {
        return lgs::open(path).map_err(|error| ReadError::Lgs { path: path.to_owned(), error });
    }
    read_text(&start, &mut file, path)
}

/// Reads a schedule from a stream, text or binary; errors use `name` for the stream.
///
/// # Errors
/// See [`ReadError`].
pub fn read(stream: &mut impl Read, name: &Path) -> Result<Schedule, ReadError> {
    let start = start_of(stream).map_err(|error| ReadError::Io { path: name.to_owned(), error })?;
    if let Some(rest) = start.strip_prefix(&binary::MAGIC) {
        let read = binary::read(&binary::MAGIC, &mut rest.chain(stream));
        return read.map_err(|error| ReadError::Binary { path: name.to_owned(), error });
    }
    if let Some(rest) = start.strip_prefix(&lgs::MAGIC) {
        let failed = |error: LgsError| ReadError::Lgs { path: name.to_owned(), error: error.into() };
        return lgs::read(&mut rest.chain(stream)).map_err(failed);
    }
    read_text(&start, stream, name)
}

/// Reads the first bytes, which determine the format.
fn start_of(stream: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    stream.take(formats::LENGTH as u64).read_to_end(&mut start)?;
    Ok(start)
}

fn read_text(start: &[u8], stream: &mut impl Read, name: &Path) -> Result<Schedule, ReadError> {
    let path = name.to_owned();
    match text::read_stream(&mut start.chain(stream)) {
        Err(error) => Err(ReadError::Io { path, error }),
        Ok(Ok(schedule)) => Ok(schedule),
        Ok(Err(error)) => match formats::name(start).filter(|format| *format != GOAL) {
            Some(format) => Err(ReadError::Format { path, format }),
            None => Err(ReadError::Text { path, error }),
        },
    }
}
