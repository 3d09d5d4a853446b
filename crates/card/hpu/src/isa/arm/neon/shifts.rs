// SPDX-License-Identifier: Apache-2.0
//! Two registers and a shift amount (A7.4.4), and one register and an immediate (A7.4.6).

use super::lanes::{low, map3, number, quad, saturated, set_quad};
use crate::architectural_state::State;
use crate::isa::arm::fields::Word;
use crate::isa::arm::operands::{DD, DM, NOTHING, Operands, QD, QM, VD, VM};
use crate::isa::arm::row::{Parts, Row, plain, row};
use crate::memory::View;
use crate::op::Class::{FloatConvert, VectorAlu};
use crate::op::{Flow, Op};

/// Returns the size of the lanes, from the highest one bit of L:imm6, and imm6 without that bit.
fn size(w: Word) -> (u32, u32) {
    let imm6 = w.field(16, 6);
    if w.bit(7) {
        return (64, imm6);
    }
    let bits = 1 << (31 - imm6.leading_zeros());
    (bits, imm6 - bits)
}

/// Returns the size of the lanes and the amount of a shift to the right.
fn right(w: Word) -> (u32, u32) {
    let (bits, imm) = size(w);
    (bits, bits - imm)
}

/// Computes all lanes of Vd from those of Vm and Vd; `f` gets the size of the lanes.
#[inline(always)]
fn each(s: &mut State, op: &Op, f: impl Fn(Word, u64, u64, u32) -> u64) -> Flow {
    let w = Word(op.imm);
    let (bits, _) = size(w);
    for register in 0..=u8::from(w.bit(6)) {
        let (m, d) = (s.wide(w.dm() + register), s.wide(w.dd() + register));
        s.set_wide(w.dd() + register, map3(bits, m, d, 0, |m, d, _| f(w, m, d, bits)));
    }
    Flow::Next
}

/// Shifts a lane to the right by 1 to 64 bits.
fn shifted_right(w: Word, value: u64, rounds: bool) -> i128 {
    let (bits, amount) = right(w);
    let value = number(value, bits, !w.bit(24));
    let value = if rounds { value + (1 << (amount - 1)) } else { value };
    value >> amount
}

/// Narrows the lanes of Qm after a shift to the right; `f` gets the shifted lane and the size of the result.
fn narrow(s: &mut State, op: &Op, is_signed: bool, rounds: bool, f: impl Fn(i128, u32) -> u64) -> Flow {
    let w = Word(op.imm);
    let (bits, amount) = right(w);
    let source = quad(s, w.dm());
    let result = (0..64 / bits).fold(0, |result, at| {
        let value = number(low((source >> (2 * bits * at)) as u64, 2 * bits), 2 * bits, is_signed);
        let value = if rounds { value + (1 << (amount - 1)) } else { value };
        result | low(f(value >> amount, bits), bits) << (bits * at)
    });
    s.set_wide(w.dd(), result);
    Flow::Next
}

/// Builds the rows of a shift for its sizes of lanes.
macro_rules! sizes {
    ($($name:literal $mask:literal $bits:literal $writes:ident $reads:expr, [$($size:literal)*] $f:expr;)*) => {
        &[$($(row($name, $mask | SIZES[$size].0, $bits | SIZES[$size].1, VectorAlu, $writes, $reads, $f),)*)*]
    };
}

/// Masks and bits of L and imm6 for lanes of 8, 16, 32 and 64 bits.
const SIZES: [(u32, u32); 4] =
    [(0x0038_0080, 0x0008_0000), (0x0030_0080, 0x0010_0000), (0x0020_0080, 0x0020_0000), (0x80, 0x80)];

const MD: Operands = VM.and(VD);

/// Builds the operation of a shift within lanes.
macro_rules! lanes {
    ($f:expr) => {
        |s: &mut State, _: &mut View<'_>, op: &Op| each(s, op, $f)
    };
}

/// Builds the operation of a narrowing shift.
macro_rules! narrowing {
    ($signed:expr, $rounds:literal, $f:expr) => {
        |s: &mut State, _: &mut View<'_>, op: &Op| {
            let is_signed: fn(Word) -> bool = $signed;
            narrow(s, op, is_signed(Word(op.imm)), $rounds, $f)
        }
    };
}

/// VSHLL and VMOVL.
fn vshll(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (bits, amount) = size(w);
    let m = s.wide(w.dm());
    let result = (0..64 / bits).fold(0, |result, at| {
        let value = number(low(m >> (bits * at), bits), bits, !w.bit(24)) << amount;
        result | (value as u128 & u128::MAX >> (128 - 2 * bits)) << (2 * bits * at)
    });
    set_quad(s, w.dd(), result);
    Flow::Next
}

const SHIFT: &[Row] = sizes! {
    "vshr" 0xfe80_0f10 0xf280_0010 VD VM, [0 1 2 3] lanes!(|w, m, _, _| shifted_right(w, m, false) as u64);
    "vsra" 0xfe80_0f10 0xf280_0110 VD MD, [0 1 2 3]
        lanes!(|w, m, d, _| d.wrapping_add(shifted_right(w, m, false) as u64));
    "vrshr" 0xfe80_0f10 0xf280_0210 VD VM, [0 1 2 3] lanes!(|w, m, _, _| shifted_right(w, m, true) as u64);
    "vrsra" 0xfe80_0f10 0xf280_0310 VD MD, [0 1 2 3]
        lanes!(|w, m, d, _| d.wrapping_add(shifted_right(w, m, true) as u64));
    "vsri" 0xff80_0f10 0xf380_0410 VD MD, [0 1 2 3] lanes!(|w, m, d, bits| {
        let amount = right(w).1;
        let kept = if amount == bits { u64::MAX } else { !low(u64::MAX, bits - amount) };
        d & kept | u128::from(m).wrapping_shr(amount) as u64 & !kept
    });
    "vshl" 0xff80_0f10 0xf280_0510 VD VM, [0 1 2 3] lanes!(|w, m, _, _| m << size(w).1);
    "vsli" 0xff80_0f10 0xf380_0510 VD MD, [0 1 2 3]
        lanes!(|w, m, d, _| { let amount = size(w).1; m << amount | d & !(u64::MAX << amount) });
    "vqshlu" 0xff80_0f10 0xf380_0610 VD VM, [0 1 2 3]
        lanes!(|w, m, _, bits| saturated(number(m, bits, true) << size(w).1, bits, false));
    "vqshl" 0xfe80_0f10 0xf280_0710 VD VM, [0 1 2 3]
        lanes!(|w, m, _, bits| saturated(number(m, bits, !w.bit(24)) << size(w).1, bits, !w.bit(24)));
    "vshrn" 0xff80_0fd0 0xf280_0810 DD QM, [0 1 2] narrowing!(|_| false, false, |value, _| value as u64);
    "vrshrn" 0xff80_0fd0 0xf280_0850 DD QM, [0 1 2] narrowing!(|_| false, true, |value, _| value as u64);
    "vqshrun" 0xff80_0fd0 0xf380_0810 DD QM, [0 1 2] narrowing!(|_| true, false, |value, bits| saturated(value, bits, false));
    "vqrshrun" 0xff80_0fd0 0xf380_0850 DD QM, [0 1 2] narrowing!(|_| true, true, |value, bits| saturated(value, bits, false));
    "vqshrn.s" 0xff80_0fd0 0xf280_0910 DD QM, [0 1 2] narrowing!(|_| true, false, |value, bits| saturated(value, bits, true));
    "vqshrn.u" 0xff80_0fd0 0xf380_0910 DD QM, [0 1 2] narrowing!(|_| false, false, |value, bits| saturated(value, bits, false));
    "vqrshrn.s" 0xff80_0fd0 0xf280_0950 DD QM, [0 1 2] narrowing!(|_| true, true, |value, bits| saturated(value, bits, true));
    "vqrshrn.u" 0xff80_0fd0 0xf380_0950 DD QM, [0 1 2] narrowing!(|_| false, true, |value, bits| saturated(value, bits, false));
    "vshll" 0xfe80_0fd0 0xf280_0a10 QD DM, [0 1 2] vshll;
};

pub const SHIFTS: &[Row] = SHIFT;

/// Expands an immediate (A7.4.6, AdvSIMDExpandImm); `None` for reserved ones.
fn expanded(cmode: u32, op: bool, imm8: u64) -> Option<u64> {
    let words = |value: u64| value | value << 32;
    let halves = |value: u64| words(value | value << 16);
    Some(match cmode {
        0..=7 => words(imm8 << (8 * (cmode >> 1))),
        8..=11 => halves(imm8 << (8 * (cmode >> 1 & 1))),
        12 => words(imm8 << 8 | 0xff),
        13 => words(imm8 << 16 | 0xffff),
        14 if !op => imm8 * 0x0101_0101_0101_0101,
        14 => (0..8).filter(|bit| imm8 >> bit & 1 == 1).fold(0, |value, bit| value | 0xff << (8 * bit)),
        _ if op => return None,
        _ => {
            let exponent = if imm8 >> 6 & 1 == 1 { 0x1f } else { 0x20 };
            words(imm8 >> 7 << 31 | exponent << 25 | (imm8 & 0x3f) << 19)
        }
    })
}

/// VMOV, VMVN, VORR and VBIC with an immediate.
fn modified(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (cmode, inverts) = (w.field(8, 4), w.bit(5));
    let imm8 = w.field(24, 1) << 7 | w.field(16, 3) << 4 | w.field(0, 4);
    let Some(imm) = expanded(cmode, inverts, imm8.into()) else { return Flow::Illegal };
    let combines = cmode < 12 && cmode & 1 == 1;
    for register in w.dd()..=w.dd() + u8::from(w.bit(6)) {
        let value = match (combines, inverts) {
            (true, false) => s.wide(register) | imm,
            (true, true) => s.wide(register) & !imm,
            (false, true) if cmode < 14 => !imm,
            (false, _) => imm,
        };
        s.set_wide(register, value);
    }
    Flow::Next
}

/// An immediate that is not reserved.
fn immediate(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    expanded(w.field(8, 4), w.bit(5), 0)?;
    let parts = plain(row, w, pc)?;
    let combines = w.field(8, 4) < 12 && w.bit(8);
    let sources = if combines { parts.results } else { parts.sources };
    Some(Parts { sources, ..parts })
}

/// VCVT between singles and fixed-point numbers of 32 bits.
fn vcvt_fixed(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let scale = (1_u64 << (64 - w.field(16, 6))) as f64;
    let is_signed = !w.bit(24);
    for register in 0..=u8::from(w.bit(6)) {
        let m = s.wide(w.dm() + register);
        let result = map3(32, m, 0, 0, |m, _, _| {
            let bits = m as u32;
            if w.bit(8) {
                let value = f64::from(crate::isa::arm::float::flushed(bits)) * scale;
                if is_signed { (value as i32 as u32).into() } else { (value as u32).into() }
            } else {
                let value = if is_signed { f64::from(bits as i32) } else { f64::from(bits) };
                ((value / scale) as f32).to_bits().into()
            }
        });
        s.set_wide(w.dd() + register, result);
    }
    Flow::Next
}

pub const IMMEDIATE: &[Row] = &[
    row("vmov, vmvn, vorr, vbic", 0xfeb8_0090, 0xf280_0010, VectorAlu, VD, NOTHING, modified).with(immediate),
    row("vcvt.f32.fixed", 0xfea0_0f90, 0xf2a0_0e10, FloatConvert, VD, VM, vcvt_fixed),
    row("vcvt.fixed.f32", 0xfea0_0f90, 0xf2a0_0f10, FloatConvert, VD, VM, vcvt_fixed),
];
