//! Pages of ranks that sleep, as the simulator knows them.
//!
//! A page that belongs to one process alone changes only when that process runs, or when a card writes to it. So the simulator may keep
//! its contents while its rank sleeps, and write what cards have changed when the rank runs again. It does so for pages that are
//! accessed often before that. Pages that processes may share are not kept: others read and write them.

use super::remote;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// The size of the smallest pages.
const PAGE: u64 = 4096;
/// The number of pages of a rank that are kept.
const MOST: usize = 8;
/// The number of accesses after which a page is kept: finding out whether it may be takes as long as a few of them.
const OFTEN: u32 = 4;
/// The number of pieces that one system call takes (IOV_MAX).
const PIECES: usize = 1024;
/// The number of changed bytes of a rank that wait at most until its next write.
const BYTES: usize = 1 << 16;
/// Bits of an entry of /proc/PID/pagemap (proc(5)): the page is in memory; it is of a file, or may be shared.
const PRESENT: u64 = 1 << 63;
const SHARED: u64 = 1 << 61;

/// What is known about the pages of a rank since it last ran.
#[derive(Debug, Default)]
pub struct Pages {
    /// The process.
    pid: i32,
    pages: Vec<Page>,
    /// The page that is forgotten next.
    next: usize,
    /// What has not been written yet: addresses and lengths of the pieces of `bytes`.
    pieces: Vec<(u64, usize)>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
struct Page {
    number: u64,
    state: State,
}

#[derive(Debug)]
enum State {
    /// It was accessed a number of times.
    Seen(u32),
    /// Others may use it.
    Shared,
    /// It belongs to the process alone. It may be written if that was tried.
    Kept { contents: Box<[u8; PAGE as usize]>, can_be_written: bool },
}

/// Returns the page of a range of addresses, and where in it the range is, if it is in one page.
fn within_page(address: u64, length: usize) -> Option<(u64, Range<usize>)> {
    let start = (address % PAGE) as usize;
    let end = start.checked_add(length).filter(|end| length > 0 && *end <= PAGE as usize)?;
    Some((address / PAGE, start..end))
}

impl Pages {
    fn find(&mut self, number: u64) -> Option<&mut State> {
        self.pages.iter_mut().find(|page| page.number == number).map(|page| &mut page.state)
    }

    /// Reads from a page that is kept. Returns whether it is.
    pub fn read(&mut self, address: u64, out: &mut [u8]) -> bool {
        let Some((number, range)) = within_page(address, out.len()) else { return false };
        let Some(State::Kept { contents, .. }) = self.find(number) else { return false };
        out.copy_from_slice(&contents[range]);
        true
    }

    /// Writes to a page that is kept and can be written. Returns whether it is. There must be room ([`Pages::is_full`]).
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> bool {
        let Some((number, range)) = within_page(address, bytes.len()) else { return false };
        let Some(State::Kept { contents, can_be_written: true }) = self.find(number) else { return false };
        contents[range].copy_from_slice(bytes);
        self.pieces.push((address, bytes.len()));
        self.bytes.extend_from_slice(bytes);
        true
    }

    /// Takes note that process `pid`, in which nothing waits to be written, was accessed here. A page is kept from the access with number
    /// [`OFTEN`] on.
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

    /// Whether what has changed must be written before more is.
    pub fn is_full(&self) -> bool {
        self.pieces.len() == PIECES || self.bytes.len() > BYTES
    }

    /// Returns the process to which something is to be written.
    pub fn changed(&self) -> Option<i32> {
        (!self.pieces.is_empty()).then_some(self.pid)
    }

    /// Writes what has changed to the process.
    ///
    /// # Errors
    /// When not all could be written; nothing waits then, either.
    pub fn write_back(&mut self) -> io::Result<()> {
        let written = remote::write_pieces(self.pid, &self.pieces, &self.bytes);
        let length = self.bytes.len();
        self.forget_changes();
        match written? {
            written if written == length => Ok(()),
            _ => Err(io::ErrorKind::WriteZero.into()),
        }
    }

    /// Drops what waits to be written.
    pub fn forget_changes(&mut self) {
        self.pieces.clear();
        self.bytes.clear();
    }

    /// Forgets the contents of the pages in a range of addresses, which are written in another way.
    pub fn forget_range(&mut self, address: u64, length: usize) {
        let last = address.saturating_add(length as u64).saturating_sub(1) / PAGE;
        for page in self.pages.iter_mut().filter(|page| (address / PAGE..=last).contains(&page.number)) {
            if matches!(page.state, State::Kept { .. }) {
                page.state = State::Seen(OFTEN);
            }
        }
    }

    /// The rank is about to run: nothing is known any more.
    pub fn forget(&mut self) {
        self.pages.clear();
        self.next = 0;
    }
}

/// Returns the state of a page that is accessed again.
fn keep(pid: i32, number: u64, can_be_written: bool) -> State {
    let mut contents = Box::new([0; PAGE as usize]);
    let is_read = is_private(pid, number)
        && remote::read(pid, number * PAGE, &mut contents[..]).is_ok_and(|length| length == PAGE as usize);
    if is_read { State::Kept { contents, can_be_written } } else { State::Shared }
}

/// Whether a page of a process is in memory, and no other process can see what is written to it.
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
        pages.note(own(), base, 1, true);
        for _ in 0..PIECES {
            assert!(!pages.is_full() && pages.write(base, &[3]));
        }
        assert!(pages.is_full());
        pages.write_back().unwrap();
        assert_eq!(memory[offset..offset + 2], [3, 1]);
        for _ in 0..=BYTES as u64 / PAGE {
            assert!(!pages.is_full() && pages.write(base, &[4; PAGE as usize]));
        }
        assert!(pages.is_full());
        pages.write_back().unwrap();
        assert_eq!(memory[offset..][..PAGE as usize], [4; PAGE as usize]);
        pages.forget();
        assert!(!pages.read(base, &mut out));
    }

    #[test]
    fn only_the_last_pages_are_known() {
        let memory = vec![1_u8; (MOST + 3) * PAGE as usize];
        let base = (memory.as_ptr() as u64).next_multiple_of(PAGE);
        let mut pages = Pages::default();
        for page in (0..=MOST as u64).chain(0..=1) {
            pages.note(own(), base + page * PAGE, 1, false);
        }
        // The ninth took the place of the first, and the first that of the second.
        assert_eq!(pages.pages.len(), MOST);
        assert!(pages.pages.iter().all(|page| matches!(page.state, State::Seen(1))));
        for _ in 1..OFTEN {
            assert!(!pages.read(base + PAGE, &mut [0]));
            pages.note(own(), base + PAGE, 1, false);
        }
        assert!(pages.read(base + PAGE, &mut [0]));
    }

    #[test]
    fn pages_that_others_see_and_pages_that_are_not_there_are_not_kept() {
        let mut pages = Pages::default();
        let shared = memmap2::MmapOptions::new().len(PAGE as usize).map_raw(&shared_file()).unwrap();
        // SAFETY: mapped, and this test's.
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
