// SPDX-License-Identifier: Apache-2.0
//! The encodings of the CORE-V extensions, by extension.

use super::super::row::Format::{self, *};
use super::super::row::{F3, F7, Row, accumulates, row};
use super::memory::{IMMEDIATE, OFFSET, REGISTER};
use super::{alu, bits, loops, mac, memory, simd};
use crate::op::Class::{self, *};
use crate::op::Semantics;

/// Single operand: the second register field is 0.
const F7_RS2: u32 = F7 | 0x01f0_0000;
/// Two function bits at the top, then a 5-bit immediate.
const F2: u32 = 0xc000_707f;
/// Bit reversal: the upper bits of the first immediate are 0.
const REVERSAL: u32 = 0xf800_707f;
/// Function of SIMD instructions with an immediate.
const F6: u32 = 0xfc00_707f;
/// Hardware loops: the loop number is free.
const LOOP: u32 = 0x0000_7f7f;
const LOOP_RS1: u32 = LOOP | 0x000f_8000;
const LOOP_IMM: u32 = LOOP | 0xfff0_0000;

const REGISTERS: u32 = 0x302b;
const IMMEDIATES: u32 = 0x5b;
const PACKED: u32 = 0x7b;

/// Builds the row of an instruction with a 7-bit function.
const fn f7<F: Semantics>(name: &'static str, f7: u32, format: Format, class: Class, semantics: F) -> Row {
    row(name, F7, f7 << 25 | REGISTERS, format, class, semantics)
}

const fn one<F: Semantics>(name: &'static str, f7: u32, semantics: F) -> Row {
    row(name, F7_RS2, f7 << 25 | REGISTERS, R, Alu, semantics)
}

/// Builds the row of an instruction with a 2-bit function and an immediate.
const fn f2<F: Semantics>(name: &'static str, f2: u32, f3: u32, format: Format, class: Class, semantics: F) -> Row {
    row(name, F2, f2 << 30 | f3 << 12 | IMMEDIATES, format, class, semantics)
}

/// xcvmem
pub const MEMORY: &[Row] = &[
    row("cv.lb (rs1), imm", F3, 0x000b, LoadStep, Load, memory::lb::<IMMEDIATE>),
    row("cv.lh (rs1), imm", F3, 0x100b, LoadStep, Load, memory::lh::<IMMEDIATE>),
    row("cv.lw (rs1), imm", F3, 0x200b, LoadStep, Load, memory::lw::<IMMEDIATE>),
    row("cv.lbu (rs1), imm", F3, 0x400b, LoadStep, Load, memory::lbu::<IMMEDIATE>),
    row("cv.lhu (rs1), imm", F3, 0x500b, LoadStep, Load, memory::lhu::<IMMEDIATE>),
    f7("cv.lb (rs1), rs2", 0x00, LoadStepRegister, Load, memory::lb::<REGISTER>),
    f7("cv.lh (rs1), rs2", 0x01, LoadStepRegister, Load, memory::lh::<REGISTER>),
    f7("cv.lw (rs1), rs2", 0x02, LoadStepRegister, Load, memory::lw::<REGISTER>),
    f7("cv.lbu (rs1), rs2", 0x08, LoadStepRegister, Load, memory::lbu::<REGISTER>),
    f7("cv.lhu (rs1), rs2", 0x09, LoadStepRegister, Load, memory::lhu::<REGISTER>),
    f7("cv.lb rs2(rs1)", 0x04, LoadOffset, Load, memory::lb::<OFFSET>),
    f7("cv.lh rs2(rs1)", 0x05, LoadOffset, Load, memory::lh::<OFFSET>),
    f7("cv.lw rs2(rs1)", 0x06, LoadOffset, Load, memory::lw::<OFFSET>),
    f7("cv.lbu rs2(rs1)", 0x0c, LoadOffset, Load, memory::lbu::<OFFSET>),
    f7("cv.lhu rs2(rs1)", 0x0d, LoadOffset, Load, memory::lhu::<OFFSET>),
    row("cv.sb (rs1), imm", F3, 0x002b, StoreStep, Store, memory::sb::<IMMEDIATE>),
    row("cv.sh (rs1), imm", F3, 0x102b, StoreStep, Store, memory::sh::<IMMEDIATE>),
    row("cv.sw (rs1), imm", F3, 0x202b, StoreStep, Store, memory::sw::<IMMEDIATE>),
    f7("cv.sb (rs1), rs3", 0x10, StoreStepRegister, Store, memory::sb::<REGISTER>),
    f7("cv.sh (rs1), rs3", 0x11, StoreStepRegister, Store, memory::sh::<REGISTER>),
    f7("cv.sw (rs1), rs3", 0x12, StoreStepRegister, Store, memory::sw::<REGISTER>),
    f7("cv.sb rs3(rs1)", 0x14, StoreOffset, Store, memory::sb::<OFFSET>),
    f7("cv.sh rs3(rs1)", 0x15, StoreOffset, Store, memory::sh::<OFFSET>),
    f7("cv.sw rs3(rs1)", 0x16, StoreOffset, Store, memory::sw::<OFFSET>),
];

/// xcvbi
pub const BRANCHES: &[Row] = &[
    row("cv.beqimm", F3, 0x600b, BranchImmediate, Branch, alu::beqimm),
    row("cv.bneimm", F3, 0x700b, BranchImmediate, Branch, alu::bneimm),
];

/// xcvhwlp
pub const LOOPS: &[Row] = &[
    row("cv.starti", LOOP_RS1, 0x402b, LoopAddress, Alu, loops::starti),
    row("cv.start", LOOP_IMM, 0x412b, LoopRegister, Alu, loops::start),
    row("cv.endi", LOOP_RS1, 0x422b, LoopEndAddress, Alu, loops::endi),
    row("cv.end", LOOP_IMM, 0x432b, LoopEndRegister, Alu, loops::end),
    row("cv.counti", LOOP_RS1, 0x442b, LoopCount, Alu, loops::counti),
    row("cv.count", LOOP_IMM, 0x452b, LoopRegister, Alu, loops::count),
    row("cv.setupi", LOOP, 0x462b, LoopSetupImmediate, Alu, loops::setupi),
    row("cv.setup", LOOP, 0x472b, LoopSetup, Alu, loops::setup),
];

/// xcvbitmanip
pub const BITS: &[Row] = &[
    f2("cv.extract", 0, 0, Field, Alu, bits::extract::<false>),
    f2("cv.extractu", 1, 0, Field, Alu, bits::extractu::<false>),
    accumulates(f2("cv.insert", 2, 0, Field, Alu, bits::insert::<false>)),
    f2("cv.bclr", 0, 1, Field, Alu, bits::bclr::<false>),
    f2("cv.bset", 1, 1, Field, Alu, bits::bset::<false>),
    row("cv.bitrev", REVERSAL, 3 << 30 | 1 << 12 | IMMEDIATES, Field, Alu, bits::bitrev),
    f7("cv.extractr", 0x18, R, Alu, bits::extract::<true>),
    f7("cv.extractur", 0x19, R, Alu, bits::extractu::<true>),
    accumulates(f7("cv.insertr", 0x1a, R, Alu, bits::insert::<true>)),
    f7("cv.bclrr", 0x1c, R, Alu, bits::bclr::<true>),
    f7("cv.bsetr", 0x1d, R, Alu, bits::bset::<true>),
    f7("cv.ror", 0x20, R, Alu, bits::ror),
    one("cv.ff1", 0x21, bits::ff1),
    one("cv.fl1", 0x22, bits::fl1),
    one("cv.clb", 0x23, bits::clb),
    one("cv.cnt", 0x24, bits::cnt),
];

/// xcvalu
pub const ALU: &[Row] = &[
    one("cv.abs", 0x28, alu::abs),
    f7("cv.sle", 0x29, R, Alu, alu::sle),
    f7("cv.sleu", 0x2a, R, Alu, alu::sleu),
    f7("cv.min", 0x2b, R, Alu, alu::min),
    f7("cv.minu", 0x2c, R, Alu, alu::minu),
    f7("cv.max", 0x2d, R, Alu, alu::max),
    f7("cv.maxu", 0x2e, R, Alu, alu::maxu),
    one("cv.exths", 0x30, alu::exths),
    one("cv.exthz", 0x31, alu::exthz),
    one("cv.extbs", 0x32, alu::extbs),
    one("cv.extbz", 0x33, alu::extbz),
    f7("cv.clip", 0x38, Shift, Alu, alu::clip),
    f7("cv.clipu", 0x39, Shift, Alu, alu::clipu),
    f7("cv.clipr", 0x3a, R, Alu, alu::clipr),
    f7("cv.clipur", 0x3b, R, Alu, alu::clipur),
    f2("cv.addn", 0, 2, Normalized, Alu, alu::normalized::<false, false, true>),
    f2("cv.addun", 1, 2, Normalized, Alu, alu::normalized::<false, false, false>),
    f2("cv.addrn", 2, 2, Normalized, Alu, alu::normalized::<false, true, true>),
    f2("cv.addurn", 3, 2, Normalized, Alu, alu::normalized::<false, true, false>),
    f2("cv.subn", 0, 3, Normalized, Alu, alu::normalized::<true, false, true>),
    f2("cv.subun", 1, 3, Normalized, Alu, alu::normalized::<true, false, false>),
    f2("cv.subrn", 2, 3, Normalized, Alu, alu::normalized::<true, true, true>),
    f2("cv.suburn", 3, 3, Normalized, Alu, alu::normalized::<true, true, false>),
    accumulates(f7("cv.addnr", 0x40, R, Alu, alu::normalized_by_register::<false, false, true>)),
    accumulates(f7("cv.addunr", 0x41, R, Alu, alu::normalized_by_register::<false, false, false>)),
    accumulates(f7("cv.addrnr", 0x42, R, Alu, alu::normalized_by_register::<false, true, true>)),
    accumulates(f7("cv.addurnr", 0x43, R, Alu, alu::normalized_by_register::<false, true, false>)),
    accumulates(f7("cv.subnr", 0x44, R, Alu, alu::normalized_by_register::<true, false, true>)),
    accumulates(f7("cv.subunr", 0x45, R, Alu, alu::normalized_by_register::<true, false, false>)),
    accumulates(f7("cv.subrnr", 0x46, R, Alu, alu::normalized_by_register::<true, true, true>)),
    accumulates(f7("cv.suburnr", 0x47, R, Alu, alu::normalized_by_register::<true, true, false>)),
];

/// xcvmac
pub const MAC: &[Row] = &[
    accumulates(f7("cv.mac", 0x48, R, Multiply, mac::mac)),
    accumulates(f7("cv.msu", 0x49, R, Multiply, mac::msu)),
    f2("cv.mulsn", 0, 4, Normalized, Multiply, mac::halves::<false, false, false, true>),
    f2("cv.mulhhsn", 1, 4, Normalized, Multiply, mac::halves::<false, true, false, true>),
    f2("cv.mulsrn", 2, 4, Normalized, Multiply, mac::halves::<false, false, true, true>),
    f2("cv.mulhhsrn", 3, 4, Normalized, Multiply, mac::halves::<false, true, true, true>),
    f2("cv.mulun", 0, 5, Normalized, Multiply, mac::halves::<false, false, false, false>),
    f2("cv.mulhhun", 1, 5, Normalized, Multiply, mac::halves::<false, true, false, false>),
    f2("cv.mulurn", 2, 5, Normalized, Multiply, mac::halves::<false, false, true, false>),
    f2("cv.mulhhurn", 3, 5, Normalized, Multiply, mac::halves::<false, true, true, false>),
    accumulates(f2("cv.macsn", 0, 6, Normalized, Multiply, mac::halves::<true, false, false, true>)),
    accumulates(f2("cv.machhsn", 1, 6, Normalized, Multiply, mac::halves::<true, true, false, true>)),
    accumulates(f2("cv.macsrn", 2, 6, Normalized, Multiply, mac::halves::<true, false, true, true>)),
    accumulates(f2("cv.machhsrn", 3, 6, Normalized, Multiply, mac::halves::<true, true, true, true>)),
    accumulates(f2("cv.macun", 0, 7, Normalized, Multiply, mac::halves::<true, false, false, false>)),
    accumulates(f2("cv.machhun", 1, 7, Normalized, Multiply, mac::halves::<true, true, false, false>)),
    accumulates(f2("cv.macurn", 2, 7, Normalized, Multiply, mac::halves::<true, false, true, false>)),
    accumulates(f2("cv.machhurn", 3, 7, Normalized, Multiply, mac::halves::<true, true, true, false>)),
];

/// Builds the row of a SIMD instruction: `function` is funct5 with F below it.
const fn packed<F: Semantics>(
    name: &'static str,
    function: u32,
    f3: u32,
    mask: u32,
    format: Format,
    semantics: F,
) -> Row {
    row(name, mask, function << 26 | f3 << 12 | PACKED, format, Alu, semantics)
}

/// Six forms of an operation: on half-words and on bytes, each with register operands, with a scalar, and with an
/// immediate.
macro_rules! forms {
    ($name:literal, $function:expr, $immediate:expr, $f:ident $(, $wrap:ident)?) => {
        [
            forms!(@row concat!($name, ".h"), $function, 0, F7, R,
                |s, _, op| simd::vector(s, op, simd::$f::<16>) $(, $wrap)?),
            forms!(@row concat!($name, ".sc.h"), $function, 4, F7, R,
                |s, _, op| simd::scalar::<16>(s, op, simd::$f::<16>) $(, $wrap)?),
            forms!(@row concat!($name, ".sci.h"), $function, 6, F6, $immediate,
                |s, _, op| simd::immediate::<16>(s, op, simd::$f::<16>) $(, $wrap)?),
            forms!(@row concat!($name, ".b"), $function, 1, F7, R,
                |s, _, op| simd::vector(s, op, simd::$f::<8>) $(, $wrap)?),
            forms!(@row concat!($name, ".sc.b"), $function, 5, F7, R,
                |s, _, op| simd::scalar::<8>(s, op, simd::$f::<8>) $(, $wrap)?),
            forms!(@row concat!($name, ".sci.b"), $function, 7, F6, $immediate,
                |s, _, op| simd::immediate::<8>(s, op, simd::$f::<8>) $(, $wrap)?),
        ]
    };
    (@row $name:expr, $function:expr, $f3:expr, $mask:expr, $format:expr, $run:expr, $wrap:ident) => {
        $wrap(forms!(@row $name, $function, $f3, $mask, $format, $run))
    };
    (@row $name:expr, $function:expr, $f3:expr, $mask:expr, $format:expr, $run:expr) => {
        packed($name, $function, $f3, $mask, $format, $run)
    };
}

/// Operations of xcvsimd that have all six forms.
const LANES: [[Row; 6]; 30] = [
    forms!("cv.add", 0, PackedSigned, add),
    forms!("cv.sub", 2, PackedSigned, sub),
    forms!("cv.avg", 4, PackedSigned, avg),
    forms!("cv.avgu", 6, PackedUnsigned, avgu),
    forms!("cv.min", 8, PackedSigned, min),
    forms!("cv.minu", 10, PackedUnsigned, minu),
    forms!("cv.max", 12, PackedSigned, max),
    forms!("cv.maxu", 14, PackedUnsigned, maxu),
    forms!("cv.srl", 16, PackedUnsigned, srl),
    forms!("cv.sra", 18, PackedUnsigned, sra),
    forms!("cv.sll", 20, PackedUnsigned, sll),
    forms!("cv.or", 22, PackedSigned, or),
    forms!("cv.xor", 24, PackedSigned, xor),
    forms!("cv.and", 26, PackedSigned, and),
    forms!("cv.dotup", 32, PackedUnsigned, dotup),
    forms!("cv.dotusp", 34, PackedSigned, dotusp),
    forms!("cv.dotsp", 36, PackedSigned, dotsp),
    forms!("cv.sdotup", 38, PackedUnsigned, sdotup, accumulates),
    forms!("cv.sdotusp", 40, PackedSigned, sdotusp, accumulates),
    forms!("cv.sdotsp", 42, PackedSigned, sdotsp, accumulates),
    forms!("cv.cmpeq", 1, PackedSigned, cmpeq),
    forms!("cv.cmpne", 3, PackedSigned, cmpne),
    forms!("cv.cmpgt", 5, PackedSigned, cmpgt),
    forms!("cv.cmpge", 7, PackedSigned, cmpge),
    forms!("cv.cmplt", 9, PackedSigned, cmplt),
    forms!("cv.cmple", 11, PackedSigned, cmple),
    forms!("cv.cmpgtu", 13, PackedUnsigned, cmpgtu),
    forms!("cv.cmpgeu", 15, PackedUnsigned, cmpgeu),
    forms!("cv.cmpltu", 17, PackedUnsigned, cmpltu),
    forms!("cv.cmpleu", 19, PackedUnsigned, cmpleu),
];

/// The rows of [`LANES`].
pub const SIMD_LANES: &[Row] = LANES.as_flattened();

/// The other instructions of xcvsimd.
pub const SIMD: &[Row] = &[
    packed("cv.abs.h", 28, 0, F7_RS2, R, |s, _, op| simd::vector(s, op, simd::abs::<16>)),
    packed("cv.abs.b", 28, 1, F7_RS2, R, |s, _, op| simd::vector(s, op, simd::abs::<8>)),
    packed("cv.extract.h", 46, 0, F6, PackedUnsigned, |s, _, op| simd::plain_immediate(s, op, simd::extract::<16>)),
    packed("cv.extract.b", 46, 1, F6, PackedUnsigned, |s, _, op| simd::plain_immediate(s, op, simd::extract::<8>)),
    packed("cv.extractu.h", 46, 2, F6, PackedUnsigned, |s, _, op| simd::plain_immediate(s, op, simd::extractu::<16>)),
    packed("cv.extractu.b", 46, 3, F6, PackedUnsigned, |s, _, op| simd::plain_immediate(s, op, simd::extractu::<8>)),
    accumulates(packed("cv.insert.h", 46, 4, F6, PackedUnsigned, |s, _, op| {
        simd::plain_immediate(s, op, simd::insert::<16>)
    })),
    accumulates(packed("cv.insert.b", 46, 5, F6, PackedUnsigned, |s, _, op| {
        simd::plain_immediate(s, op, simd::insert::<8>)
    })),
    packed("cv.shuffle.h", 48, 0, F7, R, |s, _, op| simd::vector(s, op, simd::shuffle::<16>)),
    packed("cv.shuffle.b", 48, 1, F7, R, |s, _, op| simd::vector(s, op, simd::shuffle::<8>)),
    packed("cv.shuffle.sci.h", 48, 6, F6, PackedUnsigned, |s, _, op| {
        simd::plain_immediate(s, op, simd::shuffle_immediate::<16, 0>)
    }),
    packed("cv.shufflei0.sci.b", 48, 7, F6, PackedUnsigned, |s, _, op| {
        simd::plain_immediate(s, op, simd::shuffle_immediate::<8, 0>)
    }),
    packed("cv.shufflei1.sci.b", 50, 7, F6, PackedUnsigned, |s, _, op| {
        simd::plain_immediate(s, op, simd::shuffle_immediate::<8, 1>)
    }),
    packed("cv.shufflei2.sci.b", 52, 7, F6, PackedUnsigned, |s, _, op| {
        simd::plain_immediate(s, op, simd::shuffle_immediate::<8, 2>)
    }),
    packed("cv.shufflei3.sci.b", 54, 7, F6, PackedUnsigned, |s, _, op| {
        simd::plain_immediate(s, op, simd::shuffle_immediate::<8, 3>)
    }),
    accumulates(packed("cv.shuffle2.h", 56, 0, F7, R, |s, _, op| simd::vector(s, op, simd::shuffle2::<16>))),
    accumulates(packed("cv.shuffle2.b", 56, 1, F7, R, |s, _, op| simd::vector(s, op, simd::shuffle2::<8>))),
    packed("cv.pack", 60, 0, F7, R, |s, _, op| simd::vector(s, op, simd::pack)),
    high(packed("cv.pack.h", 60, 0, F7, R, |s, _, op| simd::vector(s, op, simd::pack_high))),
    accumulates(packed("cv.packlo.b", 62, 1, F7, R, |s, _, op| simd::vector(s, op, simd::packlo))),
    accumulates(high(packed("cv.packhi.b", 62, 1, F7, R, |s, _, op| simd::vector(s, op, simd::packhi)))),
    accumulates(packed("cv.cplxmul.r", 21, 0, F7, R, |s, _, op| simd::vector(s, op, simd::cplxmul_real::<0>))),
    accumulates(packed("cv.cplxmul.r.div2", 21, 2, F7, R, |s, _, op| simd::vector(s, op, simd::cplxmul_real::<1>))),
    accumulates(packed("cv.cplxmul.r.div4", 21, 4, F7, R, |s, _, op| simd::vector(s, op, simd::cplxmul_real::<2>))),
    accumulates(packed("cv.cplxmul.r.div8", 21, 6, F7, R, |s, _, op| simd::vector(s, op, simd::cplxmul_real::<3>))),
    accumulates(high(packed("cv.cplxmul.i", 21, 0, F7, R, |s, _, op| {
        simd::vector(s, op, simd::cplxmul_imaginary::<0>)
    }))),
    accumulates(high(packed("cv.cplxmul.i.div2", 21, 2, F7, R, |s, _, op| {
        simd::vector(s, op, simd::cplxmul_imaginary::<1>)
    }))),
    accumulates(high(packed("cv.cplxmul.i.div4", 21, 4, F7, R, |s, _, op| {
        simd::vector(s, op, simd::cplxmul_imaginary::<2>)
    }))),
    accumulates(high(packed("cv.cplxmul.i.div8", 21, 6, F7, R, |s, _, op| {
        simd::vector(s, op, simd::cplxmul_imaginary::<3>)
    }))),
    packed("cv.cplxconj", 23, 0, F7_RS2, R, |s, _, op| simd::vector(s, op, simd::cplxconj)),
    packed("cv.subrotmj", 25, 0, F7, R, |s, _, op| simd::vector(s, op, simd::subrotmj::<0>)),
    packed("cv.subrotmj.div2", 25, 2, F7, R, |s, _, op| simd::vector(s, op, simd::subrotmj::<1>)),
    packed("cv.subrotmj.div4", 25, 4, F7, R, |s, _, op| simd::vector(s, op, simd::subrotmj::<2>)),
    packed("cv.subrotmj.div8", 25, 6, F7, R, |s, _, op| simd::vector(s, op, simd::subrotmj::<3>)),
    packed("cv.add.div2", 27, 2, F7, R, |s, _, op| simd::vector(s, op, simd::add_shifted::<1>)),
    packed("cv.add.div4", 27, 4, F7, R, |s, _, op| simd::vector(s, op, simd::add_shifted::<2>)),
    packed("cv.add.div8", 27, 6, F7, R, |s, _, op| simd::vector(s, op, simd::add_shifted::<3>)),
    packed("cv.sub.div2", 29, 2, F7, R, |s, _, op| simd::vector(s, op, simd::sub_shifted::<1>)),
    packed("cv.sub.div4", 29, 4, F7, R, |s, _, op| simd::vector(s, op, simd::sub_shifted::<2>)),
    packed("cv.sub.div8", 29, 6, F7, R, |s, _, op| simd::vector(s, op, simd::sub_shifted::<3>)),
];

/// Returns the row with bit 25 set.
const fn high(row: Row) -> Row {
    Row { bits: row.bits | 1 << 25, ..row }
}
