use std::ops::Range;

use crate::blocks::Block;
use crate::isa::Isa;
use crate::op::{Class, Offset};
use crate::state::State;
use crate::timing::access_cycles;

/// All that the stepper must know about a block.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The indices of its operations: the first, the one behind those that run before the access, and the one behind all.
    pub first: u32,
    pub before_access: u32,
    pub behind: u32,
    /// The address after it.
    pub end: u32,
    /// Number of instructions.
    pub instructions: u32,
    /// Whether its first instruction is a division.
    pub divides: bool,
    /// Whether it is one conditional branch.
    pub is_branch: bool,
    /// Whether it is an instruction that reads or writes a control register.
    pub is_system: bool,
    /// The lines of the instruction cache in which its first and its last byte are.
    pub lines: (u32, u32),
    /// The access with which it ends.
    pub access: Option<Reference>,
}

/// The access at the end of a block.
#[derive(Clone, Copy, Debug)]
pub struct Reference {
    pub class: Class,
    /// Size in bytes.
    pub bytes: u32,
    /// Size of the instruction in bytes.
    pub length: u32,
    /// Cycles of the access in a memory that answers at once.
    pub cycles: u32,
    base: u8,
    offset: Offset,
}

impl Reference {
    /// The address that the access has now.
    #[inline(always)]
    pub fn address(&self, state: &State) -> u32 {
        self.offset.address(self.base, state)
    }
}

impl Step {
    /// The indices of its operations.
    #[inline(always)]
    pub fn range(&self) -> Range<usize> {
        self.first as usize..self.behind as usize
    }

    /// The step of `block`, which starts at `start` bytes into `code`. `length` is the size of its last instruction.
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
