// SPDX-License-Identifier: Apache-2.0
//! DMA access of cards to the memory of ranks.

use cluster::HostMemory;
use nic::MemoryFault;

use super::Job;

impl HostMemory for Job {
    fn read(&mut self, rank: u32, address: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault { addr: address, len: out.len() as u64 };
        if self.has_ended(rank as usize) {
            return Err(fault); // even an empty read fails once the process is gone
        }
        Job::read(self, rank as usize, address, out).map_err(|_| fault)
    }

    fn write(&mut self, rank: u32, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault { addr: address, len: bytes.len() as u64 };
        if self.has_ended(rank as usize) {
            return Err(fault);
        }
        Job::write(self, rank as usize, address, bytes).map_err(|_| fault)?;
        self.note_card_write(rank);
        Ok(())
    }
}
