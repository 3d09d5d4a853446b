// SPDX-License-Identifier: Apache-2.0
//! The memories of an accelerator: regions of card addresses, packet buffers, and the allocator of HPU memory.

mod allocator;
mod buffers;
mod regions;

pub use allocator::{AllocationError, Allocator, HpuMemory};
pub use buffers::Buffers;
pub use regions::{Memories, OutsideMemory, Pieces, Region};

/// Granularity in bytes of memory creation and allocation.
pub const GRAIN: u32 = 64;
