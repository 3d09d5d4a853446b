use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

use abi::device::map;
use machine::TimingKind;

use crate::isa::{self, Class, Flow, Op};
use crate::memory::View;
use crate::profile::{Profile, count};
use crate::timing::{Exit, Memo, Timed};
use crate::{Fault, Memory, Program, Stop, Thread, sync};

/// Longest block, in instructions.
const BLOCK: usize = 64;
/// Entry of the block index where no block has been decoded yet.
const UNKNOWN: u32 = u32::MAX;
/// Counter of a branch that has not been seen.
const UNSEEN: u8 = u8::MAX;

/// A run of instructions that is entered only at its start and left only at its end, or by a fault.
struct Block {
    /// Of the operations.
    first: u32,
    len: u32,
    /// Address after it.
    end: u32,
    /// Class of its last instruction.
    last: Class,
    /// Whether its last instruction is a branch backwards.
    backward: bool,
    /// It is one instruction that happens at its exact time.
    synchronises: bool,
}

impl Block {
    fn range(&self) -> Range<usize> {
        self.first as usize..(self.first + self.len) as usize
    }
}

/// What the branch predictor of a card has learned; all its HPUs share it. The default has learned nothing.
#[derive(Clone, Debug, Default)]
pub struct Predictor(Vec<Learned>);

/// Of the last instruction of a block.
#[derive(Clone, Copy, Debug)]
struct Learned {
    /// Two-bit counter of a branch: taken from 2 on.
    counter: u8,
    /// Where an indirect jump went the last time.
    target: u32,
}

/// Runs the handlers of one program on one kind of core; the HPUs of a card share it. Cards may share one too, if each
/// brings its own [`Predictor`].
pub struct Engine {
    program: Arc<Program>,
    ops: Vec<Op>,
    timed: Vec<Timed>,
    blocks: Vec<Block>,
    predictor: Predictor,
    /// Block by half-word of the program.
    index: Vec<u32>,
    /// Blocks that are the first instructions of longer ones, by address and number of instructions: where a handler
    /// stopped before an access to a watched word, and that access.
    pieces: HashMap<(u32, u32), u32>,
    /// Whether an instruction synchronises, by half-word of the program.
    points: Vec<bool>,
    memo: Memo,
    in_order: bool,
    profile: Option<Profile>,
}

impl Engine {
    /// For memories that answer loads in `scratchpad_cycles` (at least 1).
    pub fn new(program: Arc<Program>, timing: TimingKind, scratchpad_cycles: u32) -> Engine {
        Engine {
            index: vec![UNKNOWN; program.program_segment().len() / 2],
            pieces: HashMap::new(),
            points: sync::points(program.program_segment()),
            program,
            ops: Vec::new(),
            timed: Vec::new(),
            blocks: Vec::new(),
            predictor: Predictor::default(),
            memo: Memo::new(timing, scratchpad_cycles),
            in_order: timing == TimingKind::InOrder,
            profile: None,
        }
    }

    /// Exchanges what the branch predictor has learned.
    #[inline]
    pub fn swap_predictor(&mut self, other: &mut Predictor) {
        std::mem::swap(&mut self.predictor, other);
    }

    /// Counts from now on how often each instruction runs.
    pub fn set_profiling(&mut self) {
        self.profile.get_or_insert_default();
    }

    /// How often each instruction ran: by the handler's first instruction, then by address. Empty unless
    /// [`Engine::set_profiling`] was called.
    pub fn profile(&self) -> BTreeMap<u32, BTreeMap<u32, u64>> {
        let Some(profile) = &self.profile else { return BTreeMap::new() };
        let mut addresses = vec![Vec::new(); self.blocks.len()];
        let at = |half_word: usize| map::PROGRAM + 2 * half_word as u32;
        let whole = self.index.iter().enumerate().map(|(half_word, number)| (at(half_word), number));
        let pieces = self.pieces.iter().map(|((start, _), number)| (*start, number));
        for (start, number) in whole.chain(pieces).filter(|(_, number)| **number != UNKNOWN) {
            let mut pc = start;
            for _ in 0..self.blocks[*number as usize].len {
                addresses[*number as usize].push(pc);
                pc += self.length(pc);
            }
        }
        profile.instructions(&addresses)
    }

    /// Runs `thread` until something that the card must decide, or until it has used more than `max_cycles` in all;
    /// that is looked at between blocks of straight code.
    ///
    /// What must happen at its exact time does not run at once: an atomic operation, a load or store beside a fence, an
    /// access to a word on which a handler waits. The engine stops before it ([`Stop::Sync`]), and the next call, when
    /// the simulated time of [`Thread::cycles`] has come, runs it first. So these of different HPUs happen in the order
    /// of time.
    pub fn run(&mut self, thread: &mut Thread, memory: &mut Memory<'_>, max_cycles: u64) -> Stop {
        let mut counts = self.profile.as_mut().map(|profile| profile.lend(thread.entry));
        thread.attention.resume();
        let mut view = View::new(memory, thread.attention);
        let stop = self.run_blocks(thread, &mut view, max_cycles, counts.as_mut());
        thread.attention = view.attention;
        if let (Some(profile), Some(counts)) = (&mut self.profile, counts) {
            profile.give_back(thread.entry, counts);
        }
        stop
    }

    #[inline(always)]
    fn run_blocks(
        &mut self,
        thread: &mut Thread,
        view: &mut View<'_>,
        max_cycles: u64,
        mut counts: Option<&mut Vec<u64>>,
    ) -> Stop {
        self.memo.resume(&mut thread.pipeline);
        loop {
            let start = thread.pc;
            let found = if thread.granted { self.piece(start, 1) } else { self.block_at(start) };
            let Some(number) = found else {
                return match start {
                    map::RETURN => Stop::Return(thread.x(10)),
                    pc => Stop::Fault(Fault::Fetch { pc }),
                };
            };
            if thread.cycles > max_cycles {
                return Stop::Limit;
            }
            let block = &self.blocks[number as usize];
            if block.synchronises && !thread.granted {
                thread.granted = true;
                return Stop::Sync;
            }
            view.granted = std::mem::take(&mut thread.granted);

            thread.pc = block.end;
            thread.data_cycles = 0;
            let range = block.range();
            let mut flow = Flow::Next;
            let left = self.ops[range.clone()].iter().position(|op| {
                flow = (op.run)(thread, view, op);
                flow != Flow::Next
            });
            if !matches!(flow, Flow::Next | Flow::Jump | Flow::Call) {
                let at = left.unwrap_or_default();
                if std::mem::take(&mut view.synchronises) {
                    return self.pause(thread, view, start, at, counts);
                }
                return self.fault(thread, view, start, &range, at, flow);
            }

            thread.instructions += u64::from(block.len);
            if let Some(counts) = &mut counts {
                count(counts, number);
            }
            let taken = flow == Flow::Jump;
            let exit = if self.in_order {
                thread.cycles += u64::from(thread.data_cycles);
                Exit { taken, mispredicted: false }
            } else {
                Exit { taken, mispredicted: self.predictor.mispredicts(number, block, taken, thread.pc) }
            };
            let timed = &self.timed;
            thread.cycles += u64::from(self.memo.advance(&mut thread.pipeline, number, exit, || &timed[range]));
            if flow == Flow::Call {
                return Stop::Call { number: thread.x(17), argument: thread.x(10) };
            }
        }
    }

    /// The block that starts at `pc`; `None` when there is no code.
    #[inline(always)]
    fn block_at(&mut self, pc: u32) -> Option<u32> {
        match *self.index.get((pc.wrapping_sub(map::PROGRAM) >> 1) as usize)? {
            UNKNOWN => self.decode_block(pc),
            number => Some(number),
        }
    }

    /// The first `len` instructions of the block at `pc`, which has as many, as a block.
    #[cold]
    fn piece(&mut self, pc: u32, len: u32) -> Option<u32> {
        let whole = self.block_at(pc)?;
        let &Block { first, len: all, .. } = &self.blocks[whole as usize];
        if len == all {
            return Some(whole);
        }
        if let Some(number) = self.pieces.get(&(pc, len)) {
            return Some(*number);
        }
        let end = (0..len).fold(pc, |pc, _| pc + self.length(pc));
        let last = self.timed[(first + len - 1) as usize].class;
        let number = self.blocks.len() as u32;
        self.blocks.push(Block { first, len, end, last, backward: false, synchronises: false });
        self.pieces.insert((pc, len), number);
        Some(number)
    }

    /// Stops a thread before operation `at` of the block at `start`, an access to a watched word.
    #[cold]
    fn pause(
        &mut self,
        thread: &mut Thread,
        view: &View<'_>,
        start: u32,
        at: usize,
        counts: Option<&mut Vec<u64>>,
    ) -> Stop {
        thread.pc = start;
        thread.granted = true;
        if at > 0
            && let Some(number) = self.piece(start, at as u32)
        {
            let block = &self.blocks[number as usize];
            thread.pc = block.end;
            thread.instructions += u64::from(block.len);
            if let Some(counts) = counts {
                count(counts, number);
            }
            if self.in_order {
                let (address, len) = view.denied;
                thread.cycles += u64::from(thread.data_cycles - isa::further_words(address, len as usize));
            }
            let (timed, range) = (&self.timed, block.range());
            let exit = Exit { taken: false, mispredicted: false };
            thread.cycles += u64::from(self.memo.advance(&mut thread.pipeline, number, exit, || &timed[range]));
        }
        Stop::Sync
    }

    #[cold]
    fn decode_block(&mut self, start: u32) -> Option<u32> {
        let code = self.program.program_segment();
        let first = self.ops.len();
        let mut pc = start;
        let mut last = Class::Alu;
        while self.ops.len() - first < BLOCK {
            let Some(decoded) = code.get((pc - map::PROGRAM) as usize..).and_then(|bytes| isa::decode(bytes, pc))
            else {
                break;
            };
            let synchronises = decoded.class == Class::Atomic || self.points[((pc - map::PROGRAM) / 2) as usize];
            let stands_alone = synchronises || decoded.class.stands_alone();
            if stands_alone && pc != start {
                break;
            }
            let split = decoded.length == 4 && !pc.is_multiple_of(4);
            let isa::Decoded { op, class, length, dest, sources } = decoded;
            self.ops.push(op);
            self.timed.push(Timed { class, dest, sources, split });
            pc += length;
            last = class;
            if stands_alone || class.ends_block() {
                break;
            }
        }
        let len = (self.ops.len() - first) as u32;
        if len == 0 {
            return None;
        }
        let backward = self.ops.last().is_some_and(|op| op.imm < pc);
        let synchronises = last == Class::Atomic || self.points[((start - map::PROGRAM) / 2) as usize];
        let block = Block { first: first as u32, len, end: pc, last, backward, synchronises };
        self.blocks.push(block);
        let number = self.blocks.len() as u32 - 1;
        self.index[((start - map::PROGRAM) >> 1) as usize] = number;
        Some(number)
    }

    /// Bytes of the instruction at `pc`.
    fn length(&self, pc: u32) -> u32 {
        if self.program.program_segment()[(pc - map::PROGRAM) as usize] & 3 == 3 { 4 } else { 2 }
    }

    /// Ends a thread at operation `at` of the block at `start`, and counts those before it.
    #[cold]
    fn fault(
        &mut self,
        thread: &mut Thread,
        view: &View<'_>,
        start: u32,
        range: &Range<usize>,
        at: usize,
        flow: Flow,
    ) -> Stop {
        let mut pc = start;
        for _ in 0..at {
            if let Some(profile) = &mut self.profile {
                profile.add_partial(thread.entry, pc);
            }
            pc += self.length(pc);
        }
        thread.pc = pc;
        thread.instructions += at as u64;
        if self.in_order {
            thread.cycles += u64::from(thread.data_cycles);
        }
        let ops = &self.timed[range.start..=range.start + at];
        thread.cycles += u64::from(self.memo.partial(thread.pipeline, ops));

        let (addr, len) = view.denied;
        Stop::Fault(match flow {
            Flow::Load => Fault::Load { pc, addr, len },
            Flow::Store => Fault::Store { pc, addr, len },
            Flow::Misaligned => Fault::Misaligned { pc, addr },
            Flow::Break => Fault::Breakpoint { pc },
            _ => {
                let mut word = [0; 4];
                let code = self.program.program_segment();
                let bytes = &code[(pc - map::PROGRAM) as usize..][..self.length(pc) as usize];
                word[..bytes.len()].copy_from_slice(bytes);
                Fault::Illegal { pc, word: u32::from_le_bytes(word) }
            }
        })
    }
}

impl Predictor {
    /// Whether the predictor was wrong about how block `number` was left; it learns. Branches have two-bit counters,
    /// indirect jumps go where they went the last time, returns are always right (return-address stack). All HPUs of a
    /// card share what is learned.
    #[inline(always)]
    fn mispredicts(&mut self, number: u32, block: &Block, taken: bool, target: u32) -> bool {
        match block.last {
            Class::Branch => {
                let counter = &mut self.learned(number, block).counter;
                let predicted = *counter >= 2;
                *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
                predicted != taken
            }
            Class::JumpIndirect => std::mem::replace(&mut self.learned(number, block).target, target) != target,
            _ => false,
        }
    }

    #[inline(always)]
    fn learned(&mut self, number: u32, block: &Block) -> &mut Learned {
        let index = number as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, Learned { counter: UNSEEN, target: 0 });
        }
        let learned = &mut self.0[index];
        if learned.counter == UNSEEN {
            // Before it has been seen, a branch is predicted taken when it goes backwards.
            learned.counter = 1 + u8::from(block.backward);
        }
        learned
    }
}
