// SPDX-License-Identifier: Apache-2.0
use std::error::Error;
use std::path::{Path, PathBuf};

use goal::{ReadError, RunError};
use machine::MachineError;
use thiserror::Error;

use command::sdk::SdkError;

/// Error of a command.
#[derive(Debug, Error)]
pub enum GoalError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error(transparent)]
    Lgs(#[from] goal::lgs::LgsWriteError),
    #[error("{}: {error}", file.display())]
    Run { file: PathBuf, error: Box<dyn Error> },
    #[error("{}: {}", file.display(), lost(schedule_lines))]
    Lost { file: PathBuf, schedule_lines: Vec<String> },
    #[error(transparent)]
    Import(#[from] mpi_trace::ImportError),
    #[error(transparent)]
    Chakra(#[from] workload::chakra::ChakraError),
    #[error("{}:{error}", file.display())]
    Connections { file: PathBuf, error: workload::connections::ConnectionError },
    #[error(transparent)]
    Llm(#[from] workload::llm::LlmError),
    #[error("{}: {reason}", file.display())]
    Device { file: PathBuf, reason: String },
    #[error(transparent)]
    Sdk(#[from] SdkError),
    #[error(transparent)]
    Machine(#[from] MachineError),
    #[error(transparent)]
    Network(#[from] net::NetError),
    #[error(transparent)]
    Card(#[from] nic::NotOnCards),
    #[error(transparent)]
    Spec(#[from] goal::generate::SpecError),
    #[error("cannot write {}: {error}", path.display())]
    Write { path: PathBuf, error: std::io::Error },
    #[error("{0}")]
    Usage(String),
}

/// Returns the name of a file for messages.
pub fn name_of(file: &Path) -> &Path {
    if file == Path::new("-") { Path::new("<stdin>") } else { file }
}

fn lost(messages: &[String]) -> String {
    format!("{} messages are never received:\n  {}", messages.len(), messages.join("\n  "))
}

impl GoalError {
    /// Returns the error of a failed run of any model.
    pub fn run<M: Error + 'static>(file: &Path, error: RunError<M>) -> GoalError {
        match error {
            RunError::Network(error) => GoalError::Network(error),
            error => GoalError::Run { file: name_of(file).to_owned(), error: Box::new(error) },
        }
    }

    /// Returns a function that adds the file's name to a write error.
    pub fn write(path: &Path) -> impl FnOnce(std::io::Error) -> GoalError {
        move |error| GoalError::Write { path: path.to_owned(), error }
    }

    /// Returns the exit status: 2 for wrong usage, 1 for everything else.
    pub fn status(&self) -> u8 {
        match self {
            GoalError::Machine(_)
            | GoalError::Network(_)
            | GoalError::Card(_)
            | GoalError::Spec(_)
            | GoalError::Llm(_)
            | GoalError::Usage(_) => 2,
            _ => 1,
        }
    }
}
