// SPDX-License-Identifier: Apache-2.0
//! Zicsr (RISC-V Unpriv. 7): the counters of Zicntr without `time` (8), and `frm` and `fflags` of floating point (21.2)
//! as far as modelled. Rounding is always to nearest, and exception flags are not recorded, so programs can clear but
//! not read them.

use super::corev;
use super::fields::{Fields, SINK};
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

const FFLAGS: u32 = 0x001;
const FRM: u32 = 0x002;
const FCSR: u32 = 0x003;
const CYCLE: u32 = 0xc00;
const INSTRET: u32 = 0xc02;
const CYCLEH: u32 = 0xc80;
const INSTRETH: u32 = 0xc82;

/// Returns true if the control register belongs to floating point.
pub fn is_float(number: u32) -> bool {
    matches!(number, FFLAGS | FRM | FCSR)
}

/// Returns true if the control register belongs to the hardware loops of CORE-V.
pub fn is_loop(number: u32) -> bool {
    matches!(number, 0xcc0..=0xcc2 | 0xcc4..=0xcc6)
}

/// Reads control register `op.imm` into `rd`. With `write`, writes the value that `new` computes from the old one.
fn access(s: &mut State, op: &Op, write: bool, new: impl FnOnce(u32) -> u32) -> Flow {
    let number = op.imm & 0xfff;
    let old = match number {
        CYCLE => s.cycles() as u32,
        CYCLEH => (s.cycles() >> 32) as u32,
        INSTRET => s.instructions() as u32,
        INSTRETH => (s.instructions() >> 32) as u32,
        FRM => 0,
        FFLAGS | FCSR if op.rd() == SINK => 0,
        _ => match corev::control_register(s, number) {
            Some(value) => value,
            None => return Flow::Illegal,
        },
    };
    if write && (!is_float(number) || new(old) != 0) {
        return Flow::Illegal;
    }
    s.set_word(op.rd(), old);
    Flow::Next
}

pub fn csrrw(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.rs1());
    access(s, op, true, |_| value)
}

pub fn csrrs(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.rs1());
    access(s, op, op.rs1() != 0, |old| old | value)
}

pub fn csrrc(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = s.word(op.rs1());
    access(s, op, op.rs1() != 0, |old| old & !value)
}

pub fn csrrwi(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    access(s, op, true, |_| op.imm >> 12)
}

pub fn csrrsi(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    access(s, op, op.imm >> 12 != 0, |old| old | op.imm >> 12)
}

pub fn csrrci(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    access(s, op, op.imm >> 12 != 0, |old| old & !(op.imm >> 12))
}
