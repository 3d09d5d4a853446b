// SPDX-License-Identifier: Apache-2.0
//! A processing cluster (§III-B2): its scheduler, packet buffer and HPU drivers.

mod driver;
mod scheduler;

pub use driver::{Driver, Finished};
pub use scheduler::HpuCluster;
