// SPDX-License-Identifier: Apache-2.0
//! Loads and stores of elements and structures (A7.7): VLD1 to VLD4 and VST1 to VST4, in all lanes, one lane, or
//! one element to all lanes.
//!
//! As in `multiple`, a load writes no register before all its accesses succeeded.

use crate::architectural_state::State;
use crate::isa::arm::fields::{PC, Word};
use crate::isa::arm::memory::is_misaligned;
use crate::isa::arm::operands::NOTHING;
use crate::isa::arm::operands::{core, double};
use crate::isa::arm::row::{Parts, Row, plain, row};
use crate::memory::View;
use crate::op::Class::{Load, Store};
use crate::op::{Access, Flow, Offset, Op, RegisterSet};

/// Registers and memory of an instruction.
#[derive(Clone, Copy)]
struct Shape {
    /// Structures consist of this number of elements.
    elements: u8,
    /// Registers between those of two elements.
    spacing: u8,
    /// Registers for each element.
    registers: u8,
    /// Size of an element in bytes.
    size: u32,
    /// Alignment that the instruction demands, in bytes.
    alignment: u32,
    /// Accessed lane, or `None` for all lanes.
    lane: Option<u32>,
    /// Bytes of memory.
    bytes: u32,
}

/// Returns the shape of an instruction on all lanes.
fn multiple(w: Word) -> Option<Shape> {
    let (elements, registers, spacing) = match w.field(8, 4) {
        0b0111 => (1, 1, 1),
        0b1010 => (1, 2, 1),
        0b0110 => (1, 3, 1),
        0b0010 => (1, 4, 1),
        0b1000 => (2, 1, 1),
        0b1001 => (2, 1, 2),
        0b0011 => (2, 2, 2),
        0b0100 => (3, 1, 1),
        0b0101 => (3, 1, 2),
        0b0000 => (4, 1, 1),
        0b0001 => (4, 1, 2),
        _ => return None,
    };
    let (size, align, kind) = (w.field(6, 2), w.field(4, 2), w.field(8, 4));
    let undefined = match kind {
        0b0100..=0b0111 => align & 2 != 0,
        0b1000..=0b1010 => align == 3,
        _ => false,
    };
    if undefined || size == 3 && elements > 1 {
        return None;
    }
    let alignment = if align == 0 { 1 } else { 4 << align };
    let bytes = 8 * u32::from(elements * registers);
    Some(Shape { elements, spacing, registers, size: 1 << size, alignment, lane: None, bytes })
}

/// Returns the shape of an instruction on one lane.
fn single(w: Word) -> Option<Shape> {
    let (size, elements, align) = (w.field(10, 2), w.field(8, 2) as u8 + 1, w.field(4, 4));
    if size == 3 {
        return None;
    }
    let (lane, spaced, low) = match size {
        0 => (align >> 1, false, align & 1),
        1 => (align >> 2, align & 2 != 0, align & 1),
        _ => (align >> 3, align & 4 != 0, align & 3),
    };
    let bytes = u32::from(elements) << size;
    let alignment = match (elements, size, low) {
        (_, _, 0) => 1,
        (1, 1, 1) => 2,
        (1, 2, 3) => 4,
        (2, _, 1) | (4, 0 | 1, 1) => bytes,
        (4, 2, 1) => 8,
        (4, 2, 2) => 16,
        _ => return None,
    };
    // VLD1 has no spacing.
    if elements == 1 && spaced || elements == 1 && size == 0 && low != 0 {
        return None;
    }
    let spacing = if spaced { 2 } else { 1 };
    Some(Shape { elements, spacing, registers: 1, size: 1 << size, alignment, lane: Some(lane), bytes })
}

/// Returns the shape of a load of one element to all lanes.
fn all_lanes(w: Word) -> Option<Shape> {
    let (size, elements, aligned) = (w.field(6, 2), w.field(8, 2) as u8 + 1, w.bit(4));
    let (registers, spacing) = match (elements, w.bit(5)) {
        (1, true) => (2, 1),
        (1, false) => (1, 1),
        (_, true) => (1, 2),
        (_, false) => (1, 1),
    };
    let (bytes, alignment) = match (elements, size, aligned) {
        (4, 3, true) => (16, 16),
        (_, 3, _) | (3, _, true) | (1, 0, true) => return None,
        (4, 2, true) => (16, 8),
        (_, _, true) => (u32::from(elements) << size, u32::from(elements) << size),
        (_, _, false) => (u32::from(elements) << size, 1),
    };
    let size = if size == 3 { 4 } else { 1 << size };
    Some(Shape { elements, spacing, registers, size, alignment, lane: Some(0), bytes })
}

impl Shape {
    /// Returns the highest register.
    fn last(self, first: u8) -> u8 {
        first + (self.elements - 1) * self.spacing + self.registers - 1
    }

    /// Returns the registers of element `element`.
    fn registers_of(self, first: u8, element: u8) -> impl Iterator<Item = u8> {
        // Two elements of two registers each interleave pairs: registers 0 and 1 for the first, 2 and 3 for the second.
        (0..self.registers).map(move |register| first + element * self.spacing + register)
    }
}

/// Reads the fields: registers below 32, and a base register.
fn form(row: &Row, w: Word, pc: u32, shape: Option<Shape>) -> Option<Parts> {
    let shape = shape?;
    let (first, rn, rm) = (w.dd(), w.register(16), w.register(0));
    if shape.last(first) > 31 || rn == PC {
        return None;
    }
    let registers = (0..shape.elements).flat_map(|element| shape.registers_of(first, element));
    let registers = registers.fold(RegisterSet::NONE, |all, register| all | double(register));
    let base = core(rn)?;
    let has_offset = rm != 13 && rm != PC;
    let sources = base | if has_offset { core(rm)? } else { RegisterSet::NONE };
    let loads = w.bit(21);
    let keeps = shape.lane.is_some() && w.field(10, 2) != 3;
    let parts = plain(row, w, pc)?;
    Some(Parts {
        sources: sources | if !loads || keeps { registers } else { RegisterSet::NONE },
        results: if loads { registers } else { RegisterSet::NONE },
        access: Access {
            bytes: shape.bytes,
            updates: if rm == PC { RegisterSet::NONE } else { base },
            base: rn,
            offset: Offset::Immediate(0),
        },
        ..parts
    })
}

/// Returns the elements of an access in the order of their addresses: register, and position in bits.
fn elements(shape: Shape, first: u8) -> impl Iterator<Item = (u8, u32)> {
    let lanes = match shape.lane {
        Some(lane) => lane..lane + 1,
        None => 0..8 / shape.size,
    };
    (0..shape.registers).flat_map(move |register| {
        lanes.clone().flat_map(move |lane| {
            (0..shape.elements).map(move |element| (first + register + element * shape.spacing, 8 * shape.size * lane))
        })
    })
}

/// Returns the value of the base register after an access; `None` if it does not change.
fn after(s: &State, w: Word, shape: Shape) -> Option<(u8, u32)> {
    let (rn, rm) = (w.register(16), w.register(0));
    let step = match rm {
        PC => return None,
        13 => shape.bytes,
        _ => s.word(rm),
    };
    Some((rn, s.word(rn).wrapping_add(step)))
}

/// Loads `bytes` bytes, 1 to 8.
fn load(s: &mut State, m: &mut View<'_>, address: u32, bytes: u32) -> Option<u64> {
    Some(match bytes {
        1 => u8::from_le_bytes(s.load(m, address)?).into(),
        2 => u16::from_le_bytes(s.load(m, address)?).into(),
        4 => u32::from_le_bytes(s.load(m, address)?).into(),
        _ => u64::from_le_bytes(s.load(m, address)?),
    })
}

fn store(s: &mut State, m: &mut View<'_>, address: u32, bytes: u32, value: u64) -> Option<()> {
    match bytes {
        1 => s.store(m, address, (value as u8).to_le_bytes()),
        2 => s.store(m, address, (value as u16).to_le_bytes()),
        4 => s.store(m, address, (value as u32).to_le_bytes()),
        _ => s.store(m, address, value.to_le_bytes()),
    }
}

/// Executes a load. `TO_ALL`: the element is copied to all lanes.
fn loads<const TO_ALL: bool>(s: &mut State, m: &mut View<'_>, w: Word, shape: Shape) -> Flow {
    let base = s.word(w.register(16));
    if is_misaligned(m, base, shape.alignment, shape.bytes) {
        return Flow::Misaligned;
    }
    let first = w.dd();
    let mut new: [u64; 8] = std::array::from_fn(|register| s.wide(first + register as u8));
    let contiguous = shape.elements == 1 && shape.lane.is_none();
    if contiguous {
        for register in 0..shape.registers {
            let Some(value) = load(s, m, base.wrapping_add(8 * u32::from(register)), 8) else { return Flow::Load };
            new[usize::from(register)] = value;
        }
    } else if TO_ALL {
        let bits = 8 * shape.size;
        for element in 0..shape.elements {
            let address = base.wrapping_add(u32::from(element) * shape.size);
            let Some(value) = load(s, m, address, shape.size) else { return Flow::Load };
            let value = (0..64 / bits).fold(0, |all, at| all | value << (bits * at));
            for register in shape.registers_of(0, element) {
                new[usize::from(register)] = value;
            }
        }
    } else {
        let mask = u64::MAX >> (64 - 8 * shape.size);
        for (at, (register, position)) in elements(shape, 0).enumerate() {
            let address = base.wrapping_add(at as u32 * shape.size);
            let Some(value) = load(s, m, address, shape.size) else { return Flow::Load };
            let old = &mut new[usize::from(register)];
            *old = *old & !(mask << position) | value << position;
        }
    }
    let after = after(s, w, shape);
    for register in 0..=shape.last(0) {
        s.set_wide(first + register, new[usize::from(register)]);
    }
    if let Some((register, value)) = after {
        s.set_word(register, value);
    }
    Flow::Next
}

fn stores(s: &mut State, m: &mut View<'_>, w: Word, shape: Shape) -> Flow {
    let base = s.word(w.register(16));
    if is_misaligned(m, base, shape.alignment, shape.bytes) {
        return Flow::Misaligned;
    }
    if shape.elements == 1 && shape.lane.is_none() {
        for register in 0..shape.registers {
            let value = s.wide(w.dd() + register);
            if store(s, m, base.wrapping_add(8 * u32::from(register)), 8, value).is_none() {
                return Flow::Store;
            }
        }
    } else {
        for (at, (register, position)) in elements(shape, w.dd()).enumerate() {
            let value = s.wide(register) >> position;
            if store(s, m, base.wrapping_add(at as u32 * shape.size), shape.size, value).is_none() {
                return Flow::Store;
            }
        }
    }
    if let Some((register, value)) = after(s, w, shape) {
        s.set_word(register, value);
    }
    Flow::Next
}

macro_rules! access {
    ($name:literal, $mask:literal, $bits:literal, $class:expr, $shape:ident, $f:expr) => {
        row($name, $mask, $bits, $class, NOTHING, NOTHING, |s: &mut State, m: &mut View<'_>, op: &Op| {
            let w = Word(op.imm);
            let Some(shape) = $shape(w) else { return Flow::Illegal };
            $f(s, m, w, shape)
        })
        .with(|row, w, pc| form(row, w, pc, $shape(w)))
    };
}

pub const ACCESS: &[Row] = &[
    access!("vst multiple", 0xffb0_0000, 0xf400_0000, Store, multiple, stores),
    access!("vld multiple", 0xffb0_0000, 0xf420_0000, Load, multiple, loads::<false>),
    access!("vst lane", 0xffb0_0000, 0xf480_0000, Store, single, stores),
    access!("vld lane 8", 0xffb0_0c00, 0xf4a0_0000, Load, single, loads::<false>),
    access!("vld lane 16", 0xffb0_0c00, 0xf4a0_0400, Load, single, loads::<false>),
    access!("vld lane 32", 0xffb0_0c00, 0xf4a0_0800, Load, single, loads::<false>),
    access!("vld all lanes", 0xffb0_0c00, 0xf4a0_0c00, Load, all_lanes, loads::<true>),
];
