// SPDX-License-Identifier: Apache-2.0
//! Instruction words, and the registers of the file that hold the state of an ARM core.

use crate::architectural_state::State;
use crate::op::RegisterSet;

/// Stack pointer, link register and program counter. Register `r`*n* is 32-bit register *n* of the file; `r15` has no
/// place in it.
pub const LR: u8 = 14;
pub const PC: u8 = 15;
/// Flag N: bit 31 of this register of the file.
pub const N: u8 = 16;
/// Flag Z: set if this register of the file is zero.
pub const Z: u8 = 17;
/// Flag C: 0 or 1.
pub const C: u8 = 18;
/// Flag V: 0 or 1.
pub const V: u8 = 19;
/// Flag Q (saturation): 0 or 1.
pub const Q: u8 = 20;
/// Flags GE[3:0].
pub const GE: u8 = 21;
/// Register of the file that is always zero: the base of pc-relative accesses.
pub const ZERO: u8 = 22;
/// Flags of the latest floating-point comparison, in bits 31 to 28 as in FPSCR.
pub const FP_FLAGS: u8 = 23;

/// Names of flags for the timing models, above the 15 integer registers; `d0` to `d31` are 32 to 63.
pub const SET_NZ: RegisterSet = RegisterSet::of(16);
pub const SET_C: RegisterSet = RegisterSet::of(17);
pub const SET_V: RegisterSet = RegisterSet::of(18);
pub const SET_Q: RegisterSet = RegisterSet::of(19);
pub const SET_GE: RegisterSet = RegisterSet::of(20);
pub const SET_FP: RegisterSet = RegisterSet::of(21);

/// An instruction word.
#[derive(Clone, Copy)]
pub struct Word(pub u32);

impl Word {
    /// Returns `bits` bits from bit `low`.
    #[inline(always)]
    pub const fn field(self, low: u32, bits: u32) -> u32 {
        self.0 >> low & ((1 << bits) - 1)
    }

    /// Returns a bit.
    #[inline(always)]
    pub const fn bit(self, at: u32) -> bool {
        self.0 >> at & 1 == 1
    }

    /// Returns the register in four bits from bit `low`.
    #[inline(always)]
    pub const fn register(self, low: u32) -> u8 {
        self.field(low, 4) as u8
    }

    /// Returns the double or quad register D:Vd as the number of a double register.
    #[inline(always)]
    pub const fn dd(self) -> u8 {
        (self.field(22, 1) << 4 | self.field(12, 4)) as u8
    }

    /// Returns the double register N:Vn.
    #[inline(always)]
    pub const fn dn(self) -> u8 {
        (self.field(7, 1) << 4 | self.field(16, 4)) as u8
    }

    /// Returns the double register M:Vm.
    #[inline(always)]
    pub const fn dm(self) -> u8 {
        (self.field(5, 1) << 4 | self.field(0, 4)) as u8
    }

    /// Returns the single register Vd:D.
    #[inline(always)]
    pub const fn sd(self) -> u8 {
        (self.field(12, 4) << 1 | self.field(22, 1)) as u8
    }

    /// Returns the single register Vn:N.
    #[inline(always)]
    pub const fn sn(self) -> u8 {
        (self.field(16, 4) << 1 | self.field(7, 1)) as u8
    }

    /// Returns the single register Vm:M.
    #[inline(always)]
    pub const fn sm(self) -> u8 {
        (self.field(0, 4) << 1 | self.field(5, 1)) as u8
    }
}

/// Reads single register `s`*n*, half of `d`*n/2*.
#[inline(always)]
pub fn single(s: &State, n: u8) -> u32 {
    (s.wide(n >> 1) >> (32 * u32::from(n & 1))) as u32
}

/// Writes single register `s`*n*.
#[inline(always)]
pub fn set_single(s: &mut State, n: u8, bits: u32) {
    let shift = 32 * u32::from(n & 1);
    let kept = s.wide(n >> 1) & !(0xffff_ffff << shift);
    s.set_wide(n >> 1, kept | u64::from(bits) << shift);
}

/// Expands the immediate of a data-processing instruction (A5.2.4).
pub const fn expanded(imm12: u32) -> u32 {
    (imm12 & 0xff).rotate_right(2 * (imm12 >> 8 & 15))
}
