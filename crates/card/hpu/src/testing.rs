// SPDX-License-Identifier: Apache-2.0
//! RISC-V instruction encoders for tests and fuzzers, written from RISC-V Unpriv. 2.2–2.3 and apart from the decoder.

/// Argument register `a0`.
pub const A0: u32 = 10;
/// Argument register `a1`.
pub const A1: u32 = 11;
/// Argument register `a2`.
pub const A2: u32 = 12;
/// Argument register `a3`.
pub const A3: u32 = 13;
/// Argument register `a4`.
pub const A4: u32 = 14;
/// Argument register `a5`.
pub const A5: u32 = 15;
/// Stack pointer.
pub const SP: u32 = 2;
/// `ret`: returns to the caller.
pub const RET: u32 = 0x0000_8067;
/// `ecall`: calls the environment.
pub const ECALL: u32 = 0x0000_0073;
/// `nop`: no operation, for one cycle.
pub const NOP: u32 = 0x0000_0013;
/// `lui a5, 0x1c000`: the data segment.
pub const DATA_A5: u32 = 0x1c00_07b7;

/// Encodes an instruction of format R with functions `f3` and `f7`.
pub fn r(opcode: u32, f3: u32, f7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    f7 << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode
}

/// Encodes an instruction of format I.
///
/// # Panics
/// Panics if `imm` does not fit in 12 bits.
pub fn i(opcode: u32, f3: u32, rd: u32, rs1: u32, imm: i32) -> u32 {
    assert!((-2048..2048).contains(&imm));
    (imm as u32) << 20 | rs1 << 15 | f3 << 12 | rd << 7 | opcode
}

/// Encodes an instruction of format S, with the lower 12 bits of `imm`.
pub fn s(opcode: u32, f3: u32, rs1: u32, rs2: u32, imm: i32) -> u32 {
    let imm = imm as u32 & 0xfff;
    (imm >> 5) << 25 | rs2 << 20 | rs1 << 15 | f3 << 12 | (imm & 31) << 7 | opcode
}

/// `op rd, rs1, rs2` of opcode 0x33
pub fn op(f3: u32, f7: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    r(0x33, f3, f7, rd, rs1, rs2)
}

/// `divu rd, rs1, rs2`
pub fn divu(rd: u32, rs1: u32, rs2: u32) -> u32 {
    op(5, 1, rd, rs1, rs2)
}

/// `add rd, rs1, rs2`
pub fn add(rd: u32, rs1: u32, rs2: u32) -> u32 {
    op(0, 0, rd, rs1, rs2)
}

/// `mul rd, rs1, rs2`
pub fn mul(rd: u32, rs1: u32, rs2: u32) -> u32 {
    op(0, 1, rd, rs1, rs2)
}

/// `addi rd, rs1, imm`
pub fn addi(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x13, 0, rd, rs1, imm)
}

/// `lw rd, imm(rs1)`
pub fn lw(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x03, 2, rd, rs1, imm)
}

/// `sw rs2, imm(rs1)`
pub fn sw(rs2: u32, rs1: u32, imm: i32) -> u32 {
    s(0x23, 2, rs1, rs2, imm)
}

/// Encodes a branch by `offset` bytes on `f3`: 0 equal, 1 not equal, 4 less, 5 not less, 6 and 7 are 4 and 5 unsigned
pub fn branch(f3: u32, rs1: u32, rs2: u32, offset: i32) -> u32 {
    let o = offset as u32;
    (o >> 12 & 1) << 31
        | (o >> 5 & 63) << 25
        | rs2 << 20
        | rs1 << 15
        | f3 << 12
        | (o >> 1 & 15) << 8
        | (o >> 11 & 1) << 7
        | 0x63
}

/// `jal rd, offset`, with an offset in bytes
pub fn jal(rd: u32, offset: i32) -> u32 {
    let o = offset as u32;
    (o >> 20 & 1) << 31 | (o >> 1 & 0x3ff) << 21 | (o >> 11 & 1) << 20 | (o >> 12 & 0xff) << 12 | rd << 7 | 0x6f
}

/// `jalr rd, imm(rs1)`
pub fn jalr(rd: u32, rs1: u32, imm: i32) -> u32 {
    i(0x67, 0, rd, rs1, imm)
}

/// `csrrs rd, csr, x0`
pub fn csrr(rd: u32, csr: u32) -> u32 {
    csr << 20 | 2 << 12 | rd << 7 | 0x73
}
