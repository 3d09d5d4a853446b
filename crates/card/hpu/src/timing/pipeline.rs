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
    /// How long the block's last instruction, an access, has waited for its memory.
    pub wait: Wait,
}

/// How long an access has waited for its memory: the pipeline does not know the difference between more cycles and the most of
/// these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    /// The cycles from the request to the one in which the access is taken.
    pub grant: u8,
    /// The cycles by which the answer comes later than that of a memory that answers at once.
    pub answer: u8,
}

impl Wait {
    const MOST_GRANT: u8 = 2;
    const MOST_ANSWER: u8 = 4;

    /// No wait.
    pub const NONE: Wait = Wait { grant: 0, answer: 0 };

    /// A wait before the access is taken, and then one for the answer.
    pub fn new(grant: u64, answer: u64) -> Wait {
        let (grant, answer) = (grant.min(Wait::MOST_GRANT.into()), answer.min(Wait::MOST_ANSWER.into()));
        Wait { grant: grant as u8, answer: answer as u8 }
    }
}

impl Exit {
    /// A correctly predicted exit to the next instruction.
    pub const NEXT: Exit = Exit { taken: false, mispredicted: false, wait: Wait::NONE };
    /// One more than the largest [`Exit::index`].
    pub const COUNT: usize = 2 * ((1 + Wait::MOST_GRANT) * (1 + Wait::MOST_ANSWER)) as usize;

    /// A number. No core is both: only out-of-order cores predict, and only in-order cores wait.
    #[inline(always)]
    pub fn index(self) -> usize {
        let wait = self.wait.answer * (1 + Wait::MOST_GRANT) + self.wait.grant;
        usize::from(self.taken) | usize::from(wait | u8::from(self.mispredicted)) << 1
    }
}

/// A model of a core's pipeline.
pub(super) trait Pipeline {
    /// The part of a thread's past that affects its future timing. The default is an empty pipeline.
    type State: Clone + Default + Eq + Hash + Send + Sync;

    /// Runs `ops` through the pipeline. Returns the cycles from the completion of the instructions before to the
    /// completion of `ops`.
    fn run(&self, state: &mut Self::State, ops: &[Timed], exit: Exit) -> u32;

    /// The cycles for which an instruction that comes next has been in the execute stage when the instruction before it ends.
    fn early(&self, _state: &Self::State, _next: &Timed) -> u32 {
        0
    }

    /// The cycles by which a division that comes next has got on with what depends on its data when the instruction before it ends.
    fn divided(&self, _state: &Self::State, _division: &Timed) -> u32 {
        0
    }
}
