// SPDX-License-Identifier: Apache-2.0
//! SIMD on half-words and bytes (xcvsimd): functions of both operands and the old value of the result.

use super::super::fields::Fields;
use crate::architectural_state::State;
use crate::op::{Flow, Op};

/// Executes an operation on two registers.
#[inline(always)]
pub fn vector(s: &mut State, op: &Op, f: impl FnOnce(u32, u32, u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()), s.word(op.rs2()), s.word(op.rd()));
    s.set_word(op.rd(), value);
    Flow::Next
}

/// Executes an operation whose second operand is the lowest lane of its register, replicated to all lanes.
#[inline(always)]
pub fn scalar<const BITS: u32>(s: &mut State, op: &Op, f: impl FnOnce(u32, u32, u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()), replicate::<BITS>(s.word(op.rs2())), s.word(op.rd()));
    s.set_word(op.rd(), value);
    Flow::Next
}

/// Executes an operation whose second operand is the immediate, replicated to all lanes.
#[inline(always)]
pub fn immediate<const BITS: u32>(s: &mut State, op: &Op, f: impl FnOnce(u32, u32, u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()), replicate::<BITS>(op.imm), s.word(op.rd()));
    s.set_word(op.rd(), value);
    Flow::Next
}

/// Executes an operation whose second operand is the immediate.
#[inline(always)]
pub fn plain_immediate(s: &mut State, op: &Op, f: impl FnOnce(u32, u32, u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()), op.imm, s.word(op.rd()));
    s.set_word(op.rd(), value);
    Flow::Next
}

const fn mask<const BITS: u32>() -> u32 {
    (1 << BITS) - 1
}

/// Replicates the lowest lane to all lanes.
pub fn replicate<const BITS: u32>(value: u32) -> u32 {
    (value & mask::<BITS>()).wrapping_mul(u32::MAX / mask::<BITS>())
}

/// Returns lane `index`, sign-extended.
#[inline(always)]
fn signed<const BITS: u32>(value: u32, index: u32) -> i32 {
    ((value >> (index * BITS)) << (32 - BITS)) as i32 >> (32 - BITS)
}

#[inline(always)]
fn unsigned<const BITS: u32>(value: u32, index: u32) -> u32 {
    value >> (index * BITS) & mask::<BITS>()
}

/// Places the low bits of each result in its lane.
#[inline(always)]
fn lanes<const BITS: u32>(f: impl Fn(u32) -> u32) -> u32 {
    (0..32 / BITS).fold(0, |value, index| value | (f(index) & mask::<BITS>()) << (index * BITS))
}

#[inline(always)]
fn on_signed<const BITS: u32>(a: u32, b: u32, f: impl Fn(i32, i32) -> i32) -> u32 {
    lanes::<BITS>(|index| f(signed::<BITS>(a, index), signed::<BITS>(b, index)) as u32)
}

#[inline(always)]
fn on_unsigned<const BITS: u32>(a: u32, b: u32, f: impl Fn(u32, u32) -> u32) -> u32 {
    lanes::<BITS>(|index| f(unsigned::<BITS>(a, index), unsigned::<BITS>(b, index)))
}

/// Returns all ones for true, or 0.
#[inline(always)]
fn truth(is: bool) -> i32 {
    -i32::from(is)
}

macro_rules! operations {
    ($lanes:ident: $($name:ident = $f:expr;)*) => {
        $(pub fn $name<const BITS: u32>(a: u32, b: u32, _: u32) -> u32 {
            $lanes::<BITS>(a, b, $f)
        })*
    };
}

operations! { on_signed:
    add = |a, b| a + b;
    sub = |a, b| a - b;
    avg = |a, b| ((a + b) << (32 - BITS)) >> (32 - BITS + 1);
    min = |a, b| a.min(b);
    max = |a, b| a.max(b);
    sra = |a, b| a >> (b as u32 % BITS);
    or = |a, b| a | b;
    xor = |a, b| a ^ b;
    and = |a, b| a & b;
    abs = |a, _| a.abs();
    cmpeq = |a, b| truth(a == b);
    cmpne = |a, b| truth(a != b);
    cmpgt = |a, b| truth(a > b);
    cmpge = |a, b| truth(a >= b);
    cmplt = |a, b| truth(a < b);
    cmple = |a, b| truth(a <= b);
}

operations! { on_unsigned:
    avgu = |a, b| ((a + b) & mask::<BITS>()) >> 1;
    minu = |a, b| a.min(b);
    maxu = |a, b| a.max(b);
    srl = |a, b| a >> (b % BITS);
    sll = |a, b| a << (b % BITS);
    cmpgtu = |a, b| truth(a > b) as u32;
    cmpgeu = |a, b| truth(a >= b) as u32;
    cmpltu = |a, b| truth(a < b) as u32;
    cmpleu = |a, b| truth(a <= b) as u32;
}

#[inline(always)]
fn sum<const BITS: u32>(f: impl Fn(u32) -> u32) -> u32 {
    (0..32 / BITS).fold(0, |sum, index| sum.wrapping_add(f(index)))
}

pub fn dotup<const BITS: u32>(a: u32, b: u32, _: u32) -> u32 {
    sum::<BITS>(|index| unsigned::<BITS>(a, index).wrapping_mul(unsigned::<BITS>(b, index)))
}

pub fn dotusp<const BITS: u32>(a: u32, b: u32, _: u32) -> u32 {
    sum::<BITS>(|index| unsigned::<BITS>(a, index).wrapping_mul(signed::<BITS>(b, index) as u32))
}

pub fn dotsp<const BITS: u32>(a: u32, b: u32, _: u32) -> u32 {
    sum::<BITS>(|index| (signed::<BITS>(a, index) as u32).wrapping_mul(signed::<BITS>(b, index) as u32))
}

pub fn sdotup<const BITS: u32>(a: u32, b: u32, d: u32) -> u32 {
    d.wrapping_add(dotup::<BITS>(a, b, d))
}

pub fn sdotusp<const BITS: u32>(a: u32, b: u32, d: u32) -> u32 {
    d.wrapping_add(dotusp::<BITS>(a, b, d))
}

pub fn sdotsp<const BITS: u32>(a: u32, b: u32, d: u32) -> u32 {
    d.wrapping_add(dotsp::<BITS>(a, b, d))
}

/// Extracts the lane selected by the immediate.
pub fn extract<const BITS: u32>(a: u32, lane: u32, _: u32) -> u32 {
    signed::<BITS>(a, lane % (32 / BITS)) as u32
}

pub fn extractu<const BITS: u32>(a: u32, lane: u32, _: u32) -> u32 {
    unsigned::<BITS>(a, lane % (32 / BITS))
}

pub fn insert<const BITS: u32>(a: u32, lane: u32, d: u32) -> u32 {
    let at = lane % (32 / BITS) * BITS;
    d & !(mask::<BITS>() << at) | (a & mask::<BITS>()) << at
}

/// Each lane of the second operand selects a lane of the first.
pub fn shuffle<const BITS: u32>(a: u32, b: u32, _: u32) -> u32 {
    lanes::<BITS>(|index| unsigned::<BITS>(a, unsigned::<BITS>(b, index) % (32 / BITS)))
}

/// The immediate selects a lane for each lane except the fourth byte, which is byte `LAST`.
pub fn shuffle_immediate<const BITS: u32, const LAST: u32>(a: u32, b: u32, _: u32) -> u32 {
    let width = if BITS == 16 { 1 } else { 2 };
    lanes::<BITS>(|index| {
        let lane = if index == 3 { LAST } else { b >> (index * width) & ((1 << width) - 1) };
        unsigned::<BITS>(a, lane)
    })
}

/// The bit above the lane number selects the first operand or the old result as source.
pub fn shuffle2<const BITS: u32>(a: u32, b: u32, d: u32) -> u32 {
    let count = 32 / BITS;
    lanes::<BITS>(|index| {
        let lane = unsigned::<BITS>(b, index);
        unsigned::<BITS>(if lane & count != 0 { a } else { d }, lane % count)
    })
}

pub fn pack(a: u32, b: u32, _: u32) -> u32 {
    a << 16 | b & 0xffff
}

pub fn pack_high(a: u32, b: u32, _: u32) -> u32 {
    a & 0xffff_0000 | b >> 16
}

pub fn packhi(a: u32, b: u32, d: u32) -> u32 {
    (a & 0xff) << 24 | (b & 0xff) << 16 | d & 0xffff
}

pub fn packlo(a: u32, b: u32, d: u32) -> u32 {
    d & 0xffff_0000 | (a & 0xff) << 8 | b & 0xff
}

/// Computes the real part of a product of complex fractions, whose real part is the low half-word.
pub fn cplxmul_real<const SHIFT: u32>(a: u32, b: u32, d: u32) -> u32 {
    let part = |x: u32, y: u32| i64::from(signed::<16>(a, x)) * i64::from(signed::<16>(b, y));
    d & 0xffff_0000 | ((part(0, 0) - part(1, 1)) as i32 >> (15 + SHIFT)) as u32 & 0xffff
}

pub fn cplxmul_imaginary<const SHIFT: u32>(a: u32, b: u32, d: u32) -> u32 {
    let part = |x: u32, y: u32| i64::from(signed::<16>(a, x)) * i64::from(signed::<16>(b, y));
    (((part(0, 1) + part(1, 0)) as i32 >> (15 + SHIFT)) as u32) << 16 | d & 0xffff
}

pub fn cplxconj(a: u32, _: u32, _: u32) -> u32 {
    (a >> 16).wrapping_neg() << 16 | a & 0xffff
}

/// Shifts a half-word right, sign-extended.
#[inline(always)]
fn shifted<const SHIFT: u32>(value: i32) -> u32 {
    (value as i16 >> SHIFT) as u32 & 0xffff
}

pub fn subrotmj<const SHIFT: u32>(a: u32, b: u32, _: u32) -> u32 {
    let real = shifted::<SHIFT>(signed::<16>(a, 1) - signed::<16>(b, 1));
    shifted::<SHIFT>(signed::<16>(b, 0) - signed::<16>(a, 0)) << 16 | real
}

pub fn add_shifted<const SHIFT: u32>(a: u32, b: u32, _: u32) -> u32 {
    lanes::<16>(|index| shifted::<SHIFT>(signed::<16>(a, index) + signed::<16>(b, index)))
}

pub fn sub_shifted<const SHIFT: u32>(a: u32, b: u32, _: u32) -> u32 {
    lanes::<16>(|index| shifted::<SHIFT>(signed::<16>(a, index) - signed::<16>(b, index)))
}
