use std::collections::BTreeMap;

use abi::device::map;
use object::elf::{EM_RISCV, ET_EXEC, PT_LOAD, STT_FUNC, STT_NOTYPE};
use object::read::elf::{ElfFile32, FileHeader, ProgramHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
use thiserror::Error;

/// Largest program segment: up to [`map::RETURN`].
const PROGRAM_MAX: u32 = map::RETURN - map::PROGRAM;
/// Largest data segment: up to [`map::PACKETS`].
const DATA_MAX: u32 = map::PACKETS - map::DATA;

/// Why bytes are not a device program.
#[derive(Debug, Error)]
pub enum ElfError {
    /// Not an ELF32 file, or a broken one.
    #[error("device program: not a valid 32-bit ELF file: {0}")]
    Elf(#[from] object::Error),
    /// An ELF file of another kind.
    #[error("device program: {what} is {found}, expected {expected}")]
    Kind {
        /// The header field.
        what: &'static str,
        /// Its value.
        found: u16,
        /// What a device program has.
        expected: &'static str,
    },
    /// A loadable segment that is not where the card has memory for programs or their data.
    #[error(
        "device program: segment {index} at {address:#010x}, {bytes} B, is outside of program memory ({:#010x}, {} B) and data memory ({:#010x}, {} B)",
        map::PROGRAM,
        PROGRAM_MAX,
        map::DATA,
        DATA_MAX
    )]
    Placement {
        /// Which program header.
        index: usize,
        /// Its address.
        address: u32,
        /// Its size in memory.
        bytes: u32,
    },
    /// A loadable segment that holds more bytes in the file than in memory, or whose bytes are not in the file.
    #[error("device program: segment {index} at {address:#010x}: its bytes are not in the file")]
    Truncated {
        /// Which program header.
        index: usize,
        /// Its address.
        address: u32,
    },
    /// No loadable segment in program memory.
    #[error("device program: no code")]
    NoCode,
    /// Unreadable line information.
    #[error("device program: bad line information (DWARF): {0}")]
    Dwarf(#[from] gimli::Error),
}

/// A place in the source of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Path as the compiler recorded it.
    pub file: &'a str,
    /// From 1.
    pub line: u32,
}

/// A row of the line table: code from `start` on, up to the next row.
struct Row {
    start: u32,
    /// Index into the file names; `None` closes a sequence.
    file: Option<u32>,
    line: u32,
}

/// Code of an inlined function: the call that it stands for.
struct Inlined {
    start: u32,
    end: u32,
    /// Index into the file names.
    file: u32,
    line: u32,
}

/// Line information of a program.
#[derive(Default)]
struct Lines {
    files: Vec<String>,
    /// By start.
    rows: Vec<Row>,
    /// Inlined functions that were called from elsewhere than the SDK; inner ones behind outer ones.
    inlined: Vec<Inlined>,
}

struct Function {
    start: u32,
    end: u32,
    name: String,
}

/// A device program: an ELF32 executable for RISC-V, linked at [`map::PROGRAM`] and [`map::DATA`]. Immutable.
pub struct Program {
    code: Vec<u8>,
    data: Vec<u8>,
    global_pointer: u32,
    entries: BTreeMap<String, u32>,
    /// By start.
    functions: Vec<Function>,
    lines: Lines,
}

impl Program {
    /// Reads a device ELF.
    ///
    /// # Errors
    /// Every malformed or foreign file, with what is wrong.
    pub fn load(elf: &[u8]) -> Result<Program, ElfError> {
        let file = ElfFile32::<LittleEndian>::parse(elf)?;
        let header = file.elf_header();
        let kind = |what, found, wanted, expected| match found == wanted {
            true => Ok(()),
            false => Err(ElfError::Kind { what, found, expected }),
        };
        kind("machine", header.e_machine(LittleEndian).0, EM_RISCV.0, "243 (RISC-V)")?;
        kind("type", header.e_type(LittleEndian).0, ET_EXEC.0, "2 (executable)")?;

        let (code, data) = segments(&file)?;
        let lines = line_table(&file)?;
        let mut program =
            Program { code, data, global_pointer: 0, entries: BTreeMap::new(), functions: Vec::new(), lines };
        program.read_symbols(&file)?;
        Ok(program)
    }

    /// Address of the function `handler`.
    pub fn entry(&self, handler: &str) -> Option<u32> {
        self.entries.get(handler).copied()
    }

    /// Code and constants: the bytes at [`map::PROGRAM`].
    pub fn program_segment(&self) -> &[u8] {
        &self.code
    }

    /// Initial static data, `.bss` included: the bytes at [`map::DATA`].
    pub fn data_segment(&self) -> &[u8] {
        &self.data
    }

    /// The source line of the instruction at `pc`, when the program was compiled with `-g`. That of a handler call of
    /// the SDK, which is inlined, is where the program calls it.
    pub fn line(&self, pc: u32) -> Option<Location<'_>> {
        // The line table also has code that the linker has left out, at address 0.
        self.code.get(pc.checked_sub(map::PROGRAM)? as usize)?;
        let Lines { files, rows, inlined } = &self.lines;
        let row = &rows[rows.partition_point(|row| row.start <= pc).checked_sub(1)?];
        let place = |file: u32, line: u32| files.get(file as usize).map(|file| Location { file, line });
        let here = place(row.file?, row.line)?;
        if !of_sdk(here.file) {
            return Some(here);
        }
        let call = inlined.iter().rev().find(|call| (call.start..call.end).contains(&pc));
        call.and_then(|call| place(call.file, call.line)).or(Some(here))
    }

    /// The function that `pc` is in.
    pub fn function(&self, pc: u32) -> Option<&str> {
        let function = &self.functions[self.functions.partition_point(|f| f.start <= pc).checked_sub(1)?];
        (pc < function.end).then_some(&function.name)
    }

    /// Value of `gp` (`__global_pointer$`), 0 when the program does not use it.
    pub(crate) fn global_pointer(&self) -> u32 {
        self.global_pointer
    }

    fn read_symbols(&mut self, file: &ElfFile32<'_, LittleEndian>) -> Result<(), ElfError> {
        for symbol in file.symbols().filter(|s| s.is_definition() || s.kind() == object::SymbolKind::Unknown) {
            let (name, start) = (symbol.name()?, symbol.address() as u32);
            if name == "__global_pointer$" {
                self.global_pointer = start;
            }
            let kind = symbol.elf_symbol().st_type();
            let in_code = start.checked_sub(map::PROGRAM).is_some_and(|at| (at as usize) < self.code.len());
            // Assembly labels have no type; names that start with '$' or '.' are the assembler's own.
            if !in_code || name.is_empty() || name.starts_with(['$', '.']) || ![STT_FUNC, STT_NOTYPE].contains(&kind) {
                continue;
            }
            self.entries.insert(name.to_owned(), start);
            if kind == STT_FUNC {
                let end = start.saturating_add(symbol.size() as u32);
                self.functions.push(Function { start, end, name: name.to_owned() });
            }
        }
        self.functions.sort_by(|a, b| (a.start, &a.name).cmp(&(b.start, &b.name)));
        Ok(())
    }
}

/// Memory images of the program and of the data segment.
fn segments(file: &ElfFile32<'_, LittleEndian>) -> Result<(Vec<u8>, Vec<u8>), ElfError> {
    let (mut code, mut data) = (Vec::new(), Vec::new());
    for (index, segment) in file.elf_program_headers().iter().enumerate() {
        let (address, bytes) = (segment.p_vaddr(LittleEndian), segment.p_memsz(LittleEndian));
        if segment.p_type(LittleEndian) != PT_LOAD || bytes == 0 {
            continue;
        }
        let fits = |base: u32, max: u32| {
            address.checked_sub(base).filter(|at| u64::from(*at) + u64::from(bytes) <= u64::from(max))
        };
        let (image, at) = match (fits(map::PROGRAM, PROGRAM_MAX), fits(map::DATA, DATA_MAX)) {
            (Some(at), _) => (&mut code, at as usize),
            (_, Some(at)) => (&mut data, at as usize),
            _ => return Err(ElfError::Placement { index, address, bytes }),
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
    if code.is_empty() { Err(ElfError::NoCode) } else { Ok((code, data)) }
}

/// Whether a file holds handler calls (`spin/device.h` and what it includes), not a program's own code.
fn of_sdk(file: &str) -> bool {
    file.contains("include/spin/")
}

/// File names, the rows of all line programs by address, and inlined calls.
fn line_table(file: &ElfFile32<'_, LittleEndian>) -> Result<Lines, ElfError> {
    let section = |id: gimli::SectionId| -> Result<std::borrow::Cow<'_, [u8]>, object::Error> {
        file.section_by_name(id.name()).map_or(Ok(Default::default()), |section| section.uncompressed_data())
    };
    let sections = gimli::DwarfSections::load(section)?;
    let dwarf = sections.borrow(|bytes| gimli::EndianSlice::new(bytes, gimli::LittleEndian));

    let Lines { mut files, mut rows, mut inlined } = Lines::default();
    let mut units = dwarf.units();
    while let Some(header) = units.next()? {
        let unit = dwarf.unit(header)?;
        let Some(program) = unit.line_program.clone() else { continue };
        // File numbers of this unit's table to ours.
        let mut numbers = BTreeMap::new();
        let mut number = |index: u64, header: &gimli::LineProgramHeader<Slice<'_>>| {
            if let (None, Some(entry)) = (numbers.get(&index), header.file(index)) {
                files.push(path(&dwarf, &unit, header, entry)?);
                numbers.insert(index, files.len() as u32 - 1);
            }
            Ok::<_, gimli::Error>(numbers.get(&index).copied())
        };
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            let attribute = |name| entry.attr_value(name).and_then(|value| value.udata_value());
            let call = match entry.attr_value(gimli::DW_AT_call_file) {
                Some(gimli::AttributeValue::FileIndex(file)) => Some(file).zip(attribute(gimli::DW_AT_call_line)),
                _ => None,
            };
            let (gimli::DW_TAG_inlined_subroutine, Some((file, line))) = (entry.tag(), call) else { continue };
            let Some(file) = number(file, program.header())? else { continue };
            let mut ranges = dwarf.die_ranges(&unit, entry)?;
            while let Some(range) = ranges.next()? {
                let (start, end) = (range.begin as u32, range.end as u32);
                inlined.push(Inlined { start, end, file, line: u32::try_from(line).unwrap_or(u32::MAX) });
            }
        }
        let mut lines = program.rows();
        while let Some((header, row)) = lines.next_row()? {
            let start = row.address() as u32;
            if row.end_sequence() {
                rows.push(Row { start, file: None, line: 0 });
                continue;
            }
            // Line 0 is code without a source line.
            let Some(line) = row.line() else {
                rows.push(Row { start, file: None, line: 0 });
                continue;
            };
            let Some(file) = number(row.file_index(), header)? else { continue };
            rows.push(Row { start, file: Some(file), line: u32::try_from(line.get()).unwrap_or(u32::MAX) });
        }
    }
    // Where one sequence ends and another starts, the start comes last and wins.
    rows.sort_by_key(|row| (row.start, row.file.is_some()));
    inlined.retain(|call| !of_sdk(&files[call.file as usize]));
    Ok(Lines { files, rows, inlined })
}

type Slice<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;

fn path(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    unit: &gimli::Unit<Slice<'_>>,
    header: &gimli::LineProgramHeader<Slice<'_>>,
    file: &gimli::FileEntry<Slice<'_>>,
) -> Result<String, gimli::Error> {
    let name = dwarf.attr_string(unit, file.path_name())?.to_string_lossy().into_owned();
    match file.directory(header) {
        // Directory 0 is where the compiler ran: names in it stay as the user gave them.
        Some(directory) if file.directory_index() != 0 && !name.starts_with('/') => {
            Ok(format!("{}/{name}", dwarf.attr_string(unit, directory)?.to_string_lossy()))
        }
        _ => Ok(name),
    }
}
