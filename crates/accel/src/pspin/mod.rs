//! The PsPIN unit (PsPIN §III), cycle by cycle.
//!
//! * [`her`]: what the unit and its NIC exchange; `cycle`: its time; [`observe`]: who watches it
//! * [`memory`]: the bytes of all memories, and packet buffers
//! * [`schedule`]: message queues and task dispatcher; [`cluster`]: cluster scheduler and HPU drivers
//! * [`fabric`]: the interconnects between memories, clusters and NIC
//! * [`cores`]: the boundary to the cores
//! * `unit`: the unit, its surroundings, and the order in which its parts act in a cycle; `counters`: what it counts
//!
//! The unit simulates the cycles in which something happens: each part tells when that will be, and time jumps to the least.

pub mod cluster;
pub mod cores;
mod counters;
mod cycle;
pub mod fabric;
pub mod her;
pub mod memory;
pub mod observe;
pub mod schedule;
mod unit;

pub use counters::Counters;
pub use cycle::Cycle;
pub use unit::{Outside, Pspin};
