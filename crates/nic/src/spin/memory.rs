//! The memories of a card, and the allocator of HPU memory.

use std::rc::{Rc, Weak};

use abi::device::map;
use abi::portals::{Handle, Rc as Code};
use hpu::Window;
use machine::Sc17;

use crate::handlers::HpuMemory;
use crate::slab::{Kind, Slab, interface_of};

/// HPU memory is given out in units of this many bytes.
const GRAIN: u32 = 64;

/// A memory of the card. Only its first bytes, as far as they have been needed, are in the arena.
#[derive(Clone, Copy, Debug)]
struct Part {
    /// Card address.
    base: u32,
    /// From `base` to the end of the memory.
    reach: u32,
    /// In the arena.
    bytes: usize,
}

/// Place in [`CardMemory::parts`].
const HPU_MEMORY: usize = 2;
/// From here on what nobody needs when no handler runs.
const CONTEXTS: usize = 3;

/// Program, static data, HPU memory, contexts and packet buffers. One arena has what has been needed of each, so that
/// tens of thousands of cards fit.
pub(super) struct CardMemory {
    arena: Vec<u8>,
    /// In arena order.
    parts: [Part; 5],
    /// Of a context.
    stack: u32,
    /// Counts the changes of places in the arena.
    layout: u32,
    allocations: [Slab<Rc<HpuMemory>>; 4],
    /// What somebody still has.
    reserved: Vec<Weak<HpuMemory>>,
    capacity: u32,
}

impl CardMemory {
    pub fn new(config: &Sc17, mtu: u32) -> CardMemory {
        let part = |base, reach| Part { base, reach, bytes: 0 };
        CardMemory {
            arena: Vec::new(),
            parts: [
                part(map::PROGRAM, config.program),
                part(map::DATA, config.data),
                part(map::HPU_MEMORY, config.memory),
                part(map::CONTEXTS, config.contexts * map::CONTEXT_STRIDE),
                part(map::PACKETS, config.slots(mtu) * Sc17::slot_bytes(mtu)),
            ],
            stack: config.stack,
            layout: 0,
            allocations: empty(),
            reserved: Vec::new(),
            capacity: config.memory,
        }
    }

    /// Memories in which nothing is, and nothing is allocated; handles of before stay invalid.
    pub fn emptied(&mut self, config: &Sc17, mtu: u32) -> CardMemory {
        self.allocations.iter_mut().for_each(Slab::clear);
        let allocations = std::mem::replace(&mut self.allocations, empty());
        CardMemory { allocations, ..CardMemory::new(config, mtu) }
    }

    /// The bytes that handlers address through windows of the present [`layout`](CardMemory::layout).
    pub fn arena(&mut self) -> &mut [u8] {
        &mut self.arena
    }

    /// A number that changes with the places of bytes in the arena.
    pub fn layout(&self) -> u32 {
        self.layout
    }

    /// Finds the places of windows, which must lie in the memories, and returns the layout that they belong to.
    pub fn locate(&mut self, windows: &mut [Window]) -> u32 {
        for window in &mut *windows {
            self.place(window.base, window.len); // making one may move the others
        }
        for window in windows {
            window.offset = self.place(window.base, window.len);
        }
        self.layout
    }

    /// Where the `len` bytes at `address`, which must lie in one of the memories, are in the arena; they are made if they
    /// are not there yet.
    pub fn place(&mut self, address: u32, len: u32) -> usize {
        let index = self.parts.iter().position(|part| address.wrapping_sub(part.base) < part.reach).unwrap_or(0);
        let within = address.wrapping_sub(self.parts[index].base);
        let within = if index == CONTEXTS { self.in_contexts(within) } else { within as usize };
        let start: usize = self.parts[..index].iter().map(|part| part.bytes).sum();
        let (end, present) = (within + len as usize, self.parts[index].bytes);
        if end > present {
            self.grow(index, start + present, end.next_multiple_of(GRAIN as usize) - present);
        }
        start + within
    }

    /// Makes `missing` bytes of a memory, behind those that end at `hole` in the arena.
    #[cold]
    fn grow(&mut self, index: usize, hole: usize, missing: usize) {
        let old = self.arena.len();
        self.arena.resize(old + missing, 0);
        self.arena.copy_within(hole..old, hole + missing);
        self.arena[hole..old.min(hole + missing)].fill(0);
        self.parts[index].bytes += missing;
        self.layout = self.layout.wrapping_add(1);
    }

    /// A context has its argument block and its stack, and nothing between.
    fn in_contexts(&self, within: u32) -> usize {
        let (context, within) = (within / map::CONTEXT_STRIDE, within % map::CONTEXT_STRIDE);
        let gap = map::CONTEXT_STRIDE - map::ARGS_BYTES - self.stack;
        let within = if within < map::ARGS_BYTES { within } else { within.saturating_sub(gap) };
        (context * (map::ARGS_BYTES + self.stack) + within) as usize
    }

    /// Forgets stacks and packet buffers.
    pub fn trim(&mut self) {
        let kept = self.parts[..CONTEXTS].iter().map(|part| part.bytes).sum();
        if self.arena.len() > kept {
            self.arena.truncate(kept);
            self.arena.shrink_to_fit();
            self.parts[CONTEXTS..].iter_mut().for_each(|part| part.bytes = 0);
            self.layout = self.layout.wrapping_add(1);
        }
    }

    pub fn write(&mut self, address: u32, bytes: &[u8]) {
        self.slice(address, bytes.len() as u32).copy_from_slice(bytes);
    }

    /// The `len` bytes at `address`.
    pub fn slice(&mut self, address: u32, len: u32) -> &mut [u8] {
        if len == 0 {
            return &mut []; // nothing is anywhere
        }
        let start = self.place(address, len);
        &mut self.arena[start..start + len as usize]
    }

    pub fn load(&mut self, code: &[u8], data: &[u8]) {
        self.write(map::PROGRAM, code);
        self.write(map::DATA, data);
    }

    /// Allocates HPU memory: the first gap that is large enough.
    pub fn allocate(&mut self, interface: u8, length: u64) -> Result<Handle, Code> {
        if length == 0 {
            return Err(Code::ArgInvalid);
        }
        let length = u32::try_from(length).ok().and_then(|bytes| bytes.checked_next_multiple_of(GRAIN));
        let length = length.filter(|length| *length <= self.capacity).ok_or(Code::NoSpace)?;
        self.reserved.retain(|piece| piece.strong_count() > 0);
        let mut taken: Vec<(u32, u32)> = self
            .reserved
            .iter()
            .filter_map(|piece| piece.upgrade().map(|piece| (piece.address, piece.length)))
            .collect();
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
        let piece = Rc::new(HpuMemory { address: start, length });
        self.reserved.push(Rc::downgrade(&piece));
        let handle = self.allocations[usize::from(interface & 3)].insert(i32::from(u16::MAX), piece)?;
        // What is not in the arena yet is zero anyway.
        let present = self.parts[HPU_MEMORY].bytes as u32;
        let old = (present.saturating_sub(start - map::HPU_MEMORY)).min(length);
        self.slice(start, old).fill(0);
        Ok(handle)
    }

    /// Takes a handle back; the bytes are free when nobody has them any more.
    pub fn free(&mut self, memory: Handle) -> Result<(), Code> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(Code::ArgInvalid)?;
        self.allocations[usize::from(interface)].remove(memory).map(|_| ())
    }

    /// Frees all that belongs to an interface.
    pub fn free_all(&mut self, interface: u8) {
        self.allocations[usize::from(interface & 3)].clear();
    }

    /// The piece that a handle names.
    pub fn find(&self, memory: Handle) -> Result<Rc<HpuMemory>, Code> {
        let interface = interface_of(Kind::Hpu, memory).ok_or(Code::ArgInvalid)?;
        self.allocations[usize::from(interface)].get(memory).cloned()
    }

    /// Whether handlers share what is at an address; otherwise it is one handler's own, as long as that runs.
    pub fn is_shared(address: u32) -> bool {
        (map::HPU_MEMORY..map::CONTEXTS).contains(&address) || (map::DATA..map::PACKETS).contains(&address)
    }
}

/// The HPU memory of each interface: none.
fn empty() -> [Slab<Rc<HpuMemory>>; 4] {
    [0, 1, 2, 3].map(|interface| Slab::new(Kind::Hpu, interface))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> CardMemory {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines");
        let machine = machine::Machine::load("sc17-int", &[folder], &[]).unwrap();
        let machine::Accelerator::Sc17(unit) = &machine.accelerator;
        CardMemory::new(unit, machine.network.mtu)
    }

    #[test]
    fn bytes_keep_their_values_when_memories_grow() {
        let mut memory = memory();
        memory.load(&[1; 100], &[2; 50]);
        let packet = map::PACKETS + 3 * 4160;
        memory.write(packet, &[3; 4096]);
        let stack_end = map::CONTEXTS + 2 * map::CONTEXT_STRIDE;
        memory.write(stack_end - 8192, &[4; 8192]);
        memory.write(map::CONTEXTS + map::CONTEXT_STRIDE, &[5; 1024]);
        let first = memory.allocate(0, 100).unwrap();
        let HpuMemory { address, length } = *memory.find(first).unwrap();
        assert_eq!((address, length), (map::HPU_MEMORY, 128));
        memory.write(address, &[6; 128]);
        let mut windows = [(map::PROGRAM, 100), (stack_end - 8192, 8192), (packet, 4096), (address, 128)]
            .map(|(base, len)| Window { base, len, offset: 0, write: true, sharing: hpu::Sharing::Private });
        assert_eq!(memory.locate(&mut windows), memory.layout());
        for (window, value) in windows.iter().zip([1, 4, 3, 6]) {
            let bytes = &memory.arena()[window.offset..][..window.len as usize];
            assert!(bytes.iter().all(|byte| *byte == value), "{value}");
        }
        assert_eq!(memory.slice(map::CONTEXTS + map::CONTEXT_STRIDE, 1024), [5; 1024]);
        assert_eq!(memory.slice(map::DATA, 50), [2; 50]);
    }

    #[test]
    fn what_is_given_out_again_is_zero_and_the_rest_outlives_a_trim() {
        let mut memory = memory();
        let old = memory.allocate(0, 64).unwrap();
        let kept = memory.allocate(0, 64).unwrap();
        memory.write(map::HPU_MEMORY, &[7; 128]);
        memory.write(map::PACKETS, &[8; 100]);
        memory.free(old).unwrap();
        memory.trim();
        let address = memory.find(kept).unwrap().address;
        assert_eq!(memory.slice(address, 64), [7; 64]);
        let again = memory.allocate(0, 64).unwrap();
        let address = memory.find(again).unwrap().address;
        assert_eq!((address, memory.slice(address, 64)), (map::HPU_MEMORY, &mut [0; 64][..]));
        assert_eq!(memory.slice(map::PACKETS, 100), [0; 100]);
    }

    #[test]
    fn bytes_that_somebody_has_are_not_given_out_again() {
        let mut memory = memory();
        let first = memory.allocate(0, 64).unwrap();
        let piece = memory.find(first).unwrap();
        memory.free(first).unwrap();
        assert_eq!(memory.find(first), Err(Code::ArgInvalid));
        let second = memory.allocate(0, 64).unwrap();
        assert_eq!(memory.find(second).unwrap().address, map::HPU_MEMORY + 64);
        drop(piece);
        let third = memory.allocate(0, 64).unwrap();
        let piece = memory.find(third).unwrap();
        assert_eq!(piece.address, map::HPU_MEMORY);
        // The interface ends.
        memory.free_all(0);
        let fourth = memory.allocate(0, 64).unwrap();
        assert_eq!((memory.find(third), memory.find(second)), (Err(Code::ArgInvalid), Err(Code::ArgInvalid)));
        assert_eq!(memory.find(fourth).unwrap().address, map::HPU_MEMORY + 64); // behind what a handler still has
    }
}
