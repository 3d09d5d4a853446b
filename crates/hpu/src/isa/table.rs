//! One row for each instruction. No two rows match the same word.

use Format::*;
use Rounding::*;

use super::Class::*;
use super::{Class, Semantics, atomic::*, control::*, csr::*, float::*, integer::*};

/// Which fields an instruction has, and which register files they name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    None,
    R,
    I,
    Shift,
    S,
    B,
    U,
    /// `U`, relative to the pc.
    Auipc,
    J,
    Csr,
    CsrI,
    FloatLoad,
    FloatStore,
    FloatR,
    Float1,
    Float4,
    FloatCompare,
    FloatToInt,
    IntToFloat,
}

/// Which values of the rounding-mode field (RISC-V Unpriv. 21.2) an instruction is modelled for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// It has no such field.
    Absent,
    /// To nearest, ties to even; also by way of `frm`, which is always that.
    Nearest,
    /// All five.
    All,
}

impl Rounding {
    pub fn allows(self, mode: u32) -> bool {
        match self {
            Rounding::Absent => true,
            Rounding::Nearest => matches!(mode, 0 | 7),
            Rounding::All => matches!(mode, 0..=4 | 7),
        }
    }
}

/// An encoding and its meaning.
pub(crate) struct Row {
    #[cfg_attr(not(test), expect(dead_code, reason = "names the row in the tests of the table"))]
    pub name: &'static str,
    pub mask: u32,
    pub bits: u32,
    pub format: Format,
    pub class: Class,
    pub rounding: Rounding,
    pub run: Semantics,
}

impl Row {
    pub fn matches(&self, word: u32) -> bool {
        word & self.mask == self.bits
    }
}

const fn row(name: &'static str, mask: u32, bits: u32, format: Format, class: Class, run: Semantics) -> Row {
    Row { name, mask, bits, format, class, rounding: Absent, run }
}

const fn rounded(self_: Row, rounding: Rounding) -> Row {
    Row { rounding, ..self_ }
}

const OP: u32 = 0x0000_007f;
const F3: u32 = 0x0000_707f;
const F7: u32 = 0xfe00_707f;
/// Floating point with a rounding-mode field.
const FR: u32 = 0xfe00_007f;
/// The same with one operand; `rs2` selects the function.
const F1: u32 = 0xfff0_007f;
const F1_F3: u32 = 0xfff0_707f;
const F4: u32 = 0x0600_007f;
/// Atomics; the `aq` and `rl` bits are free.
const AM: u32 = 0xf800_707f;
const LR: u32 = 0xf9f0_707f;
const ALL: u32 = 0xffff_ffff;

pub(crate) const ROWS: &[Row] = &[
    // RV32I (RISC-V Unpriv. 2)
    row("lui", OP, 0x37, U, Alu, lui),
    row("auipc", OP, 0x17, Auipc, Alu, lui),
    row("jal", OP, 0x6f, J, Jump, jal),
    row("jalr", F3, 0x67, I, JumpIndirect, jalr),
    row("beq", F3, 0x0063, B, Branch, beq),
    row("bne", F3, 0x1063, B, Branch, bne),
    row("blt", F3, 0x4063, B, Branch, blt),
    row("bge", F3, 0x5063, B, Branch, bge),
    row("bltu", F3, 0x6063, B, Branch, bltu),
    row("bgeu", F3, 0x7063, B, Branch, bgeu),
    row("lb", F3, 0x0003, I, Load, lb),
    row("lh", F3, 0x1003, I, Load, lh),
    row("lw", F3, 0x2003, I, Load, lw),
    row("lbu", F3, 0x4003, I, Load, lbu),
    row("lhu", F3, 0x5003, I, Load, lhu),
    row("sb", F3, 0x0023, S, Store, sb),
    row("sh", F3, 0x1023, S, Store, sh),
    row("sw", F3, 0x2023, S, Store, sw),
    row("addi", F3, 0x0013, I, Alu, addi),
    row("slti", F3, 0x2013, I, Alu, slti),
    row("sltiu", F3, 0x3013, I, Alu, sltiu),
    row("xori", F3, 0x4013, I, Alu, xori),
    row("ori", F3, 0x6013, I, Alu, ori),
    row("andi", F3, 0x7013, I, Alu, andi),
    row("slli", F7, 0x0000_1013, Shift, Alu, slli),
    row("srli", F7, 0x0000_5013, Shift, Alu, srli),
    row("srai", F7, 0x4000_5013, Shift, Alu, srai),
    row("add", F7, 0x0000_0033, R, Alu, add),
    row("sub", F7, 0x4000_0033, R, Alu, sub),
    row("sll", F7, 0x0000_1033, R, Alu, sll),
    row("slt", F7, 0x0000_2033, R, Alu, slt),
    row("sltu", F7, 0x0000_3033, R, Alu, sltu),
    row("xor", F7, 0x0000_4033, R, Alu, xor),
    row("srl", F7, 0x0000_5033, R, Alu, srl),
    row("sra", F7, 0x4000_5033, R, Alu, sra),
    row("or", F7, 0x0000_6033, R, Alu, or),
    row("and", F7, 0x0000_7033, R, Alu, and),
    row("fence", F3, 0x0000_000f, None, Fence, fence),
    row("ecall", ALL, 0x0000_0073, None, Call, ecall),
    row("ebreak", ALL, 0x0010_0073, None, Trap, ebreak),
    // Zifencei: nothing to do, code cannot be written
    row("fence.i", F3, 0x0000_100f, None, Fence, fence),
    // Zicsr
    row("csrrw", F3, 0x1073, Format::Csr, Class::Csr, csrrw),
    row("csrrs", F3, 0x2073, Format::Csr, Class::Csr, csrrs),
    row("csrrc", F3, 0x3073, Format::Csr, Class::Csr, csrrc),
    row("csrrwi", F3, 0x5073, CsrI, Class::Csr, csrrwi),
    row("csrrsi", F3, 0x6073, CsrI, Class::Csr, csrrsi),
    row("csrrci", F3, 0x7073, CsrI, Class::Csr, csrrci),
    // M
    row("mul", F7, 0x0200_0033, R, Multiply, mul),
    row("mulh", F7, 0x0200_1033, R, MultiplyHigh, mulh),
    row("mulhsu", F7, 0x0200_2033, R, MultiplyHigh, mulhsu),
    row("mulhu", F7, 0x0200_3033, R, MultiplyHigh, mulhu),
    row("div", F7, 0x0200_4033, R, Divide, div),
    row("divu", F7, 0x0200_5033, R, Divide, divu),
    row("rem", F7, 0x0200_6033, R, Divide, rem),
    row("remu", F7, 0x0200_7033, R, Divide, remu),
    // A
    row("lr.w", LR, 0x1000_202f, R, Atomic, lr),
    row("sc.w", AM, 0x1800_202f, R, Atomic, sc),
    row("amoswap.w", AM, 0x0800_202f, R, Atomic, amoswap),
    row("amoadd.w", AM, 0x0000_202f, R, Atomic, amoadd),
    row("amoxor.w", AM, 0x2000_202f, R, Atomic, amoxor),
    row("amoand.w", AM, 0x6000_202f, R, Atomic, amoand),
    row("amoor.w", AM, 0x4000_202f, R, Atomic, amoor),
    row("amomin.w", AM, 0x8000_202f, R, Atomic, amomin),
    row("amomax.w", AM, 0xa000_202f, R, Atomic, amomax),
    row("amominu.w", AM, 0xc000_202f, R, Atomic, amominu),
    row("amomaxu.w", AM, 0xe000_202f, R, Atomic, amomaxu),
    // F
    row("flw", F3, 0x2007, FloatLoad, Load, flw),
    row("fsw", F3, 0x2027, FloatStore, Store, fsw),
    rounded(row("fmadd.s", F4, 0x43, Float4, FloatMultiplyAdd, fmadd::<f32>), Nearest),
    rounded(row("fmsub.s", F4, 0x47, Float4, FloatMultiplyAdd, fmsub::<f32>), Nearest),
    rounded(row("fnmsub.s", F4, 0x4b, Float4, FloatMultiplyAdd, fnmsub::<f32>), Nearest),
    rounded(row("fnmadd.s", F4, 0x4f, Float4, FloatMultiplyAdd, fnmadd::<f32>), Nearest),
    rounded(row("fadd.s", FR, 0x0000_0053, FloatR, FloatAdd, fadd::<f32>), Nearest),
    rounded(row("fsub.s", FR, 0x0800_0053, FloatR, FloatAdd, fsub::<f32>), Nearest),
    rounded(row("fmul.s", FR, 0x1000_0053, FloatR, FloatMultiply, fmul::<f32>), Nearest),
    rounded(row("fdiv.s", FR, 0x1800_0053, FloatR, FloatDivide, fdiv::<f32>), Nearest),
    rounded(row("fsqrt.s", F1, 0x5800_0053, Float1, FloatRoot, fsqrt::<f32>), Nearest),
    row("fsgnj.s", F7, 0x2000_0053, FloatR, FloatMove, fsgnj::<f32>),
    row("fsgnjn.s", F7, 0x2000_1053, FloatR, FloatMove, fsgnjn::<f32>),
    row("fsgnjx.s", F7, 0x2000_2053, FloatR, FloatMove, fsgnjx::<f32>),
    row("fmin.s", F7, 0x2800_0053, FloatR, FloatMove, fmin::<f32>),
    row("fmax.s", F7, 0x2800_1053, FloatR, FloatMove, fmax::<f32>),
    row("fle.s", F7, 0xa000_0053, FloatCompare, FloatAdd, fle::<f32>),
    row("flt.s", F7, 0xa000_1053, FloatCompare, FloatAdd, flt::<f32>),
    row("feq.s", F7, 0xa000_2053, FloatCompare, FloatAdd, feq::<f32>),
    row("fclass.s", F1_F3, 0xe000_1053, FloatToInt, FloatMove, fclass::<f32>),
    row("fmv.x.w", F1_F3, 0xe000_0053, FloatToInt, FloatMove, fmv_x_w),
    row("fmv.w.x", F1_F3, 0xf000_0053, IntToFloat, FloatMove, fmv_w_x),
    rounded(row("fcvt.w.s", F1, 0xc000_0053, FloatToInt, FloatConvert, fcvt_w::<f32>), All),
    rounded(row("fcvt.wu.s", F1, 0xc010_0053, FloatToInt, FloatConvert, fcvt_wu::<f32>), All),
    rounded(row("fcvt.s.w", F1, 0xd000_0053, IntToFloat, FloatConvert, fcvt_s_w), Nearest),
    rounded(row("fcvt.s.wu", F1, 0xd010_0053, IntToFloat, FloatConvert, fcvt_s_wu), Nearest),
    // D
    row("fld", F3, 0x3007, FloatLoad, Load, fld),
    row("fsd", F3, 0x3027, FloatStore, Store, fsd),
    rounded(row("fmadd.d", F4, 0x0200_0043, Float4, FloatMultiplyAdd, fmadd::<f64>), Nearest),
    rounded(row("fmsub.d", F4, 0x0200_0047, Float4, FloatMultiplyAdd, fmsub::<f64>), Nearest),
    rounded(row("fnmsub.d", F4, 0x0200_004b, Float4, FloatMultiplyAdd, fnmsub::<f64>), Nearest),
    rounded(row("fnmadd.d", F4, 0x0200_004f, Float4, FloatMultiplyAdd, fnmadd::<f64>), Nearest),
    rounded(row("fadd.d", FR, 0x0200_0053, FloatR, FloatAdd, fadd::<f64>), Nearest),
    rounded(row("fsub.d", FR, 0x0a00_0053, FloatR, FloatAdd, fsub::<f64>), Nearest),
    rounded(row("fmul.d", FR, 0x1200_0053, FloatR, FloatMultiply, fmul::<f64>), Nearest),
    rounded(row("fdiv.d", FR, 0x1a00_0053, FloatR, FloatDivideDouble, fdiv::<f64>), Nearest),
    rounded(row("fsqrt.d", F1, 0x5a00_0053, Float1, FloatRootDouble, fsqrt::<f64>), Nearest),
    row("fsgnj.d", F7, 0x2200_0053, FloatR, FloatMove, fsgnj::<f64>),
    row("fsgnjn.d", F7, 0x2200_1053, FloatR, FloatMove, fsgnjn::<f64>),
    row("fsgnjx.d", F7, 0x2200_2053, FloatR, FloatMove, fsgnjx::<f64>),
    row("fmin.d", F7, 0x2a00_0053, FloatR, FloatMove, fmin::<f64>),
    row("fmax.d", F7, 0x2a00_1053, FloatR, FloatMove, fmax::<f64>),
    row("fle.d", F7, 0xa200_0053, FloatCompare, FloatAdd, fle::<f64>),
    row("flt.d", F7, 0xa200_1053, FloatCompare, FloatAdd, flt::<f64>),
    row("feq.d", F7, 0xa200_2053, FloatCompare, FloatAdd, feq::<f64>),
    row("fclass.d", F1_F3, 0xe200_1053, FloatToInt, FloatMove, fclass::<f64>),
    rounded(row("fcvt.s.d", F1, 0x4010_0053, Float1, FloatConvert, fcvt_s_d), Nearest),
    rounded(row("fcvt.d.s", F1, 0x4200_0053, Float1, FloatConvert, fcvt_d_s), All),
    rounded(row("fcvt.w.d", F1, 0xc200_0053, FloatToInt, FloatConvert, fcvt_w::<f64>), All),
    rounded(row("fcvt.wu.d", F1, 0xc210_0053, FloatToInt, FloatConvert, fcvt_wu::<f64>), All),
    rounded(row("fcvt.d.w", F1, 0xd200_0053, IntToFloat, FloatConvert, fcvt_d_w), All),
    rounded(row("fcvt.d.wu", F1, 0xd210_0053, IntToFloat, FloatConvert, fcvt_d_wu), All),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_encodings_overlap() {
        for (i, a) in ROWS.iter().enumerate() {
            assert_eq!(a.bits & !a.mask, 0, "{}: bits outside of the mask", a.name);
            assert_eq!(a.bits & 3, 3, "{}: a compressed encoding", a.name);
            for b in &ROWS[i + 1..] {
                let common = a.mask & b.mask;
                assert_ne!(a.bits & common, b.bits & common, "{} and {} overlap", a.name, b.name);
            }
        }
    }

    #[test]
    fn the_whole_instruction_set_is_there() {
        // RV32I 40, Zifencei 1, Zicsr 6, M 8, A 11, F 26, D 26 (RISC-V Unpriv. 35, listings of RV32)
        assert_eq!(ROWS.len(), 40 + 1 + 6 + 8 + 11 + 26 + 26);
    }
}
