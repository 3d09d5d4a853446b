//! F and D (RISC-V Unpriv. 21, 22). The host's IEEE 754 arithmetic rounds to nearest, as `frm` always says here.

use super::{Flow, Op, integer};
use crate::memory::View;
use crate::thread::Thread;

/// A floating-point format.
pub(super) trait Float: Copy + PartialOrd {
    const NAN: Self;
    /// Bits of the fraction without the leading one.
    const FRACTION: u32;
    const SIGN: u64;
    /// From a register; a single that is not boxed is NaN (21.2).
    fn unbox(register: u64) -> Self;
    /// To a register.
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
    /// Exact.
    fn widen(self) -> f64;

    /// To a register; NaNs that are computed are the canonical one (21.3). Chosen among integers: to the compiler one
    /// NaN is as good as another.
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
fn compute<F: Float>(t: &mut Thread, op: &Op, f: impl FnOnce(F, F) -> F) -> Flow {
    let value = f(F::unbox(t.f(op.rs1)), F::unbox(t.f(op.rs2)));
    t.set_f(op.rd, value.canonical());
    Flow::Next
}

pub fn fadd<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    compute(t, op, F::add)
}

pub fn fsub<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    compute(t, op, F::sub)
}

pub fn fmul<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    compute(t, op, F::mul)
}

pub fn fdiv<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    compute(t, op, F::div)
}

pub fn fsqrt<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    compute(t, op, |a: F, _| a.sqrt())
}

#[inline(always)]
fn fused<F: Float>(t: &mut Thread, op: &Op, f: impl FnOnce(F, F, F) -> F) -> Flow {
    let c = F::unbox(t.f(op.rs3));
    compute(t, op, |a, b| f(a, b, c))
}

pub fn fmadd<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    fused(t, op, F::fused)
}

pub fn fmsub<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    fused(t, op, |a: F, b, c| a.fused(b, c.neg()))
}

pub fn fnmsub<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    fused(t, op, |a: F, b, c| a.neg().fused(b, c))
}

pub fn fnmadd<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    fused(t, op, |a: F, b, c| a.neg().fused(b, c.neg()))
}

/// Sign injection moves bits; a NaN keeps its payload.
#[inline(always)]
fn inject<F: Float>(t: &mut Thread, op: &Op, sign: impl FnOnce(u64, u64) -> u64) -> Flow {
    let (a, b) = (F::unbox(t.f(op.rs1)).bits(), F::unbox(t.f(op.rs2)).bits());
    let bits = a & !F::SIGN | sign(a, b) & F::SIGN;
    t.set_f(op.rd, F::from_bits(bits).boxed());
    Flow::Next
}

pub fn fsgnj<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    inject::<F>(t, op, |_, b| b)
}

pub fn fsgnjn<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    inject::<F>(t, op, |_, b| !b)
}

pub fn fsgnjx<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    inject::<F>(t, op, |a, b| a ^ b)
}

/// The operand for which `first` holds; a NaN loses against a number, and -0 is less than +0 (21.6).
#[inline(always)]
fn select<F: Float>(t: &mut Thread, op: &Op, first: impl FnOnce(F, F) -> bool, negative: bool) -> Flow {
    compute(t, op, |a: F, b: F| {
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

pub fn fmin<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    select(t, op, |a: F, b| a < b, true)
}

pub fn fmax<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    select(t, op, |a: F, b| a > b, false)
}

#[inline(always)]
fn to_x<F: Float>(t: &mut Thread, op: &Op, f: impl FnOnce(F, F) -> u32) -> Flow {
    let value = f(F::unbox(t.f(op.rs1)), F::unbox(t.f(op.rs2)));
    t.set_x(op.rd, value);
    Flow::Next
}

pub fn feq<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(t, op, |a: F, b| u32::from(a == b))
}

pub fn flt<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(t, op, |a: F, b| u32::from(a < b))
}

pub fn fle<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(t, op, |a: F, b| u32::from(a <= b))
}

/// One bit for each class, table 26 of section 21.9.
pub fn fclass<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    to_x(t, op, |a: F, _| {
        let magnitude = a.bits() & !F::SIGN;
        let fraction = magnitude & ((1 << F::FRACTION) - 1);
        let exponent = magnitude >> F::FRACTION;
        let largest = (F::SIGN - 1) >> F::FRACTION;
        let quiet = fraction >> (F::FRACTION - 1) != 0;
        // Infinite, normal, subnormal and zero count up from 0 when negative and down from 7 when positive.
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

/// `value` rounded to an integer by rounding mode `mode` (table 25).
fn round(value: f64, mode: u32) -> f64 {
    match mode {
        1 => value.trunc(),
        2 => value.floor(),
        3 => value.ceil(),
        4 => value.round(),
        _ => value.round_ties_even(),
    }
}

/// Out of range saturates, and NaN is the largest integer (table 28).
pub fn fcvt_w<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let mode = op.imm;
    to_x(t, op, |a: F, _| if a.is_nan() { i32::MAX as u32 } else { round(a.widen(), mode) as i32 as u32 })
}

pub fn fcvt_wu<F: Float>(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let mode = op.imm;
    to_x(t, op, |a: F, _| if a.is_nan() { u32::MAX } else { round(a.widen(), mode) as u32 })
}

#[inline(always)]
fn from_x<F: Float>(t: &mut Thread, op: &Op, f: impl FnOnce(u32) -> F) -> Flow {
    let value = f(t.x(op.rs1));
    t.set_f(op.rd, value.boxed());
    Flow::Next
}

pub fn fcvt_s_w(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(t, op, |x| x as i32 as f32)
}

pub fn fcvt_s_wu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(t, op, |x| x as f32)
}

pub fn fcvt_d_w(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(t, op, |x| f64::from(x as i32))
}

pub fn fcvt_d_wu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    from_x(t, op, f64::from)
}

pub fn fcvt_s_d(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let value = f64::unbox(t.f(op.rs1)) as f32;
    t.set_f(op.rd, value.canonical());
    Flow::Next
}

pub fn fcvt_d_s(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let value = f64::from(f32::unbox(t.f(op.rs1)));
    t.set_f(op.rd, value.canonical());
    Flow::Next
}

/// Moves take the low bits whether boxed or not (21.2).
pub fn fmv_x_w(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let bits = t.f(op.rs1) as u32;
    t.set_x(op.rd, bits);
    Flow::Next
}

pub fn fmv_w_x(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let bits = t.x(op.rs1);
    t.set_f(op.rd, BOX | u64::from(bits));
    Flow::Next
}

pub fn flw(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let Some(bytes) = integer::load(t, m, op) else { return Flow::Load };
    t.set_f(op.rd, BOX | u64::from(u32::from_le_bytes(bytes)));
    Flow::Next
}

pub fn fld(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let Some(bytes) = integer::load(t, m, op) else { return Flow::Load };
    t.set_f(op.rd, u64::from_le_bytes(bytes));
    Flow::Next
}

pub fn fsw(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let value = t.f(op.rs2) as u32;
    integer::store(t, m, op, value.to_le_bytes())
}

pub fn fsd(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let value = t.f(op.rs2);
    integer::store(t, m, op, value.to_le_bytes())
}
