//! The cores of the PsPIN unit: real instructions, cycle by cycle, with the runtime and handlers assembled by hand.

mod commands;
mod device;
mod dma;
mod failures;
#[allow(dead_code)]
#[path = "../unit/fixed.rs"]
mod fixed;
mod latency;
mod lockstep;
mod memory;
mod rig;
