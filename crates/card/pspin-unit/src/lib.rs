//! The PsPIN unit (PsPIN §III), cycle by cycle.
//!
//! * [`her`]: what the unit and its NIC exchange; `cycle`: its time; [`observe`]: observers of what happens
//! * [`memory`]: the bytes of all memories, and packet buffers
//! * [`schedule`]: message queues and task dispatcher; [`cluster`]: cluster scheduler and HPU drivers
//! * [`command`]: the command unit and its engines
//! * [`fabric`]: the interconnects between memories, clusters and NIC
//! * [`cores`]: the boundary to the cores; [`core`]: HPUs that execute instructions
//! * [`card`]: the unit on a card of a cluster, with handlers of P4sPIN
//! * `arbiter`: round robin; `rate`: links with a time for each byte; `status`: what the host is told about an error
//! * `stored`: packets that the NIC writes, until their requests may be submitted
//! * `edge`: what a NIC does with a unit, model or hardware
//! * `unit`: the unit, its surroundings, and the order in which its parts act in a cycle; `counters`: what it counts
//!
//! The unit simulates the cycles in which something happens: each part tells when that will be, and time jumps to the least.

mod arbiter;
pub mod card;
pub mod cluster;
pub mod command;
pub mod core;
pub mod cores;
mod counters;
mod cycle;
mod edge;
pub mod fabric;
pub mod her;
pub mod memory;
pub mod observe;
mod rate;
pub mod schedule;
mod status;
mod stored;
#[cfg(test)]
mod testing;
mod unit;

pub use command::Port;
pub use counters::Counters;
pub use cycle::Cycle;
pub use edge::Unit;
pub use rate::Rate;
pub use status::Status;
pub use stored::Stored;
pub use unit::{By, HostFault, Outside, Pspin};
