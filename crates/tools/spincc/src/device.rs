// SPDX-License-Identifier: Apache-2.0
//! Device link: links the objects of all sources for one HPU kind with the device runtime, and checks that the result
//! fits into the card's memories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use abi::device::image::HANDLERS_SECTION;
use abi::device::map;
use object::build::elf::{Builder, SectionData};
use object::elf::FileHeader32;
use object::read::elf::{FileHeader, SectionHeader};
use object::{Endian, Endianness, Object, ObjectSection, ObjectSymbol, SymbolKind, elf};

use super::bundle::Part;
use super::kind::Kind;
use super::options::Language;
use super::tool::Tools;
use super::{Error, Result, undefined};

/// Linked device program, with debug information.
pub struct Program {
    /// HPU kind for which it was linked.
    pub kind: Kind,
    /// Bytes of the ELF file.
    pub elf: Vec<u8>,
}

/// Names of handlers, with the places of their definitions.
pub type Candidates = BTreeMap<String, Vec<String>>;

/// Lists every handler of `parts`, whether or not the link takes it from its archive. A program cannot have two
/// handlers of one name, not even static ones, because host and card identify handlers by name.
///
/// # Errors
/// When an object cannot be read, or a handler is defined twice.
pub fn candidates(parts: &[Part]) -> Result<Candidates> {
    let mut found = Candidates::new();
    // Count only objects that are always linked. C++'s inline functions are weak and the same in every object.
    let mut certain: BTreeMap<String, u32> = BTreeMap::new();
    for part in parts {
        let Some(object) = part.devices.values().next() else { continue };
        let malformed = |e: object::Error| Error::malformed(Path::new(&part.origin), e);
        let file = object::File::parse(&**object).map_err(malformed)?;
        let Some(section) = file.section_by_name(HANDLERS_SECTION) else { continue };
        let functions =
            file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.section_index() == Some(section.index()));
        for symbol in functions {
            let name = symbol.name().map_err(malformed)?;
            found.entry(name.into()).or_default().push(part.origin.clone());
            if part.archive.is_none() && !symbol.is_weak() {
                *certain.entry(name.into()).or_default() += 1;
            }
        }
    }
    refuse_twins(&found, &certain)?;
    Ok(found)
}

/// Returns the sorted names of the handlers in a linked program.
///
/// # Errors
/// When the program cannot be read, or has two handlers of one name.
pub fn linked(candidates: &Candidates, program: &Program) -> Result<Vec<String>> {
    let malformed = |e: object::Error| Error::Program(format!("device program for {}: {e}", program.kind.name));
    let file = object::File::parse(&*program.elf).map_err(malformed)?;
    let mut linked: BTreeMap<String, u32> = BTreeMap::new();
    for symbol in file.symbols().filter(|s| s.kind() == SymbolKind::Text) {
        let name = symbol.name().map_err(malformed)?;
        if candidates.contains_key(name) {
            *linked.entry(name.into()).or_default() += 1;
        }
    }
    refuse_twins(candidates, &linked)?;
    Ok(linked.into_keys().collect())
}

fn refuse_twins(candidates: &Candidates, counts: &BTreeMap<String, u32>) -> Result<()> {
    let twins = counts.iter().filter(|(_, count)| **count > 1).map(|(name, _)| {
        format!("handler '{}' is defined more than once: {}", undefined::readable(name), candidates[name].join(", "))
    });
    let errors: Vec<String> = twins.collect();
    if errors.is_empty() { Ok(()) } else { Err(Error::Program(errors.join("\n"))) }
}

/// Links the device objects of `parts` for `kind`.
///
/// # Errors
/// When the link fails, or the program does not fit on the card.
pub fn link(tools: &Tools, kind: &Kind, parts: &[Part]) -> Result<Program> {
    let mut command = tools.device(kind, Language::C, &kind.link_target)?;
    command.args(["-O3", "-Xclang", "-O3", "-ffreestanding", "-fno-builtin", "-static"]);
    command.arg(format!("-Wl,-T,{}", kind.script.display()));
    command.args(["-Wl,--gc-sections", "-Wl,--entry=0", "-Wl,-z,max-page-size=16"]);
    let mut objects = vec![];
    let mut archives: Vec<(&Path, Command)> = vec![];
    for (i, part) in parts.iter().enumerate() {
        let Some(bytes) = part.devices.get(&kind.name) else { continue };
        let path = tools.temp_path(format!("{i}.{}.o", kind.name));
        let object = without_constructors(bytes).map_err(|e| Error::malformed(Path::new(&part.origin), e))?;
        std::fs::write(&path, object).map_err(Error::write(&path))?;
        match (&part.archive, archives.last_mut()) {
            (None, _) => drop(command.arg(&path)),
            (Some(archive), Some((last, members))) if last == archive => drop(members.arg(&path)),
            (Some(archive), _) => {
                // Members of an archive go into an archive again, from which the linker takes those needed, as for the
                // host.
                let copy = tools.temp_path(format!("{i}.{}.a", kind.name));
                command.arg(&copy);
                let mut members = tools.zig()?;
                members.args(["ar", "rc"]).arg(copy).arg(&path);
                archives.push((archive, members));
            }
        }
        objects.push((path, part));
    }
    for (_, mut archive) in archives {
        tools.run(&mut archive)?;
    }
    command.args(runtime(tools)?);
    let program = tools.temp_path(format!("{}.elf", kind.name));
    let output = tools.capture(command.arg("-o").arg(&program))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::Program(undefined::explain(&messages, kind, &objects, parts)));
    }
    let unset = undefined::set_by_constructors(kind, &objects);
    if !unset.is_empty() {
        return Err(Error::Program(unset.join("\n")));
    }
    let elf = std::fs::read(&program).map_err(Error::read(&program))?;
    check_sizes(kind, &elf)?;
    Ok(Program { kind: kind.clone(), elf })
}

/// Returns the object with its lists of constructors marked as excluded (`SHF_EXCLUDE`). Constructors run on the host
/// only, and the linker would keep everything reachable from them.
fn without_constructors(object: &[u8]) -> object::Result<Vec<u8>> {
    let header = FileHeader32::<Endianness>::parse(object)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, object)?;
    let mut bytes = object.to_vec();
    for (i, section) in sections.iter().enumerate() {
        if undefined::is_constructor_list(&String::from_utf8_lossy(sections.section_name(endian, section)?)) {
            let entry = header.e_shoff(endian) as usize + i * usize::from(header.e_shentsize(endian));
            let flags = (section.sh_flags(endian).0 | elf::SHF_EXCLUDE.0) as u32;
            // sh_flags is the third word of a section header.
            bytes[entry + 8..entry + 12].copy_from_slice(&endian.write_u32(flags));
        }
    }
    Ok(bytes)
}

fn runtime(tools: &Tools) -> Result<Vec<PathBuf>> {
    let folder = tools.listed.device_dir().join("runtime");
    let entries = folder.read_dir().map_err(Error::read(&folder))?;
    let mut sources: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.retain(|path| path.extension().is_some_and(|e| e == "c"));
    sources.sort();
    Ok(sources)
}

/// Returns a warning for each function of linked programs whose frame alone exceeds a handler's stack, about all kinds.
/// Host functions are not in these programs.
///
/// # Errors
/// When a program cannot be read.
pub fn large_frames(programs: &[Program]) -> Result<Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Program { kind, elf } in programs {
        let malformed = |e: object::Error| Error::Program(format!("device program for {}: {e}", kind.name));
        let file = object::File::parse(&**elf).map_err(malformed)?;
        let Some(section) = file.section_by_name(".stack_sizes") else { continue };
        let names: BTreeMap<u64, &str> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text)
            .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?)))
            .collect();
        for (address, frame) in stack_sizes(section.data().map_err(malformed)?) {
            if frame > kind.stack_bytes {
                let name = undefined::readable(names.get(&address).copied().unwrap_or("?"));
                let (frame, stack) = (grouped(frame), grouped(kind.stack_bytes));
                found.entry(name).or_default().push(format!("{frame} bytes of {stack} for {}", kind.name));
            }
        }
    }
    let told = found.into_iter().map(|(name, kinds)| {
        let kinds = kinds.join(", ");
        format!("'{name}' needs more stack than cards have: {kinds} (accelerator.stack_bytes in a machine file)")
    });
    Ok(told.collect())
}

/// Returns the entries of a `.stack_sizes` section: the address of a function, and the bytes of its frame in ULEB128
/// (LLVM, "Emitting function stack size information").
fn stack_sizes(mut bytes: &[u8]) -> Vec<(u64, u64)> {
    let mut entries = vec![];
    while let Some((address, rest)) = bytes.split_first_chunk::<4>() {
        let Some(last) = rest.iter().position(|byte| byte & 0x80 == 0) else { break };
        let (size, rest) = rest.split_at(last + 1);
        let frame = size.iter().rev().fold(0, |frame: u64, byte| frame << 7 | u64::from(byte & 0x7f));
        entries.push((u32::from_le_bytes(*address).into(), frame));
        bytes = rest;
    }
    entries
}

/// Refuses a program that exceeds the card's memories.
///
/// # Errors
/// When it does, with the largest functions or variables.
pub fn check_sizes(kind: &Kind, elf: &[u8]) -> Result<()> {
    let malformed = |e: object::Error| Error::Program(format!("device program for {}: {e}", kind.name));
    let file = object::File::parse(elf).map_err(malformed)?;
    let regions = [
        ("program memory", map::PROGRAM..map::RETURN, kind.program_bytes),
        ("static data", map::DATA..map::PACKETS, kind.data_bytes),
    ];
    for (what, region, limit) in regions {
        let is_inside = |address: u64| region.contains(&(address as u32));
        let ends = file.sections().filter(|s| is_inside(s.address())).map(|s| s.address() + s.size());
        let need = ends.max().map_or(0, |end| end - u64::from(region.start));
        if need <= limit {
            continue;
        }
        let mut symbols: Vec<(u64, String)> = file
            .symbols()
            .filter(|s| s.is_definition() && is_inside(s.address()) && s.size() > 0)
            .map(|s| (s.size(), undefined::readable(s.name().unwrap_or_default())))
            .collect();
        symbols.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let largest: Vec<String> =
            symbols.iter().take(5).map(|(size, name)| format!("{name} {}", grouped(*size))).collect();
        return Err(Error::Program(format!(
            "handlers need {} bytes of {what} for {}, the card has {}; largest: {}",
            grouped(need),
            kind.name,
            grouped(limit),
            largest.join(", ")
        )));
    }
    Ok(())
}

/// Formats a number with separators: 41200 as "41,200".
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Loads an embedded program as a card does.
///
/// # Errors
/// When the card would refuse it, for example because it needs extensions that its kind of core lacks.
pub fn check_loads(kind: &Kind, elf: &[u8]) -> Result<()> {
    match hpu::Program::load(elf, kind.isa.clone(), &nic::load_map()) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Program(format!("{}: {error}", kind.name))),
    }
}

/// Returns the program as embedded: its two segments, the attributes of its target, the symbols of functions and data,
/// and with `debug` its DWARF.
///
/// # Errors
/// When the file is malformed.
pub fn embeddable(elf_bytes: &[u8], debug: bool) -> Result<Vec<u8>> {
    let failed = |e: object::build::Error| Error::Program(format!("device program: {e}"));
    let mut builder = Builder::read(elf_bytes).map_err(failed)?;
    for section in &mut builder.sections {
        let is_ours = section.is_alloc()
            || (debug && section.name.starts_with(b".debug_"))
            || matches!(
                section.data,
                SectionData::Attributes(_)
                    | SectionData::Symbol
                    | SectionData::SymbolSectionIndex
                    | SectionData::String
                    | SectionData::SectionString
            );
        section.delete = !is_ours;
    }
    for symbol in &mut builder.symbols {
        // Mapping symbols of ARM distinguish code from data in it.
        symbol.delete = !matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_OBJECT) && !symbol.name.starts_with(b"$");
    }
    for segment in &mut builder.segments {
        segment.delete = !segment.is_load();
    }
    let mut bytes = vec![];
    builder.write(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn frames_of_functions() {
        let bytes = [0, 0, 0, 0x1d, 0xc0, 0x46, 0x10, 0, 0, 0x1d, 0x10, 1, 2];
        assert_eq!(super::stack_sizes(&bytes), [(0x1d00_0000, 9024), (0x1d00_0010, 16)]);
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (41200, "41,200"), (1234567, "1,234,567")] {
            assert_eq!(super::grouped(number), text);
        }
    }
}
