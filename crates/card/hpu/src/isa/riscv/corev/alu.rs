// SPDX-License-Identifier: Apache-2.0
//! General ALU operations and branches on immediates (xcvalu, xcvbi).

use super::super::fields::Fields;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

#[inline(always)]
fn unary(s: &mut State, op: &Op, f: impl FnOnce(u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()));
    s.set_word(op.rd(), value);
    Flow::Next
}

#[inline(always)]
fn binary(s: &mut State, op: &Op, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()), s.word(op.rs2()));
    s.set_word(op.rd(), value);
    Flow::Next
}

pub fn abs(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| (a as i32).wrapping_abs() as u32)
}

pub fn exths(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| a as i16 as u32)
}

pub fn exthz(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| a & 0xffff)
}

pub fn extbs(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| a as i8 as u32)
}

pub fn extbz(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| a & 0xff)
}

pub fn sle(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, |a, b| u32::from(a as i32 <= b as i32))
}

pub fn sleu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, |a, b| u32::from(a <= b))
}

pub fn min(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, |a, b| (a as i32).min(b as i32) as u32)
}

pub fn minu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, u32::min)
}

pub fn max(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, |a, b| (a as i32).max(b as i32) as u32)
}

pub fn maxu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, u32::max)
}

/// Limits `a` to the range `least` to `most`; the lower limit is compared first.
#[inline(always)]
fn limit(a: u32, least: i32, most: i32) -> u32 {
    match a as i32 {
        a if a <= least => least as u32,
        a if a >= most => most as u32,
        a => a as u32,
    }
}

/// Returns the greatest signed number of `bits` bits; 0 for no bits.
#[inline(always)]
fn greatest(bits: u32) -> i32 {
    if bits == 0 { 0 } else { ((1_u32 << (bits - 1)) - 1) as i32 }
}

pub fn clip(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| limit(a, -greatest(op.imm) - 1, greatest(op.imm)))
}

pub fn clipu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| limit(a, 0, greatest(op.imm)))
}

pub fn clipr(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, |a, b| limit(a, (b as i32).wrapping_add(1).wrapping_neg(), b as i32))
}

pub fn clipur(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    binary(s, op, |a, b| limit(a, 0, b as i32))
}

/// Shifts `value` right by `shift` bits, with optional rounding, in 32-bit arithmetic.
#[inline(always)]
pub fn normalize<const ROUND: bool, const SIGNED: bool>(value: u32, shift: u32) -> u32 {
    let half = if ROUND && shift > 0 { 1 << (shift - 1) } else { 0 };
    let value = value.wrapping_add(half);
    if SIGNED { (value as i32 >> shift) as u32 } else { value >> shift }
}

/// `rd = (rs1 ± rs2) >> imm`
pub fn normalized<const SUBTRACT: bool, const ROUND: bool, const SIGNED: bool>(
    s: &mut State,
    _: &mut View<'_>,
    op: &Op,
) -> Flow {
    binary(s, op, |a, b| {
        let value = if SUBTRACT { a.wrapping_sub(b) } else { a.wrapping_add(b) };
        normalize::<ROUND, SIGNED>(value, op.imm)
    })
}

/// `rd = (rd ± rs1) >> rs2`
pub fn normalized_by_register<const SUBTRACT: bool, const ROUND: bool, const SIGNED: bool>(
    s: &mut State,
    _: &mut View<'_>,
    op: &Op,
) -> Flow {
    let sum = s.word(op.rd());
    binary(s, op, |a, shift| {
        let value = if SUBTRACT { sum.wrapping_sub(a) } else { sum.wrapping_add(a) };
        normalize::<ROUND, SIGNED>(value, shift & 31)
    })
}

/// Returns the immediate that a branch compares with: the second register field as a signed 5-bit number.
#[inline(always)]
fn immediate(op: &Op) -> u32 {
    ((i32::from(op.rs2()) << 27) >> 27) as u32
}

pub fn beqimm(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, s.word(op.rs1()) == immediate(op))
}

pub fn bneimm(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, s.word(op.rs1()) != immediate(op))
}

#[inline(always)]
fn branch(s: &mut State, op: &Op, taken: bool) -> Flow {
    if taken {
        s.pc = op.imm;
        return Flow::Jump;
    }
    Flow::Next
}
