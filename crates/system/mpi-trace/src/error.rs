use std::fmt;
use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// The damage of a trace file, and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    place: Place,
    what: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    /// The offset from the start of the file in bytes.
    Byte(u64),
    /// The offset from the start of the first record in bytes, without the headers of blocks.
    RecordByte(u64),
    /// The line and the field, both counted from 1.
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

/// The reason why traces cannot be converted to a schedule.
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
    /// A call of a rank does not fit to the calls of other ranks.
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
