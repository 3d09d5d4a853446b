// SPDX-License-Identifier: Apache-2.0
//! The interface of an instruction set.

use std::fmt::Debug;

use object::LittleEndian;
use object::read::elf::ElfFile32;

use crate::op::{Decoded, Op};

/// A parsed device ELF file.
pub type DeviceElf<'data> = ElfFile32<'data, LittleEndian>;

/// Calling convention of handlers, as indices into the register file ([`State`](crate::isa::State)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    /// Arguments of a handler, in order.
    pub arguments: &'static [u8],
    /// Return value of a handler, and the card's answer to a command.
    pub result: u8,
    /// Stack pointer.
    pub stack_pointer: u8,
    /// Return address.
    pub return_address: u8,
    /// Number of a command.
    pub command: u8,
    /// Argument of a command.
    pub command_argument: u8,
    /// Register that no instruction reads; writes to it are discarded.
    pub sink: Option<u8>,
    /// Register initialised with the value of a symbol, and the name of that symbol.
    pub global_pointer: Option<(u8, &'static str)>,
}

/// An instruction set as implemented by a core, with a fixed set of extensions.
///
/// The engine decodes every instruction once and then calls [`Op::run`](crate::isa::Op::run), so no method of this
/// trait is on the fast path.
pub trait Isa: Debug + Send + Sync {
    /// Returns the name of the instruction set with its extensions: "rv32imac".
    fn name(&self) -> String;

    /// Returns the machine number of ELF files (`e_machine`), and its name for messages.
    fn machine(&self) -> (u16, &'static str);

    /// Checks that the core has the extensions for which a program was compiled, as far as the ELF header and the
    /// attributes name them.
    ///
    /// # Errors
    /// Returns the missing extension as a clause: "it was compiled for …, which rv32i cores do not have".
    fn check(&self, elf: &DeviceElf<'_>) -> Result<(), String>;

    /// Decodes the instruction at the start of `bytes`, which are at address `pc`. A word that is not an instruction of
    /// this core becomes one of class [`Trap`](crate::isa::Class::Trap) that returns
    /// [`Flow::Illegal`](crate::isa::Flow::Illegal). Returns `None` if `bytes` ends before the instruction does.
    fn decode(&self, bytes: &[u8], pc: u32) -> Option<Decoded>;

    /// Returns the operation at an address where a hardware loop's body may end ([`Decoded::loop_end`]): it jumps to
    /// the start of the body, or does nothing. `None` for an instruction set without hardware loops.
    fn loop_end(&self, _end: u32) -> Option<Op> {
        None
    }

    /// Returns the calling convention.
    fn convention(&self) -> &'static Convention;
}
