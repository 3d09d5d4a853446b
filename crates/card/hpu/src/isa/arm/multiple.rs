// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of several registers (A5.5, A7.6): LDM, STM, VLDM, VSTM, VLDR and VSTR. Addresses must be multiples of
//! 4 (A3.2.1).
//!
//! A load writes no register before all its accesses succeeded, and repeating a store is harmless, so that an instruction
//! that stops before a watched word can be executed again.

use super::fields::{PC, Word, set_single, single};
use super::memory::is_misaligned;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Returns the first address of an LDM or STM and the value of the base register after it.
#[inline(always)]
fn range(base: u32, w: Word, bytes: u32) -> (u32, u32) {
    let (before, upwards) = (w.bit(24), w.bit(23));
    let first = if upwards { base } else { base.wrapping_sub(bytes) };
    let after = if upwards { base.wrapping_add(bytes) } else { first };
    (if before == upwards { first.wrapping_add(4) } else { first }, after)
}

/// LDM; the immediate is the instruction. With the pc in its list it jumps.
pub fn ldm<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let list = w.field(0, 16);
    let count = list.count_ones();
    let (first, after) = range(s.word(op.registers[0]), w, 4 * count);
    if is_misaligned(m, first, 4, 4 * count) {
        return Flow::Misaligned;
    }
    let mut values = [0; 16];
    for (at, value) in values.iter_mut().take(count as usize).enumerate() {
        match s.load_from::<AT_HAND, 4>(m, first.wrapping_add(4 * at as u32)) {
            Some(bytes) => *value = u32::from_le_bytes(bytes),
            None => return Flow::Load,
        }
    }
    s.count_accesses(count - 1);
    if w.bit(21) {
        s.set_word(op.registers[0], after);
    }
    let mut rest = list;
    for value in values.into_iter().take(count as usize) {
        let register = rest.trailing_zeros() as u8;
        rest &= rest - 1;
        if register == PC {
            return super::control::jump(s, value);
        }
        s.set_word(register, value);
    }
    Flow::Next
}

/// STM; the immediate is the instruction.
pub fn stm<const AT_HAND: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let mut rest = w.field(0, 16);
    let count = rest.count_ones();
    let (first, after) = range(s.word(op.registers[0]), w, 4 * count);
    if is_misaligned(m, first, 4, 4 * count) {
        return Flow::Misaligned;
    }
    for at in 0..count {
        let value = s.word(rest.trailing_zeros() as u8);
        rest &= rest - 1;
        if s.store_to::<AT_HAND, 4>(m, first.wrapping_add(4 * at), value.to_le_bytes()).is_none() {
            return Flow::Store;
        }
    }
    s.count_accesses(count - 1);
    if w.bit(21) {
        s.set_word(op.registers[0], after);
    }
    Flow::Next
}

/// VLDR and VSTR: register 0 is the base, register 2 the floating-point register, the immediate the offset.
pub fn vldr<const AT_HAND: bool, const DOUBLE: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let address = s.word(op.registers[0]).wrapping_add(op.imm);
    if is_misaligned(m, address, 4, if DOUBLE { 8 } else { 4 }) {
        return Flow::Misaligned;
    }
    if DOUBLE {
        let Some(bytes) = s.load_from::<AT_HAND, 8>(m, address) else { return Flow::Load };
        s.set_wide(op.registers[2], u64::from_le_bytes(bytes));
    } else {
        let Some(bytes) = s.load_from::<AT_HAND, 4>(m, address) else { return Flow::Load };
        set_single(s, op.registers[2], u32::from_le_bytes(bytes));
    }
    Flow::Next
}

pub fn vstr<const AT_HAND: bool, const DOUBLE: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let address = s.word(op.registers[0]).wrapping_add(op.imm);
    if is_misaligned(m, address, 4, if DOUBLE { 8 } else { 4 }) {
        return Flow::Misaligned;
    }
    let done = if DOUBLE {
        s.store_to::<AT_HAND, 8>(m, address, s.wide(op.registers[2]).to_le_bytes())
    } else {
        s.store_to::<AT_HAND, 4>(m, address, single(s, op.registers[2]).to_le_bytes())
    };
    if done.is_none() { Flow::Store } else { Flow::Next }
}

/// Returns the first address, the first register, the number of registers and the base register after a VLDM or VSTM.
fn block<const DOUBLE: bool>(s: &State, w: Word) -> (u32, u8, u32, u32) {
    let (count, bytes) = if DOUBLE { (w.field(1, 7), 8) } else { (w.field(0, 8), 4) };
    let base = s.word(w.register(16));
    let size = bytes * count;
    let (first, after) = match w.bit(23) {
        true => (base, base.wrapping_add(size)),
        false => (base.wrapping_sub(size), base.wrapping_sub(size)),
    };
    (first, if DOUBLE { w.dd() } else { w.sd() }, count, after)
}

/// VLDM; the immediate is the instruction.
pub fn vldm<const DOUBLE: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (first, register, count, after) = block::<DOUBLE>(s, w);
    let bytes = if DOUBLE { 8 } else { 4 };
    if is_misaligned(m, first, 4, bytes * count) {
        return Flow::Misaligned;
    }
    let mut values = [0; 32];
    for (at, value) in values.iter_mut().take(count as usize).enumerate() {
        let address = first.wrapping_add(bytes * at as u32);
        let loaded = if DOUBLE {
            s.load(m, address).map(u64::from_le_bytes)
        } else {
            s.load(m, address).map(|bytes| u64::from(u32::from_le_bytes(bytes)))
        };
        match loaded {
            Some(loaded) => *value = loaded,
            None => return Flow::Load,
        }
    }
    s.count_accesses(count - 1);
    for (register, value) in (register..).zip(values).take(count as usize) {
        if DOUBLE {
            s.set_wide(register, value);
        } else {
            set_single(s, register, value as u32);
        }
    }
    if w.bit(21) {
        s.set_word(w.register(16), after);
    }
    Flow::Next
}

/// VSTM; the immediate is the instruction.
pub fn vstm<const DOUBLE: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (first, register, count, after) = block::<DOUBLE>(s, w);
    let bytes = if DOUBLE { 8 } else { 4 };
    if is_misaligned(m, first, 4, bytes * count) {
        return Flow::Misaligned;
    }
    for at in 0..count {
        let (address, register) = (first.wrapping_add(bytes * at), register + at as u8);
        let done = if DOUBLE {
            s.store(m, address, s.wide(register).to_le_bytes())
        } else {
            s.store(m, address, single(s, register).to_le_bytes())
        };
        if done.is_none() {
            return Flow::Store;
        }
    }
    s.count_accesses(count - 1);
    if w.bit(21) {
        s.set_word(w.register(16), after);
    }
    Flow::Next
}
