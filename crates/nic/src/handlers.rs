//! Device programs on a card, and the handlers of an entry (sPIN §3.2, App. B.1).

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use abi::device::{image, map};
use abi::portals::{Handle, Me, Plain};
use hpu::{Engine, LoadMap, Program, isa};
use machine::{Accelerator, Machine};

use crate::region::Region;
use crate::stats::SourcePlace;

/// A handler of the loaded program.
#[derive(Clone, Debug)]
pub struct Handler {
    /// Its name in the program.
    pub name: Rc<str>,
    /// Its first instruction.
    pub entry: u32,
}

/// A piece of HPU memory. Its bytes are given out again when nobody has it any more: not the program, no entry or
/// message, no handler that runs, no transfer that is under way.
#[derive(Debug, PartialEq, Eq)]
pub struct HpuMemory {
    /// Card address.
    pub address: u32,
    /// Bytes.
    pub length: u32,
}

/// The handlers of an entry, and what they share.
#[derive(Debug)]
pub struct Handlers {
    /// Runs first, once a message.
    pub header: Option<Handler>,
    /// Runs for each packet with payload.
    pub payload: Option<Handler>,
    /// Runs last, once a message.
    pub completion: Option<Handler>,
    /// The HPU memory that they share.
    pub state: Option<Rc<HpuMemory>>,
    /// The second range of host memory (`handler_host_mem_start`).
    pub host_memory: Rc<Region>,
    /// Bytes at the start of the message that are the user header.
    pub user_hdr: u32,
}

/// The handlers of an ME as the program asks for them: addresses are those of the host twins.
#[derive(Clone, Copy, Debug)]
pub struct HandlerRequest {
    /// `header_handler`
    pub header: u64,
    /// `payload_handler`
    pub payload: u64,
    /// `completion_handler`
    pub completion: u64,
    /// `hpu_memory`
    pub memory: Handle,
}

impl HandlerRequest {
    /// What an ME asks for; `None` when it has no handlers.
    pub fn of(me: &Me) -> Option<HandlerRequest> {
        let request = HandlerRequest {
            header: me.header_handler,
            payload: me.payload_handler,
            completion: me.completion_handler,
            memory: me.hpu_memory,
        };
        (request.header | request.payload | request.completion != 0).then_some(request)
    }
}

/// Where device programs are loaded, and the memories of the card that they must leave alone.
pub fn load_map() -> LoadMap {
    let region = |name, base, end| hpu::Region { name, base, bytes: end - base };
    LoadMap {
        name: "the sPIN card",
        program: region("program memory", map::PROGRAM, map::RETURN),
        data: region("static data", map::DATA, map::PACKETS),
        others: vec![
            region("HPU memory", map::HPU_MEMORY, map::CONTEXTS),
            region("stacks", map::CONTEXTS, map::DATA),
            region("packet buffers", map::PACKETS, map::PROGRAM),
        ],
        return_address: map::RETURN,
    }
}

/// A device program registered by a process: where its handlers' host twins are, and the program for this card.
#[derive(Clone)]
pub struct DeviceProgram {
    /// The program.
    pub program: Arc<Program>,
    /// Address of the host twin, and the handler.
    pub handlers: Vec<(u64, Handler)>,
}

/// Why an image cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Not an image of this version.
    #[error("the embedded device image is not of this version of spinkit: recompile with spincc")]
    Version,
    /// Offsets point outside.
    #[error("the embedded device image is damaged: {0}")]
    Damaged(&'static str),
    /// No code for this card.
    #[error(
        "the program has no device code for HPU kind {wanted} (it has {found}): recompile with spincc --hpu {wanted}"
    )]
    NoKind {
        /// The machine's kind.
        wanted: String,
        /// Kinds in the image.
        found: String,
    },
    /// The machine's HPU kind is unknown.
    #[error(transparent)]
    Kind(#[from] isa::UnknownKind),
    /// The ELF is bad.
    #[error("device code for {kind}: {error}")]
    Elf {
        /// HPU kind.
        kind: String,
        /// What is wrong.
        error: hpu::ElfError,
    },
    /// A handler is not in the program.
    #[error("device code for {kind} has no handler '{handler}'")]
    NoHandler {
        /// HPU kind.
        kind: String,
        /// Symbol.
        handler: String,
    },
    /// It does not fit the card.
    #[error("the handlers' {what} takes {bytes} bytes, the card has {room}")]
    TooLarge {
        /// Code or data.
        what: &'static str,
        /// Bytes needed.
        bytes: usize,
        /// Bytes of the card.
        room: u32,
    },
}

/// A device program as cards hold it. Cards that share one share the work of decoding it and of finding out how long its
/// code takes; what branch predictors learn and the bytes of memories are each card's own.
pub struct CardProgram {
    pub(crate) device: DeviceProgram,
    pub(crate) engine: RefCell<Engine>,
}

impl CardProgram {
    /// For the cards of this machine.
    ///
    /// # Errors
    /// When it does not fit in their memories.
    pub fn new(device: DeviceProgram, machine: &Machine) -> Result<Rc<CardProgram>, ImageError> {
        let Accelerator::Sc17(unit) = &machine.accelerator;
        let program = &device.program;
        let (code, data) = (program.program_segment().len(), program.data_segment().len());
        if code > unit.program as usize {
            return Err(ImageError::TooLarge { what: "code", bytes: code, room: unit.program });
        }
        if data > unit.data as usize {
            return Err(ImageError::TooLarge { what: "static data", bytes: data, room: unit.data });
        }
        let engine = RefCell::new(Engine::new(program.clone(), machine.hpu.timing, unit.scratchpad_cycles));
        Ok(Rc::new(CardProgram { device, engine }))
    }

    /// The names of its handlers, sorted.
    pub fn handlers(&self) -> impl Iterator<Item = &str> {
        self.device.handlers.iter().map(|(_, handler)| &*handler.name)
    }

    /// A handler by name.
    pub(crate) fn named(&self, name: &str) -> Option<&Handler> {
        self.device.handlers.iter().map(|(_, handler)| handler).find(|handler| &*handler.name == name)
    }
}

impl DeviceProgram {
    /// Finds the program for `kind` in an image (`abi::device::image`) whose handlers' host twins start at
    /// `handlers_start`.
    pub fn from_image(bytes: &[u8], handlers_start: u64, kind: &str) -> Result<DeviceProgram, ImageError> {
        let preamble = image::Preamble::from_bytes(bytes).ok_or(ImageError::Damaged("too short"))?;
        if preamble.magic != image::MAGIC {
            return Err(ImageError::Version);
        }
        let mut at = size_of::<image::Preamble>();
        let devices: Vec<image::Device> = records(bytes, &mut at, preamble.devices)?;
        let handlers: Vec<image::Handler> = records(bytes, &mut at, preamble.handlers)?;
        let mut kinds = Vec::new();
        for device in &devices {
            kinds.push(text(bytes, device.kind_offset)?);
        }
        let Some(device) = kinds.iter().position(|found| *found == kind).map(|index| devices[index]) else {
            return Err(ImageError::NoKind { wanted: kind.into(), found: kinds.join(", ") });
        };
        let (start, length) = (device.elf_offset as usize, device.elf_length as usize);
        let elf = bytes.get(start..start.saturating_add(length)).ok_or(ImageError::Damaged("device code is cut"))?;
        let isa = isa::instruction_set(kind)?;
        let program =
            Program::load(elf, isa, &load_map()).map_err(|error| ImageError::Elf { kind: kind.into(), error })?;
        let handlers = handlers
            .iter()
            .map(|handler| {
                let name = text(bytes, handler.name_offset)?;
                let entry = program
                    .entry(name)
                    .ok_or_else(|| ImageError::NoHandler { kind: kind.into(), handler: name.into() })?;
                let host = handlers_start.wrapping_add(u64::from(handler.host_offset));
                Ok((host, Handler { name: name.into(), entry }))
            })
            .collect::<Result<_, ImageError>>()?;
        Ok(DeviceProgram { program: Arc::new(program), handlers })
    }

    /// The handler with this host twin.
    pub fn handler(&self, host_address: u64) -> Option<&Handler> {
        self.handlers.iter().find(|(address, _)| *address == host_address).map(|(_, handler)| handler)
    }

    /// Where the instruction at `pc` comes from.
    pub fn place(&self, pc: u32) -> SourcePlace {
        let line = self.program.line(pc).map(|location| (location.file.to_owned(), location.line));
        SourcePlace { function: self.program.function(pc).map(str::to_owned), line }
    }
}

fn records<T: Plain>(bytes: &[u8], at: &mut usize, count: u32) -> Result<Vec<T>, ImageError> {
    (0..count)
        .map(|_| {
            let record = bytes.get(*at..).and_then(T::from_bytes).ok_or(ImageError::Damaged("records are cut"))?;
            *at += size_of::<T>();
            Ok(record)
        })
        .collect()
}

fn text(bytes: &[u8], offset: u32) -> Result<&str, ImageError> {
    let rest = bytes.get(offset as usize..).ok_or(ImageError::Damaged("a name is cut"))?;
    let end = rest.iter().position(|byte| *byte == 0).ok_or(ImageError::Damaged("a name has no end"))?;
    std::str::from_utf8(&rest[..end]).map_err(|_| ImageError::Damaged("a name is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damaged_images_are_errors() {
        assert!(matches!(DeviceProgram::from_image(b"", 0, "rv32imac"), Err(ImageError::Damaged(_))));
        assert!(matches!(DeviceProgram::from_image(&[0; 64], 0, "rv32imac"), Err(ImageError::Version)));
        let mut preamble = image::Preamble { magic: image::MAGIC, devices: 7, ..Default::default() };
        let cut = DeviceProgram::from_image(preamble.as_bytes(), 0, "rv32imac");
        assert!(matches!(cut, Err(ImageError::Damaged("records are cut"))));
        preamble.devices = 0;
        let none = DeviceProgram::from_image(preamble.as_bytes(), 0, "rv32imac");
        assert!(matches!(none, Err(ImageError::NoKind { .. })));
    }
}
