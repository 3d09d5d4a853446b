// SPDX-License-Identifier: Apache-2.0
//! Permutations of lanes (A7.4.5, and VEXT, VTBL, VTBX and VDUP of A7.4).

use super::lanes::{low, quad, set_quad};
use crate::architectural_state::State;
use crate::isa::arm::fields::Word;
use crate::isa::arm::operands::{DD, DM, DN, NOTHING, Operands, VD, VM, VN, double};
use crate::isa::arm::row::{Parts, Row, plain, row};
use crate::memory::View;
use crate::op::Class::VectorAlu;
use crate::op::{Flow, Op};

const MD: Operands = VM.and(VD);

/// Returns the bytes of a double or quad register, and their number.
fn bytes(s: &State, w: Word, register: u8) -> ([u8; 16], usize) {
    let is_quad = w.bit(6);
    let value = if is_quad { quad(s, register) } else { s.wide(register).into() };
    (value.to_le_bytes(), if is_quad { 16 } else { 8 })
}

/// Writes a double or quad register.
fn set(s: &mut State, w: Word, register: u8, bytes: [u8; 16]) {
    let value = u128::from_le_bytes(bytes);
    if w.bit(6) {
        set_quad(s, register, value);
    } else {
        s.set_wide(register, value as u64);
    }
}

fn vswp(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let ((d, _), (m, _)) = (bytes(s, w, w.dd()), bytes(s, w, w.dm()));
    set(s, w, w.dd(), m);
    set(s, w, w.dm(), d);
    Flow::Next
}

/// Rearranges the bytes of Vd and Vm; `from` maps a place in the two registers, as bytes of lanes, to its source.
fn rearrange(s: &mut State, op: &Op, from: impl Fn(usize, usize) -> usize) -> Flow {
    let w = Word(op.imm);
    let lane = 1 << w.field(18, 2);
    let ((d, size), (m, _)) = (bytes(s, w, w.dd()), bytes(s, w, w.dm()));
    let count = size / lane;
    let (mut new_d, mut new_m) = ([0; 16], [0; 16]);
    for at in 0..2 * size {
        let source = from(at / lane, count) * lane + at % lane;
        let byte = if source < size { d[source] } else { m[source - size] };
        if at < size {
            new_d[at] = byte;
        } else {
            new_m[at - size] = byte;
        }
    }
    if w.dd() == w.dm() {
        // Both results have the same place, whose value is unknown.
        return Flow::Illegal;
    }
    set(s, w, w.dd(), new_d);
    set(s, w, w.dm(), new_m);
    Flow::Next
}

fn vtrn(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    rearrange(s, op, |at, count| {
        let (register, lane) = (at / count, at % count);
        // The result of Vd has the even lanes of both, that of Vm the odd ones.
        (lane & !1) + register + if lane % 2 == 1 { count } else { 0 }
    })
}

fn vuzp(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    rearrange(s, op, |at, count| 2 * (at % count) + at / count)
}

fn vzip(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    rearrange(s, op, |at, count| at / 2 + if at % 2 == 1 { count } else { 0 })
}

/// Two different registers.
fn distinct(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.dd() != w.dm())
}

/// Lanes of up to 32 bits.
fn to_32(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    distinct(row, w, pc).filter(|_| w.field(18, 2) != 3)
}

/// Registers with at least two pairs of lanes.
fn pairs(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    to_32(row, w, pc).filter(|_| w.bit(6) || w.field(18, 2) != 2)
}

/// Doublewords without a size.
fn without_size(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    distinct(row, w, pc).filter(|_| w.field(18, 2) == 0)
}

fn vext(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let ((n, size), (m, _)) = (bytes(s, w, w.dn()), bytes(s, w, w.dm()));
    let first = w.field(8, 4) as usize;
    let mut result = [0; 16];
    for (at, byte) in result.iter_mut().take(size).enumerate() {
        let source = first + at;
        *byte = if source < size { n[source] } else { m[source - size] };
    }
    set(s, w, w.dd(), result);
    Flow::Next
}

/// VEXT starts within the first register.
fn inside(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.bit(6) || !w.bit(11))
}

/// VTBL and VTBX (bit 6), with a table of one to four registers.
fn vtbl(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let length = 8 * (w.field(8, 2) as usize + 1);
    let (indices, old) = (s.wide(w.dm()).to_le_bytes(), s.wide(w.dd()).to_le_bytes());
    let result = std::array::from_fn(|at| {
        let index = usize::from(indices[at]);
        if index < length {
            s.wide(w.dn() + (index / 8) as u8).to_le_bytes()[index % 8]
        } else if w.bit(6) {
            old[at]
        } else {
            0
        }
    });
    s.set_wide(w.dd(), u64::from_le_bytes(result));
    Flow::Next
}

/// The registers of the table exist.
fn table(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    let length = w.field(8, 2) as u8 + 1;
    if w.dn() + length > 32 {
        return None;
    }
    let parts = plain(row, w, pc)?;
    let sources = (w.dn()..w.dn() + length).fold(parts.sources, |all, register| all | double(register));
    let sources = sources | if w.bit(6) { parts.results } else { crate::op::RegisterSet::NONE };
    Some(Parts { sources, ..parts })
}

/// Returns the size and the number of the lane of VDUP, from the lowest one bit of imm4.
fn scalar(w: Word) -> Option<(u32, u32)> {
    let imm4 = w.field(16, 4);
    (imm4 & 7 != 0).then(|| {
        let size = imm4.trailing_zeros();
        (8 << size, imm4 >> (size + 1))
    })
}

fn vdup(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let Some((bits, at)) = scalar(w) else { return Flow::Illegal };
    let lane = low(s.wide(w.dm()) >> (bits * at), bits);
    let value = (0..64 / bits).fold(0, |value, at| value | lane << (bits * at));
    for register in w.dd()..=w.dd() + u8::from(w.bit(6)) {
        s.set_wide(register, value);
    }
    Flow::Next
}

fn one_lane(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    scalar(w)?;
    plain(row, w, pc)
}

pub const PERMUTATIONS: &[Row] = &[
    row("vswp", 0xffb3_0f90, 0xf3b2_0000, VectorAlu, MD, MD, vswp).with(without_size),
    row("vtrn", 0xffb3_0f90, 0xf3b2_0080, VectorAlu, MD, MD, vtrn).with(to_32),
    row("vuzp", 0xffb3_0f90, 0xf3b2_0100, VectorAlu, MD, MD, vuzp).with(pairs),
    row("vzip", 0xffb3_0f90, 0xf3b2_0180, VectorAlu, MD, MD, vzip).with(pairs),
    row("vext", 0xffb0_0010, 0xf2b0_0000, VectorAlu, VD, VN.and(VM), vext).with(inside),
    row("vtbl, vtbx", 0xffb0_0c10, 0xf3b0_0800, VectorAlu, DD, DN.and(DM), vtbl).with(table),
    row("vdup", 0xffb0_0f90, 0xf3b0_0c00, VectorAlu, VD, DM.and(NOTHING), vdup).with(one_lane),
];
