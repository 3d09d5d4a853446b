// SPDX-License-Identifier: Apache-2.0
//! Tests of the sc17 unit alone: short handlers in an environment that the test provides.
//!
//! The cycles of a handler come from its usage; all other times follow from 0.4 ns per cycle.

mod calls;
mod ends;
mod memory;
#[path = "../rig/mod.rs"]
mod rig;
mod schedule;

use abi::device::map;
use accel::convention::P4spin;
use accel::sc17::Unit;
use accel::{Accelerator, Observation};
use machine::{Accelerator as Kind, Machine};

/// Duration of a cycle in ps.
const CYCLE: u64 = 400;
/// Card address of a rig's HPU memory.
const STATE: u32 = map::HPU_MEMORY;

/// Loads the paper's card with in-order cores and these settings.
fn machine(settings: &[&str]) -> Machine {
    rig::load("sc17-int", &[&["hpu.timing=inorder", "hpu.kind=rv32imac"][..], settings].concat())
}

/// Creates the accelerator of this card.
fn accelerator(machine: &Machine) -> Box<dyn Accelerator> {
    let Kind::Sc17(unit) = &machine.accelerator else { panic!("{} is another card", machine.name) };
    let observation = Observation::default();
    Box::new(Unit::new(unit, machine.hpu.clock, machine.network.mtu, Box::new(P4spin), observation, None))
}

/// Returns the settings of a unit with these numbers of HPUs and contexts.
fn sizes(hpus: u32, contexts: u32) -> [String; 2] {
    [format!("accelerator.hpus={hpus}"), format!("accelerator.contexts={contexts}")]
}
