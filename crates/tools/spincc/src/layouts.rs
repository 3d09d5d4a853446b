// SPDX-License-Identifier: Apache-2.0
//! Layouts of structures, read from DWARF: for the host from the object of each source, and for the card from the
//! device program, with only the structures that handlers use. The image contains the latter. If the two differ, host
//! and card disagree about shared memory.

use std::collections::{BTreeMap, BTreeSet};

use gimli::{AttributeValue, DebuggingInformationEntry, DwAt, DwTag, Reader as _, Unit, UnitOffset, constants as dw};
use serde::{Deserialize, Serialize};

use super::dwarf::{self, Reader};

/// Named structure or union.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Structure {
    /// Tag or name of its typedef, in C++ with namespaces.
    pub name: String,
    /// Size in bytes.
    pub size: u64,
    /// Fields in order, including those of unnamed members.
    pub fields: Vec<Field>,
    /// Source file that declares it; empty in images.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub file: String,
}

/// Field of a structure.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Field {
    /// Name, with dots for members of unnamed structures.
    pub name: String,
    /// Offset from the start of the structure in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
    /// First bit of a bit-field, counted from `offset`, and its number of bits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bits: Option<(u64, u64)>,
}

/// Set of structures to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All structures.
    All,
    /// Structures used by code in a linked program. Code dropped by the linker has address 0.
    Linked,
}

/// Describes the differences between `host` and `card`, one sentence for each field.
pub fn differences(host: &Structure, card: &Structure) -> Vec<String> {
    let mut found = vec![];
    for field in &card.fields {
        let Some(other) = host.fields.iter().find(|f| f.name == field.name) else {
            found.push(format!("field `{}` exists on the card only", field.name));
            continue;
        };
        let name = &field.name;
        if (other.offset, other.bits) != (field.offset, field.bits) {
            found.push(format!(
                "field `{name}` is at offset {} on the host and {} on the card",
                other.offset, field.offset
            ));
        } else if other.size != field.size {
            found.push(format!("field `{name}` has {} bytes on the host and {} on the card", other.size, field.size));
        }
    }
    let only_host = host.fields.iter().filter(|f| !card.fields.iter().any(|c| c.name == f.name));
    found.extend(only_host.map(|f| format!("field `{}` exists on the host only", f.name)));
    if found.is_empty() && host.size != card.size {
        found.push(format!("it has {} bytes on the host and {} on the card", host.size, card.size));
    }
    found
}

/// Returns the sorted structures of an object or program declared in files that `wanted` accepts.
///
/// # Errors
/// When the DWARF is damaged.
pub fn read(bytes: &[u8], scope: Scope, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<Structure>, String> {
    dwarf::with(bytes, |dwarf| {
        let mut found = BTreeSet::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let types = Types::new(dwarf, &unit)?;
            let offsets = match scope {
                Scope::All => types.structures.keys().copied().collect(),
                Scope::Linked => types.linked()?,
            };
            for offset in offsets {
                found.extend(types.structure(offset, wanted)?);
            }
        }
        Ok(found.into_iter().collect())
    })
}

type Entry<'a> = DebuggingInformationEntry<Reader<'a>>;

/// Code or data that refers to a type.
#[derive(Clone, Copy)]
enum Use {
    Linked,
    DroppedVariable,
}

/// Types of one compilation unit.
struct Types<'u, 'a> {
    dwarf: &'u gimli::Dwarf<Reader<'a>>,
    unit: &'u Unit<Reader<'a>>,
    /// Defined structures and unions with their qualified names. Unnamed ones have the name of a typedef or none.
    structures: BTreeMap<UnitOffset, Option<String>>,
}

impl<'u, 'a> Types<'u, 'a> {
    fn new(dwarf: &'u gimli::Dwarf<Reader<'a>>, unit: &'u Unit<Reader<'a>>) -> gimli::Result<Types<'u, 'a>> {
        let mut types = Types { dwarf, unit, structures: BTreeMap::new() };
        let mut typedefs = vec![];
        let mut scopes: Vec<(isize, String)> = vec![];
        let mut entries = unit.entries();
        while let Some(entry) = entries.next_dfs()? {
            scopes.retain(|(depth, _)| *depth < entry.depth());
            let name = types.name(entry)?;
            let qualified = |name: &str| {
                scopes.iter().map(|(_, scope)| scope.as_str()).chain([name]).collect::<Vec<_>>().join("::")
            };
            match entry.tag() {
                dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type
                    if entry.attr(dw::DW_AT_declaration).is_none() =>
                {
                    types.structures.insert(entry.offset(), name.as_deref().map(qualified));
                }
                dw::DW_TAG_typedef => {
                    typedefs.extend(name.as_deref().map(qualified).zip(reference(entry, dw::DW_AT_type)))
                }
                _ => {}
            }
            if let (Some(name), true) = (name, is_scope(entry.tag())) {
                scopes.push((entry.depth(), name));
            }
        }
        for (name, target) in typedefs {
            if let Some(unnamed @ None) = types.structures.get_mut(&target) {
                *unnamed = Some(name);
            }
        }
        Ok(types)
    }

    /// Returns the structures used by linked code: the types of its variables and parameters, their pointees, and those
    /// of casts, which Clang lists before the first function.
    fn linked(&self) -> gimli::Result<BTreeSet<UnitOffset>> {
        let mut used = BTreeSet::new();
        let mut dropped = BTreeSet::new();
        let mut cast_limit = None;
        let mut entries = self.unit.entries();
        // Function or global variable being visited: its depth, and the use through it if it counts.
        let mut inside: Option<(isize, Option<Use>)> = None;
        while let Some(entry) = entries.next_dfs()? {
            if inside.is_some_and(|(depth, _)| entry.depth() <= depth) {
                inside = None;
            }
            if inside.is_none() && matches!(entry.tag(), dw::DW_TAG_subprogram | dw::DW_TAG_variable) {
                let is_function = entry.tag() == dw::DW_TAG_subprogram;
                if is_function {
                    cast_limit.get_or_insert(entry.offset());
                }
                let kind = match (self.is_linked(entry)?, is_function) {
                    (true, _) => Some(Use::Linked),
                    (false, true) => None,
                    (false, false) => Some(Use::DroppedVariable),
                };
                inside = Some((entry.depth(), kind));
            }
            match inside {
                Some((_, Some(Use::Linked))) => self.reach(entry, &mut used)?,
                Some((_, Some(Use::DroppedVariable))) => self.reach(entry, &mut dropped)?,
                _ => {}
            }
        }
        let limit = cast_limit.unwrap_or(UnitOffset(usize::MAX));
        used.extend(self.structures.range(..limit).map(|(o, _)| *o).filter(|o| !dropped.contains(o)));
        used.retain(|offset| self.structures.contains_key(offset));
        Ok(used)
    }

    /// Returns true if a function or global variable has an address; the linker leaves 0 (or 1, in lists) for dropped
    /// ones.
    fn is_linked(&self, entry: &Entry<'a>) -> gimli::Result<bool> {
        if let Some(AttributeValue::Exprloc(expression)) = entry.attr_value(dw::DW_AT_location) {
            let mut operations = expression.operations(self.unit.encoding());
            return Ok(matches!(operations.next()?, Some(gimli::Operation::Address { address }) if address > 1));
        }
        let mut ranges = self.dwarf.die_ranges(self.unit, entry)?;
        while let Some(range) = ranges.next()? {
            if range.begin > 1 {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Adds every type reachable from `entry`.
    fn reach(&self, entry: &Entry<'a>, types: &mut BTreeSet<UnitOffset>) -> gimli::Result<()> {
        for attribute in [dw::DW_AT_type, dw::DW_AT_abstract_origin, dw::DW_AT_specification] {
            let Some(target) = reference(entry, attribute).filter(|target| types.insert(*target)) else { continue };
            let mut tree = self.unit.entries_tree(Some(target))?;
            let root = tree.root()?;
            self.reach(root.entry(), types)?;
            let mut children = root.children();
            while let Some(child) = children.next()? {
                self.reach(child.entry(), types)?;
            }
        }
        Ok(())
    }

    fn structure(&self, offset: UnitOffset, wanted: &dyn Fn(&str) -> bool) -> gimli::Result<Option<Structure>> {
        let entry = self.unit.entry(offset)?;
        let (Some(Some(name)), Some(file)) = (self.structures.get(&offset), self.file(&entry)?) else {
            return Ok(None);
        };
        if !wanted(&file) {
            return Ok(None);
        }
        let mut fields = vec![];
        self.fields(offset, "", 0, &mut fields)?;
        let size = entry.attr(dw::DW_AT_byte_size).and_then(|a| a.udata_value()).unwrap_or(0);
        Ok(Some(Structure { name: name.clone(), size, fields, file }))
    }

    fn fields(&self, offset: UnitOffset, prefix: &str, base: u64, fields: &mut Vec<Field>) -> gimli::Result<()> {
        let mut tree = self.unit.entries_tree(Some(offset))?;
        let mut children = tree.root()?.children();
        while let Some(child) = children.next()? {
            let entry = child.entry();
            let is_member = matches!(entry.tag(), dw::DW_TAG_member | dw::DW_TAG_inheritance);
            let (true, None, Some(target)) =
                (is_member, entry.attr(dw::DW_AT_external), reference(entry, dw::DW_AT_type))
            else {
                continue;
            };
            let number = |name: DwAt| entry.attr(name).and_then(|a| a.udata_value());
            let mut field_offset = number(dw::DW_AT_data_member_location).unwrap_or(0);
            let size = self.size(target)?;
            let bits = match number(dw::DW_AT_bit_size) {
                None => None,
                Some(width) => {
                    let storage = number(dw::DW_AT_byte_size).unwrap_or(size);
                    // DWARF 4 §5.5.6: from the start of the structure, or, before that, from the storage unit's top.
                    let first = match (number(dw::DW_AT_data_bit_offset), number(dw::DW_AT_bit_offset)) {
                        (Some(first), _) => first,
                        (None, Some(top)) => (field_offset + storage) * 8 - top - width,
                        (None, None) => field_offset * 8,
                    };
                    field_offset = first / 8;
                    Some((first % 8, width))
                }
            };
            let name = match (self.name(entry)?, self.structures.get(&target)) {
                (Some(name), _) => name,
                (None, Some(Some(class))) => class.clone(),
                (None, _) => String::new(),
            };
            let path = [prefix, &name].into_iter().filter(|n| !n.is_empty()).collect::<Vec<_>>().join(".");
            if let Some(None) = self.structures.get(&target) {
                self.fields(target, &path, base + field_offset, fields)?;
            } else {
                fields.push(Field { name: path, offset: base + field_offset, size, bits });
            }
        }
        Ok(())
    }

    /// Returns the size of a type in bytes.
    fn size(&self, offset: UnitOffset) -> gimli::Result<u64> {
        let entry = self.unit.entry(offset)?;
        if let Some(size) = entry.attr(dw::DW_AT_byte_size).and_then(|a| a.udata_value()) {
            return Ok(size);
        }
        match (entry.tag(), reference(&entry, dw::DW_AT_type)) {
            (dw::DW_TAG_pointer_type | dw::DW_TAG_reference_type | dw::DW_TAG_rvalue_reference_type, _) => {
                Ok(self.unit.encoding().address_size.into())
            }
            (dw::DW_TAG_array_type, Some(element)) => Ok(self.size(element)? * self.elements(offset)?),
            (_, Some(target)) => self.size(target),
            (_, None) => Ok(0),
        }
    }

    fn elements(&self, array: UnitOffset) -> gimli::Result<u64> {
        let mut tree = self.unit.entries_tree(Some(array))?;
        let mut children = tree.root()?.children();
        let mut elements = 1;
        while let Some(child) = children.next()? {
            let number = |name: DwAt| child.entry().attr(name).and_then(|a| a.udata_value());
            // A flexible array has neither count nor bound.
            let count = number(dw::DW_AT_count).or(number(dw::DW_AT_upper_bound).map(|bound| bound.wrapping_add(1)));
            elements *= count.unwrap_or(0);
        }
        Ok(elements)
    }

    fn name(&self, entry: &Entry<'a>) -> gimli::Result<Option<String>> {
        let Some(value) = entry.attr_value(dw::DW_AT_name) else { return Ok(None) };
        Ok(Some(self.dwarf.attr_string(self.unit, value)?.to_string_lossy()?.into_owned()))
    }

    /// Returns the file that declares `entry`, by the path passed to the compiler.
    fn file(&self, entry: &Entry<'a>) -> gimli::Result<Option<String>> {
        match entry.attr_value(dw::DW_AT_decl_file) {
            Some(AttributeValue::FileIndex(index)) => dwarf::file_name(self.dwarf, self.unit, index),
            _ => Ok(None),
        }
    }
}

fn reference(entry: &Entry, attribute: DwAt) -> Option<UnitOffset> {
    match entry.attr_value(attribute) {
        Some(AttributeValue::UnitRef(offset)) => Some(offset),
        _ => None,
    }
}

fn is_scope(tag: DwTag) -> bool {
    matches!(tag, dw::DW_TAG_namespace | dw::DW_TAG_structure_type | dw::DW_TAG_class_type | dw::DW_TAG_union_type)
}
