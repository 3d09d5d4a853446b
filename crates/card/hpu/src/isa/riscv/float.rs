// SPDX-License-Identifier: Apache-2.0
//! F and D (RISC-V Unpriv. 21, 22). The host's IEEE 754 arithmetic rounds to nearest, the only value of `frm` here.

use super::fields::Fields;
use super::integer;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// A floating-point format.
pub(super) trait Float: Copy + PartialOrd {
    const NAN: Self;
    /// Fraction bits, without the leading one.
    const FRACTION: u32;
    const SIGN: u64;
    /// Returns the value of a register; a single that is not boxed is NaN (21.2).
    fn unbox(register: u64) -> Self;
    /// Returns the register bits of this value.
    fn boxed(self) -> u64;
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    fn is_nan(self) -> bool;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn neg(self) -> Self;
    fn sqrt(self) -> Self;
    fn fused(self, b: Self, c: Self) -> Self;
    /// Converts without loss.
    fn widen(self) -> f64;

    /// Returns the register bits of a computed value, with NaN made canonical (21.3). The selection is between integers
    /// because the compiler may exchange one NaN for another.
    fn canonical(self) -> u64 {
        if self.is_nan() { Self::NAN.boxed() } else { self.boxed() }
    }
}

macro_rules! float {
    ($float:ty, $bits:ty, $nan:literal, $fraction:literal, $unbox:expr, $box:expr) => {
        impl Float for $float {
            const NAN: Self = <$float>::from_bits($nan);
            const FRACTION: u32 = $fraction;
            const SIGN: u64 = 1 << (<$bits>::BITS - 1);
            fn unbox(register: u64) -> Self {
                $unbox(register)
            }
            fn boxed(self) -> u64 {
                $box(self.to_bits())
            }
            fn bits(self) -> u64 {
                self.to_bits().into()
            }
            fn from_bits(bits: u64) -> Self {
                <$float>::from_bits(bits as $bits)
            }
            fn is_nan(self) -> bool {
                self.is_nan()
            }
            fn add(self, b: Self) -> Self {
                self + b
            }
            fn sub(self, b: Self) -> Self {
                self - b
            }
            fn mul(self, b: Self) -> Self {
                self * b
            }
            fn div(self, b: Self) -> Self {
                self / b
            }
            fn neg(self) -> Self {
                -self
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            fn fused(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            fn widen(self) -> f64 {
                self.into()
            }
        }
    };
}

const BOX: u64 = 0xffff_ffff_0000_0000;

float!(
    f32,
    u32,
    0x7fc0_0000,
    23,
    |register| if register & BOX == BOX { f32::from_bits(register as u32) } else { <f32 as Float>::NAN },
    |bits| BOX | u64::from(bits)
);
float!(f64, u64, 0x7ff8_0000_0000_0000, 52, f64::from_bits, |bits| bits);

#[inline(always)]
fn compute<F: Float>(s: &mut State, op: &Op, f: impl FnOnce(F, F) -> F) -> Flow {
    let value = f(F::unbox(s.wide(op.rs1())), F::unbox(s.wide(op.rs2())));
    s.set_wide(op.rd(), value.canonical());
    Flow::Next
}

pub fn fadd<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    compute(s, op, F::add)
}

pub fn fsub<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    compute(s, op, F::sub)
}

pub fn fmul<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    compute(s, op, F::mul)
}

pub fn fdiv<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    compute(s, op, F::div)
}

pub fn fsqrt<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    compute(s, op, |a: F, _| a.sqrt())
}

#[inline(always)]
fn fused<F: Float>(s: &mut State, op: &Op, f: impl FnOnce(F, F, F) -> F) -> Flow {
    let c = F::unbox(s.wide(op.rs3()));
    compute(s, op, |a, b| f(a, b, c))
}

pub fn fmadd<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    fused(s, op, F::fused)
}

pub fn fmsub<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    fused(s, op, |a: F, b, c| a.fused(b, c.neg()))
}

pub fn fnmsub<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    fused(s, op, |a: F, b, c| a.neg().fused(b, c))
}

pub fn fnmadd<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    fused(s, op, |a: F, b, c| a.neg().fused(b, c.neg()))
}

/// Injects a sign bit; a NaN keeps its payload.
#[inline(always)]
fn inject<F: Float>(s: &mut State, op: &Op, sign: impl FnOnce(u64, u64) -> u64) -> Flow {
    let (a, b) = (F::unbox(s.wide(op.rs1())).bits(), F::unbox(s.wide(op.rs2())).bits());
    let bits = a & !F::SIGN | sign(a, b) & F::SIGN;
    s.set_wide(op.rd(), F::from_bits(bits).boxed());
    Flow::Next
}

pub fn fsgnj<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    inject::<F>(s, op, |_, b| b)
}

pub fn fsgnjn<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    inject::<F>(s, op, |_, b| !b)
}

pub fn fsgnjx<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    inject::<F>(s, op, |a, b| a ^ b)
}

/// Returns the operand for which `first` holds. A number takes precedence over a NaN, and -0 is less than +0 (21.6).
#[inline(always)]
fn select<F: Float>(s: &mut State, op: &Op, first: impl FnOnce(F, F) -> bool, negative: bool) -> Flow {
    compute(s, op, |a: F, b: F| {
        let a_is_it = if a.is_nan() || b.is_nan() {
            b.is_nan()
        } else if a == b {
            (a.bits() & F::SIGN != 0) == negative
        } else {
            first(a, b)
        };
        if a_is_it { a } else { b }
    })
}

pub fn fmin<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    select(s, op, |a: F, b| a < b, true)
}

pub fn fmax<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    select(s, op, |a: F, b| a > b, false)
}

#[inline(always)]
fn to_x<F: Float>(s: &mut State, op: &Op, f: impl FnOnce(F, F) -> u32) -> Flow {
    let value = f(F::unbox(s.wide(op.rs1())), F::unbox(s.wide(op.rs2())));
    s.set_word(op.rd(), value);
    Flow::Next
}

pub fn feq<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(s, op, |a: F, b| u32::from(a == b))
}

pub fn flt<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(s, op, |a: F, b| u32::from(a < b))
}

pub fn fle<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(s, op, |a: F, b| u32::from(a <= b))
}

/// Sets the bit of the operand's class (21.9, table 26).
pub fn fclass<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(s, op, |a: F, _| {
        let magnitude = a.bits() & !F::SIGN;
        let fraction = magnitude & ((1 << F::FRACTION) - 1);
        let exponent = magnitude >> F::FRACTION;
        let largest = (F::SIGN - 1) >> F::FRACTION;
        let quiet = fraction >> (F::FRACTION - 1) != 0;
        // Infinite, normal, subnormal and zero count up from 0 if negative, and down from 7 if positive.
        let class = match (exponent == largest, exponent == 0, fraction == 0) {
            (true, _, false) => return if quiet { 1 << 9 } else { 1 << 8 },
            (true, _, true) => 0,
            (false, false, _) => 1,
            (false, true, false) => 2,
            (false, true, true) => 3,
        };
        1 << if a.bits() & F::SIGN != 0 { class } else { 7 - class }
    })
}

/// Rounds `value` to an integer in rounding mode `mode` (table 25).
fn round(value: f64, mode: u32) -> f64 {
    match mode {
        1 => value.trunc(),
        2 => value.floor(),
        3 => value.ceil(),
        4 => value.round(),
        _ => value.round_ties_even(),
    }
}

/// Converts to an integer. Out-of-range values saturate, and NaN becomes the largest integer (table 28).
pub fn fcvt_w<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let mode = op.imm;
    to_x(s, op, |a: F, _| if a.is_nan() { i32::MAX as u32 } else { round(a.widen(), mode) as i32 as u32 })
}

pub fn fcvt_wu<F: Float>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let mode = op.imm;
    to_x(s, op, |a: F, _| if a.is_nan() { u32::MAX } else { round(a.widen(), mode) as u32 })
}

#[inline(always)]
fn from_x<F: Float>(s: &mut State, op: &Op, f: impl FnOnce(u32) -> F) -> Flow {
    let value = f(s.word(op.rs1()));
    s.set_wide(op.rd(), value.boxed());
    Flow::Next
}

pub fn fcvt_s_w(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(s, op, |x| x as i32 as f32)
}

pub fn fcvt_s_wu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(s, op, |x| x as f32)
}

pub fn fcvt_d_w(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(s, op, |x| f64::from(x as i32))
}

pub fn fcvt_d_wu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(s, op, f64::from)
}

pub fn fcvt_s_d(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = f64::unbox(s.wide(op.rs1())) as f32;
    s.set_wide(op.rd(), value.canonical());
    Flow::Next
}

pub fn fcvt_d_s(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = f64::from(f32::unbox(s.wide(op.rs1())));
    s.set_wide(op.rd(), value.canonical());
    Flow::Next
}

/// Moves the low bits, whether the register is boxed or not (21.2).
pub fn fmv_x_w(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let bits = s.wide(op.rs1()) as u32;
    s.set_word(op.rd(), bits);
    Flow::Next
}

pub fn fmv_w_x(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let bits = s.word(op.rs1());
    s.set_wide(op.rd(), BOX | u64::from(bits));
    Flow::Next
}

pub fn flw<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let Some(bytes) = integer::load::<AT_HAND, _>(s, m, op) else { return Flow::Load };
    s.set_wide(op.rd(), BOX | u64::from(u32::from_le_bytes(bytes)));
    Flow::Next
}

pub fn fld<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let Some(bytes) = integer::load::<AT_HAND, _>(s, m, op) else { return Flow::Load };
    s.set_wide(op.rd(), u64::from_le_bytes(bytes));
    Flow::Next
}

pub fn fsw<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let value = s.wide(op.rs2()) as u32;
    integer::store::<AT_HAND, _>(s, m, op, value.to_le_bytes())
}

pub fn fsd<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let value = s.wide(op.rs2());
    integer::store::<AT_HAND, _>(s, m, op, value.to_le_bytes())
}
