use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use crate::fences;
use crate::op::{Class, Op};
use crate::program::Program;
use crate::timing::Timed;

/// The maximum length of a block, in instructions.
const LONGEST: usize = 64;
/// Entry of the index for an address at which no block has been decoded yet.
const UNKNOWN: u32 = u32::MAX;

/// A run of instructions that is entered only at its start and left only at its end, or by a fault.
pub(crate) struct Block {
    /// Index of its first operation.
    first: u32,
    /// Number of instructions.
    pub len: u32,
    /// The address after it.
    pub end: u32,
    /// Class of its last instruction.
    pub last: Class,
    /// Whether its last instruction is a branch backwards.
    pub backward: bool,
    /// Whether it is a single instruction that happens at its exact time.
    pub synchronises: bool,
}

impl Block {
    /// The indices of its operations.
    #[inline(always)]
    pub fn range(&self) -> Range<usize> {
        self.first as usize..(self.first + self.len) as usize
    }
}

/// The decoded code of a program, in blocks.
pub(crate) struct Blocks {
    program: Arc<Program>,
    /// Address of the program's code.
    base: u32,
    pub ops: Vec<Op>,
    /// The timing models' view of each operation.
    pub timed: Vec<Timed>,
    list: Vec<Block>,
    /// Block by half-word of the program.
    index: Vec<u32>,
    /// Blocks that are the first instructions of longer ones, by address and number of instructions. They end where a
    /// handler stopped before an access to a watched word, or are that access.
    pieces: HashMap<(u32, u32), u32>,
    /// Whether an instruction synchronises, by half-word of the program.
    points: Vec<bool>,
}

impl Blocks {
    pub fn new(program: Arc<Program>) -> Blocks {
        let (base, code) = (program.base(), program.program_segment());
        Blocks {
            base,
            index: vec![UNKNOWN; code.len() / 2],
            points: fences::points(program.isa(), code, base),
            program,
            ops: Vec::new(),
            timed: Vec::new(),
            list: Vec::new(),
            pieces: HashMap::new(),
        }
    }

    /// The block with this number.
    #[inline(always)]
    pub fn block(&self, number: u32) -> &Block {
        &self.list[number as usize]
    }

    /// Number of the block that starts at `pc`; `None` when there is no code.
    #[inline(always)]
    pub fn at(&mut self, pc: u32) -> Option<u32> {
        match *self.index.get((pc.wrapping_sub(self.base) >> 1) as usize)? {
            UNKNOWN => self.decode(pc),
            number => Some(number),
        }
    }

    /// Number of a block with the first `len` instructions of the block at `pc`, which has at least as many.
    #[cold]
    pub fn piece(&mut self, pc: u32, len: u32) -> Option<u32> {
        let whole = self.at(pc)?;
        let &Block { first, len: all, .. } = self.block(whole);
        if len == all {
            return Some(whole);
        }
        if let Some(number) = self.pieces.get(&(pc, len)) {
            return Some(*number);
        }
        let instructions = &self.timed[first as usize..(first + len) as usize];
        let end = instructions.iter().fold(pc, |pc, timed| pc + timed.length);
        let last = instructions.last().map_or(Class::Alu, |timed| timed.class);
        let number = self.list.len() as u32;
        self.list.push(Block { first, len, end, last, backward: false, synchronises: false });
        self.pieces.insert((pc, len), number);
        Some(number)
    }

    /// The addresses of the instructions of each block.
    pub fn addresses(&self) -> Vec<Vec<u32>> {
        let mut addresses = vec![Vec::new(); self.list.len()];
        let at = |half_word: usize| self.base + 2 * half_word as u32;
        let whole = self.index.iter().enumerate().map(|(half_word, number)| (at(half_word), number));
        let pieces = self.pieces.iter().map(|((start, _), number)| (*start, number));
        for (start, number) in whole.chain(pieces).filter(|(_, number)| **number != UNKNOWN) {
            let mut pc = start;
            for timed in &self.timed[self.block(*number).range()] {
                addresses[*number as usize].push(pc);
                pc += timed.length;
            }
        }
        addresses
    }

    /// The encoding of the instruction of `length` bytes at `pc`.
    pub fn encoding(&self, pc: u32, length: u32) -> u32 {
        let mut word = [0; 4];
        let bytes = &self.program.program_segment()[(pc - self.base) as usize..][..length as usize];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    }

    #[cold]
    fn decode(&mut self, start: u32) -> Option<u32> {
        let code = self.program.program_segment();
        let first = self.ops.len();
        let (mut pc, mut last, mut target) = (start, Class::Alu, None);
        while self.ops.len() - first < LONGEST {
            let bytes = code.get((pc - self.base) as usize..);
            let Some(decoded) = bytes.and_then(|bytes| self.program.isa().decode(bytes, pc)) else { break };
            let synchronises = decoded.class == Class::Atomic || self.points[((pc - self.base) / 2) as usize];
            let stands_alone = synchronises || decoded.class.stands_alone();
            if stands_alone && pc != start {
                break;
            }
            self.ops.push(decoded.op);
            self.timed.push(Timed::new(&decoded, pc));
            pc += decoded.length;
            (last, target) = (decoded.class, decoded.target);
            if stands_alone || decoded.class.ends_block() {
                break;
            }
        }
        let len = (self.ops.len() - first) as u32;
        if len == 0 {
            return None;
        }
        let backward = target.is_some_and(|target| target < pc);
        let synchronises = last == Class::Atomic || self.points[((start - self.base) / 2) as usize];
        self.list.push(Block { first: first as u32, len, end: pc, last, backward, synchronises });
        let number = self.list.len() as u32 - 1;
        self.index[((start - self.base) >> 1) as usize] = number;
        Some(number)
    }
}
