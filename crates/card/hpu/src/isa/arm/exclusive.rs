// SPDX-License-Identifier: Apache-2.0
//! Load-exclusive and store-exclusive (A3.4, A5.2.10). The engine runs these instructions one at a time, in the order of
//! simulated time, so each is atomic.
//!
//! A store succeeds if the memory still has the value of the thread's latest load-exclusive. Unlike a true monitor, this
//! misses a value that changes and changes back (ABA); so does the compare-and-swap that compilers build from the pair.

use super::fields::Word;
use super::memory::is_misaligned;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Reads `N` bytes at the address in Rn.
fn read<const N: usize>(s: &mut State, m: &mut View<'_>, w: Word) -> Result<(u32, u64), Flow> {
    let address = s.word(w.register(16));
    if is_misaligned(m, address, N as u32, N as u32) {
        return Err(Flow::Misaligned);
    }
    let bytes: [u8; N] = s.load(m, address).ok_or(Flow::Load)?;
    let mut value = [0; 8];
    value[..N].copy_from_slice(&bytes);
    Ok((address, u64::from_le_bytes(value)))
}

/// LDREX and its forms of `N` bytes; LDREXD loads Rt and the register after it.
pub fn ldrex<const N: usize>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (address, value) = match read::<N>(s, m, w) {
        Ok(read) => read,
        Err(flow) => return flow,
    };
    s.reservation = Some((address, value));
    s.set_word(w.register(12), value as u32);
    if N == 8 {
        s.set_word(w.register(12) + 1, (value >> 32) as u32);
    }
    Flow::Next
}

/// STREX and its forms of `N` bytes: Rd is 0 if it stored Rt, otherwise 1.
pub fn strex<const N: usize>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let word = match read::<N>(s, m, w) {
        Ok(word) => word,
        Err(flow) => return flow,
    };
    let succeeds = s.reservation.take() == Some(word);
    let rt = w.register(0);
    let value = u64::from(s.word(rt)) | if N == 8 { u64::from(s.word(rt + 1)) << 32 } else { 0 };
    let bytes: [u8; N] = std::array::from_fn(|at| value.to_le_bytes()[at]);
    if succeeds && s.store(m, word.0, bytes).is_none() {
        return Flow::Store;
    }
    s.set_word(w.register(12), u32::from(!succeeds));
    Flow::Next
}

pub fn clrex(s: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    s.reservation = None;
    Flow::Next
}
