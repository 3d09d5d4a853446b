//! A (RISC-V Unpriv. 13). The engine runs these one at a time, in the order of simulated time, so each is atomic.

use super::{Flow, Op};
use crate::memory::View;
use crate::thread::Thread;

/// The word at `rs1`; a failed or misaligned access is the error.
fn read(t: &Thread, m: &mut View<'_>, op: &Op) -> Result<(u32, u32), Flow> {
    let address = t.x(op.rs1);
    if !address.is_multiple_of(4) {
        m.denied = (address, 4);
        return Err(Flow::Misaligned);
    }
    let bytes = m.load(address).ok_or(Flow::Load)?;
    Ok((address, u32::from_le_bytes(bytes)))
}

fn modify(t: &mut Thread, m: &mut View<'_>, op: &Op, f: impl FnOnce(u32, u32) -> u32) -> Flow {
    let (address, old) = match read(t, m, op) {
        Ok(word) => word,
        Err(flow) => return flow,
    };
    let new = f(old, t.x(op.rs2));
    if m.store(address, new.to_le_bytes()).is_none() {
        return Flow::Store;
    }
    t.set_x(op.rd, old);
    Flow::Next
}

pub fn lr(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let (address, value) = match read(t, m, op) {
        Ok(word) => word,
        Err(flow) => return flow,
    };
    t.reservation = Some((address, value));
    t.set_x(op.rd, value);
    Flow::Next
}

/// Succeeds when the word still holds what the thread's last LR read there. Unlike a true reservation that lets a word
/// pass that was changed and changed back in between (ABA); a compare-and-swap, which is what compilers make of LR/SC,
/// cannot tell.
pub fn sc(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    let word = match read(t, m, op) {
        Ok(word) => word,
        Err(flow) => return flow,
    };
    let success = t.reservation.take() == Some(word);
    if success && m.store(word.0, t.x(op.rs2).to_le_bytes()).is_none() {
        return Flow::Store;
    }
    t.set_x(op.rd, u32::from(!success));
    Flow::Next
}

pub fn amoswap(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, |_, b| b)
}

pub fn amoadd(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, u32::wrapping_add)
}

pub fn amoxor(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, |a, b| a ^ b)
}

pub fn amoand(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, |a, b| a & b)
}

pub fn amoor(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, |a, b| a | b)
}

pub fn amomin(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, |a, b| (a as i32).min(b as i32) as u32)
}

pub fn amomax(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, |a, b| (a as i32).max(b as i32) as u32)
}

pub fn amominu(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, u32::min)
}

pub fn amomaxu(t: &mut Thread, m: &mut View<'_>, op: &Op) -> Flow {
    modify(t, m, op, u32::max)
}
