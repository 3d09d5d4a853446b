// SPDX-License-Identifier: Apache-2.0
//! Connection of the process to the simulator: the job's shared memory, and the right of this process to use it.

use abi::mailbox::{self, Header, Post, SLOTS, Slot, env};
use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, parent_process_death_signal};
use rustix::time::{ClockId, clock_gettime};
use std::ffi::CString;
use std::fs::OpenOptions;
use std::io;
use std::mem::{ManuallyDrop, offset_of};
use std::os::fd::{IntoRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: usize = 4096;

/// Callback that [`Session::get`] calls once, after it opens the session.
pub static WHEN_OPEN: OnceLock<fn()> = OnceLock::new();

/// This process's part of the job's shared memory.
pub struct Session {
    /// Rank of this process.
    pub rank: usize,
    /// Number of ranks of the job.
    pub ranks: usize,
    /// Number of this process in the shared memory, and number of processes there: those of all jobs.
    place: usize,
    places: usize,
    /// Mapped [`Header`], and the claimed-slot words up to that of this rank.
    header: *mut u8,
    /// Mapped [`Slot`]s of this rank.
    slots: *mut Slot,
    /// Descriptor of the shared memory file.
    file: RawFd,
    file_path: CString,
    /// True if the kernel ends this process with the simulator.
    is_bound: bool,
}

// SAFETY: the mapped memory is shared between processes anyway: each word is an atomic, or belongs to one side at a time.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// Creates the session of a rank in the simulator's process.
    ///
    /// # Safety
    /// `memory` must be the start of the job's shared memory file, and stay mapped as long as the session is used;
    /// `file` is its descriptor.
    pub unsafe fn embedded(rank: usize, ranks: usize, memory: *mut u8, file: RawFd) -> Session {
        let slots = memory.wrapping_add(mailbox::slot_offset(ranks, rank, 0)).cast();
        let (place, places, file_path) = (rank, ranks, CString::default());
        Session { rank, ranks, place, places, header: memory, slots, file, file_path, is_bound: true }
    }

    /// Opens the session of this process.
    ///
    /// # Errors
    /// The reason why `spinrun` did not start this process, or cannot be reached.
    pub fn open() -> Result<Session, String> {
        let [rank, ranks, pid, fd] = [env::RANK, env::SIZE, env::SIM_PID, env::SIM_FD].map(number);
        let (Some(rank), Some(ranks), Some(pid), Some(fd)) = (rank, ranks, pid, fd) else {
            return Err(format!("not started by spinrun ({} and others are not set)", env::RANK));
        };
        let place = number(env::PLACE).unwrap_or(rank);
        let places = number(env::PLACES).unwrap_or(ranks);
        let path = format!("/proc/{pid}/fd/{fd}");
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| format!("cannot reach spinrun by {path}: {error}"))?;
        let map = |start: usize, end: usize| {
            let map = MmapOptions::new().offset(start as u64).len(end - start).map_raw(&file);
            map.map_err(|error| format!("cannot map {path}: {error}"))
        };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if rank >= ranks || place >= places || length < mailbox::file_size(places) as u64 {
            return Err(format!("{path} is no job of {ranks} ranks"));
        }
        let header = map(0, mailbox::claimed_offset(place + 1))?;
        // SAFETY: the file is at least that long, and the simulator has initialised it.
        if unsafe { (*header.as_ptr().cast::<Header>()).magic } != mailbox::MAGIC {
            return Err("the library and spinrun are of different versions".into());
        }
        let slots = map(mailbox::slot_offset(places, place, 0), mailbox::slot_offset(places, place, SLOTS))?;
        mark_process().map_err(|error| format!("cannot tell this process from forked ones: {error}"))?;
        let file_path = CString::new(path).expect("a path of digits");
        // The mappings and the file stay open for the life of the process.
        let (header, slots) = (ManuallyDrop::new(header).as_mut_ptr(), ManuallyDrop::new(slots).as_mut_ptr().cast());
        let (file, is_bound) = (file.into_raw_fd(), ends_with(pid));
        Ok(Session { rank, ranks, place, places, header, slots, file, file_path, is_bound })
    }

    /// Returns the shared header.
    pub fn header(&self) -> &Header {
        // SAFETY: mapped for the life of the process; ranks change only its atomics.
        unsafe { &*self.header.cast() }
    }

    /// Returns the word with the claimed slots of this rank.
    pub fn claimed(&self) -> &AtomicU32 {
        // SAFETY: the word is atomic, and mapped for the life of the process.
        unsafe { &*self.header.add(mailbox::claimed_offset(self.place)).cast() }
    }

    /// Returns a pointer to this rank's slot `k`, which must be below [`SLOTS`].
    pub fn slot(&self, k: usize) -> *mut Slot {
        assert!(k < SLOTS);
        self.slots.wrapping_add(k)
    }

    /// Returns the simulated time of the simulator's last answer to a rank, in picoseconds; in a live run, the real time
    /// since its start.
    pub fn now_ps(&self) -> u64 {
        match self.header().live_since_ns.load(Ordering::Relaxed) {
            0 => self.header().now_ps.load(Ordering::Relaxed),
            since => monotonic_ns().saturating_sub(since).saturating_mul(1000),
        }
    }

    /// Returns true if the run is live: its time is real.
    pub fn is_live(&self) -> bool {
        self.header().live_since_ns.load(Ordering::Relaxed) != 0
    }

    /// Returns the descriptor of the shared memory file, and the byte offset of this rank's bounce area in it.
    pub fn bounce(&self) -> (RawFd, i64) {
        (self.file, mailbox::bounce_offset(self.places, self.place) as i64)
    }

    /// Returns the descriptor of the shared memory file, and the byte offset of the payload of a posted call in one of
    /// this rank's slots.
    pub fn payload(&self, slot: *const Slot, index: usize) -> (RawFd, i64) {
        let within = slot as usize - self.slots as usize + offset_of!(Slot, posts);
        let post = within + index * size_of::<Post>() + offset_of!(Post, payload);
        (self.file, (mailbox::slot_offset(self.places, self.place, 0) + post) as i64)
    }

    /// Returns true if the kernel ends this process with the simulator, so that it need not check that the simulator
    /// runs.
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Returns true if the simulator still runs. Its descriptors close when it ends, even while it is a zombie. A
    /// process with another user's rights cannot check.
    pub fn alive(&self) -> bool {
        !matches!(access(&self.file_path, Access::EXISTS), Err(Errno::NOENT | Errno::SRCH))
    }
}

/// Returns true if `parent` is the parent of this process; the kernel then kills this process when the parent ends.
/// This holds for the process that spinrun started, but not for a program that the rank started.
fn ends_with(parent: usize) -> bool {
    let is_parent = Pid::as_raw(getppid()) as usize == parent;
    is_parent && parent_process_death_signal() == Ok(Some(Signal::KILL))
}

fn monotonic_ns() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// A page whose first byte is 1 in the process that opened the session, and 0 in its forked children.
static MARK: OnceLock<MmapMut> = OnceLock::new();

/// Sets [`MARK`]. The kernel clears the page in every forked child (madvise(2), `MADV_WIPEONFORK`). `pthread_atfork`
/// would not suffice: a child of a plain fork system call runs no handlers.
fn mark_process() -> io::Result<()> {
    let mut page = MmapMut::map_anon(PAGE)?;
    // SAFETY: this library's own page. A child finds it cleared from its first instruction on.
    if unsafe { libc::madvise(page.as_mut_ptr().cast(), PAGE, libc::MADV_WIPEONFORK) } == -1 {
        return Err(io::Error::last_os_error());
    }
    page[0] = 1;
    let _ = MARK.set(page); // nothing else sets it
    Ok(())
}

/// Returns true in a forked child of a rank. Its memory looks like the rank's, but it must not call the library.
pub fn forked() -> bool {
    MARK.get().is_some_and(|page| page[0] == 0)
}
