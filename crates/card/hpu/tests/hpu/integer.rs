// SPDX-License-Identifier: Apache-2.0
//! RV32I computation, loads and stores, and M.

use crate::card::{Card, result};
use hpu::testing::*;

const MIN: u32 = 0x8000_0000;
const MAX: u32 = 0x7fff_ffff;
const NEG: u32 = u32::MAX;

#[test]
fn register_operations() {
    // funct3, funct7, operands, result
    let cases = [
        (0, 0x00, 5, NEG, 4),
        (0, 0x00, MAX, 1, MIN),
        (0, 0x20, 0, 1, NEG),
        (0, 0x20, MIN, 1, MAX),
        (1, 0x00, 1, 33, 2),
        (1, 0x00, NEG, 31, MIN),
        (2, 0x00, MIN, MAX, 1),
        (2, 0x00, 1, NEG, 0),
        (3, 0x00, MIN, MAX, 0),
        (3, 0x00, 1, NEG, 1),
        (4, 0x00, 0xff00_ff00, 0x0ff0_0ff0, 0xf0f0_f0f0),
        (5, 0x00, MIN, 31, 1),
        (5, 0x00, MIN, 32, MIN),
        (5, 0x20, MIN, 31, NEG),
        (5, 0x20, MAX, 30, 1),
        (6, 0x00, 0xff00_ff00, 0x0ff0_0ff0, 0xfff0_fff0),
        (7, 0x00, 0xff00_ff00, 0x0ff0_0ff0, 0x0f00_0f00),
        // mul, mulh, mulhsu, mulhu
        (0, 1, 0x1234_5678, 0x9abc_def0, 0x242d_2080),
        (1, 1, MIN, MIN, 0x4000_0000),
        (1, 1, NEG, NEG, 0),
        (1, 1, NEG, 1, NEG),
        (2, 1, NEG, NEG, NEG),
        (2, 1, MIN, NEG, MIN),
        (2, 1, MAX, 2, 0),
        (3, 1, NEG, NEG, NEG - 1),
        (3, 1, MIN, 2, 1),
        // div, divu, rem, remu
        (4, 1, 7, NEG - 1, -3_i32 as u32),
        (4, 1, 7, 0, NEG),
        (4, 1, MIN, NEG, MIN),
        (5, 1, NEG, 2, MAX),
        (5, 1, 7, 0, NEG),
        (6, 1, -7_i32 as u32, 2, NEG),
        (6, 1, 7, -2_i32 as u32, 1),
        (6, 1, MIN, NEG, 0),
        (6, 1, -7_i32 as u32, 0, -7_i32 as u32),
        (7, 1, NEG, 10, 5),
        (7, 1, 7, 0, 7),
    ];
    for (f3, f7, a, b, expected) in cases {
        assert_eq!(result(&[op(f3, f7, A0, A0, A1)], [a, b, 0]), expected, "{f3} {f7:#x} {a:#x} {b:#x}");
    }
}

#[test]
fn immediate_operations() {
    let cases = [
        (0, -1, 0, NEG),
        (0, 2047, 1, 2048),
        (2, -1, MIN, 1),
        (2, -1, 0, 0),
        (3, -1, 5, 1),
        (3, 1, 0, 1),
        (4, -1, 0x1234_5678, 0xedcb_a987),
        (6, -2048, 1, 0xffff_f801),
        (7, -16, 0x1234_5678, 0x1234_5670),
        (1, 4, 0x1234_5678, 0x2345_6780),
        (5, 4, 0x8234_5678, 0x0823_4567),
        (5, 0x404, 0x8234_5678, 0xf823_4567),
    ];
    for (f3, imm, a, expected) in cases {
        assert_eq!(result(&[i(0x13, f3, A0, A0, imm)], [a, 0, 0]), expected, "{f3} {imm} {a:#x}");
    }
}

#[test]
fn upper_immediates() {
    // lui a0, 0xfffff; auipc a0, 0xfffff at PROGRAM + 4
    assert_eq!(result(&[0xffff_f537], [0; 3]), 0xffff_f000);
    assert_eq!(result(&[NOP, 0xffff_f517], [0; 3]), 0x1cff_f004);
}

#[test]
fn x0_stays_zero() {
    // addi x0, a0, 5; lui x0, 1; lw x0, 0(sp - 4); add a0, x0, x0
    let words = [addi(0, A0, 5), 0x0000_1037, lw(0, SP, -4), add(A0, 0, 0)];
    assert_eq!(result(&words, [7, 0, 0]), 0);
}

#[test]
fn loads_extend_by_kind_at_any_alignment() {
    let cases = [
        (0, 0, 0xffff_ff80),
        (4, 0, 0x80),
        (0, 1, 0x7f),
        (1, 2, 0xffff_ff01),
        (5, 2, 0xff01),
        (1, 3, 0x02ff),
        (2, 0, 0xff01_7f80),
        (2, 1, 0x02ff_017f),
        (2, 3, 0x0504_02ff),
    ];
    for (f3, offset, expected) in cases {
        let mut card = Card::new(&[DATA_A5, i(0x03, f3, A0, A5, offset), RET]);
        card.set(0, &[0x80, 0x7f, 0x01, 0xff, 0x02, 0x04, 0x05]);
        assert_eq!(card.run([0; 3]).0, hpu::Stop::Return(expected), "{f3} {offset}");
    }
}

#[test]
fn stores_write_their_width_only() {
    for (f3, expected) in [(0, 0xeeee_ee78), (1, 0xeeee_5678), (2, 0x1234_5678)] {
        let mut card = Card::new(&[DATA_A5, s(0x23, f3, A5, A0, 9), RET]);
        card.set(8, &[0xee; 8]);
        card.run([0x1234_5678, 0, 0]);
        assert_eq!((card.word(9), card.arena[8], card.arena[13]), (expected, 0xee, 0xee));
    }
}
