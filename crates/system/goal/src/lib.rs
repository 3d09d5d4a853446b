// SPDX-License-Identifier: Apache-2.0
//! GOAL schedules: sends, receives and computations of each rank of a parallel program, and their dependencies.
//!
//! A [`Schedule`] is read from [text](text::read()), generated, or mapped into memory from a binary file;
//! [`lgs`] reads and writes the binary form of LogGOPSim. [`loggops`]
//! executes it in the LogGOPS model, [`mod@packet`] over a network of packets, and [`protocol`] with message passing
//! protocols, on cards with or without matching. All executors report their progress in [`RunProgress`], and return an
//! [`Outcome`] or a [`RunError`].

mod barrier;
pub mod binary;
mod build;
mod deadlock;
mod dependencies;
mod error;
mod file;
mod frame;
pub mod generate;
pub mod lgs;
pub mod loggops;
mod matching;
mod nic;
mod op;
mod operation_table;
mod outcome;
pub mod packet;
pub mod protocol;
mod run_progress;
mod schedule;
pub mod text;
mod thread_benefit;

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
