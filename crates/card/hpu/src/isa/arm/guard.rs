// SPDX-License-Identifier: Apache-2.0
//! Conditional execution: an instruction with a condition has a second form that tests it.
//!
//! The condition is in the two upper bits of the first two register fields of [`Op`], which the register file ignores.

use super::flags;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op, Run, Semantics};

/// Forms of an instruction: unconditional and conditional.
pub type Runs = [Run; 2];

/// Returns both forms of an instruction.
pub const fn both<F: Semantics>(semantics: F) -> Runs {
    [Run::new(semantics), Run::new(guarded(semantics))]
}

/// Returns both forms of a load or store; see [`Run::of_access`].
pub const fn both_of_access<F: Semantics, G: Semantics>(at_hand: F, anywhere: G) -> Runs {
    [Run::of_access(at_hand, anywhere), Run::of_access(guarded(at_hand), guarded(anywhere))]
}

const fn guarded<F: Semantics>(semantics: F) -> impl Semantics {
    move |s: &mut State, m: &mut View<'_>, op: &Op| {
        if flags::passes(s, condition(op)) { semantics(s, m, op) } else { Flow::Next }
    }
}

/// Returns the condition of an operation.
#[inline(always)]
fn condition(op: &Op) -> u32 {
    u32::from(op.registers[0] >> 6) | u32::from(op.registers[1] >> 6) << 2
}

/// Adds a condition to an operation.
pub fn set_condition(registers: &mut [u8; 4], condition: u32) {
    registers[0] = registers[0] & 63 | (condition as u8 & 3) << 6;
    registers[1] = registers[1] & 63 | (condition as u8 >> 2) << 6;
}
