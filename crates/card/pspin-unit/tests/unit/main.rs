// SPDX-License-Identifier: Apache-2.0
//! Tests of the PsPIN unit: latency stage by stage, order, throughput, faults, and overload.

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
