//! RV32I control transfer, fences and environment instructions (RISC-V Unpriv. 2.5, 2.7, 2.8).

use super::{Flow, Op};
use crate::memory::View;
use crate::thread::Thread;

pub fn jal(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    t.set_x(op.rd, t.pc);
    t.pc = op.imm;
    Flow::Jump
}

pub fn jalr(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let target = t.x(op.rs1).wrapping_add(op.imm) & !1;
    t.set_x(op.rd, t.pc);
    t.pc = target;
    Flow::Jump
}

#[inline(always)]
fn branch(t: &mut Thread, op: &Op, condition: impl FnOnce(u32, u32) -> bool) -> Flow {
    if condition(t.x(op.rs1), t.x(op.rs2)) {
        t.pc = op.imm;
        Flow::Jump
    } else {
        Flow::Next
    }
}

pub fn beq(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    branch(t, op, |a, b| a == b)
}

pub fn bne(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    branch(t, op, |a, b| a != b)
}

pub fn blt(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    branch(t, op, |a, b| (a as i32) < b as i32)
}

pub fn bge(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    branch(t, op, |a, b| a as i32 >= b as i32)
}

pub fn bltu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    branch(t, op, |a, b| a < b)
}

pub fn bgeu(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    branch(t, op, |a, b| a >= b)
}

/// Accesses of a thread are seen in program order, so there is nothing to wait for; the accesses beside it synchronise.
pub fn fence(_: &mut Thread, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Next
}

pub fn ecall(_: &mut Thread, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Call
}

pub fn ebreak(_: &mut Thread, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Break
}

pub fn illegal(_: &mut Thread, _: &mut View<'_>, _: &Op) -> Flow {
    Flow::Illegal
}
