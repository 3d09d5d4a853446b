// SPDX-License-Identifier: Apache-2.0
//! Programs for the published interface, and their loading into the unit.

use std::sync::Arc;

use hpu::{ElfError, Program};
use machine::Pspin as Config;
use pspin_unit::Unit;
use pspin_unit::core::{Hpus, Runtime};
use pspin_unit::her::Range;
use pspin_unit::memory::{Arena, Place};
use thiserror::Error;

/// Error of a program that does not fit the unit.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// Not a program for these cores.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// Not linked with the runtime.
    #[error("it has no function {0}: programs are linked with the runtime of sdk/pspin (spinkit pspin cc)")]
    NoRuntime(&'static str),
    /// A memory is too small.
    #[error("its {what} has {bytes} bytes; {key} is {most}")]
    TooLarge {
        /// Name of the memory or section.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// Key of the machine file.
        key: &'static str,
        /// Allowed size in bytes.
        most: u32,
    },
}

/// PsPIN's cores: RISC-V with CORE-V extensions (§IV-A), which programs need not use.
const CORES: &str = "rv32imac-corev";

/// Program linked with its runtime.
#[derive(Clone)]
pub struct Loaded {
    program: Arc<Program>,
    runtime: Runtime,
}

impl Loaded {
    /// Reads a program.
    ///
    /// # Errors
    /// [`ProgramError`] when the file is not a program for these cores, lacks the runtime, or is too large for the
    /// unit.
    pub fn new(elf: &[u8], config: &Config) -> Result<Loaded, ProgramError> {
        let isa = hpu::isa::instruction_set(CORES).expect("PsPIN's cores are known");
        let program = Arc::new(Program::load(elf, isa, &accel::load_map())?);
        let entry = |name| program.entry(name).ok_or(ProgramError::NoRuntime(name));
        let runtime = Runtime { boot: entry("_start")?, again: entry("__rt_again")? };
        let fits = |what, bytes: usize, key, most: u32| {
            if bytes <= most as usize { Ok(()) } else { Err(ProgramError::TooLarge { what, bytes, key, most }) }
        };
        fits("code", program.program_segment().len(), "accelerator.program.bytes", config.program.bytes)?;
        fits("data", program.data_segment().len(), "accelerator.l2_handler.bytes", config.l2_handler.bytes)?;
        Ok(Loaded { program, runtime })
    }

    /// Returns the program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Returns the entry points at which HPUs start.
    pub fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// Returns the address of a function and the size of all code, the pair that drivers of the published design pass
    /// for a handler.
    pub fn handler(&self, name: &str) -> Option<Range> {
        self.program.entry(name).map(|address| Range { address, size: 4_096 })
    }

    /// Returns the code range of the program.
    pub fn code(&self) -> Range {
        Range { address: Arena::start(Place::Program), size: self.program.program_segment().len() as u32 }
    }

    /// Creates the HPUs that execute it.
    pub fn hpus(&self, config: std::rc::Rc<Config>) -> Hpus {
        Hpus::new(config, self.program.clone(), self.runtime)
    }

    /// Writes code and data into the memories of the unit.
    pub fn write(&self, unit: &mut impl Unit) {
        for (place, bytes) in
            [(Place::Program, self.program.program_segment()), (Place::Handler, self.program.data_segment())]
        {
            assert!(unit.load(Arena::start(place), bytes), "sizes were checked");
        }
    }
}
