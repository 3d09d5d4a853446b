// SPDX-License-Identifier: Apache-2.0
//! Reads DWARF from objects, whose sections need relocation, and from programs.

use std::borrow::Cow;
use std::path::Path;

use gimli::{Dwarf, EndianSlice, Reader as _, RelocateReader, RunTimeEndian, SectionId, Unit};
use object::{Object, ObjectSection, RelocationMap};

pub type Reader<'a> = RelocateReader<EndianSlice<'a, RunTimeEndian>, &'a Relocations>;

/// Calls `read` with the DWARF of an object or program.
///
/// # Errors
/// When the DWARF is damaged, or `read` fails.
pub fn with<T>(bytes: &[u8], read: impl FnOnce(&Dwarf<Reader>) -> gimli::Result<T>) -> Result<T, String> {
    let file = object::File::parse(bytes).map_err(|e| e.to_string())?;
    let sections = gimli::DwarfSections::load(|id| Section::load(&file, id)).map_err(|e| e.to_string())?;
    let endian = if file.is_little_endian() { RunTimeEndian::Little } else { RunTimeEndian::Big };
    let dwarf =
        sections.borrow(|section| RelocateReader::new(EndianSlice::new(&section.data, endian), &section.relocations));
    read(&dwarf).map_err(|e| format!("bad debug information: {e}"))
}

/// Returns a file of a unit's line table, by the path passed to the compiler.
pub fn file_name<'a>(dwarf: &Dwarf<Reader<'a>>, unit: &Unit<Reader<'a>>, index: u64) -> gimli::Result<Option<String>> {
    let Some(program) = &unit.line_program else { return Ok(None) };
    let Some(file) = program.header().file(index) else { return Ok(None) };
    let text = |value| -> gimli::Result<String> { Ok(dwarf.attr_string(unit, value)?.to_string_lossy()?.into_owned()) };
    let name = text(file.path_name())?;
    // Directory 0 is the compiler's working directory.
    match file.directory(program.header()).filter(|_| file.directory_index() != 0) {
        Some(directory) => Ok(Some(Path::new(&text(directory)?).join(name).display().to_string())),
        None => Ok(Some(name)),
    }
}

#[derive(Debug, Default)]
pub struct Relocations(RelocationMap);

impl gimli::Relocate for &Relocations {
    fn relocate_address(&self, offset: usize, value: u64) -> gimli::Result<u64> {
        Ok(self.0.relocate(offset as u64, value))
    }

    fn relocate_offset(&self, offset: usize, value: usize) -> gimli::Result<usize> {
        <usize as gimli::ReaderOffset>::from_u64(self.0.relocate(offset as u64, value as u64))
    }
}

#[derive(Default)]
struct Section<'a> {
    data: Cow<'a, [u8]>,
    relocations: Relocations,
}

impl<'a> Section<'a> {
    fn load(file: &object::File<'a>, id: SectionId) -> object::Result<Section<'a>> {
        let Some(section) = file.section_by_name(id.name()) else { return Ok(Section::default()) };
        let mut relocations = RelocationMap::default();
        for (offset, relocation) in section.relocations() {
            // Unknown kinds are positions of thread-local variables, which no handler has.
            let _ = relocations.add(file, offset, relocation);
        }
        Ok(Section { data: section.uncompressed_data()?, relocations: Relocations(relocations) })
    }
}
