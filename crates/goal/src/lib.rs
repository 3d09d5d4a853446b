//! GOAL schedules: what each rank of a parallel program sends, receives and computes, and what waits for what.
//!
//! A [`Schedule`] comes from [text](text::read()), from a generator, or from a binary file that is mapped into memory.
//! [`loggops`] executes it in the LogGOPS model.

pub mod binary;
mod build;
mod file;
pub mod generate;
pub mod loggops;
mod nic;
mod op;
mod schedule;
pub mod text;

pub use build::{BuildError, Builder};
pub use file::{ReadError, open, read};
pub use nic::{Append, List, NicOp, Verb};
pub use op::{Action, Kind, MAX_CALC_NS, MAX_OPS, MAX_RANKS, MAX_SPACE};
pub use schedule::{Schedule, Wait};
