// SPDX-License-Identifier: Apache-2.0
//! Two registers (A7.4.5), without permutations.

use super::lanes::{all, low, map3, number, quad, saturated, set_quad, signed};
use crate::architectural_state::State;
use crate::isa::arm::fields::Word;
use crate::isa::arm::float::flushed;
use crate::isa::arm::operands::{DD, DM, Operands, QD, QM, VD, VM};
use crate::isa::arm::row::{Parts, Row, plain, row};
use crate::memory::View;
use crate::op::Class::{FloatAdd, FloatConvert, FloatMove, VectorAlu};
use crate::op::{Flow, Op};

/// With bits 10 to 7, and with bits 10 to 6.
const SEVEN: u32 = 0xffb3_0f90;
const SIX: u32 = 0xffb3_0fd0;
/// With the size.
const SIZED: u32 = 0x000c_0000;

const MD: Operands = VM.and(VD);

/// Returns the size of the lanes in bits.
fn bits(w: Word) -> u32 {
    8 << w.field(18, 2)
}

/// Lanes of up to 32 bits.
fn to_32(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.field(18, 2) != 3)
}

/// Bytes.
fn bytes(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.field(18, 2) == 0)
}

/// Reversals within regions that are larger than the lanes.
fn reversal(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.field(18, 2) + w.field(7, 2) < 3)
}

/// Computes all lanes of Vd from those of Vm and Vd.
#[inline(always)]
fn each(s: &mut State, op: &Op, bits: u32, f: impl Fn(u64, u64, u32) -> u64) -> Flow {
    let w = Word(op.imm);
    for register in 0..=u8::from(w.bit(6)) {
        let (m, d) = (s.wide(w.dm() + register), s.wide(w.dd() + register));
        s.set_wide(w.dd() + register, map3(bits, m, d, 0, |m, d, _| f(m, d, bits)));
    }
    Flow::Next
}

/// Builds the operation of an instruction on lanes of its size.
macro_rules! lanes {
    ($f:expr) => {
        |s: &mut State, _: &mut View<'_>, op: &Op| each(s, op, bits(Word(op.imm)), $f)
    };
}

/// Builds the operation of an instruction on singles.
macro_rules! singles {
    ($f:expr) => {
        |s: &mut State, _: &mut View<'_>, op: &Op| {
            each(s, op, 32, |m, _, _| {
                let f: fn(u32) -> u32 = $f;
                f(m as u32).into()
            })
        }
    };
}

/// VREV64, VREV32 and VREV16: reverses the lanes of each region.
fn vrev(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (lane, region) = (bits(w), 64 >> w.field(7, 2));
    each(s, op, region, |m, _, region| {
        (0..region / lane).fold(0, |result, at| result << lane | low(m >> (lane * at), lane))
    })
}

/// VPADDL, and VPADAL in bit 10: sums of pairs; unsigned in bit 7.
fn vpaddl(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (lane, is_signed) = (bits(w), !w.bit(7));
    each(s, op, 2 * lane, |m, d, _| {
        let sum = number(low(m, lane), lane, is_signed) + number(m >> lane, lane, is_signed);
        (sum as u64).wrapping_add(if w.bit(10) { d } else { 0 })
    })
}

/// Narrows the lanes of Qm, of twice the size.
fn narrow(s: &mut State, op: &Op, f: impl Fn(u64, u32) -> u64) -> Flow {
    let w = Word(op.imm);
    let (lane, source) = (bits(w), quad(s, w.dm()));
    let result = (0..64 / lane).fold(0, |result, at| {
        let value = low((source >> (2 * lane * at)) as u64, 2 * lane);
        result | low(f(value, lane), lane) << (lane * at)
    });
    s.set_wide(w.dd(), result);
    Flow::Next
}

/// VSHLL by the size of the lanes.
fn vshll(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (lane, m) = (bits(w), s.wide(w.dm()));
    let result =
        (0..64 / lane).fold(0, |result, at| result | u128::from(low(m >> (lane * at), lane)) << (2 * lane * at + lane));
    set_quad(s, w.dd(), result);
    Flow::Next
}

fn mask(condition: bool) -> u32 {
    u32::from(condition).wrapping_neg()
}

/// VCVT between singles and integers: to an integer in bit 8, unsigned in bit 7.
fn vcvt(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    each(s, op, 32, |m, _, _| {
        let bits = m as u32;
        let value = match (w.bit(8), w.bit(7)) {
            (true, false) => flushed(bits) as i32 as u32,
            (true, true) => flushed(bits) as u32,
            (false, false) => (bits as i32 as f32).to_bits(),
            (false, true) => (bits as f32).to_bits(),
        };
        value.into()
    })
}

pub const MISCELLANEOUS: &[Row] = &[
    row("vrev64", SEVEN, 0xf3b0_0000, VectorAlu, VD, VM, vrev).with(reversal),
    row("vrev32", SEVEN, 0xf3b0_0080, VectorAlu, VD, VM, vrev).with(reversal),
    row("vrev16", SEVEN, 0xf3b0_0100, VectorAlu, VD, VM, vrev).with(reversal),
    row("vpaddl.s", SEVEN, 0xf3b0_0200, VectorAlu, VD, VM, vpaddl).with(to_32),
    row("vpaddl.u", SEVEN, 0xf3b0_0280, VectorAlu, VD, VM, vpaddl).with(to_32),
    row(
        "vcls",
        SEVEN,
        0xf3b0_0400,
        VectorAlu,
        VD,
        VM,
        lanes!(|m, _, b| {
            let value = signed(m, b);
            u64::from((value ^ value >> 63).leading_zeros() - (64 - b) - 1)
        }),
    )
    .with(to_32),
    row("vclz", SEVEN, 0xf3b0_0480, VectorAlu, VD, VM, lanes!(|m, _, b| u64::from(m.leading_zeros() - (64 - b))))
        .with(to_32),
    row("vcnt", SEVEN, 0xf3b0_0500, VectorAlu, VD, VM, lanes!(|m, _, _| m.count_ones().into())).with(bytes),
    row("vmvn", SEVEN, 0xf3b0_0580, VectorAlu, VD, VM, lanes!(|m, _, _| !m)).with(bytes),
    row("vpadal.s", SEVEN, 0xf3b0_0600, VectorAlu, VD, MD, vpaddl).with(to_32),
    row("vpadal.u", SEVEN, 0xf3b0_0680, VectorAlu, VD, MD, vpaddl).with(to_32),
    row("vqabs", SEVEN, 0xf3b0_0700, VectorAlu, VD, VM, lanes!(|m, _, b| saturated(number(m, b, true).abs(), b, true)))
        .with(to_32),
    row("vqneg", SEVEN, 0xf3b0_0780, VectorAlu, VD, VM, lanes!(|m, _, b| saturated(-number(m, b, true), b, true)))
        .with(to_32),
    row("vcgt zero", SEVEN, 0xf3b1_0000, VectorAlu, VD, VM, lanes!(|m, _, b| all(signed(m, b) > 0))).with(to_32),
    row("vcge zero", SEVEN, 0xf3b1_0080, VectorAlu, VD, VM, lanes!(|m, _, b| all(signed(m, b) >= 0))).with(to_32),
    row("vceq zero", SEVEN, 0xf3b1_0100, VectorAlu, VD, VM, lanes!(|m, _, _| all(m == 0))).with(to_32),
    row("vcle zero", SEVEN, 0xf3b1_0180, VectorAlu, VD, VM, lanes!(|m, _, b| all(signed(m, b) <= 0))).with(to_32),
    row("vclt zero", SEVEN, 0xf3b1_0200, VectorAlu, VD, VM, lanes!(|m, _, b| all(signed(m, b) < 0))).with(to_32),
    row("vabs", SEVEN, 0xf3b1_0300, VectorAlu, VD, VM, lanes!(|m, _, b| signed(m, b).unsigned_abs())).with(to_32),
    row("vneg", SEVEN, 0xf3b1_0380, VectorAlu, VD, VM, lanes!(|m, _, _| m.wrapping_neg())).with(to_32),
    row("vcgt.f32 zero", SEVEN | SIZED, 0xf3b9_0400, FloatAdd, VD, VM, singles!(|m| mask(flushed(m) > 0.0))),
    row("vcge.f32 zero", SEVEN | SIZED, 0xf3b9_0480, FloatAdd, VD, VM, singles!(|m| mask(flushed(m) >= 0.0))),
    row("vceq.f32 zero", SEVEN | SIZED, 0xf3b9_0500, FloatAdd, VD, VM, singles!(|m| mask(flushed(m) == 0.0))),
    row("vcle.f32 zero", SEVEN | SIZED, 0xf3b9_0580, FloatAdd, VD, VM, singles!(|m| mask(flushed(m) <= 0.0))),
    row("vclt.f32 zero", SEVEN | SIZED, 0xf3b9_0600, FloatAdd, VD, VM, singles!(|m| mask(flushed(m) < 0.0))),
    row("vabs.f32", SEVEN | SIZED, 0xf3b9_0700, FloatMove, VD, VM, singles!(|m| m & 0x7fff_ffff)),
    row("vneg.f32", SEVEN | SIZED, 0xf3b9_0780, FloatMove, VD, VM, singles!(|m| m ^ 0x8000_0000)),
    row("vmovn", SIX, 0xf3b2_0200, VectorAlu, DD, QM, |s: &mut State, _: &mut View<'_>, op: &Op| {
        narrow(s, op, |value, _| value)
    })
    .with(to_32),
    row("vqmovun", SIX, 0xf3b2_0240, VectorAlu, DD, QM, |s: &mut State, _: &mut View<'_>, op: &Op| {
        narrow(s, op, |value, b| saturated(number(value, 2 * b, true), b, false))
    })
    .with(to_32),
    row("vqmovn.s", SIX, 0xf3b2_0280, VectorAlu, DD, QM, |s: &mut State, _: &mut View<'_>, op: &Op| {
        narrow(s, op, |value, b| saturated(number(value, 2 * b, true), b, true))
    })
    .with(to_32),
    row("vqmovn.u", SIX, 0xf3b2_02c0, VectorAlu, DD, QM, |s: &mut State, _: &mut View<'_>, op: &Op| {
        narrow(s, op, |value, b| saturated(number(value, 2 * b, false), b, false))
    })
    .with(to_32),
    row("vshll", SIX, 0xf3b2_0300, VectorAlu, QD, DM, vshll).with(to_32),
    row("vcvt.f32.s32", SEVEN | SIZED, 0xf3bb_0600, FloatConvert, VD, VM, vcvt),
    row("vcvt.f32.u32", SEVEN | SIZED, 0xf3bb_0680, FloatConvert, VD, VM, vcvt),
    row("vcvt.s32.f32", SEVEN | SIZED, 0xf3bb_0700, FloatConvert, VD, VM, vcvt),
    row("vcvt.u32.f32", SEVEN | SIZED, 0xf3bb_0780, FloatConvert, VD, VM, vcvt),
];
