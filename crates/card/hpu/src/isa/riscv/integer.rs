// SPDX-License-Identifier: Apache-2.0
//! RV32I computation, loads and stores (RISC-V Unpriv. 2.4, 2.6) and M (12).

use super::fields::Fields;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

#[inline(always)]
fn register(s: &mut State, op: &Op, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()), s.word(op.rs2()));
    s.set_word(op.rd(), value);
    Flow::Next
}

#[inline(always)]
fn immediate(s: &mut State, op: &Op, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let value = f(s.word(op.rs1()), op.imm);
    s.set_word(op.rd(), value);
    Flow::Next
}

pub fn lui(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    s.set_word(op.rd(), op.imm);
    Flow::Next
}

pub fn addi(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, u32::wrapping_add)
}

pub fn slti(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, |a, b| u32::from((a as i32) < b as i32))
}

pub fn sltiu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, |a, b| u32::from(a < b))
}

pub fn xori(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, |a, b| a ^ b)
}

pub fn ori(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, |a, b| a | b)
}

pub fn andi(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, |a, b| a & b)
}

pub fn slli(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, u32::wrapping_shl)
}

pub fn srli(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, u32::wrapping_shr)
}

pub fn srai(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(s, op, |a, b| (a as i32).wrapping_shr(b) as u32)
}

pub fn add(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, u32::wrapping_add)
}

pub fn sub(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, u32::wrapping_sub)
}

pub fn sll(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, u32::wrapping_shl)
}

pub fn slt(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| u32::from((a as i32) < b as i32))
}

pub fn sltu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| u32::from(a < b))
}

pub fn xor(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| a ^ b)
}

pub fn srl(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, u32::wrapping_shr)
}

pub fn sra(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| (a as i32).wrapping_shr(b) as u32)
}

pub fn or(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| a | b)
}

pub fn and(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| a & b)
}

pub fn mul(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, u32::wrapping_mul)
}

pub fn mulh(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32)
}

pub fn mulhsu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| ((i64::from(a as i32) * i64::from(b)) >> 32) as u32)
}

pub fn mulhu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    register(s, op, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
}

#[inline(always)]
fn divide(s: &mut State, op: &Op, signed: bool, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    s.count_division(s.word(op.rs2()), signed);
    register(s, op, f)
}

// Division by zero and overflow: RISC-V Unpriv. table 11.

pub fn div(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    divide(s, op, true, |a, b| if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 })
}

pub fn divu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    divide(s, op, false, |a, b| a.checked_div(b).unwrap_or(u32::MAX))
}

pub fn rem(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    divide(s, op, true, |a, b| if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 })
}

pub fn remu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    divide(s, op, false, |a, b| a.checked_rem(b).unwrap_or(a))
}

// Loads and stores exist twice: for memory at hand, and for all memory (`Run::of_access`).

/// Loads the bytes of an instruction.
#[inline(always)]
pub(super) fn load<const AT_HAND: bool, const N: usize>(s: &mut State, m: &mut View<'_>, op: &Op) -> Option<[u8; N]> {
    let address = s.word(op.rs1()).wrapping_add(op.imm);
    s.load_from::<AT_HAND, N>(m, address)
}

#[inline(always)]
pub(super) fn store<const AT_HAND: bool, const N: usize>(
    s: &mut State,
    m: &mut View<'_>,
    op: &Op,
    bytes: [u8; N],
) -> Flow {
    let address = s.word(op.rs1()).wrapping_add(op.imm);
    match s.store_to::<AT_HAND, N>(m, address, bytes) {
        Some(()) => Flow::Next,
        None => Flow::Store,
    }
}

#[inline(always)]
fn load_x<const AT_HAND: bool, const N: usize>(
    s: &mut State,
    m: &mut View<'_>,
    op: &Op,
    f: impl FnOnce([u8; N]) -> u32,
) -> Flow {
    let Some(bytes) = load::<AT_HAND, N>(s, m, op) else { return Flow::Load };
    s.set_word(op.rd(), f(bytes));
    Flow::Next
}

pub fn lb<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load_x::<AT_HAND, _>(s, m, op, |bytes| i8::from_le_bytes(bytes) as u32)
}

pub fn lbu<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load_x::<AT_HAND, _>(s, m, op, |bytes| u8::from_le_bytes(bytes).into())
}

pub fn lh<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load_x::<AT_HAND, _>(s, m, op, |bytes| i16::from_le_bytes(bytes) as u32)
}

pub fn lhu<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load_x::<AT_HAND, _>(s, m, op, |bytes| u16::from_le_bytes(bytes).into())
}

pub fn lw<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    load_x::<AT_HAND, _>(s, m, op, u32::from_le_bytes)
}

pub fn sb<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.rs2()) as u8;
    store::<AT_HAND, _>(s, m, op, value.to_le_bytes())
}

pub fn sh<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.rs2()) as u16;
    store::<AT_HAND, _>(s, m, op, value.to_le_bytes())
}

pub fn sw<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.rs2());
    store::<AT_HAND, _>(s, m, op, value.to_le_bytes())
}
