// SPDX-License-Identifier: Apache-2.0
//! Checks a program's code: instructions that the core lacks are found when it is loaded.

use object::elf::{STT_FUNC, STT_NOTYPE};
use object::read::elf::{FileHeader, SectionHeader};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SectionKind};

use super::decode;
use crate::isa::interface::DeviceElf;
use crate::op::Class;

/// Kind of the bytes after a mapping symbol (ELF for the ARM architecture, 5.5.5).
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Arm,
    Thumb,
    Data,
}

/// Checks a program.
///
/// # Errors
/// Returns a clause about the program: it has Thumb code, is big-endian, or has an instruction that the core lacks.
pub fn check(elf: &DeviceElf<'_>) -> Result<(), String> {
    let endian = LittleEndian;
    let flags = elf.elf_header().e_flags(endian).0;
    // EF_ARM_BE8
    if flags & 0x0080_0000 != 0 {
        return Err("its code is big-endian, which armv7a cores do not execute".into());
    }
    let functions =
        || elf.symbols().filter(|symbol| symbol.elf_symbol().st_type() == STT_FUNC && symbol.is_definition());
    if let Some(thumb) = functions().find(|symbol| symbol.address() & 1 == 1) {
        return Err(format!(
            "its function '{}' is Thumb code (T32), which armv7a cores here do not execute: compile it with -marm",
            thumb.name().unwrap_or("?")
        ));
    }
    let mut marks: Vec<(u64, Kind)> = elf
        .symbols()
        .filter(|symbol| symbol.elf_symbol().st_type() == STT_NOTYPE)
        .filter_map(|symbol| Some((symbol.address(), kind(symbol.name().ok()?)?)))
        .collect();
    marks.sort_by_key(|(address, _)| *address);
    for section in elf.sections().filter(|section| section.kind() == SectionKind::Text) {
        if section.elf_section_header().sh_flags(endian).0 & 4 == 0 {
            continue;
        }
        let bytes = section.data().map_err(|error| error.to_string())?;
        let start = section.address();
        for (at, word) in bytes.as_chunks().0.iter().enumerate() {
            let (address, word) = (start + 4 * at as u64, u32::from_le_bytes(*word));
            let mark = marks[..marks.partition_point(|(mark, _)| *mark <= address)].last();
            match mark.filter(|(mark, _)| *mark >= start).map(|(_, kind)| *kind) {
                Some(Kind::Arm) => {}
                Some(Kind::Thumb) => {
                    return Err(format!(
                        "it has Thumb code (T32) at {address:#010x}, which armv7a cores here do not execute: compile it \
                         with -marm"
                    ));
                }
                // Without marks, data is not distinguished from code, and a missing instruction fails when it executes.
                Some(Kind::Data) | None => continue,
            }
            let decoded = decode::decode(word, address as u32);
            let is_known =
                decoded.class != Class::Trap || decode::find(word).is_some_and(|row| row.class == Class::Trap);
            if !is_known {
                let function = functions().find(|f| (f.address()..f.address() + f.size()).contains(&address));
                let name = function.and_then(|function| Some(function.name().ok()?.to_owned())).unwrap_or("?".into());
                return Err(format!(
                    "its function '{name}' has the instruction {word:#010x} at {address:#010x}, which armv7a cores here do \
                     not execute"
                ));
            }
        }
    }
    Ok(())
}

/// Returns the kind of a mapping symbol: "$a", or "$a.1".
fn kind(name: &str) -> Option<Kind> {
    match name.split('.').next()? {
        "$a" => Some(Kind::Arm),
        "$t" => Some(Kind::Thumb),
        "$d" => Some(Kind::Data),
        _ => None,
    }
}
