use machine::{Accelerator as Kind, Machine};

use crate::accelerator::Accelerator;
use crate::convention::P4spin;
use crate::sc17;

/// Creates the accelerator of a machine.
pub fn create(machine: &Machine) -> Box<dyn Accelerator> {
    let Kind::Sc17(unit) = &machine.accelerator;
    Box::new(sc17::Unit::new(unit, machine.hpu.clock, machine.network.mtu, Box::new(P4spin)))
}
