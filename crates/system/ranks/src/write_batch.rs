// SPDX-License-Identifier: Apache-2.0
//! Batches card writes to the memory of a sleeping rank into few system calls.
//!
//! The memory is not visible before a rank runs or the simulator reads it, so the writes may be deferred until then.
//! The first write to a page is performed at once: it shows that the page is writable, which cannot change while no
//! rank runs. A bad address thus still fails the write that has it.

use super::remote;
use std::collections::BTreeSet;
use std::io;

/// Minimum page size.
const PAGE: u64 = 4096;
/// Maximum length of a deferred write; longer ones are performed at once.
const LONGEST: usize = 2048;
/// Maximum number of pieces per system call (IOV_MAX), and of deferred bytes.
const PIECES: usize = 1024;
const BYTES: usize = 1 << 18;

/// Deferred writes to the memory of one rank.
#[derive(Debug, Default)]
pub struct Batch {
    rank: usize,
    /// Pages of the rank written since any rank last ran.
    pages: BTreeSet<u64>,
    bytes: Vec<u8>,
    /// Addresses and lengths of the pieces of `bytes`.
    pieces: Vec<(u64, usize)>,
}

/// Treatment of a write.
#[derive(Debug, PartialEq, Eq)]
pub enum Plan {
    /// Deferred.
    Kept,
    /// To be performed now, after the deferred writes.
    AfterOthers,
    /// To be performed now; it overlaps no deferred write.
    Now,
}

impl Batch {
    /// Defers a write if possible. The batch must have room ([`Batch::is_full`]) and no writes for another rank.
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

    /// Records a completed write to a rank's memory.
    pub fn note(&mut self, address: u64, length: usize) {
        self.pages.extend(pages(address, length).into_iter().flatten());
    }

    /// Returns true if the deferred writes must be performed before the next write to this rank is planned.
    pub fn is_full(&self, rank: usize) -> bool {
        let is_full = self.pieces.len() == PIECES || self.bytes.len() > BYTES;
        is_full || (self.rank != rank && !self.pieces.is_empty())
    }

    /// Returns the rank with deferred writes, if any.
    pub fn rank(&self) -> Option<usize> {
        (!self.pieces.is_empty()).then_some(self.rank)
    }

    /// Performs the deferred writes in the memory of process `pid`.
    ///
    /// # Errors
    /// If some bytes cannot be written; all deferred writes are dropped then, too.
    pub fn write(&mut self, pid: i32) -> io::Result<()> {
        let written = remote::write_pieces(pid, &self.pieces, &self.bytes);
        let length = self.bytes.len();
        self.forget();
        match written? {
            written if written == length => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Drops the deferred writes.
    pub fn forget(&mut self) {
        self.bytes.clear();
        self.pieces.clear();
    }

    /// Forgets the written pages, because a running rank may change its mappings.
    pub fn forget_pages(&mut self) {
        self.pages.clear();
    }
}

/// Returns the numbers of the pages that a write touches; `None` if it is empty or exceeds the address space.
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
        assert_eq!(batch.plan(3, base + 20, &[3; 8]), Plan::Kept); // overlaps; the later write wins
        assert_eq!(batch.plan(3, base + PAGE - 4, &[4; 8]), Plan::AfterOthers);
        assert_eq!(batch.plan(3, base + PAGE, &[4; 8]), Plan::Now);
        assert_eq!(batch.plan(3, base + 100, &[5; LONGEST + 1]), Plan::AfterOthers);
        assert_eq!(batch.plan(3, u64::MAX, &[5; 2]), Plan::AfterOthers);
        assert!(batch.is_full(4) && !batch.is_full(3));
        assert_eq!(batch.rank(), Some(3));
        batch.write(std::process::id() as i32).unwrap();
        assert_eq!(memory[offset + 16..offset + 29], [2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 0]);
        assert_eq!(batch.rank(), None);
        // Known pages are forgotten after a rank runs, and for another rank.
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
