// SPDX-License-Identifier: Apache-2.0
//! Interface for DMA to the ranks' memory.

use nic::MemoryFault;

/// DMA access of the cards to the memory of every rank.
pub trait HostMemory {
    /// Copies the bytes at `address` of a rank into `out`.
    ///
    /// # Errors
    /// If a byte is not mapped; `out` may then be partly written.
    fn read(&mut self, rank: u32, address: u64, out: &mut [u8]) -> Result<(), MemoryFault>;

    /// Writes `bytes` to `address` of a rank.
    ///
    /// # Errors
    /// If a byte is not mapped; the bytes before it may be written.
    fn write(&mut self, rank: u32, address: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
}
