// SPDX-License-Identifier: Apache-2.0
//! An encoding and its meaning.

use super::fields::Word;
use super::guard::{Runs, both};
use super::operands::{NOTHING, Operands};
use crate::op::{Access, Class, Fence, RegisterSet, Semantics};

/// An encoding and its meaning. Rows of conditional instructions leave the condition, bits 31 to 28, at zero.
pub struct Row {
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row in the tests of the table"))]
    pub name: &'static str,
    pub mask: u32,
    pub bits: u32,
    pub class: Class,
    pub reads: Operands,
    pub writes: Operands,
    /// Reads the fields of an instruction at an address; `None` for operands that the architecture leaves undefined or
    /// unpredictable, or that the core does not support.
    pub form: fn(&Row, Word, u32) -> Option<Parts>,
    pub runs: Runs,
}

impl Row {
    /// Returns true if the row describes the word.
    pub fn matches(&self, word: u32) -> bool {
        word & self.mask == self.bits
    }

    /// Returns the row with an additional check of the instruction.
    pub const fn with(self, form: fn(&Row, Word, u32) -> Option<Parts>) -> Row {
        Row { form, ..self }
    }
}

/// Parts of a decoded instruction.
pub struct Parts {
    pub runs: Runs,
    pub class: Class,
    pub imm: u32,
    pub registers: [u8; 4],
    pub sources: RegisterSet,
    pub results: RegisterSet,
    pub access: Access,
    pub target: Option<u32>,
    pub fence: Option<Fence>,
}

/// Reads an instruction whose operation gets the whole word as its immediate.
pub fn plain(row: &Row, w: Word, _: u32) -> Option<Parts> {
    Some(Parts {
        runs: row.runs,
        class: row.class,
        imm: w.0,
        registers: [0; 4],
        sources: row.reads.of(w)?,
        results: row.writes.of(w)?,
        access: Access::default(),
        target: None,
        fence: None,
    })
}

/// Builds a row of an instruction whose operation gets the whole word.
pub const fn row<F: Semantics>(
    name: &'static str,
    mask: u32,
    bits: u32,
    class: Class,
    writes: Operands,
    reads: Operands,
    semantics: F,
) -> Row {
    Row { name, mask, bits, class, reads, writes, form: plain, runs: both(semantics) }
}

/// Builds a row of an instruction with its own form.
pub const fn formed(
    name: &'static str,
    mask: u32,
    bits: u32,
    class: Class,
    form: fn(&Row, Word, u32) -> Option<Parts>,
    runs: Runs,
) -> Row {
    Row { name, mask, bits, class, reads: NOTHING, writes: NOTHING, form, runs }
}
