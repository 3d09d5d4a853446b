// SPDX-License-Identifier: Apache-2.0
//! Instruction sets. Each is a folder of this module that implements [`Isa`]: it decodes bytes to micro-operations
//! ([`Decoded`]) and defines the registers of the calling convention. Engine, block cache, fence detection, profiles
//! and timing models use only those.

mod arm;
mod interface;
mod kinds;
mod riscv;

pub use interface::{Convention, DeviceElf, Isa};
pub use kinds::{UnknownKind, instruction_set};

pub use crate::architectural_state::{HardwareLoop, State};
pub use crate::memory::View;
pub use crate::op::{Access, Class, Decoded, Fence, Flow, LoopEnd, Offset, Op, RegisterSet, Run, Semantics};
