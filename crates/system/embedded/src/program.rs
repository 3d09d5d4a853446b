// SPDX-License-Identifier: Apache-2.0
//! The file of a program: its segments, relocations and imports (System V ABI, chapters 4 and 5).

#![deny(clippy::cast_possible_truncation)] // values come from input

use crate::types::{Symbol, Unfit};
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, ProgramHeader, Rela, Sym};
use object::{Endianness, pod};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Size of a page.
pub const PAGE: u64 = 4096;

type Header = FileHeader64<Endianness>;
const ENDIAN: Endianness = Endianness::Little;

/// Function that returns a symbol by its name, and whether it is weak; `None` if a rank may not use it.
pub type Find = fn(&[u8], bool) -> Option<Symbol>;

/// Libraries whose functions `symbols` knows.
const LIBRARIES: [&str; 5] = ["libportals.so.4", "libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"];

/// A loadable segment.
#[derive(Clone, Debug)]
pub struct Segment {
    /// Addresses relative to the program's base, including zeroed memory.
    pub range: Range<u64>,
    /// Offset and length of the contents in the file.
    pub file: Range<u64>,
    /// True if writable.
    pub is_writable: bool,
    /// True if executable.
    pub is_executable: bool,
}

/// Value that a relocation stores.
#[derive(Clone, Copy, Debug)]
pub enum Value {
    /// Base address plus a constant.
    Base(u64),
    /// Address of a symbol outside of the program, plus a constant.
    Outside(Symbol, u64),
    /// Result of the function at this address relative to the base.
    Resolver(u64),
    /// Content of the C library's variable.
    Variable(Symbol),
}

/// A program that can be embedded.
#[derive(Debug)]
pub struct Program {
    /// Path of the file.
    pub path: PathBuf,
    /// Contents of the file.
    pub bytes: Vec<u8>,
    /// Opened file.
    pub file: File,
    /// Loadable segments, by address.
    pub segments: Vec<Segment>,
    /// Relocations: address relative to the base, and value.
    pub relocations: Vec<(u64, Value)>,
    /// True if the program uses its standard input.
    pub uses_input: bool,
    /// Entry point, relative to the base.
    pub entry: u64,
    /// Functions that run before `main`, in this order; the addresses are relative to the base.
    pub init: Vec<Function>,
    /// Functions that run at the end, in this order.
    pub fini: Vec<Function>,
}

/// A function that runs before or after `main`.
#[derive(Clone, Copy, Debug)]
pub enum Function {
    /// Its address relative to the base.
    At(u64),
    /// Address relative to the base of a pointer to it.
    Pointer(u64),
}

impl Program {
    /// Reads a program. `find` returns a symbol by its name, and whether it is weak.
    ///
    /// # Errors
    /// [`Unfit`] with the reason why it cannot be embedded.
    pub fn read(path: &OsStr, find: Find) -> Result<Program, Unfit> {
        let mut file = File::open(path).map_err(|_| Unfit::Format)?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(|_| Unfit::Format)?;
        let parts = Parts::read(&bytes, find).ok_or(Unfit::Format)??;
        let Parts { segments, relocations, entry, init, fini } = parts;
        let is_input =
            |value: &Value| matches!(value, Value::Variable(Symbol::Stream(0)) | Value::Outside(Symbol::Stream(0), _));
        let uses_input = relocations.iter().any(|(_, value)| is_input(value));
        let path = Path::new(path).into();
        Ok(Program { path, bytes, file, segments, relocations, uses_input, entry, init, fini })
    }

    /// Returns the number of bytes from the base to the end of the last segment, a multiple of [`PAGE`].
    pub fn size(&self) -> u64 {
        self.segments.last().map_or(0, |segment| segment.range.end.next_multiple_of(PAGE))
    }
}

struct Parts {
    segments: Vec<Segment>,
    relocations: Vec<(u64, Value)>,
    entry: u64,
    init: Vec<Function>,
    fini: Vec<Function>,
}

impl Parts {
    /// Reads the parts of a file; `None` if it is damaged or no program for this machine.
    fn read(bytes: &[u8], find: Find) -> Option<Result<Parts, Unfit>> {
        let header = Header::parse(bytes).ok()?;
        if header.e_type(ENDIAN) != elf::ET_DYN
            || header.e_machine(ENDIAN) != elf::EM_X86_64
            || !header.is_little_endian()
        {
            return None;
        }
        let headers = header.program_headers(ENDIAN, bytes).ok()?;
        headers.iter().find_map(|header| header.interpreter(ENDIAN, bytes).ok()?)?;
        if headers.iter().any(|header| header.p_type(ENDIAN) == elf::PT_TLS) {
            return Some(Err(Unfit::ThreadLocal));
        }
        let loads = headers.iter().filter(|header| header.p_type(ENDIAN) == elf::PT_LOAD);
        let segments: Vec<Segment> = loads.map(Segment::of).collect::<Option<_>>()?;
        let is_sorted = segments.windows(2).all(|pair| pair[0].range.end.next_multiple_of(PAGE) <= pair[1].range.start);
        let is_whole = segments.iter().all(|segment| segment.file.end <= bytes.len() as u64);
        if segments.first()?.range.start != 0 || !is_sorted || !is_whole {
            return None;
        }
        let sections = header.sections(ENDIAN, bytes).ok()?;
        let symbols = sections.symbols(ENDIAN, bytes, elf::SHT_DYNSYM).ok()?;
        let entries = headers.iter().find_map(|header| header.dynamic(ENDIAN, bytes).ok()?)?;
        let tag = |tag: elf::DynamicTag| {
            entries.iter().find(|entry| entry.tag(ENDIAN) == tag).map(|entry| entry.d_val(ENDIAN))
        };
        for entry in entries.iter().filter(|entry| entry.tag(ENDIAN) == elf::DT_NEEDED) {
            let name = entry.string(ENDIAN, symbols.strings()).ok()?;
            if !LIBRARIES.iter().any(|known| known.as_bytes() == name) {
                return Some(Err(Unfit::Library(String::from_utf8_lossy(name).into_owned())));
            }
        }
        let mut relocations = Vec::new();
        let mut starts_through_library = false;
        let tables = [(elf::DT_RELA, elf::DT_RELASZ), (elf::DT_JMPREL, elf::DT_PLTRELSZ)];
        for (start, size) in tables.map(|(start, size)| (tag(start), tag(size))) {
            let (Some(start), Some(size)) = (start, size) else { continue };
            let at = usize::try_from(file_offset(&segments, start)?).ok()?;
            let count = usize::try_from(size).ok()? / size_of::<elf::Rela64<Endianness>>();
            let (table, _) = pod::slice_from_bytes::<elf::Rela64<Endianness>>(bytes.get(at..)?, count).ok()?;
            for row in table {
                // Index 0 is a symbol without a name.
                let symbol = symbols.symbols().get(row.r_sym(ENDIAN, false) as usize)?;
                let name = symbol.name(ENDIAN, symbols.strings()).ok()?;
                starts_through_library |= name == b"__libc_start_main";
                let address = row.r_offset(ENDIAN);
                if !segments.iter().any(|segment| segment.is_writable && segment.holds(address, 8)) {
                    return None;
                }
                match value(row, symbol, name, find) {
                    Ok(value) => relocations.push((address, value)),
                    Err(reason) => return Some(Err(reason)),
                }
            }
        }
        if !starts_through_library || tag(elf::DT_RELR).is_some() || tag(elf::DT_PREINIT_ARRAY).is_some() {
            return Some(Err(Unfit::Format));
        }
        let array = |start: elf::DynamicTag, size: elf::DynamicTag| -> Vec<Function> {
            let (Some(start), Some(size)) = (tag(start), tag(size)) else { return Vec::new() };
            let is_held = segments.iter().any(|segment| segment.holds(start, size));
            let count = if is_held { size / 8 } else { 0 };
            (0..count).map(|k| Function::Pointer(start + 8 * k)).collect()
        };
        let init = tag(elf::DT_INIT).map(Function::At);
        let init = init.into_iter().chain(array(elf::DT_INIT_ARRAY, elf::DT_INIT_ARRAYSZ)).collect();
        let fini = array(elf::DT_FINI_ARRAY, elf::DT_FINI_ARRAYSZ).into_iter().rev();
        let fini = fini.chain(tag(elf::DT_FINI).map(Function::At)).collect();
        Some(Ok(Parts { segments, relocations, entry: header.e_entry(ENDIAN), init, fini }))
    }
}

impl Segment {
    /// Returns true if `length` bytes from an address belong to the segment.
    fn holds(&self, address: u64, length: u64) -> bool {
        let end = address.checked_add(length);
        self.range.start <= address && end.is_some_and(|end| end <= self.range.end)
    }

    fn of(header: &elf::ProgramHeader64<Endianness>) -> Option<Segment> {
        let (start, offset) = (header.p_vaddr(ENDIAN), header.p_offset(ENDIAN));
        let flags = header.p_flags(ENDIAN);
        (start % PAGE == offset % PAGE).then_some(())?;
        Some(Segment {
            range: start..start.checked_add(header.p_memsz(ENDIAN))?,
            file: offset..offset.checked_add(header.p_filesz(ENDIAN))?,
            is_writable: flags.contains(elf::PF_W),
            is_executable: flags.contains(elf::PF_X),
        })
    }
}

/// Returns the position in the file of an address.
fn file_offset(segments: &[Segment], address: u64) -> Option<u64> {
    let segment = segments.iter().find(|segment| segment.range.contains(&address))?;
    Some(segment.file.start + (address - segment.range.start))
}

/// Returns the value that a relocation stores.
fn value(
    row: &elf::Rela64<Endianness>,
    symbol: &elf::Sym64<Endianness>,
    name: &[u8],
    find: Find,
) -> Result<Value, Unfit> {
    let addend = row.r_addend(ENDIAN) as u64;
    let outside = || {
        let found = find(name, symbol.st_bind() == elf::STB_WEAK);
        found.ok_or_else(|| Unfit::Function(String::from_utf8_lossy(name).into_owned()))
    };
    match row.r_type(ENDIAN, false) {
        elf::R_X86_64_RELATIVE => Ok(Value::Base(addend)),
        elf::R_X86_64_IRELATIVE => Ok(Value::Resolver(addend)),
        elf::R_X86_64_COPY => outside().map(Value::Variable),
        elf::R_X86_64_64 | elf::R_X86_64_GLOB_DAT | elf::R_X86_64_JUMP_SLOT => {
            let addend = if row.r_type(ENDIAN, false) == elf::R_X86_64_64 { addend } else { 0 };
            if symbol.st_shndx(ENDIAN) != elf::SHN_UNDEF {
                return Ok(Value::Base(symbol.st_value(ENDIAN).wrapping_add(addend)));
            }
            Ok(Value::Outside(outside()?, addend))
        }
        other => Err(Unfit::Relocation(other.0)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows each function except `fork`.
    fn known(name: &[u8], _: bool) -> Option<Symbol> {
        (name != b"fork" && name != b"vfork").then_some(Symbol::Function(1))
    }

    fn reason(name: &str, bytes: &[u8]) -> Unfit {
        let path = std::env::temp_dir().join(format!("spinkit-embedded-{}-{name}", std::process::id()));
        std::fs::write(&path, bytes).unwrap();
        let reason = Program::read(path.as_os_str(), known);
        std::fs::remove_file(&path).unwrap();
        reason.unwrap_err()
    }

    #[test]
    fn other_files_are_refused() {
        assert_eq!(Program::read(OsStr::new("/nowhere"), known).unwrap_err(), Unfit::Format);
        assert_eq!(reason("empty", b""), Unfit::Format);
        assert_eq!(reason("text", b"#!/bin/sh\n"), Unfit::Format);
        // This test is a Rust program, which has thread-local variables.
        let own = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(reason("own", &own), Unfit::ThreadLocal);
    }

    #[test]
    fn damaged_files_are_refused() {
        // The shell itself is refused, as it uses `vfork`.
        let shell = std::fs::read("/bin/sh").unwrap();
        for length in (0..shell.len().min(8192)).step_by(61) {
            reason("short", &shell[..length]);
        }
        for at in 0..1024 {
            let mut bytes = shell.clone();
            bytes[at] ^= 0xff;
            assert!(Parts::read(&bytes, known).is_none_or(|parts| parts.is_err()), "{at}");
        }
    }
}
