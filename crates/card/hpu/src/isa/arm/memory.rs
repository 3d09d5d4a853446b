// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of one register (A5.3, A5.2.8), and of two.

use super::data::{shifted, sixteen};
use super::fields::C;
use super::guard::{Runs, both, both_of_access};
use crate::architectural_state::State;
use crate::memory::View;
use crate::op::{Flow, Op};

/// Data of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Data {
    LoadWord,
    LoadByte,
    LoadHalf,
    LoadSignedByte,
    LoadSignedHalf,
    StoreWord,
    StoreByte,
    StoreHalf,
}

impl Data {
    /// Returns true for a store.
    pub fn is_store(self) -> bool {
        matches!(self, Data::StoreWord | Data::StoreByte | Data::StoreHalf)
    }
}

/// Use of the sum of base register and offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Address.
    Offset,
    /// Address, and new value of the base register.
    Before,
    /// New value of the base register, which is the address.
    After,
}

/// Form of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetForm {
    /// The immediate.
    Immediate,
    /// Register 2, shifted left by the immediate.
    Register,
    /// Register 2, shifted by the immediate; the type is in bits 1 to 0 of register 3, and bit 2 is set if it is subtracted.
    Shifted,
}

/// Returns the offset from the base register.
#[inline(always)]
fn offset<const FORM: u32>(s: &State, op: &Op) -> u32 {
    match FORM {
        0 => op.imm,
        1 => s.word(op.registers[2]) << op.imm,
        _ => {
            let (value, kind) = (s.word(op.registers[2]), u32::from(op.registers[3]));
            let value = match (kind & 3, op.imm) {
                (3, 0) => value >> 1 | s.word(C) << 31,
                (1 | 2, 0) => shifted(value, kind & 3, 32, 0).0,
                (kind, amount) => shifted(value, kind, amount, 0).0,
            };
            if kind & 4 == 0 { value } else { value.wrapping_neg() }
        }
    }
}

/// Returns the address of an access and the value of its base register after it.
#[inline(always)]
fn address<const MODE: u32, const FORM: u32>(s: &State, op: &Op) -> (u32, u32) {
    let base = s.word(op.registers[1]);
    let sum = base.wrapping_add(offset::<FORM>(s, op));
    if MODE == Mode::After as u32 { (base, sum) } else { (sum, sum) }
}

/// Accesses `DATA`. Registers: Rt, Rn, Rm, extra.
#[inline(always)]
fn access<const AT_HAND: bool, const DATA: u32, const MODE: u32, const FORM: u32>(
    s: &mut State,
    m: &mut View<'_>,
    op: &Op,
) -> Flow {
    let (address, after) = address::<MODE, FORM>(s, op);
    macro_rules! load {
        ($bytes:literal, $from:expr) => {
            match s.load_from::<AT_HAND, $bytes>(m, address) {
                Some(bytes) => Some($from(bytes)),
                None => return Flow::Load,
            }
        };
    }
    macro_rules! store {
        ($kind:ty) => {{
            let value = s.word(op.registers[0]) as $kind;
            if s.store_to::<AT_HAND, { size_of::<$kind>() }>(m, address, value.to_le_bytes()).is_none() {
                return Flow::Store;
            }
            None
        }};
    }
    let loaded: Option<u32> = match DATA {
        0 => load!(4, u32::from_le_bytes),
        1 => load!(1, |[byte]: [u8; 1]| u32::from(byte)),
        2 => load!(2, |half| u32::from(u16::from_le_bytes(half))),
        3 => load!(1, |[byte]: [u8; 1]| i32::from(byte as i8) as u32),
        4 => load!(2, |half| i32::from(i16::from_le_bytes(half)) as u32),
        5 => store!(u32),
        6 => store!(u8),
        _ => store!(u16),
    };
    if MODE != Mode::Offset as u32 {
        s.set_word(op.registers[1], after);
    }
    if let Some(value) = loaded {
        s.set_word(op.registers[0], value);
    }
    Flow::Next
}

/// Dispatches a constant code: data in bits 2 to 0, mode in bits 4 to 3, form from bit 5.
#[inline(always)]
fn access_code<const AT_HAND: bool, const CODE: u32>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    macro_rules! forms {
        ($($data:literal)*) => {
            match (CODE & 7, CODE >> 3 & 3, CODE >> 5) {
                $(($data, 0, 0) => access::<AT_HAND, $data, 0, 0>(s, m, op),
                  ($data, 0, 1) => access::<AT_HAND, $data, 0, 1>(s, m, op),
                  ($data, 0, _) => access::<AT_HAND, $data, 0, 2>(s, m, op),
                  ($data, 1, 0) => access::<AT_HAND, $data, 1, 0>(s, m, op),
                  ($data, 1, 1) => access::<AT_HAND, $data, 1, 1>(s, m, op),
                  ($data, 1, _) => access::<AT_HAND, $data, 1, 2>(s, m, op),
                  ($data, _, 0) => access::<AT_HAND, $data, 2, 0>(s, m, op),
                  ($data, _, 1) => access::<AT_HAND, $data, 2, 1>(s, m, op),
                  ($data, _, _) => access::<AT_HAND, $data, 2, 2>(s, m, op),)*
                _ => Flow::Illegal,
            }
        };
    }
    forms!(0 1 2 3 4 5 6 7)
}

const fn runs<const CODE: u32>() -> Runs {
    both_of_access(access_code::<true, CODE>, access_code::<false, CODE>)
}

static RUNS: [[Runs; 16]; 6] = [
    sixteen!(runs, 0),
    sixteen!(runs, 16),
    sixteen!(runs, 32),
    sixteen!(runs, 48),
    sixteen!(runs, 64),
    sixteen!(runs, 80),
];

/// Returns the forms of a load or store.
pub fn forms(data: Data, mode: Mode, form: OffsetForm) -> Runs {
    let code = data as usize | (mode as usize) << 3 | (form as usize) << 5;
    RUNS[code >> 4][code & 15]
}

/// LDR with the pc as its result.
fn load_pc<const MODE: u32, const FORM: u32>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let (address, after) = address::<MODE, FORM>(s, op);
    let Some(bytes) = s.load(m, address) else { return Flow::Load };
    if MODE != Mode::Offset as u32 {
        s.set_word(op.registers[1], after);
    }
    super::control::jump(s, u32::from_le_bytes(bytes))
}

/// Returns the forms of a load of the pc.
pub fn forms_of_pc(mode: Mode, form: OffsetForm) -> Runs {
    match (mode, form) {
        (Mode::Offset, OffsetForm::Immediate) => both(load_pc::<0, 0>),
        (Mode::Offset, OffsetForm::Register) => both(load_pc::<0, 1>),
        (Mode::Offset, OffsetForm::Shifted) => both(load_pc::<0, 2>),
        (Mode::Before, OffsetForm::Immediate) => both(load_pc::<1, 0>),
        (Mode::Before, OffsetForm::Register) => both(load_pc::<1, 1>),
        (Mode::Before, OffsetForm::Shifted) => both(load_pc::<1, 2>),
        (Mode::After, OffsetForm::Immediate) => both(load_pc::<2, 0>),
        (Mode::After, OffsetForm::Register) => both(load_pc::<2, 1>),
        (Mode::After, OffsetForm::Shifted) => both(load_pc::<2, 2>),
    }
}

/// Returns true if the address of an access is not a multiple of its alignment, after recording the access.
#[inline(always)]
pub fn is_misaligned(m: &mut View<'_>, address: u32, alignment: u32, bytes: u32) -> bool {
    let is_misaligned = !address.is_multiple_of(alignment);
    if is_misaligned {
        m.deny(address, bytes);
    }
    is_misaligned
}

/// LDRD and STRD: registers Rt, Rn and Rm. Bits 1 to 0 of register 3 are the mode; bit 2 is set for an offset in Rm, and
/// bit 3 if it is subtracted. The address must be a multiple of 4 (A3.2.1).
pub fn double<const STORES: bool>(s: &mut State, m: &mut View<'_>, op: &Op) -> Flow {
    let extra = op.registers[3];
    let offset = match extra & 12 {
        4 => s.word(op.registers[2]),
        12 => s.word(op.registers[2]).wrapping_neg(),
        _ => op.imm,
    };
    let base = s.word(op.registers[1]);
    let sum = base.wrapping_add(offset);
    let mode = u32::from(extra & 3);
    let address = if mode == Mode::After as u32 { base } else { sum };
    if is_misaligned(m, address, 4, 8) {
        return Flow::Misaligned;
    }
    let (first, second) = (op.registers[0], (op.registers[0] & 63) + 1);
    if STORES {
        let value = u64::from(s.word(second)) << 32 | u64::from(s.word(first));
        if s.store(m, address, value.to_le_bytes()).is_none() {
            return Flow::Store;
        }
    }
    let loaded = if STORES { None } else { s.load::<8>(m, address) };
    if !STORES && loaded.is_none() {
        return Flow::Load;
    }
    if mode != Mode::Offset as u32 {
        s.set_word(op.registers[1], sum);
    }
    if let Some(bytes) = loaded {
        let value = u64::from_le_bytes(bytes);
        s.set_word(first, value as u32);
        s.set_word(second, (value >> 32) as u32);
    }
    Flow::Next
}
