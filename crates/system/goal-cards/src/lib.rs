// SPDX-License-Identifier: Apache-2.0
//! Execution of GOAL schedules on cards. Every rank has a [card](nic::Nic), modelled CPUs, and lazily allocated memory,
//! but no process. Bytes are real, handlers run on the HPU simulator, and all times are those of a program that makes
//! the same calls under `spinrun`.
//!
//! The modules, each of which uses only those above it:
//!
//! * `error`: errors of a run
//! * `memory`: the memory of the ranks
//! * `rank_state`: ranks, their CPUs and waiting tasks
//! * `commands`: Portals and sPIN operations as card commands
//! * `sends_and_receives`: `send` and `recv` over Portals matching
//! * `cpu`: CPU time of operations, and the actions after it
//! * `check`: CPUs and operations that the machine does not support
//! * `world`: the ranks in the event loop of a [cluster](cluster::Cluster), and the public [`World`]

mod check;
mod commands;
mod cpu;
mod error;
mod memory;
mod rank_state;
mod sends_and_receives;
mod world;

pub use error::{CardError, RunError};
pub use memory::{SparseMemory, buffer};
pub use world::{Details, Outcome, World};
