use std::borrow::Cow;
use std::collections::BTreeMap;

use object::{Object, ObjectSection};

use super::error::ElfError;
use crate::isa::DeviceElf;

/// A place in the source of a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Path as the compiler recorded it.
    pub file: &'a str,
    /// Line number, from 1.
    pub line: u32,
}

/// A row of the line table: code from `start` up to the start of the next row.
struct Row {
    start: u32,
    /// Index into the file names; `None` for code without a source line and after the last code of a unit.
    file: Option<u32>,
    line: u32,
}

/// The code of an inlined function, with the place of the call.
struct Inlined {
    start: u32,
    end: u32,
    name: String,
    /// Index into the file names.
    file: u32,
    line: u32,
}

/// Line information of a program.
#[derive(Default)]
pub struct Lines {
    files: Vec<String>,
    /// Sorted by start.
    rows: Vec<Row>,
    /// Inlined functions that are called outside the SDK; inner ones come after outer ones.
    inlined: Vec<Inlined>,
}

impl Lines {
    /// The source line of the instruction at `pc`. The line of an inlined handler call of the SDK is the line at which
    /// the program calls it.
    pub fn at(&self, pc: u32) -> Option<Location<'_>> {
        let row = self.row(pc)?;
        let place = |file: u32, line: u32| self.files.get(file as usize).map(|file| Location { file, line });
        let here = place(row.file?, row.line)?;
        if !is_sdk(here.file) {
            return Some(here);
        }
        let call = self.inlined.iter().rev().find(|call| (call.start..call.end).contains(&pc));
        call.and_then(|call| place(call.file, call.line)).or(Some(here))
    }

    /// The functions that the instruction at `pc` is in, innermost first, each with its place: the innermost one's is the
    /// instruction's, the others' is where they call the one before. `function` is the one whose code has inlined the others.
    /// Calls of the SDK are left out.
    pub fn frames(&self, pc: u32, function: &str) -> Vec<(String, Option<Location<'_>>)> {
        let mut calls: Vec<&Inlined> =
            self.inlined.iter().filter(|call| (call.start..call.end).contains(&pc)).collect();
        let file = self.row(pc).and_then(|row| self.files.get(row.file? as usize));
        if file.is_some_and(|file| is_sdk(file)) {
            calls.pop();
        }
        let mut frames = Vec::with_capacity(calls.len() + 1);
        let mut place = self.at(pc);
        for call in calls.into_iter().rev() {
            frames.push((call.name.clone(), place));
            place = self.files.get(call.file as usize).map(|file| Location { file, line: call.line });
        }
        frames.push((function.to_owned(), place));
        frames
    }

    /// The row of the instruction at `pc`.
    fn row(&self, pc: u32) -> Option<&Row> {
        Some(&self.rows[self.rows.partition_point(|row| row.start <= pc).checked_sub(1)?])
    }

    /// Reads the DWARF sections of a program.
    ///
    /// # Errors
    /// When they are malformed.
    pub fn read(file: &DeviceElf<'_>) -> Result<Lines, ElfError> {
        let section = |id: gimli::SectionId| -> Result<Cow<'_, [u8]>, object::Error> {
            file.section_by_name(id.name()).map_or(Ok(Default::default()), |section| section.uncompressed_data())
        };
        let sections = gimli::DwarfSections::load(section)?;
        let dwarf = sections.borrow(|bytes| gimli::EndianSlice::new(bytes, gimli::LittleEndian));

        let Lines { mut files, mut rows, mut inlined } = Lines::default();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let Some(program) = unit.line_program.clone() else { continue };
            // From file numbers of this unit's table to indices into `files`.
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
                let name = name_of_origin(&dwarf, &unit, entry)?;
                let mut ranges = dwarf.die_ranges(&unit, entry)?;
                while let Some(range) = ranges.next()? {
                    let (start, end) = (range.begin as u32, range.end as u32);
                    let line = u32::try_from(line).unwrap_or(u32::MAX);
                    inlined.push(Inlined { start, end, name: name.clone(), file, line });
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
        // Where one sequence ends and another starts, the start is last and applies.
        rows.sort_by_key(|row| (row.start, row.file.is_some()));
        inlined.retain(|call| !is_sdk(&files[call.file as usize]));
        Ok(Lines { files, rows, inlined })
    }
}

/// The name of the function of which an entry is a copy.
fn name_of_origin(
    dwarf: &gimli::Dwarf<Slice<'_>>,
    unit: &gimli::Unit<Slice<'_>>,
    entry: &gimli::DebuggingInformationEntry<Slice<'_>>,
) -> Result<String, gimli::Error> {
    let Some(gimli::AttributeValue::UnitRef(origin)) = entry.attr_value(gimli::DW_AT_abstract_origin) else {
        return Ok(UNNAMED.into());
    };
    let origin = unit.entry(origin)?;
    match origin.attr_value(gimli::DW_AT_name) {
        Some(name) => Ok(dwarf.attr_string(unit, name)?.to_string_lossy().into_owned()),
        None => Ok(UNNAMED.into()),
    }
}

/// A function without a name.
const UNNAMED: &str = "?";

/// Whether a file contains the SDK's handler calls (`spin/device.h` and what it includes), not a program's own code.
fn is_sdk(file: &str) -> bool {
    file.contains("include/spin/")
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
        // Directory 0 is the one in which the compiler ran: names in it stay as the user gave them.
        Some(directory) if file.directory_index() != 0 && !name.starts_with('/') => {
            Ok(format!("{}/{name}", dwarf.attr_string(unit, directory)?.to_string_lossy()))
        }
        _ => Ok(name),
    }
}
