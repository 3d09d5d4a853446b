// SPDX-License-Identifier: Apache-2.0
//! Write-back cache of pages of sleeping ranks.
//!
//! A private page changes only when its process runs, or when a card writes to it. The simulator can therefore cache
//! its contents while the rank sleeps, and write back modifications of cards when the rank runs again. It caches pages
//! that are accessed often in between. Pages that may be shared are not cached, because other processes access them.
//!
//! The write-back covers only the bytes that cards modified, each once. The other bytes of the page are left alone,
//! since a signal handler of the rank may have written them.

use super::remote;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Minimum page size.
const PAGE: u64 = 4096;
/// Maximum number of tracked pages per rank.
const MOST: usize = 8;
/// Number of accesses after which a page is cached: the check for a private page costs as much as a few accesses.
const OFTEN: u32 = 4;
/// Maximum number of pieces per system call (IOV_MAX).
const PIECES: usize = 1024;
/// Bits of an entry of /proc/PID/pagemap (proc(5)): page present in memory; page file-backed or possibly shared.
const PRESENT: u64 = 1 << 63;
const SHARED: u64 = 1 << 61;

/// Tracked pages of a rank since it last ran.
#[derive(Debug, Default)]
pub struct Pages {
    /// Process id.
    pid: i32,
    pages: Vec<Page>,
    /// Index of the page to replace next.
    next: usize,
    /// Set if a cached page has modifications that are not written back.
    changed: bool,
}

#[derive(Debug)]
struct Page {
    number: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Accessed this number of times.
    Seen(u32),
    /// Possibly shared with other processes, so not cached.
    Shared,
    /// Private and cached. `can_be_written` is set once a write succeeded.
    Kept { contents: Box<Contents>, can_be_written: bool },
}

/// Contents of a page, with a dirty bit per byte.
#[derive(Debug)]
struct Contents {
    bytes: [u8; PAGE as usize],
    changed: [u64; PAGE as usize / 64],
}

impl Contents {
    fn write(&mut self, range: Range<usize>, bytes: &[u8]) {
        self.bytes[range.clone()].copy_from_slice(bytes);
        for word in range.start / 64..=(range.end - 1) / 64 {
            let (from, to) = (range.start.max(word * 64) % 64, (range.end - 1).min(word * 64 + 63) % 64);
            self.changed[word] |= u64::MAX << from & u64::MAX >> (63 - to);
        }
    }

    /// Takes the next contiguous range of dirty bytes and clears their dirty bits.
    fn take_changed(&mut self) -> Option<Range<usize>> {
        let start_word = self.changed.iter().position(|&word| word != 0)?;
        let start = start_word * 64 + self.changed[start_word].trailing_zeros() as usize;
        let mut end = start;
        while let Some(word) = self.changed.get_mut(end / 64) {
            let ones = (*word >> (end % 64)).trailing_ones() as usize;
            if ones == 0 {
                break;
            }
            *word &= !(u64::MAX >> (64 - ones) << (end % 64));
            end += ones;
        }
        Some(start..end)
    }
}

/// Returns the page number of an address range, and its byte range within the page, if it lies in one page.
fn within_page(address: u64, length: usize) -> Option<(u64, Range<usize>)> {
    let start = (address % PAGE) as usize;
    let end = start.checked_add(length).filter(|end| length > 0 && *end <= PAGE as usize)?;
    Some((address / PAGE, start..end))
}

impl Pages {
    fn find(&mut self, number: u64) -> Option<&mut State> {
        self.pages.iter_mut().find(|page| page.number == number).map(|page| &mut page.state)
    }

    /// Reads from a cached page. Returns false if the page is not cached.
    pub fn read(&mut self, address: u64, out: &mut [u8]) -> bool {
        let Some((number, range)) = within_page(address, out.len()) else { return false };
        let Some(State::Kept { contents, .. }) = self.find(number) else { return false };
        out.copy_from_slice(&contents.bytes[range]);
        true
    }

    /// Writes to a cached, writable page. Returns false if there is none.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Some((number, range)) = within_page(address, bytes.len()) else { return false };
        let Some(State::Kept { contents, can_be_written: true }) = self.find(number) else { return false };
        contents.write(range, bytes);
        self.changed = true;
        true
    }

    /// Records an access to process `pid`, which has no pending modifications here. A page is cached at access number
    /// [`OFTEN`].
    pub fn note(&mut self, pid: i32, address: u64, length: usize, write: bool) {
        let Some((number, _)) = within_page(address, length) else { return };
        if self.pid != pid {
            self.forget();
            self.pid = pid;
        }
        let page = Page { number, state: State::Seen(1) };
        let Some(state) = self.find(number) else {
            if self.pages.len() < MOST {
                self.pages.push(page);
            } else {
                self.pages[self.next % MOST] = page;
                self.next += 1;
            }
            return;
        };
        match state {
            State::Seen(count) if *count + 1 < OFTEN => *count += 1,
            State::Seen(_) => *state = keep(pid, number, write),
            State::Kept { can_be_written, .. } => *can_be_written |= write,
            State::Shared => {}
        }
    }

    /// Returns the process with pending modifications.
    pub fn changed(&self) -> Option<i32> {
        self.changed.then_some(self.pid)
    }

    /// Writes the pending modifications to the process.
    ///
    /// # Errors
    /// If some bytes cannot be written; all pending modifications are dropped then, too.
    pub fn write_back(&mut self) -> io::Result<()> {
        self.changed = false;
        let (mut pieces, mut bytes) = (Vec::new(), Vec::new());
        for Page { number, state } in &mut self.pages {
            let State::Kept { contents, .. } = state else { continue };
            while let Some(range) = contents.take_changed() {
                pieces.push((*number * PAGE + range.start as u64, range.len()));
                bytes.extend_from_slice(&contents.bytes[range]);
            }
        }
        let mut rest = &bytes[..];
        for pieces in pieces.chunks(PIECES) {
            let (now, later) = rest.split_at(pieces.iter().map(|(_, length)| length).sum());
            if remote::write_pieces(self.pid, pieces, now)? != now.len() {
                return Err(io::ErrorKind::WriteZero.into());
            }
            rest = later;
        }
        Ok(())
    }

    /// Drops all pending modifications.
    pub fn forget_changes(&mut self) {
        self.changed = false;
        self.forget();
    }

    /// Drops the cached contents of an address range that is written by other means.
    pub fn forget_range(&mut self, address: u64, length: usize) {
        let last = address.saturating_add(length as u64).saturating_sub(1) / PAGE;
        for page in self.pages.iter_mut().filter(|page| (address / PAGE..=last).contains(&page.number)) {
            if matches!(page.state, State::Kept { .. }) {
                page.state = State::Seen(OFTEN);
            }
        }
    }

    /// Forgets all pages because the rank is about to run.
    pub fn forget(&mut self) {
        self.pages.clear();
        self.next = 0;
    }
}

/// Returns the new state of a page that reached [`OFTEN`] accesses.
fn keep(pid: i32, number: u64, can_be_written: bool) -> State {
    let mut contents = Box::new(Contents { bytes: [0; PAGE as usize], changed: [0; PAGE as usize / 64] });
    let is_read = is_private(pid, number)
        && remote::read(pid, number * PAGE, &mut contents.bytes).is_ok_and(|length| length == PAGE as usize);
    if is_read { State::Kept { contents, can_be_written } } else { State::Shared }
}

/// Returns true if a page of a process is in memory and private.
fn is_private(pid: i32, number: u64) -> bool {
    let mut entry = [0; 8];
    let mut read = || File::open(format!("/proc/{pid}/pagemap"))?.read_exact_at(&mut entry, number * 8);
    read().is_ok() && u64::from_ne_bytes(entry) & (PRESENT | SHARED) == PRESENT
}

#[cfg(test)]
mod tests {
    use super::*;
    use memmap2::MmapMut;

    fn own() -> i32 {
        std::process::id() as i32
    }

    #[test]
    fn a_private_page_is_kept_when_it_is_accessed_often() {
        let mut memory = vec![7_u8; 3 * PAGE as usize];
        let base = (memory.as_mut_ptr() as u64).next_multiple_of(PAGE);
        let offset = (base - memory.as_ptr() as u64) as usize;
        let (mut pages, mut out) = (Pages::default(), [0; 4]);
        for _ in 0..OFTEN {
            assert!(!pages.read(base + 8, &mut out));
            pages.note(own(), base + 8, 4, false);
        }
        assert!(pages.read(base + PAGE - 4, &mut out));
        assert_eq!(out, [7; 4]);
        assert!(!pages.read(base + PAGE - 3, &mut out), "it goes beyond the page");
        assert!(!pages.read(base + PAGE, &mut out), "another page");
        assert!(!pages.write(base, &[1; 4]), "it is not known whether it can be written");
        pages.note(own(), base, 4, true);
        assert!(pages.write(base, &[1; 4]) && pages.write(base + 2, &[2; 4]));
        assert!(pages.changed() == Some(own()) && pages.read(base, &mut out));
        assert_eq!((out, memory[offset]), ([1, 1, 2, 2], 7));
        pages.write_back().unwrap();
        assert_eq!(pages.changed(), None);
        assert_eq!(memory[offset..offset + 8], [1, 1, 2, 2, 2, 2, 7, 7]);
        pages.forget_range(base + PAGE, 10);
        assert!(pages.read(base, &mut out));
        pages.forget_range(base - 1, 2);
        assert!(!pages.read(base, &mut out));
        for _ in 0..2 {
            pages.note(own(), base, 1, true);
        }
        for offset in (0..PAGE).step_by(3) {
            assert!(pages.write(base + offset, &[3]) && pages.write(base + offset, &[4]));
        }
        // More pieces than one system call accepts; bytes written by the process in between are preserved.
        memory[offset + 1..][..PAGE as usize - 1].fill(9);
        pages.write_back().unwrap();
        let pattern = |at: usize| if at.is_multiple_of(3) { 4 } else { 9 };
        assert_eq!(memory[offset..][..PAGE as usize], std::array::from_fn::<u8, { PAGE as usize }, _>(pattern));
        assert!(pages.write(base, &[5; PAGE as usize]));
        pages.forget_changes();
        assert!(pages.changed().is_none() && memory[offset] == 4);
        pages.forget();
        assert!(!pages.read(base, &mut out));
    }

    #[test]
    fn changed_bytes_are_taken_as_ranges() {
        let mut contents = Contents { bytes: [0; PAGE as usize], changed: [0; PAGE as usize / 64] };
        let written = [0..1, 3..8, 8..64, 100..228, 227..230, 255..256, 256..257, 4000..4096];
        for range in &written {
            contents.write(range.clone(), &vec![1; range.len()]);
        }
        let taken: Vec<Range<usize>> = std::iter::from_fn(|| contents.take_changed()).collect();
        assert_eq!(taken, [0..1, 3..64, 100..230, 255..257, 4000..4096]);
        let number = written.iter().map(Range::len).sum::<usize>() - 1; // 227 was written twice
        assert_eq!(contents.bytes.iter().filter(|byte| **byte == 1).count(), number);
        contents.write(0..PAGE as usize, &[2; PAGE as usize]);
        assert_eq!((contents.take_changed(), contents.take_changed()), (Some(0..PAGE as usize), None));
    }

    #[test]
    fn only_the_last_pages_are_known() {
        let memory = vec![1_u8; (MOST + 3) * PAGE as usize];
        let base = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        let mut pages = Pages::default();
        for page in (0..=MOST as u64).chain(0..=1) {
            pages.note(own(), base + page * PAGE, 1, false);
        }
        // The ninth page replaced the first, and then the first replaced the second.
        assert_eq!(pages.pages.len(), MOST);
        assert!(pages.pages.iter().all(|page| matches!(page.state, State::Seen(1))));
        for _ in 1..OFTEN {
            assert!(!pages.read(base + PAGE, &mut [0]));
            pages.note(own(), base + PAGE, 1, false);
        }
        assert!(pages.read(base + PAGE, &mut [0]));
    }

    #[test]
    fn shared_and_absent_pages_are_not_kept() {
        let mut pages = Pages::default();
        let shared = memmap2::MmapOptions::new().len(PAGE as usize).map_raw(&shared_file()).unwrap();
        // SAFETY: mapped, and owned by this test.
        unsafe { shared.as_mut_ptr().write_volatile(1) };
        let empty = MmapMut::map_anon(PAGE as usize).unwrap();
        for address in [shared.as_ptr() as u64, empty.as_ptr() as u64, 0] {
            for _ in 0..=OFTEN {
                pages.note(own(), address, 8, true);
            }
            assert!(!pages.read(address, &mut [0; 8]) && !pages.write(address, &[0; 8]));
        }
    }

    fn shared_file() -> File {
        let file = File::from(rustix::fs::memfd_create(c"test", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        file.set_len(PAGE).unwrap();
        file
    }
}
