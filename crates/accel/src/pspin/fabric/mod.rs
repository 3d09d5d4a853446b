//! The interconnects between memories, clusters and NIC (§III-C).

mod dma;
mod pe;

pub use dma::{DmaInterconnect, Landed, Owner, Transfer, TransferId};
pub use pe::{PeInterconnect, ProgramPort, Remote};
