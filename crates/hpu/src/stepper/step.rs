use crate::blocks::Block;
use crate::isa::Isa;
use crate::op::{Class, Offset};
use crate::state::State;
use crate::timing::access_cycles;

/// What the stepper must know about a block beyond its instructions.
#[derive(Clone, Copy, Debug)]
pub struct Step {
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
    /// Its place among the operations of the block.
    pub place: usize,
    /// Cycles of the access in a memory that answers at once.
    pub cycles: u32,
    base: u8,
    offset: Offset,
}

impl Reference {
    /// The address that the access has now.
    #[inline(always)]
    pub fn address(&self, state: &State) -> u32 {
        let offset = match self.offset {
            Offset::Immediate(offset) => offset,
            Offset::Register(register) => state.word(register),
        };
        state.word(self.base).wrapping_add(offset)
    }
}

impl Step {
    /// The step of `block`, which starts at `start` bytes into `code`. `length` is the size of its last instruction.
    pub fn new(isa: &dyn Isa, code: &[u8], base: u32, block: &Block, start: u32, length: u32, line: u32) -> Step {
        let last = block.end - length;
        let decoded = code.get((last - base) as usize..).and_then(|bytes| isa.decode(bytes, last));
        let access = decoded.filter(|decoded| decoded.class.accesses_memory()).map(|decoded| Reference {
            class: decoded.class,
            bytes: decoded.access.bytes,
            length,
            place: usize::from(block.instructions) - 1,
            cycles: access_cycles(decoded.class),
            base: decoded.access.base,
            offset: decoded.access.offset,
        });
        Step { lines: ((start - base) / line, (block.end - 1 - base) / line), access }
    }
}
