// SPDX-License-Identifier: Apache-2.0
//! Tests of the PsPIN unit's cores: real instructions, cycle by cycle, with runtime and handlers assembled by hand.

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
