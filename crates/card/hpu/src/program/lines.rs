// SPDX-License-Identifier: Apache-2.0
//! Source lines and inlined functions, from DWARF.

use std::borrow::Cow;
use std::collections::BTreeMap;

use object::{Object, ObjectSection};

use super::error::ElfError;
use crate::isa::DeviceElf;

/// Source location of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Location<'a> {
    /// Path as recorded by the compiler.
    pub file: &'a str,
    /// Line number, from 1.
    pub line: u32,
}

/// A row of the line table: code from `start` to the start of the next row.
struct Row {
    start: u32,
    /// Index into the file names; `None` for code without a source line and after the last code of a unit.
    file: Option<u32>,
    line: u32,
}

/// Code of an inlined function, with the location of its call.
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
    /// Rows, sorted by start.
    rows: Vec<Row>,
    /// Inlined functions with calls outside the SDK; inner ones follow outer ones.
    inlined: Vec<Inlined>,
}

impl Lines {
    /// Returns the source line of the instruction at `pc`. For an inlined handler call of the SDK, that is the
    /// program's call of it.
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

    /// Returns the functions that contain the instruction at `pc`, innermost first: the innermost with the location of
    /// the instruction, the others with that of their call. `function` is the one into which the others are inlined.
    /// SDK functions are omitted.
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

    /// Returns the row of the instruction at `pc`.
    fn row(&self, pc: u32) -> Option<&Row> {
        Some(&self.rows[self.rows.partition_point(|row| row.start <= pc).checked_sub(1)?])
    }

    /// Reads the DWARF sections of a program.
    ///
    /// # Errors
    /// Returns an error if they are malformed.
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
            // Maps file numbers of this unit's table to indices into `files`.
            let mut numbers = BTreeMap::new();
            let mut number = |index: u64, header: &gimli::LineProgramHeader<Slice<'_>>| {
                if let (None, Some(entry)) = (numbers.get(&index), header.file(index)) {
                    // More files than numbers have no line, as files without an entry.
                    let Ok(number) = u32::try_from(files.len()) else { return Ok(None) };
                    files.push(path(&dwarf, &unit, header, entry)?);
                    numbers.insert(index, number);
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
                    // A program of 32 bits has no code beyond.
                    let [Ok(start), Ok(end)] = [range.begin, range.end].map(u32::try_from) else { continue };
                    let line = u32::try_from(line).unwrap_or(u32::MAX);
                    inlined.push(Inlined { start, end, name: name.clone(), file, line });
                }
            }
            let mut lines = program.rows();
            while let Some((header, row)) = lines.next_row()? {
                let Ok(start) = u32::try_from(row.address()) else { continue };
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
        // At the boundary of two sequences, the start sorts last and applies.
        rows.sort_by_key(|row| (row.start, row.file.is_some()));
        inlined.retain(|call| !is_sdk(&files[call.file as usize]));
        Ok(Lines { files, rows, inlined })
    }
}

/// Returns the name of the function from which an entry was copied.
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

/// Placeholder for a function without a name.
const UNNAMED: &str = "?";

/// Returns true if a file contains the SDK's handler calls (`spin/device.h` and its includes).
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
        // Directory 0 is the compiler's working directory: names in it stay as the user gave them.
        Some(directory) if file.directory_index() != 0 && !name.starts_with('/') => {
            Ok(format!("{}/{name}", dwarf.attr_string(unit, directory)?.to_string_lossy()))
        }
        _ => Ok(name),
    }
}
