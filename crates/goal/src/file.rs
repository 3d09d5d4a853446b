use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::binary::{self, BinaryError};
use crate::schedule::Schedule;
use crate::text::{self, TextError};

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
    let mut start = Vec::new();
    file.by_ref().take(binary::MAGIC.len() as u64).read_to_end(&mut start).map_err(failed)?;
    if start == binary::MAGIC {
        return binary::open(path).map_err(|error| ReadError::Binary { path: path.to_owned(), error });
    }
    read_text(&mut start.chain(file), path)
}

/// Reads a schedule from a stream, text or binary; `name` is what errors call it.
///
/// # Errors
/// See [`ReadError`].
pub fn read(stream: &mut impl Read, name: &Path) -> Result<Schedule, ReadError> {
    let failed = |error| ReadError::Io { path: name.to_owned(), error };
    let mut bytes = Vec::new();
    stream.take(binary::MAGIC.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes == binary::MAGIC {
        return binary::read(&bytes, stream).map_err(|error| ReadError::Binary { path: name.to_owned(), error });
    }
    read_text(&mut bytes.chain(stream), name)
}

fn read_text(stream: &mut impl Read, name: &Path) -> Result<Schedule, ReadError> {
    let read = text::read_stream(stream).map_err(|error| ReadError::Io { path: name.to_owned(), error })?;
    read.map_err(|error| ReadError::Text { path: name.to_owned(), error })
}
