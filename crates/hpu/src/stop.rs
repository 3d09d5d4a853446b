use std::fmt;

/// Why [`Engine::run`](crate::Engine::run) came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The handler returned this value (`a0`).
    Return(u32),
    /// An `ecall`: a command of [`abi::device::cmd`]. Answer with [`Thread::set_result`](crate::Thread::set_result) and
    /// run on.
    Call {
        /// `a7`
        number: u32,
        /// `a0`
        argument: u32,
    },
    /// The next instruction must happen at its exact time: an atomic operation, a load or store beside a fence, or one of
    /// a word on which a handler waits. The next run executes it.
    Sync,
    /// The thread has used more cycles than allowed.
    Limit,
    /// The handler did what it must not; [`Thread::pc`](crate::Thread::pc) is at that instruction.
    Fault(Fault),
}

/// What a handler did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A load of `len` bytes at an address that is not readable to the handler.
    Load {
        /// Where the instruction is.
        pc: u32,
        /// What it addressed.
        addr: u32,
        /// Bytes.
        len: u32,
    },
    /// A store of `len` bytes at an address that is not writable to the handler.
    Store {
        /// Where the instruction is.
        pc: u32,
        /// What it addressed.
        addr: u32,
        /// Bytes.
        len: u32,
    },
    /// An atomic operation at an address that is not a multiple of four.
    Misaligned {
        /// Where the instruction is.
        pc: u32,
        /// What it addressed.
        addr: u32,
    },
    /// Execution left the program.
    Fetch {
        /// Where to.
        pc: u32,
    },
    /// Not an instruction of this core, or one that asks for something it does not model (a rounding mode other than
    /// to nearest, the floating-point exception flags, an unknown CSR).
    Illegal {
        /// Where the instruction is.
        pc: u32,
        /// Its encoding; 16 bits for a compressed one.
        word: u32,
    },
    /// `ebreak`; compilers emit it for code that cannot be reached.
    Breakpoint {
        /// Where the instruction is.
        pc: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Fault::Load { pc, addr, len } => {
                write!(f, "load of {len} B at {addr:#010x} is not allowed (pc {pc:#010x})")
            }
            Fault::Store { pc, addr, len } => {
                write!(f, "store of {len} B at {addr:#010x} is not allowed (pc {pc:#010x})")
            }
            Fault::Misaligned { pc, addr } => write!(f, "misaligned atomic operation at {addr:#010x} (pc {pc:#010x})"),
            Fault::Fetch { pc } => write!(f, "execution left the program (pc {pc:#010x})"),
            Fault::Illegal { pc, word } => write!(f, "illegal instruction {word:#010x} (pc {pc:#010x})"),
            Fault::Breakpoint { pc } => write!(f, "breakpoint (pc {pc:#010x})"),
        }
    }
}

impl std::error::Error for Fault {}
