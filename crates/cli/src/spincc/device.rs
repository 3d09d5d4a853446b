//! The device link: every source's object for one HPU kind, the device runtime, and what the card can hold.

use std::collections::BTreeMap;
use std::path::PathBuf;

use abi::device::image::HANDLERS_SECTION;
use abi::device::map;
use object::build::elf::{Builder, SectionData};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind, elf};

use super::bundle::Part;
use super::kind::Kind;
use super::options::Language;
use super::tool::Tools;
use super::{Error, Result, undefined};

/// A linked device program, with debug information.
pub struct Program {
    /// For which HPU kind.
    pub kind: Kind,
    /// The ELF.
    pub elf: Vec<u8>,
}

/// The names of all handlers, sorted. A program cannot have two of one name, even static ones: the name is what host
/// and card know a handler by.
pub fn handlers(parts: &[Part]) -> Result<Vec<String>> {
    let mut found: BTreeMap<String, Vec<(&Part, bool)>> = BTreeMap::new();
    for part in parts {
        let Some(object) = part.devices.values().next() else { continue };
        let malformed = |e: object::Error| Error::Program(format!("{}: {e}", part.origin));
        let file = object::File::parse(&**object).map_err(malformed)?;
        let Some(section) = file.section_by_name(HANDLERS_SECTION) else { continue };
        let functions =
            file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.section_index() == Some(section.index()));
        for symbol in functions {
            found.entry(symbol.name().map_err(malformed)?.into()).or_default().push((part, symbol.is_weak()));
        }
    }
    // Inline functions of C++ are weak and the same everywhere.
    let twice = found.iter().filter(|(_, places)| places.len() > 1 && places.iter().any(|(_, weak)| !weak));
    let errors: Vec<String> = twice
        .map(|(name, places)| {
            let origins: Vec<&str> = places.iter().map(|(part, _)| part.origin.as_str()).collect();
            format!("handler '{}' is defined more than once: {}", undefined::readable(name), origins.join(", "))
        })
        .collect();
    if errors.is_empty() { Ok(found.into_keys().collect()) } else { Err(Error::Program(errors.join("\n"))) }
}

/// Links the device objects of `parts` for `kind`.
pub fn link(tools: &Tools, kind: &Kind, parts: &[Part]) -> Result<Program> {
    let mut command = tools.device(kind, Language::C, &kind.link_target)?;
    command.args(["-O3", "-Xclang", "-O3", "-ffreestanding", "-fno-builtin", "-static"]);
    command.arg(format!("-Wl,-T,{}", kind.script.display()));
    command.args(["-Wl,--gc-sections", "-Wl,--entry=0", "-Wl,-z,max-page-size=16"]);
    let mut objects = vec![];
    for (i, part) in parts.iter().enumerate() {
        if let Some(bytes) = part.devices.get(&kind.name) {
            let path = tools.temp_path(format!("{i}.{}.o", kind.name));
            std::fs::write(&path, bytes).map_err(Error::write(&path))?;
            command.arg(&path);
            objects.push((path, part));
        }
    }
    command.args(runtime(tools)?);
    let program = tools.temp_path(format!("{}.elf", kind.name));
    let output = tools.capture(command.arg("-o").arg(&program))?;
    let messages = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(Error::Program(undefined::explain(&messages, kind, &objects)));
    }
    let elf = std::fs::read(&program).map_err(Error::read(&program))?;
    check_sizes(kind, &elf)?;
    Ok(Program { kind: kind.clone(), elf })
}

fn runtime(tools: &Tools) -> Result<Vec<PathBuf>> {
    let folder = tools.sdk.device_dir().join("runtime");
    let entries = folder.read_dir().map_err(Error::read(&folder))?;
    let mut sources: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    sources.retain(|path| path.extension().is_some_and(|e| e == "c"));
    sources.sort();
    Ok(sources)
}

/// Refuses what the card's memories cannot hold.
fn check_sizes(kind: &Kind, elf: &[u8]) -> Result<()> {
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

/// 41200 as "41,200".
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The program as it is embedded: its two segments and the symbols of functions and data, and with `debug` its DWARF.
pub fn embeddable(elf_bytes: &[u8], debug: bool) -> Result<Vec<u8>> {
    let failed = |e: object::build::Error| Error::Program(format!("device program: {e}"));
    let mut builder = Builder::read(elf_bytes).map_err(failed)?;
    for section in &mut builder.sections {
        let is_ours = section.is_alloc()
            || (debug && section.name.starts_with(b".debug_"))
            || matches!(
                section.data,
                SectionData::Symbol
                    | SectionData::SymbolSectionIndex
                    | SectionData::String
                    | SectionData::SectionString
            );
        section.delete = !is_ours;
    }
    for symbol in &mut builder.symbols {
        symbol.delete = !matches!(symbol.st_type(), elf::STT_FUNC | elf::STT_OBJECT);
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
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (41200, "41,200"), (1234567, "1,234,567")] {
            assert_eq!(super::grouped(number), text);
        }
    }
}
