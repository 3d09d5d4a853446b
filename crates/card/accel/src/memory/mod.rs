//! The memories of an accelerator: regions of card addresses, packet buffers, and the allocator of HPU memory.

mod allocator;
mod buffers;
mod regions;

pub use allocator::{AllocationError, Allocator, HpuMemory};
pub use buffers::Buffers;
pub use regions::{Memories, OutsideMemory, Pieces, Region};

/// Memory is created and allocated in units of this many bytes.
const GRAIN: u32 = 64;
