// SPDX-License-Identifier: Apache-2.0
//! Decoded code of a program, as straight-line blocks.

use std::ops::Range;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::fences;
use crate::isa::Isa;
use crate::op::{Class, LoopEnd, Op};
use crate::program::Program;
use crate::timing::Timed;

/// Maximum length of a block in instructions.
const LONGEST: usize = 64;
/// Index entry of an address without a decoded block.
const UNKNOWN: u32 = u32::MAX;

/// Additional block boundaries, besides jumps and instructions that must stand alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// Before and after instructions that synchronise.
    Synchronisation {
        /// Also between a load and a division. A division at the start of a block is special: while the preceding
        /// access waits for a slow memory, it continues for as long as its data require.
        divisions: bool,
    },
    /// After every memory access, and at the ends of instruction-cache lines. An instruction that crosses a line
    /// boundary starts a block.
    Accesses {
        /// Size of a line in bytes; a power of two.
        line: u32,
    },
}

/// A straight run of instructions, entered only at its start and left only at its end or by a fault.
pub(crate) struct Block {
    /// Index of the first operation.
    first: u32,
    /// Number of operations: instructions, and possibly the end of a hardware loop's body.
    len: u16,
    /// Number of instructions.
    pub instructions: u16,
    /// Address after the block.
    pub end: u32,
    /// Class of the last instruction.
    pub last: Class,
    /// True if the last instruction is a backward branch.
    pub backward: bool,
    /// True if the block is a single instruction that executes at its exact time.
    pub synchronises: bool,
    /// True if the engine must act before the block: it synchronises, accesses a control register, or begins with a
    /// division that may have started earlier.
    pub special: bool,
}

impl Block {
    /// Returns the indices of its operations.
    #[inline(always)]
    pub fn range(&self) -> Range<usize> {
        self.first as usize..self.first as usize + usize::from(self.len)
    }
}

/// Decoded code of a program, in blocks.
pub(crate) struct Blocks {
    program: Arc<Program>,
    cut: Cut,
    /// Address of the program's code.
    base: u32,
    pub ops: Vec<Op>,
    /// Operations as the timing models see them.
    pub timed: Vec<Timed>,
    list: Vec<Block>,
    /// Block of each half-word of the program.
    index: Vec<u32>,
    /// Blocks that are prefixes of longer ones, by address and number of instructions. They end where a handler stopped
    /// before an access to a watched word, or are that access.
    pieces: FxHashMap<(u32, u32), u32>,
    /// True for each half-word whose instruction synchronises; empty if blocks end at all accesses.
    points: Vec<bool>,
    loop_ends: LoopEnds,
}

/// Addresses at which bodies of hardware loops may end.
#[derive(Default)]
struct LoopEnds {
    /// In ascending order.
    at: Vec<u32>,
    /// True if an end is computed at run time.
    anywhere: bool,
}

impl LoopEnds {
    /// Finds the loop ends in `code`, which is at address `base`.
    fn of(isa: &dyn Isa, code: &[u8], base: u32) -> LoopEnds {
        let mut ends = LoopEnds::default();
        let mut at = 0;
        while isa.loop_end(base).is_some()
            && let Some(decoded) = code.get(at..).and_then(|bytes| isa.decode(bytes, base + at as u32))
        {
            match decoded.loop_end {
                Some(LoopEnd::At(end)) => ends.at.push(end),
                Some(LoopEnd::Anywhere) => ends.anywhere = true,
                None => {}
            }
            at += decoded.length as usize;
        }
        ends.at.sort_unstable();
        ends
    }

    fn contain(&self, address: u32) -> bool {
        self.anywhere || self.at.binary_search(&address).is_ok()
    }
}

impl Blocks {
    pub fn new(program: Arc<Program>, cut: Cut) -> Blocks {
        let (base, code) = (program.base(), program.program_segment());
        Blocks {
            cut,
            base,
            index: vec![UNKNOWN; code.len() / 2],
            points: match cut {
                Cut::Synchronisation { .. } => fences::points(program.isa(), code, base),
                Cut::Accesses { .. } => Vec::new(),
            },
            loop_ends: LoopEnds::of(program.isa(), code, base),
            program,
            ops: Vec::new(),
            timed: Vec::new(),
            list: Vec::new(),
            pieces: FxHashMap::default(),
        }
    }

    /// Returns block `number`.
    #[inline(always)]
    pub fn block(&self, number: u32) -> &Block {
        &self.list[number as usize]
    }

    /// Returns block `number` if it exists.
    pub fn get(&self, number: usize) -> Option<&Block> {
        self.list.get(number)
    }

    /// Returns the number of the block that starts at `pc`, decoding it if necessary; `None` if `pc` has no code.
    #[inline(always)]
    pub fn at(&mut self, pc: u32) -> Option<u32> {
        match *self.index.get((pc.wrapping_sub(self.base) >> 1) as usize)? {
            UNKNOWN => self.decode(pc),
            number => Some(number),
        }
    }

    /// Returns the number of a block with the first `len` instructions of the block at `pc`, which has at least as
    /// many.
    #[cold]
    pub fn piece(&mut self, pc: u32, len: u32) -> Option<u32> {
        let whole = self.at(pc)?;
        let &Block { first, instructions, .. } = self.block(whole);
        if len == u32::from(instructions) {
            return Some(whole);
        }
        if let Some(number) = self.pieces.get(&(pc, len)) {
            return Some(*number);
        }
        let instructions = &self.timed[first as usize..(first + len) as usize];
        let end = instructions.iter().fold(pc, |pc, timed| pc + timed.length);
        let last = instructions.last().map_or(Class::Alu, |timed| timed.class);
        let number = self.list.len() as u32;
        let len = len as u16;
        let special = last == Class::System;
        self.list.push(Block {
            first,
            len,
            instructions: len,
            end,
            last,
            backward: false,
            synchronises: false,
            special,
        });
        self.pieces.insert((pc, len.into()), number);
        Some(number)
    }

    /// Returns the addresses of the instructions of each block.
    pub fn addresses(&self) -> Vec<Vec<u32>> {
        let mut addresses = vec![Vec::new(); self.list.len()];
        let at = |half_word: usize| self.base + 2 * half_word as u32;
        let whole = self.index.iter().enumerate().map(|(half_word, number)| (at(half_word), number));
        let pieces = self.pieces.iter().map(|((start, _), number)| (*start, number));
        for (start, number) in whole.chain(pieces).filter(|(_, number)| **number != UNKNOWN) {
            let mut pc = start;
            let block = self.block(*number);
            for timed in self.timed[block.range()].iter().take(block.instructions.into()) {
                addresses[*number as usize].push(pc);
                pc += timed.length;
            }
        }
        addresses
    }

    /// Returns the encoding of the instruction of `length` bytes at `pc`.
    pub fn encoding(&self, pc: u32, length: u32) -> u32 {
        let mut word = [0; 4];
        let bytes = &self.program.program_segment()[(pc - self.base) as usize..][..length as usize];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    }

    /// Returns true if the instruction at `pc` must execute at its exact time, and so is a block by itself.
    fn synchronises(&self, class: Class, pc: u32) -> bool {
        let point = || self.points[((pc - self.base) / 2) as usize];
        matches!(self.cut, Cut::Synchronisation { .. }) && (class == Class::Atomic || point())
    }

    /// Returns true if an instruction of `length` bytes at `pc` starts a block because of cache lines: the block that
    /// starts with an instruction of `first` bytes at `start` contains all instructions up to the end of the line.
    fn leaves_line(&self, (start, first): (u32, u32), pc: u32, length: u32) -> bool {
        match self.cut {
            Cut::Synchronisation { .. } => false,
            Cut::Accesses { line } => (start + first - 1) / line != (pc + length - 1) / line,
        }
    }

    #[cold]
    fn decode(&mut self, start: u32) -> Option<u32> {
        let code = self.program.program_segment();
        let first = self.ops.len();
        let divisions = self.cut == Cut::Synchronisation { divisions: true };
        let (mut pc, mut last, mut target, mut synchronises) = (start, Class::Alu, None, false);
        while self.ops.len() - first < LONGEST {
            let bytes = code.get((pc - self.base) as usize..);
            let Some(decoded) = bytes.and_then(|bytes| self.program.isa().decode(bytes, pc)) else { break };
            let accesses = matches!(self.cut, Cut::Accesses { .. }) && decoded.class.accesses_memory();
            let alone = self.synchronises(decoded.class, pc);
            let stands_alone = alone || decoded.class.stands_alone() && !accesses;
            let length = self.timed.get(first).map_or(decoded.length, |first| first.length);
            let waits = divisions && last == Class::Load && decoded.class == Class::Divide;
            if pc != start && (stands_alone || waits || self.leaves_line((start, length), pc, decoded.length)) {
                break;
            }
            self.ops.push(decoded.op);
            self.timed.push(Timed::new(&decoded, pc));
            pc += decoded.length;
            (last, target, synchronises) = (decoded.class, decoded.target, alone);
            if stands_alone || accesses || decoded.class.ends_block() || self.loop_ends.contain(pc) {
                break;
            }
        }
        let instructions = (self.ops.len() - first) as u16;
        if instructions == 0 {
            return None;
        }
        if self.loop_ends.contain(pc)
            && let Some(op) = self.program.isa().loop_end(pc)
        {
            self.ops.push(op);
            self.timed.push(Timed::LOOP_END);
            last = Class::LoopEnd;
        }
        let len = (self.ops.len() - first) as u16;
        let backward = target.is_some_and(|target| target < pc);
        let divides = divisions && self.timed[first].class == Class::Divide;
        let special = synchronises || last == Class::System || divides;
        self.list.push(Block {
            first: first as u32,
            len,
            instructions,
            end: pc,
            last,
            backward,
            synchronises,
            special,
        });
        let number = self.list.len() as u32 - 1;
        self.index[((start - self.base) >> 1) as usize] = number;
        Some(number)
    }
}
