// SPDX-License-Identifier: Apache-2.0
//! The simulated cluster without its ranks: cards, interconnect, host CPUs and the event loop.
//!
//! Events are handled one at a time, by simulated time and then by insertion: a card or a rank handles an event, and
//! may schedule further ones.
//!
//! * [`Cluster`] owns the cards, the interconnect, the event queue, the CPU time of the hosts and the messages for the
//!   user
//! * [`Ranks`] is the trait that ranks implement: processes (crate `world`) or schedules (crate `goal-cards`)
//! * [`Cluster::run`] is the event loop
//! * [`HostCosts`] computes the CPU costs of using a card
//! * [`Places`]: nodes of the ranks, several of which may share a node's card
//! * `ports`: a card's access to the cluster; packets enter the interconnect here
//! * `cores`: assigns work to the cores of a rank, with start time and duration

mod access;
mod cores;
mod costs;
mod event;
mod event_loop;
mod failure;
mod failures;
mod memory;
mod nodes;
mod outlet;
mod pace;
mod places;
mod ports;
mod progress;
mod ranks;
mod real_time;
mod user_messages;

pub use access::Access;
pub use costs::{HostCosts, HostTraffic, Work};
pub use failure::InternalError;
pub use failures::{Death, Failures, Victim};
pub use memory::HostMemory;
pub use net::fabric::{Report as LinkStatistics, Traffic as LinkTraffic};
pub use net::{Loss, LossyPlace, NetError};
pub use nic::{Member, Partition, Quota, Share};
pub use nodes::Cluster;
pub use places::Places;
pub use ports::CardPorts;
pub use progress::RunProgress;
pub use ranks::Ranks;
pub use user_messages::{Listener, Message, Messages};
