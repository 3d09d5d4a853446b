//! A processing cluster (§III-B2): its scheduler, its packet buffer and its HPU drivers.

mod driver;
mod scheduler;

pub use driver::{Driver, Finished};
pub use scheduler::Cluster;
