//! The machine whose unit runs handlers.

use std::path::PathBuf;
use std::rc::Rc;

use machine::{Accelerator, Machine};
use pspin_rtl::build::{Design, build};
use sim::Clock;

use command::sdk::Sdk;
use spincc::{Error, Result};

/// A machine with a PsPIN unit.
pub struct Unit {
    /// Its name.
    pub name: String,
    /// The unit.
    pub config: Rc<machine::Pspin>,
    /// Its clock.
    pub clock: Clock,
    /// The unit as hardware.
    design: Option<Design>,
}

impl Unit {
    /// Loads a machine, and tells what it has to say.
    ///
    /// # Errors
    /// [`Error::Usage`] when there is no such machine, or it has no PsPIN unit.
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

    /// The simulator of the unit as hardware, which is built when there is none for this configuration, and which can write waveforms
    /// if it `is_traced`. Commands are called `name`.
    ///
    /// # Errors
    /// When tools are missing, or the build fails.
    pub fn hardware(&self, sdk: &Sdk, name: &str, is_traced: bool) -> Result<PathBuf> {
        let design = Design { is_traced, ..self.design.clone().expect("the machine has a PsPIN unit") };
        let library = build(&sdk.home, &sdk.cache()?, &design, |text| eprintln!("{name}: note: {text}"));
        library.map_err(Error::other)
    }
}
