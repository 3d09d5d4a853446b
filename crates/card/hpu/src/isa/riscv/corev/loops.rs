// SPDX-License-Identifier: Apache-2.0
//! Hardware loops (xcvhwlp). A body repeats without loop instructions: at its end, the counter is decremented and
//! execution continues at the first instruction of the body.

use super::super::fields::{Fields, SINK};
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op, Run};

/// Returns the number of the loop: the first register field.
#[inline(always)]
fn number(op: &Op) -> usize {
    usize::from(op.registers[0] & 1)
}

/// Sets the addresses of a loop, which must not change while the loop runs (user manual, "Hardware Loop constraints").
#[inline(always)]
fn set_addresses(s: &mut State, op: &Op, start: Option<u32>, end: Option<u32>) -> Flow {
    let hardware = &mut s.loops[number(op)];
    if hardware.count != 0 {
        return Flow::Illegal;
    }
    hardware.start = start.unwrap_or(hardware.start);
    hardware.end = end.unwrap_or(hardware.end);
    Flow::Next
}

pub fn starti(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    set_addresses(s, op, Some(op.imm), None)
}

pub fn start(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let start = s.word(op.rs1()) & !3;
    set_addresses(s, op, Some(start), None)
}

pub fn endi(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    set_addresses(s, op, None, Some(op.imm))
}

pub fn end(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    let end = s.word(op.rs1()) & !3;
    set_addresses(s, op, None, Some(end))
}

#[inline(always)]
fn set_count(s: &mut State, op: &Op, count: u32) -> Flow {
    s.loops[number(op)].count = count;
    Flow::Next
}

pub fn counti(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    set_count(s, op, op.imm)
}

pub fn count(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    set_count(s, op, s.word(op.rs1()))
}

/// Sets up a loop that ends at `op.imm`; the last two register fields are the distance to the end in words.
#[inline(always)]
fn set_up(s: &mut State, op: &Op, words: u32, count: u32) -> Flow {
    let start = op.imm.wrapping_sub(4 * words).wrapping_add(4);
    match set_addresses(s, op, Some(start), Some(op.imm)) {
        Flow::Next => set_count(s, op, count),
        flow => flow,
    }
}

/// Takes the distance from the second register field, and the count from the last two.
pub fn setupi(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    set_up(s, op, op.rs1().into(), u32::from(op.rs2()) | u32::from(op.rs3()) << 8)
}

/// Takes the count from the register of the second field, and the distance from the last two fields.
pub fn setup(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    set_up(s, op, u32::from(op.rs2()) | u32::from(op.rs3()) << 8, s.word(op.rs1()))
}

/// Executes the possible loop end at `op.imm`. Loop 0 is the inner loop.
pub fn loop_end(s: &mut State, _: &mut View<'_>, op: &Op) -> Flow {
    for hardware in &mut s.loops {
        if hardware.end == op.imm && hardware.count > 0 {
            hardware.count -= 1;
            if hardware.count > 0 {
                s.pc = hardware.start;
                return Flow::Jump;
            }
        }
    }
    Flow::Next
}

/// Returns the loop register behind a control register: start, end and count of loop 0 from 0xcc0, of loop 1 from
/// 0xcc4.
pub fn control_register(s: &State, number: u32) -> Option<u32> {
    let hardware = s.loops.get((number.checked_sub(0xcc0)? / 4) as usize)?;
    [Some(hardware.start), Some(hardware.end), Some(hardware.count), None][number as usize % 4]
}

/// Returns true if the body of a short form may be a loop: `bytes` start with the instruction at `pc`, and the body
/// ends `words` words after it. The body has at least three instructions, all word-aligned and 32 bits long, without
/// jumps and fences ("Hardware Loop constraints").
pub fn well_formed(bytes: &[u8], pc: u32, words: u32) -> bool {
    const FENCE: u32 = 0x0f;
    const BRANCHES: [u32; 3] = [0x63, 0x67, 0x6f];
    let body = bytes.get(4..4 * words as usize);
    let allowed = |word: &[u8]| {
        let word = u32::from_le_bytes([word[0], word[1], word[2], word[3]]);
        let (opcode, function) = (word & 0x7f, word >> 12 & 7);
        let on_immediate = opcode == 0x0b && function >= 6;
        word & 3 == 3 && !BRANCHES.contains(&opcode) && opcode != FENCE && !on_immediate
    };
    pc.is_multiple_of(4) && words >= 4 && body.is_some_and(|body| body.chunks_exact(4).all(allowed))
}

/// Returns the operation at the end of a body.
pub fn at_end(end: u32) -> Op {
    Op { run: Run::new(loop_end), imm: end, registers: [SINK, 0, 0, 0] }
}
