// SPDX-License-Identifier: Apache-2.0
//! Why `spincc` fails.

use std::path::{Path, PathBuf};

use thiserror::Error;

use command::sdk::SdkError;

/// The reason why `spincc` fails.
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
        /// What was tried: "read" or "write".
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A step behind the compiler has failed, such as the simulation of hardware.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// A tool cannot be started.
    #[error("cannot run {program}: {source}")]
    Start {
        /// The tool's name.
        program: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file is not what its name says.
    #[error("{}: {reason}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The user's program is wrong; the text has one message a line.
    #[error("{0}")]
    Program(String),
    /// A compiler has already printed the reason.
    #[error("")]
    Reported,
}

impl Error {
    /// Makes the error of a step behind the compiler.
    pub fn other(error: impl std::error::Error + Send + Sync + 'static) -> Error {
        Error::Other(Box::new(error))
    }

    /// Makes the error of a file that cannot be read.
    pub fn read(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Self::Io { action: "read", path: path.to_owned(), source }
    }

    /// Makes the error of a file that cannot be written.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        move |source| Self::Io { action: "write", path: path.to_owned(), source }
    }

    /// Makes the error of a file whose contents are wrong.
    pub fn malformed(path: &Path, reason: impl ToString) -> Error {
        Error::Malformed { path: path.to_owned(), reason: reason.to_string() }
    }
}

/// The result of a step of `spincc`.
pub type Result<T, E = Error> = std::result::Result<T, E>;
