//! The cores of the unit: HPUs that execute the instructions of handlers (§III-B2, §III-C).
//!
//! * `cache`: the instruction cache of a cluster
//! * `protect`: the memory that the handler of a task may use, to the byte
//! * `hpu`, `group`: an HPU, and those of a cluster with what they share
//! * `hpus`: all HPUs as the unit sees them, and the environment of handlers, which differs between the two interfaces
//! * `published`: the environment of the published interface, whose runtime is code; `device`: the registers of its HPU driver,
//!   and the output of `printf`. The environment of P4sPIN is that of [cards](super::card).
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
mod published;

pub use counters::CoreCounters;
pub(super) use hpu::{Doing, Hpu};
pub use hpus::{Environment, Hpus as HpusIn};
pub use protect::program_data;
pub(super) use protect::{Span, Spans};
pub use published::{Hpus, Published, Runtime};
