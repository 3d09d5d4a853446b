//! RV32I computation, loads and stores (RISC-V Unpriv. 2.4, 2.6) and M (12).

use super::{Flow, Op};
use crate::memory::View;
use crate::thread::Thread;

#[inline(always)]
fn register(t: &mut Thread, op: &Op, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let value = f(t.x(op.rs1), t.x(op.rs2));
    t.set_x(op.rd, value);
    Flow::Next
}

#[inline(always)]
fn immediate(t: &mut Thread, op: &Op, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let value = f(t.x(op.rs1), op.imm);
    t.set_x(op.rd, value);
    Flow::Next
}

pub fn lui(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    t.set_x(op.rd, op.imm);
    Flow::Next
}

pub fn addi(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, u32::wrapping_add)
}

pub fn slti(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, |a, b| u32::from((a as i32) < b as i32))
}

pub fn sltiu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, |a, b| u32::from(a < b))
}

pub fn xori(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, |a, b| a ^ b)
}

pub fn ori(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, |a, b| a | b)
}

pub fn andi(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, |a, b| a & b)
}

pub fn slli(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, u32::wrapping_shl)
}

pub fn srli(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, u32::wrapping_shr)
}

pub fn srai(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    immediate(t, op, |a, b| (a as i32).wrapping_shr(b) as u32)
}

pub fn add(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, u32::wrapping_add)
}

pub fn sub(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, u32::wrapping_sub)
}

pub fn sll(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, u32::wrapping_shl)
}

pub fn slt(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| u32::from((a as i32) < b as i32))
}

pub fn sltu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| u32::from(a < b))
}

pub fn xor(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| a ^ b)
}

pub fn srl(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, u32::wrapping_shr)
}

pub fn sra(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| (a as i32).wrapping_shr(b) as u32)
}

pub fn or(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| a | b)
}

pub fn and(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| a & b)
}

pub fn mul(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, u32::wrapping_mul)
}

pub fn mulh(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| ((i64::from(a as i32) * i64::from(b as i32)) >> 32) as u32)
}

pub fn mulhsu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| ((i64::from(a as i32) * i64::from(b)) >> 32) as u32)
}

pub fn mulhu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    register(t, op, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32)
}

/// CV32E40P divides one bit a cycle, from the divisor's first significant bit on: 3 cycles, and one more for each
/// leading zero of an unsigned or positive divisor, or each leading sign bit but one of a negative one.
#[inline(always)]
fn divide(t: &mut Thread, op: &Op, signed: bool, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let divisor = t.x(op.rs2);
    t.data_cycles += match signed && (divisor as i32) < 0 {
        true => divisor.leading_ones() - 1,
        false => divisor.leading_zeros(),
    };
    register(t, op, f)
}

// Division by zero and overflow: RISC-V Unpriv. table 11.

pub fn div(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    divide(t, op, true, |a, b| if b == 0 { u32::MAX } else { (a as i32).wrapping_div(b as i32) as u32 })
}

pub fn divu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    divide(t, op, false, |a, b| a.checked_div(b).unwrap_or(u32::MAX))
}

pub fn rem(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    divide(t, op, true, |a, b| if b == 0 { a } else { (a as i32).wrapping_rem(b as i32) as u32 })
}

pub fn remu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    divide(t, op, false, |a, b| a.checked_rem(b).unwrap_or(a))
}

/// The bytes that a load reads. Each further word that it touches costs CV32E40P a cycle.
#[inline(always)]
pub(super) fn load<const N: usize>(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Option<[u8; N]> {
    let address = t.x(op.rs1).wrapping_add(op.imm);
    t.data_cycles += further_words(address, N);
    m.load(address)
}

#[inline(always)]
pub(super) fn store<const N: usize>(t: &mut Thread, m: &mut View<'_>, op: &Op, bytes: [u8; N]) -> Flow {
    let address = t.x(op.rs1).wrapping_add(op.imm);
    t.data_cycles += further_words(address, N);
    match m.store(address, bytes) {
        Some(()) => Flow::Next,
        None => Flow::Store,
    }
}

#[inline(always)]
pub(crate) fn further_words(address: u32, len: usize) -> u32 {
    ((address & 3) + len as u32 - 1) >> 2
}

#[inline(always)]
fn load_x<const N: usize>(t: &mut Thread, m: &mut View<'_>, op: &Op, f: impl FnOnce([u8; N]) -> u32) -> Flow {
    let Some(bytes) = load(t, m, op) else { return Flow::Load };
    t.set_x(op.rd, f(bytes));
    Flow::Next
}

pub fn lb(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    load_x(t, m, op, |bytes| i8::from_le_bytes(bytes) as u32)
}

pub fn lbu(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    load_x(t, m, op, |bytes| u8::from_le_bytes(bytes).into())
}

pub fn lh(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    load_x(t, m, op, |bytes| i16::from_le_bytes(bytes) as u32)
}

pub fn lhu(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    load_x(t, m, op, |bytes| u16::from_le_bytes(bytes).into())
}

pub fn lw(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    load_x(t, m, op, u32::from_le_bytes)
}

pub fn sb(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let value = t.x(op.rs2) as u8;
    store(t, m, op, value.to_le_bytes())
}

pub fn sh(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let value = t.x(op.rs2) as u16;
    store(t, m, op, value.to_le_bytes())
}

pub fn sw(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let value = t.x(op.rs2);
    store(t, m, op, value.to_le_bytes())
}
