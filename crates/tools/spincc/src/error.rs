// SPDX-License-Identifier: Apache-2.0
//! Errors of `spincc`.

use std::path::{Path, PathBuf};

use thiserror::Error;

use command::sdk::SdkError;

/// Error of `spincc`.
#[derive(Debug, Error)]
pub enum Error {
    /// The command line is wrong.
    #[error("{0}")]
    Usage(String),
    /// A part of the toolkit is missing.
    #[error(transparent)]
    Sdk(#[from] SdkError),
    /// A file cannot be read or written.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// Attempted action: "read" or "write".
        action: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Reason given by the system.
        source: std::io::Error,
    },
    /// A step after the compiler failed, such as the simulation of hardware.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// A tool cannot be started.
    #[error("cannot run {program}: {source}")]
    Start {
        /// Name of the tool.
        program: String,
        /// Reason given by the system.
        source: std::io::Error,
    },
    /// A file is malformed.
    #[error("{}: {reason}", path.display())]
    Malformed {
        /// Path of the file.
        path: PathBuf,
        /// Description of the defect.
        reason: String,
    },
    /// The user's program is wrong; the text has one message per line.
    #[error("{0}")]
    Program(String),
    /// A compiler has already printed the reason.
    #[error("")]
    Reported,
}

impl Error {
    /// Makes the error of a step after the compiler.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Other(Box::new(error))
    }

    /// Returns a function that makes the error of a file that cannot be read.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Self::Io { action: "read", path: path.to_owned(), source }
    }

    /// Returns a function that makes the error of a file that cannot be written.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Self::Io { action: "write", path: path.to_owned(), source }
    }

    /// Makes the error of a malformed file.
    pub fn malformed(path: &Path, reason: impl ToString) -> Error {
        Error::Malformed { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// Result of a step of `spincc`.
pub type Result<T, E = Error> = std::result::Result<T, E>;
