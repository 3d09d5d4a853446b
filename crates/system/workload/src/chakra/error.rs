// SPDX-License-Identifier: Apache-2.0
//! Errors of reading and converting traces.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Error of an import.
#[derive(Debug, Error)]
pub enum ChakraError {
    /// A file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// File
        path: PathBuf,
        /// Reason
        error: io::Error,
    },
    /// A file is no trace, or a damaged one.
    #[error("{}: byte {at}: {problem}", path.display())]
    Damaged {
        /// File
        path: PathBuf,
        /// Offset of the message, in the unpacked file
        at: u64,
        /// Problem
        problem: String,
    },
    /// A node cannot be converted.
    #[error("{}: node {id} ({name}): {problem}", path.display())]
    Node {
        /// File
        path: PathBuf,
        /// Number of the node
        id: u64,
        /// Name of the node
        name: String,
        /// Problem and remedy
        problem: String,
    },
    /// The files do not fit together.
    #[error("{}: {problem}", path.display())]
    Files {
        /// Folder, file or prefix
        path: PathBuf,
        /// Problem and remedy
        problem: String,
    },
    /// The schedule is too large.
    #[error(transparent)]
    Build(#[from] goal::BuildError),
    /// A collective cannot be generated.
    #[error(transparent)]
    Collective(#[from] goal::generate::SpecError),
}
