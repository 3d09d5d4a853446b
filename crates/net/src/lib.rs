//! The network between the cards: where the nodes are, and how long a packet is on its way.
//!
//! [`Interconnect`] is what cards see of it: their sending ports and the way to the receiving ones. [`Latency`] is the
//! contention-free network of the sPIN paper (§4.2); [`Tree`] knows a fat tree's distances and nothing of time.
//!
//! [`Topology`] is a network link by link, and [`packet`] simulates packets that queue for these links.

mod error;
mod interconnect;
mod latency;
pub mod packet;
mod topology;
mod tree;

pub use error::NetError;
pub use interconnect::{Departure, Injection, Interconnect};
pub use latency::Latency;
pub use topology::{Dragonfly, Topology};
pub use tree::{Hops, Tree};
