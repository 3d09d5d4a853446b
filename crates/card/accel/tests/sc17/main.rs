//! The unit of the sPIN paper, alone: handlers of a few instructions, and an environment that the test provides.
//!
//! The number of cycles of a handler is taken from its usage; everything else follows from 0.4 ns per cycle.

mod calls;
mod ends;
mod memory;
#[path = "../rig/mod.rs"]
mod rig;
mod schedule;

use abi::device::map;
use accel::Accelerator;
use accel::convention::P4spin;
use accel::sc17::Unit;
use machine::{Accelerator as Kind, Machine};

/// Time of a cycle, in ps.
const CYCLE: u64 = 400;
/// Card address of the HPU memory that a rig has.
const STATE: u32 = map::HPU_MEMORY;

/// The paper's card with in-order cores and these parameters.
fn machine(settings: &[&str]) -> Machine {
    rig::load("sc17-int", &[&["hpu.timing=inorder", "hpu.kind=rv32imac"][..], settings].concat())
}

/// The accelerator of this card.
fn accelerator(machine: &Machine) -> Box<dyn Accelerator> {
    let Kind::Sc17(unit) = &machine.accelerator else { panic!("{} is another card", machine.name) };
    Box::new(Unit::new(unit, machine.hpu.clock, machine.network.mtu, Box::new(P4spin)))
}

/// The settings of a unit with this number of HPUs and contexts.
fn sizes(hpus: u32, contexts: u32) -> [String; 2] {
    [format!("accelerator.hpus={hpus}"), format!("accelerator.contexts={contexts}")]
}
