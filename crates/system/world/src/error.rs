use cluster::InternalError;

use ranks::JobError;

/// The reason why the run of a job cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A rank cannot be started.
    #[error(transparent)]
    Job(#[from] JobError),
    /// A card has met a state that cannot occur.
    #[error(transparent)]
    Internal(#[from] InternalError),
}
