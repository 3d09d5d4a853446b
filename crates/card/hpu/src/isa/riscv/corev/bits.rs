// SPDX-License-Identifier: Apache-2.0
//! Bit manipulation (xcvbitmanip). A bit field has a size, less one, and a position; it ends at the most significant
//! bit at the latest.

use super::super::fields::Fields;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Returns size less one and position of a bit field: from `op.imm` in the immediate form, from `rs2` in the register
/// form. The encodings are the same.
#[inline(always)]
fn field<const REGISTER: bool>(s: &State, op: &Op) -> (u32, u32) {
    let place = if REGISTER { s.word(op.rs2()) } else { op.imm };
    let position = place & 31;
    ((place >> 5 & 31).min(31 - position), position)
}

/// Returns a mask of the size of a bit field.
#[inline(always)]
fn ones(size: u32) -> u32 {
    u32::MAX >> (31 - size)
}

pub fn extract<const REGISTER: bool>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let (size, position) = field::<REGISTER>(s, op);
    let value = (s.word(op.rs1()) << (31 - size - position)) as i32 >> (31 - size);
    s.set_word(op.rd(), value as u32);
    Flow::Next
}

pub fn extractu<const REGISTER: bool>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let (size, position) = field::<REGISTER>(s, op);
    let value = s.word(op.rs1()) >> position & ones(size);
    s.set_word(op.rd(), value);
    Flow::Next
}

pub fn insert<const REGISTER: bool>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let (size, position) = field::<REGISTER>(s, op);
    let mask = ones(size) << position;
    let value = s.word(op.rd()) & !mask | s.word(op.rs1()) << position & mask;
    s.set_word(op.rd(), value);
    Flow::Next
}

pub fn bclr<const REGISTER: bool>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let (size, position) = field::<REGISTER>(s, op);
    let value = s.word(op.rs1()) & !(ones(size) << position);
    s.set_word(op.rd(), value);
    Flow::Next
}

pub fn bset<const REGISTER: bool>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let (size, position) = field::<REGISTER>(s, op);
    let value = s.word(op.rs1()) | ones(size) << position;
    s.set_word(op.rd(), value);
    Flow::Next
}

#[inline(always)]
fn unary(s: &mut State, op: &Op, f: impl FnOnce(u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()));
    s.set_word(op.rd(), value);
    Flow::Next
}

pub fn ff1(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, u32::trailing_zeros)
}

pub fn fl1(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| if a == 0 { 32 } else { a.ilog2() })
}

pub fn clb(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |a| if a == 0 { 0 } else { a.leading_zeros().max(a.leading_ones()) - 1 })
}

pub fn cnt(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, u32::count_ones)
}

pub fn ror(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.rs1()).rotate_right(s.word(op.rs2()) & 31);
    s.set_word(op.rd(), value);
    Flow::Next
}

/// The position of the bit field is the number of bits to drop; its size is the number of bits of a group, less one; 3
/// is equivalent to 0.
pub fn bitrev(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let bits = match op.imm >> 5 & 3 {
        1 => 2,
        2 => 3,
        _ => 1,
    };
    let dropped = op.imm & 31;
    unary(s, op, |a| {
        let shifted = a << dropped;
        let mask = (1 << bits) - 1;
        (0..32 / bits)
            .fold(0, |value, group| value << bits | shifted >> (32 - bits * (32 / bits) + group * bits) & mask)
    })
}
