//! The simulated cluster: cards, interconnect, host CPUs and the event loop; everything except the ranks.
//!
//! Exactly one thing happens at a time, in the order of simulated time and then of insertion: a card or a rank handles
//! an event, and may schedule further ones.
//!
//! * [`Cluster`] has the cards, the interconnect, the event queue, the CPU time of the hosts and the messages for the
//!   user
//! * [`Ranks`] is the trait that ranks implement: processes (crate `world`) or schedules (crate `goal-cards`)
//! * [`Cluster::run`] is the event loop
//! * [`HostCosts`] says what a CPU pays to use its card
//! * `ports`: a card's access to the cluster; this is where packets enter the interconnect
//! * `cores`: decides which of a rank's cores does a piece of work, when, and for how long

mod access;
mod cores;
mod costs;
mod event;
mod failure;
mod failures;
mod memory;
mod messages;
mod outlet;
mod ports;
mod progress;
mod ranks;
mod run;
mod state;

pub use access::Access;
pub use costs::{HostCosts, HostTraffic, Work};
pub use failure::InternalError;
pub use failures::{Death, Failures, Victim};
pub use memory::HostMemory;
pub use messages::{Listener, Message, Messages};
pub use net::fabric::{Report as LinkStatistics, Traffic as LinkTraffic};
pub use net::{Loss, LossyPlace, NetError};
pub use ports::CardPorts;
pub use progress::RunProgress;
pub use ranks::Ranks;
pub use state::Cluster;
