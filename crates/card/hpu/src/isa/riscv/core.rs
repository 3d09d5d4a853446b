// SPDX-License-Identifier: Apache-2.0
//! RISC-V cores, by name.

use std::sync::Arc;

use object::elf::EM_RISCV;

use super::extensions::{Extensions, XCV_HWLP};
use super::fields::SINK;
use super::{corev, decode, elf};
use crate::isa::interface::{Convention, DeviceElf, Isa};
use crate::op::{Decoded, Op};

/// Names of RISC-V cores, for messages.
pub const NAMES: &str = "RISC-V: rv32i, then those of m, a, f, d (with f) and c that the core has, in this order (\"rv32imac\"), and with \
     CORE-V \"-corev\"";

/// An RV32 core with these extensions.
#[derive(Debug)]
struct RiscV {
    extensions: Extensions,
}

/// Returns the core with this name; `None` if it is not one of [`NAMES`].
pub fn by_name(name: &str) -> Option<Arc<dyn Isa>> {
    Some(Arc::new(RiscV { extensions: Extensions::of_name(name)? }))
}

/// Convention of the RISC-V ELF psABI, "Integer Calling Convention", with command numbers in `a7` as for system calls.
const CONVENTION: Convention = Convention {
    arguments: &[10, 11, 12, 13, 14, 15, 16, 17],
    result: 10,
    sink: Some(SINK),
    stack_pointer: 2,
    return_address: 1,
    command: 17,
    command_argument: 10,
    global_pointer: Some((3, "__global_pointer$")),
};

impl Isa for RiscV {
    fn name(&self) -> String {
        self.extensions.to_string()
    }

    fn machine(&self) -> (u16, &'static str) {
        (EM_RISCV.0, "RISC-V")
    }

    fn check(&self, elf: &DeviceElf<'_>) -> Result<(), String> {
        elf::check(elf, self.extensions)
    }

    fn decode(&self, bytes: &[u8], pc: u32) -> Option<Decoded> {
        decode::decode(bytes, pc, self.extensions)
    }

    fn loop_end(&self, end: u32) -> Option<Op> {
        self.extensions.contain(XCV_HWLP).then(|| corev::at_end(end))
    }

    fn convention(&self) -> &'static Convention {
        &CONVENTION
    }
}
