use std::hash::Hash;

use crate::op::{Class, Decoded, RegisterSet};

/// Bytes that a load or store of several registers transfers in a cycle (Cortex-A15: two registers).
const BEAT: u32 = 8;

/// An instruction as the timing models see it.
#[derive(Clone, Copy)]
pub(crate) struct Timed {
    pub class: Class,
    /// Registers that it reads.
    pub sources: RegisterSet,
    /// Registers that hold its result.
    pub results: RegisterSet,
    /// Address registers that a load or store changes.
    pub updates: RegisterSet,
    /// Cycles for which a load or store transfers data.
    pub beats: u32,
    /// Size of the encoding in bytes.
    pub length: u32,
    /// Whether it is a 32-bit instruction at an address that is not a multiple of four.
    pub split: bool,
}

impl Timed {
    /// The end of a hardware loop's body.
    pub const LOOP_END: Timed = Timed {
        class: Class::LoopEnd,
        sources: RegisterSet::NONE,
        results: RegisterSet::NONE,
        updates: RegisterSet::NONE,
        beats: 1,
        length: 0,
        split: false,
    };

    /// The view on an instruction at `pc`.
    pub fn new(decoded: &Decoded, pc: u32) -> Timed {
        Timed {
            class: decoded.class,
            sources: decoded.sources,
            results: decoded.results,
            updates: decoded.access.updates,
            beats: decoded.access.bytes.div_ceil(BEAT).max(1),
            length: decoded.length,
            split: decoded.length == 4 && !pc.is_multiple_of(4),
        }
    }
}

/// How a block was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exit {
    /// The block ended with a jump or a taken branch.
    pub taken: bool,
    /// The branch predictor was wrong.
    pub mispredicted: bool,
    /// The block's last instruction is an access for which the memory was not ready. The pipeline waits for it; the
    /// model counts the first cycle of the wait, and all further ones leave it in the same state.
    pub stalled: bool,
}

impl Exit {
    /// A correctly predicted exit to the next instruction.
    pub const NEXT: Exit = Exit { taken: false, mispredicted: false, stalled: false };

    /// A number from 0 to 3. No core is both: only out-of-order cores predict, and only in-order cores stall.
    pub fn index(self) -> usize {
        usize::from(self.taken) | usize::from(self.mispredicted | self.stalled) << 1
    }
}

/// A model of a core's pipeline.
pub(super) trait Pipeline {
    /// The part of a thread's past that affects its future timing. The default is an empty pipeline.
    type State: Clone + Default + Eq + Hash + Send + Sync;

    /// Runs `ops` through the pipeline. Returns the cycles from the completion of the instructions before to the
    /// completion of `ops`.
    fn run(&self, state: &mut Self::State, ops: &[Timed], exit: Exit) -> u32;
}
