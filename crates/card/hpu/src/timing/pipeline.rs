// SPDX-License-Identifier: Apache-2.0
//! The interface of a pipeline model.

use std::hash::Hash;

use crate::op::{Class, Decoded, RegisterSet};

/// Bytes per cycle of a multi-register load or store (Cortex-A15: two registers).
const BEAT: u32 = 8;

/// An instruction as the timing models see it.
#[derive(Clone, Copy)]
pub(crate) struct Timed {
    pub class: Class,
    /// Registers that it reads.
    pub sources: RegisterSet,
    /// Result registers.
    pub results: RegisterSet,
    /// Address registers that a load or store changes.
    pub updates: RegisterSet,
    /// Cycles of data transfer of a load or store.
    pub beats: u32,
    /// Size of the encoding in bytes.
    pub length: u32,
    /// True if it is a 32-bit instruction at an address that is not a multiple of four.
    pub split: bool,
}

impl Timed {
    /// End of a hardware loop's body.
    pub const LOOP_END: Timed = Timed {
        class: Class::LoopEnd,
        sources: RegisterSet::NONE,
        results: RegisterSet::NONE,
        updates: RegisterSet::NONE,
        beats: 1,
        length: 0,
        split: false,
    };

    /// Creates the timing view of an instruction at `pc`.
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

/// Exit from a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Exit {
    /// True if the block ended with a jump or a taken branch.
    pub taken: bool,
    /// True if the branch predictor was wrong.
    pub mispredicted: bool,
    /// Wait of the block's last instruction, an access, for its memory.
    pub wait: Wait,
}

/// Wait of an access for its memory, in cycles; longer waits saturate, with the same effect on the pipeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Wait {
    /// Cycles from the request to the grant.
    pub grant: u8,
    /// Cycles by which the answer is later than in a memory that answers immediately.
    pub answer: u8,
}

impl Wait {
    const MOST_GRANT: u8 = 2;
    const MOST_ANSWER: u8 = 4;

    /// No wait.
    pub const NONE: Wait = Wait { grant: 0, answer: 0 };

    /// Creates a wait for a grant and then for an answer.
    pub fn new(grant: u64, answer: u64) -> Wait {
        let (grant, answer) = (grant.min(Wait::MOST_GRANT.into()), answer.min(Wait::MOST_ANSWER.into()));
        Wait { grant: grant as u8, answer: answer as u8 }
    }
}

impl Exit {
    /// A correctly predicted exit to the next instruction.
    pub const NEXT: Exit = Exit { taken: false, mispredicted: false, wait: Wait::NONE };
    /// Number of indices of exits.
    pub const COUNT: usize = 2 * ((1 + Wait::MOST_GRANT) * (1 + Wait::MOST_ANSWER)) as usize;

    /// Returns a dense index. Predictions and waits share it, because only out-of-order cores predict and only in-order
    /// cores wait.
    #[inline(always)]
    pub fn index(self) -> usize {
        let wait = self.wait.answer * (1 + Wait::MOST_GRANT) + self.wait.grant;
        usize::from(self.taken) | usize::from(wait | u8::from(self.mispredicted)) << 1
    }
}

/// A model of a core's pipeline.
pub(super) trait Pipeline {
    /// Part of a thread's past that affects its future timing. The default is an empty pipeline.
    type State: Clone + Default + Eq + Hash + Send + Sync;

    /// Runs `ops` through the pipeline. Returns the cycles from the completion of the previous instructions to the
    /// completion of `ops`.
    fn run(&self, state: &mut Self::State, ops: &[Timed], exit: Exit) -> u32;

    /// Returns the cycles that `_next` spends in the execute stage before the previous instruction ends.
    fn early(&self, _state: &Self::State, _next: &Timed) -> u32 {
        0
    }

    /// Returns the data-dependent cycles of a division in `state` that pass before the previous instruction ends.
    fn divided(&self, _state: &Self::State, _division: &Timed) -> u32 {
        0
    }
}
