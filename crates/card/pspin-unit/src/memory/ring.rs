// SPDX-License-Identifier: Apache-2.0
//! Packet buffers: a ring that is allocated in order and freed in any order (§III-A, §III-B2).

use std::collections::{BTreeMap, VecDeque};

/// A ring of bytes, allocated in pieces that do not wrap around its end. Freed pieces become available in the order of
/// allocation.
///
/// The ring counts the bytes in use, which distinguishes a full ring from an empty one.
#[derive(Clone, Debug)]
pub struct Ring {
    bytes: u32,
    unit: u32,
    /// Start of the next piece, if it fits there.
    tail: u32,
    used: u32,
    /// Pieces in the order of allocation, including remainders skipped at the end of the ring.
    pieces: VecDeque<Piece>,
    /// Free ranges by start, if pieces become available at once.
    holes: Option<BTreeMap<u32, u32>>,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start: u32,
    bytes: u32,
    free: bool,
}

/// A piece of a [`Ring`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// Offset of its first byte.
    pub start: u32,
    /// Its size, a multiple of the ring's unit.
    pub bytes: u32,
}

impl Ring {
    /// Creates an empty ring of `bytes` bytes, allocated in multiples of `unit`.
    pub fn new(bytes: u32, unit: u32) -> Ring {
        Ring { bytes: bytes - bytes % unit, unit, tail: 0, used: 0, pieces: VecDeque::new(), holes: None }
    }

    /// Creates an empty buffer whose freed pieces become available at once: the first fitting range is allocated. Tenants
    /// share it, and the oldest piece of one does not hold up another.
    pub fn scattered(bytes: u32, unit: u32) -> Ring {
        let ring = Ring::new(bytes, unit);
        Ring { holes: Some(BTreeMap::from([(0, ring.bytes)])), ..ring }
    }

    /// Returns the size of the buffer.
    pub fn size(&self) -> u32 {
        self.bytes
    }

    /// Returns the bytes in use, including remainders skipped at the end.
    pub fn used(&self) -> u32 {
        self.used
    }

    /// Returns the start of a piece of this size, if it fits.
    #[inline]
    fn place(&self, bytes: u32) -> Option<u32> {
        if let Some(holes) = &self.holes {
            return holes.iter().find(|(_, size)| **size >= bytes).map(|(start, _)| *start);
        }
        let head = self.pieces.front().map_or(self.tail, |piece| piece.start);
        let is_full = self.used > 0 && self.tail == head;
        match () {
            () if is_full => None,
            () if self.used > 0 && self.tail < head => (bytes <= head - self.tail).then_some(self.tail),
            () if bytes <= self.bytes - self.tail => Some(self.tail),
            () if self.used == 0 => (bytes <= self.bytes).then_some(0),
            () => (bytes <= head).then_some(0),
        }
    }

    #[inline]
    fn rounded(&self, bytes: u32) -> Option<u32> {
        bytes.checked_next_multiple_of(self.unit)
    }

    /// Returns true if [`Ring::allocate`] would succeed.
    #[inline]
    pub fn has_room(&self, bytes: u32) -> bool {
        bytes == 0 || self.rounded(bytes).is_some_and(|bytes| self.place(bytes).is_some())
    }

    /// Allocates a piece of at least this size, or returns `None` if the ring has no room. An empty piece occupies
    /// nothing and need not be freed.
    #[inline]
    pub fn allocate(&mut self, bytes: u32) -> Option<Allocation> {
        if bytes == 0 {
            return Some(Allocation { start: 0, bytes: 0 });
        }
        let bytes = self.rounded(bytes)?;
        let start = self.place(bytes)?;
        if let Some(holes) = &mut self.holes {
            let size = holes.remove(&start)?;
            if size > bytes {
                holes.insert(start + bytes, size - bytes);
            }
            self.used += bytes;
            return Some(Allocation { start, bytes });
        }
        if start != self.tail && self.used > 0 {
            let skipped = Piece { start: self.tail, bytes: self.bytes - self.tail, free: true };
            // A tail at the end of the ring leaves no remainder.
            if skipped.bytes > 0 {
                self.used += skipped.bytes;
                self.pieces.push_back(skipped);
            }
        }
        self.used += bytes;
        self.tail = if start + bytes == self.bytes { 0 } else { start + bytes };
        self.pieces.push_back(Piece { start, bytes, free: false });
        Some(Allocation { start, bytes })
    }

    /// Frees a piece, in any order.
    #[inline]
    pub fn free(&mut self, piece: Allocation) {
        if piece.bytes == 0 {
            return;
        }
        if let Some(holes) = &mut self.holes {
            let mut hole = (piece.start, piece.bytes);
            if let Some(next) = holes.remove(&(piece.start + piece.bytes)) {
                hole.1 += next;
            }
            if let Some((start, size)) = holes.range(..piece.start).next_back().map(|(start, size)| (*start, *size))
                && start + size == piece.start
            {
                hole = (start, size + hole.1);
            }
            holes.insert(hole.0, hole.1);
            self.used -= piece.bytes;
            return;
        }
        // Pieces lie in ring order from the first one on, which is usually the one to free.
        let head = self.pieces.front().map_or(0, |piece| piece.start);
        let behind_head = |start: u32| if start >= head { start - head } else { start + (self.bytes - head) };
        let index = match piece.start == head {
            true => Ok(0),
            false => self.pieces.binary_search_by_key(&behind_head(piece.start), |known| behind_head(known.start)),
        };
        match index.ok().and_then(|index| self.pieces.get_mut(index)) {
            Some(known) if !known.free => known.free = true,
            _ => debug_assert!(false, "{piece:?} is freed twice"),
        }
        while let Some(front) = self.pieces.front().filter(|front| front.free) {
            self.used -= front.bytes;
            self.pieces.pop_front();
        }
        if self.used == 0 {
            self.tail = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A piece that stays does not hold up the space of later ones, and neighbouring holes join.
    #[test]
    fn a_scattered_buffer_reuses_any_freed_piece() {
        let mut ring = Ring::scattered(256, 64);
        let pieces: Vec<_> = (0..4).map(|_| ring.allocate(64).unwrap()).collect();
        assert!(!ring.has_room(1) && ring.used() == 256);
        ring.free(pieces[1]);
        assert!(ring.has_room(64) && !ring.has_room(65));
        ring.free(pieces[3]);
        ring.free(pieces[2]);
        assert_eq!(ring.allocate(192), Some(Allocation { start: 64, bytes: 192 }));
        ring.free(pieces[0]);
        ring.free(Allocation { start: 64, bytes: 192 });
        assert_eq!((ring.used(), ring.allocate(256)), (0, Some(Allocation { start: 0, bytes: 256 })));
    }

    #[test]
    fn a_full_ring_is_not_an_empty_one() {
        let mut ring = Ring::new(256, 64);
        let pieces: Vec<_> = (0..4).map(|_| ring.allocate(64).unwrap()).collect();
        assert_eq!(pieces.iter().map(|piece| piece.start).collect::<Vec<_>>(), [0, 64, 128, 192]);
        assert!(!ring.has_room(1) && ring.allocate(1).is_none() && ring.has_room(0));
        // Out-of-order frees make room only once the head is free.
        ring.free(pieces[1]);
        assert!(!ring.has_room(1));
        ring.free(pieces[0]);
        assert_eq!((ring.used(), ring.allocate(65)), (128, Some(Allocation { start: 0, bytes: 128 })));
        assert!(!ring.has_room(1));
    }

    #[test]
    fn a_piece_does_not_wrap() {
        let mut ring = Ring::new(256, 64);
        let [first, second, third] = [64, 64, 64].map(|bytes| ring.allocate(bytes).unwrap());
        ring.free(first);
        assert!(!ring.has_room(128), "64 bytes at each end");
        ring.free(second);
        assert_eq!(ring.allocate(128), Some(Allocation { start: 0, bytes: 128 }));
        assert_eq!(ring.used(), 256, "the rest at the end is skipped");
        ring.free(third);
        assert_eq!(ring.used(), 128);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Compares with a map of bytes: pieces never overlap, an empty ring can be allocated whole, and a refusal
        /// means that no free stretch after the tail is long enough.
        #[test]
        fn pieces_never_overlap(
            units in 1_u32..20,
            steps in prop::collection::vec((any::<bool>(), 0_u32..1500, any::<prop::sample::Index>()), 1..200),
        ) {
            let total = units * 64;
            let mut ring = Ring::new(total, 64);
            let mut bytes = vec![false; total as usize];
            let mut live: Vec<Allocation> = Vec::new();
            for (allocates, size, index) in steps {
                if allocates {
                    let had_room = ring.has_room(size);
                    match ring.allocate(size) {
                        Some(piece) => {
                            prop_assert!(had_room && piece.bytes >= size);
                            let range = piece.start as usize..(piece.start + piece.bytes) as usize;
                            prop_assert!(bytes[range.clone()].iter().all(|used| !used));
                            bytes[range].fill(true);
                            if piece.bytes > 0 {
                                live.push(piece);
                            }
                        }
                        None => {
                            prop_assert!(!had_room);
                            prop_assert!(!live.is_empty() || size > total);
                        }
                    }
                } else if !live.is_empty() {
                    let piece = live.swap_remove(index.index(live.len()));
                    bytes[piece.start as usize..(piece.start + piece.bytes) as usize].fill(false);
                    ring.free(piece);
                }
                prop_assert!(ring.used() as usize >= bytes.iter().filter(|used| **used).count());
                prop_assert!(!live.is_empty() || ring.used() == 0);
            }
        }
    }
}
