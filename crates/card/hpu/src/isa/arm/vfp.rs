// SPDX-License-Identifier: Apache-2.0
//! VFPv4 (A7.5) and moves between the register files (A7.8, A7.9). The fields are those of [`Word`].

use super::fields::{FP_FLAGS, Word, set_single, single};
use super::flags::set_nzcv;
use super::float::{self, Float, binary, compared, fused};
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// A format in the register file.
pub trait Register: Float {
    fn d(w: Word) -> u8;
    fn n(w: Word) -> u8;
    fn m(w: Word) -> u8;
    fn read(s: &State, register: u8) -> Self::Bits;
    fn write(s: &mut State, register: u8, bits: Self::Bits);
    /// Returns the value of an immediate (A7.5.1).
    fn immediate(imm8: u32) -> Self::Bits;
}

impl Register for f32 {
    fn d(w: Word) -> u8 {
        w.sd()
    }
    fn n(w: Word) -> u8 {
        w.sn()
    }
    fn m(w: Word) -> u8 {
        w.sm()
    }
    fn read(s: &State, register: u8) -> u32 {
        single(s, register)
    }
    fn write(s: &mut State, register: u8, bits: u32) {
        set_single(s, register, bits);
    }
    fn immediate(imm8: u32) -> u32 {
        let exponent = if imm8 >> 6 & 1 == 1 { 0x1f << 2 } else { 0x20 << 2 } | imm8 >> 4 & 3;
        (imm8 >> 7) << 31 | exponent << 23 | (imm8 & 15) << 19
    }
}

impl Register for f64 {
    fn d(w: Word) -> u8 {
        w.dd()
    }
    fn n(w: Word) -> u8 {
        w.dn()
    }
    fn m(w: Word) -> u8 {
        w.dm()
    }
    fn read(s: &State, register: u8) -> u64 {
        s.wide(register)
    }
    fn write(s: &mut State, register: u8, bits: u64) {
        s.set_wide(register, bits);
    }
    fn immediate(imm8: u32) -> u64 {
        float::widened(f32::immediate(imm8))
    }
}

/// Computes Vd from Vd, Vn and Vm.
#[inline(always)]
fn ternary<F: Register>(s: &mut State, op: &Op, f: impl FnOnce(F::Bits, F::Bits, F::Bits) -> F::Bits) -> Flow {
    let w = Word(op.imm);
    let result = f(F::read(s, F::d(w)), F::read(s, F::n(w)), F::read(s, F::m(w)));
    F::write(s, F::d(w), result);
    Flow::Next
}

/// Computes Vd from Vm.
#[inline(always)]
fn unary<F: Register>(s: &mut State, op: &Op, f: impl FnOnce(F::Bits) -> F::Bits) -> Flow {
    let w = Word(op.imm);
    let result = f(F::read(s, F::m(w)));
    F::write(s, F::d(w), result);
    Flow::Next
}

pub fn vadd<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |_, n, m| binary(n, m, F::add))
}

pub fn vsub<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |_, n, m| binary(n, m, F::sub))
}

pub fn vmul<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |_, n, m| binary(n, m, F::mul))
}

pub fn vnmul<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |_, n, m| F::negated(binary(n, m, F::mul)))
}

pub fn vdiv<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |_, n, m| binary(n, m, F::div))
}

pub fn vmla<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| binary(d, binary(n, m, F::mul), F::add))
}

pub fn vmls<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| binary(d, F::negated(binary(n, m, F::mul)), F::add))
}

pub fn vnmls<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| binary(F::negated(d), binary(n, m, F::mul), F::add))
}

pub fn vnmla<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| binary(F::negated(d), F::negated(binary(n, m, F::mul)), F::add))
}

pub fn vfma<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| fused::<F>(d, n, m))
}

pub fn vfms<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| fused::<F>(d, F::negated(n), m))
}

pub fn vfnms<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| fused::<F>(F::negated(d), n, m))
}

pub fn vfnma<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    ternary::<F>(s, op, |d, n, m| fused::<F>(F::negated(d), F::negated(n), m))
}

pub fn vmov<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary::<F>(s, op, |m| m)
}

pub fn vmov_immediate<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    F::write(s, F::d(w), F::immediate(w.field(16, 4) << 4 | w.field(0, 4)));
    Flow::Next
}

pub fn vabs<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary::<F>(s, op, F::absolute)
}

pub fn vneg<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary::<F>(s, op, F::negated)
}

pub fn vsqrt<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary::<F>(s, op, float::root::<F>)
}

/// VCMP and VCMPE.
pub fn vcmp<F: Register>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let flags = compared(F::of(F::read(s, F::d(w))), F::of(F::read(s, F::m(w))));
    s.set_word(FP_FLAGS, flags);
    Flow::Next
}

/// VCMP and VCMPE with zero.
pub fn vcmp_zero<F: Register + From<i8>>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let flags = compared(F::of(F::read(s, F::d(w))), F::from(0));
    s.set_word(FP_FLAGS, flags);
    Flow::Next
}

/// VMRS of the flags to APSR.
pub fn vmrs(s: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    set_nzcv(s, s.word(FP_FLAGS) >> 28);
    Flow::Next
}

/// VCVT from single to double precision.
pub fn vcvt_f64_f32(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    s.set_wide(w.dd(), float::widened(single(s, w.sm())));
    Flow::Next
}

/// VCVT from double to single precision.
pub fn vcvt_f32_f64(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = float::narrowed(s.wide(w.dm()));
    set_single(s, w.sd(), value);
    Flow::Next
}

/// Returns a double as an integer of 32 bits. With bit 7 set it rounds towards zero, otherwise to nearest (VCVTR).
fn integer(w: Word, value: f64, signed: bool) -> u32 {
    let value = if w.bit(7) { value } else { value.round_ties_even() };
    if signed { value as i32 as u32 } else { value as u32 }
}

/// VCVT from a single or double to a signed (bit 16) or unsigned integer.
pub fn vcvt_to_integer<F: Register + Into<f64>>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value: f64 = F::of(F::read(s, F::m(w))).into();
    set_single(s, w.sd(), integer(w, value, w.bit(16)));
    Flow::Next
}

/// VCVT from a signed (bit 7) or unsigned integer to single precision.
pub fn vcvt_f32_integer(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let bits = single(s, w.sm());
    let value = if w.bit(7) { bits as i32 as f32 } else { bits as f32 };
    set_single(s, w.sd(), value.to_bits());
    Flow::Next
}

/// VCVT from a signed (bit 7) or unsigned integer to double precision.
pub fn vcvt_f64_integer(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let bits = single(s, w.sm());
    let value = if w.bit(7) { f64::from(bits as i32) } else { f64::from(bits) };
    s.set_wide(w.dd(), value.to_bits());
    Flow::Next
}

/// Number of fraction bits of a fixed-point conversion.
fn fraction_bits(w: Word) -> u32 {
    let size = if w.bit(7) { 32 } else { 16 };
    size - (w.field(0, 4) << 1 | w.field(5, 1))
}

/// VCVT of Vd from a fixed-point number: unsigned in bit 16, 32 bits in bit 7.
fn from_fixed(w: Word, bits: u32) -> f64 {
    let value = match (w.bit(16), w.bit(7)) {
        (false, false) => f64::from(bits as i16),
        (false, true) => f64::from(bits as i32),
        (true, false) => f64::from(bits as u16),
        (true, true) => f64::from(bits),
    };
    value / (1_u64 << fraction_bits(w)) as f64
}

/// VCVT of Vd to a fixed-point number, extended to 32 bits.
fn to_fixed(w: Word, value: f64) -> u32 {
    let value = value * (1_u64 << fraction_bits(w)) as f64;
    match (w.bit(16), w.bit(7)) {
        (false, false) => i32::from(value as i16) as u32,
        (false, true) => value as i32 as u32,
        (true, false) => u32::from(value as u16),
        (true, true) => value as u32,
    }
}

pub fn vcvt_f32_fixed(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    // A fixed-point number is exact in double precision, so this rounds once.
    let value = from_fixed(w, single(s, w.sd())) as f32;
    set_single(s, w.sd(), value.to_bits());
    Flow::Next
}

pub fn vcvt_f64_fixed(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = from_fixed(w, s.wide(w.dd()) as u32);
    s.set_wide(w.dd(), value.to_bits());
    Flow::Next
}

pub fn vcvt_fixed_f32(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = to_fixed(w, f32::from_bits(single(s, w.sd())).into());
    set_single(s, w.sd(), value);
    Flow::Next
}

pub fn vcvt_fixed_f64(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = to_fixed(w, f64::from_bits(s.wide(w.dd())));
    // The result is extended to the size of the register.
    let value = if w.bit(16) { u64::from(value) } else { i64::from(value as i32) as u64 };
    s.set_wide(w.dd(), value);
    Flow::Next
}

/// VMOV between Sn and Rt; bit 20 selects the direction to Rt.
pub fn vmov_core_single(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    if w.bit(20) {
        s.set_word(w.register(12), single(s, w.sn()));
    } else {
        set_single(s, w.sn(), s.word(w.register(12)));
    }
    Flow::Next
}

/// VMOV between Dm and Rt, Rt2.
pub fn vmov_core_double(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (low, high) = (w.register(12), w.register(16));
    if w.bit(20) {
        let bits = s.wide(w.dm());
        s.set_word(low, bits as u32);
        s.set_word(high, (bits >> 32) as u32);
    } else {
        s.set_wide(w.dm(), u64::from(s.word(high)) << 32 | u64::from(s.word(low)));
    }
    Flow::Next
}

/// VMOV between Sm, Sm+1 and Rt, Rt2.
pub fn vmov_core_singles(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (first, second) = (w.register(12), w.register(16));
    if w.bit(20) {
        s.set_word(first, single(s, w.sm()));
        s.set_word(second, single(s, w.sm() + 1));
    } else {
        set_single(s, w.sm(), s.word(first));
        set_single(s, w.sm() + 1, s.word(second));
    }
    Flow::Next
}

/// Size and index of the lane of a VMOV between a register and a lane, from opc1 and opc2: bits, and position in bits.
pub fn lane(w: Word) -> Option<(u32, u32)> {
    let (opc1, opc2) = (w.field(21, 2), w.field(5, 2));
    if opc1 & 2 != 0 {
        Some((8, 8 * ((opc1 & 1) << 2 | opc2)))
    } else if opc2 & 1 == 1 {
        Some((16, 16 * ((opc1 & 1) << 1 | opc2 >> 1)))
    } else if opc2 == 0 && !(w.bit(20) && w.bit(23)) {
        Some((32, 32 * (opc1 & 1)))
    } else {
        None
    }
}

/// VMOV from Rt to a lane of Dn.
pub fn vmov_to_lane(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let Some((bits, at)) = lane(w) else { return Flow::Illegal };
    let mask = u64::MAX >> (64 - bits) << at;
    let value = s.wide(w.dn()) & !mask | u64::from(s.word(w.register(12))) << at & mask;
    s.set_wide(w.dn(), value);
    Flow::Next
}

/// VMOV from a lane of Dn to Rt, with sign unless bit 23 is set.
pub fn vmov_from_lane(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let Some((bits, at)) = lane(w) else { return Flow::Illegal };
    let value = (s.wide(w.dn()) >> at) as u32;
    let value =
        if w.bit(23) { value & u32::MAX >> (32 - bits) } else { ((value << (32 - bits)) as i32 >> (32 - bits)) as u32 };
    s.set_word(w.register(12), value);
    Flow::Next
}

/// VDUP from Rt: bytes (bit 22), half-words (bit 5) or words, to a double or, with bit 21, a quad register.
pub fn vdup_core(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = u64::from(s.word(w.register(12)));
    let value = match (w.bit(22), w.bit(5)) {
        (true, _) => (value & 0xff) * 0x0101_0101_0101_0101,
        (false, true) => (value & 0xffff) * 0x0001_0001_0001_0001,
        _ => value * 0x1_0000_0001,
    };
    for register in w.dn()..=w.dn() + u8::from(w.bit(21)) {
        s.set_wide(register, value);
    }
    Flow::Next
}
