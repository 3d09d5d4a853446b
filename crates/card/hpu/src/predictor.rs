// SPDX-License-Identifier: Apache-2.0
//! State of the branch predictor.

use crate::op::Class;

/// Counter of a branch without history.
const UNSEEN: u8 = u8::MAX;

/// State of a card's branch predictor, shared by all its HPUs. The default has no history.
///
/// Branches have two-bit counters, indirect jumps are predicted to go to their previous target, and returns are always
/// predicted correctly (return-address stack).
#[derive(Clone, Debug, Default)]
pub struct Predictor(Vec<Learned>);

/// Predictor entry of the last instruction of a block.
#[derive(Clone, Copy, Debug)]
struct Learned {
    /// Two-bit counter of a branch; predicts taken from 2 on.
    counter: u8,
    /// Previous target of an indirect jump.
    target: u32,
}

impl Predictor {
    /// Updates the entry of block `number`, whose last instruction is of class `last`, and returns true on a
    /// misprediction. A branch without history is predicted taken if it goes `backward`.
    #[inline(always)]
    pub(crate) fn mispredicts(&mut self, number: u32, last: Class, backward: bool, taken: bool, target: u32) -> bool {
        match last {
            Class::Branch | Class::LoadBranch => {
                let counter = &mut self.learned(number, backward).counter;
                let predicted = *counter >= 2;
                *counter = if taken { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
                predicted != taken
            }
            Class::JumpIndirect | Class::LoadJump => {
                std::mem::replace(&mut self.learned(number, backward).target, target) != target
            }
            _ => false,
        }
    }

    #[inline(always)]
    fn learned(&mut self, number: u32, backward: bool) -> &mut Learned {
        let index = number as usize;
        if index >= self.0.len() {
            self.0.resize(index + 1, Learned { counter: UNSEEN, target: 0 });
        }
        let learned = &mut self.0[index];
        if learned.counter == UNSEEN {
            learned.counter = 1 + u8::from(backward);
        }
        learned
    }
}
