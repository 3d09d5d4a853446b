// SPDX-License-Identifier: Apache-2.0
//! Errors of reading and converting traces.

use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Damage of a trace file, and its location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    place: Place,
    what: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// Byte offset from the start of the file.
    Byte(u64),
    /// Byte offset from the start of the first record, without block headers.
    RecordByte(u64),
    /// Line and field, both counted from 1.
    Line { line: u64, column: u64 },
}

impl Damage {
    pub(crate) fn at_byte(byte: u64, what: &str) -> Damage {
        Damage { place: Place::Byte(byte), what: what.into() }
    }

    pub(crate) fn at_record_byte(byte: u64, what: String) -> Damage {
        Damage { place: Place::RecordByte(byte), what }
    }

    pub(crate) fn at_line(line: u64, column: u64, what: String) -> Damage {
        Damage { place: Place::Line { line, column }, what }
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Byte(byte) => write!(f, "byte {byte}: {}", self.what),
            Place::RecordByte(byte) => write!(f, "byte {byte} of the records: {}", self.what),
            Place::Line { line, column } => write!(f, "{line}:{column}: {}", self.what),
        }
    }
}

/// Error of a conversion to a schedule.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// File or folder
        path: PathBuf,
        /// Reason
        error: io::Error,
    },
    /// A file is no trace, or a damaged one.
    #[error("{}:{damage}", path.display())]
    Damaged {
        /// File
        path: PathBuf,
        /// Damage and its location
        damage: Damage,
    },
    /// The folder does not contain one file for each rank.
    #[error("{}: {problem}", folder.display())]
    Files {
        /// Folder
        folder: PathBuf,
        /// Problem
        problem: String,
    },
    /// A rank's calls contradict those of other ranks.
    #[error("rank {rank}: {problem}")]
    Calls {
        /// Rank
        rank: u32,
        /// Problem
        problem: String,
    },
    /// The schedule is too large.
    #[error(transparent)]
    Build(#[from] goal::BuildError),
    /// A collective cannot be generated.
    #[error(transparent)]
    Collective(#[from] goal::generate::SpecError),
}
