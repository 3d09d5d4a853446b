//! The hosts of the simulated machine: rank processes, and what their CPU and memory cost.

pub mod job;
pub mod mpi;
pub mod pmi;
mod world;

pub use cluster::{Death, Failures, HostTraffic, Listener, Loss, LossyPlace, Message, Victim};
pub use world::{Computation, ComputeTimes, End, FailureError, Refusals, Refused, RunError, World};
