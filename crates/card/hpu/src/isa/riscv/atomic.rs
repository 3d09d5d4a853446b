// SPDX-License-Identifier: Apache-2.0
//! A (RISC-V Unpriv. 13). The engine runs these instructions one at a time, in the order of simulated time, so each is
//! atomic.

use super::fields::Fields;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Reads the word at `rs1`. Returns its address and value.
///
/// # Errors
/// Returns the flow of the instruction if the access fails or is misaligned.
fn read(s: &mut State, m: &mut View<'_>, op: &Op) -> Result<(u32, u32), Flow> {
    let address = s.word(op.rs1());
    if !address.is_multiple_of(4) {
        m.deny(address, 4);
        return Err(Flow::Misaligned);
    }
    let bytes = s.load(m, address).ok_or(Flow::Load)?;
    Ok((address, u32::from_le_bytes(bytes)))
}

fn modify(s: &mut State, m: &mut View<'_>, op: &Op, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let (address, old) = match read(s, m, op) {
        Ok(word) => word,
        Err(flow) => return flow,
    };
    let new = f(old, s.word(op.rs2()));
    if s.store(m, address, new.to_le_bytes()).is_none() {
        return Flow::Store;
    }
    s.set_word(op.rd(), old);
    Flow::Next
}

pub fn lr(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let (address, value) = match read(s, m, op) {
        Ok(word) => word,
        Err(flow) => return flow,
    };
    s.reservation = Some((address, value.into()));
    s.set_word(op.rd(), value);
    Flow::Next
}

/// Succeeds if the word still has the value of the thread's latest LR. Unlike a true reservation, this misses a word
/// that changes and changes back (ABA); so does the compare-and-swap that compilers build from LR and SC.
pub fn sc(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let word = match read(s, m, op) {
        Ok(word) => word,
        Err(flow) => return flow,
    };
    let success = s.reservation.take() == Some((word.0, word.1.into()));
    let value = s.word(op.rs2());
    if success && s.store(m, word.0, value.to_le_bytes()).is_none() {
        return Flow::Store;
    }
    s.set_word(op.rd(), u32::from(!success));
    Flow::Next
}

pub fn amoswap(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, |_, b| b)
}

pub fn amoadd(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, u32::wrapping_add)
}

pub fn amoxor(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, |a, b| a ^ b)
}

pub fn amoand(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, |a, b| a & b)
}

pub fn amoor(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, |a, b| a | b)
}

pub fn amomin(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, |a, b| (a as i32).min(b as i32) as u32)
}

pub fn amomax(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, |a, b| (a as i32).max(b as i32) as u32)
}

pub fn amominu(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, u32::min)
}

pub fn amomaxu(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    modify(s, m, op, u32::max)
}
