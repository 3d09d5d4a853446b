//! The interconnects between memories, clusters and NIC (§III-C).

mod dma;

pub use dma::{DmaInterconnect, Landed, Transfer};
