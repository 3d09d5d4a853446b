// SPDX-License-Identifier: Apache-2.0
//! One row for each instruction, by extension. No two rows match the same word.

use super::corev;
use super::extensions::{self, Extensions};
use super::row::Format::{self, *};
use super::row::Rounding::*;
use super::row::{F3, F7, Row, access, rounded, row};
use super::{atomic::*, control::*, csr::*, float::*, integer::*};
use crate::op::Class::*;

const OP: u32 = 0x0000_007f;
/// Floating point with a rounding-mode field.
const FR: u32 = 0xfe00_007f;
/// Floating point with a rounding-mode field and one operand; `rs2` selects the function.
const F1: u32 = 0xfff0_007f;
const F1_F3: u32 = 0xfff0_707f;
const F4: u32 = 0x0600_007f;
/// Atomics; the `aq` and `rl` bits are free.
const AM: u32 = 0xf800_707f;
const LR: u32 = 0xf9f0_707f;
const ALL: u32 = 0xffff_ffff;

/// Instructions of each extension.
pub(crate) const EXTENSIONS: [(Extensions, &[Row]); 15] = [
    (extensions::I, BASE),
    (extensions::M, MULTIPLICATION),
    (extensions::A, ATOMIC),
    (extensions::F, SINGLE),
    (extensions::F, SINGLE_ONLY),
    (extensions::D, DOUBLE),
    (extensions::D, DOUBLE_ONLY),
    (extensions::XCV_MEM, corev::MEMORY),
    (extensions::XCV_BI, corev::BRANCHES),
    (extensions::XCV_HWLP, corev::LOOPS),
    (extensions::XCV_BITMANIP, corev::BITS),
    (extensions::XCV_ALU, corev::ALU),
    (extensions::XCV_MAC, corev::MAC),
    (extensions::XCV_SIMD, corev::SIMD_LANES),
    (extensions::XCV_SIMD, corev::SIMD),
];

/// RV32I (RISC-V Unpriv. 2), Zifencei (6) and Zicsr (7).
const BASE: &[Row] = &[
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
    access("lb", F3, 0x0003, I, Load, lb::<true>, lb::<false>),
    access("lh", F3, 0x1003, I, Load, lh::<true>, lh::<false>),
    access("lw", F3, 0x2003, I, Load, lw::<true>, lw::<false>),
    access("lbu", F3, 0x4003, I, Load, lbu::<true>, lbu::<false>),
    access("lhu", F3, 0x5003, I, Load, lhu::<true>, lhu::<false>),
    access("sb", F3, 0x0023, S, Store, sb::<true>, sb::<false>),
    access("sh", F3, 0x1023, S, Store, sh::<true>, sh::<false>),
    access("sw", F3, 0x2023, S, Store, sw::<true>, sw::<false>),
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
    row("ecall", ALL, 0x0000_0073, None, Command, ecall),
    row("ebreak", ALL, 0x0010_0073, None, Trap, ebreak),
    // No effect: code is read-only.
    row("fence.i", F3, 0x0000_100f, None, Fence, fence),
    row("csrrw", F3, 0x1073, Format::Csr, System, csrrw),
    row("csrrs", F3, 0x2073, Format::Csr, System, csrrs),
    row("csrrc", F3, 0x3073, Format::Csr, System, csrrc),
    row("csrrwi", F3, 0x5073, CsrI, System, csrrwi),
    row("csrrsi", F3, 0x6073, CsrI, System, csrrsi),
    row("csrrci", F3, 0x7073, CsrI, System, csrrci),
];

/// M (RISC-V Unpriv. 12).
const MULTIPLICATION: &[Row] = &[
    row("mul", F7, 0x0200_0033, R, Multiply, mul),
    row("mulh", F7, 0x0200_1033, R, MultiplyHigh, mulh),
    row("mulhsu", F7, 0x0200_2033, R, MultiplyHigh, mulhsu),
    row("mulhu", F7, 0x0200_3033, R, MultiplyHigh, mulhu),
    row("div", F7, 0x0200_4033, R, Divide, div),
    row("divu", F7, 0x0200_5033, R, Divide, divu),
    row("rem", F7, 0x0200_6033, R, Divide, rem),
    row("remu", F7, 0x0200_7033, R, Divide, remu),
];

/// A (RISC-V Unpriv. 13).
const ATOMIC: &[Row] = &[
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
];

/// Instructions common to F and D, distinguished by the `fmt` field.
macro_rules! arithmetic {
    ($s:literal, $t:ty, $fmt:expr, $divide:ident, $root:ident) => {
        &[
            rounded(row(concat!("fmadd", $s), F4, $fmt | 0x0000_0043, Float4, FloatMultiplyAdd, fmadd::<$t>), Nearest),
            rounded(row(concat!("fmsub", $s), F4, $fmt | 0x0000_0047, Float4, FloatMultiplyAdd, fmsub::<$t>), Nearest),
            rounded(
                row(concat!("fnmsub", $s), F4, $fmt | 0x0000_004b, Float4, FloatMultiplyAdd, fnmsub::<$t>),
                Nearest,
            ),
            rounded(
                row(concat!("fnmadd", $s), F4, $fmt | 0x0000_004f, Float4, FloatMultiplyAdd, fnmadd::<$t>),
                Nearest,
            ),
            rounded(row(concat!("fadd", $s), FR, $fmt | 0x0000_0053, FloatR, FloatAdd, fadd::<$t>), Nearest),
            rounded(row(concat!("fsub", $s), FR, $fmt | 0x0800_0053, FloatR, FloatAdd, fsub::<$t>), Nearest),
            rounded(row(concat!("fmul", $s), FR, $fmt | 0x1000_0053, FloatR, FloatMultiply, fmul::<$t>), Nearest),
            rounded(row(concat!("fdiv", $s), FR, $fmt | 0x1800_0053, FloatR, $divide, fdiv::<$t>), Nearest),
            rounded(row(concat!("fsqrt", $s), F1, $fmt | 0x5800_0053, Float1, $root, fsqrt::<$t>), Nearest),
            row(concat!("fsgnj", $s), F7, $fmt | 0x2000_0053, FloatR, FloatMove, fsgnj::<$t>),
            row(concat!("fsgnjn", $s), F7, $fmt | 0x2000_1053, FloatR, FloatMove, fsgnjn::<$t>),
            row(concat!("fsgnjx", $s), F7, $fmt | 0x2000_2053, FloatR, FloatMove, fsgnjx::<$t>),
            row(concat!("fmin", $s), F7, $fmt | 0x2800_0053, FloatR, FloatMove, fmin::<$t>),
            row(concat!("fmax", $s), F7, $fmt | 0x2800_1053, FloatR, FloatMove, fmax::<$t>),
            row(concat!("fle", $s), F7, $fmt | 0xa000_0053, FloatCompare, FloatAdd, fle::<$t>),
            row(concat!("flt", $s), F7, $fmt | 0xa000_1053, FloatCompare, FloatAdd, flt::<$t>),
            row(concat!("feq", $s), F7, $fmt | 0xa000_2053, FloatCompare, FloatAdd, feq::<$t>),
            row(concat!("fclass", $s), F1_F3, $fmt | 0xe000_1053, FloatToInt, FloatMove, fclass::<$t>),
            rounded(row(concat!("fcvt.w", $s), F1, $fmt | 0xc000_0053, FloatToInt, FloatConvert, fcvt_w::<$t>), All),
            rounded(row(concat!("fcvt.wu", $s), F1, $fmt | 0xc010_0053, FloatToInt, FloatConvert, fcvt_wu::<$t>), All),
        ]
    };
}

/// F (RISC-V Unpriv. 21).
const SINGLE: &[Row] = arithmetic!(".s", f32, 0, FloatDivide, FloatRoot);
const SINGLE_ONLY: &[Row] = &[
    access("flw", F3, 0x2007, FloatLoad, Load, flw::<true>, flw::<false>),
    access("fsw", F3, 0x2027, FloatStore, Store, fsw::<true>, fsw::<false>),
    row("fmv.x.w", F1_F3, 0xe000_0053, FloatToInt, FloatMove, fmv_x_w),
    row("fmv.w.x", F1_F3, 0xf000_0053, IntToFloat, FloatMove, fmv_w_x),
    rounded(row("fcvt.s.w", F1, 0xd000_0053, IntToFloat, FloatConvert, fcvt_s_w), Nearest),
    rounded(row("fcvt.s.wu", F1, 0xd010_0053, IntToFloat, FloatConvert, fcvt_s_wu), Nearest),
];

/// D (RISC-V Unpriv. 22).
const DOUBLE: &[Row] = arithmetic!(".d", f64, 0x0200_0000, FloatDivideDouble, FloatRootDouble);
const DOUBLE_ONLY: &[Row] = &[
    access("fld", F3, 0x3007, FloatLoad, Load, fld::<true>, fld::<false>),
    access("fsd", F3, 0x3027, FloatStore, Store, fsd::<true>, fsd::<false>),
    rounded(row("fcvt.s.d", F1, 0x4010_0053, Float1, FloatConvert, fcvt_s_d), Nearest),
    rounded(row("fcvt.d.s", F1, 0x4200_0053, Float1, FloatConvert, fcvt_d_s), All),
    rounded(row("fcvt.d.w", F1, 0xd200_0053, IntToFloat, FloatConvert, fcvt_d_w), All),
    rounded(row("fcvt.d.wu", F1, 0xd210_0053, IntToFloat, FloatConvert, fcvt_d_wu), All),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> impl Iterator<Item = &'static Row> {
        EXTENSIONS.iter().flat_map(|(_, rows)| *rows)
    }

    #[test]
    fn no_two_encodings_overlap() {
        let rows: Vec<&Row> = rows().collect();
        for (i, a) in rows.iter().enumerate() {
            assert_eq!(a.bits & !a.mask, 0, "{}: bits outside of the mask", a.name);
            assert_eq!(a.bits & 3, 3, "{}: a compressed encoding", a.name);
            for b in &rows[i + 1..] {
                let common = a.mask & b.mask;
                assert_ne!(a.bits & common, b.bits & common, "{} and {} overlap", a.name, b.name);
            }
        }
    }

    #[test]
    fn the_whole_instruction_set_is_there() {
        // RV32I 40, Zifencei 1, Zicsr 6, M 8, A 11, F 26, D 26 (RISC-V Unpriv. 35, listings of RV32)
        let counts: Vec<usize> = EXTENSIONS.iter().map(|(_, rows)| rows.len()).collect();
        assert_eq!(counts[..7], [40 + 1 + 6, 8, 11, 20, 6, 20, 6]);
        // The tables of the CV32E40P user manual, without cv.elw
        assert_eq!(counts[7..], [24, 2, 8, 16, 31, 18, 180, 40]);
    }

    /// One word for each instruction, as encoded by LLVM's assembler, with operands of mostly one bits.
    #[rustfmt::skip]
    const ASSEMBLED: &[(u32, &str)] = &[
        (0xffff_f537, "lui"),
        (0x1234_5f97, "auipc"),
        (0x0010_00ef, "jal"),
        (0xffc5_8567, "jalr"),
        (0x7eb5_0fe3, "beq"),
        (0x80b5_1063, "bne"),
        (0x01ef_c463, "blt"),
        (0x01ef_d463, "bge"),
        (0x01ef_e463, "bltu"),
        (0x01ef_f463, "bgeu"),
        (0xffff_8503, "lb"),
        (0xffff_9503, "lh"),
        (0xffff_a503, "lw"),
        (0xffff_c503, "lbu"),
        (0xffff_d503, "lhu"),
        (0xfff5_0fa3, "sb"),
        (0xfff5_1fa3, "sh"),
        (0xfff5_2fa3, "sw"),
        (0xfff5_0f93, "addi"),
        (0xfff5_2f93, "slti"),
        (0xfff5_3f93, "sltiu"),
        (0xfff5_4f93, "xori"),
        (0xfff5_6f93, "ori"),
        (0xfff5_7f93, "andi"),
        (0x01f5_1f93, "slli"),
        (0x01f5_5f93, "srli"),
        (0x41f5_5f93, "srai"),
        (0x01df_0fb3, "add"),
        (0x41df_0fb3, "sub"),
        (0x01df_1fb3, "sll"),
        (0x01df_2fb3, "slt"),
        (0x01df_3fb3, "sltu"),
        (0x01df_4fb3, "xor"),
        (0x01df_5fb3, "srl"),
        (0x41df_5fb3, "sra"),
        (0x01df_6fb3, "or"),
        (0x01df_7fb3, "and"),
        (0x0310_000f, "fence"),
        (0x0000_0073, "ecall"),
        (0x0010_0073, "ebreak"),
        (0x0000_100f, "fence.i"),
        (0xffff_1ff3, "csrrw"),
        (0xffff_2ff3, "csrrs"),
        (0xffff_3ff3, "csrrc"),
        (0xffff_dff3, "csrrwi"),
        (0xffff_eff3, "csrrsi"),
        (0xffff_fff3, "csrrci"),
        (0x03df_0fb3, "mul"),
        (0x03df_1fb3, "mulh"),
        (0x03df_2fb3, "mulhsu"),
        (0x03df_3fb3, "mulhu"),
        (0x03df_4fb3, "div"),
        (0x03df_5fb3, "divu"),
        (0x03df_6fb3, "rem"),
        (0x03df_7fb3, "remu"),
        (0x160f_2faf, "lr.w"),
        (0x1fdf_2faf, "sc.w"),
        (0x0fdf_2faf, "amoswap.w"),
        (0x07df_2faf, "amoadd.w"),
        (0x21df_2faf, "amoxor.w"),
        (0x65df_2faf, "amoand.w"),
        (0x43df_2faf, "amoor.w"),
        (0x81df_2faf, "amomin.w"),
        (0xa1df_2faf, "amomax.w"),
        (0xc1df_2faf, "amominu.w"),
        (0xe1df_2faf, "amomaxu.w"),
        (0xffff_af87, "flw"),
        (0xffff_afa7, "fsw"),
        (0xe1df_7fc3, "fmadd.s"),
        (0xe1df_7fc7, "fmsub.s"),
        (0xe1df_7fcb, "fnmsub.s"),
        (0xe1df_7fcf, "fnmadd.s"),
        (0x01df_7fd3, "fadd.s"),
        (0x09df_7fd3, "fsub.s"),
        (0x11df_7fd3, "fmul.s"),
        (0x19df_7fd3, "fdiv.s"),
        (0x580f_7fd3, "fsqrt.s"),
        (0x21df_0fd3, "fsgnj.s"),
        (0x21df_1fd3, "fsgnjn.s"),
        (0x21df_2fd3, "fsgnjx.s"),
        (0x29df_0fd3, "fmin.s"),
        (0x29df_1fd3, "fmax.s"),
        (0xa1df_0fd3, "fle.s"),
        (0xa1df_1fd3, "flt.s"),
        (0xa1df_2fd3, "feq.s"),
        (0xe00f_1fd3, "fclass.s"),
        (0xe00f_0fd3, "fmv.x.w"),
        (0xf00f_8f53, "fmv.w.x"),
        (0xc00f_1fd3, "fcvt.w.s"),
        (0xc01f_1fd3, "fcvt.wu.s"),
        (0xd00f_ff53, "fcvt.s.w"),
        (0xd01f_ff53, "fcvt.s.wu"),
        (0xffff_bf87, "fld"),
        (0xffff_bfa7, "fsd"),
        (0xe3df_7fc3, "fmadd.d"),
        (0xe3df_7fc7, "fmsub.d"),
        (0xe3df_7fcb, "fnmsub.d"),
        (0xe3df_7fcf, "fnmadd.d"),
        (0x03df_7fd3, "fadd.d"),
        (0x0bdf_7fd3, "fsub.d"),
        (0x13df_7fd3, "fmul.d"),
        (0x1bdf_7fd3, "fdiv.d"),
        (0x5a0f_7fd3, "fsqrt.d"),
        (0x23df_0fd3, "fsgnj.d"),
        (0x23df_1fd3, "fsgnjn.d"),
        (0x23df_2fd3, "fsgnjx.d"),
        (0x2bdf_0fd3, "fmin.d"),
        (0x2bdf_1fd3, "fmax.d"),
        (0xa3df_0fd3, "fle.d"),
        (0xa3df_1fd3, "flt.d"),
        (0xa3df_2fd3, "feq.d"),
        (0xe20f_1fd3, "fclass.d"),
        (0x401f_7fd3, "fcvt.s.d"),
        (0x420f_0fd3, "fcvt.d.s"),
        (0xc20f_1fd3, "fcvt.w.d"),
        (0xc21f_1fd3, "fcvt.wu.d"),
        (0xd20f_8f53, "fcvt.d.w"),
        (0xd21f_8f53, "fcvt.d.wu"),
    ];

    #[test]
    fn words_are_the_instructions_that_an_assembler_says() {
        // `tests/hpu/corev` runs every word of the CORE-V extensions.
        let standard: usize = EXTENSIONS[..7].iter().map(|(_, rows)| rows.len()).sum();
        assert_eq!(ASSEMBLED.len(), standard);
        for (word, name) in ASSEMBLED {
            let found: Vec<_> = rows().filter(|row| row.matches(*word)).map(|row| row.name).collect();
            assert_eq!(found, [*name], "{word:#010x}");
        }
    }
}
