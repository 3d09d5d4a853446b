//! The memories of a card in one arena, and the allocator of HPU memory.

use abi::device::map;
use abi::portals::{Handle, Rc as Code};
use hpu::Window;

use crate::slab::{Kind, Slab, interface_of};

/// HPU memory is given out in units of this many bytes.
const GRAIN: u32 = 64;

/// Program, static data, HPU memory, contexts and packet buffers. The arena is zero pages until it is touched, so cards
/// that run no handlers cost nothing.
pub(super) struct CardMemory {
    arena: Vec<u8>,
    /// Base address and bytes of each memory, in arena order.
    parts: [(u32, u32); 5],
    allocations: [Slab<(u32, u32)>; 4],
    capacity: u32,
}

impl CardMemory {
    pub fn new(config: &machine::Hpu, mtu: u32) -> CardMemory {
        CardMemory {
            arena: Vec::new(),
            parts: [
                (map::PROGRAM, config.program),
                (map::DATA, config.data),
                (map::HPU_MEMORY, config.memory),
                (map::CONTEXTS, config.contexts * map::CONTEXT_STRIDE),
                (map::PACKETS, config.slots(mtu) * machine::Hpu::slot_bytes(mtu)),
            ],
            allocations: [0, 1, 2, 3].map(|interface| Slab::new(Kind::Hpu, interface)),
            capacity: config.memory,
        }
    }

    /// The bytes that handlers address through windows.
    pub fn arena(&mut self) -> &mut [u8] {
        if self.arena.is_empty() {
            self.arena = vec![0; self.parts.iter().map(|(_, bytes)| *bytes as usize).sum()];
        }
        &mut self.arena
    }

    /// A window onto `len` bytes at `base`, which must lie in one of the memories.
    pub fn window(&self, base: u32, len: u32, write: bool) -> Window {
        Window { base, len, offset: self.offset(base), write }
    }

    fn offset(&self, address: u32) -> usize {
        let mut offset = 0;
        for (base, bytes) in self.parts {
            if address.wrapping_sub(base) < bytes {
                return offset + (address - base) as usize;
            }
            offset += bytes as usize;
        }
        offset
    }

    pub fn write(&mut self, address: u32, bytes: &[u8]) {
        let offset = self.offset(address);
        self.arena()[offset..offset + bytes.len()].copy_from_slice(bytes);
    }

    pub fn read(&mut self, address: u32, len: u32) -> &[u8] {
        let offset = self.offset(address);
        &self.arena()[offset..offset + len as usize]
    }

    pub fn load(&mut self, code: &[u8], data: &[u8]) {
        self.write(map::PROGRAM, code);
        if !data.is_empty() {
            self.write(map::DATA, data);
        }
    }

    /// Allocates HPU memory: the first gap that is large enough.
    pub fn allocate(&mut self, interface: u8, length: u64) -> Result<Handle, Code> {
        if length == 0 {
            return Err(Code::ArgInvalid);
        }
        let length = u32::try_from(length).ok().and_then(|bytes| bytes.checked_next_multiple_of(GRAIN));
        let length = length.filter(|length| *length <= self.capacity).ok_or(Code::NoSpace)?;
        let mut taken: Vec<(u32, u32)> =
            self.allocations.iter().flat_map(|slab| slab.iter().map(|(_, range)| *range)).collect();
        taken.sort_unstable();
        let mut start = map::HPU_MEMORY;
        for (other, bytes) in taken {
            if other - start >= length {
                break;
            }
            start = other + bytes;
        }
        if start - map::HPU_MEMORY + length > self.capacity {
            return Err(Code::NoSpace);
        }
        let handle = self.allocations[usize::from(interface & 3)].insert(i32::from(u16::MAX), (start, length))?;
        if !self.arena.is_empty() {
            let offset = self.offset(start);
            self.arena[offset..offset + length as usize].fill(0);
        }
        Ok(handle)
    }

    pub fn free(&mut self, memory: Handle) -> Result<(), Code> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(Code::ArgInvalid)?;
        self.allocations[usize::from(interface)].remove(memory).map(|_| ())
    }

    /// Address and bytes of an allocation.
    pub fn find(&self, memory: Handle) -> Result<(u32, u32), Code> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(Code::ArgInvalid)?;
        self.allocations[usize::from(interface)].get(memory).copied()
    }
}
