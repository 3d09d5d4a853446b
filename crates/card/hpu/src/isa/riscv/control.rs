// SPDX-License-Identifier: Apache-2.0
//! RV32I control transfer, fences and environment instructions (RISC-V Unpriv. 2.5, 2.7, 2.8).

use super::fields::Fields;
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

pub fn jal(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    s.set_word(op.rd(), s.pc);
    s.pc = op.imm;
    Flow::Jump
}

pub fn jalr(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let target = s.word(op.rs1()).wrapping_add(op.imm) & !1;
    s.set_word(op.rd(), s.pc);
    s.pc = target;
    Flow::Jump
}

#[inline(always)]
fn branch(s: &mut State, op: &Op, condition: impl FnOnce(u32, u32) -> bool) -> Flow {
    if condition(s.word(op.rs1()), s.word(op.rs2())) {
        s.pc = op.imm;
        Flow::Jump
    } else {
        Flow::Next
    }
}

pub fn beq(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, |a, b| a == b)
}

pub fn bne(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, |a, b| a != b)
}

pub fn blt(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, |a, b| (a as i32) < b as i32)
}

pub fn bge(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, |a, b| a as i32 >= b as i32)
}

pub fn bltu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, |a, b| a < b)
}

pub fn bgeu(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    branch(s, op, |a, b| a >= b)
}

/// No operation: other threads see a thread's accesses in program order, and the accesses next to the fence
/// synchronise.
pub fn fence(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Next
}

pub fn ecall(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Command
}

pub fn ebreak(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Break
}

pub fn illegal(_: &mut State, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Illegal
}
