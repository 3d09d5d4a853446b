// SPDX-License-Identifier: Apache-2.0
//! Data processing (A5.2.1 to A5.2.3), moves of half-words, and bit fields.

use super::fields::{C, V, Word};
use super::flags::set_nz;
use super::guard::{Runs, both};
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Form of the second operand of a data-processing instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operand {
    /// Immediate that leaves C unchanged.
    Immediate,
    /// Rotated immediate: its bit 31 is the carry.
    Rotated,
    /// Register.
    Register,
    /// Register shifted left by 1 to 31.
    Left,
    /// Register shifted right by 1 to 32.
    Right,
    /// Register shifted right by 1 to 32, with its sign.
    Arithmetic,
    /// Register rotated by 1 to 31, or with 0 through the carry (RRX).
    Rotate,
    /// Register shifted by a register; the type is the immediate.
    Variable,
}

/// Opcodes with a meaning of their own in a decoder.
pub const TST: u32 = 8;
pub const CMN: u32 = 11;
pub const MOV: u32 = 13;
pub const MVN: u32 = 15;
pub const ADD: u32 = 4;
pub const SUB: u32 = 2;

/// Returns the second operand and the carry of its shifter.
#[inline(always)]
fn operand<const KIND: u32>(s: &State, op: &Op) -> (u32, u32) {
    const REGISTER: u32 = Operand::Register as u32;
    const ROTATED: u32 = Operand::Rotated as u32;
    const LEFT: u32 = Operand::Left as u32;
    const RIGHT: u32 = Operand::Right as u32;
    const ARITHMETIC: u32 = Operand::Arithmetic as u32;
    const ROTATE: u32 = Operand::Rotate as u32;
    const VARIABLE: u32 = Operand::Variable as u32;
    let rm = s.word(op.registers[2]);
    match KIND {
        ROTATED => (op.imm, op.imm >> 31),
        REGISTER => (rm, s.word(C)),
        LEFT => (rm << (op.imm & 31), rm >> ((32 - op.imm) & 31) & 1),
        RIGHT => ((u64::from(rm) >> op.imm) as u32, (u64::from(rm) >> (op.imm - 1)) as u32 & 1),
        ARITHMETIC => {
            let wide = i64::from(rm as i32);
            ((wide >> op.imm) as u32, (wide >> (op.imm - 1)) as u32 & 1)
        }
        ROTATE if op.imm == 0 => (rm >> 1 | s.word(C) << 31, rm & 1),
        ROTATE => {
            let value = rm.rotate_right(op.imm);
            (value, value >> 31)
        }
        VARIABLE => shifted(rm, op.imm, s.word(op.registers[3]) & 0xff, s.word(C)),
        _ => (op.imm, s.word(C)),
    }
}

/// Shifts by any amount (A8.4.3): returns the result and the carry, which an amount of 0 leaves unchanged.
pub fn shifted(value: u32, kind: u32, amount: u32, carry: u32) -> (u32, u32) {
    if amount == 0 {
        return (value, carry);
    }
    let wide = u64::from(value);
    match kind {
        0 if amount > 32 => (0, 0),
        0 => ((wide << amount) as u32, (wide << amount >> 32) as u32 & 1),
        1 if amount > 32 => (0, 0),
        1 => ((wide >> amount) as u32, (wide >> (amount - 1)) as u32 & 1),
        2 => {
            let (wide, amount) = (i64::from(value as i32), amount.min(32));
            ((wide >> amount) as u32, (wide >> (amount - 1)) as u32 & 1)
        }
        _ => {
            let value = value.rotate_right(amount);
            (value, value >> 31)
        }
    }
}

/// Adds with carry (A2.2.1): returns sum, carry and overflow.
#[inline(always)]
fn add_with_carry(a: u32, b: u32, carry: u32) -> (u32, u32, u32) {
    let wide = u64::from(a) + u64::from(b) + u64::from(carry);
    let sum = wide as u32;
    (sum, (wide >> 32) as u32, ((a ^ sum) & (b ^ sum)) >> 31)
}

/// Executes opcode `CODE & 15`, which sets flags if bit 4 is set, with an [`Operand`] of kind `CODE >> 5`. Registers: Rd,
/// Rn, Rm, Rs.
#[inline(always)]
fn compute<const OPCODE: u32, const SETS: bool>(s: &mut State, a: u32, b: u32, shifter: u32) -> u32 {
    let carry = s.word(C);
    let (result, c, v) = match OPCODE {
        0 | 8 => (a & b, shifter, 2),
        1 | 9 => (a ^ b, shifter, 2),
        2 | 10 => add_with_carry(a, !b, 1),
        3 => add_with_carry(b, !a, 1),
        4 | 11 => add_with_carry(a, b, 0),
        5 => add_with_carry(a, b, carry),
        6 => add_with_carry(a, !b, carry),
        7 => add_with_carry(b, !a, carry),
        12 => (a | b, shifter, 2),
        13 => (b, shifter, 2),
        14 => (a & !b, shifter, 2),
        _ => (!b, shifter, 2),
    };
    if SETS {
        set_nz(s, result);
        s.set_word(C, c);
        // Logical operations leave V unchanged.
        if v < 2 {
            s.set_word(V, v);
        }
    }
    result
}

/// Dispatches a constant opcode and flag bit.
#[inline(always)]
fn compute_code<const CODE: u32>(s: &mut State, a: u32, b: u32, shifter: u32) -> u32 {
    macro_rules! of {
        ($($opcode:literal)*) => {
            match (CODE & 15, CODE & 16 != 0) {
                $(($opcode, false) => compute::<$opcode, false>(s, a, b, shifter),
                  ($opcode, true) => compute::<$opcode, true>(s, a, b, shifter),)*
                _ => 0,
            }
        };
    }
    of!(0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
}

#[inline(always)]
fn operand_code<const CODE: u32>(s: &State, op: &Op) -> (u32, u32) {
    match CODE >> 5 {
        0 => operand::<0>(s, op),
        1 => operand::<1>(s, op),
        2 => operand::<2>(s, op),
        3 => operand::<3>(s, op),
        4 => operand::<4>(s, op),
        5 => operand::<5>(s, op),
        6 => operand::<6>(s, op),
        _ => operand::<7>(s, op),
    }
}

fn process<const CODE: u32>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let (b, shifter) = operand_code::<CODE>(s, op);
    let a = s.word(op.registers[1]);
    let result = compute_code::<CODE>(s, a, b, shifter);
    if !(TST..=CMN).contains(&(CODE & 15)) {
        s.set_word(op.registers[0], result);
    }
    Flow::Next
}

const fn runs<const CODE: u32>() -> Runs {
    both(process::<CODE>)
}

macro_rules! sixteen {
    ($f:ident, $base:literal) => {
        [
            $f::<{ $base }>(),
            $f::<{ $base + 1 }>(),
            $f::<{ $base + 2 }>(),
            $f::<{ $base + 3 }>(),
            $f::<{ $base + 4 }>(),
            $f::<{ $base + 5 }>(),
            $f::<{ $base + 6 }>(),
            $f::<{ $base + 7 }>(),
            $f::<{ $base + 8 }>(),
            $f::<{ $base + 9 }>(),
            $f::<{ $base + 10 }>(),
            $f::<{ $base + 11 }>(),
            $f::<{ $base + 12 }>(),
            $f::<{ $base + 13 }>(),
            $f::<{ $base + 14 }>(),
            $f::<{ $base + 15 }>(),
        ]
    };
}
pub(super) use sixteen;

/// Forms by operand kind and flag bit, and by opcode.
static RUNS: [[Runs; 16]; 16] = [
    sixteen!(runs, 0),
    sixteen!(runs, 16),
    sixteen!(runs, 32),
    sixteen!(runs, 48),
    sixteen!(runs, 64),
    sixteen!(runs, 80),
    sixteen!(runs, 96),
    sixteen!(runs, 112),
    sixteen!(runs, 128),
    sixteen!(runs, 144),
    sixteen!(runs, 160),
    sixteen!(runs, 176),
    sixteen!(runs, 192),
    sixteen!(runs, 208),
    sixteen!(runs, 224),
    sixteen!(runs, 240),
];

/// Returns the forms of a data-processing instruction.
pub fn forms(opcode: u32, sets_flags: bool, operand: Operand) -> Runs {
    RUNS[(operand as usize) << 1 | usize::from(sets_flags)][opcode as usize & 15]
}

/// Returns the result of an opcode without carry on two values: ADD, SUB, RSB, and the logical ones.
pub fn folded(opcode: u32, a: u32, b: u32) -> Option<u32> {
    Some(match opcode {
        0 => a & b,
        1 => a ^ b,
        2 => a.wrapping_sub(b),
        3 => b.wrapping_sub(a),
        4 => a.wrapping_add(b),
        12 => a | b,
        13 => b,
        14 => a & !b,
        15 => !b,
        _ => return None,
    })
}

/// ADD and SUB of the pc and a shifted register: the immediate is the pc that the instruction reads, register 2 the type of
/// the shift with bit 2 for SUB, and register 3 the amount.
pub fn add_pc(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let kind = u32::from(op.registers[2]);
    let (b, _) = shifted(s.word(op.registers[1]), kind & 3, op.registers[3].into(), s.word(C));
    let result = if kind & 4 == 0 { op.imm.wrapping_add(b) } else { op.imm.wrapping_sub(b) };
    s.set_word(op.registers[0], result);
    Flow::Next
}

/// Data processing with the pc as its result: jumps. The instruction ends its block, so the pc that it reads is 8 bytes
/// after it.
pub fn into_pc(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let here = s.pc.wrapping_add(4);
    let read = |s: &State, low: u32| if w.register(low) == 15 { here } else { s.word(w.register(low)) };
    let b = if w.bit(25) {
        super::fields::expanded(w.field(0, 12))
    } else {
        let (kind, amount) = (w.field(5, 2), w.field(7, 5));
        let value = read(s, 0);
        match (kind, amount) {
            (1 | 2, 0) => shifted(value, kind, 32, 0).0,
            (3, 0) => value >> 1 | s.word(C) << 31,
            _ => shifted(value, kind, amount, 0).0,
        }
    };
    let a = read(s, 16);
    let carry = s.word(C);
    let target = match w.field(21, 4) {
        5 => a.wrapping_add(b).wrapping_add(carry),
        6 => a.wrapping_sub(b).wrapping_add(carry).wrapping_sub(1),
        7 => b.wrapping_sub(a).wrapping_add(carry).wrapping_sub(1),
        opcode => folded(opcode, a, b).unwrap_or_default(),
    };
    super::control::jump(s, target)
}

pub fn movw(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    s.set_word(op.registers[0], op.imm);
    Flow::Next
}

pub fn movt(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.registers[0]) & 0xffff | op.imm << 16;
    s.set_word(op.registers[0], value);
    Flow::Next
}

/// Returns the mask of `width` low bits, 1 to 32.
fn mask(width: u32) -> u32 {
    u32::MAX >> (32 - width)
}

/// BFI, and BFC with `r15` as its source.
pub fn bfi(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (low, high) = (w.field(7, 5), w.field(16, 5));
    let mask = mask(high - low + 1) << low;
    let source = if w.register(0) == 15 { 0 } else { s.word(w.register(0)) << low };
    let value = s.word(w.register(12)) & !mask | source & mask;
    s.set_word(w.register(12), value);
    Flow::Next
}

/// UBFX, and SBFX if bit 22 is clear.
pub fn bfx(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (low, width) = (w.field(7, 5), w.field(16, 5) + 1);
    let value = s.word(w.register(0)) >> low & mask(width);
    let value = if w.bit(22) { value } else { ((value << (32 - width)) as i32 >> (32 - width)) as u32 };
    s.set_word(w.register(12), value);
    Flow::Next
}

pub fn clz(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, u32::leading_zeros)
}

pub fn rev(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, u32::swap_bytes)
}

pub fn rev16(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |value| value.swap_bytes().rotate_left(16))
}

pub fn revsh(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, |value| i32::from((value as u16).swap_bytes() as i16) as u32)
}

pub fn rbit(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    unary(s, op, u32::reverse_bits)
}

/// Computes Rd from Rm.
#[inline(always)]
fn unary(s: &mut State, op: &Op, f: impl FnOnce(u32) -> u32) -> Flow {
    let w = Word(op.imm);
    let value = f(s.word(w.register(0)));
    s.set_word(w.register(12), value);
    Flow::Next
}
