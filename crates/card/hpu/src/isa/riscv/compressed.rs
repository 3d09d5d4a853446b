// SPDX-License-Identifier: Apache-2.0
//! C, with the loads and stores of F and D (RISC-V Unpriv. 27): every 16-bit instruction expands to a 32-bit one.

/// A 16-bit encoding. If two rows match a half-word, the first, more specific one applies.
struct Row {
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row in the tests of the table"))]
    name: &'static str,
    mask: u16,
    bits: u16,
    /// Expands to the 32-bit equivalent; `None` for reserved operands.
    expand: fn(Half) -> Option<u32>,
}

const fn row(name: &'static str, mask: u16, bits: u16, expand: fn(Half) -> Option<u32>) -> Row {
    Row { name, mask, bits, expand }
}

const F3: u16 = 0xe003;
const F3_RD: u16 = 0xef83;
const F3_12: u16 = 0xf003;
const F6: u16 = 0xec03;
const F4_6: u16 = 0xfc03;
const F6_2: u16 = 0xfc63;
const F4_RS2: u16 = 0xf07f;
const ALL: u16 = 0xffff;

const LOAD: u32 = 0x03;
const LOAD_FP: u32 = 0x07;
const OP_IMM: u32 = 0x13;
const STORE: u32 = 0x23;
const STORE_FP: u32 = 0x27;
const OP: u32 = 0x33;
const LUI: u32 = 0x37;
const BRANCH: u32 = 0x63;
const JALR: u32 = 0x67;
const JAL: u32 = 0x6f;
const EBREAK: u32 = 0x0010_0073;

const ROWS: &[Row] = &[
    row("c.addi4spn", F3, 0x0000, |h| nonzero(h.imm_4spn()).map(|imm| i(OP_IMM, 0, h.low(), 2, imm))),
    row("c.fld", F3, 0x2000, |h| Some(i(LOAD_FP, 3, h.low(), h.high(), h.imm_double()))),
    row("c.lw", F3, 0x4000, |h| Some(i(LOAD, 2, h.low(), h.high(), h.imm_word()))),
    row("c.flw", F3, 0x6000, |h| Some(i(LOAD_FP, 2, h.low(), h.high(), h.imm_word()))),
    row("c.fsd", F3, 0xa000, |h| Some(s(STORE_FP, 3, h.high(), h.low(), h.imm_double()))),
    row("c.sw", F3, 0xc000, |h| Some(s(STORE, 2, h.high(), h.low(), h.imm_word()))),
    row("c.fsw", F3, 0xe000, |h| Some(s(STORE_FP, 2, h.high(), h.low(), h.imm_word()))),
    row("c.addi", F3, 0x0001, |h| Some(i(OP_IMM, 0, h.rd(), h.rd(), h.imm6()))),
    row("c.jal", F3, 0x2001, |h| Some(j(1, h.imm_jump()))),
    row("c.li", F3, 0x4001, |h| Some(i(OP_IMM, 0, h.rd(), 0, h.imm6()))),
    row("c.addi16sp", F3_RD, 0x6101, |h| nonzero(h.imm_16sp()).map(|imm| i(OP_IMM, 0, 2, 2, imm))),
    row("c.lui", F3, 0x6001, |h| nonzero(h.imm6()).map(|imm| imm << 12 | h.rd() << 7 | LUI)),
    row("c.srli", F4_6, 0x8001, |h| Some(i(OP_IMM, 5, h.high(), h.high(), h.low_shift()))),
    row("c.srai", F4_6, 0x8401, |h| Some(i(OP_IMM, 5, h.high(), h.high(), 0x400 | h.low_shift()))),
    row("c.andi", F6, 0x8801, |h| Some(i(OP_IMM, 7, h.high(), h.high(), h.imm6()))),
    row("c.sub", F6_2, 0x8c01, |h| Some(r(0, 0x20, h.high(), h.high(), h.low()))),
    row("c.xor", F6_2, 0x8c21, |h| Some(r(4, 0, h.high(), h.high(), h.low()))),
    row("c.or", F6_2, 0x8c41, |h| Some(r(6, 0, h.high(), h.high(), h.low()))),
    row("c.and", F6_2, 0x8c61, |h| Some(r(7, 0, h.high(), h.high(), h.low()))),
    row("c.j", F3, 0xa001, |h| Some(j(0, h.imm_jump()))),
    row("c.beqz", F3, 0xc001, |h| Some(b(0, h.high(), h.imm_branch()))),
    row("c.bnez", F3, 0xe001, |h| Some(b(1, h.high(), h.imm_branch()))),
    row("c.slli", F3_12, 0x0002, |h| Some(i(OP_IMM, 1, h.rd(), h.rd(), h.low_shift()))),
    row("c.fldsp", F3, 0x2002, |h| Some(i(LOAD_FP, 3, h.rd(), 2, h.imm_double_sp()))),
    row("c.lwsp", F3, 0x4002, |h| nonzero(h.rd()).map(|rd| i(LOAD, 2, rd, 2, h.imm_word_sp()))),
    row("c.flwsp", F3, 0x6002, |h| Some(i(LOAD_FP, 2, h.rd(), 2, h.imm_word_sp()))),
    row("c.jr", F4_RS2, 0x8002, |h| nonzero(h.rd()).map(|rs1| i(JALR, 0, 0, rs1, 0))),
    row("c.mv", F3_12, 0x8002, |h| Some(r(0, 0, h.rd(), 0, h.rs2()))),
    row("c.ebreak", ALL, 0x9002, |_| Some(EBREAK)),
    row("c.jalr", F4_RS2, 0x9002, |h| Some(i(JALR, 0, 1, h.rd(), 0))),
    row("c.add", F3_12, 0x9002, |h| Some(r(0, 0, h.rd(), h.rd(), h.rs2()))),
    row("c.fsdsp", F3, 0xa002, |h| Some(s(STORE_FP, 3, 2, h.rs2(), h.imm_double_store_sp()))),
    row("c.swsp", F3, 0xc002, |h| Some(s(STORE, 2, 2, h.rs2(), h.imm_word_store_sp()))),
    row("c.fswsp", F3, 0xe002, |h| Some(s(STORE_FP, 2, 2, h.rs2(), h.imm_word_store_sp()))),
];

/// Expands `half` to a 32-bit instruction.
pub(super) fn expand(half: u16) -> Option<u32> {
    let row = ROWS.iter().find(|row| half & row.mask == row.bits)?;
    (row.expand)(Half(half))
}

fn nonzero(value: u32) -> Option<u32> {
    (value != 0).then_some(value)
}

/// A 16-bit instruction and its fields (table 38).
#[derive(Clone, Copy)]
struct Half(u16);

impl Half {
    /// Returns `bits` bits from bit `low`, moved to bit `to`.
    fn field(self, low: u32, bits: u32, to: u32) -> u32 {
        (u32::from(self.0) >> low & ((1 << bits) - 1)) << to
    }

    /// Returns the upper bits of an immediate, from bit `from`, that repeat its sign, bit 12.
    fn sign(self, from: u32) -> u32 {
        self.field(12, 1, 0).wrapping_neg() << from
    }

    fn rd(self) -> u32 {
        self.field(7, 5, 0)
    }

    fn rs2(self) -> u32 {
        self.field(2, 5, 0)
    }

    /// Returns one of x8–x15 from bit 2: rd' or rs2'.
    fn low(self) -> u32 {
        8 + self.field(2, 3, 0)
    }

    /// Returns one of x8–x15 from bit 7: rs1' or rd'.
    fn high(self) -> u32 {
        8 + self.field(7, 3, 0)
    }

    fn imm6(self) -> u32 {
        self.sign(5) | self.field(2, 5, 0)
    }

    /// Returns the shift amount of RV32, with bit 5 equal to 0.
    fn low_shift(self) -> u32 {
        self.field(2, 5, 0)
    }

    fn imm_4spn(self) -> u32 {
        self.field(11, 2, 4) | self.field(7, 4, 6) | self.field(6, 1, 2) | self.field(5, 1, 3)
    }

    fn imm_16sp(self) -> u32 {
        self.sign(9) | self.field(6, 1, 4) | self.field(5, 1, 6) | self.field(3, 2, 7) | self.field(2, 1, 5)
    }

    fn imm_word(self) -> u32 {
        self.field(10, 3, 3) | self.field(6, 1, 2) | self.field(5, 1, 6)
    }

    fn imm_double(self) -> u32 {
        self.field(10, 3, 3) | self.field(5, 2, 6)
    }

    fn imm_word_sp(self) -> u32 {
        self.field(12, 1, 5) | self.field(4, 3, 2) | self.field(2, 2, 6)
    }

    fn imm_double_sp(self) -> u32 {
        self.field(12, 1, 5) | self.field(5, 2, 3) | self.field(2, 3, 6)
    }

    fn imm_word_store_sp(self) -> u32 {
        self.field(9, 4, 2) | self.field(7, 2, 6)
    }

    fn imm_double_store_sp(self) -> u32 {
        self.field(10, 3, 3) | self.field(7, 3, 6)
    }

    fn imm_jump(self) -> u32 {
        self.sign(11)
            | self.field(11, 1, 4)
            | self.field(9, 2, 8)
            | self.field(8, 1, 10)
            | self.field(7, 1, 6)
            | self.field(6, 1, 7)
            | self.field(3, 3, 1)
            | self.field(2, 1, 5)
    }

    fn imm_branch(self) -> u32 {
        self.sign(8) | self.field(10, 2, 3) | self.field(5, 2, 6) | self.field(3, 2, 1) | self.field(2, 1, 5)
    }
}

fn r(f3: u32, f7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | OP
}

fn i(opcode: u32, f3: u32, rd: u32, rs1: u32, imm: u32) -> u32 {
    imm << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode
}

fn s(opcode: u32, f3: u32, rs1: u32, rs2: u32, imm: u32) -> u32 {
    (imm >> 5) << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | (imm & 31) << 7 | opcode
}

fn b(f3: u32, rs1: u32, imm: u32) -> u32 {
    let high = (imm >> 12 & 1) << 31 | (imm >> 5 & 63) << 25;
    high | rs1 << 15 | f3 << 12 | (imm >> 1 & 15) << 8 | (imm >> 11 & 1) << 7 | BRANCH
}

fn j(rd: u32, imm: u32) -> u32 {
    let low = (imm >> 1 & 0x3ff) << 21 | (imm >> 11 & 1) << 20;
    (imm >> 20 & 1) << 31 | low | (imm >> 12 & 0xff) << 12 | rd << 7 | JAL
}

#[cfg(test)]
mod tests {
    use super::super::table::EXTENSIONS;
    use super::*;

    #[test]
    fn encodings_overlap_only_where_one_refines_the_other() {
        for (i, a) in ROWS.iter().enumerate() {
            assert_eq!(a.bits & !a.mask, 0, "{}: bits outside of the mask", a.name);
            assert_ne!(a.bits & 3, 3, "{}: a 32-bit encoding", a.name);
            for b in &ROWS[i + 1..] {
                let common = a.mask & b.mask;
                let overlap = a.bits & common == b.bits & common;
                assert!(!overlap || common == b.mask, "{} and {} overlap", a.name, b.name);
            }
        }
    }

    #[test]
    fn every_expansion_is_an_instruction_of_the_table() {
        let expanded = (0..=u16::MAX).filter(|half| half & 3 != 3).filter_map(expand);
        let mut count = 0;
        for word in expanded {
            let mut rows = EXTENSIONS.iter().flat_map(|(_, rows)| *rows);
            assert!(rows.any(|row| row.matches(word)), "{word:#010x}");
            count += 1;
        }
        assert!(count > 30_000);
    }

    /// 16-bit instructions and their 32-bit equivalents, both as encoded by LLVM's assembler.
    #[rustfmt::skip]
    const ASSEMBLED: &[(u16, u32)] = &[
        (0x1fe8, 0x3fc1_0513),
        (0x0040, 0x0041_0413),
        (0x0024, 0x0081_0493),
        (0x0a9c, 0x1501_0793),
        (0x3fe8, 0x0f87_b507),
        (0x2520, 0x0485_3407),
        (0x5c68, 0x07c4_2503),
        (0x42dc, 0x0046_a783),
        (0x42bc, 0x0406_a783),
        (0x62fc, 0x0446_a787),
        (0xb4cc, 0x0ab4_b427),
        (0xc8ec, 0x04b4_aa23),
        (0xe8ec, 0x04b4_aa27),
        (0x0001, 0x0000_0013),
        (0x1f81, 0xfe0f_8f93),
        (0x0ffd, 0x01ff_8f93),
        (0x2ffd, 0x7fe0_00ef),
        (0x3001, 0x801f_f0ef),
        (0x5ffd, 0xfff0_0f93),
        (0x7101, 0xe001_0113),
        (0x617d, 0x1f01_0113),
        (0x6171, 0x1501_0113),
        (0x7f81, 0xfffe_0fb7),
        (0x6ffd, 0x0001_ffb7),
        (0x80fd, 0x01f4_d493),
        (0x84c5, 0x4114_d493),
        (0x9881, 0xfe04_f493),
        (0x88d5, 0x0154_f493),
        (0x8d1d, 0x40f5_0533),
        (0x8d3d, 0x00f5_4533),
        (0x8d5d, 0x00f5_6533),
        (0x8d7d, 0x00f5_7533),
        (0xab91, 0x5540_006f),
        (0xb46d, 0xaabf_f06f),
        (0xa46d, 0x2aa0_006f),
        (0xcffd, 0x0e07_8f63),
        (0xd381, 0xf007_80e3),
        (0xe44d, 0x0a04_1563),
        (0xe831, 0x0404_1a63),
        (0x0ffe, 0x01ff_9f93),
        (0x3ffe, 0x1f81_3f87),
        (0x2fd6, 0x1501_3f87),
        (0x5ffe, 0x0fc1_2f83),
        (0x4fd6, 0x0541_2f83),
        (0x7faa, 0x0a81_2f87),
        (0x8f82, 0x000f_8067),
        (0x8ffa, 0x01e0_0fb3),
        (0x9002, 0x0010_0073),
        (0x9f82, 0x000f_80e7),
        (0x9ffa, 0x01ef_8fb3),
        (0xbffe, 0x1ff1_3c27),
        (0xaafe, 0x15f1_3827),
        (0xdffe, 0x0ff1_2e23),
        (0xcafe, 0x05f1_2a23),
        (0xf57e, 0x0bf1_2427),
    ];

    #[test]
    fn expansions_are_what_an_assembler_says() {
        for (half, word) in ASSEMBLED {
            assert_eq!(expand(*half), Some(*word), "{half:#06x}");
        }
        // All zero; reserved operands (27.4, 27.5, table 40)
        for half in [0x0000, 0x0010 & 0x1c, 0x6101, 0x6001, 0x4002, 0x8002, 0x9c01, 0x9001] {
            assert_eq!(expand(half), None, "{half:#06x}");
        }
    }
}
