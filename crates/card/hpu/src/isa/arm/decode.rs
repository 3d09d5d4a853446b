// SPDX-License-Identifier: Apache-2.0
//! Decoder of A32 instructions.

use super::control::illegal;
use super::fields::Word;
use super::flags::{ALWAYS, read_by};
use super::guard::set_condition;
use super::row::Row;
use super::table::{CONDITIONAL, UNCONDITIONAL};
use crate::op::{Access, Class, Decoded, Op, RegisterSet, Run};

/// Returns the row that describes a word.
pub fn find(word: u32) -> Option<&'static Row> {
    let (rows, key) = if word >> 28 == 15 { (UNCONDITIONAL, word) } else { (CONDITIONAL, word & 0x0fff_ffff) };
    rows.iter().flat_map(|rows| rows.iter()).find(|row| row.matches(key))
}

/// Decodes the instruction at `pc`; see [`Isa::decode`](crate::isa::Isa::decode).
pub fn decode(word: u32, pc: u32) -> Decoded {
    let parts = find(word).and_then(|row| (row.form)(row, Word(word), pc));
    let Some(mut parts) = parts else { return invalid() };
    let condition = word >> 28;
    let is_conditional = condition < ALWAYS;
    if is_conditional {
        set_condition(&mut parts.registers, condition);
        // An instruction that does not execute keeps its results.
        parts.sources = parts.sources | read_by(condition) | parts.results | parts.access.updates;
        parts.class = match parts.class {
            Class::Jump | Class::Return => Class::Branch,
            Class::LoadReturn => Class::LoadBranch,
            class => class,
        };
    }
    Decoded {
        op: Op { run: parts.runs[usize::from(is_conditional)], imm: parts.imm, registers: parts.registers },
        class: parts.class,
        length: 4,
        sources: parts.sources,
        results: parts.results,
        access: parts.access,
        target: parts.target,
        fence: parts.fence,
        loop_end: None,
    }
}

/// Returns the decoded form of a word that is no instruction of the core.
fn invalid() -> Decoded {
    Decoded {
        op: Op { run: Run::new(illegal), imm: 0, registers: [0; 4] },
        class: Class::Trap,
        length: 4,
        sources: RegisterSet::NONE,
        results: RegisterSet::NONE,
        access: Access::default(),
        target: None,
        fence: None,
        loop_end: None,
    }
}
