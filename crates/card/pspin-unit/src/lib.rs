// SPDX-License-Identifier: Apache-2.0
//! Cycle-level model of the PsPIN unit (PsPIN §III).
//!
//! * [`her`]: requests and feedback exchanged with the NIC; `cycle`: time; [`observe`]: observers of events
//! * [`memory`]: contents of all memories, packet buffers, and L1 banks
//! * [`schedule`]: message queues and task dispatcher; [`hpu_cluster`]: cluster scheduler and HPU drivers
//! * [`command`]: the command unit and its engines
//! * [`fabric`]: the interconnects between memories, clusters and NIC
//! * [`cores`]: the boundary to the cores; [`core`]: HPUs that execute instructions
//! * [`card`]: the unit on a card of a cluster, running P4sPIN handlers
//! * `arbiter`: round-robin arbiters; `rate`: links with a bandwidth; `status`: error reports for the host
//! * `stored`: packets that the NIC is writing and whose requests must wait
//! * `edge`: the interface of a unit to its NIC, shared by model and hardware
//! * `pspin`: the unit, its surroundings, and the order in which its parts act in a cycle; `counters`: its counters
//!
//! The simulation skips idle cycles: each part reports its next active cycle, and time jumps to the earliest.

mod arbiter;
pub mod card;
pub mod command;
pub mod core;
pub mod cores;
mod counters;
mod cycle;
mod edge;
pub mod fabric;
pub mod her;
pub mod hpu_cluster;
pub mod memory;
pub mod observe;
mod pspin;
mod rate;
pub mod schedule;
mod status;
mod stored;
#[cfg(test)]
mod testing;

pub use command::Port;
pub use counters::Counters;
pub use cycle::Cycle;
pub use edge::Unit;
pub use pspin::{By, HostFault, Outside, Pspin};
pub use rate::Rate;
pub use status::Status;
pub use stored::Stored;
