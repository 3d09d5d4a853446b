//! The memory that a handler may use, to the byte (PsPIN §III-B3).

use crate::convention::HandlerMemory;
use crate::pspin::her::Range;
use crate::pspin::memory::Arena;

/// A range that a handler may read, and possibly write.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    /// The addresses, as everybody has them.
    pub range: Range,
    /// Whether it may write there.
    pub write: bool,
}

/// Whether a handler with these spans may access `size` bytes at an address. It may always access no bytes.
pub fn owns(spans: &[Span], address: u32, size: u32, write: bool) -> bool {
    size == 0 || spans.iter().any(|span| span.range.holds(address, size) && (span.write || !write))
}

/// The memory of a handler on a cluster.
pub struct OwnMemory<'a> {
    /// All memories.
    pub memory: &'a mut Arena,
    /// What the handler may use.
    pub spans: &'a [Span],
    /// The cluster of its HPU.
    pub cluster: u16,
}

impl HandlerMemory for OwnMemory<'_> {
    fn read(&mut self, address: u32, length: u32) -> Option<Vec<u8>> {
        let address = self.memory.common(self.cluster, address);
        let may = owns(self.spans, address, length, false);
        if length == 0 {
            return Some(Vec::new());
        }
        self.memory.read(address, length).filter(|_| may).map(<[u8]>::to_vec)
    }

    fn write(&mut self, address: u32, bytes: &[u8]) {
        let (address, size) = (self.memory.common(self.cluster, address), bytes.len() as u32);
        if owns(self.spans, address, size, true)
            && let Some(memory) = self.memory.write(address, size)
        {
            memory.copy_from_slice(bytes);
        }
    }
}
