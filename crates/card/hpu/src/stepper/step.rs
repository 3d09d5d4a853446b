// SPDX-License-Identifier: Apache-2.0
//! Blocks as the stepper uses them.

use std::ops::Range;

use crate::architectural_state::State;
use crate::blocks::Block;
use crate::isa::Isa;
use crate::op::{Class, Offset};
use crate::timing::access_cycles;

/// Stepper data of a block.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Index of the first operation. The next two fields are the ends of the operations before the access, and of all
    /// operations.
    pub first: u32,
    pub before_access: u32,
    pub behind: u32,
    /// Address after the block.
    pub end: u32,
    /// Number of instructions.
    pub instructions: u32,
    /// True if the first instruction is a division.
    pub divides: bool,
    /// True if the block is a single conditional branch.
    pub is_branch: bool,
    /// True if the block is an instruction that accesses a control register.
    pub is_system: bool,
    /// Instruction-cache lines of its first and last byte.
    pub lines: (u32, u32),
    /// Access at its end.
    pub access: Option<Reference>,
}

/// Access at the end of a block.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    pub class: Class,
    /// Size in bytes.
    pub bytes: u32,
    /// Size of the instruction in bytes.
    pub length: u32,
    /// Cycles of the access in a memory that answers immediately.
    pub cycles: u32,
    base: u8,
    offset: Offset,
}

impl Reference {
    /// Returns the address of the access in the current state.
    #[inline(always)]
    pub fn address(&self, state: &State) -> u32 {
        self.offset.address(self.base, state)
    }
}

impl Step {
    /// Returns the indices of its operations.
    #[inline(always)]
    pub fn range(&self) -> Range<usize> {
        self.first as usize..self.behind as usize
    }

    /// Creates the step of `block`, which starts at `start` bytes into `code`. `length` is the size of its last
    /// instruction.
    pub fn new(isa: &dyn Isa, code: &[u8], base: u32, block: &Block, start: u32, length: u32, line: u32) -> Step {
        let divides = code
            .get((start - base) as usize..)
            .and_then(|bytes| isa.decode(bytes, start))
            .is_some_and(|decoded| decoded.class == Class::Divide);
        let last = block.end - length;
        let decoded = code.get((last - base) as usize..).and_then(|bytes| isa.decode(bytes, last));
        let access = decoded.filter(|decoded| decoded.class.accesses_memory()).map(|decoded| Reference {
            class: decoded.class,
            bytes: decoded.access.bytes,
            length,
            cycles: access_cycles(decoded.class),
            base: decoded.access.base,
            offset: decoded.access.offset,
        });
        let Range { start: first, end: behind } = block.range();
        let before_access = if access.is_some() { first + usize::from(block.instructions) - 1 } else { behind };
        let [first, before_access, behind] = [first, before_access, behind].map(|index| index as u32);
        Step {
            first,
            before_access,
            behind,
            end: block.end,
            instructions: block.instructions.into(),
            divides,
            is_branch: block.last == Class::Branch && block.instructions == 1,
            is_system: block.last == Class::System,
            lines: ((start - base) / line, (block.end - 1 - base) / line),
            access,
        }
    }
}
