//! The instruction set: encodings to operations.

mod atomic;
mod compressed;
mod control;
mod csr;
mod float;
mod integer;
mod table;

use crate::memory::View;
use crate::thread::{SINK, Thread};
pub(crate) use integer::further_words;
pub(crate) use table::{Format, Row};

/// What an instruction asks of the engine after it has run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flow {
    /// Go on after it.
    Next,
    /// Go on at the thread's pc, which it has set.
    Jump,
    /// `ecall`; the pc is after it.
    Call,
    /// A load was denied.
    Load,
    /// A store was denied.
    Store,
    /// An atomic operation at this address, which is not a multiple of four.
    Misaligned,
    /// The instruction is not modelled.
    Illegal,
    /// `ebreak`
    Break,
}

/// What an instruction does. While it runs the thread's pc is the address after its block.
pub(crate) type Semantics = fn(&mut Thread, &mut View<'_>, &Op) -> Flow;

/// A decoded instruction.
#[derive(Clone, Copy)]
pub(crate) struct Op {
    pub run: Semantics,
    /// The immediate; the absolute target of a branch or `jal`; the value of `lui` and `auipc`; CSR number and, from bit
    /// 12, immediate operand; the rounding mode of a conversion.
    pub imm: u32,
    /// Destination; [`SINK`] for `x0`.
    pub rd: u8,
    pub rs1: u8,
    pub rs2: u8,
    pub rs3: u8,
}

/// What an instruction costs, and when control may leave by it: the timing models tell these apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    Alu,
    Multiply,
    MultiplyHigh,
    Divide,
    Load,
    Store,
    Branch,
    /// `jal`
    Jump,
    /// `jalr` that is not a return
    JumpIndirect,
    /// `jalr` through `ra` or `t0` without a link (RISC-V Unpriv. 2.5.1: pops the return-address stack)
    Return,
    Fence,
    Csr,
    Atomic,
    Call,
    /// `ebreak`, and words that are no instruction
    Trap,
    FloatAdd,
    FloatMultiply,
    FloatMultiplyAdd,
    FloatDivide,
    FloatDivideDouble,
    FloatRoot,
    FloatRootDouble,
    FloatMove,
    FloatConvert,
}

impl Class {
    /// Nothing runs on straight from it.
    pub fn ends_block(self) -> bool {
        use Class::*;
        matches!(self, Branch | Jump | JumpIndirect | Return) || self.stands_alone()
    }

    /// A block of its own, so that the thread's counters are exact when it runs.
    pub fn stands_alone(self) -> bool {
        matches!(self, Class::Csr | Class::Atomic | Class::Call | Class::Trap)
    }
}

/// Registers of a decoded instruction, as the timing models see them: 1–31 integer, 32–63 floating point, 0 none.
pub(crate) type Register = u8;

/// A decoded instruction with what timing needs to know.
#[derive(Clone, Copy)]
pub(crate) struct Decoded {
    pub op: Op,
    pub class: Class,
    /// Bytes of the encoding.
    pub length: u32,
    pub dest: Register,
    pub sources: [Register; 3],
}

/// The instruction at the start of `bytes`, which are at `pc`. A word that is no instruction decodes to one that
/// fails; `None` when the bytes end before the instruction.
pub(crate) fn decode(bytes: &[u8], pc: u32) -> Option<Decoded> {
    let half = u16::from_le_bytes(*bytes.first_chunk()?);
    let (word, length) = if half & 3 == 3 {
        (Some(u32::from_le_bytes(*bytes.first_chunk()?)), 4)
    } else {
        (compressed::expand(half), 2)
    };
    let decoded = word.and_then(|word| {
        let row = table::ROWS.iter().find(|row| row.matches(word))?;
        operands(row, word, pc, length)
    });
    Some(decoded.unwrap_or(Decoded {
        op: Op { run: control::illegal, imm: 0, rd: SINK, rs1: 0, rs2: 0, rs3: 0 },
        class: Class::Trap,
        length,
        dest: 0,
        sources: [0; 3],
    }))
}

/// Fields of an instruction (RISC-V Unpriv. 2.2, 2.3); `None` when it asks for a rounding mode that is not modelled.
fn operands(row: &Row, word: u32, pc: u32, length: u32) -> Option<Decoded> {
    let field = |low: u32, bits: u32| word >> low & ((1 << bits) - 1);
    let signed = word as i32;
    let [rd, rs1, rs2, rs3] = [field(7, 5), field(15, 5), field(20, 5), field(27, 5)].map(|r| r as u8);
    let imm_i = (signed >> 20) as u32;
    let imm_s = (signed >> 25 << 5) as u32 | field(7, 5);
    let imm_b = (signed >> 31 << 12) as u32 | field(7, 1) << 11 | field(25, 6) << 5 | field(8, 4) << 1;
    let imm_j = (signed >> 31 << 20) as u32 | field(12, 8) << 12 | field(20, 1) << 11 | field(21, 10) << 1;
    let rounding = field(12, 3);

    let int = |r: u8| r;
    let float = |r: u8| r | 32;
    use Format::*;
    let (imm, dest, sources) = match row.format {
        None => (0, 0, [0, 0, 0]),
        R => (0, int(rd), [int(rs1), int(rs2), 0]),
        I => (imm_i, int(rd), [int(rs1), 0, 0]),
        Shift => (field(20, 5), int(rd), [int(rs1), 0, 0]),
        S => (imm_s, 0, [int(rs1), int(rs2), 0]),
        B => (pc.wrapping_add(imm_b), 0, [int(rs1), int(rs2), 0]),
        U => (word & !0xfff, int(rd), [0, 0, 0]),
        Auipc => (pc.wrapping_add(word & !0xfff), int(rd), [0, 0, 0]),
        J => (pc.wrapping_add(imm_j), int(rd), [0, 0, 0]),
        Csr => (field(20, 12), int(rd), [int(rs1), 0, 0]),
        CsrI => (field(20, 12) | u32::from(rs1) << 12, int(rd), [0, 0, 0]),
        FloatLoad => (imm_i, float(rd), [int(rs1), 0, 0]),
        FloatStore => (imm_s, 0, [int(rs1), float(rs2), 0]),
        FloatR => (0, float(rd), [float(rs1), float(rs2), 0]),
        Float1 => (rounding, float(rd), [float(rs1), 0, 0]),
        Float4 => (0, float(rd), [float(rs1), float(rs2), float(rs3)]),
        FloatCompare => (0, int(rd), [float(rs1), float(rs2), 0]),
        FloatToInt => (rounding, int(rd), [float(rs1), 0, 0]),
        IntToFloat => (rounding, float(rd), [int(rs1), 0, 0]),
    };
    if !row.rounding.allows(rounding) {
        return Option::None;
    }
    let class = match row.class {
        Class::JumpIndirect if rd == 0 && [1, 5].contains(&rs1) => Class::Return,
        class => class,
    };
    let sink = dest == 0;
    let op = Op { run: row.run, imm, rd: if sink { SINK } else { dest % 32 }, rs1, rs2, rs3 };
    Some(Decoded { op, class, length, dest, sources })
}
