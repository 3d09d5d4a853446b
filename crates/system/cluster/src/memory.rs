use nic::MemoryFault;

/// The memory of every rank, as the cards reach it by DMA.
pub trait HostMemory {
    /// Copies the bytes at `address` of a rank into `out`.
    ///
    /// # Errors
    /// When a byte is not mapped; `out` may then be partly written.
    fn read(&mut self, rank: u32, address: u64, out: &mut [u8]) -> Result<(), MemoryFault>;

    /// Writes `bytes` to `address` of a rank.
    ///
    /// # Errors
    /// When a byte is not mapped; the bytes before it may have been written.
    fn write(&mut self, rank: u32, address: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
}
