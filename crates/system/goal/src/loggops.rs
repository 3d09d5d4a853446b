// SPDX-License-Identifier: Apache-2.0
//! Execution of a [`Schedule`](crate::Schedule) in the LogGOPS model (LogGP with an overhead O per byte and rendezvous
//! above S bytes), with the semantics of LogGOPSim to the nanosecond.
//!
//! Events are handled in the order of (time, number). An operation gets its number when it becomes ready, a message
//! when it is sent. An operation or message whose CPU or NIC is busy waits there and keeps its number.

mod critical;
mod engine;
mod options;
mod order;
mod outcome;
mod parallel;
mod parameters;
mod queue;
mod queues;
mod resources;
mod thread_choice;

pub use crate::error::RunError;
pub use crate::thread_benefit::{SingleThread, single_thread_reason};
pub use critical::{CriticalPath, Part, Step, critical_path};
pub use options::Options;
pub use outcome::{Details, Match, Outcome, Span};
pub use parameters::LogGops;
pub use queues::Queues;
pub use thread_choice::{OneThread, one_thread, run};
