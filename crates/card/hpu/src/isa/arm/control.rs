// SPDX-License-Identifier: Apache-2.0
//! Branches, commands, hints, and access to the flags.

use super::fields::{GE, LR, Q, Word};
use super::flags::{apsr, passes, set_nzcv};
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Jumps to an address. Bit 0 would select Thumb, and bit 1 has no instruction of A32.
#[inline(always)]
pub fn jump(s: &mut State, target: u32) -> Flow {
    if target & 3 != 0 {
        return Flow::Illegal;
    }
    s.pc = target;
    Flow::Jump
}

/// B with condition `CONDITION`.
pub fn branch<const CONDITION: u32>(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    if passes(s, CONDITION) {
        s.pc = op.imm;
        return Flow::Jump;
    }
    Flow::Next
}

/// BL. The instruction ends its block, so the pc is the address after it.
pub fn bl(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    s.set_word(LR, s.pc);
    s.pc = op.imm;
    Flow::Jump
}

/// BX.
pub fn bx(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let target = s.word(op.registers[0]);
    jump(s, target)
}

/// BLX with a register.
pub fn blx(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let (target, link) = (s.word(op.registers[0]), s.pc);
    let flow = jump(s, target);
    if flow == Flow::Jump {
        s.set_word(LR, link);
    }
    flow
}

pub fn svc(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Command
}

pub fn illegal(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Illegal
}

pub fn trap(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Break
}

/// Hints, preloads and barriers.
pub fn nop(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Next
}

/// MRS of APSR.
pub fn mrs(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let value = apsr(s);
    s.set_word(Word(op.imm).register(12), value);
    Flow::Next
}

/// MSR of APSR, from an immediate or a register.
pub fn msr(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let w = Word(op.imm);
    let value = if w.bit(25) { super::fields::expanded(w.field(0, 12)) } else { s.word(w.register(0)) };
    if w.bit(19) {
        set_nzcv(s, value >> 28);
        s.set_word(Q, value >> 27 & 1);
    }
    if w.bit(18) {
        s.set_word(GE, value >> 16 & 15);
    }
    Flow::Next
}
