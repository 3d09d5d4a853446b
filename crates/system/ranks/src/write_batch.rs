//! Writes of cards to the memory of a rank that sleeps, of which the kernel makes many at a time.
//!
//! Nobody sees the memory before a rank runs or the simulator reads it, so the writes may wait until then. The first write to a page is
//! made at once: it shows whether the page can be written, and as long as no rank runs nothing changes that. So a bad address is
//! still an error of the write that has it.

use super::remote;
use std::collections::BTreeSet;
use std::io;

/// The size of the smallest pages.
const PAGE: u64 = 4096;
/// Writes that are longer are made at once.
const LONGEST: usize = 2048;
/// The number of pieces that one system call takes (IOV_MAX), and of bytes that are kept.
const PIECES: usize = 1024;
const BYTES: usize = 1 << 18;

/// Writes to the memory of one rank.
#[derive(Debug, Default)]
pub struct Batch {
    rank: usize,
    /// The pages of the rank that were written since a rank has run.
    pages: BTreeSet<u64>,
    bytes: Vec<u8>,
    /// Addresses and lengths of the pieces of `bytes`.
    pieces: Vec<(u64, usize)>,
}

/// What to do with a write.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// It is kept.
    Kept,
    /// It must be made now, after those that are kept.
    AfterOthers,
    /// It must be made now; those that are kept are elsewhere.
    Now,
}

impl Batch {
    /// Keeps a write if that is possible. There must be room ([`Batch::is_full`]), and nothing kept for another rank.
    pub fn plan(&mut self, rank: usize, address: u64, bytes: &[u8]) -> Plan {
        if self.rank != rank {
            self.rank = rank;
            self.pages.clear();
        }
        let Some(pages) = pages(address, bytes.len()) else { return Plan::AfterOthers };
        let known = pages.clone().filter(|page| self.pages.contains(page)).count() as u64;
        if known == 0 {
            return Plan::Now;
        }
        if bytes.len() > LONGEST || known != pages.end() - pages.start() + 1 {
            return Plan::AfterOthers;
        }
        self.bytes.extend_from_slice(bytes);
        self.pieces.push((address, bytes.len()));
        Plan::Kept
    }

    /// Takes note that a write to a rank's memory was made.
    pub fn note(&mut self, address: u64, length: usize) {
        self.pages.extend(pages(address, length).into_iter().flatten());
    }

    /// Whether what is kept must be written before the next write for this rank is planned.
    pub fn is_full(&self, rank: usize) -> bool {
        let is_full = self.pieces.len() == PIECES || self.bytes.len() > BYTES;
        is_full || (self.rank != rank && !self.pieces.is_empty())
    }

    /// The rank whose writes are kept; `None` if there are none.
    pub fn rank(&self) -> Option<usize> {
        (!self.pieces.is_empty()).then_some(self.rank)
    }

    /// Makes the writes that are kept, in the memory of process `pid`.
    ///
    /// # Errors
    /// When not all could be made; none is kept then, either.
    pub fn write(&mut self, pid: i32) -> io::Result<()> {
        let written = remote::write_pieces(pid, &self.pieces, &self.bytes);
        let length = self.bytes.len();
        self.forget();
        match written? {
            written if written == length => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Drops the writes that are kept.
    pub fn forget(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }

    /// A rank runs, so pages may change.
    pub fn forget_pages(&mut self) {
        self.pages.clear();
    }
}

/// The numbers of the pages that a write touches; `None` if it goes beyond the last address, or is empty.
fn pages(address: u64, length: usize) -> Option<std::ops::RangeInclusive<u64>> {
    let last = address.checked_add((length as u64).checked_sub(1)?)?;
    Some(address / PAGE..=last / PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_wait_only_for_pages_written_before() {
        let mut memory = vec![0_u8; 4 * PAGE as usize];
        let base = (memory.as_mut_ptr() as u64).next_multiple_of(PAGE);
        let offset = (base - memory.as_ptr() as u64) as usize;
        let mut batch = Batch::default();
        assert_eq!(batch.plan(3, base, &[1; 8]), Plan::Now);
        batch.note(base, 8);
        assert_eq!(batch.plan(3, base + 16, &[2; 8]), Plan::Kept);
        assert_eq!(batch.plan(3, base + 20, &[3; 8]), Plan::Kept); // overlaps: the later one wins
        assert_eq!(batch.plan(3, base + PAGE - 4, &[4; 8]), Plan::AfterOthers);
        assert_eq!(batch.plan(3, base + PAGE, &[4; 8]), Plan::Now);
        assert_eq!(batch.plan(3, base + 100, &[5; LONGEST + 1]), Plan::AfterOthers);
        assert_eq!(batch.plan(3, u64::MAX, &[5; 2]), Plan::AfterOthers);
        assert!(batch.is_full(4) && !batch.is_full(3));
        assert_eq!(batch.rank(), Some(3));
        batch.write(std::process::id() as i32).unwrap();
        assert_eq!(memory[offset + 16..offset + 29], [2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 0]);
        assert_eq!(batch.rank(), None);
        // After a rank has run, and for another rank, nothing is known.
        batch.forget_pages();
        assert_eq!(batch.plan(3, base, &[1; 8]), Plan::Now);
        batch.note(base, 8);
        assert_eq!(batch.plan(4, base, &[1; 8]), Plan::Now);
        batch.note(base, 8);
        for _ in 0..PIECES {
            assert!(!batch.is_full(4));
            assert_eq!(batch.plan(4, base, &[1]), Plan::Kept);
        }
        assert!(batch.is_full(4));
    }

    #[test]
    fn unmapped_memory_is_an_error() {
        let mut batch = Batch::default();
        batch.note(0x1000, 1);
        assert_eq!(batch.plan(0, 0x1000, &[1]), Plan::Kept);
        assert!(batch.write(std::process::id() as i32).is_err());
        assert_eq!(batch.rank(), None);
    }
}
