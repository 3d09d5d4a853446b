//! The process's connection to the simulator: the job's shared memory, and whether this process may use it.

use abi::mailbox::{self, Header, Post, SLOTS, Slot, env};
use memmap2::{MmapMut, MmapOptions, MmapRaw};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, getppid, parent_process_death_signal};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::mem::offset_of;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const PAGE: usize = 4096;

/// The function that [`Session::get`] calls once, after it has opened the session. A module that needs the call sets it.
pub static WHEN_OPEN: OnceLock<fn()> = OnceLock::new();

/// The job's shared memory, as far as this process needs it.
pub struct Session {
    /// This process's rank.
    pub rank: usize,
    /// Number of ranks of the job.
    pub ranks: usize,
    /// The mapped [`Header`], and the words with the claimed slots up to that of this rank.
    header: MmapRaw,
    /// The mapped [`Slot`]s of this rank.
    slots: MmapRaw,
    file: File,
    file_path: CString,
    /// Whether the kernel ends this process with the simulator.
    is_bound: bool,
}

impl Session {
    /// The session of this process, opened by the first call. Without one, the first call prints the reason and every
    /// call returns `None`: `spinrun` did not start this process.
    pub fn get() -> Option<&'static Session> {
        static SESSION: OnceLock<Option<Session>> = OnceLock::new();
        let open = || {
            let session = Session::open().inspect_err(|why| say(format_args!("{why}"))).ok();
            session.inspect(|_| WHEN_OPEN.get().into_iter().for_each(|run| run()))
        };
        SESSION.get_or_init(open).as_ref()
    }

    fn open() -> Result<Session, String> {
        let [rank, ranks, pid, fd] = [env::RANK, env::SIZE, env::SIM_PID, env::SIM_FD].map(number);
        let (Some(rank), Some(ranks), Some(pid), Some(fd)) = (rank, ranks, pid, fd) else {
            return Err(format!("not started by spinrun ({} and others are not set)", env::RANK));
        };
        let path = format!("/proc/{pid}/fd/{fd}");
        let file = OpenOptions::new().read(true).write(true).open(&path);
        let file = file.map_err(|error| format!("cannot reach spinrun by {path}: {error}"))?;
        let map = |start: usize, end: usize| {
            let map = MmapOptions::new().offset(start as u64).len(end - start).map_raw(&file);
            map.map_err(|error| format!("cannot map {path}: {error}"))
        };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if rank >= ranks || length < mailbox::file_size(ranks) as u64 {
            return Err(format!("{path} is no job of {ranks} ranks"));
        }
        let header = map(0, mailbox::claimed_offset(rank + 1))?;
        // SAFETY: the file is at least that long, and the simulator has filled it in.
        if unsafe { (*header.as_ptr().cast::<Header>()).magic } != mailbox::MAGIC {
            return Err("the library and spinrun are of different versions".into());
        }
        let slots = map(mailbox::slot_offset(ranks, rank, 0), mailbox::slot_offset(ranks, rank, SLOTS))?;
        mark_process().map_err(|error| format!("cannot tell this process from forked ones: {error}"))?;
        let file_path = CString::new(path).expect("a path of digits");
        Ok(Session { rank, ranks, header, slots, file, file_path, is_bound: ends_with(pid) })
    }

    /// The shared header.
    pub fn header(&self) -> &Header {
        // SAFETY: mapped for the life of the process; ranks change only its atomics.
        unsafe { &*self.header.as_ptr().cast() }
    }

    /// The word with the claimed slots of this rank.
    pub fn claimed(&self) -> &AtomicU32 {
        // SAFETY: mapped for the life of the process, and an atomic.
        unsafe { &*self.header.as_ptr().add(mailbox::claimed_offset(self.rank)).cast() }
    }

    /// The memory of this rank's slot `k`, which is below [`SLOTS`].
    pub fn slot(&self, k: usize) -> *mut Slot {
        assert!(k < SLOTS);
        self.slots.as_mut_ptr().cast::<Slot>().wrapping_add(k)
    }

    /// The simulated time at which the simulator last answered a rank, in picoseconds.
    pub fn now_ps(&self) -> u64 {
        self.header().now_ps.load(Ordering::Relaxed)
    }

    /// The descriptor of the shared memory file, and the offset of this rank's bounce area in it, in bytes.
    pub fn bounce(&self) -> (RawFd, i64) {
        (self.file.as_raw_fd(), mailbox::bounce_offset(self.ranks, self.rank) as i64)
    }

    /// The descriptor of the shared memory file, and where in it the payload of a posted call of one of this rank's slots begins.
    pub fn payload(&self, slot: *const Slot, index: usize) -> (RawFd, i64) {
        let within = slot as usize - self.slots.as_ptr() as usize + offset_of!(Slot, posts);
        let post = within + index * size_of::<Post>() + offset_of!(Post, payload);
        (self.file.as_raw_fd(), (mailbox::slot_offset(self.ranks, self.rank, 0) + post) as i64)
    }

    /// Whether the kernel ends this process with the simulator, so that it need not look whether the simulator still runs.
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Whether the simulator still runs. Its descriptors are closed when it ends, even while it is still a zombie. A process with another
    /// user's rights may not look.
    pub fn alive(&self) -> bool {
        !matches!(access(&self.file_path, Access::EXISTS), Err(Errno::NOENT | Errno::SRCH))
    }
}

/// Whether process `parent` is the parent of this one, which the kernel kills when it ends: so for the process that spinrun has started,
/// but not for a program that the rank has started.
fn ends_with(parent: usize) -> bool {
    let is_parent = Pid::as_raw(getppid()) as usize == parent;
    is_parent && parent_process_death_signal() == Ok(Some(Signal::KILL))
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// A page whose first byte is 1 in the process that has opened the session, and 0 in its forked children.
static MARK: OnceLock<MmapMut> = OnceLock::new();

/// Sets [`MARK`]. The kernel clears the page in every forked child (madvise(2), `MADV_WIPEONFORK`). A child of a plain fork
/// system call runs no handler of `pthread_atfork`.
fn mark_process() -> io::Result<()> {
    let mut page = MmapMut::map_anon(PAGE)?;
    // SAFETY: our own page. A child finds it cleared from its first instruction on.
    if unsafe { libc::madvise(page.as_mut_ptr().cast(), PAGE, libc::MADV_WIPEONFORK) } == -1 {
        return Err(io::Error::last_os_error());
    }
    page[0] = 1;
    let _ = MARK.set(page); // nothing else sets it
    Ok(())
}

/// Whether this process is a forked child of a rank. Its memory looks like the rank's, but it may not call the library.
pub fn forked() -> bool {
    MARK.get().is_some_and(|page| page[0] == 0)
}

/// Writes a line to standard error, if the user's process has it open: `eprintln!` panics where a reader is gone.
pub fn say(line: std::fmt::Arguments) {
    _ = writeln!(io::stderr(), "libportals: {line}");
}
