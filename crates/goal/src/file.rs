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
    let mut start = [0; binary::MAGIC.len()];
    let is_binary = file.read_exact(&mut start).is_ok() && start == binary::MAGIC;
    if is_binary {
        return binary::open(path).map_err(|error| ReadError::Binary { path: path.to_owned(), error });
    }
    // SAFETY: bytes that another program changes meanwhile are at worst read as another text: the reader looks at each
    // place through a checked slice of plain bytes.
    let map = unsafe { memmap2::Mmap::map(&file) }.map_err(failed)?;
    text::read(&map).map_err(|error| ReadError::Text { path: path.to_owned(), error })
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
    stream.read_to_end(&mut bytes).map_err(failed)?;
    text::read(&bytes).map_err(|error| ReadError::Text { path: name.to_owned(), error })
}
