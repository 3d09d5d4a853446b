// SPDX-License-Identifier: Apache-2.0
//! Call stacks, from the compiler's call frame information (`.debug_frame`).

use std::collections::BTreeMap;

use gimli::UnwindSection;

use super::elf::Program;
use super::lines::Location;
use crate::thread::Thread;

/// A function on the call stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// Name of the function; "?" for code outside functions.
    pub function: String,
    /// Source location of the instruction in the innermost function, or of the call in the others.
    pub place: Option<Location<'a>>,
}

/// Maximum depth of a call stack, a limit for recursion.
const DEEPEST: usize = 24;

impl Program {
    /// Returns the call stack of a thread, innermost function first and the handler last, as far as the program has
    /// frame information; without any (no `-g`), only the innermost. `pc` is the address of the instruction, and `read`
    /// reads a word of the thread's memory.
    pub fn calls(&self, thread: &Thread, pc: u32, mut read: impl FnMut(u32) -> Option<u32>) -> Vec<Frame<'_>> {
        let mut frames = Vec::new();
        let mut registers: BTreeMap<u16, u32> =
            (0..32_u8).map(|number| (u16::from(number), thread.register(number))).collect();
        // A return address is the instruction after the call.
        let (mut pc, mut looked_up) = (pc, pc);
        while frames.len() < DEEPEST && self.holds(pc) {
            let function = self.function(looked_up).unwrap_or("?");
            let inlined = self.frames(looked_up, function);
            frames.extend(inlined.into_iter().map(|(function, place)| Frame { function, place }));
            let Some(caller) = self.caller(looked_up, &mut registers, &mut read) else { break };
            (pc, looked_up) = (caller, caller.wrapping_sub(1));
        }
        frames
    }

    /// Replaces the registers of a function at `pc` by those of its caller. Returns the return address.
    fn caller(
        &self,
        pc: u32,
        registers: &mut BTreeMap<u16, u32>,
        read: &mut impl FnMut(u32) -> Option<u32>,
    ) -> Option<u32> {
        let mut section = gimli::DebugFrame::new(self.debug_frame(), gimli::LittleEndian);
        section.set_address_size(4);
        let (bases, mut context) = (gimli::BaseAddresses::default(), gimli::UnwindContext::new());
        let at = u64::from(pc);
        let entry = section.fde_for_address(&bases, at, gimli::DebugFrame::cie_from_offset).ok()?;
        let row = entry.unwind_info_for_address(&section, &bases, &mut context, at).ok()?;
        let gimli::CfaRule::RegisterAndOffset { register, offset } = *row.cfa() else { return None };
        let frame = add(*registers.get(&register.0)?, offset);
        let mut of_caller = registers.clone();
        for (register, rule) in row.registers() {
            if let gimli::RegisterRule::Offset(offset) = rule {
                of_caller.insert(register.0, read(add(frame, *offset))?);
            }
        }
        of_caller.insert(self.isa().convention().stack_pointer.into(), frame);
        *registers = of_caller;
        registers.get(&entry.cie().return_address_register().0).copied()
    }
}

/// Adds an offset of the debug information to an address.
#[expect(clippy::cast_possible_truncation, reason = "addresses have 32 bits, and sums wrap")]
fn add(address: u32, offset: i64) -> u32 {
    address.wrapping_add(offset as u32)
}
