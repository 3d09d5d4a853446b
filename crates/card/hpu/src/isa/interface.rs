use std::fmt::Debug;

use object::LittleEndian;
use object::read::elf::ElfFile32;

use crate::op::{Decoded, Op};

/// A device program's ELF file, parsed.
pub type DeviceElf<'data> = ElfFile32<'data, LittleEndian>;

/// The calling convention of handlers: which registers of the register file ([`State`](crate::isa::State)) hold what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Convention {
    /// The arguments of a handler, in order.
    pub arguments: &'static [u8],
    /// The value that a handler returns, and the card's answer to a command.
    pub result: u8,
    /// The stack pointer.
    pub stack_pointer: u8,
    /// The return address.
    pub return_address: u8,
    /// The number of a command.
    pub command: u8,
    /// The argument of a command.
    pub command_argument: u8,
    /// A register that no instruction reads: what is written to it is discarded.
    pub sink: Option<u8>,
    /// A register that is initialised with the value of a symbol, and the name of that symbol.
    pub global_pointer: Option<(u8, &'static str)>,
}

/// An instruction set as a core implements it, with a fixed set of extensions.
///
/// The engine decodes every instruction once and then runs [`Op::run`](crate::isa::Op::run), so no method of this trait
/// is on the fast path.
pub trait Isa: Debug + Send + Sync {
    /// Name of the instruction set with its extensions: "rv32imac".
    fn name(&self) -> String;

    /// Machine number of ELF files (`e_machine`), and its name for messages.
    fn machine(&self) -> (u16, &'static str);

    /// Checks that the core has the extensions for which a program was compiled, as far as the ELF header and the
    /// attributes name them.
    ///
    /// # Errors
    /// The missing extension, as a clause: "it was compiled for …, which rv32i cores do not have".
    fn check(&self, elf: &DeviceElf<'_>) -> Result<(), String>;

    /// Decodes the instruction at the start of `bytes`, which are at address `pc`. A word that is not an instruction of
    /// this core becomes one of class [`Trap`](crate::isa::Class::Trap) that returns
    /// [`Flow::Illegal`](crate::isa::Flow::Illegal). Returns `None` when the bytes end before the instruction does.
    fn decode(&self, bytes: &[u8], pc: u32) -> Option<Decoded>;

    /// The operation at an address that may be the end of a hardware loop's body
    /// ([`Decoded::loop_end`]): it jumps to the start of the body, or does nothing. `None` for an instruction set without
    /// hardware loops.
    fn loop_end(&self, _end: u32) -> Option<Op> {
        None
    }

    /// The calling convention.
    fn convention(&self) -> &'static Convention;
}
