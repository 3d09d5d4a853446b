// SPDX-License-Identifier: Apache-2.0
//! `--disassemble`: prints the instructions of handlers, with source lines if the program has debug information.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use abi::device::map;
use capstone::prelude::*;
use object::{Architecture, Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::image::{Device, Image};
use super::marks::Marks;
use super::{Error, Result, dwarf, undefined};

/// Returns the text for one handler or function, or for all handlers, for each of `kinds` (all kinds of the image by
/// default).
///
/// # Errors
/// When the image lacks the kind or the function, or cannot be read.
pub fn image(image: &Image, kinds: Option<&[String]>, handler: Option<&str>) -> Result<String> {
    let mut text = String::new();
    let wanted = |device: &&Device| kinds.is_none_or(|kinds| kinds.contains(&device.kind));
    for device in image.devices.iter().filter(wanted) {
        let functions = functions(image, device, handler)?;
        writeln!(text, "{}:", device.kind).expect("strings take everything");
        let body = print(device, &functions);
        text += &body.map_err(|reason| Error::Program(format!("device program for {}: {reason}", device.kind)))?;
    }
    if text.is_empty() {
        return Err(Error::Program("the program has no handlers for these HPU kinds".into()));
    }
    Ok(text)
}

struct Function {
    name: String,
    address: u64,
    size: u64,
}

fn functions(image: &Image, device: &Device, handler: Option<&str>) -> Result<Vec<Function>> {
    let malformed = |e: object::Error| Error::Program(format!("device program for {}: {e}", device.kind));
    let file = object::File::parse(&*device.elf).map_err(malformed)?;
    let mut found: Vec<Function> = vec![];
    for symbol in file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.size() > 0) {
        let name = symbol.name().map_err(malformed)?;
        let readable = undefined::readable(name);
        let wanted = match handler {
            Some(handler) => [name, &readable, readable.split('(').next().unwrap_or_default()].contains(&handler),
            None => image.handlers.iter().any(|h| h.name == name),
        };
        if wanted {
            found.push(Function { name: readable, address: symbol.address(), size: symbol.size() });
        }
    }
    if let (Some(handler), true) = (handler, found.is_empty()) {
        let names: Vec<String> = image.handlers.iter().map(|h| undefined::readable(&h.name)).collect();
        return Err(Error::Program(format!("no handler '{handler}'; there are: {}", names.join(", "))));
    }
    found.sort_by_key(|f| f.address);
    Ok(found)
}

fn print(device: &Device, functions: &[Function]) -> Result<String, String> {
    let file = object::File::parse(&*device.elf).map_err(|e| e.to_string())?;
    let text = file
        .sections()
        .find(|s| s.address() == u64::from(map::PROGRAM))
        .ok_or("it has no code")
        .map(|s| (s.address(), s.data()))?;
    let (base, code) = (text.0, text.1.map_err(|e| e.to_string())?);
    let symbols: BTreeMap<u64, String> = file
        .symbols()
        .filter(|s| s.kind() == SymbolKind::Text && s.size() > 0)
        .map(|s| (s.address(), undefined::readable(s.name().unwrap_or_default())))
        .collect();
    let lines = lines(&device.elf)?;
    let mut sources = Sources::default();
    let marks = Marks::read(&file);
    let engine = engine(file.architecture()).map_err(|e| e.to_string())?;
    let mut out = String::new();
    for function in functions {
        writeln!(out, "\n{:08x} <{}>: {} bytes", function.address, function.name, function.size).unwrap();
        let start = (function.address - base) as usize;
        let bytes = code.get(start..start + function.size as usize).ok_or("a function lies outside its code")?;
        let (instructions, data) = bytes.split_at(marks.code(function.address, function.size) as usize);
        let first_data = function.address + instructions.len() as u64;
        let instructions = engine.disasm_all(instructions, function.address).map_err(|e| e.to_string())?;
        let mut last = None;
        for instruction in instructions.iter() {
            let line = lines.range(..=instruction.address()).next_back().map(|(_, line)| line);
            if line != last {
                if let Some((file, number)) = line {
                    writeln!(out, "; {file}:{number}{}", sources.line(file, *number)).unwrap();
                }
                last = line;
            }
            let hex: String = instruction.bytes().iter().rev().map(|b| format!("{b:02x}")).collect();
            let (name, operands) =
                (instruction.mnemonic().unwrap_or_default(), instruction.op_str().unwrap_or_default());
            let operands = resolved(instruction.address(), name, operands, &symbols);
            let text = format!("{:8x}:  {hex:<10} {name:<10} {operands}", instruction.address());
            writeln!(out, "{}", text.trim_end()).unwrap();
        }
        for (at, word) in (first_data..).step_by(4).zip(data.as_chunks().0) {
            let word = u32::from_le_bytes(*word);
            writeln!(out, "{at:8x}:  {word:08x}   .word      0x{word:08x}").unwrap();
        }
    }
    Ok(out)
}

fn engine(architecture: Architecture) -> CsResult<Capstone> {
    use capstone::arch::{arm, riscv};
    match architecture {
        Architecture::Arm => Capstone::new().arm().mode(arm::ArchMode::Arm).build(),
        _ => {
            let modes = [riscv::ArchExtraMode::RiscVC];
            Capstone::new().riscv().mode(riscv::ArchMode::RiscV32).extra_mode(modes.into_iter()).build()
        }
    }
}

/// Returns the operands of an instruction. capstone prints the distance of a RISC-V jump; the target replaces it.
fn resolved(address: u64, name: &str, operands: &str, symbols: &BTreeMap<u64, String>) -> String {
    let name = name.trim_start_matches("c.");
    let is_jump = ["j", "jal"].contains(&name) || (name.starts_with('b') && operands.contains(", "));
    let (registers, distance) = operands.rsplit_once(", ").map_or(("", operands), |(r, d)| (r, d));
    let (negative, digits) = distance.strip_prefix('-').map_or((false, distance), |digits| (true, digits));
    let distance = digits.strip_prefix("0x").map_or_else(|| digits.parse().ok(), |h| u64::from_str_radix(h, 16).ok());
    let (true, Some(distance)) = (is_jump, distance) else { return operands.to_owned() };
    let target = if negative { address.wrapping_sub(distance) } else { address.wrapping_add(distance) };
    let comma = if registers.is_empty() { "" } else { ", " };
    let symbol = symbols.get(&target).map(|symbol| format!(" <{symbol}>")).unwrap_or_default();
    format!("{registers}{comma}{target:x}{symbol}")
}

/// Returns the source line for each address at which one begins.
///
/// # Errors
/// A message when the DWARF is damaged.
pub fn lines(elf: &[u8]) -> Result<BTreeMap<u64, (String, u64)>, String> {
    dwarf::with(elf, |dwarf| {
        let mut lines = BTreeMap::new();
        let mut units = dwarf.units();
        while let Some(header) = units.next()? {
            let unit = dwarf.unit(header)?;
            let Some(program) = unit.line_program.clone() else { continue };
            let mut rows = program.rows();
            while let Some((_, row)) = rows.next_row()? {
                // Code dropped by the linker has address 0.
                if row.end_sequence() || row.address() < u64::from(map::PROGRAM) {
                    continue;
                }
                let (file, Some(line)) = (dwarf::file_name(dwarf, &unit, row.file_index())?, row.line()) else {
                    continue;
                };
                lines.insert(row.address(), (file.unwrap_or_default(), line.get()));
            }
        }
        Ok(lines)
    })
}

/// Existing source files.
#[derive(Default)]
struct Sources(BTreeMap<String, Vec<String>>);

impl Sources {
    fn line(&mut self, file: &str, number: u64) -> String {
        let read = || std::fs::read_to_string(file).unwrap_or_default().lines().map(|l| l.trim().to_owned()).collect();
        let lines = self.0.entry(file.to_owned()).or_insert_with(read);
        lines.get(number as usize - 1).map(|line| format!("  {line}")).unwrap_or_default()
    }
}
