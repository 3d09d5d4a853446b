//! Instruction sets. Each is a folder of this module that implements [`Isa`]: it decodes bytes to micro-operations
//! ([`Decoded`]) and says which registers the calling convention uses. Engine, block cache, fence detection, profiles
//! and timing models know only those.

mod interface;
mod kinds;
mod riscv;

pub use interface::{Convention, DeviceElf, Isa};
pub use kinds::{UnknownKind, instruction_set};

pub use crate::memory::View;
pub use crate::op::{Access, Class, Decoded, Fence, Flow, LoopEnd, Offset, Op, RegisterSet, Run, Semantics};
pub use crate::state::{HardwareLoop, State};
