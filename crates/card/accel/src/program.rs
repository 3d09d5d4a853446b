// SPDX-License-Identifier: Apache-2.0
//! Device programs on a card: their handlers, their image, and the engine that runs them.

use std::cell::{RefCell, RefMut};
use std::rc::Rc;
use std::sync::Arc;

use abi::device::image::{Damage, Image};
use hpu::{Engine, Program, Thread, isa};
use machine::{Accelerator, Machine};

use crate::map::load_map;
use crate::memory::OutsideMemory;
use crate::profile::{Profile, SourcePlace};

/// A handler of a device program.
#[derive(Clone, Debug)]
pub struct Handler {
    /// Name in the program.
    pub name: Rc<str>,
    /// Card address of the first instruction.
    pub entry: u32,
}

/// A device program that a process registered.
#[derive(Clone)]
pub struct DeviceProgram {
    /// Program for this kind of HPU.
    pub program: Arc<Program>,
    /// Handlers with the addresses of their host twins, the functions of the same name in the host program.
    pub handlers: Vec<(u64, Handler)>,
}

/// Reasons for rejecting an image.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// The image is damaged or of another version.
    #[error("{0}; recompile the program with spincc")]
    Image(#[from] Damage),
    /// The image lacks code for the card's kind of HPU.
    #[error(
        "the program has no device code for HPU kind {wanted} (it has {found}): recompile with spincc --hpu {wanted}"
    )]
    NoKind {
        /// Kind of the card's HPUs.
        wanted: String,
        /// Kinds in the image.
        found: String,
    },
    /// The kind of HPU is unknown.
    #[error(transparent)]
    Kind(#[from] isa::UnknownKind),
    /// The code for this kind of HPU is unreadable.
    #[error("device code for {kind}: {error}")]
    Elf {
        /// Kind of HPU.
        kind: String,
        /// Error of the ELF reader.
        error: hpu::ElfError,
    },
    /// The image names a handler that is missing from its code.
    #[error("device code for {kind} has no handler '{handler}'")]
    NoHandler {
        /// Kind of HPU.
        kind: String,
        /// Symbol of the handler.
        handler: String,
    },
    /// The program exceeds the card's memory.
    #[error("the handlers' {what} takes {bytes} bytes, the card has {room}")]
    TooLarge {
        /// The part that is too large: code or static data.
        what: &'static str,
        /// Size of the part in bytes.
        bytes: usize,
        /// Available bytes on the card.
        room: u32,
    },
    /// The program was prepared for a card with other memories.
    #[error(transparent)]
    Memory(#[from] OutsideMemory),
}

/// A device program, prepared for cards. Cards that share one decode it and compute its timing once; each card has its
/// own branch predictors and memories.
pub struct CardProgram {
    device: DeviceProgram,
    engine: RefCell<Engine>,
    /// Threads that ended, for reuse by new handlers.
    #[expect(clippy::vec_box, reason = "a thread stays where it is when it is given to a handler")]
    ended: RefCell<Vec<Box<Thread>>>,
}

impl CardProgram {
    /// Prepares a program for the cards of a machine.
    ///
    /// # Errors
    /// Returns an error if the program does not fit into their memories.
    pub fn new(device: DeviceProgram, machine: &Machine) -> Result<Rc<CardProgram>, ImageError> {
        let (program_room, data_room) = (machine.accelerator.program(), machine.accelerator.data());
        let load_cycles = match &machine.accelerator {
            Accelerator::Sc17(unit) => unit.scratchpad_cycles,
            Accelerator::Pspin(unit) => unit.l1.load_cycles,
        };
        let program = &device.program;
        let (code, data) = (program.program_segment().len(), program.data_segment().len());
        if code > program_room as usize {
            return Err(ImageError::TooLarge { what: "code", bytes: code, room: program_room });
        }
        if data > data_room as usize {
            return Err(ImageError::TooLarge { what: "static data", bytes: data, room: data_room });
        }
        let engine = RefCell::new(Engine::new(program.clone(), machine.hpu.timing, load_cycles));
        Ok(Rc::new(CardProgram { device, engine, ended: RefCell::default() }))
    }

    /// Returns the program and its handlers.
    pub fn device(&self) -> &DeviceProgram {
        &self.device
    }

    /// Returns the names of its handlers, sorted.
    pub fn handlers(&self) -> impl Iterator<Item = &str> {
        self.device.handlers.iter().map(|(_, handler)| &*handler.name)
    }

    /// Looks up a handler by name.
    pub fn named(&self, name: &str) -> Option<&Handler> {
        self.device.handlers.iter().map(|(_, handler)| handler).find(|handler| &*handler.name == name)
    }

    /// Returns the engine that runs the handlers.
    pub fn engine(&self) -> RefMut<'_, Engine> {
        self.engine.borrow_mut()
    }

    /// Creates a thread at the first instruction of a handler; see [`Thread::new`].
    pub fn start(&self, entry: u32, stack_top: u32, arguments: [u32; 3]) -> Box<Thread> {
        let program = &self.device.program;
        match self.ended.borrow_mut().pop() {
            Some(mut thread) => {
                thread.restart(program, entry, stack_top, arguments);
                thread
            }
            None => Box::new(Thread::new(program, entry, stack_top, arguments)),
        }
    }

    /// Recycles a thread that ended.
    pub fn end(&self, thread: Box<Thread>) {
        self.ended.borrow_mut().push(thread);
    }

    /// Adds the execution counts of its instructions to `profile`.
    pub fn add_profile(&self, profile: &mut Profile) {
        for (entry, counts) in self.engine.borrow().profile() {
            let Some((_, handler)) = self.device.handlers.iter().find(|(_, handler)| handler.entry == entry) else {
                continue; // this function is not a handler
            };
            let places = profile.entry(handler.name.to_string()).or_default();
            for (pc, runs) in counts {
                *places.entry(self.device.place(pc)).or_default() += runs;
            }
        }
    }

    /// Describes the source line of an instruction as the end of a message: ", FILE:LINE", or empty.
    pub fn suffix(&self, pc: u32) -> String {
        let location = self.device.program.line(pc);
        location.map_or_else(String::new, |place| format!(", {}:{}", place.file, place.line))
    }
}

impl DeviceProgram {
    /// Finds the program for `kind` in an image (`abi::device::image`) whose host twins start at `handlers_start`.
    ///
    /// # Errors
    /// Returns an error if the image is damaged, of another version, or without usable code for `kind`.
    pub fn from_image(bytes: &[u8], handlers_start: u64, kind: &str) -> Result<DeviceProgram, ImageError> {
        let image = Image::parse(bytes)?;
        let Some((_, elf)) = image.devices.iter().find(|(found, _)| *found == kind) else {
            let kinds: Vec<&str> = image.devices.iter().map(|(found, _)| *found).collect();
            return Err(ImageError::NoKind { wanted: kind.into(), found: kinds.join(", ") });
        };
        let isa = isa::instruction_set(kind)?;
        let program =
            Program::load(elf, isa, &load_map()).map_err(|error| ImageError::Elf { kind: kind.into(), error })?;
        let handlers = image.handlers.iter().map(|(name, host_offset)| {
            let missing = || ImageError::NoHandler { kind: kind.into(), handler: (*name).into() };
            let entry = program.entry(name).ok_or_else(missing)?;
            let host = handlers_start.wrapping_add(u64::from(*host_offset));
            Ok((host, Handler { name: (*name).into(), entry }))
        });
        let handlers = handlers.collect::<Result<_, ImageError>>()?;
        Ok(DeviceProgram { program: Arc::new(program), handlers })
    }

    /// Returns the handler whose host twin is at `host_address`.
    pub fn handler(&self, host_address: u64) -> Option<&Handler> {
        self.handlers.iter().find(|(address, _)| *address == host_address).map(|(_, handler)| handler)
    }

    /// Returns the source location of the instruction at `pc`.
    pub fn place(&self, pc: u32) -> SourcePlace {
        let line = self.program.line(pc).map(|location| (location.file.to_owned(), location.line));
        SourcePlace { function: self.program.function(pc).map(str::to_owned), line }
    }
}

#[cfg(test)]
mod tests {
    use abi::device::image::{MAGIC, Preamble};
    use bytemuck::bytes_of;

    use super::*;

    #[test]
    fn damaged_images_are_errors() {
        let error = |bytes: &[u8]| DeviceProgram::from_image(bytes, 0, "rv32imac").err().expect("an error");
        assert!(matches!(error(b""), ImageError::Image(Damage::Damaged("it is cut off"))));
        assert!(matches!(error(&[0; 64]), ImageError::Image(Damage::Version)));
        let mut preamble = Preamble { magic: MAGIC, length: 32, devices: 7, ..Default::default() };
        assert!(matches!(error(bytes_of(&preamble)), ImageError::Image(Damage::Damaged("its records are cut off"))));
        preamble.devices = 0;
        assert!(matches!(error(bytes_of(&preamble)), ImageError::NoKind { .. }));
    }
}
