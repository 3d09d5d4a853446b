//! The cores of the unit: HPUs that execute the instructions of handlers and of the runtime (§III-B2, §III-C).
//!
//! * `cache`: the instruction cache of a cluster
//! * `protect`: the memory that the handler of a task may use, to the byte
//! * `device`: the registers of the HPU driver, and the output of `printf`
//! * `hpu`, `group`: an HPU, and those of a cluster with what they share
//! * `hpus`: all HPUs as the unit sees them
//!
//! An HPU does not step. It runs its instructions up to the next access to memory, and then waits for the cycle of that
//! access; all accesses of a cycle compete for the banks.

mod cache;
mod counters;
mod device;
mod group;
mod hpu;
mod hpus;
mod protect;

pub use cache::Cache;
pub use counters::CoreCounters;
pub use hpus::{Hpus, Runtime};
