// SPDX-License-Identifier: Apache-2.0
//! Accelerators, which run handlers on a card, behind one interface.
//!
//! A card matches messages, moves data and applies the verdicts of handlers. An accelerator owns the HPUs that run
//! handlers, their memories and the packet buffers. Two traits connect them: the card calls its [`Accelerator`], and
//! the accelerator calls the [`Env`] that the card passes to it.
//!
//! * `accelerator`: both traits
//! * `task`, `command`, `outcome`: the values that the two sides exchange
//! * `observation`: options of a run that observe handlers; `debug`: the interface of debuggers; `sanitize`: detects
//!   data races of handlers
//! * [`fault`]: error messages of failed handlers; [`handles`]: DMA handles
//! * `program`, `profile`: device programs, and the source lines of their instructions
//! * [`memory`]: regions of an accelerator's memory, and the allocator of HPU memory
//! * [`convention`]: arguments, return codes and commands of handlers
//! * [`shares`]: use of HPUs by tenants, and their order
//! * [`sc17`]: the unit of the sPIN paper (SC'17)
//! * [`testing`]: handlers assembled from instructions, for tests

mod accelerator;
mod command;
pub mod convention;
mod debug;
pub mod fault;
pub mod handles;
mod map;
pub mod memory;
mod observation;
mod outcome;
mod profile;
mod program;
mod sanitize;
pub mod sc17;
pub mod shares;
mod task;
#[doc(hidden)]
pub mod testing;

pub use accelerator::{Accelerator, Env, Event, HandlerSlice, InternalError, Printed};
pub use command::{
    Command, CommandId, Counter, Direction, Dma, Fetch, HostAtomic, HostMemory, HostOperation, Issued, Message, Place,
    Reply, Transfer,
};
pub use debug::{Debugger, Halt, Halted, Registers, Resident};
pub use map::load_map;
pub use memory::{AllocationError, HpuMemory};
pub use observation::Observation;
pub use outcome::{Failure, Finished, HandlerError, Outcome, Usage, Verdict};
pub use profile::{Profile, SourcePlace};
pub use program::{CardProgram, DeviceProgram, Handler, ImageError};
pub use shares::Share;
pub use task::{HandlerSet, Input, MessageHeader, MessageId, MessageKind, Packet, Role, Task};

/// `min_fragmentation_limit`: alignment in bytes of the payload in handler memory, and unit of packet sizes (sPIN App.
/// B.2.1).
pub const FRAGMENT: u32 = 8;

/// Cycles of a `spin_printf` on the card. Assumption: a card has no terminal, so the cost is similar to a short message
/// to the host. `spinrun --print-free` sets it to 0.
pub const PRINT_CYCLES: u64 = 100;
