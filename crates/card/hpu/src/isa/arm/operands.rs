// SPDX-License-Identifier: Apache-2.0
//! Register operands of an encoding, as sets of fields.

use super::fields::{PC, SET_C, SET_FP, SET_GE, SET_NZ, SET_Q, SET_V, Word};
use crate::op::RegisterSet;

/// A set of register fields of an encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands(u32);

/// Core registers by the position of their lowest bit; `r15` is refused.
pub const R16: Operands = Operands(1);
pub const R12: Operands = Operands(1 << 1);
pub const R8: Operands = Operands(1 << 2);
pub const R0: Operands = Operands(1 << 3);
/// Core registers that are absent if they are `r15`.
pub const OPTIONAL_16: Operands = Operands(1 << 4);
pub const OPTIONAL_12: Operands = Operands(1 << 5);
pub const OPTIONAL_0: Operands = Operands(1 << 6);
/// Single registers.
pub const SD: Operands = Operands(1 << 7);
pub const SN: Operands = Operands(1 << 8);
pub const SM: Operands = Operands(1 << 9);
/// Double registers.
pub const DD: Operands = Operands(1 << 10);
pub const DN: Operands = Operands(1 << 11);
pub const DM: Operands = Operands(1 << 12);
/// Double registers, or quad registers if bit 6 is set.
pub const VD: Operands = Operands(1 << 13);
pub const VN: Operands = Operands(1 << 14);
pub const VM: Operands = Operands(1 << 15);
/// Quad registers.
pub const QD: Operands = Operands(1 << 16);
pub const QN: Operands = Operands(1 << 17);
pub const QM: Operands = Operands(1 << 18);
/// Flags N and Z, if bit 20 is set.
pub const NZ_IF_SET: Operands = Operands(1 << 19);
/// Flags N, Z, C and V.
pub const NZCV: Operands = Operands(1 << 20);
pub const FLAG_Q: Operands = Operands(1 << 21);
pub const FLAGS_GE: Operands = Operands(1 << 22);
/// Flags of a floating-point comparison.
pub const FP: Operands = Operands(1 << 23);
/// The single register after Sm.
pub const NEXT_SM: Operands = Operands(1 << 24);
/// The core registers after those at bits 12 and 0.
pub const NEXT_12: Operands = Operands(1 << 25);
pub const NEXT_0: Operands = Operands(1 << 26);
/// The scalar of a vector instruction: a double register in bits 2 to 0 for half-words, in bits 3 to 0 for words.
pub const SCALAR: Operands = Operands(1 << 27);
/// Double or quad registers by bit 24, of instructions with a scalar.
pub const VD_24: Operands = Operands(1 << 28);
pub const VN_24: Operands = Operands(1 << 29);
pub const NOTHING: Operands = Operands(0);

impl Operands {
    /// Returns the union of two sets.
    pub const fn and(self, other: Operands) -> Operands {
        Operands(self.0 | other.0)
    }

    /// Returns the registers of an instruction; `None` if one of them is not allowed there.
    pub fn of(self, w: Word) -> Option<RegisterSet> {
        let mut set = RegisterSet::NONE;
        let has = |operand: Operands| self.0 & operand.0 != 0;
        for (operand, low) in [(R16, 16), (R12, 12), (R8, 8), (R0, 0)] {
            if has(operand) {
                set = set | core(w.register(low))?;
            }
        }
        for (operand, low) in [(OPTIONAL_16, 16), (OPTIONAL_12, 12), (OPTIONAL_0, 0)] {
            if has(operand) {
                set = set | core(w.register(low)).unwrap_or(RegisterSet::NONE);
            }
        }
        for (operand, low) in [(NEXT_12, 12), (NEXT_0, 0)] {
            if has(operand) {
                // The first register of a pair is even.
                let register = w.register(low);
                set = set | core(if register % 2 == 1 { PC } else { register + 1 })?;
            }
        }
        for (operand, single) in [(SD, w.sd()), (SN, w.sn()), (SM, w.sm())] {
            if has(operand) {
                set = set | double(single >> 1);
            }
        }
        if has(NEXT_SM) {
            set = set | if w.sm() == 31 { return None } else { double((w.sm() + 1) >> 1) };
        }
        for (operand, register) in [(DD, w.dd()), (DN, w.dn()), (DM, w.dm())] {
            if has(operand) {
                set = set | double(register);
            }
        }
        for (operand, register, is_quad) in [
            (VD, w.dd(), w.bit(6)),
            (VN, w.dn(), w.bit(6)),
            (VM, w.dm(), w.bit(6)),
            (QD, w.dd(), true),
            (QN, w.dn(), true),
            (QM, w.dm(), true),
            (VD_24, w.dd(), w.bit(24)),
            (VN_24, w.dn(), w.bit(24)),
        ] {
            if has(operand) {
                set = set | if is_quad { quad(register)? } else { double(register) };
            }
        }
        if has(SCALAR) {
            set = set | double(w.field(0, if w.field(20, 2) == 1 { 3 } else { 4 }) as u8);
        }
        for (operand, flags) in [
            (NZCV, SET_NZ | SET_C | SET_V),
            (FLAG_Q, SET_Q),
            (FLAGS_GE, SET_GE),
            (FP, SET_FP),
            (NZ_IF_SET, if w.bit(20) { SET_NZ } else { RegisterSet::NONE }),
        ] {
            if has(operand) {
                set = set | flags;
            }
        }
        Some(set)
    }
}

/// Returns a core register as a set; `None` for `r15`.
pub fn core(register: u8) -> Option<RegisterSet> {
    (register != PC).then(|| RegisterSet::of(register))
}

/// Returns a double register as a set.
pub fn double(register: u8) -> RegisterSet {
    RegisterSet::of(32 + register)
}

/// Returns a quad register as a set; `None` for an odd number.
pub fn quad(register: u8) -> Option<RegisterSet> {
    register.is_multiple_of(2).then(|| double(register) | double(register + 1))
}
