//! Execution of a [`Schedule`](crate::Schedule) in the LogGOPS model (LogGP with an overhead O a byte and rendezvous
//! above S bytes), with the semantics of LogGOPSim to the nanosecond.
//!
//! Everything happens in the order of (time, number), where an operation gets its number when it is freed and a message
//! when it is sent. What finds its CPU or NIC busy waits there, keeping its number.

mod barrier;
mod critical;
mod engine;
mod error;
mod order;
mod parallel;
mod parameters;
mod queue;
mod queues;
mod resources;

pub use critical::{CriticalPath, Part, Step, critical_path};
pub use engine::{Match, OneThread, Options, Outcome, Span, one_thread, run};
pub use error::RunError;
pub use parameters::LogGops;
pub use queues::Queues;
