use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::binary::{self, BinaryError};
use crate::schedule::Schedule;
use crate::text::{self, TextError};

/// The name of text schedules among the formats of files.
const GOAL: &str = "a GOAL schedule in text";

/// Why a schedule cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// Reading failed.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// What was read
        path: PathBuf,
        /// Why
        error: io::Error,
    },
    /// It is a file of another kind.
    #[error("{}: it is no schedule; it looks like {format}", path.display())]
    Format {
        /// The file
        path: PathBuf,
        /// The name of its format
        format: &'static str,
    },
    /// The text is wrong.
    #[error("{}:{error}", path.display())]
    Text {
        /// What was read
        path: PathBuf,
        /// Where and why
        error: TextError,
    },
    /// The binary file is wrong.
    #[error("{}: {error}", path.display())]
    Binary {
        /// What was read
        path: PathBuf,
        /// Why
        error: BinaryError,
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
    read_text(&start, &mut file, path)
}

/// Reads a schedule from a stream, text or binary; `name` is what errors call it.
///
/// # Errors
/// See [`ReadError`].
pub fn read(stream: &mut impl Read, name: &Path) -> Result<Schedule, ReadError> {
    let start = start_of(stream).map_err(|error| ReadError::Io { path: name.to_owned(), error })?;
    if let Some(rest) = start.strip_prefix(&binary::MAGIC) {
        let read = binary::read(&binary::MAGIC, &mut rest.chain(stream));
        return read.map_err(|error| ReadError::Binary { path: name.to_owned(), error });
    }
    read_text(&start, stream, name)
}

/// The first bytes, by which formats are known.
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
