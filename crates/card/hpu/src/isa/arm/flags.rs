// SPDX-License-Identifier: Apache-2.0
//! Condition flags (A2.4) and conditions (A8.3).

use super::fields::{C, GE, N, Q, SET_C, SET_NZ, SET_V, V, Z};
use crate::architectural_state::State;
use crate::op::RegisterSet;

/// Condition that always passes.
pub const ALWAYS: u32 = 14;

/// For each condition, the set of flags NZCV (as a number of four bits) with which it passes.
const PASSES: [u16; 16] = {
    let mut sets = [0; 16];
    let mut condition = 0;
    while condition < 16 {
        let mut flags = 0;
        while flags < 16 {
            let (n, z, c, v) = (flags & 8 != 0, flags & 4 != 0, flags & 2 != 0, flags & 1 != 0);
            let base = match condition >> 1 {
                0 => z,
                1 => c,
                2 => n,
                3 => v,
                4 => c && !z,
                5 => n == v,
                6 => n == v && !z,
                _ => true,
            };
            if base != (condition & 1 == 1 && condition != 15) {
                sets[condition] |= 1 << flags;
            }
            flags += 1;
        }
        condition += 1;
    }
    sets
};

/// Returns the flags as NZCV in bits 3 to 0.
#[inline(always)]
pub fn nzcv(s: &State) -> u32 {
    (s.word(N) >> 31) << 3 | u32::from(s.word(Z) == 0) << 2 | s.word(C) << 1 | s.word(V)
}

/// Sets the flags from NZCV in bits 3 to 0.
#[inline(always)]
pub fn set_nzcv(s: &mut State, flags: u32) {
    s.set_word(N, flags << 28);
    s.set_word(Z, !flags & 4);
    s.set_word(C, flags >> 1 & 1);
    s.set_word(V, flags & 1);
}

/// Sets N and Z from a result.
#[inline(always)]
pub fn set_nz(s: &mut State, result: u32) {
    s.set_word(N, result);
    s.set_word(Z, result);
}

/// Returns true if a condition passes.
#[inline(always)]
pub fn passes(s: &State, condition: u32) -> bool {
    PASSES[condition as usize & 15] >> nzcv(s) & 1 == 1
}

/// Returns the flags that a condition reads.
pub fn read_by(condition: u32) -> RegisterSet {
    match condition >> 1 {
        0 | 2 => SET_NZ,
        1 => SET_C,
        3 => SET_V,
        4 => SET_C | SET_NZ,
        5 | 6 => SET_NZ | SET_V,
        _ => RegisterSet::NONE,
    }
}

/// Returns APSR (A2.4).
pub fn apsr(s: &State) -> u32 {
    nzcv(s) << 28 | s.word(Q) << 27 | s.word(GE) << 16
}
