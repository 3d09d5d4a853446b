//! Tests the PsPIN unit: latency stage by stage, order, throughput, faults, and what happens under overload.

mod banks;
mod commands;
mod faults;
mod fixed;
mod latency;
mod model;
mod order;
mod protect;
mod registers;
mod rig;
mod throughput;
