//! The process's connection to the simulator: the job's shared memory, and whether this process may use it.

use abi::mailbox::{self, Header, SLOTS, Slot, env};
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

const PAGE: usize = 4096;

/// What [`Session::get`] calls once, when it has opened the session. Modules that use the session set it.
pub static WHEN_OPEN: OnceLock<fn()> = OnceLock::new();

/// The job's shared memory, as far as this process needs it.
pub struct Session {
    /// This process's rank.
    pub rank: usize,
    /// Number of ranks of the job.
    pub ranks: usize,
    header: *const Header,
    slots: *mut Slot,
    file: File,
    file_path: CString,
}

// SAFETY: the header is atomics, and a slot belongs to the thread that has claimed it.
unsafe impl Send for Session {}
// SAFETY: as above.
unsafe impl Sync for Session {}

impl Session {
    /// The session of this process, opened by the first call. Without one, the first call prints the reason and every
    /// call returns `None`: `spinrun` did not start this process.
    pub fn get() -> Option<&'static Session> {
        static SESSION: OnceLock<Option<Session>> = OnceLock::new();
        let open = || {
            let session = Session::open().inspect_err(|why| eprintln!("libportals: {why}")).ok();
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
            let from = start / PAGE * PAGE;
            // SAFETY: a new shared mapping of a file; nothing of this process is replaced.
            let at = unsafe {
                let protection = libc::PROT_READ | libc::PROT_WRITE;
                libc::mmap(
                    std::ptr::null_mut(),
                    end - from,
                    protection,
                    libc::MAP_SHARED,
                    file.as_raw_fd(),
                    from as i64,
                )
            };
            if at == libc::MAP_FAILED {
                return Err(format!("cannot map {path}: {}", std::io::Error::last_os_error()));
            }
            // SAFETY: within the mapping.
            Ok(unsafe { at.cast::<u8>().add(start - from) })
        };
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        if rank >= ranks || length < mailbox::file_size(ranks) as u64 {
            return Err(format!("{path} is no job of {ranks} ranks"));
        }
        let header = map(0, size_of::<Header>())?.cast::<Header>();
        // SAFETY: the file is at least that long, and the simulator has filled it in.
        if unsafe { (*header).magic } != mailbox::MAGIC {
            return Err("the library and spinrun are of different versions".into());
        }
        let slots = map(mailbox::slot_offset(rank, 0), mailbox::slot_offset(rank, SLOTS))?.cast();
        mark_process().map_err(|error| format!("cannot tell this process from forked ones: {error}"))?;
        let file_path = CString::new(path).expect("a path of digits");
        Ok(Session { rank, ranks, header, slots, file, file_path })
    }

    /// The shared header.
    pub fn header(&self) -> &Header {
        // SAFETY: mapped for the life of the process.
        unsafe { &*self.header }
    }

    /// The memory of this rank's slot `k`, which is below [`SLOTS`].
    pub fn slot(&self, k: usize) -> *mut Slot {
        assert!(k < SLOTS);
        // SAFETY: within the mapping.
        unsafe { self.slots.add(k) }
    }

    /// The simulated time at which the simulator last answered a rank, in picoseconds.
    pub fn now_ps(&self) -> u64 {
        self.header().now_ps.load(Ordering::Relaxed)
    }

    /// The descriptor of the shared memory file, and the offset of this rank's bounce area in it, in bytes.
    pub fn bounce(&self) -> (RawFd, i64) {
        (self.file.as_raw_fd(), mailbox::bounce_offset(self.ranks, self.rank) as i64)
    }

    /// Whether the simulator still runs. Its descriptors are closed when it ends, even while it is still a zombie.
    pub fn alive(&self) -> bool {
        // SAFETY: a system call on a valid string.
        unsafe { libc::access(self.file_path.as_ptr(), libc::F_OK) == 0 }
    }
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// A flag that is true in the process that has opened the session and false in its forked children.
static MARK: AtomicPtr<AtomicBool> = AtomicPtr::new(null_mut());

/// Sets [`MARK`], in a page that the kernel clears in every forked child (madvise(2), `MADV_WIPEONFORK`). A child of a
/// plain fork system call runs no handler of `pthread_atfork`.
fn mark_process() -> io::Result<()> {
    // SAFETY: a new private page, of which the first byte becomes a flag; it is never unmapped.
    unsafe {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS);
        let page = libc::mmap(null_mut(), PAGE, protection, kind, -1, 0);
        if page == libc::MAP_FAILED || libc::madvise(page, PAGE, libc::MADV_WIPEONFORK) == -1 {
            return Err(io::Error::last_os_error());
        }
        let mark = page.cast::<AtomicBool>();
        (*mark).store(true, Ordering::Relaxed);
        MARK.store(mark, Ordering::Release);
    }
    Ok(())
}

/// Whether this process is a forked child of a rank. Its memory looks like the rank's, but it may not call the library.
pub fn forked() -> bool {
    // SAFETY: null, or never unmapped.
    unsafe { MARK.load(Ordering::Acquire).as_ref() }.is_some_and(|mark| !mark.load(Ordering::Relaxed))
}
