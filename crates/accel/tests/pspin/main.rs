//! Tests the PsPIN unit: latency stage by stage, order, throughput, faults, and what happens under overload.

mod fixed;
mod latency;
mod order;
mod rig;
mod throughput;
