// SPDX-License-Identifier: Apache-2.0
//! State of the library: of a thread, and of its process.
//!
//! A process of a rank has one of each kind. A rank that is embedded in the simulator's process ([`Embedded`]) brings
//! its own, and the simulator selects it before the rank runs.

use crate::accepted::Known;
use crate::session::{Session, WHEN_OPEN};
use std::cell::Cell;
use std::hash::{Hash, Hasher};
use std::io::{self, Write};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Mutex, Once, OnceLock};

/// State of a thread.
#[derive(Default)]
pub struct ThreadState {
    /// Claimed slot.
    pub slot: Cell<Option<usize>>,
    /// True between the start of a call and its last result.
    pub busy: Cell<bool>,
    /// Number of time reads of the thread since its last call.
    pub time_reads: Cell<u32>,
    /// True if the thread has read the time since its last `spin_idle`.
    pub has_read_time: Cell<bool>,
    /// CPU time of the thread at its last answer, in nanoseconds.
    pub answered_ns: Cell<u64>,
    /// True if the thread defers its calls.
    pub defers: Cell<bool>,
    /// True while the thread of an embedded rank ends; it then posts no more calls.
    pub is_ending: Cell<bool>,
    /// Number of events that the thread has taken since its last answer.
    pub taken: Cell<usize>,
    /// Address of the handle in the thread's last `PtlEQPoll` of one queue; 0 if none.
    pub queue: Cell<u64>,
    /// Addresses of the handle and the threshold in the thread's last `PtlCTPoll` of one counter; 0 if none.
    pub counter: Cell<(u64, u64)>,
    /// Simulated time that the thread has passed since its last answer, in picoseconds; `None` if unknown.
    pub passed_ps: Cell<Option<u64>>,
}

impl ThreadState {
    const fn new() -> ThreadState {
        ThreadState {
            slot: Cell::new(None),
            busy: Cell::new(false),
            time_reads: Cell::new(0),
            has_read_time: Cell::new(false),
            answered_ns: Cell::new(0),
            defers: Cell::new(false),
            is_ending: Cell::new(false),
            taken: Cell::new(0),
            queue: Cell::new(0),
            counter: Cell::new((0, 0)),
            passed_ps: Cell::new(None),
        }
    }
}

/// An image of device programs in this process; see `spin_register_image`.
#[derive(Clone, Copy)]
pub struct Image {
    /// Address of the first byte.
    pub address: u64,
    /// Length in bytes.
    pub length: u64,
    /// Base address of `Handler::host_offset`.
    pub handlers_start: u64,
}

/// Attachment of the process to the simulator.
#[derive(Default)]
pub struct Attachment {
    /// True if the process is attached.
    pub attached: bool,
    /// Registered images.
    pub images: Vec<Image>,
}

impl Attachment {
    /// Creates the state of a process that is not attached.
    pub const fn new() -> Attachment {
        Attachment { attached: false, images: Vec::new() }
    }
}

/// Result destination of a posted call, as an address so that threads can share it.
pub struct Place {
    /// Address of the post.
    pub post: usize,
    /// Address of the destination.
    pub to: usize,
}

/// State of a process.
pub struct ProcessState {
    /// Connection to the simulator, once opened.
    pub session: OnceLock<Option<Session>>,
    /// Result destinations of the posted calls of all threads. Any thread that gets an answer delivers the available
    /// results.
    pub places: Mutex<Vec<Place>>,
    /// Length of `places`.
    pub pending: AtomicU32,
    /// Accepted calls.
    pub accepted: Mutex<Known>,
    /// Attachment to the simulator.
    pub attachment: Mutex<Attachment>,
    /// Number of `PtlInit` calls without a matching `PtlFini`.
    pub inits: AtomicU32,
    /// True once the process has had a second thread, which could take known events.
    pub is_shared: AtomicBool,
    /// Done once the library has reported a call without `PtlInit`.
    pub reported_no_init: Once,
}

impl ProcessState {
    const fn new() -> ProcessState {
        ProcessState {
            session: OnceLock::new(),
            places: Mutex::new(Vec::new()),
            pending: AtomicU32::new(0),
            accepted: Mutex::new(Known::new()),
            attachment: Mutex::new(Attachment::new()),
            inits: AtomicU32::new(0),
            is_shared: AtomicBool::new(false),
            reported_no_init: Once::new(),
        }
    }
}

/// Services of the simulator for a rank in its process.
pub struct Services {
    /// Lets the simulator run until it has answered the rank's call.
    pub wait: fn(),
    /// Flushes the rank's output streams and ends the rank with an exit status.
    pub end: fn(i32) -> !,
    /// Writes to the standard error of the rank.
    pub write_error: fn(&[u8]),
}

/// A rank in the simulator's process. It has one thread.
pub struct Embedded {
    /// State of the rank's only thread.
    pub thread: ThreadState,
    /// State that a process would have.
    pub process: ProcessState,
    /// Services of the simulator.
    pub services: Services,
    /// Addresses of memory of the library that the present call reads, besides the rank's own memory.
    pub lent: Cell<(u64, u64)>,
}

impl Embedded {
    /// Creates a rank with an open session.
    pub fn new(session: Session, services: Services) -> Embedded {
        let process = ProcessState::new();
        let _ = process.session.set(Some(session)); // cannot fail: it is new
        Embedded { thread: ThreadState::new(), process, services, lent: Cell::new((0, 0)) }
    }

    /// Calls a function whose library calls read `memory`.
    pub fn lend<T, R>(memory: &[T], function: impl FnOnce() -> R) -> R {
        let lend = |range| Embedded::selected().into_iter().for_each(|rank| rank.lent.set(range));
        let range = memory.as_ptr_range();
        lend((range.start as u64, range.end as u64));
        let result = function();
        lend((0, 0));
        result
    }

    /// Hashes the state that determines the next calls of the rank's thread.
    pub fn hash_state(&self, hasher: &mut impl Hasher) {
        let ThreadState { time_reads, has_read_time, taken, queue, counter, .. } = &self.thread;
        (time_reads.get(), has_read_time.get(), taken.get(), queue.get(), counter.get()).hash(hasher);
    }

    /// Selects the rank whose program runs next in this thread; null selects none.
    ///
    /// # Safety
    /// The rank must stay valid until another one is selected.
    pub unsafe fn select(rank: *const Embedded) {
        SELECTED.set(rank);
    }

    /// Returns the selected rank; `None` in the process of a rank.
    pub fn selected() -> Option<&'static Embedded> {
        // SAFETY: `select` guarantees it.
        unsafe { SELECTED.get().as_ref() }
    }
}

static PROCESS: ProcessState = ProcessState::new();

thread_local! {
    static SELECTED: Cell<*const Embedded> = const { Cell::new(null()) };
    static THREAD: ThreadState = const { ThreadState::new() };
}

/// Returns the state of this process or embedded rank.
pub fn process() -> &'static ProcessState {
    Embedded::selected().map_or(&PROCESS, |rank| &rank.process)
}

/// Calls a function with the state of this thread or embedded rank.
pub fn thread<R>(function: impl FnOnce(&ThreadState) -> R) -> R {
    match Embedded::selected() {
        Some(rank) => function(&rank.thread),
        None => THREAD.with(function),
    }
}

impl Session {
    /// Returns the session of this process; the first call opens it. If `spinrun` did not start this process, the first
    /// call prints the reason and every call returns `None`.
    pub fn get() -> Option<&'static Session> {
        let open = || {
            let session = Session::open().inspect_err(|why| say(format_args!("{why}"))).ok();
            session.inspect(|_| WHEN_OPEN.get().into_iter().for_each(|run| run()))
        };
        process().session.get_or_init(open).as_ref()
    }
}

/// Writes a line to standard error if it is open. `eprintln!` panics if the reader is gone.
pub fn say(line: std::fmt::Arguments) {
    match Embedded::selected() {
        Some(rank) => (rank.services.write_error)(format!("libportals: {line}\n").as_bytes()),
        None => _ = writeln!(io::stderr(), "libportals: {line}"),
    }
}
