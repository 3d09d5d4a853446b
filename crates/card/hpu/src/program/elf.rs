// SPDX-License-Identifier: Apache-2.0
//! Loads device programs from ELF files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use object::elf::{ET_EXEC, PT_LOAD, STT_FUNC, STT_NOTYPE, STT_OBJECT};
use object::read::elf::{FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};

use super::error::ElfError;
use super::lines::{Lines, Location};
use crate::isa::{DeviceElf, Isa};
use crate::map::{LoadMap, Region};

/// A function, a variable or a constant.
struct Symbol {
    start: u32,
    end: u32,
    name: String,
}

/// A device program: an ELF32 executable for one instruction set, linked for the address space of one [`LoadMap`].
/// Immutable.
pub struct Program {
    isa: Arc<dyn Isa>,
    region: Region,
    return_address: u32,
    code: Vec<u8>,
    data: Vec<u8>,
    data_parts: Vec<Range<u32>>,
    global_pointer: u32,
    entries: BTreeMap<String, u32>,
    /// Functions, sorted by start.
    functions: Vec<Symbol>,
    lines: Lines,
    /// Call frame information.
    frames: Vec<u8>,
    /// Static data and constants, sorted by start.
    objects: Vec<Symbol>,
}

impl Program {
    /// Loads a device ELF for cores that execute `isa`, on a card with the address space `map`.
    ///
    /// # Errors
    /// Returns an error if the file is malformed, is for another machine, needs extensions that the cores lack, or has
    /// segments outside the memories for programs.
    pub fn load(elf: &[u8], isa: Arc<dyn Isa>, map: &LoadMap) -> Result<Program, ElfError> {
        let file = DeviceElf::parse(elf)?;
        let header = file.elf_header();
        let (machine, expected) = isa.machine();
        let found = header.e_machine(LittleEndian).0;
        if found != machine {
            return Err(ElfError::Machine { found, isa: isa.name(), machine, expected });
        }
        let found = header.e_type(LittleEndian);
        if found != ET_EXEC {
            return Err(ElfError::Type { found: found.0 });
        }
        isa.check(&file).map_err(ElfError::Unsupported)?;

        let Images { code, data, data_parts } = segments(&file, map)?;
        let mut program = Program {
            isa,
            region: map.program,
            return_address: map.return_address,
            code,
            data,
            data_parts,
            global_pointer: 0,
            entries: BTreeMap::new(),
            functions: Vec::new(),
            lines: Lines::read(&file)?,
            frames: section(&file, ".debug_frame")?,
            objects: Vec::new(),
        };
        program.read_symbols(&file)?;
        Ok(program)
    }

    /// Returns the address of the function `handler`.
    pub fn entry(&self, handler: &str) -> Option<u32> {
        self.entries.get(handler).copied()
    }

    /// Returns the names of its functions in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns code and constants: the bytes at the start of program memory.
    pub fn program_segment(&self) -> &[u8] {
        &self.code
    }

    /// Returns the initial static data, `.bss` included: the bytes at the start of data memory.
    pub fn data_segment(&self) -> &[u8] {
        &self.data
    }

    /// Returns the address ranges of static data, in order; adjacent segments are merged.
    pub fn data_parts(&self) -> &[Range<u32>] {
        &self.data_parts
    }

    /// Returns the source line of the instruction at `pc`, if the program was compiled with `-g`. For an inlined
    /// handler call of the SDK, that is the program's call of it.
    pub fn line(&self, pc: u32) -> Option<Location<'_>> {
        // The line table also contains code that the linker removed, at address 0.
        if self.holds(pc) { self.lines.at(pc) } else { None }
    }

    /// Returns the name of the function that contains `pc`.
    pub fn function(&self, pc: u32) -> Option<&str> {
        let function = &self.functions[self.functions.partition_point(|f| f.start <= pc).checked_sub(1)?];
        (pc < function.end).then_some(&function.name)
    }

    /// Returns the last variable or constant that begins at or before `address`: its name, address and size in bytes.
    pub fn object(&self, address: u32) -> Option<(&str, u32, u32)> {
        let object = &self.objects[self.objects.partition_point(|o| o.start <= address).checked_sub(1)?];
        Some((&object.name, object.start, object.end - object.start))
    }

    /// Returns the functions that contain the instruction at `pc`, including inlined ones ([`Lines::frames`]).
    pub(super) fn frames(&self, pc: u32, function: &str) -> Vec<(String, Option<Location<'_>>)> {
        self.lines.frames(pc, function)
    }

    /// Returns true if the address is in the program's code or constants.
    pub(super) fn holds(&self, pc: u32) -> bool {
        pc.checked_sub(self.region.base).is_some_and(|at| (at as usize) < self.code.len())
    }

    /// Returns the section `.debug_frame`; empty if missing.
    pub(super) fn debug_frame(&self) -> &[u8] {
        &self.frames
    }

    /// Returns the encoding of the instruction at an address (in the low 16 bits for a two-byte one) and the number of
    /// bytes of memory that it accesses; `None` if the address has no instruction.
    pub fn encoding(&self, pc: u32) -> Option<(u32, u32)> {
        let bytes = self.code.get(pc.checked_sub(self.region.base)? as usize..)?;
        let decoded = self.isa.decode(bytes, pc)?;
        let word =
            bytes.get(..decoded.length as usize)?.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        Some((word, if decoded.class.accesses_memory() { decoded.access.bytes } else { 0 }))
    }

    /// Returns the instruction set of its code.
    pub fn isa(&self) -> &dyn Isa {
        &*self.isa
    }

    /// Returns the address of the code.
    pub(crate) fn base(&self) -> u32 {
        self.region.base
    }

    /// Returns the return address of a handler.
    pub(crate) fn return_address(&self) -> u32 {
        self.return_address
    }

    /// Returns the value of the global pointer; 0 if the program does not use it.
    pub(crate) fn global_pointer(&self) -> u32 {
        self.global_pointer
    }

    fn read_symbols(&mut self, file: &DeviceElf<'_>) -> Result<(), ElfError> {
        let global_pointer = self.isa.convention().global_pointer.map(|(_, symbol)| symbol);
        for symbol in file.symbols().filter(|s| s.is_definition() || s.kind() == object::SymbolKind::Unknown) {
            let sizes = [symbol.address(), symbol.size()].map(u32::try_from);
            // A file of 32 bits has no other symbols.
            let (name, [Ok(start), Ok(size)]) = (symbol.name()?, sizes) else { continue };
            if global_pointer == Some(name) {
                self.global_pointer = start;
            }
            let kind = symbol.elf_symbol().st_type();
            if kind == STT_OBJECT && size > 0 {
                let end = start.saturating_add(size);
                self.objects.push(Symbol { start, end, name: name.to_owned() });
            }
            let in_code = self.holds(start);
            // Assembly labels have no type; names that start with '$' or '.' are assembler-generated.
            if !in_code || name.is_empty() || name.starts_with(['$', '.']) || ![STT_FUNC, STT_NOTYPE].contains(&kind) {
                continue;
            }
            self.entries.insert(name.to_owned(), start);
            if kind == STT_FUNC {
                let end = start.saturating_add(size);
                self.functions.push(Symbol { start, end, name: name.to_owned() });
            }
        }
        self.objects.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        self.functions.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        Ok(())
    }
}

/// Memory contents of an executable.
struct Images {
    code: Vec<u8>,
    data: Vec<u8>,
    /// Address ranges of `data`.
    data_parts: Vec<Range<u32>>,
}

/// Returns the bytes of a section; empty if missing.
fn section(file: &DeviceElf<'_>, name: &str) -> Result<Vec<u8>, ElfError> {
    match file.section_by_name(name) {
        Some(section) => Ok(section.uncompressed_data()?.into_owned()),
        None => Ok(Vec::new()),
    }
}

fn segments(file: &DeviceElf<'_>, map: &LoadMap) -> Result<Images, ElfError> {
    let (mut code, mut data, mut data_parts) = (Vec::new(), Vec::new(), Vec::<Range<u32>>::new());
    for (index, segment) in file.elf_program_headers().iter().enumerate() {
        let (address, bytes) = (segment.p_vaddr(LittleEndian), segment.p_memsz(LittleEndian));
        if segment.p_type(LittleEndian) != PT_LOAD || bytes == 0 {
            continue;
        }
        let (image, at) = match (map.program.offset(address, bytes), map.data.offset(address, bytes)) {
            (Some(at), _) => (&mut code, at),
            (_, Some(at)) => {
                data_parts.push(address..address + bytes);
                (&mut data, at)
            }
            _ => return Err(misplaced(index, address, bytes, map)),
        };
        let truncated = ElfError::Truncated { index, address };
        let Ok(content) = segment.data(LittleEndian, file.data()) else { return Err(truncated) };
        if content.len() > bytes as usize {
            return Err(truncated);
        }
        let end = at + bytes as usize;
        image.resize(image.len().max(end), 0);
        image[at..at + content.len()].copy_from_slice(content);
    }
    data_parts.sort_by_key(|part| part.start);
    data_parts.dedup_by(|part, before| {
        let touches = part.start <= before.end;
        if touches {
            before.end = before.end.max(part.end);
        }
        touches
    });
    if code.is_empty() { Err(ElfError::NoCode) } else { Ok(Images { code, data, data_parts }) }
}

fn misplaced(index: usize, address: u32, bytes: u32, map: &LoadMap) -> ElfError {
    let end = u64::from(address) + u64::from(bytes);
    let overlaps = |region: &&Region| {
        u64::from(region.base) < end && u64::from(address) < u64::from(region.base) + u64::from(region.bytes)
    };
    let reserved = map.others.iter().find(overlaps);
    let partly =
        [map.program, map.data].iter().find(overlaps).map(|region| format!("only partly in the {}", region.name));
    let place = reserved.map(|region| format!("in the {}", region.name)).or(partly).unwrap_or("in no memory".into());
    ElfError::Placement {
        index,
        address,
        bytes,
        place,
        map: map.name,
        allowed: format!("{} and {}", map.program, map.data),
    }
}
