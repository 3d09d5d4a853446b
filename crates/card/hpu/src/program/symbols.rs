// SPDX-License-Identifier: Apache-2.0
//! Functions and source lines of an executable of 32 bits for any machine.

use std::collections::BTreeMap;
use std::ops::Range;

use object::elf::STT_FUNC;
use object::{Object, ObjectSymbol};

use super::error::ElfError;
use super::lines::{Lines, Location};
use crate::isa::DeviceElf;

/// Functions and source lines of a program.
pub struct Symbols {
    entries: BTreeMap<String, Range<u32>>,
    /// Names of functions by their first address.
    functions: BTreeMap<u32, String>,
    lines: Lines,
}

impl Symbols {
    /// Reads the functions in the addresses `code`, and the lines.
    ///
    /// # Errors
    /// Returns an error if the file is malformed.
    pub fn read(elf: &[u8], code: Range<u32>) -> Result<Symbols, ElfError> {
        let file = DeviceElf::parse(elf)?;
        let mut entries = BTreeMap::new();
        for symbol in file.symbols().filter(|symbol| symbol.is_definition()) {
            // A file of 32 bits has no other addresses.
            let (Ok(start), Ok(size)) = (u32::try_from(symbol.address()), u32::try_from(symbol.size())) else {
                continue;
            };
            if symbol.elf_symbol().st_type() == STT_FUNC && code.contains(&start) {
                entries.insert(symbol.name()?.to_owned(), start..start.saturating_add(size));
            }
        }
        let functions = entries.iter().map(|(name, range)| (range.start, name.clone())).collect();
        Ok(Symbols { entries, functions, lines: Lines::read(&file)? })
    }

    /// Returns the names of the functions in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// Returns the address of a function.
    pub fn entry(&self, name: &str) -> Option<u32> {
        self.entries.get(name).map(|range| range.start)
    }

    /// Returns the name of the function that contains `pc`.
    pub fn function(&self, pc: u32) -> Option<&str> {
        let (_, name) = self.functions.range(..=pc).next_back()?;
        self.entries.get(name).is_some_and(|range| pc < range.end).then_some(name)
    }

    /// Returns the source line of the instruction at `pc`, if the program was compiled with `-g`.
    pub fn line(&self, pc: u32) -> Option<Location<'_>> {
        self.function(pc)?;
        self.lines.at(pc)
    }
}
