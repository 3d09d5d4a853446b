// SPDX-License-Identifier: Apache-2.0
//! A unit for the tests of its parts.

use machine::{Accelerator, Machine, Pspin};

/// Returns the unit of `pspin-400g`.
pub fn unit() -> Pspin {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
    match Machine::load("pspin-400g", &[folder], &[]).unwrap().accelerator {
        Accelerator::Pspin(unit) => *unit,
        other => panic!("{}", other.kind()),
    }
}
