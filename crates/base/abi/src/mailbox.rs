//! The shared memory between the simulator and the ranks' library.
//!
//! The simulator makes one memory file for each job: a [`Header`], then a word for each rank with a bit for each of its slots that a thread
//! has ever claimed, then `ranks * SLOTS` [`Slot`]s (slot `rank * SLOTS + k` is the k-th thread of the rank that called the library), then
//! one bounce area of [`BOUNCE`] bytes for each rank. The simulator looks at no slot that was never claimed: each is in pages of its own.
//! A rank finds it as `/proc/$SPIN_SIM_PID/fd/$SPIN_SIM_FD`, so nothing is left behind whatever ends the run.
//!
//! A call: the rank fills `op`, `args` and `data`, sets `state` to [`state::REQUEST`], rings the doorbell, and waits on
//! `state`. The simulator answers in `result`, `out` and `data` and sets [`state::REPLY`]. While a rank waits, the
//! simulator may also set [`state::COPY`]: the rank then copies `copy_len` bytes between `copy_addr` and its bounce area
//! (by `pwrite` and `pread` on the memory file, so that a bad address is an error and not a crash), sets `copy_result`,
//! sets [`state::COPIED`] and rings the doorbell. That serves NIC DMA where `process_vm_readv` is not permitted.
//!
//! Calls whose answer is known are posted: the rank puts them into [`Slot::posts`] and goes on, up to [`Header::post_ahead`] of them,
//! or up to [`Header::defer`] while it defers calls (`spin_defer`).
//! The simulator performs them, each at the time at which the one before is over, before the call that follows, and whenever the
//! rank is found to wait for something else. A rank that must know that they are over calls [`Op::SpinFlush`](crate::calls::Op::SpinFlush).
//!
//! With an answer come events that already are in the queue at which the thread has looked last, and the values of the counters for which it
//! has waited last ([`Slot::known`]). As long as the rank takes these events, or waits for what a counter has reached, its calls are
//! posted, too: the simulator makes them at their times, and ends the run if an answer is not the one that the rank has given itself
//! ([`Post::claim`]). That a queue is empty is known only for the time in which nothing else happens: a thread that sleeps again and again
//! learns how long that is ([`Known::quiet_ps`]). Its sleeps and its polls that find nothing are posted until then.
//!
//! The simulator does not trust ranks, which can write to the whole file at any time. It reads each word of a call
//! once, and determines the calling process by itself. The size of the file is sealed.
//!
//! A system call to wake the peer is made only if the peer sleeps: before it sleeps, a side sets [`state::SLEEPS`] in
//! the word that it waits for ([`DOORBELL_SLEEPS`] in the doorbell). Whoever changes a word with that bit wakes the
//! sleeper.

use crate::portals::{Event, Handle, INVALID_HANDLE};
use bytemuck::{Pod, Zeroable};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// The first word of the memory file: "SPINMBX" and the version of this layout.
pub const MAGIC: u64 = 0x5350_494e_4d42_5808;
/// The number of threads of a rank that may use the library at the same time.
pub const SLOTS: usize = 16;
/// The size of the bounce area of a rank in bytes.
pub const BOUNCE: usize = 64 * 1024;
/// The size of the structure data of a call in bytes.
pub const DATA: usize = 1024;
/// The bit of [`Header::doorbell`] that is set while the simulator sleeps until the word changes.
pub const DOORBELL_SLEEPS: u32 = 1;
/// The number that each ring adds to [`Header::doorbell`].
pub const DOORBELL_RING: u32 = 2;
/// The maximum number of argument words of a call.
pub const ARGS: usize = 20;
/// The maximum number of posted calls of a thread.
pub const POSTS: usize = 128;
/// The maximum number of events that come with an answer.
pub const KNOWN: usize = 64;
/// The maximum number of counters that come with an answer.
pub const COUNTERS: usize = 4;
/// The maximum number of argument words of a posted call.
pub const POST_ARGS: usize = 14;
/// The maximum size in bytes of data that are copied when a call is posted.
pub const PAYLOAD: usize = 64;

/// Environment variables of a rank.
pub mod env {
    /// The rank of the process, from 0.
    pub const RANK: &str = "SPIN_RANK";
    /// The number of ranks of the job.
    pub const SIZE: &str = "SPIN_SIZE";
    /// The process id of the simulator.
    pub const SIM_PID: &str = "SPIN_SIM_PID";
    /// The simulator's file descriptor of the memory file.
    pub const SIM_FD: &str = "SPIN_SIM_FD";
}

/// Values of [`Slot::state`].
pub mod state {
    /// No thread owns the slot.
    pub const FREE: u32 = 0;
    /// The thread runs its own code.
    pub const RUNNING: u32 = 1;
    /// A call waits for the simulator to handle it.
    pub const REQUEST: u32 = 2;
    /// The simulator has answered.
    pub const REPLY: u32 = 3;
    /// The simulator asks the waiting thread to copy memory.
    pub const COPY: u32 = 4;
    /// The copy is done; the thread still waits for the answer.
    pub const COPIED: u32 = 5;
    /// The run is over: the thread flushes the buffered output of the process, and ends it.
    pub const END: u32 = 6;
    /// A bit that is set in addition to one of the values above while the thread sleeps until the word changes (futex).
    pub const SLEEPS: u32 = 0x100;
}

/// The start of the memory file.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// The number of ranks.
    pub ranks: u32,
    /// Ranks add [`DOORBELL_RING`] whenever a slot has something for the simulator, and wake it (futex) when it had
    /// [`DOORBELL_SLEEPS`].
    pub doorbell: AtomicU32,
    /// The simulated time of the running rank in picoseconds.
    pub now_ps: AtomicU64,
    /// Simulated time charged for a rank's own computation (`--compute measured:SCALE`): picoseconds for each
    /// microsecond of CPU time. 0 charges nothing.
    pub compute_scale_milli: AtomicU64,
    /// How many calls a thread may post before it waits, at most [`POSTS`].
    pub post_ahead: AtomicU32,
    /// How many calls a thread that defers them (`spin_defer`) may post before it waits, at most [`POSTS`].
    pub defer: AtomicU32,
    /// 1 while the simulator and the ranks share one CPU: who watches a word then only keeps the other from changing it.
    pub together: AtomicU32,
}

/// The place for the calls of one thread.
#[repr(C, align(64))]
pub struct Slot {
    /// One of [`state`]; a futex.
    pub state: AtomicU32,
    /// The process id of the owner, as seen in the simulator's PID namespace if they share one.
    pub pid: AtomicU32,
    /// An [`Op`](crate::calls::Op).
    pub op: u32,
    /// The return code of the call, a [`ReturnCode`](crate::portals::ReturnCode).
    pub result: i32,
    /// The CPU time of this thread since its last answer, in nanoseconds; 0 unless the header asks for it.
    pub elapsed_ns: u64,
    /// The number of calls that the thread has posted since its last answer.
    pub posted: AtomicU32,
    /// How many of them the simulator has taken over. Only the simulator writes it while the thread runs its own code.
    pub taken: AtomicU32,
    /// The arguments, one word each in the order of the C prototype; see [`calls`](crate::calls).
    pub args: [u64; ARGS],
    /// The results other than the return code, one word each in the order of the C prototype's output pointers.
    pub out: [u64; 4],
    /// The structure arguments of the call, then its structure results.
    pub data: [u8; DATA],
    /// The address in the rank for [`state::COPY`].
    pub copy_addr: u64,
    /// The number of bytes to copy, at most [`BOUNCE`].
    pub copy_len: u32,
    /// 0: rank's memory to bounce area; 1: bounce area to rank's memory.
    pub copy_write: u32,
    /// 0, or the errno of the failed copy.
    pub copy_result: i32,
    /// The thread id of the caller, 0 if its process never had a second thread.
    pub tid: u32,
    /// What the thread knows about how long to watch `state`. It depends on the machine, so it is not in the memory of the rank, which shows
    /// whether the rank repeats itself.
    pub patience: Patience,
    /// What was known when the thread was last answered.
    pub known: Known,
    /// The posted calls.
    pub posts: [Post; POSTS],
}

/// What a thread knows about a counter.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct KnownCounter {
    /// The counter, or `PTL_INVALID_HANDLE`.
    pub handle: Handle,
    pad: u32,
    /// The number of its successes.
    pub success: u64,
}

impl KnownCounter {
    /// Nothing is known.
    pub const NONE: KnownCounter = KnownCounter::new(INVALID_HANDLE, 0);

    /// Says that a counter has a number of successes.
    pub const fn new(handle: Handle, success: u64) -> KnownCounter {
        KnownCounter { handle, pad: 0, success }
    }
}

/// What a thread knows about its queue and its counters.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Known {
    /// The queue.
    pub queue: Handle,
    /// The number of `events`, the oldest ones of the queue.
    pub count: u32,
    /// The counters.
    pub counters: [KnownCounter; COUNTERS],
    /// The simulated time from the answer on in which nothing happens but the calls of the thread, in picoseconds. 0 if that is not known.
    pub quiet_ps: u64,
    /// The time that a poll takes meanwhile, in picoseconds.
    pub poll_ps: u64,
    /// Events of the queue.
    pub events: [Event; KNOWN],
}

/// A posted call.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Post {
    /// An [`Op`](crate::calls::Op).
    pub op: u32,
    /// The number of bytes of `payload` that stand for the memory at `payload_addr`, which the rank may write again at once.
    pub payload_len: u32,
    /// Their address in the rank; 0 if they are the beginning of the structure argument, the rest of which is zeros.
    pub payload_addr: u64,
    /// The arguments, as in [`Slot::args`].
    pub args: [u64; POST_ARGS],
    /// Data of the call that were copied.
    pub payload: [u8; PAYLOAD],
    /// The first scalar result, when the call is over.
    pub out: u64,
    /// For a call that takes an event: the [`digest`] of the event that the rank was given, or [`NOTHING`].
    pub claim: u64,
}

/// [`Post::claim`] of a poll that has found nothing.
pub const NOTHING: u64 = u64::MAX;

/// Returns a number that events have in common only by chance unless they are equal.
pub fn digest(event: &Event) -> u64 {
    let words: [u64; size_of::<Event>() / 8] = bytemuck::cast(*event);
    words
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// Decides how long to spin on a word before sleeping, from how often spinning has succeeded before. A peer on another
/// CPU usually answers while this side spins. A peer that shares the CPU, or computes, does not.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Patience {
    misses: u32,
}

impl Patience {
    /// The maximum number of reads of the word while spinning: about ten microseconds.
    const SPINS: u32 = 500;
    /// The number of consecutive failures after which spinning is given up.
    const TRIES: u32 = 4;
    /// The number of failures between two attempts after that, a power of two.
    const RETRY: u32 = 64;

    /// Makes the initial state, in which spinning is tried.
    pub const fn new() -> Patience {
        Patience { misses: 0 }
    }

    /// Returns how often to read the word (with `spin_loop` in between) before sleeping.
    pub fn spins(self) -> u32 {
        if self.misses < Self::TRIES || self.misses & (Self::RETRY - 1) == 0 { Self::SPINS } else { 0 }
    }

    /// Takes note that the word changed while this side was spinning.
    pub fn hit(&mut self) {
        self.misses = 0;
    }

    /// Takes note that the word did not change.
    pub fn miss(&mut self) {
        self.misses = self.misses.wrapping_add(1);
    }
}

/// Returns the offset of the word with the claimed slots of `rank` in the memory file, in bytes. Ranks set the bit of a slot before they use
/// the slot.
pub fn claimed_offset(rank: usize) -> usize {
    size_of::<Header>() + rank * size_of::<AtomicU32>()
}

/// Returns the offset of slot `k` of `rank` in the memory file of a job of `ranks` ranks, in bytes.
pub fn slot_offset(ranks: usize, rank: usize, k: usize) -> usize {
    claimed_offset(ranks).next_multiple_of(align_of::<Slot>()) + (rank * SLOTS + k) * size_of::<Slot>()
}

/// Returns the offset of the bounce area of `rank` in the memory file of a job of `ranks` ranks, in bytes.
pub fn bounce_offset(ranks: usize, rank: usize) -> usize {
    let slots_end = slot_offset(ranks, ranks, 0);
    slots_end.next_multiple_of(4096) + rank * BOUNCE
}

/// Returns the size of the memory file of a job of `ranks` ranks, in bytes.
pub fn file_size(ranks: usize) -> usize {
    bounce_offset(ranks, ranks)
}
