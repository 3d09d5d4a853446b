// SPDX-License-Identifier: Apache-2.0
//! Cores of the unit: HPUs that execute the instructions of handlers (§III-B2, §III-C).
//!
//! * `cache`: instruction cache of a cluster
//! * `protect`: memory that a task's handler may use, with byte granularity
//! * `hpu`, `group`: an HPU, and the HPUs of a cluster with their shared state
//! * `hpus`: all HPUs, and the environment of handlers, which differs between the two interfaces
//! * `published`: the environment of the published interface, whose runtime is code; `device`: the registers of its HPU
//!   driver, and the output of `printf`. [Cards](super::card) contain the environment of P4sPIN.
//!
//! HPUs do not step cycle by cycle. Each runs its instructions up to the next memory access, and then waits for the
//! cycle of that access; all accesses of a cycle compete for the banks.

mod cache;
mod counters;
mod device;
mod group;
mod hpu;
mod hpus;
mod protect;
mod published;

pub use counters::CoreCounters;
pub(super) use hpu::{Doing, Hpu};
pub use hpus::{Environment, Hpus as HpusIn};
pub use protect::program_data;
pub(super) use protect::{Span, Spans};
pub use published::{Hpus, Published, Runtime};
