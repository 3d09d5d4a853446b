// SPDX-License-Identifier: Apache-2.0
//! Functions with the arguments of a handler that host code uses by address, but that `__handler` does not mark: they
//! exist on the host only, and `PtlMEAppend` would refuse them when the program runs. The paper's listings (sPIN
//! App. C.3) have no mark.

use std::collections::HashMap;

use abi::device::image::HANDLERS_SECTION;
use gimli::{AttributeValue, DebuggingInformationEntry, Reader as _, Unit, UnitOffset, constants as dw};
use object::{
    Architecture, Object, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget, SectionKind, SymbolIndex,
};

use super::dwarf::{self, Reader};

type Entry<'a> = DebuggingInformationEntry<Reader<'a>>;

/// A function with the arguments of a handler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Name of the symbol.
    pub name: String,
    /// Kind of handler with these arguments.
    role: &'static str,
    /// File and line of its definition.
    place: (String, u64),
}

impl Function {
    /// Returns the message that refuses the function.
    pub fn refusal(&self) -> String {
        let Function { name, role, place: (file, line) } = self;
        format!(
            "{file}:{line}: '{name}' is used as a {role} handler, but has no code for the card: write __handler before its \
             definition, '__handler int {name}(...)' (-Wno-spin-unmarked if it is no handler)"
        )
    }
}

/// Returns the functions of a host object with debug information that have the arguments of a handler and no mark.
///
/// # Errors
/// When the object or its DWARF is damaged.
pub fn candidates(bytes: &[u8]) -> Result<Vec<Function>, String> {
    let file = object::File::parse(bytes).map_err(|e| e.to_string())?;
    let handlers = file.section_by_name(HANDLERS_SECTION).map(|section| section.index());
    let marked = |name: &str| {
        let is_handler = |symbol: &object::Symbol| symbol.section_index() == handlers && symbol.name() == Ok(name);
        handlers.is_some() && file.symbols().any(|symbol| is_handler(&symbol))
    };
    let mut found = functions(bytes)?;
    found.retain(|function| !marked(&function.name));
    found.sort_by(|one, other| one.place.cmp(&other.place));
    Ok(found)
}

/// Returns those of `candidates` whose address code of the host, or data, contains, in an object that is compiled with
/// `-O0 -ffunction-sections`: relocations then show every use.
///
/// # Errors
/// When the object is damaged.
pub fn taken<'a>(bytes: &[u8], candidates: &'a [Function]) -> Result<Vec<&'a Function>, String> {
    let file = object::File::parse(bytes).map_err(|e| e.to_string())?;
    let sections: HashMap<_, _> = file
        .symbols()
        .filter_map(|symbol| {
            let name = symbol.name().ok()?;
            let function = candidates.iter().position(|function| function.name == name)?;
            Some((symbol.section_index()?, function))
        })
        .collect();
    let mut uses = vec![false; candidates.len()];
    for section in file.sections() {
        let is_used = matches!(
            section.kind(),
            SectionKind::Text | SectionKind::Data | SectionKind::ReadOnlyData | SectionKind::ReadOnlyDataWithRel
        );
        if !is_used || section.name().is_ok_and(|name| name == HANDLERS_SECTION || name == ".eh_frame") {
            continue;
        }
        let code = section.data().unwrap_or_default();
        for (offset, relocation) in section.relocations() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let Some(target) = section_of(&file, index).and_then(|section| sections.get(&section)) else { continue };
            let before = offset.checked_sub(1).and_then(|at| code.get(at as usize)).copied();
            uses[*target] |= !is_call(file.architecture(), relocation.flags(), before);
        }
    }
    Ok(candidates.iter().zip(uses).filter_map(|(function, used)| used.then_some(function)).collect())
}

fn section_of(file: &object::File, index: SymbolIndex) -> Option<object::SectionIndex> {
    file.symbol_by_index(index).ok()?.section_index()
}

/// Returns true for the relocation of a call or jump; `before` is the byte before its place.
fn is_call(architecture: Architecture, flags: RelocationFlags, before: Option<u8>) -> bool {
    use object::elf::{R_AARCH64_CALL26, R_AARCH64_JUMP26, R_X86_64_PC32, R_X86_64_PLT32};
    const CALL: u8 = 0xe8;
    const JUMP: u8 = 0xe9;
    let RelocationFlags::Elf { r_type } = flags else { return false };
    match architecture {
        // Assemblers write PC32 for calls of static functions, as for addresses.
        Architecture::X86_64 => {
            r_type == R_X86_64_PLT32 || (r_type == R_X86_64_PC32 && matches!(before, Some(CALL | JUMP)))
        }
        Architecture::Aarch64 => [R_AARCH64_CALL26, R_AARCH64_JUMP26].contains(&r_type),
        _ => false,
    }
}

fn functions(bytes: &[u8]) -> Result<Vec<Function>, String> {
    dwarf::with(bytes, |dwarf| {
        let mut found = vec![];
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let reader = Functions { dwarf, unit: &unit };
            let mut entries = unit.entries();
            while let Some(entry) = entries.next_dfs()? {
                if entry.tag() == dw::DW_TAG_subprogram && entry.attr(dw::DW_AT_low_pc).is_some() {
                    found.extend(reader.function(entry.offset())?);
                }
            }
        }
        Ok(found)
    })
}

/// Functions of one compilation unit.
struct Functions<'u, 'a> {
    dwarf: &'u gimli::Dwarf<Reader<'a>>,
    unit: &'u Unit<Reader<'a>>,
}

impl<'a> Functions<'_, 'a> {
    /// Returns the function if it has the arguments of a handler (sPIN App. B.3 to B.5).
    fn function(&self, offset: UnitOffset) -> gimli::Result<Option<Function>> {
        let entry = self.unit.entry(offset)?;
        let mut parameters = vec![];
        let mut tree = self.unit.entries_tree(Some(offset))?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            if child.entry().tag() == dw::DW_TAG_formal_parameter {
                parameters.push(self.type_of(child.entry())?);
            }
        }
        let parameters: Vec<&str> = parameters.iter().map(String::as_str).collect();
        let role = match parameters.as_slice() {
            [header, "void *"] if is_header(header) => "header",
            ["ptl_payload_t", "void *"] => "payload",
            ["int", "_Bool" | "bool", "void *"] => "completion",
            _ => return Ok(None),
        };
        let name = match self.text(&entry, dw::DW_AT_linkage_name)? {
            Some(name) => name,
            None => self.text(&entry, dw::DW_AT_name)?.unwrap_or_default(),
        };
        if self.type_of(&entry)? != "int" {
            return Ok(None);
        }
        let file = match entry.attr_value(dw::DW_AT_decl_file) {
            Some(AttributeValue::FileIndex(index)) => dwarf::file_name(self.dwarf, self.unit, index)?,
            Some(value) => match value.udata_value() {
                Some(index) => dwarf::file_name(self.dwarf, self.unit, index)?,
                None => None,
            },
            None => None,
        };
        let line = entry.attr(dw::DW_AT_decl_line).and_then(|line| line.udata_value()).unwrap_or(0);
        Ok(Some(Function { name, role, place: (file.unwrap_or_default(), line) }))
    }

    /// Returns the name of a type without `const`: that of a structure or basic type, or "void *".
    fn type_of(&self, entry: &Entry<'a>) -> gimli::Result<String> {
        let mut at = reference(entry);
        while let Some(offset) = at {
            let entry = self.unit.entry(offset)?;
            match entry.tag() {
                dw::DW_TAG_const_type | dw::DW_TAG_typedef => at = reference(&entry),
                dw::DW_TAG_pointer_type if reference(&entry).is_none() => return Ok("void *".to_owned()),
                _ => return Ok(self.text(&entry, dw::DW_AT_name)?.unwrap_or_default()),
            }
        }
        Ok(String::new())
    }

    fn text(&self, entry: &Entry<'a>, name: gimli::DwAt) -> gimli::Result<Option<String>> {
        let Some(value) = entry.attr_value(name) else { return Ok(None) };
        Ok(Some(self.dwarf.attr_string(self.unit, value)?.to_string_lossy()?.into_owned()))
    }
}

/// Returns true for a structure that `<spin.h>` or `<spin/paper.h>` names `ptl_header_t`.
fn is_header(name: &str) -> bool {
    ["ptl_header_t", "spin_paper_header", "spin_paper_header_with_user"].contains(&name)
}

fn reference(entry: &Entry) -> Option<UnitOffset> {
    match entry.attr_value(dw::DW_AT_type) {
        Some(AttributeValue::UnitRef(offset)) => Some(offset),
        _ => None,
    }
}
