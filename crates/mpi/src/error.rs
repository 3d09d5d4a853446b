use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// What is wrong in a trace file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    place: Place,
    what: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// From the start of the file
    Byte(u64),
    /// From the start of the first record, headers of blocks left out
    RecordByte(u64),
    /// Both from 1
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

/// Why traces cannot be made into a schedule.
#[derive(Debug, Error)]
pub enum ImportError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file or folder
        path: PathBuf,
        /// Why
        error: io::Error,
    },
    /// A file is no trace, or a damaged one.
    #[error("{}:{damage}", path.display())]
    Damaged {
        /// The file
        path: PathBuf,
        /// What and where
        damage: Damage,
    },
    /// The folder does not hold one file for each rank.
    #[error("{}: {problem}", folder.display())]
    Files {
        /// The folder
        folder: PathBuf,
        /// What is wrong with it
        problem: String,
    },
    /// A call of a rank makes no sense beside the others'.
    #[error("rank {rank}: {problem}")]
    Calls {
        /// The rank
        rank: u32,
        /// What is wrong
        problem: String,
    },
    /// The schedule is too large.
    #[error(transparent)]
    Build(#[from] goal::BuildError),
    /// A collective cannot be made.
    #[error(transparent)]
    Collective(#[from] goal::generate::SpecError),
}
