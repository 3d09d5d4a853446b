//! GOAL schedules: what each rank of a parallel program sends, receives and computes, and what waits for what.
//!
//! A [`Schedule`] comes from [text](text::read()), from a generator, or from a binary file that is mapped into memory.
//! [`loggops`] executes it in the LogGOPS model, [`mod@packet`] over a network of packets, and [`protocol`] with the
//! protocols of message passing, on cards that match or not. [`Progress`] and [`Matching`] are
//! what any executor needs.

pub mod binary;
mod build;
mod cpu;
mod error;
mod file;
pub mod generate;
pub mod loggops;
mod matching;
mod nic;
pub mod noise;
mod op;
pub mod packet;
mod progress;
pub mod protocol;
mod schedule;
mod stuck;
pub mod text;

pub use build::{BuildError, Builder};
pub use file::{ReadError, open, read};
pub use matching::Matching;
pub use nic::{Append, List, NicOp, Verb};
pub use op::{Action, Kind, MAX_CALC_NS, MAX_OPS, MAX_RANKS, MAX_SPACE};
pub use progress::Progress;
pub use schedule::{Schedule, Wait};
pub use stuck::{Blocked, Stuck, StuckRank};
