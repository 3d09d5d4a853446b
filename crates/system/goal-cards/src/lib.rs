//! Execution of GOAL schedules on cards. Every rank has a [card](nic::Nic), modelled CPUs, and memory that costs nothing
//! until it is touched, but no process. Bytes are real, handlers run on the HPU simulator, and all times are the ones that
//! `spinrun` would give a program that makes the same calls.
//!
//! The modules, each of which uses only those above it:
//!
//! * `error`: why a schedule cannot be executed
//! * `memory`: the memory of the ranks
//! * `state`: ranks, their CPUs and the tasks that wait for them
//! * `commands`: Portals and sPIN operations as commands of a card
//! * `messages`: `send` and `recv` over Portals matching
//! * `cpu`: the CPU time of operations, and what follows when the CPU has done them
//! * `check`: CPUs and operations that the machine does not have
//! * `world`: the ranks in the event loop of a [cluster](cluster::Cluster), and the [`World`] that users see

mod check;
mod commands;
mod cpu;
mod error;
mod memory;
mod messages;
mod state;
mod world;

pub use error::{CardError, RunError};
pub use memory::{SparseMemory, buffer};
pub use world::{Details, Outcome, World};
