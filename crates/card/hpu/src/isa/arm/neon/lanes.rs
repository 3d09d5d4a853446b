// SPDX-License-Identifier: Apache-2.0
//! Lanes of vectors.

use crate::architectural_state::State;

/// Returns the low `bits` bits, 1 to 64.
#[inline(always)]
pub fn low(value: u64, bits: u32) -> u64 {
    value & u64::MAX >> (64 - bits)
}

/// Returns a lane of `bits` bits with its sign.
#[inline(always)]
pub fn signed(value: u64, bits: u32) -> i64 {
    (value << (64 - bits)) as i64 >> (64 - bits)
}

/// Returns a lane as a number, with its sign if `is_signed`.
#[inline(always)]
pub fn number(value: u64, bits: u32, is_signed: bool) -> i128 {
    if is_signed { signed(value, bits).into() } else { low(value, bits).into() }
}

/// Clamps a number to a lane of `bits` bits.
#[inline(always)]
pub fn saturated(value: i128, bits: u32, is_signed: bool) -> u64 {
    let (least, most) =
        if is_signed { (-1_i128 << (bits - 1), (1_i128 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
    value.clamp(least, most) as u64
}

/// Computes each lane of `bits` bits of a double register from those of three registers.
#[inline(always)]
pub fn map3(bits: u32, a: u64, b: u64, c: u64, f: impl Fn(u64, u64, u64) -> u64) -> u64 {
    let mut result = 0;
    let mut at = 0;
    while at < 64 {
        result |= low(f(low(a >> at, bits), low(b >> at, bits), low(c >> at, bits)), bits) << at;
        at += bits;
    }
    result
}

/// Returns lane `at` of `bits` bits of a double register.
#[inline(always)]
pub fn lane(s: &State, register: u8, bits: u32, at: u32) -> u64 {
    low(s.wide(register) >> (bits * at), bits)
}

/// Writes a quad register.
#[inline(always)]
pub fn set_quad(s: &mut State, register: u8, value: u128) {
    s.set_wide(register, value as u64);
    s.set_wide(register + 1, (value >> 64) as u64);
}

/// Reads a quad register.
#[inline(always)]
pub fn quad(s: &State, register: u8) -> u128 {
    u128::from(s.wide(register)) | u128::from(s.wide(register + 1)) << 64
}

/// Returns a mask of all bits for true.
#[inline(always)]
pub fn all(condition: bool) -> u64 {
    u64::from(condition).wrapping_neg()
}
