//! Functions of a device program that do not end: execution would run on into whatever lies behind them.

use std::collections::BTreeMap;

use object::{Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::device::Program;
use super::{Error, Result, disassemble, undefined};

/// Refuses handlers without code, which compilers make of what is undefined on every path, and functions whose last
/// instruction is no jump, return or trap.
pub fn check(program: &Program, handlers: &[String]) -> Result<()> {
    let malformed = |reason: String| Error::Program(format!("device program for {}: {reason}", program.kind.name));
    let file = object::File::parse(&*program.elf).map_err(|e| malformed(e.to_string()))?;
    let mut functions = BTreeMap::new();
    for symbol in file.symbols().filter(|s| s.kind() == SymbolKind::Text && s.is_definition()) {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        let code = section.and_then(|section| section.data_range(symbol.address(), symbol.size()).ok().flatten());
        let name = symbol.name().map_err(|e| malformed(e.to_string()))?;
        functions.insert((symbol.address(), name), code.unwrap_or_default());
    }
    let mut errors = vec![];
    for ((address, name), code) in functions {
        let is_handler = handlers.iter().any(|handler| handler == name);
        let what = match instructions(code).as_slice() {
            [] if !is_handler => continue, // a label of somebody's assembly
            [] => "has no code: what it does is undefined on every path",
            [only] if is_handler && is_trap(*only) => "has no code but a trap: what it does is undefined on every path",
            [.., last] if !leaves(*last) && !is_trap(*last) => "does not end: it runs on into what is behind it",
            _ => continue,
        };
        let lines = disassemble::lines(&program.elf).map_err(malformed)?;
        let place = lines.get(&address).map(|(file, line)| format!("{file}:{line}: ")).unwrap_or_default();
        let kind = if is_handler { "handler" } else { "function" };
        errors.push(format!("{place}{kind} '{}' {what}", undefined::readable(name)));
    }
    if errors.is_empty() { Ok(()) } else { Err(Error::Program(errors.join("\n"))) }
}

/// The instructions of a function (RISC-V Unpriv. 1.5: the lowest bits tell the length); a compressed one has 16 bits.
fn instructions(code: &[u8]) -> Vec<u32> {
    let mut found = vec![];
    let mut rest = code;
    while let Some((half, after)) = rest.split_first_chunk() {
        let half = u32::from(u16::from_le_bytes(*half));
        rest = after;
        match after.split_first_chunk() {
            Some((high, after)) if half & 3 == 3 => {
                found.push(half | u32::from(u16::from_le_bytes(*high)) << 16);
                rest = after;
            }
            _ => found.push(half),
        }
    }
    found
}

/// A jump or return: `jal` and `jalr` without a link, `c.j` and `c.jr` (RISC-V Unpriv. 2.5, 28.3).
fn leaves(word: u32) -> bool {
    let destination = word >> 7 & 31;
    match word & 3 {
        3 => matches!(word & 0x7f, 0x6f | 0x67) && destination == 0,
        _ => word & 0xe003 == 0xa001 || word & 0xf07f == 0x8002 && destination != 0,
    }
}

/// `ebreak`, `unimp` and their compressed forms.
fn is_trap(word: u32) -> bool {
    matches!(word, 0x0010_0073 | 0xc000_1073 | 0x9002 | 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_and_ends() {
        // addi sp, sp, -16 (compressed); lui a0, 1; ret (compressed)
        let code = [0x41, 0x11, 0x37, 0x15, 0, 0, 0x82, 0x80];
        assert_eq!(instructions(&code), [0x1141, 0x1537, 0x8082]);
        assert!(instructions(&[]).is_empty());
        // ret, c.jr a5, c.j, jal x0, jalr x0
        for word in [0x8082, 0x8782, 0xa001, 0x0000_006f, 0x0003_0067] {
            assert!(leaves(word) && !is_trap(word), "{word:#x}");
        }
        // addi, c.jal, c.jalr a5, c.mv, jal ra, jalr ra, beq, ecall
        for word in [0x1141, 0x2001, 0x9782, 0x852e, 0x0000_00ef, 0x0003_00e7, 0x0000_0063, 0x73] {
            assert!(!leaves(word) && !is_trap(word), "{word:#x}");
        }
    }
}
