// SPDX-License-Identifier: Apache-2.0
//! Errors that end a run.

use cluster::InternalError;

use ranks::JobError;

/// Reason why a job cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A rank cannot be started.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A card reached an impossible state.
    #[error(transparent)]
    Internal(#[from] InternalError),
}
