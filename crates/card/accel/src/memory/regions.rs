// SPDX-License-Identifier: Apache-2.0
//! Regions of card memory, packed into one arena that grows on demand.

use std::cell::RefCell;

use hpu::Window;

use super::GRAIN;

thread_local! {
    /// Arenas released by trimmed memories, reused by the next memories that grow. Most cards of a large simulation are
    /// idle; reuse avoids an allocation for each message.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A memory of an accelerator: a range of card addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Card address of the first byte.
    pub base: u32,
    /// Size of the address range in bytes.
    pub size: u32,
    /// Layout of the parts that have memory, if the range has gaps: see [`Pieces`].
    pub pieces: Option<Pieces>,
    /// True if its bytes are needed only while handlers run or packets wait.
    pub transient: bool,
}

/// Layout of a region of equal address ranges with memory only at both ends of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// Size of the address range of one piece in bytes.
    pub stride: u32,
    /// Bytes of memory at the start of each range.
    pub head: u32,
    /// Bytes of memory at the end of each range.
    pub tail: u32,
}

impl Region {
    /// Returns the position of the byte at offset `at`, not counting addresses without memory.
    fn packed(&self, at: u32) -> usize {
        let Some(Pieces { stride, head, tail }) = self.pieces else { return at as usize };
        let (range, within) = (at / stride, at % stride);
        let within = if within < head { within } else { within.saturating_sub(stride - head - tail) };
        (range * (head + tail) + within) as usize
    }
}

/// An access to card addresses without memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no memory of the card has the {len} bytes at {address:#x}")]
pub struct OutsideMemory {
    /// First card address.
    pub address: u32,
    /// Length in bytes.
    pub len: u32,
}

/// A region and the number of its leading bytes that are in the arena.
#[derive(Clone, Copy, Debug)]
struct Resident {
    region: Region,
    bytes: usize,
}

/// Memories of an accelerator. One arena holds the leading bytes of each region, grown on demand, so that tens of
/// thousands of cards fit into host memory.
#[derive(Debug)]
pub struct Memories {
    arena: Vec<u8>,
    /// Regions in arena order: transient regions are last.
    regions: Vec<Resident>,
    /// Number of layout changes of the arena.
    layout: u32,
}

impl Memories {
    /// Creates zeroed memories.
    pub fn new(mut regions: Vec<Region>) -> Memories {
        regions.sort_by_key(|region| region.transient);
        let regions = regions.into_iter().map(|region| Resident { region, bytes: 0 }).collect();
        Memories { arena: Vec::new(), regions, layout: 0 }
    }

    /// Returns the arena, addressed through windows of the current [`layout`](Memories::layout).
    pub fn arena(&mut self) -> &mut [u8] {
        &mut self.arena
    }

    /// Returns the layout version, which changes when bytes move in the arena.
    pub fn layout(&self) -> u32 {
        self.layout
    }

    /// Sets the arena offsets of `windows` and returns the layout for which they are valid.
    ///
    /// # Errors
    /// Returns an error if a window is not within one region.
    pub fn locate(&mut self, windows: &mut [Window]) -> Result<u32, OutsideMemory> {
        loop {
            let layout = self.layout;
            for window in &mut *windows {
                window.offset = self.place(window.base, window.len)?; // this may move the bytes of other windows
            }
            if self.layout == layout {
                return Ok(layout);
            }
        }
    }

    /// Finds the position of `len` bytes in the arena, growing the arena if necessary.
    fn place(&mut self, address: u32, len: u32) -> Result<usize, OutsideMemory> {
        let outside = OutsideMemory { address, len };
        let mut start = 0;
        for index in 0..self.regions.len() {
            let Resident { region, bytes } = self.regions[index];
            let at = address.wrapping_sub(region.base);
            if at >= region.size {
                start += bytes;
                continue;
            }
            if len > region.size - at {
                return Err(outside);
            }
            let at = region.packed(at);
            let end = at + len as usize;
            if end > bytes {
                self.grow(index, start + bytes, end.next_multiple_of(GRAIN as usize) - bytes);
            }
            return Ok(start + at);
        }
        Err(outside)
    }

    /// Adds `missing` bytes to a region, at `hole` in the arena.
    #[cold]
    fn grow(&mut self, index: usize, hole: usize, missing: usize) {
        let old = self.arena.len();
        if self.regions[index].region.transient
            && old == self.kept()
            && let Some(mut arena) = SPARE.with_borrow_mut(Vec::pop)
        {
            arena.clear();
            arena.extend_from_slice(&self.arena);
            self.arena = arena;
        }
        self.arena.resize(old + missing, 0);
        self.arena.copy_within(hole..old, hole + missing);
        self.arena[hole..old.min(hole + missing)].fill(0);
        self.regions[index].bytes += missing;
        self.layout = self.layout.wrapping_add(1);
    }

    /// Returns the number of bytes in regions that are not transient.
    fn kept(&self) -> usize {
        let kept = self.regions.iter().filter(|resident| !resident.region.transient);
        kept.map(|resident| resident.bytes).sum()
    }

    /// Releases the bytes of transient regions to the host; they read as zero afterwards.
    pub fn trim(&mut self) {
        let kept = self.kept();
        if self.arena.len() > kept {
            let arena = self.arena[..kept].to_vec();
            let spare = std::mem::replace(&mut self.arena, arena);
            SPARE.with_borrow_mut(|arenas| arenas.push(spare));
            let transient = self.regions.iter_mut().filter(|resident| resident.region.transient);
            transient.for_each(|resident| resident.bytes = 0);
            self.layout = self.layout.wrapping_add(1);
        }
    }

    /// Copies bytes to a region that is still empty; a region with bytes keeps them.
    ///
    /// # Errors
    /// Returns an error if the bytes are not in one region.
    pub fn provide(&mut self, address: u32, bytes: &[u8]) -> Result<(), OutsideMemory> {
        match self.present(address, bytes.len() as u32)? {
            0 => self.write(address, bytes),
            _ => Ok(()),
        }
    }

    /// Copies bytes to a region that already has bytes; an empty one gets them when they are
    /// [provided](Memories::provide).
    ///
    /// # Errors
    /// Returns an error if the bytes are not in one region.
    pub fn replace(&mut self, address: u32, bytes: &[u8]) -> Result<(), OutsideMemory> {
        match self.present(address, bytes.len() as u32)? {
            0 => Ok(()),
            _ => self.write(address, bytes),
        }
    }

    /// Returns the number of present bytes of the region that contains this range.
    fn present(&self, address: u32, len: u32) -> Result<usize, OutsideMemory> {
        let within = |region: &Region| {
            let at = address.wrapping_sub(region.base);
            at < region.size && len <= region.size - at
        };
        let resident = self.regions.iter().find(|resident| within(&resident.region));
        Ok(resident.ok_or(OutsideMemory { address, len })?.bytes)
    }

    /// Copies bytes to a card address.
    ///
    /// # Errors
    /// Returns an error if the bytes are not in one region.
    pub fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), OutsideMemory> {
        self.slice(address, bytes.len() as u32)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Fills bytes with zeros; bytes outside the arena are zero already and are not created.
    ///
    /// # Errors
    /// Returns an error if the bytes are not in one region.
    pub fn clear(&mut self, address: u32, len: u32) -> Result<(), OutsideMemory> {
        let within = |region: &Region| address.wrapping_sub(region.base) < region.size;
        let resident = self.regions.iter().find(|resident| within(&resident.region));
        let Resident { region, bytes } = resident.ok_or(OutsideMemory { address, len })?;
        let present = (*bytes as u32).saturating_sub(address - region.base).min(len);
        self.slice(address, present)?.fill(0);
        Ok(())
    }

    /// Returns the `len` bytes at `address`.
    ///
    /// # Errors
    /// Returns an error if the bytes are not in one region.
    pub fn slice(&mut self, address: u32, len: u32) -> Result<&mut [u8], OutsideMemory> {
        if len == 0 {
            return Ok(&mut []); // an empty range may have any address
        }
        let start = self.place(address, len)?;
        Ok(&mut self.arena[start..start + len as usize])
    }
}

#[cfg(test)]
mod tests {
    use hpu::Sharing;

    use super::*;

    const CODE: u32 = 0x1d00_0000;
    const HEAP: u32 = 0x1000_0000;
    const STACKS: u32 = 0x1a00_0000;
    const PACKETS: u32 = 0x1c40_0000;

    /// Creates memories with code, heap, four contexts (stacks of 0x200 and arguments of 0x100 bytes, 0x1000 bytes
    /// apart) and packets.
    fn memories() -> Memories {
        let region = |base, size, transient| Region { base, size, pieces: None, transient };
        let pieces = Some(Pieces { stride: 0x1000, head: 0x100, tail: 0x200 });
        let stacks = Region { pieces, ..region(STACKS, 0x4000, true) };
        Memories::new(vec![
            region(PACKETS, 0x1000, true),
            region(CODE, 0x8000, false),
            stacks,
            region(HEAP, 0x800, false),
        ])
    }

    #[test]
    fn bytes_keep_their_values_when_memories_grow() {
        let mut memories = memories();
        let places =
            [(PACKETS + 700, 100), (CODE, 300), (STACKS + 0x3e00, 0x200), (STACKS + 0x1000, 0x100), (HEAP, 64)];
        for ((address, len), value) in places.into_iter().zip(1..) {
            memories.write(address, &vec![value; len as usize]).unwrap();
        }
        for ((address, len), value) in places.into_iter().zip(1..) {
            assert_eq!(memories.slice(address, len).unwrap(), vec![value; len as usize], "{address:#x}");
        }
        // 832 bytes of packets, 320 of code, four stacks with arguments, 64 of the heap.
        assert_eq!(memories.arena().len(), 832 + 320 + 4 * 0x300 + 64);
        let window = |(base, len)| Window { base, len, offset: 0, write: true, sharing: Sharing::Private };
        let mut windows = places.map(window);
        assert_eq!(memories.locate(&mut windows), Ok(memories.layout()));
        for (window, value) in windows.iter().zip(1..) {
            let bytes = &memories.arena()[window.offset..][..window.len as usize];
            assert!(bytes.iter().all(|byte| *byte == value), "{value}");
        }
    }

    #[test]
    fn a_trim_keeps_what_is_needed_without_handlers() {
        let mut memories = memories();
        memories.write(HEAP, &[7; 128]).unwrap();
        memories.write(PACKETS, &[8; 100]).unwrap();
        memories.write(STACKS, &[9; 100]).unwrap();
        let layout = memories.layout();
        memories.trim();
        assert_ne!(memories.layout(), layout);
        assert_eq!(memories.arena().len(), 128);
        assert_eq!(memories.slice(HEAP, 128).unwrap(), [7; 128]);
        assert_eq!(memories.slice(PACKETS, 100).unwrap(), [0; 100]);
        assert_eq!(memories.slice(STACKS, 100).unwrap(), [0; 100]);
    }

    #[test]
    fn bytes_are_provided_where_none_are_and_replaced_where_some_are() {
        let mut memories = memories();
        memories.replace(PACKETS, &[1; 64]).unwrap();
        assert_eq!(memories.arena().len(), 0);
        memories.provide(PACKETS, &[2; 64]).unwrap();
        memories.provide(PACKETS, &[3; 64]).unwrap();
        assert_eq!(memories.slice(PACKETS, 64).unwrap(), [2; 64]);
        memories.replace(PACKETS, &[4; 32]).unwrap();
        assert_eq!(memories.slice(PACKETS, 64).unwrap(), [[4; 32], [2; 32]].as_flattened());
        memories.trim();
        memories.provide(PACKETS, &[5; 64]).unwrap();
        assert_eq!(memories.slice(PACKETS, 64).unwrap(), [5; 64]);
        for outside in [(0, 1), (PACKETS + 0xfff, 2)] {
            let error = Err(OutsideMemory { address: outside.0, len: outside.1 });
            assert_eq!(memories.provide(outside.0, &vec![0; outside.1 as usize]), error);
            assert_eq!(memories.replace(outside.0, &vec![0; outside.1 as usize]), error);
        }
    }

    #[test]
    fn clearing_makes_no_memory() {
        let mut memories = memories();
        memories.write(HEAP, &[7; 64]).unwrap();
        memories.clear(HEAP + 32, 512).unwrap();
        assert_eq!(memories.arena().len(), 64);
        assert_eq!(memories.slice(HEAP, 64).unwrap(), [[7; 32], [0; 32]].as_flattened());
    }

    #[test]
    fn addresses_without_memory_are_errors() {
        let mut memories = memories();
        for (address, len) in [(0, 1), (HEAP - 1, 1), (HEAP + 0x800, 1), (HEAP + 0x7ff, 2), (CODE, u32::MAX)] {
            let outside = OutsideMemory { address, len };
            assert_eq!(memories.slice(address, len), Err(outside), "{address:#x}");
        }
        assert_eq!(memories.clear(0, 1), Err(OutsideMemory { address: 0, len: 1 }));
        assert_eq!(memories.slice(0, 0).unwrap(), []);
    }
}
