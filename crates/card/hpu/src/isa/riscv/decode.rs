// SPDX-License-Identifier: Apache-2.0
//! Decoder of RISC-V instructions.

use super::compressed;
use super::control::illegal;
use super::corev;
use super::extensions::{self, C, Extensions, F};
use super::fields::SINK;
use super::row::{Format, Row};
use super::table::EXTENSIONS;
use crate::op::{Access, Class, Decoded, Fence, LoopEnd, Offset, Op, RegisterSet, Run};

/// Bits of a fence (RISC-V Unpriv. 2.7): its predecessor set contains stores, or its successor set loads.
const AFTER_STORES: u32 = 1 << 24;
const BEFORE_LOADS: u32 = 1 << 21;

/// Decodes an instruction; see [`Isa::decode`](crate::isa::Isa::decode).
pub fn decode(bytes: &[u8], pc: u32, extensions: Extensions) -> Option<Decoded> {
    let half = u16::from_le_bytes(*bytes.first_chunk()?);
    let (word, length) = if half & 3 == 3 {
        (Some(u32::from_le_bytes(*bytes.first_chunk()?)), 4)
    } else {
        (compressed::expand(half).filter(|_| extensions.contain(C)), 2)
    };
    let decoded = word.and_then(|word| {
        let known = EXTENSIONS.iter().filter(|(extension, _)| extensions.contain(*extension));
        let row = known.flat_map(|(_, rows)| *rows).find(|row| row.matches(word))?;
        operands(row, word, pc, bytes, extensions)
    });
    let decoded = decoded.map(|decoded| Decoded { length, ..decoded });
    Some(decoded.unwrap_or(Decoded {
        op: Op { run: Run::new(illegal), imm: 0, registers: [SINK, 0, 0, 0] },
        class: Class::Trap,
        length,
        sources: RegisterSet::NONE,
        results: RegisterSet::NONE,
        access: Access::default(),
        target: None,
        fence: None,
        loop_end: None,
    }))
}

/// Reads the fields of an instruction (RISC-V Unpriv. 2.2, 2.3) at the start of `bytes`. Returns `None` if it names a
/// rounding mode or control register that the core lacks, writes a read-only control register (as `unimp` does), or
/// sets up an invalid hardware loop.
fn operands(row: &Row, word: u32, pc: u32, bytes: &[u8], extensions: Extensions) -> Option<Decoded> {
    let field = |low: u32, bits: u32| word >> low & ((1 << bits) - 1);
    let signed = word as i32;
    let [rd, rs1, rs2, rs3] = [field(7, 5), field(15, 5), field(20, 5), field(27, 5)].map(|r| r as u8);
    let imm_i = (signed >> 20) as u32;
    let imm_s = (signed >> 25 << 5) as u32 | field(7, 5);
    let imm_b = (signed >> 31 << 12) as u32 | field(7, 1) << 11 | field(25, 6) << 5 | field(8, 4) << 1;
    let imm_j = (signed >> 31 << 20) as u32 | field(12, 8) << 12 | field(20, 1) << 11 | field(21, 10) << 1;
    let rounding = field(12, 3);
    // CORE-V: third register of a store, 6-bit immediate with its lowest bit at bit 25, and the hardware-loop fields:
    // number, 12-bit and 5-bit immediates.
    let offset = rd;
    let imm6 = field(20, 5) << 1 | field(25, 1);
    let (number, long, short) = (field(7, 1) as u8, field(20, 12), field(15, 5));

    let none = RegisterSet::NONE;
    // The timing models number the integer registers 1 to 31 (`x0` is always ready) and the others 32 to 63.
    let int = |r: u8| if r == 0 { none } else { RegisterSet::of(r) };
    let float = |r: u8| RegisterSet::of(r | 32);
    use Format::*;
    let (imm, results, sources) = match row.format {
        None => (0, none, none),
        R => (0, int(rd), int(rs1) | int(rs2)),
        I => (imm_i, int(rd), int(rs1)),
        Shift => (field(20, 5), int(rd), int(rs1)),
        S => (imm_s, none, int(rs1) | int(rs2)),
        B => (pc.wrapping_add(imm_b), none, int(rs1) | int(rs2)),
        U => (word & !0xfff, int(rd), none),
        Auipc => (pc.wrapping_add(word & !0xfff), int(rd), none),
        J => (pc.wrapping_add(imm_j), int(rd), none),
        Csr => (field(20, 12), int(rd), int(rs1)),
        CsrI => (field(20, 12) | u32::from(rs1) << 12, int(rd), none),
        FloatLoad => (imm_i, float(rd), int(rs1)),
        FloatStore => (imm_s, none, int(rs1) | float(rs2)),
        FloatR => (0, float(rd), float(rs1) | float(rs2)),
        Float1 => (rounding, float(rd), float(rs1)),
        Float4 => (0, float(rd), float(rs1) | float(rs2) | float(rs3)),
        FloatCompare => (0, int(rd), float(rs1) | float(rs2)),
        FloatToInt => (rounding, int(rd), float(rs1)),
        IntToFloat => (rounding, float(rd), int(rs1)),
        LoadStep => (imm_i, int(rd), int(rs1)),
        LoadStepRegister | LoadOffset => (0, int(rd), int(rs1) | int(rs2)),
        StoreStep => (imm_s, none, int(rs1) | int(rs2)),
        StoreStepRegister | StoreOffset => (0, none, int(rs1) | int(rs2) | int(offset)),
        BranchImmediate => (pc.wrapping_add(imm_b), none, int(rs1)),
        Field => (field(20, 10), int(rd), int(rs1)),
        Normalized => (field(25, 5), int(rd), int(rs1) | int(rs2)),
        PackedSigned => (((imm6 << 26) as i32 >> 26) as u32, int(rd), int(rs1)),
        PackedUnsigned => (imm6, int(rd), int(rs1)),
        LoopAddress | LoopEndAddress => (pc.wrapping_add(4 * long), none, none),
        LoopCount => (long, none, none),
        LoopRegister | LoopEndRegister => (0, none, int(rs1)),
        LoopSetup => (pc.wrapping_add(4 * long), none, int(rs1)),
        LoopSetupImmediate => (pc.wrapping_add(4 * short), none, none),
    };
    let sources = if row.accumulates { sources | int(rd) } else { sources };
    let updates = match row.format {
        LoadStep | LoadStepRegister => int(rs1).without(int(rd)),
        StoreStep | StoreStepRegister => int(rs1),
        _ => none,
    };
    // A post-increment access is at the base address.
    let offset = match row.format {
        LoadStep | LoadStepRegister | StoreStep | StoreStepRegister => Offset::Immediate(0),
        LoadOffset => Offset::Register(rs2),
        StoreOffset => Offset::Register(offset),
        _ => Offset::Immediate(imm),
    };
    let loop_end = match row.format {
        LoopEndAddress | LoopSetup | LoopSetupImmediate => Some(LoopEnd::At(imm)),
        LoopEndRegister => Some(LoopEnd::Anywhere),
        _ => Option::None,
    };
    let [low, high] = [long as u8, (long >> 8) as u8];
    let registers = match row.format {
        StoreStepRegister | StoreOffset => [SINK, rs1, rs2, rd],
        LoopSetup => [number, rs1, low, high],
        LoopSetupImmediate => [number, rs1, low, high],
        LoopAddress | LoopEndAddress | LoopCount | LoopRegister | LoopEndRegister => [number, rs1, 0, 0],
        _ if results.is_empty() => [SINK, rs1, rs2, rs3],
        _ => [rd, rs1, rs2, rs3],
    };
    let is_loop = match row.format {
        LoopSetup => corev::well_formed(bytes, pc, long),
        LoopSetupImmediate => corev::well_formed(bytes, pc, short),
        LoopAddress | LoopEndAddress | LoopCount | LoopRegister | LoopEndRegister => pc.is_multiple_of(4),
        _ => true,
    };
    let writes = field(12, 2) == 1 || rs1 != 0;
    let read_only = matches!(row.format, Csr | CsrI) && field(30, 2) == 3;
    let float_register = matches!(row.format, Csr | CsrI) && super::csr::is_float(field(20, 12));
    let loop_register = matches!(row.format, Csr | CsrI) && super::csr::is_loop(field(20, 12));
    let lacks = float_register && !extensions.contain(F) || loop_register && !extensions.contain(extensions::XCV_HWLP);
    if !row.rounding.allows(rounding) || lacks || (read_only && writes) || !is_loop {
        return Option::None;
    }
    let class = match row.class {
        // RISC-V Unpriv. 2.5.1: a jump through `ra` or `t0` without a link pops the return-address stack.
        Class::JumpIndirect if rd == 0 && [1, 5].contains(&rs1) => Class::Return,
        class => class,
    };
    // The low two bits of funct3 are the binary logarithm of the size; for three-register CORE-V accesses, those of
    // funct7.
    let size = match row.format {
        LoadStepRegister | LoadOffset | StoreStepRegister | StoreOffset => field(25, 2),
        _ => field(12, 2),
    };
    let bytes = if class.accesses_memory() { 1 << size } else { 0 };
    let fence = Fence { after_stores: word & AFTER_STORES != 0, before_loads: word & BEFORE_LOADS != 0 };
    Some(Decoded {
        op: Op { run: row.run, imm, registers },
        class,
        length: 4,
        sources,
        results,
        access: Access { bytes, updates, base: rs1, offset },
        target: matches!(class, Class::Branch | Class::Jump).then_some(imm),
        fence: (class == Class::Fence).then_some(fence),
        loop_end,
    })
}
