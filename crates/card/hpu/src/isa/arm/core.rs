// SPDX-License-Identifier: Apache-2.0
//! ARM cores, by name.

use std::sync::Arc;

use object::elf::EM_ARM;

use super::{decode, elf};
use crate::isa::interface::{Convention, DeviceElf, Isa};
use crate::op::Decoded;

/// Names of ARM cores, for messages.
pub const NAMES: &str = "ARM: armv7a (A32 of ARMv7-A with VFPv4 and Advanced SIMD, as in a Cortex-A15)";

/// Instruction set without suffixes.
const NAME: &str = "armv7a";

/// A core with A32, VFPv4 and Advanced SIMD.
#[derive(Debug)]
struct Arm;

/// Returns the core with this name; `None` if it is not one of [`NAMES`].
pub fn by_name(name: &str) -> Option<Arc<dyn Isa>> {
    (name.split('-').next() == Some(NAME)).then(|| Arc::new(Arm) as Arc<dyn Isa>)
}

/// Convention of the AAPCS, with command numbers in `r7` as for system calls.
const CONVENTION: Convention = Convention {
    arguments: &[0, 1, 2, 3],
    result: 0,
    sink: None,
    stack_pointer: 13,
    return_address: 14,
    command: 7,
    command_argument: 0,
    global_pointer: None,
};

impl Isa for Arm {
    fn name(&self) -> String {
        NAME.into()
    }

    fn machine(&self) -> (u16, &'static str) {
        (EM_ARM.0, "ARM")
    }

    fn check(&self, elf: &DeviceElf<'_>) -> Result<(), String> {
        elf::check(elf)
    }

    fn decode(&self, bytes: &[u8], pc: u32) -> Option<Decoded> {
        Some(decode::decode(u32::from_le_bytes(*bytes.first_chunk()?), pc))
    }

    fn convention(&self) -> &'static Convention {
        &CONVENTION
    }
}
