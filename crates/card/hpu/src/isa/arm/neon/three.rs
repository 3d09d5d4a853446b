// SPDX-License-Identifier: Apache-2.0
//! Three registers of the same length (A7.4.1).

use super::lanes::{all, low, map3, number, saturated, signed};
use crate::architectural_state::State;
use crate::isa::arm::fields::Word;
use crate::isa::arm::float::{flushed, standard_add, standard_fused, standard_mul, standard_sub};
use crate::isa::arm::operands::{Operands, VD, VM, VN};
use crate::isa::arm::row::{Parts, Row, plain, row};
use crate::memory::View;
use crate::op::Class::{self, FloatAdd, FloatMultiply, FloatMultiplyAdd, VectorAlu, VectorMultiply};
use crate::op::{Flow, Op};

/// Vn and Vm.
const NM: Operands = VN.and(VM);
/// With Vd.
const DNM: Operands = NM.and(VD);

/// Without size, and with size.
const ALL: u32 = 0xfe80_0f10;
const U: u32 = 0xff80_0f10;
const SIZED: u32 = 0xffb0_0f10;

/// Lanes of up to 32 bits.
fn to_32(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.field(20, 2) != 3)
}

/// Half-words and words.
fn half_words(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| matches!(w.field(20, 2), 1 | 2))
}

/// Bytes.
fn bytes(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.field(20, 2) == 0)
}

/// Pairs of lanes: only double registers.
fn pairs(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.field(20, 2) != 3 && !w.bit(6))
}

/// Pairs of singles.
fn float_pairs(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| !w.bit(6))
}

/// Computes all lanes of Vd; `f` gets the lanes of Vn, Vm and Vd, their size in bits, and true for signed numbers.
#[inline(always)]
fn each(s: &mut State, op: &Op, bits: u32, f: impl Fn(u64, u64, u64, u32, bool) -> u64) -> Flow {
    let w = Word(op.imm);
    let is_signed = !w.bit(24);
    for register in 0..=u8::from(w.bit(6)) {
        let [n, m, d] = [w.dn(), w.dm(), w.dd()].map(|first| s.wide(first + register));
        let result = match bits {
            8 => map3(8, n, m, d, |n, m, d| f(n, m, d, 8, is_signed)),
            16 => map3(16, n, m, d, |n, m, d| f(n, m, d, 16, is_signed)),
            32 => map3(32, n, m, d, |n, m, d| f(n, m, d, 32, is_signed)),
            _ => map3(64, n, m, d, |n, m, d| f(n, m, d, 64, is_signed)),
        };
        s.set_wide(w.dd() + register, result);
    }
    Flow::Next
}

/// Builds the row of an integer operation.
macro_rules! integer {
    ($name:literal, $mask:expr, $bits:expr, $class:expr, $reads:expr, $f:expr) => {
        row($name, $mask, $bits, $class, VD, $reads, |s: &mut State, _: &mut View<'_>, op: &Op| {
            each(s, op, 8 << Word(op.imm).field(20, 2), $f)
        })
    };
}

/// Builds the row of an operation on singles.
macro_rules! single {
    ($name:literal, $bits:expr, $class:expr, $reads:expr, $f:expr) => {
        row($name, SIZED, $bits, $class, VD, $reads, |s: &mut State, _: &mut View<'_>, op: &Op| {
            each(s, op, 32, |n, m, d, _, _| {
                let f: fn(u32, u32, u32) -> u32 = $f;
                f(n as u32, m as u32, d as u32).into()
            })
        })
    };
}

/// Builds the row of an operation on whole registers.
macro_rules! logical {
    ($name:literal, $bits:expr, $reads:expr, $f:expr) => {
        row($name, SIZED, $bits, VectorAlu, VD, $reads, |s: &mut State, _: &mut View<'_>, op: &Op| {
            each(s, op, 64, |n, m, d, _, _| {
                let f: fn(u64, u64, u64) -> u64 = $f;
                f(n, m, d)
            })
        })
    };
}

/// Shifts a lane by a signed number of bits, to the left if it is positive; `rounds` adds half of the last bit.
fn shifted(value: u64, by: i64, bits: u32, is_signed: bool, rounds: bool) -> i128 {
    let value = number(value, bits, is_signed);
    if by >= 0 {
        // A shift by the size of the lane or more leaves no bits of it, but its sign for saturation.
        let by = by.min(i64::from(bits)) as u32;
        if by == bits && value != 0 && bits == 64 {
            return if value > 0 { i128::MAX } else { i128::MIN };
        }
        return value << by;
    }
    let by = -by;
    if by > i64::from(bits) {
        return if rounds || value >= 0 { 0 } else { -1 };
    }
    let value = if rounds { value + (1 << (by - 1)) } else { value };
    value >> by
}

/// Returns the amount of a shift by a register: its lowest byte with sign.
fn amount(n: u64) -> i64 {
    signed(low(n, 8), 8)
}

/// Shift without saturation: an amount of the size of the lane or more leaves zero.
fn shift(m: u64, n: u64, bits: u32, is_signed: bool, rounds: bool) -> u64 {
    let by = amount(n);
    if by >= i64::from(bits) { 0 } else { shifted(m, by, bits, is_signed, rounds) as u64 }
}

/// Doubles a product and returns its upper half.
fn doubled_high(n: u64, m: u64, bits: u32, rounds: bool) -> u64 {
    let product = 2 * i128::from(signed(n, bits)) * i128::from(signed(m, bits));
    let product = if rounds { product + (1 << (bits - 1)) } else { product };
    saturated(product >> bits, bits, true)
}

/// Multiplies polynomials over {0, 1}.
pub fn polynomial(a: u64, b: u64) -> u64 {
    (0..8).filter(|bit| a >> bit & 1 == 1).fold(0, |product, bit| product ^ b << bit)
}

/// Computes lanes from pairs of neighbours: first those of Vn, then those of Vm.
fn pairwise(s: &mut State, op: &Op, bits: u32, f: impl Fn(u64, u64, bool) -> u64) -> Flow {
    let w = Word(op.imm);
    let (n, m) = (s.wide(w.dn()), s.wide(w.dm()));
    let mut result = 0;
    let half = 32 / bits;
    for at in 0..2 * half {
        let (from, pair) = if at < half { (n, at) } else { (m, at - half) };
        let lane = |index: u32| low(from >> (index * bits), bits);
        result |= low(f(lane(2 * pair), lane(2 * pair + 1), !w.bit(24)), bits) << (at * bits);
    }
    s.set_wide(w.dd(), result);
    Flow::Next
}

macro_rules! paired {
    ($name:literal, $mask:expr, $bits:expr, $f:expr) => {
        row($name, $mask, $bits, VectorAlu, VD, NM, |s: &mut State, _: &mut View<'_>, op: &Op| {
            let bits = 8 << Word(op.imm).field(20, 2);
            pairwise(s, op, bits, |a, b, is_signed| {
                let f: fn(i128, i128) -> i128 = $f;
                f(number(a, bits, is_signed), number(b, bits, is_signed)) as u64
            })
        })
        .with(pairs)
    };
}

macro_rules! paired_single {
    ($name:literal, $bits:expr, $f:expr) => {
        row($name, SIZED, $bits, FloatAdd, VD, NM, |s: &mut State, _: &mut View<'_>, op: &Op| {
            pairwise(s, op, 32, |a, b, _| {
                let f: fn(u32, u32) -> u32 = $f;
                f(a as u32, b as u32).into()
            })
        })
        .with(float_pairs)
    };
}

/// Larger or smaller of two singles; a zero with sign is smaller than one without.
fn extreme(a: u32, b: u32, largest: bool) -> u32 {
    let (x, y) = (flushed(a), flushed(b));
    if x.is_nan() || y.is_nan() {
        return 0x7fc0_0000;
    }
    let first = match x.partial_cmp(&y) {
        Some(std::cmp::Ordering::Greater) => largest,
        Some(std::cmp::Ordering::Less) => !largest,
        _ => x.is_sign_negative() != largest,
    };
    if first { x.to_bits() } else { y.to_bits() }
}

fn mask(condition: bool) -> u32 {
    u32::from(condition).wrapping_neg()
}

/// Absolute value of an operand.
fn magnitude(bits: u32) -> f32 {
    flushed(bits).abs()
}

/// VRECPS and VRSQRTS: `minuend - a * b`, halved for the second; a product of zero and infinity is zero.
fn step(a: u32, b: u32, minuend: f32, halves: bool) -> u32 {
    let (x, y) = (flushed(a), flushed(b));
    if x.is_nan() || y.is_nan() {
        return 0x7fc0_0000;
    }
    let product = if x == 0.0 && y.is_infinite() || x.is_infinite() && y == 0.0 { 0 } else { standard_mul(a, b) };
    let difference = standard_sub(minuend.to_bits(), product);
    if halves { standard_mul(difference, 0.5_f32.to_bits()) } else { difference }
}

const MULTIPLY: Class = VectorMultiply;

pub const THREE: &[Row] =
    &[
        integer!("vhadd", ALL, 0xf200_0000, VectorAlu, NM, |n, m, _, b, s| ((number(n, b, s) + number(m, b, s)) >> 1)
            as u64)
        .with(to_32),
        integer!("vqadd", ALL, 0xf200_0010, VectorAlu, NM, |n, m, _, b, s| saturated(
            number(n, b, s) + number(m, b, s),
            b,
            s
        )),
        integer!("vrhadd", ALL, 0xf200_0100, VectorAlu, NM, |n, m, _, b, s| ((number(n, b, s) + number(m, b, s) + 1)
            >> 1) as u64)
        .with(to_32),
        logical!("vand", 0xf200_0110, NM, |n, m, _| n & m),
        logical!("vbic", 0xf210_0110, NM, |n, m, _| n & !m),
        logical!("vorr", 0xf220_0110, NM, |n, m, _| n | m),
        logical!("vorn", 0xf230_0110, NM, |n, m, _| n | !m),
        logical!("veor", 0xf300_0110, NM, |n, m, _| n ^ m),
        logical!("vbsl", 0xf310_0110, DNM, |n, m, d| n & d | m & !d),
        logical!("vbit", 0xf320_0110, DNM, |n, m, d| n & m | d & !m),
        logical!("vbif", 0xf330_0110, DNM, |n, m, d| d & m | n & !m),
        integer!("vhsub", ALL, 0xf200_0200, VectorAlu, NM, |n, m, _, b, s| ((number(n, b, s) - number(m, b, s)) >> 1)
            as u64)
        .with(to_32),
        integer!("vqsub", ALL, 0xf200_0210, VectorAlu, NM, |n, m, _, b, s| saturated(
            number(n, b, s) - number(m, b, s),
            b,
            s
        )),
        integer!("vcgt", ALL, 0xf200_0300, VectorAlu, NM, |n, m, _, b, s| all(number(n, b, s) > number(m, b, s)))
            .with(to_32),
        integer!("vcge", ALL, 0xf200_0310, VectorAlu, NM, |n, m, _, b, s| all(number(n, b, s) >= number(m, b, s)))
            .with(to_32),
        integer!("vshl", ALL, 0xf200_0400, VectorAlu, NM, |n, m, _, b, s| shift(m, n, b, s, false)),
        integer!("vqshl", ALL, 0xf200_0410, VectorAlu, NM, |n, m, _, b, s| saturated(
            shifted(m, amount(n), b, s, false),
            b,
            s
        )),
        integer!("vrshl", ALL, 0xf200_0500, VectorAlu, NM, |n, m, _, b, s| shift(m, n, b, s, true)),
        integer!("vqrshl", ALL, 0xf200_0510, VectorAlu, NM, |n, m, _, b, s| saturated(
            shifted(m, amount(n), b, s, true),
            b,
            s
        )),
        integer!("vmax", ALL, 0xf200_0600, VectorAlu, NM, |n, m, _, b, s| number(n, b, s).max(number(m, b, s)) as u64)
            .with(to_32),
        integer!("vmin", ALL, 0xf200_0610, VectorAlu, NM, |n, m, _, b, s| number(n, b, s).min(number(m, b, s)) as u64)
            .with(to_32),
        integer!("vabd", ALL, 0xf200_0700, VectorAlu, NM, |n, m, _, b, s| (number(n, b, s) - number(m, b, s))
            .unsigned_abs() as u64)
        .with(to_32),
        integer!("vaba", ALL, 0xf200_0710, VectorAlu, DNM, |n, m, d, b, s| d
            .wrapping_add((number(n, b, s) - number(m, b, s)).unsigned_abs() as u64))
        .with(to_32),
        integer!("vadd", U, 0xf200_0800, VectorAlu, NM, |n, m, _, _, _| n.wrapping_add(m)),
        integer!("vsub", U, 0xf300_0800, VectorAlu, NM, |n, m, _, _, _| n.wrapping_sub(m)),
        integer!("vtst", U, 0xf200_0810, VectorAlu, NM, |n, m, _, _, _| all(n & m != 0)).with(to_32),
        integer!("vceq", U, 0xf300_0810, VectorAlu, NM, |n, m, _, _, _| all(n == m)).with(to_32),
        integer!("vmla", U, 0xf200_0900, MULTIPLY, DNM, |n, m, d, _, _| d.wrapping_add(n.wrapping_mul(m))).with(to_32),
        integer!("vmls", U, 0xf300_0900, MULTIPLY, DNM, |n, m, d, _, _| d.wrapping_sub(n.wrapping_mul(m))).with(to_32),
        integer!("vmul", U, 0xf200_0910, MULTIPLY, NM, |n, m, _, _, _| n.wrapping_mul(m)).with(to_32),
        integer!("vmul.p8", U, 0xf300_0910, MULTIPLY, NM, |n, m, _, _, _| polynomial(n, m)).with(bytes),
        paired!("vpmax", ALL, 0xf200_0a00, |a, b| a.max(b)),
        paired!("vpmin", ALL, 0xf200_0a10, |a, b| a.min(b)),
        paired!("vpadd", U, 0xf200_0b10, |a, b| a + b),
        integer!("vqdmulh", U, 0xf200_0b00, MULTIPLY, NM, |n, m, _, b, _| doubled_high(n, m, b, false))
            .with(half_words),
        integer!("vqrdmulh", U, 0xf300_0b00, MULTIPLY, NM, |n, m, _, b, _| doubled_high(n, m, b, true))
            .with(half_words),
        single!("vfma.f32", 0xf200_0c10, FloatMultiplyAdd, DNM, |n, m, d| standard_fused(d, n, m)),
        single!("vfms.f32", 0xf220_0c10, FloatMultiplyAdd, DNM, |n, m, d| standard_fused(d, n ^ 0x8000_0000, m)),
        single!("vadd.f32", 0xf200_0d00, FloatAdd, NM, |n, m, _| standard_add(n, m)),
        single!("vsub.f32", 0xf220_0d00, FloatAdd, NM, |n, m, _| standard_sub(n, m)),
        single!("vabd.f32", 0xf320_0d00, FloatAdd, NM, |n, m, _| standard_sub(n, m) & 0x7fff_ffff),
        paired_single!("vpadd.f32", 0xf300_0d00, standard_add),
        single!("vmla.f32", 0xf200_0d10, FloatMultiplyAdd, DNM, |n, m, d| standard_add(d, standard_mul(n, m))),
        single!("vmls.f32", 0xf220_0d10, FloatMultiplyAdd, DNM, |n, m, d| standard_sub(d, standard_mul(n, m))),
        single!("vmul.f32", 0xf300_0d10, FloatMultiply, NM, |n, m, _| standard_mul(n, m)),
        single!("vceq.f32", 0xf200_0e00, FloatAdd, NM, |n, m, _| mask(flushed(n) == flushed(m))),
        single!("vcge.f32", 0xf300_0e00, FloatAdd, NM, |n, m, _| mask(flushed(n) >= flushed(m))),
        single!("vcgt.f32", 0xf320_0e00, FloatAdd, NM, |n, m, _| mask(flushed(n) > flushed(m))),
        single!("vacge.f32", 0xf300_0e10, FloatAdd, NM, |n, m, _| mask(magnitude(n) >= magnitude(m))),
        single!("vacgt.f32", 0xf320_0e10, FloatAdd, NM, |n, m, _| mask(magnitude(n) > magnitude(m))),
        single!("vmax.f32", 0xf200_0f00, FloatAdd, NM, |n, m, _| extreme(n, m, true)),
        single!("vmin.f32", 0xf220_0f00, FloatAdd, NM, |n, m, _| extreme(n, m, false)),
        paired_single!("vpmax.f32", 0xf300_0f00, |a, b| extreme(a, b, true)),
        paired_single!("vpmin.f32", 0xf320_0f00, |a, b| extreme(a, b, false)),
        single!("vrecps.f32", 0xf200_0f10, FloatMultiplyAdd, NM, |n, m, _| step(n, m, 2.0, false)),
        single!("vrsqrts.f32", 0xf220_0f10, FloatMultiplyAdd, NM, |n, m, _| step(n, m, 3.0, true)),
    ];
