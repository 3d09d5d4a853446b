// SPDX-License-Identifier: Apache-2.0
//! Checks that the functions of a device program end: otherwise execution would continue in the code behind them.

use std::collections::BTreeMap;

use hpu::isa::{Class, Decoded, Isa};
use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::device::Program;
use super::marks::Marks;
use super::{Error, Result, disassemble, undefined};

/// Refuses handlers without code, which compilers produce when every path is undefined, and functions whose last
/// instruction is not a jump, a return or a trap.
///
/// # Errors
/// One line for each such function.
pub fn check(program: &Program, handlers: &[String]) -> Result<()> {
    let malformed = |reason: String| Error::Program(format!("device program for {}: {reason}", program.kind.name));
    let file = object::File::parse(&*program.elf).map_err(|e| malformed(e.to_string()))?;
    let marks = Marks::read(&file);
    let mut functions = BTreeMap::new();
    for symbol in file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition()) {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let code = section.and_then(|section| {
            let size = marks.code(symbol.address(), symbol.size());
            section.data_range(symbol.address(), size).ok().flatten()
        });
        let name = symbol.name().map_err(|e| malformed(e.to_string()))?;
        functions.insert((symbol.address(), name), code.unwrap_or_default());
    }
    let mut errors = vec![];
    for ((address, name), code) in functions {
        let is_handler = handlers.iter().any(|handler| handler == name);
        let what = match instructions(&*program.kind.isa, code, address as u32).as_slice() {
            [] if !is_handler => continue, // a label in assembly
            [] => "has no code: its behaviour is undefined on every path",
            [only] if is_handler && is_trap(only) => "has no code but a trap: its behaviour is undefined on every path",
            [.., last] if !leaves(last) && !is_trap(last) => "does not end: it falls through into the next function",
            _ => continue,
        };
        let lines = disassemble::lines(&program.elf).map_err(malformed)?;
        let place = lines.get(&address).map(|(file, line)| format!("{file}:{line}: ")).unwrap_or_default();
        let kind = if is_handler { "handler" } else { "function" };
        errors.push(format!("{place}{kind} '{}' {what}", undefined::readable(name)));
    }
    if errors.is_empty() { Ok(()) } else { Err(Error::Program(errors.join("\n"))) }
}

/// Decodes the instructions of a function at `address`, without padding at its end.
fn instructions(isa: &dyn Isa, code: &[u8], address: u32) -> Vec<Decoded> {
    let mut found = vec![];
    let mut at = 0;
    while let Some(decoded) = code.get(at..).and_then(|rest| isa.decode(rest, address.wrapping_add(at as u32))) {
        at += decoded.length as usize;
        found.push(decoded);
    }
    // Padding before constants.
    while found.last().is_some_and(is_no_operation) {
        found.pop();
    }
    found
}

/// Returns true for a jump or a return, without a link.
fn leaves(instruction: &Decoded) -> bool {
    match instruction.class {
        Class::Jump | Class::JumpIndirect | Class::Return => instruction.results.is_empty(),
        Class::LoadJump | Class::LoadReturn => true,
        _ => false,
    }
}

/// Returns true for an instruction without operands and effect.
fn is_no_operation(instruction: &Decoded) -> bool {
    instruction.class == Class::Alu && instruction.sources.is_empty() && instruction.results.is_empty()
}

/// Returns true for a breakpoint, or a word that is not an instruction.
fn is_trap(instruction: &Decoded) -> bool {
    instruction.class == Class::Trap
}

#[cfg(test)]
mod tests {
    use hpu::isa::instruction_set;

    use super::*;

    fn decoded(code: &[u8]) -> Vec<Decoded> {
        instructions(&*instruction_set("rv32imac").unwrap(), code, 0)
    }

    #[test]
    fn lengths_and_ends() {
        // addi sp, sp, -16 (compressed); lui a0, 1; ret (compressed)
        let lengths: Vec<u32> =
            decoded(&[0x41, 0x11, 0x37, 0x15, 0, 0, 0x82, 0x80]).iter().map(|one| one.length).collect();
        assert_eq!(lengths, [2, 4, 2]);
        assert!(decoded(&[]).is_empty());
        let first = |word: u32| decoded(&word.to_le_bytes())[0];
        // ret, c.jr a5, c.j, jal x0, jalr x0
        for word in [0x8082, 0x8782, 0xa001, 0x0000_006f, 0x0003_0067] {
            assert!(leaves(&first(word)) && !is_trap(&first(word)), "{word:#x}");
        }
        // addi, c.jal, c.jalr a5, c.mv, jal ra, jalr ra, beq, ecall
        for word in [0x1141, 0x2001, 0x9782, 0x852e, 0x0000_00ef, 0x0003_00e7, 0x0000_0063, 0x73] {
            assert!(!leaves(&first(word)) && !is_trap(&first(word)), "{word:#x}");
        }
        // ebreak and unimp, and their compressed forms
        for word in [0x0010_0073, 0xc000_1073, 0x9002, 0] {
            assert!(is_trap(&first(word)) && !leaves(&first(word)), "{word:#x}");
        }
    }
}
