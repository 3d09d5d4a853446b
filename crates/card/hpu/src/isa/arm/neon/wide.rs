// SPDX-License-Identifier: Apache-2.0
//! Three registers of different lengths (A7.4.2), and two registers and a scalar (A7.4.3).

use super::lanes::{lane, low, number, quad, saturated, set_quad, signed};
use super::three::polynomial;
use crate::architectural_state::State;
use crate::isa::arm::fields::Word;
use crate::isa::arm::float::{standard_add, standard_mul, standard_sub};
use crate::isa::arm::operands::{DD, DM, DN, Operands, QD, QM, QN, SCALAR as ONE, VD_24, VN_24};
use crate::isa::arm::row::{Row, row};
use crate::memory::View;
use crate::op::Class::{FloatMultiply, FloatMultiplyAdd, VectorAlu, VectorMultiply};
use crate::op::{Flow, Op};

const NM: Operands = DN.and(DM);
const DNM: Operands = NM.and(QD);
/// With size and bits 11 to 8, and with U.
const ALL: u32 = 0xfeb0_0f50;
const U: u32 = 0xffb0_0f50;

/// Computes the lanes of a quad register; `f` gets the number of a lane, the size of the narrow lanes and their sign.
#[inline(always)]
fn widening(s: &mut State, op: &Op, f: impl Fn(&State, Word, u32, u32, bool) -> i128) -> Flow {
    let w = Word(op.imm);
    let bits = 8 << w.field(20, 2);
    let result = (0..64 / bits).fold(0, |result, at| {
        let value = f(s, w, at, bits, !w.bit(24)) as u128 & u128::MAX >> (128 - 2 * bits);
        result | value << (2 * bits * at)
    });
    set_quad(s, w.dd(), result);
    Flow::Next
}

/// Returns a lane of Vn and one of Vm.
fn factors(s: &State, w: Word, at: u32, bits: u32, is_signed: bool) -> (i128, i128) {
    (number(lane(s, w.dn(), bits, at), bits, is_signed), number(lane(s, w.dm(), bits, at), bits, is_signed))
}

/// Returns a lane of a quad register, of twice the size.
fn wide_lane(s: &State, register: u8, at: u32, bits: u32, is_signed: bool) -> i128 {
    let value = low((quad(s, register) >> (2 * bits * at)) as u64, 2 * bits);
    number(value, 2 * bits, is_signed)
}

/// Doubles a product with saturation and adds it to a lane of the result with saturation.
fn doubled(s: &State, w: Word, at: u32, bits: u32, product: i128) -> i128 {
    let saturate = |value: i128| i128::from(signed(saturated(value, 2 * bits, true), 2 * bits));
    let product = saturate(2 * product);
    let base = wide_lane(s, w.dd(), at, bits, true);
    match w.field(8, 4) {
        0b1001 | 0b0011 => saturate(base + product),
        0b1011 if !w.bit(6) => saturate(base - product),
        0b0111 => saturate(base - product),
        _ => product,
    }
}

/// Narrows the upper halves of sums of wide lanes.
fn high_half(s: &mut State, op: &Op, subtracts: bool) -> Flow {
    let w = Word(op.imm);
    let bits = 8 << w.field(20, 2);
    let result = (0..64 / bits).fold(0, |result, at| {
        let (n, m) = (wide_lane(s, w.dn(), at, bits, false), wide_lane(s, w.dm(), at, bits, false));
        let sum = if subtracts { n - m } else { n + m };
        let sum = if w.bit(24) { sum + (1 << (bits - 1)) } else { sum };
        result | low((sum >> bits) as u64, bits) << (bits * at)
    });
    s.set_wide(w.dd(), result);
    Flow::Next
}

/// Builds the rows of an instruction for bytes, half-words and words.
macro_rules! sizes {
    ($($name:literal $mask:ident $bits:literal $class:ident $writes:ident $reads:expr, [$($size:literal)*] $f:expr;)*) => {
        &[$($(row(
            $name,
            $mask | ($bits & 0x40),
            $bits | $size << 20,
            $class,
            $writes,
            $reads,
            $f,
        ),)*)*]
    };
}

/// Builds the operation of a widening instruction.
macro_rules! wide {
    ($f:expr) => {
        |s: &mut State, _: &mut View<'_>, op: &Op| widening(s, op, $f)
    };
}

pub const LONG: &[Row] = sizes! {
    "vaddl" ALL 0xf280_0000 VectorAlu QD NM, [0 1 2] wide!(|s, w, at, b, g| { let (n, m) = factors(s, w, at, b, g); n + m });
    "vaddw" ALL 0xf280_0100 VectorAlu QD QN.and(DM), [0 1 2]
        wide!(|s, w, at, b, g| wide_lane(s, w.dn(), at, b, g) + factors(s, w, at, b, g).1);
    "vsubl" ALL 0xf280_0200 VectorAlu QD NM, [0 1 2] wide!(|s, w, at, b, g| { let (n, m) = factors(s, w, at, b, g); n - m });
    "vsubw" ALL 0xf280_0300 VectorAlu QD QN.and(DM), [0 1 2]
        wide!(|s, w, at, b, g| wide_lane(s, w.dn(), at, b, g) - factors(s, w, at, b, g).1);
    "vaddhn" ALL 0xf280_0400 VectorAlu DD QN.and(QM), [0 1 2] |s: &mut State, _: &mut View<'_>, op: &Op| high_half(s, op, false);
    "vabal" ALL 0xf280_0500 VectorAlu QD DNM, [0 1 2] wide!(|s, w, at, b, g| {
        let (n, m) = factors(s, w, at, b, g);
        wide_lane(s, w.dd(), at, b, false) + (n - m).abs()
    });
    "vsubhn" ALL 0xf280_0600 VectorAlu DD QN.and(QM), [0 1 2] |s: &mut State, _: &mut View<'_>, op: &Op| high_half(s, op, true);
    "vabdl" ALL 0xf280_0700 VectorAlu QD NM, [0 1 2]
        wide!(|s, w, at, b, g| { let (n, m) = factors(s, w, at, b, g); (n - m).abs() });
    "vmlal" ALL 0xf280_0800 VectorMultiply QD DNM, [0 1 2] wide!(|s, w, at, b, g| {
        let (n, m) = factors(s, w, at, b, g);
        wide_lane(s, w.dd(), at, b, false) + n * m
    });
    "vqdmlal" U 0xf280_0900 VectorMultiply QD DNM, [1 2]
        wide!(|s, w, at, b, g| { let (n, m) = factors(s, w, at, b, g); doubled(s, w, at, b, n * m) });
    "vmlsl" ALL 0xf280_0a00 VectorMultiply QD DNM, [0 1 2] wide!(|s, w, at, b, g| {
        let (n, m) = factors(s, w, at, b, g);
        wide_lane(s, w.dd(), at, b, false) - n * m
    });
    "vqdmlsl" U 0xf280_0b00 VectorMultiply QD DNM, [1 2]
        wide!(|s, w, at, b, g| { let (n, m) = factors(s, w, at, b, g); doubled(s, w, at, b, n * m) });
    "vmull" ALL 0xf280_0c00 VectorMultiply QD NM, [0 1 2]
        wide!(|s, w, at, b, g| { let (n, m) = factors(s, w, at, b, g); n * m });
    "vqdmull" U 0xf280_0d00 VectorMultiply QD NM, [1 2]
        wide!(|s, w, at, b, g| { let (n, m) = factors(s, w, at, b, g); doubled(s, w, at, b, n * m) });
    "vmull.p8" U 0xf280_0e00 VectorMultiply QD NM, [0] wide!(|s, w, at, b, _| {
        polynomial(lane(s, w.dn(), b, at), lane(s, w.dm(), b, at)).into()
    });
};

/// Returns the scalar operand, a lane of the size of the others.
fn scalar(s: &State, w: Word, bits: u32) -> u64 {
    match bits {
        16 => lane(s, w.field(0, 3) as u8, 16, w.field(5, 1) << 1 | w.field(3, 1)),
        _ => lane(s, w.field(0, 4) as u8, 32, w.field(5, 1)),
    }
}

/// Computes the lanes of a double or quad register with a scalar; `f` gets the lanes of Vn and Vd and the scalar.
fn same_size(s: &mut State, op: &Op, f: impl Fn(u64, u64, u64, u32) -> u64) -> Flow {
    let w = Word(op.imm);
    let bits = 8 << w.field(20, 2);
    let factor = scalar(s, w, bits);
    for register in 0..=u8::from(w.bit(24)) {
        let (n, d) = (s.wide(w.dn() + register), s.wide(w.dd() + register));
        s.set_wide(w.dd() + register, super::lanes::map3(bits, n, d, 0, |n, d, _| f(n, d, factor, bits)));
    }
    Flow::Next
}

macro_rules! same {
    ($f:expr) => {
        |s: &mut State, _: &mut View<'_>, op: &Op| same_size(s, op, $f)
    };
}

/// Returns a lane of Vn and the scalar.
fn scaled(s: &State, w: Word, at: u32, bits: u32, is_signed: bool) -> i128 {
    number(lane(s, w.dn(), bits, at), bits, is_signed) * number(scalar(s, w, bits), bits, is_signed)
}

/// Doubles a product with saturation and returns its upper half.
fn doubled_high(n: u64, m: u64, bits: u32, rounds: bool) -> u64 {
    let product = 2 * number(n, bits, true) * number(m, bits, true) + if rounds { 1 << (bits - 1) } else { 0 };
    saturated(product >> bits, bits, true)
}

const NS: Operands = VN_24.and(ONE);
const DNS: Operands = NS.and(VD_24);
const LONG_NS: Operands = DN.and(ONE);
const LONG_DNS: Operands = LONG_NS.and(QD);

pub const SCALAR: &[Row] = sizes! {
    "vmla scalar" ALL 0xf280_0040 VectorMultiply VD_24 DNS, [1 2] same!(|n, d, m, _| d.wrapping_add(n.wrapping_mul(m)));
    "vmla.f32 scalar" ALL 0xf280_0140 FloatMultiplyAdd VD_24 DNS, [2]
        same!(|n, d, m, _| standard_add(d as u32, standard_mul(n as u32, m as u32)).into());
    "vmlal scalar" ALL 0xf280_0240 VectorMultiply QD LONG_DNS, [1 2]
        wide!(|s, w, at, b, g| wide_lane(s, w.dd(), at, b, false) + scaled(s, w, at, b, g));
    "vqdmlal scalar" U 0xf280_0340 VectorMultiply QD LONG_DNS, [1 2]
        wide!(|s, w, at, b, g| doubled(s, w, at, b, scaled(s, w, at, b, g)));
    "vmls scalar" ALL 0xf280_0440 VectorMultiply VD_24 DNS, [1 2] same!(|n, d, m, _| d.wrapping_sub(n.wrapping_mul(m)));
    "vmls.f32 scalar" ALL 0xf280_0540 FloatMultiplyAdd VD_24 DNS, [2]
        same!(|n, d, m, _| standard_sub(d as u32, standard_mul(n as u32, m as u32)).into());
    "vmlsl scalar" ALL 0xf280_0640 VectorMultiply QD LONG_DNS, [1 2]
        wide!(|s, w, at, b, g| wide_lane(s, w.dd(), at, b, false) - scaled(s, w, at, b, g));
    "vqdmlsl scalar" U 0xf280_0740 VectorMultiply QD LONG_DNS, [1 2]
        wide!(|s, w, at, b, g| doubled(s, w, at, b, scaled(s, w, at, b, g)));
    "vmul scalar" ALL 0xf280_0840 VectorMultiply VD_24 NS, [1 2] same!(|n, _, m, _| n.wrapping_mul(m));
    "vmul.f32 scalar" ALL 0xf280_0940 FloatMultiply VD_24 NS, [2]
        same!(|n, _, m, _| standard_mul(n as u32, m as u32).into());
    "vmull scalar" ALL 0xf280_0a40 VectorMultiply QD LONG_NS, [1 2] wide!(scaled);
    "vqdmull scalar" U 0xf280_0b40 VectorMultiply QD LONG_NS, [1 2]
        wide!(|s, w, at, b, g| doubled(s, w, at, b, scaled(s, w, at, b, g)));
    "vqdmulh scalar" ALL 0xf280_0c40 VectorMultiply VD_24 NS, [1 2] same!(|n, _, m, b| doubled_high(n, m, b, false));
    "vqrdmulh scalar" ALL 0xf280_0d40 VectorMultiply VD_24 NS, [1 2] same!(|n, _, m, b| doubled_high(n, m, b, true));
};
