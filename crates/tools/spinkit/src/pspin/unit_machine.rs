// SPDX-License-Identifier: Apache-2.0
//! Machine whose unit runs handlers.

use std::path::PathBuf;
use std::rc::Rc;

use machine::{Accelerator, Machine};
use pspin_rtl::build::{Design, build};
use sim::Clock;

use command::sdk::Sdk;
use spincc::{Error, Result};

/// Machine with a PsPIN unit.
pub struct Unit {
    /// Name of the machine.
    pub name: String,
    /// The unit.
    pub config: Rc<machine::Pspin>,
    /// Its clock.
    pub clock: Clock,
    /// Hardware design of the unit.
    design: Option<Design>,
}

impl Unit {
    /// Loads a machine, and prints its notices.
    ///
    /// # Errors
    /// [`Error::Usage`] when the machine does not exist, or has no PsPIN unit.
    pub fn load(sdk: &Sdk, name: &str, set: &[String]) -> Result<Unit> {
        let machine = Machine::load(name, &[sdk.home.join("machines")], set);
        let machine = machine.map_err(|error| Error::Usage(error.to_string()))?;
        for notice in &machine.notices {
            eprintln!("spinkit pspin run: note: {notice}");
        }
        let design = Design::unit(&machine);
        let (name, clock) = (machine.name, machine.hpu.clock);
        match machine.accelerator {
            Accelerator::Pspin(unit) => Ok(Unit { name, config: Rc::from(unit), clock, design }),
            Accelerator::Sc17(_) => {
                let text =
                    format!("{name}: accelerator.kind is \"sc17\"; this command needs \"pspin\", as pspin-400g has");
                Err(Error::Usage(text))
            }
        }
    }

    /// Returns the simulator of the unit's hardware. Builds it if none exists for this configuration; with `is_traced`
    /// it can write waveforms. Progress messages begin with `name`.
    ///
    /// # Errors
    /// When the hardware lacks a feature of the machine, tools are missing, or the build fails.
    pub fn hardware(&self, sdk: &Sdk, name: &str, is_traced: bool) -> Result<PathBuf> {
        if let Some(reason) = pspin_rtl::build::refusal(&self.config) {
            return Err(Error::Usage(reason));
        }
        let design = Design { is_traced, ..self.design.clone().expect("the machine has a PsPIN unit") };
        let library = build(&sdk.home, &sdk.cache()?, &design, |text| eprintln!("{name}: note: {text}"));
        library.map_err(Error::other)
    }
}
