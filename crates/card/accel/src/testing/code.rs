// SPDX-License-Identifier: Apache-2.0
//! Handlers assembled from 32-bit RISC-V instructions, in an ELF file in memory.

use std::rc::Rc;
use std::sync::Arc;

use abi::device::map;
use hpu::Program;
use hpu::testing::branch;
pub use hpu::testing::{A0, A1, ECALL, NOP, RET, add, addi, i as immediate, lw, sw};
use machine::Machine;

use crate::map::load_map;
use crate::program::{CardProgram, DeviceProgram, Handler};

/// The register that always contains 0.
pub const ZERO: u32 = 0;
/// A temporary register.
pub const T0: u32 = 5;
/// A temporary register.
pub const T1: u32 = 6;
/// A callee-saved register.
pub const S0: u32 = 8;
/// A callee-saved register.
pub const S1: u32 = 9;
/// Number of a command.
pub const A7: u32 = 17;
/// A callee-saved register.
pub const S2: u32 = 18;

/// `rd = value`, whose lower 12 bits must be 0.
pub fn lui(rd: u32, value: u32) -> u32 {
    debug_assert!(value & 0xfff == 0, "lui sets the upper 20 bits");
    value | rd << 7 | 0x37
}

/// Branches by `instructions` instructions if the register is 0.
pub fn beqz(rs1: u32, instructions: i32) -> u32 {
    branch(0, rs1, ZERO, instructions * 4)
}

/// Branches by `instructions` instructions if the register is not 0.
pub fn bnez(rs1: u32, instructions: i32) -> u32 {
    branch(1, rs1, ZERO, instructions * 4)
}

/// Jumps to itself forever.
pub const SPIN: u32 = 0x0000_006f;

/// Assembles a handler that returns `code` immediately.
pub fn returns(code: u32) -> Vec<u32> {
    vec![addi(A0, ZERO, code as i32), RET]
}

/// Assembles a handler that issues the command with the argument block at `argument` and then returns `code`.
pub fn commands(number: u32, argument: u32, code: u32) -> Vec<u32> {
    let low = (argument & 0xfff) as i32;
    vec![
        lui(A0, argument & !0xfff),
        addi(A0, A0, low),
        addi(A7, ZERO, number as i32),
        ECALL,
        addi(A0, ZERO, code as i32),
        RET,
    ]
}

/// Builds an ELF executable for RISC-V from `code`.
pub fn executable(code: &[u8]) -> Vec<u8> {
    executable_with(code, &[])
}

/// Builds an ELF executable for RISC-V from `code`, with data at these addresses.
pub fn executable_with(code: &[u8], data: &[(u32, Vec<u8>)]) -> Vec<u8> {
    const HEADER: u32 = 52;
    const SEGMENT: u32 = 32;
    let mut elf = b"\x7fELF\x01\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    elf.extend([2, 0, 243, 0]); // ET_EXEC, EM_RISCV
    for word in [1, map::PROGRAM, HEADER, 0, 0] {
        elf.extend(word.to_le_bytes());
    }
    let segments = [(map::PROGRAM, code, 5)].into_iter().chain(data.iter().map(|(at, bytes)| (*at, &bytes[..], 6)));
    let count = 1 + data.len() as u32;
    for half in [HEADER, SEGMENT, count, 40, 0, 0] {
        elf.extend((half as u16).to_le_bytes());
    }
    let mut offset = HEADER + count * SEGMENT;
    for (address, bytes, flags) in segments.clone() {
        // PT_LOAD: offset, addresses, sizes in file and memory, flags, alignment
        let length = bytes.len() as u32;
        for word in [1, offset, address, address, length, length, flags, 4] {
            elf.extend(word.to_le_bytes());
        }
        offset += length;
    }
    segments.for_each(|(_, bytes, _)| elf.extend_from_slice(bytes));
    elf
}

/// Returns the address of the host twin of handler number `handler`.
pub const fn twin(handler: usize) -> u64 {
    0x1000 + 0x10 * handler as u64
}

/// Builds a device program from handlers by name; their host twins are at [`twin`].
///
/// # Panics
/// Panics if the program does not load or does not fit the card.
pub fn program(machine: &Machine, handlers: &[(&str, Vec<u32>)]) -> Rc<CardProgram> {
    let code: Vec<u8> = handlers.iter().flat_map(|(_, code)| code).flat_map(|word| word.to_le_bytes()).collect();
    let isa = hpu::isa::instruction_set(&machine.hpu.kind).expect("a machine whose HPU kind is known");
    let program =
        Program::load(&executable(&code), isa, &load_map()).expect("an executable with code and nothing else");
    let mut entry = map::PROGRAM;
    let handlers = handlers.iter().enumerate().map(|(number, (name, code))| {
        let handler = Handler { name: (*name).into(), entry };
        entry += 4 * code.len() as u32;
        (twin(number), handler)
    });
    let device = DeviceProgram { handlers: handlers.collect(), program: Arc::new(program) };
    CardProgram::new(device, machine).expect("a program that fits the card")
}
