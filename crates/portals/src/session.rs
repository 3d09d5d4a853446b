//! The process's connection to the simulator: the shared memory, `PtlInit` and `PtlFini`, the registered images.

use crate::api;
use crate::call::{self, Call};
use abi::mailbox::{self, Header, Op, SLOTS, Slot, env};
use abi::portals::Rc;
use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

const PAGE: usize = 4096;

/// The job's shared memory, as far as this process needs it.
pub struct Session {
    /// Rank of this process.
    pub rank: usize,
    /// Ranks of the job.
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
    /// The session of this process; `None`, after a message, when spinrun did not start it.
    pub fn get() -> Option<&'static Session> {
        static SESSION: OnceLock<Option<Session>> = OnceLock::new();
        let open = || {
            let session = Session::open().inspect_err(|why| eprintln!("libportals: {why}")).ok();
            session.inspect(|_| begin_simulated_clock())
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

    /// Slot `k` of this rank.
    pub fn slot(&self, k: usize) -> *mut Slot {
        assert!(k < SLOTS);
        // SAFETY: within the mapping.
        unsafe { self.slots.add(k) }
    }

    /// Simulated time of the last answer to this rank, picoseconds.
    pub fn now_ps(&self) -> u64 {
        self.header().now_ps.load(Ordering::Relaxed)
    }

    /// The memory file, and where this rank's bounce area is in it.
    pub fn bounce(&self) -> (RawFd, i64) {
        (self.file.as_raw_fd(), mailbox::bounce_offset(self.ranks, self.rank) as i64)
    }

    /// Whether the simulator still runs. Its descriptors go when it ends, even while nobody has waited for it.
    pub fn alive(&self) -> bool {
        // SAFETY: a system call on a valid string.
        unsafe { libc::access(self.file_path.as_ptr(), libc::F_OK) == 0 }
    }
}

/// Tells `libsimclock.so`, where spinrun has preloaded it, that this process is a rank: it could not know of a library that
/// a plug-in brings.
fn begin_simulated_clock() {
    type Begin = unsafe extern "C" fn(extern "C" fn() -> u64, extern "C" fn(u64));
    // SAFETY: a valid string; the symbol, when it is there, is the function of this type.
    unsafe {
        let begin = libc::dlsym(libc::RTLD_DEFAULT, c"simclock_begin".as_ptr());
        if !begin.is_null() {
            std::mem::transmute::<*mut libc::c_void, Begin>(begin)(api::spin_time_ps, api::spin_sleep_ps);
        }
    }
}

fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// A registered image, see `spin_register_image`.
#[derive(Clone, Copy)]
pub struct Image {
    /// Where it is.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// From where `Handler::host_offset` counts.
    pub handlers_start: u64,
}

#[derive(Default)]
struct Life {
    attached: bool,
    images: Vec<Image>,
}

static LIFE: Mutex<Life> = Mutex::new(Life { attached: false, images: Vec::new() });
static INITS: AtomicU32 = AtomicU32::new(0);

/// What is 1 in the process that has opened the session, and 0 in its forked children.
static MARK: AtomicPtr<AtomicBool> = AtomicPtr::new(null_mut());

/// Puts the mark into a page that the kernel clears in a child, also in that of a fork by system call, which runs no
/// handler of `pthread_atfork` (madvise(2), `MADV_WIPEONFORK`).
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

/// Whether this process is a forked child: its memory looks like a rank's, but the rank is its parent.
pub fn forked() -> bool {
    // SAFETY: null, or never unmapped.
    unsafe { MARK.load(Ordering::Acquire).as_ref() }.is_some_and(|mark| !mark.load(Ordering::Relaxed))
}

/// Whether the library is between `PtlInit` and the last `PtlFini`.
pub fn initialised() -> bool {
    INITS.load(Ordering::Acquire) > 0
}

fn life() -> MutexGuard<'static, Life> {
    call::refuse_within_call(); // it would wait for its own thread's lock
    LIFE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `PtlInit`.
pub fn init() -> Rc {
    let mut life = life();
    let rc = life.attach();
    if rc == Rc::Ok {
        INITS.fetch_add(1, Ordering::Release);
    }
    rc
}

/// `PtlFini`; one too many is ignored.
pub fn fini() {
    let mut life = life();
    let fewer = INITS.fetch_update(Ordering::AcqRel, Ordering::Acquire, |inits| inits.checked_sub(1));
    if fewer == Ok(1) && std::mem::take(&mut life.attached) {
        send(Op::SpinDetach, &[]);
    }
}

/// Makes sure that the simulator knows the process. `PTL_FAIL` when there is none.
pub fn attach() -> Rc {
    life().attach()
}

/// Makes an image known, now or when the process attaches.
pub fn register(image: Image) {
    let mut life = life();
    life.images.push(image);
    if life.attached {
        image.send();
    }
}

impl Life {
    fn attach(&mut self) -> Rc {
        if self.attached && !forked() {
            return Rc::Ok;
        }
        if send(Op::SpinAttach, &[mailbox::MAGIC]) != Rc::Ok as i32
            || self.images.iter().any(|image| image.send() != Rc::Ok as i32)
        {
            return Rc::Fail;
        }
        self.attached = true;
        Rc::Ok
    }
}

impl Image {
    fn send(&self) -> i32 {
        send(Op::SpinRegisterImage, &[self.address, self.length, self.handlers_start])
    }
}

fn send(op: Op, words: &[u64]) -> i32 {
    match Call::begin(op) {
        Ok(mut call) => {
            words.iter().for_each(|&word| call.word(word));
            call.perform().rc()
        }
        Err(rc) => rc as i32,
    }
}
