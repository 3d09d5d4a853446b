// SPDX-License-Identifier: Apache-2.0
//! The memory of a handler, for its calls.

use crate::core::Spans;
use crate::memory::Arena;
use accel::convention::HandlerMemory;

/// The memory of a handler on a cluster.
pub struct OwnMemory<'a> {
    /// Contents of all memories.
    pub memory: &'a mut Arena,
    /// Memory that the handler may use.
    pub spans: &'a Spans,
    /// Cluster of its HPU.
    pub cluster: u16,
}

impl HandlerMemory for OwnMemory<'_> {
    fn read(&mut self, address: u32, length: u32) -> Option<Vec<u8>> {
        let address = self.memory.common(self.cluster, address);
        let may = self.spans.has(address, length, false);
        if length == 0 {
            return Some(Vec::new());
        }
        self.memory.read(address, length).filter(|_| may).map(<[u8]>::to_vec)
    }

    fn write(&mut self, address: u32, bytes: &[u8]) {
        let (address, size) = (self.memory.common(self.cluster, address), bytes.len() as u32);
        if self.spans.has(address, size, true)
            && let Some(memory) = self.memory.write(address, size)
        {
            memory.copy_from_slice(bytes);
        }
    }
}
