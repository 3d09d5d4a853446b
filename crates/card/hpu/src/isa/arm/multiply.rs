// SPDX-License-Identifier: Apache-2.0
//! Multiplication and division (A5.2.5, A5.2.7, A5.4.4). The fields are Rd or RdHi in bits 19 to 16, Ra or RdLo in bits
//! 15 to 12, Rm in bits 11 to 8 and Rn in bits 3 to 0.

use super::fields::{N, Q, Word, Z};
use super::flags::set_nz;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Returns the values of Rn and Rm.
#[inline(always)]
fn factors(s: &State, w: Word) -> (u32, u32) {
    (s.word(w.register(0)), s.word(w.register(8)))
}

#[inline(always)]
fn short(s: &mut State, op: &Op, f: impl FnOnce(u32, u32, u32) -> u32) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    let result = f(a, b, s.word(w.register(12)));
    s.set_word(w.register(16), result);
    if w.bit(20) {
        set_nz(s, result);
    }
    Flow::Next
}

/// Computes RdHi:RdLo.
#[inline(always)]
fn long(s: &mut State, op: &Op, f: impl FnOnce(u32, u32, u64) -> u64) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    let (low, high) = (w.register(12), w.register(16));
    let result = f(a, b, u64::from(s.word(high)) << 32 | u64::from(s.word(low)));
    s.set_word(low, result as u32);
    s.set_word(high, (result >> 32) as u32);
    if w.bit(20) {
        s.set_word(N, (result >> 32) as u32);
        s.set_word(Z, result as u32 | (result >> 32) as u32);
    }
    Flow::Next
}

fn signed(a: u32, b: u32) -> u64 {
    (i64::from(a as i32) * i64::from(b as i32)) as u64
}

fn unsigned(a: u32, b: u32) -> u64 {
    u64::from(a) * u64::from(b)
}

pub fn mul(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    short(s, op, |a, b, _| a.wrapping_mul(b))
}

pub fn mla(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    short(s, op, |a, b, c| a.wrapping_mul(b).wrapping_add(c))
}

pub fn mls(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    let result = s.word(w.register(12)).wrapping_sub(a.wrapping_mul(b));
    s.set_word(w.register(16), result);
    Flow::Next
}

pub fn umaal(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    long(s, op, |a, b, c| unsigned(a, b) + (c & 0xffff_ffff) + (c >> 32))
}

pub fn umull(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    long(s, op, |a, b, _| unsigned(a, b))
}

pub fn umlal(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    long(s, op, |a, b, c| unsigned(a, b).wrapping_add(c))
}

pub fn smull(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    long(s, op, |a, b, _| signed(a, b))
}

pub fn smlal(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    long(s, op, |a, b, c| signed(a, b).wrapping_add(c))
}

/// Returns the half of a register that bit `at` selects.
#[inline(always)]
fn half(value: u32, w: Word, at: u32) -> i64 {
    i64::from(if w.bit(at) { (value >> 16) as i16 } else { value as i16 })
}

/// Writes a 32-bit sum to Rd, with Q set if it overflows.
#[inline(always)]
fn accumulate(s: &mut State, w: Word, sum: i64) -> Flow {
    if sum != i64::from(sum as i32) {
        s.set_word(Q, 1);
    }
    s.set_word(w.register(16), sum as u32);
    Flow::Next
}

fn addend(s: &State, w: Word) -> i64 {
    i64::from(s.word(w.register(12)) as i32)
}

/// SMULBB, SMULBT, SMULTB and SMULTT.
pub fn smulxy(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    accumulate(s, w, half(a, w, 5) * half(b, w, 6))
}

pub fn smlaxy(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    let sum = half(a, w, 5) * half(b, w, 6) + addend(s, w);
    accumulate(s, w, sum)
}

pub fn smulwy(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    accumulate(s, w, (i64::from(a as i32) * half(b, w, 6)) >> 16)
}

pub fn smlawy(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    let sum = ((i64::from(a as i32) * half(b, w, 6)) >> 16) + addend(s, w);
    accumulate(s, w, sum)
}

pub fn smlalxy(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    let product = half(a, w, 5) * half(b, w, 6);
    let (low, high) = (w.register(12), w.register(16));
    let sum = (u64::from(s.word(high)) << 32 | u64::from(s.word(low))).wrapping_add(product as u64);
    s.set_word(low, sum as u32);
    s.set_word(high, (sum >> 32) as u32);
    Flow::Next
}

/// Returns the two products of half-words; bit 5 exchanges the halves of Rm.
fn dual(s: &State, w: Word) -> (i64, i64) {
    let (a, b) = factors(s, w);
    let b = if w.bit(5) { b.rotate_left(16) } else { b };
    let at = |value: u32, shift: u32| i64::from((value >> shift) as i16);
    (at(a, 0) * at(b, 0), at(a, 16) * at(b, 16))
}

/// SMLAD and SMLSD (bit 6); without an addend, in `r15`, SMUAD and SMUSD.
pub fn smlad(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (low, high) = dual(s, w);
    let products = if w.bit(6) { low - high } else { low + high };
    let sum = products + if w.register(12) == 15 { 0 } else { addend(s, w) };
    accumulate(s, w, sum)
}

/// SMLALD and SMLSLD (bit 6).
pub fn smlald(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (first, second) = dual(s, w);
    let products = if w.bit(6) { first - second } else { first + second };
    let (low, high) = (w.register(12), w.register(16));
    let sum = (u64::from(s.word(high)) << 32 | u64::from(s.word(low))).wrapping_add(products as u64);
    s.set_word(low, sum as u32);
    s.set_word(high, (sum >> 32) as u32);
    Flow::Next
}

/// SMMLA and SMMLS (bit 6), with rounding (bit 5); without an addend, in `r15`, SMMUL.
pub fn smmla(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    let product = i64::from(a as i32) * i64::from(b as i32);
    let base = if w.register(12) == 15 { 0 } else { addend(s, w) << 32 };
    let sum = if w.bit(6) { base.wrapping_sub(product) } else { base.wrapping_add(product) };
    let sum = if w.bit(5) { sum.wrapping_add(0x8000_0000) } else { sum };
    s.set_word(w.register(16), (sum >> 32) as u32);
    Flow::Next
}

/// UDIV; a division by zero returns 0.
pub fn udiv(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    s.count_division(b, false);
    s.set_word(w.register(16), a.checked_div(b).unwrap_or(0));
    Flow::Next
}

pub fn sdiv(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = factors(s, w);
    s.count_division(b, true);
    let quotient = if b == 0 { 0 } else { (a as i32).wrapping_div(b as i32) };
    s.set_word(w.register(16), quotient as u32);
    Flow::Next
}
