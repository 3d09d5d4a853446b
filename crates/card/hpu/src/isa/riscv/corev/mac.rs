// SPDX-License-Identifier: Apache-2.0
//! Multiplication and multiply-accumulate (xcvmac).

use super::super::fields::Fields;
use super::alu::normalize;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

pub fn mac(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let product = s.word(op.rs1()).wrapping_mul(s.word(op.rs2()));
    s.set_word(op.rd(), s.word(op.rd()).wrapping_add(product));
    Flow::Next
}

pub fn msu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let product = s.word(op.rs1()).wrapping_mul(s.word(op.rs2()));
    s.set_word(op.rd(), s.word(op.rd()).wrapping_sub(product));
    Flow::Next
}

/// Computes the product of the low or high half-words, optionally adds `rd` and rounds, and shifts right.
pub fn halves<const ADD: bool, const HIGH: bool, const ROUND: bool, const SIGNED: bool>(
    s: &mut State,
    _: &mut View<'_>,
    op: &Op,
) -> Flow {
    let half = |value: u32| {
        let half = if HIGH { value >> 16 } else { value & 0xffff };
        if SIGNED { half as i16 as u32 } else { half }
    };
    let product = half(s.word(op.rs1())).wrapping_mul(half(s.word(op.rs2())));
    let sum = if ADD { product.wrapping_add(s.word(op.rd())) } else { product };
    s.set_word(op.rd(), normalize::<ROUND, SIGNED>(sum, op.imm));
    Flow::Next
}
