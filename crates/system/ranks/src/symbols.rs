// SPDX-License-Identifier: Apache-2.0
//! Symbolic names of code addresses of a process.

use gimli::{DwarfSections, EndianSlice, LittleEndian, SectionId};
use object::{File, Object, ObjectSection, ObjectSegment, ObjectSymbol};
use std::borrow::Cow;
use std::fs;

/// Symbolic position of an instruction.
struct Found {
    /// Function with offset, or offset in the file.
    name: String,
    path: String,
    /// Source file and line, if the file has debug information.
    line: Option<String>,
}

/// Describes an instruction of a process by its function with offset, file and source line, or else by its address.
pub fn describe(pid: u32, address: u64) -> String {
    if address == 0 {
        return "an unknown place".into();
    }
    let known = find(pid, address).map(|Found { name, path, line }| {
        let line = line.map(|line| format!(" ({line})")).unwrap_or_default();
        format!("{name} in {}{line}", last_part(&path))
    });
    known.unwrap_or_else(|| format!("address {address:#x}"))
}

fn last_part(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, last)| last)
}

fn find(pid: u32, address: u64) -> Option<Found> {
    let maps = fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let (offset, path) = maps.lines().find_map(|line| {
        // "start-end rights offset device inode path" (proc(5))
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let (start, end) = (u64::from_str_radix(start, 16).ok()?, u64::from_str_radix(end, 16).ok()?);
        let offset = u64::from_str_radix(words.nth(1)?, 16).ok()?;
        let path = words.nth(2)?;
        (start..end).contains(&address).then(|| (address - start + offset, path.to_owned()))
    })?;
    let bytes = fs::read(&path).unwrap_or_default();
    let file = File::parse(&*bytes).ok();
    let address = file.as_ref().and_then(|file| {
        file.segments().find_map(|segment| {
            let (start, length) = segment.file_range();
            (start..start + length).contains(&offset).then(|| segment.address() + (offset - start))
        })
    });
    let known = file.as_ref().zip(address);
    let name = known.and_then(|(file, address)| function(file, address)).unwrap_or_else(|| format!("{offset:#x}"));
    Some(Found { name, path, line: known.and_then(|(file, address)| line(file, address)) })
}

/// Returns source file and line of an instruction.
fn line(file: &File<'_>, address: u64) -> Option<String> {
    let section = |id: SectionId| -> Result<Cow<'_, [u8]>, object::Error> {
        file.section_by_name(id.name()).map_or(Ok(Cow::default()), |section| section.uncompressed_data())
    };
    let sections = DwarfSections::load(section).ok()?;
    let dwarf = sections.borrow(|bytes| EndianSlice::new(bytes, LittleEndian));
    let mut units = dwarf.units();
    while let Some(header) = units.next().ok()? {
        let unit = dwarf.unit(header).ok()?;
        let Some(program) = unit.line_program.clone() else { continue };
        let (mut rows, mut before) = (program.rows(), None);
        while let Some((header, row)) = rows.next_row().ok()? {
            if let Some((start, number, line)) = before
                && (start..row.address()).contains(&address)
            {
                let name = dwarf.attr_string(&unit, header.file(number)?.path_name()).ok()?.to_string_lossy();
                return Some(format!("{}:{line}", last_part(&name)));
            }
            let place = || row.line().map(|line| (row.address(), row.file_index(), line));
            before = if row.end_sequence() { None } else { place() };
        }
    }
    None
}

/// Returns the function that contains an instruction, with the offset in it.
fn function(file: &File<'_>, address: u64) -> Option<String> {
    let functions =
        file.symbols().chain(file.dynamic_symbols()).filter(|symbol| symbol.kind() == object::SymbolKind::Text);
    let function = functions.filter(|symbol| symbol.address() <= address).max_by_key(ObjectSymbol::address)?;
    let distance = address - function.address();
    let name = function.name().ok()?;
    Some(if distance == 0 { name.to_owned() } else { format!("{name}+{distance:#x}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[inline(never)]
    #[unsafe(no_mangle)]
    extern "C" fn a_function_with_a_name() -> u32 {
        std::hint::black_box(7)
    }

    #[test]
    fn a_function_is_found_by_its_address() {
        assert_eq!(a_function_with_a_name(), 7);
        let address = a_function_with_a_name as *const () as u64;
        let place = describe(std::process::id(), address);
        assert!(place.starts_with("a_function_with_a_name in ranks-"), "{place}");
        assert!(describe(std::process::id(), address + 1).starts_with("a_function_with_a_name+0x1 in ranks-"));
        assert_eq!(describe(std::process::id(), 0), "an unknown place");
        assert_eq!(describe(std::process::id(), 16), "address 0x10");
    }
}
