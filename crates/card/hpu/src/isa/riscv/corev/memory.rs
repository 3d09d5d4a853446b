// SPDX-License-Identifier: Apache-2.0
//! Loads and stores with post-increment or with a register offset (xcvmem). A load into its own address register keeps
//! the loaded value.

use super::super::fields::Fields;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Addend of the base, applied before the access or, as post-increment, after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Immediate, post-increment.
    Immediate,
    /// Second register, post-increment.
    Register,
    /// Second register, added before the access.
    Offset,
}

/// Steps as const parameters of the functions below.
pub const IMMEDIATE: u8 = 0;
pub const REGISTER: u8 = 1;
pub const OFFSET: u8 = 2;

#[inline(always)]
fn step<const STEP: u8>() -> Step {
    match STEP {
        IMMEDIATE => Step::Immediate,
        REGISTER => Step::Register,
        _ => Step::Offset,
    }
}

/// Returns the address of an access, and the new value of its base register.
#[inline(always)]
fn addresses<const STEP: u8>(s: &State, op: &Op, register: u8) -> (u32, u32) {
    let base = s.word(op.rs1());
    match step::<STEP>() {
        Step::Immediate => (base, base.wrapping_add(op.imm)),
        Step::Register => (base, base.wrapping_add(s.word(register))),
        Step::Offset => (base.wrapping_add(s.word(register)), base),
    }
}

#[inline(always)]
fn load<const STEP: u8, const N: usize>(
    s: &mut State,
    m: &mut View<'_>,
    op: &Op,
    f: impl FnOnce([u8; N]) -> u32,
) -> Flow {
    let (address, next) = addresses::<STEP>(s, op, op.rs2());
    let Some(bytes) = s.load(m, address) else { return Flow::Load };
    // A base of x0 stays 0.
    if op.rs1() != 0 {
        s.set_word(op.rs1(), next);
    }
    s.set_word(op.rd(), f(bytes));
    Flow::Next
}

#[inline(always)]
fn store<const STEP: u8, const N: usize>(s: &mut State, m: &mut View<'_>, op: &Op, bytes: [u8; N]) -> Flow {
    let (address, next) = addresses::<STEP>(s, op, op.rs3());
    if s.store(m, address, bytes).is_none() {
        return Flow::Store;
    }
    if op.rs1() != 0 {
        s.set_word(op.rs1(), next);
    }
    Flow::Next
}

pub fn lb<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load::<STEP, 1>(s, m, op, |bytes| i8::from_le_bytes(bytes) as u32)
}

pub fn lbu<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load::<STEP, 1>(s, m, op, |bytes| bytes[0].into())
}

pub fn lh<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load::<STEP, 2>(s, m, op, |bytes| i16::from_le_bytes(bytes) as u32)
}

pub fn lhu<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load::<STEP, 2>(s, m, op, |bytes| u16::from_le_bytes(bytes).into())
}

pub fn lw<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load::<STEP, 4>(s, m, op, u32::from_le_bytes)
}

pub fn sb<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    store::<STEP, 1>(s, m, op, [s.word(op.rs2()) as u8])
}

pub fn sh<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    store::<STEP, 2>(s, m, op, (s.word(op.rs2()) as u16).to_le_bytes())
}

pub fn sw<const STEP: u8>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    store::<STEP, 4>(s, m, op, s.word(op.rs2()).to_le_bytes())
}
