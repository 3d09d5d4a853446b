//! The simulated cluster: cards, interconnect, host CPUs and the event loop. Everything except what the ranks do.
//!
//! Exactly one thing happens at a time, in the order of simulated time and then of insertion: a card or a rank handles
//! an event, and may schedule further ones.
//!
//! * [`Cluster`] has the cards, the interconnect, the event queue, the CPU time of the hosts and what users are told
//! * [`Ranks`] is what an implementation of ranks supplies: processes (crate `host`) or schedules (crate `offload`)
//! * [`Cluster::run`] is the event loop
//! * [`HostCosts`] says what a CPU pays to use its card
//! * `ports`: what one card sees of the cluster; this is where packets enter the interconnect
//! * `cores`: which of a rank's cores does a piece of work, and when

mod cores;
mod costs;
mod event;
mod failure;
mod memory;
mod outlet;
mod ports;
mod progress;
mod ranks;
mod run;
mod state;
mod warnings;

pub use costs::{HostCosts, Work};
pub use failure::InternalError;
pub use memory::HostMemory;
pub use net::NetError;
pub use net::fabric::Report as LinkStatistics;
pub use ports::CardPorts;
pub use progress::RunProgress;
pub use ranks::Ranks;
pub use state::Cluster;
pub use warnings::{Listener, Warnings};
