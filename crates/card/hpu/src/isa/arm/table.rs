// SPDX-License-Identifier: Apache-2.0
//! One row for each encoding of A32 (ARM ARM A5, A6 and A7). No two rows match the same word.

use super::form;
use super::guard::both;
use super::operands::*;
use super::row::{Row, formed, row};
use super::{control::*, data::*, exclusive::*, media::*, multiple::*, multiply::*, neon, vfp::*};
use crate::op::Class::*;

/// Rows of instructions with a condition.
pub const CONDITIONAL: &[&[Row]] = &[DATA, ACCESS, MULTIPLICATION, MEDIA, CONTROL, VFP];

/// Rows of instructions without a condition, whose bits 31 to 28 are set.
pub const UNCONDITIONAL: &[&[Row]] = &[
    HINTS,
    neon::THREE,
    neon::LONG,
    neon::SCALAR,
    neon::SHIFTS,
    neon::IMMEDIATE,
    neon::MISCELLANEOUS,
    neon::PERMUTATIONS,
    neon::ACCESS,
];

/// Ten bits of an operation class, and bits 7 to 4.
const OP: u32 = 0x0fe0_0000;
const OP_LOW: u32 = 0x0ff0_00f0;
/// Data-processing instructions without those that only set flags, by opcode in bits 24 to 21 with S free.
const D: u32 = 0x0fe0_0000;
/// Encodings with S.
const T: u32 = 0x0ff0_0000;

/// Data processing in its three operand forms, from the bits of the immediate form.
macro_rules! processing {
    ($($name:literal $mask:ident $bits:literal)*) => {
        &[
            $(formed($name, $mask, 0x0200_0000 | $bits, Alu, form::data_immediate, both(nop)),
            formed($name, $mask | 0x10, $bits, Alu, form::data_register, both(nop)),
            formed($name, $mask | 0x90, 0x10 | $bits, Alu, form::data_variable, both(nop)),)*
            formed("movw", 0x0ff0_0000, 0x0300_0000, Alu, form::half_word, both(movw)),
            formed("movt", 0x0ff0_0000, 0x0340_0000, Alu, form::half_word, both(movt)),
            row("bfi", 0x0fe0_0070, 0x07c0_0010, Alu, R12, R12.and(OPTIONAL_0), bfi).with(form::bit_field),
            row("sbfx", 0x0fe0_0070, 0x07a0_0050, Alu, R12, R0, bfx).with(form::bit_field),
            row("ubfx", 0x0fe0_0070, 0x07e0_0050, Alu, R12, R0, bfx).with(form::bit_field),
            row("clz", 0x0fff_0ff0, 0x016f_0f10, Alu, R12, R0, clz),
            row("rev", 0x0fff_0ff0, 0x06bf_0f30, Alu, R12, R0, rev),
            row("rev16", 0x0fff_0ff0, 0x06bf_0fb0, Alu, R12, R0, rev16),
            row("rbit", 0x0fff_0ff0, 0x06ff_0f30, Alu, R12, R0, rbit),
            row("revsh", 0x0fff_0ff0, 0x06ff_0fb0, Alu, R12, R0, revsh),
        ]
    };
}

const DATA: &[Row] = processing! {
    "and" D 0x0000_0000 "eor" D 0x0020_0000 "sub" D 0x0040_0000 "rsb" D 0x0060_0000
    "add" D 0x0080_0000 "adc" D 0x00a0_0000 "sbc" D 0x00c0_0000 "rsc" D 0x00e0_0000
    "tst" T 0x0110_0000 "teq" T 0x0130_0000 "cmp" T 0x0150_0000 "cmn" T 0x0170_0000
    "orr" D 0x0180_0000 "mov" D 0x01a0_0000 "bic" D 0x01c0_0000 "mvn" D 0x01e0_0000
};

const ACCESS: &[Row] = &[
    formed("ldr, str", 0x0e00_0000, 0x0400_0000, Load, form::access_immediate, both(nop)),
    formed("ldr, str", 0x0e00_0010, 0x0600_0000, Load, form::access_register, both(nop)),
    formed("ldrh, strh", 0x0e00_00f0, 0x0000_00b0, Load, form::access_extra, both(nop)),
    formed("ldrsb, ldrd", 0x0e00_00f0, 0x0000_00d0, Load, form::access_extra, both(nop)),
    formed("ldrsh, strd", 0x0e00_00f0, 0x0000_00f0, Load, form::access_extra, both(nop)),
    formed("ldm, stm", 0x0e40_0000, 0x0800_0000, Load, form::block, both(nop)),
    row("strex", 0x0ff0_0ff0, 0x0180_0f90, Atomic, R12, R16.and(R0), strex::<4>).with(form::exclusive),
    row("ldrex", 0x0ff0_0fff, 0x0190_0f9f, Atomic, R12, R16, ldrex::<4>).with(form::exclusive),
    row("strexd", 0x0ff0_0ff0, 0x01a0_0f90, Atomic, R12, R16.and(R0).and(NEXT_0), strex::<8>).with(form::exclusive),
    row("ldrexd", 0x0ff0_0fff, 0x01b0_0f9f, Atomic, R12.and(NEXT_12), R16, ldrex::<8>).with(form::exclusive),
    row("strexb", 0x0ff0_0ff0, 0x01c0_0f90, Atomic, R12, R16.and(R0), strex::<1>).with(form::exclusive),
    row("ldrexb", 0x0ff0_0fff, 0x01d0_0f9f, Atomic, R12, R16, ldrex::<1>).with(form::exclusive),
    row("strexh", 0x0ff0_0ff0, 0x01e0_0f90, Atomic, R12, R16.and(R0), strex::<2>).with(form::exclusive),
    row("ldrexh", 0x0ff0_0fff, 0x01f0_0f9f, Atomic, R12, R16, ldrex::<2>).with(form::exclusive),
];

/// Factors.
const NM: Operands = R0.and(R8);
/// Both halves of a long result.
const HL: Operands = R16.and(R12);
const HL_NZ: Operands = HL.and(NZ_IF_SET);

const MULTIPLICATION: &[Row] = &[
    row("mul", OP | 0xf0f0, 0x0000_0090, Multiply, R16.and(NZ_IF_SET), NM, mul),
    row("mla", OP | 0xf0, 0x0020_0090, Multiply, R16.and(NZ_IF_SET), NM.and(R12), mla),
    row("umaal", OP_LOW, 0x0040_0090, MultiplyHigh, HL, NM.and(HL), umaal).with(form::multiply_long),
    row("mls", OP_LOW, 0x0060_0090, Multiply, R16, NM.and(R12), mls),
    row("umull", OP | 0xf0, 0x0080_0090, MultiplyHigh, HL_NZ, NM, umull).with(form::multiply_long),
    row("umlal", OP | 0xf0, 0x00a0_0090, MultiplyHigh, HL_NZ, NM.and(HL), umlal).with(form::multiply_long),
    row("smull", OP | 0xf0, 0x00c0_0090, MultiplyHigh, HL_NZ, NM, smull).with(form::multiply_long),
    row("smlal", OP | 0xf0, 0x00e0_0090, MultiplyHigh, HL_NZ, NM.and(HL), smlal).with(form::multiply_long),
    row("smlaxy", 0x0ff0_0090, 0x0100_0080, Multiply, R16.and(FLAG_Q), NM.and(R12).and(FLAG_Q), smlaxy),
    row("smlawy", 0x0ff0_00b0, 0x0120_0080, Multiply, R16.and(FLAG_Q), NM.and(R12).and(FLAG_Q), smlawy),
    row("smulwy", 0x0ff0_f0b0, 0x0120_00a0, Multiply, R16, NM, smulwy),
    row("smlalxy", 0x0ff0_0090, 0x0140_0080, MultiplyHigh, HL, NM.and(HL), smlalxy).with(form::multiply_long),
    row("smulxy", 0x0ff0_f090, 0x0160_0080, Multiply, R16, NM, smulxy),
    row("smlad", 0x0ff0_0090, 0x0700_0010, Multiply, R16.and(FLAG_Q), NM.and(OPTIONAL_12).and(FLAG_Q), smlad),
    row("smlald", 0x0ff0_0090, 0x0740_0010, MultiplyHigh, HL, NM.and(HL), smlald).with(form::multiply_long),
    row("smmla", 0x0ff0_00d0, 0x0750_0010, MultiplyHigh, R16, NM.and(OPTIONAL_12), smmla),
    row("smmls", 0x0ff0_00d0, 0x0750_00d0, MultiplyHigh, R16, NM.and(R12), smmla),
    row("sdiv", 0x0ff0_f0f0, 0x0710_f010, Divide, R16, NM, sdiv),
    row("udiv", 0x0ff0_f0f0, 0x0730_f010, Divide, R16, NM, udiv),
];

/// Rn and Rm.
const PAIR: Operands = R16.and(R0);
const SATURATES: Operands = R12.and(FLAG_Q);
const GE_TO: Operands = R12.and(FLAGS_GE);

const MEDIA: &[Row] = &[
    row("qadd", 0x0f90_0ff0, 0x0100_0050, Alu, SATURATES, PAIR.and(FLAG_Q), qadd),
    row("ssat", 0x0fe0_0030, 0x06a0_0010, Alu, SATURATES, R0.and(FLAG_Q), sat),
    row("usat", 0x0fe0_0030, 0x06e0_0010, Alu, SATURATES, R0.and(FLAG_Q), sat),
    row("ssat16", 0x0ff0_0ff0, 0x06a0_0f30, Alu, SATURATES, R0.and(FLAG_Q), sat16),
    row("usat16", 0x0ff0_0ff0, 0x06e0_0f30, Alu, SATURATES, R0.and(FLAG_Q), sat16),
    row("pkh", 0x0ff0_0030, 0x0680_0010, Alu, R12, PAIR, pkh),
    row("sel", 0x0ff0_0ff0, 0x0680_0fb0, Alu, R12, PAIR.and(FLAGS_GE), sel),
    row("sxtab16", 0x0ff0_03f0, 0x0680_0070, Alu, R12, R0.and(OPTIONAL_16), extend),
    row("sxtab", 0x0ff0_03f0, 0x06a0_0070, Alu, R12, R0.and(OPTIONAL_16), extend),
    row("sxtah", 0x0ff0_03f0, 0x06b0_0070, Alu, R12, R0.and(OPTIONAL_16), extend),
    row("uxtab16", 0x0ff0_03f0, 0x06c0_0070, Alu, R12, R0.and(OPTIONAL_16), extend),
    row("uxtab", 0x0ff0_03f0, 0x06e0_0070, Alu, R12, R0.and(OPTIONAL_16), extend),
    row("uxtah", 0x0ff0_03f0, 0x06f0_0070, Alu, R12, R0.and(OPTIONAL_16), extend),
    row("sadd16", 0x0ff0_0f90, 0x0610_0f10, Alu, GE_TO, PAIR, parallel),
    row("sadd8", 0x0ff0_0ff0, 0x0610_0f90, Alu, GE_TO, PAIR, parallel),
    row("qadd16", 0x0ff0_0f90, 0x0620_0f10, Alu, R12, PAIR, parallel),
    row("qadd8", 0x0ff0_0ff0, 0x0620_0f90, Alu, R12, PAIR, parallel),
    row("shadd16", 0x0ff0_0f90, 0x0630_0f10, Alu, R12, PAIR, parallel),
    row("shadd8", 0x0ff0_0ff0, 0x0630_0f90, Alu, R12, PAIR, parallel),
    row("uadd16", 0x0ff0_0f90, 0x0650_0f10, Alu, GE_TO, PAIR, parallel),
    row("uadd8", 0x0ff0_0ff0, 0x0650_0f90, Alu, GE_TO, PAIR, parallel),
    row("uqadd16", 0x0ff0_0f90, 0x0660_0f10, Alu, R12, PAIR, parallel),
    row("uqadd8", 0x0ff0_0ff0, 0x0660_0f90, Alu, R12, PAIR, parallel),
    row("uhadd16", 0x0ff0_0f90, 0x0670_0f10, Alu, R12, PAIR, parallel),
    row("uhadd8", 0x0ff0_0ff0, 0x0670_0f90, Alu, R12, PAIR, parallel),
    row("ssub8", 0x0ff0_0ff0, 0x0610_0ff0, Alu, GE_TO, PAIR, parallel),
    row("qsub8", 0x0ff0_0ff0, 0x0620_0ff0, Alu, R12, PAIR, parallel),
    row("shsub8", 0x0ff0_0ff0, 0x0630_0ff0, Alu, R12, PAIR, parallel),
    row("usub8", 0x0ff0_0ff0, 0x0650_0ff0, Alu, GE_TO, PAIR, parallel),
    row("uqsub8", 0x0ff0_0ff0, 0x0660_0ff0, Alu, R12, PAIR, parallel),
    row("uhsub8", 0x0ff0_0ff0, 0x0670_0ff0, Alu, R12, PAIR, parallel),
    row("usada8", 0x0ff0_00f0, 0x0780_0010, Alu, R16, R0.and(R8).and(OPTIONAL_12), usada8),
];

const CONTROL: &[Row] = &[
    formed("b", 0x0f00_0000, 0x0a00_0000, Jump, form::direct, both(branch::<14>)),
    formed("bl", 0x0f00_0000, 0x0b00_0000, Jump, form::direct, both(bl)),
    formed("bx", 0x0fff_fff0, 0x012f_ff10, Return, form::indirect, both(bx)),
    formed("blx", 0x0fff_fff0, 0x012f_ff30, JumpIndirect, form::indirect, both(blx)),
    formed("svc", 0x0f00_0000, 0x0f00_0000, Command, form::nothing, both(svc)),
    formed("bkpt", 0x0ff0_00f0, 0x0120_0070, Trap, form::always, both(trap)),
    formed("udf", 0x0ff0_00f0, 0x07f0_00f0, Trap, form::always, both(trap)),
    formed("nop", 0x0fff_ffff, 0x0320_f000, Alu, form::nothing, both(nop)),
    formed("yield", 0x0fff_ffff, 0x0320_f001, Alu, form::nothing, both(nop)),
    row("mrs", 0x0fff_0fff, 0x010f_0000, Alu, R12, NZCV.and(FLAG_Q).and(FLAGS_GE), mrs),
    row("msr ge", 0x0fff_f000, 0x0324_f000, Alu, FLAGS_GE, NOTHING, msr),
    row("msr nzcvq", 0x0fff_f000, 0x0328_f000, Alu, NZCV.and(FLAG_Q), NOTHING, msr),
    row("msr nzcvqg", 0x0fff_f000, 0x032c_f000, Alu, NZCV.and(FLAG_Q).and(FLAGS_GE), NOTHING, msr),
    row("msr", 0x0ff3_fff0, 0x0120_f000, Alu, NZCV.and(FLAG_Q).and(FLAGS_GE), R0, msr).with(form::flags_written),
];

/// Three singles, or three doubles.
const SINGLES: Operands = SN.and(SM);
const DOUBLES: Operands = DN.and(DM);

/// Instructions of both precisions.
macro_rules! arithmetic {
    ($($name:literal $mask:literal $bits:literal $class:expr, $double_class:expr, $accumulates:expr, $f:ident;)*) => {
        &[
            $(row(concat!($name, ".f32"), $mask | 0x100, $bits, $class, SD, if $accumulates { SINGLES.and(SD) } else { SINGLES }, $f::<f32>),
            row(concat!($name, ".f64"), $mask | 0x100, $bits | 0x100, $double_class, DD, if $accumulates { DOUBLES.and(DD) } else { DOUBLES }, $f::<f64>),)*
            row("vmov.f32", 0x0fb0_0ff0, 0x0eb0_0a00, FloatMove, SD, NOTHING, vmov_immediate::<f32>),
            row("vmov.f64", 0x0fb0_0ff0, 0x0eb0_0b00, FloatMove, DD, NOTHING, vmov_immediate::<f64>),
            row("vmov.f32", 0x0fbf_0fd0, 0x0eb0_0a40, FloatMove, SD, SM, vmov::<f32>),
            row("vmov.f64", 0x0fbf_0fd0, 0x0eb0_0b40, FloatMove, DD, DM, vmov::<f64>),
            row("vabs.f32", 0x0fbf_0fd0, 0x0eb0_0ac0, FloatMove, SD, SM, vabs::<f32>),
            row("vabs.f64", 0x0fbf_0fd0, 0x0eb0_0bc0, FloatMove, DD, DM, vabs::<f64>),
            row("vneg.f32", 0x0fbf_0fd0, 0x0eb1_0a40, FloatMove, SD, SM, vneg::<f32>),
            row("vneg.f64", 0x0fbf_0fd0, 0x0eb1_0b40, FloatMove, DD, DM, vneg::<f64>),
            row("vsqrt.f32", 0x0fbf_0fd0, 0x0eb1_0ac0, FloatRoot, SD, SM, vsqrt::<f32>),
            row("vsqrt.f64", 0x0fbf_0fd0, 0x0eb1_0bc0, FloatRootDouble, DD, DM, vsqrt::<f64>),
            row("vcmp.f32", 0x0fbf_0f50, 0x0eb4_0a40, FloatAdd, FP, SD.and(SM), vcmp::<f32>),
            row("vcmp.f64", 0x0fbf_0f50, 0x0eb4_0b40, FloatAdd, FP, DD.and(DM), vcmp::<f64>),
            row("vcmp.f32", 0x0fbf_0f7f, 0x0eb5_0a40, FloatAdd, FP, SD, vcmp_zero::<f32>),
            row("vcmp.f64", 0x0fbf_0f7f, 0x0eb5_0b40, FloatAdd, FP, DD, vcmp_zero::<f64>),
            row("vcvt.f64.f32", 0x0fbf_0fd0, 0x0eb7_0ac0, FloatConvert, DD, SM, vcvt_f64_f32),
            row("vcvt.f32.f64", 0x0fbf_0fd0, 0x0eb7_0bc0, FloatConvert, SD, DM, vcvt_f32_f64),
            row("vcvt.f32.i32", 0x0fbf_0f50, 0x0eb8_0a40, FloatConvert, SD, SM, vcvt_f32_integer),
            row("vcvt.f64.i32", 0x0fbf_0f50, 0x0eb8_0b40, FloatConvert, DD, SM, vcvt_f64_integer),
            row("vcvt.i32.f32", 0x0fbe_0f50, 0x0ebc_0a40, FloatConvert, SD, SM, vcvt_to_integer::<f32>),
            row("vcvt.i32.f64", 0x0fbe_0f50, 0x0ebc_0b40, FloatConvert, SD, DM, vcvt_to_integer::<f64>),
            row("vcvt.f32.fixed", 0x0fbe_0f50, 0x0eba_0a40, FloatConvert, SD, SD, vcvt_f32_fixed).with(form::fixed_point),
            row("vcvt.f64.fixed", 0x0fbe_0f50, 0x0eba_0b40, FloatConvert, DD, DD, vcvt_f64_fixed).with(form::fixed_point),
            row("vcvt.fixed.f32", 0x0fbe_0f50, 0x0ebe_0a40, FloatConvert, SD, SD, vcvt_fixed_f32).with(form::fixed_point),
            row("vcvt.fixed.f64", 0x0fbe_0f50, 0x0ebe_0b40, FloatConvert, DD, DD, vcvt_fixed_f64).with(form::fixed_point),
            row("vmov to s", 0x0ff0_0f7f, 0x0e00_0a10, FloatMove, SN, R12, vmov_core_single),
            row("vmov from s", 0x0ff0_0f7f, 0x0e10_0a10, FloatMove, R12, SN, vmov_core_single),
            row("vmrs", 0x0fff_ffff, 0x0ef1_fa10, FloatMove, NZCV, FP, vmrs),
            row("vmov to lane", 0x0f90_0f1f, 0x0e00_0b10, FloatMove, DN, DN.and(R12), vmov_to_lane).with(form::lane),
            row("vmov from lane", 0x0f10_0f1f, 0x0e10_0b10, FloatMove, R12, DN, vmov_from_lane).with(form::lane),
            row("vdup", 0x0f90_0f5f, 0x0e80_0b10, FloatMove, DN, R12, vdup_core).with(form::duplicate),
            row("vmov to d", 0x0ff0_0fd0, 0x0c40_0b10, FloatMove, DM, R12.and(R16), vmov_core_double),
            row("vmov from d", 0x0ff0_0fd0, 0x0c50_0b10, FloatMove, R12.and(R16), DM, vmov_core_double)
                .with(form::pair_of_core),
            row("vmov to 2 s", 0x0ff0_0fd0, 0x0c40_0a10, FloatMove, SM.and(NEXT_SM), R12.and(R16), vmov_core_singles),
            row("vmov from 2 s", 0x0ff0_0fd0, 0x0c50_0a10, FloatMove, R12.and(R16), SM.and(NEXT_SM), vmov_core_singles)
                .with(form::pair_of_core),
            formed("vldr.f32", 0x0f30_0f00, 0x0d10_0a00, Load, form::float_access, super::guard::both_of_access(vldr::<true, false>, vldr::<false, false>)),
            formed("vldr.f64", 0x0f30_0f00, 0x0d10_0b00, Load, form::float_access, super::guard::both_of_access(vldr::<true, true>, vldr::<false, true>)),
            formed("vstr.f32", 0x0f30_0f00, 0x0d00_0a00, Store, form::float_access, super::guard::both_of_access(vstr::<true, false>, vstr::<false, false>)),
            formed("vstr.f64", 0x0f30_0f00, 0x0d00_0b00, Store, form::float_access, super::guard::both_of_access(vstr::<true, true>, vstr::<false, true>)),
            formed("vldmia.f32", 0x0f90_0f00, 0x0c90_0a00, Load, form::float_block, both(vldm::<false>)),
            formed("vldmia.f64", 0x0f90_0f00, 0x0c90_0b00, Load, form::float_block, both(vldm::<true>)),
            formed("vstmia.f32", 0x0f90_0f00, 0x0c80_0a00, Store, form::float_block, both(vstm::<false>)),
            formed("vstmia.f64", 0x0f90_0f00, 0x0c80_0b00, Store, form::float_block, both(vstm::<true>)),
            formed("vldmdb.f32", 0x0fb0_0f00, 0x0d30_0a00, Load, form::float_block, both(vldm::<false>)),
            formed("vldmdb.f64", 0x0fb0_0f00, 0x0d30_0b00, Load, form::float_block, both(vldm::<true>)),
            formed("vstmdb.f32", 0x0fb0_0f00, 0x0d20_0a00, Store, form::float_block, both(vstm::<false>)),
            formed("vstmdb.f64", 0x0fb0_0f00, 0x0d20_0b00, Store, form::float_block, both(vstm::<true>)),
        ]
    };
}

const VFP: &[Row] = arithmetic! {
    "vmla" 0x0fb0_0e50 0x0e00_0a00 FloatMultiplyAdd, FloatMultiplyAdd, true, vmla;
    "vmls" 0x0fb0_0e50 0x0e00_0a40 FloatMultiplyAdd, FloatMultiplyAdd, true, vmls;
    "vnmls" 0x0fb0_0e50 0x0e10_0a00 FloatMultiplyAdd, FloatMultiplyAdd, true, vnmls;
    "vnmla" 0x0fb0_0e50 0x0e10_0a40 FloatMultiplyAdd, FloatMultiplyAdd, true, vnmla;
    "vmul" 0x0fb0_0e50 0x0e20_0a00 FloatMultiply, FloatMultiply, false, vmul;
    "vnmul" 0x0fb0_0e50 0x0e20_0a40 FloatMultiply, FloatMultiply, false, vnmul;
    "vadd" 0x0fb0_0e50 0x0e30_0a00 FloatAdd, FloatAdd, false, vadd;
    "vsub" 0x0fb0_0e50 0x0e30_0a40 FloatAdd, FloatAdd, false, vsub;
    "vdiv" 0x0fb0_0e50 0x0e80_0a00 FloatDivide, FloatDivideDouble, false, vdiv;
    "vfnms" 0x0fb0_0e50 0x0e90_0a00 FloatMultiplyAdd, FloatMultiplyAdd, true, vfnms;
    "vfnma" 0x0fb0_0e50 0x0e90_0a40 FloatMultiplyAdd, FloatMultiplyAdd, true, vfnma;
    "vfma" 0x0fb0_0e50 0x0ea0_0a00 FloatMultiplyAdd, FloatMultiplyAdd, true, vfma;
    "vfms" 0x0fb0_0e50 0x0ea0_0a40 FloatMultiplyAdd, FloatMultiplyAdd, true, vfms;
};

const HINTS: &[Row] = &[
    formed("pld", 0xff30_f000, 0xf510_f000, Alu, form::nothing, both(nop)),
    formed("pld", 0xff30_f010, 0xf710_f000, Alu, form::nothing, both(nop)),
    formed("pli", 0xff70_f000, 0xf450_f000, Alu, form::nothing, both(nop)),
    formed("pli", 0xff70_f010, 0xf650_f000, Alu, form::nothing, both(nop)),
    formed("clrex", 0xffff_ffff, 0xf57f_f01f, Alu, form::nothing, both(clrex)),
    formed("dsb", 0xffff_fff0, 0xf57f_f040, Fence, form::barrier, both(nop)),
    formed("dmb", 0xffff_fff0, 0xf57f_f050, Fence, form::barrier, both(nop)),
    formed("isb", 0xffff_fff0, 0xf57f_f060, Alu, form::nothing, both(nop)),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_encodings_overlap() {
        for rows in [CONDITIONAL, UNCONDITIONAL] {
            let rows: Vec<&Row> = rows.iter().flat_map(|rows| rows.iter()).collect();
            for (i, a) in rows.iter().enumerate() {
                assert_eq!(a.bits & !a.mask, 0, "{}: bits outside of the mask", a.name);
                for b in &rows[i + 1..] {
                    let common = a.mask & b.mask;
                    assert_ne!(a.bits & common, b.bits & common, "{} and {} overlap", a.name, b.name);
                }
            }
        }
    }
}
