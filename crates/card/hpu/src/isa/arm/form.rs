// SPDX-License-Identifier: Apache-2.0
//! Operand forms of A32 encodings: each function makes the parts of a decoded instruction from a row and a word.

use super::control::branch;
use super::data::{self, ADD, CMN, MOV, MVN, Operand, SUB, TST, add_pc, into_pc};
use super::fields::{LR, PC, SET_C, SET_NZ, SET_V, Word, ZERO, expanded};
use super::flags::ALWAYS;
use super::guard::{Runs, both};
use super::memory::{self, Data, Mode, OffsetForm};
use super::multiple::{ldm, stm};
use super::operands::{core, double};
use super::row::{Parts, Row, plain};
use crate::op::{Access, Class, Fence, Offset, Op, RegisterSet, Run};

const NONE: RegisterSet = RegisterSet::NONE;

/// Parts without operands.
fn empty(runs: Runs, class: Class) -> Parts {
    Parts {
        runs,
        class,
        imm: 0,
        registers: [0; 4],
        sources: NONE,
        results: NONE,
        access: Access::default(),
        target: None,
        fence: None,
    }
}

/// Returns the flags that an opcode reads in its arithmetic.
fn carry_of(opcode: u32) -> RegisterSet {
    if matches!(opcode, 5..=7) { SET_C } else { NONE }
}

/// Returns the registers and flags of a data-processing instruction: sources without the second operand, and results.
fn data_sets(w: Word) -> Option<(RegisterSet, RegisterSet)> {
    let opcode = w.field(21, 4);
    let is_test = (TST..=CMN).contains(&opcode);
    let unused = |low: u32| w.register(low) == 0;
    let sources = if opcode == MOV || opcode == MVN {
        if !unused(16) {
            return None;
        }
        NONE
    } else {
        core(w.register(16))?
    };
    let mut results = if is_test {
        if !unused(12) {
            return None;
        }
        NONE
    } else {
        core(w.register(12))?
    };
    if w.bit(20) {
        let is_logical = matches!(opcode, 0 | 1 | 8 | 9 | 12..=15);
        results = results | SET_NZ | SET_C | if is_logical { NONE } else { SET_V };
    } else if is_test {
        return None;
    }
    Some((sources | carry_of(opcode), results))
}

/// Data processing with the pc as its result: a jump, which sets no flags.
fn data_into_pc(w: Word) -> Option<Parts> {
    let opcode = w.field(21, 4);
    let is_test = (TST..=CMN).contains(&opcode);
    if w.bit(20) || is_test || (opcode == MOV || opcode == MVN) && w.register(16) != 0 {
        return None;
    }
    let is_register = !w.bit(25);
    let is_return = opcode == MOV && is_register && w.field(4, 8) == 0 && w.register(0) == LR;
    let mut sources = carry_of(opcode);
    if opcode != MOV && opcode != MVN {
        sources = sources | core(w.register(16)).unwrap_or(NONE);
    }
    if is_register {
        sources = sources | core(w.register(0)).unwrap_or(NONE);
        sources = sources | if w.field(5, 7) == 3 { SET_C } else { NONE };
    }
    let class = if is_return { Class::Return } else { Class::JumpIndirect };
    Some(Parts { imm: w.0, sources, ..empty(both(into_pc), class) })
}

/// Data processing with an immediate.
pub fn data_immediate(_: &Row, w: Word, pc: u32) -> Option<Parts> {
    let (opcode, sets_flags) = (w.field(21, 4), w.bit(20));
    let imm = expanded(w.field(0, 12));
    if w.register(12) == PC && !(TST..=CMN).contains(&opcode) {
        return data_into_pc(w);
    }
    if w.register(16) == PC && opcode != MOV && opcode != MVN {
        // The address is known (ADR).
        let value = data::folded(opcode, pc.wrapping_add(8), imm).filter(|_| !sets_flags)?;
        let registers = [w.register(12), 0, 0, 0];
        let results = core(w.register(12))?;
        return Some(Parts { imm: value, registers, results, ..empty(both(data::movw), Class::Alu) });
    }
    let (mut sources, results) = data_sets(w)?;
    let is_logical = matches!(opcode, 0 | 1 | 8 | 9 | 12..=15);
    let is_rotated = w.field(8, 4) != 0;
    if sets_flags && is_logical && !is_rotated {
        sources = sources | SET_C;
    }
    let operand = if is_rotated { Operand::Rotated } else { Operand::Immediate };
    let registers = [w.register(12), w.register(16), 0, 0];
    Some(Parts { imm, registers, sources, results, ..empty(data::forms(opcode, sets_flags, operand), Class::Alu) })
}

/// Data processing with a register, shifted by an immediate.
pub fn data_register(_: &Row, w: Word, pc: u32) -> Option<Parts> {
    let (opcode, sets_flags, kind, amount) = (w.field(21, 4), w.bit(20), w.field(5, 2), w.field(7, 5));
    if w.register(12) == PC && !(TST..=CMN).contains(&opcode) {
        return data_into_pc(w);
    }
    let [rd, rn, rm] = [12, 16, 0].map(|low| w.register(low));
    let here = pc.wrapping_add(8);
    if rm == PC && opcode == MOV && !sets_flags && kind == 0 && amount == 0 && rn == 0 {
        let results = core(rd)?;
        return Some(Parts { imm: here, registers: [rd, 0, 0, 0], results, ..empty(both(data::movw), Class::Alu) });
    }
    if rm == PC && rn != PC && kind == 0 && amount == 0 && (opcode == ADD || opcode == SUB) && !sets_flags {
        let runs = data::forms(opcode, false, Operand::Immediate);
        let registers = [rd, rn, 0, 0];
        return Some(Parts { imm: here, registers, sources: core(rn)?, results: core(rd)?, ..empty(runs, Class::Alu) });
    }
    if rn == PC && (opcode == ADD || opcode == SUB) && !sets_flags && !(kind == 3 && amount == 0) {
        let shifts = kind as u8 | if opcode == SUB { 4 } else { 0 };
        let amount = if kind != 0 && amount == 0 { 32 } else { amount as u8 };
        let registers = [rd, rm, shifts, amount];
        let (sources, results) = (core(rm)?, core(rd)?);
        return Some(Parts { imm: here, registers, sources, results, ..empty(both(add_pc), Class::Alu) });
    }
    let (sources, results) = data_sets(w)?;
    let sources = sources | core(rm)?;
    let operand = match (kind, amount) {
        (0, 0) => Operand::Register,
        (0, _) => Operand::Left,
        (1, _) => Operand::Right,
        (2, _) => Operand::Arithmetic,
        _ => Operand::Rotate,
    };
    let is_logical = matches!(opcode, 0 | 1 | 8 | 9 | 12..=15);
    let reads_carry =
        operand == Operand::Rotate && amount == 0 || operand == Operand::Register && sets_flags && is_logical;
    let sources = sources | if reads_carry { SET_C } else { NONE };
    let imm = if matches!(operand, Operand::Right | Operand::Arithmetic) && amount == 0 { 32 } else { amount };
    let registers = [rd, rn, rm, 0];
    Some(Parts { imm, registers, sources, results, ..empty(data::forms(opcode, sets_flags, operand), Class::Alu) })
}

/// Data processing with a register, shifted by a register.
pub fn data_variable(_: &Row, w: Word, _: u32) -> Option<Parts> {
    let (sources, results) = data_sets(w)?;
    let (opcode, sets_flags) = (w.field(21, 4), w.bit(20));
    let sources = sources | core(w.register(0))? | core(w.register(8))?;
    let sources = sources | if sets_flags { SET_C } else { NONE };
    let registers = [12, 16, 0, 8].map(|low| w.register(low));
    let runs = data::forms(opcode, sets_flags, Operand::Variable);
    Some(Parts { imm: w.field(5, 2), registers, sources, results, ..empty(runs, Class::Alu) })
}

/// MOVW and MOVT.
pub fn half_word(row: &Row, w: Word, _: u32) -> Option<Parts> {
    let result = core(w.register(12))?;
    let sources = if w.bit(22) { result } else { NONE };
    let imm = w.field(16, 4) << 12 | w.field(0, 12);
    Some(Parts { imm, registers: [w.register(12), 0, 0, 0], sources, results: result, ..empty(row.runs, Class::Alu) })
}

/// BFI and BFC, SBFX and UBFX: the field must lie within the register.
pub fn bit_field(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    let (low, second) = (w.field(7, 5), w.field(16, 5));
    let is_insert = w.field(21, 2) == 2;
    let is_inside = if is_insert { second >= low } else { low + second <= 31 };
    plain(row, w, pc).filter(|_| is_inside)
}

/// Long multiplication: the halves of the result are different registers.
pub fn multiply_long(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.register(12) != w.register(16))
}

/// Returns the addressing mode from P and W; `None` for an access without privileges.
fn mode(w: Word) -> Option<Mode> {
    match (w.bit(24), w.bit(21)) {
        (true, false) => Some(Mode::Offset),
        (true, true) => Some(Mode::Before),
        (false, false) => Some(Mode::After),
        (false, true) => None,
    }
}

/// Offset of a load or store.
struct Address {
    form: OffsetForm,
    imm: u32,
    rm: u8,
    extra: u8,
}

/// Reads the operands of an access to Rt, of `bytes` bytes.
fn access(w: Word, pc: u32, data: Data, bytes: u32, address: Address) -> Option<Parts> {
    let (mode, rt, rn) = (mode(w)?, w.register(12), w.register(16));
    let changes_base = mode != Mode::Offset;
    let loads_pc = data == Data::LoadWord && rt == PC;
    if changes_base && (rn == PC || rn == rt) || rt == PC && !loads_pc {
        return None;
    }
    let is_immediate = address.form == OffsetForm::Immediate;
    // A pc-relative access has a known address.
    let (base, imm) = match rn {
        PC if is_immediate => (ZERO, address.imm.wrapping_add(pc).wrapping_add(8)),
        PC => return None,
        _ => (rn, address.imm),
    };
    let mut sources = core(rn).unwrap_or(NONE);
    if !is_immediate {
        sources = sources | core(address.rm)?;
        if address.form == OffsetForm::Shifted && address.extra & 3 == 3 && address.imm == 0 {
            sources = sources | SET_C;
        }
    }
    let register = core(rt).unwrap_or(NONE);
    let (class, results) = match (data.is_store(), loads_pc) {
        (true, _) => (Class::Store, NONE),
        (false, true) => (Class::LoadJump, NONE),
        (false, false) => (Class::Load, register),
    };
    let is_return = loads_pc && rn == 13;
    let class = if is_return { Class::LoadReturn } else { class };
    let offset = if is_immediate && mode == Mode::After { Offset::Immediate(0) } else { Offset::Immediate(imm) };
    let updates = if changes_base { core(rn)? } else { NONE };
    Some(Parts {
        imm,
        registers: [rt, base, address.rm, address.extra],
        sources: sources | if data.is_store() { register } else { NONE },
        results,
        access: Access { bytes, updates, base, offset },
        ..empty(
            if loads_pc { memory::forms_of_pc(mode, address.form) } else { memory::forms(data, mode, address.form) },
            class,
        )
    })
}

fn signed(w: Word, offset: u32) -> u32 {
    if w.bit(23) { offset } else { offset.wrapping_neg() }
}

fn word_or_byte(w: Word) -> (Data, u32) {
    match (w.bit(20), w.bit(22)) {
        (true, false) => (Data::LoadWord, 4),
        (true, true) => (Data::LoadByte, 1),
        (false, false) => (Data::StoreWord, 4),
        (false, true) => (Data::StoreByte, 1),
    }
}

/// LDR, STR, LDRB and STRB with an immediate offset.
pub fn access_immediate(_: &Row, w: Word, pc: u32) -> Option<Parts> {
    let (data, bytes) = word_or_byte(w);
    let imm = signed(w, w.field(0, 12));
    access(w, pc, data, bytes, Address { form: OffsetForm::Immediate, imm, rm: 0, extra: 0 })
}

/// LDR, STR, LDRB and STRB with an offset in a register.
pub fn access_register(_: &Row, w: Word, pc: u32) -> Option<Parts> {
    let (data, bytes) = word_or_byte(w);
    let (kind, imm) = (w.field(5, 2) as u8, w.field(7, 5));
    let is_plain = kind == 0 && w.bit(23);
    let form = if is_plain { OffsetForm::Register } else { OffsetForm::Shifted };
    let extra = kind | if w.bit(23) { 0 } else { 4 };
    access(w, pc, data, bytes, Address { form, imm, rm: w.register(0), extra })
}

/// LDRH, STRH, LDRSB, LDRSH, LDRD and STRD.
pub fn access_extra(_: &Row, w: Word, pc: u32) -> Option<Parts> {
    let is_immediate = w.bit(22);
    if !is_immediate && w.field(8, 4) != 0 {
        return None;
    }
    let offset = signed(w, w.field(8, 4) << 4 | w.field(0, 4));
    let data = match (w.bit(20), w.field(5, 2)) {
        (true, 1) => Data::LoadHalf,
        (true, 2) => Data::LoadSignedByte,
        (true, 3) => Data::LoadSignedHalf,
        (false, 1) => Data::StoreHalf,
        (false, kind @ (2 | 3)) => return access_double(w, pc, is_immediate, offset, kind == 3),
        _ => return None,
    };
    let bytes = if data == Data::LoadSignedByte { 1 } else { 2 };
    let address = if is_immediate {
        Address { form: OffsetForm::Immediate, imm: offset, rm: 0, extra: 0 }
    } else {
        let form = if w.bit(23) { OffsetForm::Register } else { OffsetForm::Shifted };
        Address { form, imm: 0, rm: w.register(0), extra: if w.bit(23) { 0 } else { 4 } }
    };
    access(w, pc, data, bytes, address)
}

fn access_double(w: Word, pc: u32, is_immediate: bool, offset: u32, stores: bool) -> Option<Parts> {
    let (mode, rt, rn, rm) = (mode(w)?, w.register(12), w.register(16), w.register(0));
    let changes_base = mode != Mode::Offset;
    if rt % 2 == 1 || changes_base && (rn == PC || rn == rt || rn == rt + 1) {
        return None;
    }
    if !is_immediate && (rm == PC || rn == PC || !stores && (rm == rt || rm == rt + 1)) {
        return None;
    }
    let pair = core(rt)? | core(rt + 1)?;
    let (base, imm) = if rn == PC { (ZERO, offset.wrapping_add(pc).wrapping_add(8)) } else { (rn, offset) };
    let sources = core(rn).unwrap_or(NONE) | if is_immediate { NONE } else { core(rm)? };
    let extra = mode as u8 | if is_immediate { 0 } else { 4 } | if is_immediate || w.bit(23) { 0 } else { 8 };
    let (runs, class) = match stores {
        true => (both(memory::double::<true>), Class::Store),
        false => (both(memory::double::<false>), Class::Load),
    };
    Some(Parts {
        imm,
        registers: [rt, base, rm, extra],
        sources: sources | if stores { pair } else { NONE },
        results: if stores { NONE } else { pair },
        access: Access {
            bytes: 8,
            updates: if changes_base { core(rn)? } else { NONE },
            base,
            offset: Offset::Immediate(imm),
        },
        ..empty(runs, class)
    })
}

/// LDM and STM.
pub fn block(_: &Row, w: Word, _: u32) -> Option<Parts> {
    let (list, rn, loads, changes_base) = (w.field(0, 16), w.register(16), w.bit(20), w.bit(21));
    let base = core(rn)?;
    let is_in_list = list >> rn & 1 == 1;
    let is_lowest = list.trailing_zeros() == u32::from(rn);
    let has_pc = list >> PC & 1 == 1;
    if list == 0 || changes_base && is_in_list && (loads || !is_lowest) || has_pc && !loads {
        return None;
    }
    let registers = (0..PC).filter(|register| list >> register & 1 == 1).map(RegisterSet::of);
    let registers = registers.fold(NONE, |all, register| all | register);
    let (runs, class) = match (loads, has_pc) {
        (true, true) if rn == 13 => (both(ldm_pc), Class::LoadReturn),
        (true, true) => (both(ldm_pc), Class::LoadJump),
        (true, false) => (super::guard::both_of_access(ldm::<true>, ldm::<false>), Class::Load),
        (false, _) => (super::guard::both_of_access(stm::<true>, stm::<false>), Class::Store),
    };
    Some(Parts {
        imm: w.0,
        registers: [rn, 0, 0, 0],
        sources: base | if loads { NONE } else { registers },
        results: if loads { registers } else { NONE },
        access: Access {
            bytes: 4 * list.count_ones(),
            updates: if changes_base { base } else { NONE },
            base: rn,
            offset: Offset::Immediate(0),
        },
        ..empty(runs, class)
    })
}

/// LDM with the pc in its list.
fn ldm_pc(s: &mut crate::isa::State, m: &mut crate::isa::View<'_>, op: &Op) -> crate::op::Flow {
    match ldm::<true>(s, m, op) {
        crate::op::Flow::Load => ldm::<false>(s, m, op),
        flow => flow,
    }
}

/// VLDR and VSTR.
pub fn float_access(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    let (rn, is_double, loads) = (w.register(16), w.bit(8), w.bit(20));
    let offset = signed(w, 4 * w.field(0, 8));
    let (base, imm) = if rn == PC { (ZERO, offset.wrapping_add(pc).wrapping_add(8)) } else { (rn, offset) };
    let (register, set) = if is_double { (w.dd(), double(w.dd())) } else { (w.sd(), double(w.sd() >> 1)) };
    let sources = core(rn).unwrap_or(NONE);
    Some(Parts {
        imm,
        registers: [base, 0, register, 0],
        sources: sources | if loads { NONE } else { set },
        results: if loads { set } else { NONE },
        access: Access { bytes: if is_double { 8 } else { 4 }, updates: NONE, base, offset: Offset::Immediate(imm) },
        ..empty(row.runs, row.class)
    })
}

/// VLDM and VSTM.
pub fn float_block(row: &Row, w: Word, _: u32) -> Option<Parts> {
    let (rn, is_double, loads) = (w.register(16), w.bit(8), w.bit(20));
    let (first, count) = if is_double { (w.dd(), w.field(1, 7)) } else { (w.sd(), w.field(0, 8)) };
    if count == 0 || u32::from(first) + count > 32 || is_double && (w.bit(0) || count > 16) {
        return None;
    }
    let base = core(rn)?;
    let registers =
        (first..).take(count as usize).map(|register| double(if is_double { register } else { register >> 1 }));
    let registers = registers.fold(NONE, |all, register| all | register);
    Some(Parts {
        imm: w.0,
        sources: base | if loads { NONE } else { registers },
        results: if loads { registers } else { NONE },
        access: Access {
            bytes: count * if is_double { 8 } else { 4 },
            updates: if w.bit(21) { base } else { NONE },
            base: rn,
            offset: Offset::Immediate(0),
        },
        ..empty(row.runs, row.class)
    })
}

/// Loads and stores exclusive, of the bytes in the size field. The status register of a store differs from its others.
pub fn exclusive(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    let (rd, rt, rn) = (w.register(12), w.register(0), w.register(16));
    let is_double = w.field(21, 2) == 1;
    let is_store = !w.bit(20);
    if is_store && (rd == rn || rd == rt || is_double && rd == rt + 1) {
        return None;
    }
    let bytes = [4, 8, 1, 2][w.field(21, 2) as usize];
    let access = Access { bytes, updates: NONE, base: rn, offset: Offset::Immediate(0) };
    plain(row, w, pc).map(|parts| Parts { access, ..parts })
}

/// B and BL.
pub fn direct(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    let offset = ((w.field(0, 24) << 8) as i32 >> 6) as u32;
    let target = pc.wrapping_add(8).wrapping_add(offset);
    let links = w.bit(24);
    let runs = if links { row.runs } else { [row.runs[0], BRANCHES[(w.0 >> 28) as usize & 15]] };
    let results = if links { RegisterSet::of(LR) } else { NONE };
    Some(Parts { imm: target, results, target: Some(target), ..empty(runs, Class::Jump) })
}

/// Branches by condition.
static BRANCHES: [Run; 16] = [
    Run::new(branch::<0>),
    Run::new(branch::<1>),
    Run::new(branch::<2>),
    Run::new(branch::<3>),
    Run::new(branch::<4>),
    Run::new(branch::<5>),
    Run::new(branch::<6>),
    Run::new(branch::<7>),
    Run::new(branch::<8>),
    Run::new(branch::<9>),
    Run::new(branch::<10>),
    Run::new(branch::<11>),
    Run::new(branch::<12>),
    Run::new(branch::<13>),
    Run::new(branch::<14>),
    Run::new(branch::<15>),
];

/// BX and BLX with a register.
pub fn indirect(row: &Row, w: Word, _: u32) -> Option<Parts> {
    let rm = w.register(0);
    let links = w.bit(5);
    let class = if rm == LR && !links { Class::Return } else { Class::JumpIndirect };
    let results = if links { RegisterSet::of(LR) } else { NONE };
    Some(Parts { registers: [rm, 0, 0, 0], sources: core(rm)?, results, ..empty(row.runs, class) })
}

/// DMB and DSB: all accesses, or stores only (A8.8.43).
pub fn barrier(row: &Row, w: Word, _: u32) -> Option<Parts> {
    let orders_loads = !matches!(w.field(0, 4), 0b0010 | 0b0110 | 0b1010 | 0b1110);
    let fence = Fence { after_stores: true, before_loads: orders_loads };
    Some(Parts { fence: Some(fence), ..empty(row.runs, row.class) })
}

/// ISB: orders no accesses that handlers can observe.
pub fn nothing(row: &Row, _: Word, _: u32) -> Option<Parts> {
    Some(empty(row.runs, row.class))
}

/// Breakpoints and undefined instructions for traps, always without a condition.
pub fn always(row: &Row, w: Word, _: u32) -> Option<Parts> {
    (w.0 >> 28 == ALWAYS).then(|| empty(row.runs, row.class))
}

/// MSR of flags: at least one field.
pub fn flags_written(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| w.field(18, 2) != 0)
}

/// Fixed-point conversions: at most as many fraction bits as the number has bits.
pub fn fixed_point(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    let size = if w.bit(7) { 32 } else { 16 };
    plain(row, w, pc).filter(|_| w.field(0, 4) << 1 | w.field(5, 1) <= size)
}

/// VMOV to two core registers: different ones.
pub fn pair_of_core(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    plain(row, w, pc).filter(|_| !w.bit(20) || w.register(12) != w.register(16))
}

/// VMOV between a core register and a lane.
pub fn lane(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    super::vfp::lane(w)?;
    plain(row, w, pc)
}

/// VDUP from a core register.
pub fn duplicate(row: &Row, w: Word, pc: u32) -> Option<Parts> {
    if w.bit(22) && w.bit(5) || w.bit(21) && w.dn() % 2 == 1 {
        return None;
    }
    let parts = plain(row, w, pc)?;
    let second = if w.bit(21) { double(w.dn() + 1) } else { NONE };
    Some(Parts { results: parts.results | second, ..parts })
}
