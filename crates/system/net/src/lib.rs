// SPDX-License-Identifier: Apache-2.0
//! The network between the cards: topologies, and the movement of packets between nodes.
//!
//! * [`Interconnect`] is the cards' view of the network: their sending ports and the paths to the receiving ones. It
//!   has two models, [`Latency`] and [`fabric`].
//! * [`Latency`] is the contention-free network of the sPIN paper (§4.2); [`Tree`] computes a fat tree's distances.
//! * [`fabric`] simulates packets that queue for the links of a [`Topology`]; `cards` connects it to the cards.
//! * [`messages`] sends whole messages over a fabric, for executors of schedules without cards.

mod cards;
mod error;
pub mod fabric;
mod injection;
mod interconnect;
mod latency;
mod losses;
pub mod messages;
mod order;
mod partition;
mod slab;
mod topology;
mod tree;

pub use error::NetError;
pub use injection::{Departure, Injection, Outlet};
pub use interconnect::Interconnect;
pub use latency::Latency;
pub use losses::{Loss, LossyPlace};
pub use order::key_of_executor;
pub use partition::Partition;
pub use topology::{Dragonfly, Topology};
pub use tree::{Hops, Tree};
