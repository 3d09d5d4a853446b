//! Zicsr (RISC-V Unpriv. 7): the counters of Zicntr without `time` (8), and of floating point `frm` and `fflags` (21.2) as
//! far as they can be right: rounding is to nearest, and exception flags are not recorded, so that they can be
//! cleared but not read.

use super::{Flow, Op};
use crate::memory::View;
use crate::thread::{SINK, Thread};

const FFLAGS: u32 = 0x001;
const FRM: u32 = 0x002;
const FCSR: u32 = 0x003;
const CYCLE: u32 = 0xc00;
const INSTRET: u32 = 0xc02;
const CYCLEH: u32 = 0xc80;
const INSTRETH: u32 = 0xc82;

/// Reads into `rd` unless that is `x0`, and writes what `new` makes of the old value, if anything.
fn access(t: &mut Thread, op: &Op, write: bool, new: impl FnOnce(u32) -> u32) -> Flow {
    let number = op.imm & 0xfff;
    let old = match number {
        CYCLE => t.cycles as u32,
        CYCLEH => (t.cycles >> 32) as u32,
        INSTRET => t.instructions as u32,
        INSTRETH => (t.instructions >> 32) as u32,
        FRM => 0,
        FFLAGS | FCSR if op.rd == SINK => 0,
        _ => return Flow::Illegal,
    };
    let writable = matches!(number, FFLAGS | FRM | FCSR);
    if write && (!writable || new(old) != 0) {
        return Flow::Illegal;
    }
    t.set_x(op.rd, old);
    Flow::Next
}

pub fn csrrw(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let value = t.x(op.rs1);
    access(t, op, true, |_| value)
}

pub fn csrrs(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let value = t.x(op.rs1);
    access(t, op, op.rs1 != 0, |old| old | value)
}

pub fn csrrc(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    let value = t.x(op.rs1);
    access(t, op, op.rs1 != 0, |old| old & !value)
}

pub fn csrrwi(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    access(t, op, true, |_| op.imm >> 12)
}

pub fn csrrsi(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    access(t, op, op.imm >> 12 != 0, |old| old | op.imm >> 12)
}

pub fn csrrci(t: &mut Thread, _: &mut View<'_>, op: &Op) -> Flow {
    access(t, op, op.imm >> 12 != 0, |old| old & !(op.imm >> 12))
}
