// SPDX-License-Identifier: Apache-2.0
//! First-fit allocator of HPU memory.

use std::rc::{Rc, Weak};

use super::GRAIN;
use super::regions::OutsideMemory;

/// A piece of HPU memory. Its bytes are reused once the last owner drops it. Owners are the program, entries, messages,
/// running handlers and transfers in flight.
#[derive(Debug, PartialEq, Eq)]
pub struct HpuMemory {
    /// Card address of the first byte.
    pub address: u32,
    /// Length in bytes.
    pub length: u32,
}

/// Reasons for a failed allocation of HPU memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AllocationError {
    /// The requested length is 0.
    #[error("a piece of HPU memory has at least one byte")]
    Empty,
    /// No gap is large enough.
    #[error("no {0} consecutive bytes of HPU memory are free")]
    Full(u64),
    /// The allocator returned addresses without memory.
    #[error("internal error: {0}, please report")]
    Outside(#[from] OutsideMemory),
}

/// Allocates pieces of a range of card addresses.
#[derive(Debug)]
pub struct Allocator {
    base: u32,
    capacity: u32,
    /// Pieces that may still have owners.
    reserved: Vec<Weak<HpuMemory>>,
}

impl Allocator {
    /// Creates an allocator for the `capacity` bytes at `base`.
    pub fn new(base: u32, capacity: u32) -> Allocator {
        Allocator { base, capacity, reserved: Vec::new() }
    }

    /// Returns true if the address is in the allocator's range.
    pub fn has(&self, address: u32) -> bool {
        address.wrapping_sub(self.base) < self.capacity
    }

    /// Returns the bytes in pieces that have owners.
    pub fn used(&self) -> u32 {
        self.reserved.iter().filter_map(Weak::upgrade).map(|piece| piece.length).sum()
    }

    /// Allocates the first gap that is large enough.
    ///
    /// # Errors
    /// Returns an error if `length` is 0 or no gap is large enough.
    pub fn allocate(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError> {
        if length == 0 {
            return Err(AllocationError::Empty);
        }
        let full = AllocationError::Full(length);
        let length = u32::try_from(length).ok().and_then(|bytes| bytes.checked_next_multiple_of(GRAIN)).ok_or(full)?;
        self.reserved.retain(|piece| piece.strong_count() > 0);
        let mut taken: Vec<(u32, u32)> = self
            .reserved
            .iter()
            .filter_map(|piece| piece.upgrade().map(|piece| (piece.address - self.base, piece.length)))
            .collect();
        taken.sort_unstable();
        let mut start = 0;
        for (other, bytes) in taken {
            if other - start >= length {
                break;
            }
            start = other + bytes;
        }
        if length > self.capacity - start {
            return Err(full);
        }
        let piece = Rc::new(HpuMemory { address: self.base + start, length });
        self.reserved.push(Rc::downgrade(&piece));
        Ok(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BASE: u32 = 0x1000;

    fn range(piece: &HpuMemory) -> (u32, u32) {
        (piece.address - BASE, piece.length)
    }

    #[test]
    fn the_first_gap_that_is_large_enough_is_taken() {
        let mut allocator = Allocator::new(BASE, 256);
        let pieces = [1, 64, 65].map(|length| allocator.allocate(length).unwrap());
        assert_eq!(pieces.each_ref().map(|piece| range(piece)), [(0, 64), (64, 64), (128, 128)]);
        let [first, second, third] = pieces;
        assert_eq!(allocator.allocate(1), Err(AllocationError::Full(1)));
        drop((first, third));
        assert_eq!(range(&allocator.allocate(128).unwrap()), (128, 128), "the gap at 0 has 64 bytes only");
        assert_eq!(range(&allocator.allocate(64).unwrap()), (0, 64), "nobody kept the piece");
        drop(second);
        assert_eq!(range(&allocator.allocate(256).unwrap()), (0, 256));
    }

    #[test]
    fn what_cannot_be_allocated_is_an_error() {
        let mut allocator = Allocator::new(BASE, 256);
        assert_eq!(allocator.allocate(0), Err(AllocationError::Empty));
        for length in [257, u64::from(u32::MAX), u64::from(u32::MAX) + 65, u64::MAX] {
            assert_eq!(allocator.allocate(length), Err(AllocationError::Full(length)));
        }
        assert_eq!(range(&allocator.allocate(256).unwrap()), (0, 256));
    }
}
