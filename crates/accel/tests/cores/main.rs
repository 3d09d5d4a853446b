//! The cores of the PsPIN unit: real instructions, cycle by cycle, with the runtime and handlers assembled by hand.

mod commands;
mod device;
mod dma;
mod failures;
mod latency;
mod memory;
mod rig;
