//! GOAL schedules: what each rank of a parallel program sends, receives and computes, and what waits for what.
//!
//! A [`Schedule`] comes from [text](text::read()), from a generator, or from a binary file that is mapped into memory.
//! [`loggops`] executes it in the LogGOPS model, [`mod@packet`] over a network of packets, and [`protocol`] with the
//! protocols of message passing, on cards that match or not. All executors tell
//! [`RunProgress`] how far they are, and end with an [`Outcome`] or a [`RunError`].

pub mod binary;
mod build;
mod deadlock;
mod dependencies;
mod error;
mod file;
mod frame;
pub mod generate;
pub mod loggops;
mod matching;
mod nic;
mod op;
mod outcome;
pub mod packet;
pub mod protocol;
mod run_progress;
mod schedule;
pub mod text;
mod words;

pub use build::{BuildError, Builder};
pub use deadlock::{Deadlock, DeadlockedRank, WaitCause, Waiting};
pub use dependencies::DependencyTracker;
pub use error::RunError;
pub use file::{ReadError, open, read};
pub use nic::{Append, List, NicOp, Verb};
pub use op::{Action, Kind, MAX_CALC_NS, MAX_OPS, MAX_RANKS, MAX_SPACE};
pub use outcome::Outcome;
pub use run_progress::RunProgress;
pub use schedule::{Schedule, Wait};
