// SPDX-License-Identifier: Apache-2.0
//! Sparse memory of the ranks.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};

use cluster::HostMemory;
use nic::MemoryFault;

/// Bytes of a page.
const PAGE: usize = 1024;
/// Bytes of a line. A page with a single written line stores only that.
const LINE: usize = 64;
const _: () = assert!(PAGE / LINE <= 1 << u8::BITS);
/// Maximum bytes of a piece. A page with a single written piece is stored inline in the table.
const PIECE: usize = 20;
/// Bytes of a word of untouched memory.
const WORD: usize = 8;

/// Returns the address of a rank's buffer for a tag: the source of data put, sent or fetched with this tag, and the
/// destination of data arriving with it. A buffer has 4 GiB; the 4 GiB from address 0 on belong to no tag.
pub fn buffer(tag: u32) -> u64 {
    (u64::from(tag) + 1) << 32
}

/// Memory of all ranks. Only written pages are stored. All other bytes are a function of rank and address, so that
/// misplaced data is detected.
#[derive(Debug, Default)]
pub struct SparseMemory {
    pages: HashMap<(u32, u64), Page, BuildHasherDefault<Mixer>>,
}

/// A written page. Most messages of large schedules are short, so most pages are stored in part.
#[derive(Debug)]
enum Page {
    /// Start, length and contents of the only written piece; the other bytes are untouched.
    Piece(u16, u8, [u8; PIECE]),
    /// Number and contents of the only written line; the other bytes are untouched.
    Line(u8, Box<[u8; LINE]>),
    /// All bytes.
    Whole(Box<[u8; PAGE]>),
}

impl SparseMemory {
    /// Copies the bytes at `address` of a rank into `out`.
    pub fn load(&self, rank: u32, address: u64, out: &mut [u8]) {
        pieces(address, out.len(), |page, start, piece| {
            let out = &mut out[piece];
            let Some(there) = self.pages.get(&(rank, page)) else {
                return untouched(rank, page * PAGE as u64 + start as u64, out);
            };
            match there.written(start, out.len()) {
                Some(bytes) => out.copy_from_slice(bytes),
                None => out.copy_from_slice(&there.whole(rank, page)[start..start + out.len()]),
            }
        });
    }

    /// Writes to `address` of a rank.
    pub fn store(&mut self, rank: u32, address: u64, bytes: &[u8]) {
        pieces(address, bytes.len(), |page, start, piece| {
            let bytes = &bytes[piece];
            match self.pages.entry((rank, page)) {
                Entry::Vacant(place) => {
                    place.insert(Page::touched(rank, page, start, bytes));
                }
                Entry::Occupied(place) => {
                    let there = place.into_mut();
                    if let Some(known) = there.written_mut(start, bytes.len()) {
                        return known.copy_from_slice(bytes);
                    }
                    let mut whole = there.whole(rank, page);
                    whole[start..start + bytes.len()].copy_from_slice(bytes);
                    *there = match there.line_with(start, bytes.len()) {
                        Some(line) => {
                            let mut fresh = Box::new([0; LINE]);
                            fresh.copy_from_slice(&whole[line * LINE..][..LINE]);
                            Page::Line(line as u8, fresh)
                        }
                        None => Page::Whole(whole),
                    };
                }
            }
        });
    }

    /// Copies bytes within a rank.
    pub fn copy(&mut self, rank: u32, from: u64, to: u64, length: u64) {
        let mut bytes = [0; PAGE];
        for done in (0..length).step_by(PAGE) {
            let piece = &mut bytes[..(length - done).min(PAGE as u64) as usize];
            self.load(rank, from + done, piece);
            self.store(rank, to + done, piece);
        }
    }

    /// Discards the written pages that lie completely within a range.
    pub fn forget(&mut self, rank: u32, address: u64, length: u64) {
        let pages = address.div_ceil(PAGE as u64)..(address + length) / PAGE as u64;
        for page in pages {
            self.pages.remove(&(rank, page));
        }
    }
}

impl Page {
    /// Creates a page of a rank for a first write of `bytes` at `start`.
    fn touched(rank: u32, page: u64, start: usize, bytes: &[u8]) -> Page {
        if bytes.len() <= PIECE {
            let mut piece = [0; PIECE];
            piece[..bytes.len()].copy_from_slice(bytes);
            return Page::Piece(start as u16, bytes.len() as u8, piece);
        }
        let (address, line) = (page * PAGE as u64, start / LINE);
        if start + bytes.len() <= (line + 1) * LINE {
            let mut fresh = Box::new([0; LINE]);
            untouched(rank, address + (line * LINE) as u64, &mut *fresh);
            fresh[start % LINE..][..bytes.len()].copy_from_slice(bytes);
            return Page::Line(line as u8, fresh);
        }
        let mut fresh = Box::new([0; PAGE]);
        if bytes.len() < PAGE {
            untouched(rank, address, &mut *fresh);
        }
        fresh[start..start + bytes.len()].copy_from_slice(bytes);
        Page::Whole(fresh)
    }

    /// Returns `length` bytes from `start` on, if they are stored.
    fn written(&self, start: usize, length: usize) -> Option<&[u8]> {
        let (first, bytes) = match self {
            Page::Piece(first, length, bytes) => (usize::from(*first), &bytes[..usize::from(*length)]),
            Page::Line(line, bytes) => (usize::from(*line) * LINE, &bytes[..]),
            Page::Whole(bytes) => (0, &bytes[..]),
        };
        bytes.get(start.checked_sub(first)?..)?.get(..length)
    }

    /// Returns `length` bytes from `start` on, if they are stored.
    fn written_mut(&mut self, start: usize, length: usize) -> Option<&mut [u8]> {
        let (first, bytes) = match self {
            Page::Piece(first, length, bytes) => (usize::from(*first), &mut bytes[..usize::from(*length)]),
            Page::Line(line, bytes) => (usize::from(*line) * LINE, &mut bytes[..]),
            Page::Whole(bytes) => (0, &mut bytes[..]),
        };
        bytes.get_mut(start.checked_sub(first)?..)?.get_mut(..length)
    }

    /// Returns the line that contains both the only written piece and `length` bytes from `start` on, if one does.
    fn line_with(&self, start: usize, length: usize) -> Option<usize> {
        let Page::Piece(first, known, _) = self else { return None };
        let line = start / LINE;
        let holds = |from: usize, bytes: usize| from >= line * LINE && from + bytes <= (line + 1) * LINE;
        (holds(start, length) && holds(usize::from(*first), usize::from(*known))).then_some(line)
    }

    /// Returns all bytes of this page.
    fn whole(&self, rank: u32, page: u64) -> Box<[u8; PAGE]> {
        let mut whole = Box::new([0; PAGE]);
        untouched(rank, page * PAGE as u64, &mut *whole);
        match self {
            Page::Piece(first, length, bytes) => {
                let length = usize::from(*length);
                whole[usize::from(*first)..][..length].copy_from_slice(&bytes[..length]);
            }
            Page::Line(line, bytes) => whole[usize::from(*line) * LINE..][..LINE].copy_from_slice(&**bytes),
            Page::Whole(bytes) => whole.copy_from_slice(&**bytes),
        }
        whole
    }
}

impl HostMemory for SparseMemory {
    fn read(&mut self, rank: u32, address: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        self.load(rank, address, out);
        Ok(())
    }

    fn write(&mut self, rank: u32, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        self.store(rank, address, bytes);
        Ok(())
    }
}

/// Splits `length` bytes from `address` on at page boundaries. Calls `each` with the page number, the offset within the
/// page, and the range of the bytes in that page.
fn pieces(address: u64, length: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < length {
        let at = address.wrapping_add(done as u64);
        let start = (at % PAGE as u64) as usize;
        let end = length.min(done + PAGE - start);
        each(at / PAGE as u64, start, done..end);
        done = end;
    }
}

/// Fills `out` with the contents of untouched memory at `address`.
fn untouched(rank: u32, address: u64, out: &mut [u8]) {
    let mut at = address;
    let mut rest = out;
    while !rest.is_empty() {
        let within = (at % WORD as u64) as usize;
        let word = mix(u64::from(rank) << 32 ^ (at / WORD as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_le_bytes();
        let (now, later) = rest.split_at_mut(rest.len().min(WORD - within));
        now.copy_from_slice(&word[within..within + now.len()]);
        at = at.wrapping_add(now.len() as u64);
        rest = later;
    }
}

/// Mixes the bits of a number, without collisions (the finalizer of MurmurHash3).
fn mix(mut word: u64) -> u64 {
    word = (word ^ word >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    word = (word ^ word >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ word >> 33
}

/// Hasher for the two numbers of a page.
#[derive(Debug, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = mix(self.0.rotate_left(32) ^ number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(memory: &SparseMemory, rank: u32, address: u64, length: usize) -> Vec<u8> {
        let mut out = vec![0; length];
        memory.load(rank, address, &mut out);
        out
    }

    #[test]
    fn writes_change_their_bytes_and_no_others() {
        let mut memory = SparseMemory::default();
        let start = buffer(7) + 1000;
        let before = bytes(&memory, 3, start, 3000);
        memory.store(3, start + 10, &[1; 2050]);
        let after = bytes(&memory, 3, start, 3000);
        assert_eq!((&after[..10], &after[2060..]), (&before[..10], &before[2060..]));
        assert_eq!(after[10..2060], [1; 2050]);
        assert_eq!(bytes(&memory, 4, start, 8), bytes(&SparseMemory::default(), 4, start, 8));
        memory.copy(3, start + 10, buffer(9) + 5, 2050);
        assert_eq!(bytes(&memory, 3, buffer(9) + 5, 2050), [1; 2050]);
    }

    #[test]
    fn untouched_bytes_do_not_depend_on_how_they_are_read() {
        let memory = SparseMemory::default();
        let all = bytes(&memory, 1, 100, 5000);
        let parts: Vec<u8> = (0..5000).step_by(7).flat_map(|at| bytes(&memory, 1, 100 + at, 7)).collect();
        assert_eq!(all, parts[..5000]);
        assert_ne!(all[..64], bytes(&memory, 2, 100, 64));
    }

    #[test]
    fn short_messages_take_no_more_than_their_places_in_the_table() {
        assert_eq!(size_of::<Page>(), 24);
        let mut memory = SparseMemory::default();
        memory.store(3, buffer(7) + 70, &[1; PIECE]);
        memory.store(3, buffer(7) + 75, &[2; 15]);
        assert!(matches!(memory.pages.values().next(), Some(Page::Piece(70, 20, _))));
        let expected: Vec<u8> = [1; 5].into_iter().chain([2; 15]).collect();
        assert_eq!(bytes(&memory, 3, buffer(7) + 70, PIECE), expected);
        memory.store(3, buffer(7) + 100, &[3; PIECE + 1]);
        assert!(matches!(memory.pages.values().next(), Some(Page::Line(1, _))));
        assert_eq!(bytes(&memory, 3, buffer(7) + 70, PIECE), expected);
        assert_eq!(bytes(&memory, 3, buffer(7) + 100, PIECE + 1), [3; PIECE + 1]);
        let untouched = bytes(&SparseMemory::default(), 3, buffer(7), 70);
        assert_eq!(bytes(&memory, 3, buffer(7), 70), untouched);
    }

    /// A page has the same contents for any sequence of writes.
    #[test]
    fn a_page_with_one_line_holds_what_a_whole_one_does() {
        let start = buffer(7) + PAGE as u64;
        for (first, second) in [(0..8, 8..64), (60..64, 64..65), (100..108, 90..130), (1016..1024, 0..3)] {
            let (mut lines, mut whole) = (SparseMemory::default(), SparseMemory::default());
            let untouched = bytes(&whole, 3, start, PAGE);
            whole.store(3, start, &untouched);
            for (range, value) in [(first.clone(), 1), (second.clone(), 2)] {
                for memory in [&mut lines, &mut whole] {
                    memory.store(3, start + range.start, &vec![value; (range.end - range.start) as usize]);
                }
                for (from, length) in [(0, PAGE), (range.start as usize, 3), (64, 64), (63, 2)] {
                    let at = start + from as u64;
                    assert_eq!(bytes(&lines, 3, at, length), bytes(&whole, 3, at, length), "{first:?} {second:?}");
                }
            }
            let is_line = matches!(lines.pages.values().next(), Some(Page::Line(..)));
            assert_eq!((lines.pages.len(), is_line), (1, second == (8..64)));
        }
    }

    #[test]
    fn only_whole_pages_are_forgotten() {
        let mut memory = SparseMemory::default();
        memory.store(0, 0, &[9; 4 * PAGE]);
        memory.forget(0, 100, 2 * PAGE as u64);
        assert_eq!(memory.pages.len(), 3);
        assert_eq!(bytes(&memory, 0, 0, PAGE), [9; PAGE]);
        assert_eq!(bytes(&memory, 0, PAGE as u64, 8), bytes(&SparseMemory::default(), 0, PAGE as u64, 8));
    }
}
