//! Programs for the published interface, and how the unit gets them.

use std::sync::Arc;

use hpu::{ElfError, Program};
use machine::Pspin as Config;
use pspin_unit::Unit;
use pspin_unit::core::{Hpus, Runtime};
use pspin_unit::her::Range;
use pspin_unit::memory::{Arena, Place};
use thiserror::Error;

/// The error of a program that does not fit the unit.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// It is no program for these cores.
    #[error(transparent)]
    Elf(#[from] ElfError),
    /// It was not linked with the runtime.
    #[error("it has no function {0}: programs are linked with the runtime of sdk/pspin (spinkit pspin cc)")]
    NoRuntime(&'static str),
    /// A memory is too small.
    #[error("its {what} has {bytes} bytes; {key} is {most}")]
    TooLarge {
        /// What.
        what: &'static str,
        /// How large it is.
        bytes: usize,
        /// The key of the machine file.
        key: &'static str,
        /// How large it may be.
        most: u32,
    },
}

/// PsPIN's cores: RISC-V with CORE-V extensions (§IV-A), which programs need not use.
const CORES: &str = "rv32imac-corev";

/// A program, linked with its runtime.
#[derive(Clone)]
pub struct Loaded {
    program: Arc<Program>,
    runtime: Runtime,
}

impl Loaded {
    /// Reads a program.
    ///
    /// # Errors
    /// [`ProgramError`] when it is no program for these cores, has no runtime, or is too large for the unit.
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

    /// The program.
    pub fn program(&self) -> &Arc<Program> {
        &self.program
    }

    /// Where HPUs start.
    pub fn runtime(&self) -> Runtime {
        self.runtime
    }

    /// The first instruction of a function, and the bytes that handlers may have, as drivers of the published design say them.
    pub fn handler(&self, name: &str) -> Option<Range> {
        self.program.entry(name).map(|address| Range { address, size: 4_096 })
    }

    /// The code of the program.
    pub fn code(&self) -> Range {
        Range { address: Arena::start(Place::Program), size: self.program.program_segment().len() as u32 }
    }

    /// HPUs that execute it.
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
