// SPDX-License-Identifier: Apache-2.0
//! Media and saturating instructions (A5.2.6, A5.4).

use super::fields::{GE, Q, Word};
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Returns the values of Rn and Rm.
fn pair(s: &State, w: Word) -> (u32, u32) {
    (s.word(w.register(16)), s.word(w.register(0)))
}

/// Clamps to `bits` bits with sign; sets Q if the value changes.
fn saturate(s: &mut State, value: i64, bits: u32) -> i64 {
    let most = (1_i64 << (bits - 1)) - 1;
    let clamped = value.clamp(-most - 1, most);
    if clamped != value {
        s.set_word(Q, 1);
    }
    clamped
}

/// QADD, QSUB (bit 21), QDADD and QDSUB (bit 22).
pub fn qadd(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (n, m) = pair(s, w);
    let (n, m) = (i64::from(n as i32), i64::from(m as i32));
    let n = if w.bit(22) { saturate(s, 2 * n, 32) } else { n };
    let result = saturate(s, if w.bit(21) { m - n } else { m + n }, 32);
    s.set_word(w.register(12), result as u32);
    Flow::Next
}

/// SSAT and USAT (bit 22).
pub fn sat(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (value, amount) = (s.word(w.register(0)), w.field(7, 5));
    let value = if w.bit(6) { value as i32 >> if amount == 0 { 31 } else { amount } } else { (value << amount) as i32 };
    let result = clamp(s, w, value, w.field(16, 5));
    s.set_word(w.register(12), result);
    Flow::Next
}

/// Clamps to the range of SSAT or, if bit 22 is set, USAT.
fn clamp(s: &mut State, w: Word, value: i32, field: u32) -> u32 {
    let value = i64::from(value);
    let (least, most) = if w.bit(22) { (0, (1_i64 << field) - 1) } else { (-1_i64 << field, (1_i64 << field) - 1) };
    let clamped = value.clamp(least, most);
    if clamped != value {
        s.set_word(Q, 1);
    }
    clamped as u32
}

/// SSAT16 and USAT16 (bit 22).
pub fn sat16(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = s.word(w.register(0));
    let low = clamp(s, w, i32::from(value as i16), w.field(16, 4)) & 0xffff;
    let high = clamp(s, w, i32::from((value >> 16) as i16), w.field(16, 4));
    s.set_word(w.register(12), high << 16 | low);
    Flow::Next
}

/// PKHBT and PKHTB (bit 6).
pub fn pkh(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (n, m) = pair(s, w);
    let amount = w.field(7, 5);
    let result = if w.bit(6) {
        n & 0xffff_0000 | (m as i32 >> if amount == 0 { 31 } else { amount }) as u32 & 0xffff
    } else {
        m << amount & 0xffff_0000 | n & 0xffff
    };
    s.set_word(w.register(12), result);
    Flow::Next
}

pub fn sel(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (n, m) = pair(s, w);
    let flags = s.word(GE);
    let mask = (0..4).filter(|lane| flags >> lane & 1 == 1).fold(0, |mask, lane| mask | 0xff << (8 * lane));
    s.set_word(w.register(12), n & mask | m & !mask);
    Flow::Next
}

/// Extensions with addition: S or U (bit 22), of two bytes (bits 21 to 20: 0), a byte (2) or a half-word (3). The addend is
/// absent if it is `r15`.
pub fn extend(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = s.word(w.register(0)).rotate_right(8 * w.field(10, 2));
    let base = if w.register(16) == 15 { 0 } else { s.word(w.register(16)) };
    let byte = |value: u32| if w.bit(22) { value & 0xff } else { i32::from(value as i8) as u32 };
    let result = match w.field(20, 2) {
        0 => {
            let low = base.wrapping_add(byte(value)) & 0xffff;
            let high = (base >> 16).wrapping_add(byte(value >> 16));
            high << 16 | low
        }
        2 => base.wrapping_add(byte(value)),
        _ if w.bit(22) => base.wrapping_add(value & 0xffff),
        _ => base.wrapping_add(i32::from(value as i16) as u32),
    };
    s.set_word(w.register(12), result);
    Flow::Next
}

/// Parallel additions and subtractions (A5.4.1, A5.4.2): signed, saturating or halving in bits 21 to 20, unsigned in bit 22,
/// and the operation in bits 7 to 5.
pub fn parallel(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (n, m) = pair(s, w);
    let (kind, unsigned) = (w.field(20, 2), w.bit(22));
    let bits = if w.field(5, 3) >= 4 { 8 } else { 16 };
    let lane = |value: u32, at: u32| {
        let raw = i64::from(value >> (at * bits)) & ((1 << bits) - 1);
        if unsigned { raw } else { raw << (64 - bits) >> (64 - bits) }
    };
    let (mut result, mut flags) = (0, 0);
    for at in 0..32 / bits {
        // ASX and SAX take the other half of Rm.
        let (subtracts, other) = match w.field(5, 3) {
            0 | 4 => (false, at),
            1 => (at == 0, 1 - at),
            2 => (at == 1, 1 - at),
            _ => (true, at),
        };
        let (a, b) = (lane(n, at), lane(m, other));
        let sum = if subtracts { a - b } else { a + b };
        let value = match (kind, unsigned) {
            (1, false) => {
                flags |= u32::from(sum >= 0) << at;
                sum
            }
            (1, true) => {
                flags |= u32::from(if subtracts { sum >= 0 } else { sum >= 1 << bits }) << at;
                sum
            }
            (2, false) => sum.clamp(-1 << (bits - 1), (1 << (bits - 1)) - 1),
            (2, true) => sum.clamp(0, (1 << bits) - 1),
            _ => sum >> 1,
        };
        result |= (value as u32 & (u32::MAX >> (32 - bits))) << (at * bits);
    }
    if kind == 1 {
        let flags = if bits == 8 { flags } else { ((flags & 1) * 3) | ((flags >> 1) * 12) };
        s.set_word(GE, flags);
    }
    s.set_word(w.register(12), result);
    Flow::Next
}

/// USADA8; without an addend, in `r15`, USAD8.
pub fn usada8(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let (a, b) = (s.word(w.register(0)).to_le_bytes(), s.word(w.register(8)).to_le_bytes());
    let sum: u32 = a.iter().zip(b).map(|(a, b)| u32::from(a.abs_diff(b))).sum();
    let base = if w.register(12) == 15 { 0 } else { s.word(w.register(12)) };
    s.set_word(w.register(16), base.wrapping_add(sum));
    Flow::Next
}
