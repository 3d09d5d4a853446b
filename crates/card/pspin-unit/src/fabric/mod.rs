// SPDX-License-Identifier: Apache-2.0
//! The interconnects between memories, clusters and NIC (§III-C).

mod dma;
mod l2;
mod pe;

pub use dma::{Beat, DmaInterconnect, Landed, Owner, Transfer, TransferId};
pub use l2::L2Ports;
pub use pe::{PeInterconnect, ProgramPort, Refill, Remote};
