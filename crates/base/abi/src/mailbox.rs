// SPDX-License-Identifier: Apache-2.0
//! Shared memory between the simulator and the ranks' library.
//!
//! The simulator makes one memory file for each job: a [`Header`]; one word for each rank, a bitmap of the slots that
//! its threads have claimed; `ranks * SLOTS` [`Slot`]s (slot `rank * SLOTS + k` belongs to the rank's k-th thread to
//! call the library); and one bounce area of [`BOUNCE`] bytes for each rank. The simulator never reads unclaimed slots;
//! each slot has its own pages. A rank opens the file as `/proc/$SPIN_SIM_PID/fd/$SPIN_SIM_FD`, so nothing is left
//! behind however the run ends.
//!
//! A call: the rank fills `op`, `args` and `data`, sets `state` to [`state::REQUEST`], rings the doorbell, and waits on
//! `state`. The simulator stores the results in `result`, `out` and `data` and sets [`state::REPLY`]. While a rank
//! waits, the simulator may also set [`state::COPY`]: the rank then copies `copy_len` bytes between `copy_addr` and its
//! bounce area (with `pwrite` and `pread` on the memory file, so that a bad address is an error and not a crash), sets
//! `copy_result`, sets [`state::COPIED`] and rings the doorbell. This path serves NIC DMA if `process_vm_readv` is not
//! permitted.
//!
//! Calls with a predictable result are posted: the rank appends them to [`Slot::posts`] and continues, up to
//! [`Header::post_ahead`] calls, or up to [`Header::defer`] while it defers calls (`spin_defer`).
//! The simulator executes them in order, each at the time at which the previous one finishes: before the next unposted
//! call, and whenever it finds the rank waiting for something else.
//! [`Op::SpinFlush`](crate::calls::Op::SpinFlush) waits until all posted calls are complete.
//!
//! A reply carries the events already in the queue that the thread polled last, and the values of the counters for
//! which it waited last ([`Slot::known`]). Calls that take these events, or wait for a value that a counter has
//! reached, are posted too. The simulator executes them at their times, and ends the run if a result differs from the
//! rank's prediction ([`Post::claim`]). An empty queue is predicted only while nothing else happens: a thread that
//! sleeps repeatedly learns how long that is ([`Known::quiet_ps`]), and posts its sleeps and empty polls until then.
//!
//! The simulator does not trust ranks, which can write to the whole file at any time. It reads each word of a call
//! once, and determines the calling process independently. The size of the file is sealed.
//!
//! A side makes a system call to wake its peer only if the peer sleeps: before sleeping, a side sets [`state::SLEEPS`]
//! in the word that it waits for ([`DOORBELL_SLEEPS`] in the doorbell). A side that changes a word with that bit set
//! wakes the sleeper.

use crate::portals::{Event, Handle, INVALID_HANDLE};
use bytemuck::{Pod, Zeroable};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// First word of the memory file: "SPINMBX" and the version of this layout.
pub const MAGIC: u64 = 0x5350_494e_4d42_5809;
/// Maximum number of threads of a rank that use the library at the same time.
pub const SLOTS: usize = 16;
/// Size of the bounce area of a rank, in bytes.
pub const BOUNCE: usize = 64 * 1024;
/// Size of the structure data of a call, in bytes.
pub const DATA: usize = 1024;
/// Bit of [`Header::doorbell`], set while the simulator sleeps until the word changes.
pub const DOORBELL_SLEEPS: u32 = 1;
/// Increment of [`Header::doorbell`] by each ring.
pub const DOORBELL_RING: u32 = 2;
/// Maximum number of argument words of a call.
pub const ARGS: usize = 20;
/// Maximum number of posted calls of a thread.
pub const POSTS: usize = 128;
/// Maximum number of events in a reply.
pub const KNOWN: usize = 64;
/// Maximum number of counters in a reply.
pub const COUNTERS: usize = 4;
/// Maximum number of argument words of a posted call.
pub const POST_ARGS: usize = 14;
/// Maximum size of the data that a posted call copies, in bytes.
pub const PAYLOAD: usize = 64;

/// Environment variables of a rank.
pub mod env {
    /// Rank of the process, from 0.
    pub const RANK: &str = "SPIN_RANK";
    /// Number of ranks of the job.
    pub const SIZE: &str = "SPIN_SIZE";
    /// Place of the process in the run; set only if it, or the number of places, is not that of the job's ranks.
    pub const PLACE: &str = "SPIN_PLACE";
    /// Number of places.
    pub const PLACES: &str = "SPIN_PLACES";
    /// Nodes of the job's ranks, see [`placement`](crate::placement); set only if ranks share nodes.
    pub const NODES: &str = "SPIN_NODES";
    /// Process id of the simulator.
    pub const SIM_PID: &str = "SPIN_SIM_PID";
    /// Number of the memory file's descriptor in the simulator.
    pub const SIM_FD: &str = "SPIN_SIM_FD";
}

/// Values of [`Slot::state`].
pub mod state {
    /// No thread owns the slot.
    pub const FREE: u32 = 0;
    /// The thread runs its own code.
    pub const RUNNING: u32 = 1;
    /// A call waits for the simulator.
    pub const REQUEST: u32 = 2;
    /// The reply is ready.
    pub const REPLY: u32 = 3;
    /// The simulator requests a memory copy from the waiting thread.
    pub const COPY: u32 = 4;
    /// The copy is done; the thread still waits for the reply.
    pub const COPIED: u32 = 5;
    /// The run is over: the thread flushes the process's buffered output and ends the process.
    pub const END: u32 = 6;
    /// Bit set in addition to one of the values above while the thread sleeps until the word changes (futex).
    pub const SLEEPS: u32 = 0x100;
}

/// The start of the memory file.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`].
    pub magic: u64,
    /// Number of ranks.
    pub ranks: u32,
    /// Ranks add [`DOORBELL_RING`] after each slot change that the simulator must see, and wake it (futex) if
    /// [`DOORBELL_SLEEPS`] was set.
    pub doorbell: AtomicU32,
    /// Simulated time of the running rank in picoseconds.
    pub now_ps: AtomicU64,
    /// Simulated time charged for a rank's own computation (`--compute measured:SCALE`): picoseconds for each
    /// microsecond of CPU time. 0 charges nothing.
    pub compute_scale_milli: AtomicU64,
    /// Maximum number of posted calls of a thread, at most [`POSTS`].
    pub post_ahead: AtomicU32,
    /// Maximum number of posted calls of a thread that defers calls (`spin_defer`), at most [`POSTS`].
    pub defer: AtomicU32,
    /// 1 while the simulator and the ranks share one CPU. Spinning on a word then only delays the side that must change
    /// it.
    pub together: AtomicU32,
    /// Start of a live run (`spinrun --live`) on CLOCK_MONOTONIC in nanoseconds, from which ranks count their time; 0 in
    /// a simulated run.
    pub live_since_ns: AtomicU64,
}

/// Call slot of one thread.
#[repr(C, align(64))]
pub struct Slot {
    /// One of [`state`]; a futex.
    pub state: AtomicU32,
    /// Process id of the owner, as seen in the simulator's PID namespace if they share one.
    pub pid: AtomicU32,
    /// An [`Op`](crate::calls::Op).
    pub op: u32,
    /// Return code of the call, a [`ReturnCode`](crate::portals::ReturnCode).
    pub result: i32,
    /// CPU time of this thread since its last reply, in nanoseconds; 0 unless [`Header::compute_scale_milli`] is set.
    pub elapsed_ns: u64,
    /// Number of calls that the thread has posted since its last reply.
    pub posted: AtomicU32,
    /// Number of posted calls that the simulator has taken. Only the simulator writes it while the thread runs its own
    /// code.
    pub taken: AtomicU32,
    /// Arguments, one word each in the order of the C prototype; see [`calls`](crate::calls).
    pub args: [u64; ARGS],
    /// Results other than the return code, one word each in the order of the C prototype's output pointers.
    pub out: [u64; 4],
    /// Structure arguments of the call, then its structure results.
    pub data: [u8; DATA],
    /// Address in the rank for [`state::COPY`].
    pub copy_addr: u64,
    /// Number of bytes to copy, at most [`BOUNCE`].
    pub copy_len: u32,
    /// 0: rank's memory to bounce area; 1: bounce area to rank's memory.
    pub copy_write: u32,
    /// 0, or the errno of the failed copy.
    pub copy_result: i32,
    /// Thread id of the caller, or 0 if its process never had a second thread.
    pub tid: u32,
    /// Spin count of the thread before it sleeps on `state`. It depends on the machine, so it lies outside of the rank's
    /// memory, which is compared to find a rank that repeats itself.
    pub patience: Patience,
    /// Queue and counter state at the thread's last reply.
    pub known: Known,
    /// Posted calls.
    pub posts: [Post; POSTS],
}

/// Known value of a counter.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub struct KnownCounter {
    /// Counter handle, or `PTL_INVALID_HANDLE`.
    pub handle: Handle,
    pad: u32,
    /// Number of successes.
    pub success: u64,
}

impl KnownCounter {
    /// No known value.
    pub const NONE: KnownCounter = KnownCounter::new(INVALID_HANDLE, 0);

    /// Returns a known value: `success` successes of counter `handle`.
    pub const fn new(handle: Handle, success: u64) -> KnownCounter {
        KnownCounter { handle, pad: 0, success }
    }
}

/// State of a thread's queue and counters in a reply.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Known {
    /// Handle of the queue.
    pub queue: Handle,
    /// Number of `events`, the oldest ones of the queue.
    pub count: u32,
    /// Counters.
    pub counters: [KnownCounter; COUNTERS],
    /// Simulated time after the reply in which only calls of this thread happen, in picoseconds; 0 if unknown.
    pub quiet_ps: u64,
    /// Time of a poll until then, in picoseconds.
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
    /// Number of bytes of `payload`. They replace the memory at `payload_addr`, so that the rank may overwrite it at
    /// once.
    pub payload_len: u32,
    /// Address of the payload in the rank. 0 if the payload is the start of the structure argument, whose remaining
    /// bytes are zero.
    pub payload_addr: u64,
    /// Arguments, as in [`Slot::args`].
    pub args: [u64; POST_ARGS],
    /// Copied data of the call.
    pub payload: [u8; PAYLOAD],
    /// First scalar result, valid after the call.
    pub out: u64,
    /// For a call that takes an event: the [`digest`] of the predicted event, or [`NOTHING`].
    pub claim: u64,
}

/// [`Post::claim`] of a poll that finds nothing.
pub const NOTHING: u64 = u64::MAX;

/// Returns a hash of an event. Different events have equal hashes only by chance.
pub fn digest(event: &Event) -> u64 {
    let words: [u64; size_of::<Event>() / 8] = bytemuck::cast(*event);
    words
        .into_iter()
        .fold(0xcbf2_9ce4_8422_2325, |sum, word| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
}

/// Adaptive spin count before sleeping on a word, based on the success of earlier spins. A peer on another CPU usually
/// answers while this side spins; a peer that shares the CPU, or computes, does not.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Patience {
    misses: u32,
}

impl Patience {
    /// Maximum number of reads of the word while spinning: about ten microseconds.
    const SPINS: u32 = 500;
    /// Number of consecutive failures after which spinning stops.
    const TRIES: u32 = 4;
    /// Number of failures between two attempts after that, a power of two.
    const RETRY: u32 = 64;

    /// Makes the initial state, which allows spinning.
    pub const fn new() -> Patience {
        Patience { misses: 0 }
    }

    /// Returns the number of reads of the word (with `spin_loop` in between) before sleeping.
    pub fn spins(self) -> u32 {
        if self.misses < Self::TRIES || self.misses & (Self::RETRY - 1) == 0 { Self::SPINS } else { 0 }
    }

    /// Records that the word changed while this side was spinning.
    pub fn hit(&mut self) {
        self.misses = 0;
    }

    /// Records that the word did not change.
    pub fn miss(&mut self) {
        self.misses = self.misses.wrapping_add(1);
    }
}

/// Returns the byte offset in the memory file of the word with the claimed slots of `rank`. Ranks set the bit of a slot
/// before they use the slot.
pub fn claimed_offset(rank: usize) -> usize {
    size_of::<Header>() + rank * size_of::<AtomicU32>()
}

/// Returns the byte offset of slot `k` of `rank` in the memory file of a job of `ranks` ranks.
pub fn slot_offset(ranks: usize, rank: usize, k: usize) -> usize {
    claimed_offset(ranks).next_multiple_of(align_of::<Slot>()) + (rank * SLOTS + k) * size_of::<Slot>()
}

/// Returns the byte offset of the bounce area of `rank` in the memory file of a job of `ranks` ranks.
pub fn bounce_offset(ranks: usize, rank: usize) -> usize {
    let slots_end = slot_offset(ranks, ranks, 0);
    slots_end.next_multiple_of(4096) + rank * BOUNCE
}

/// Returns the size of the memory file of a job of `ranks` ranks, in bytes.
pub fn file_size(ranks: usize) -> usize {
    bounce_offset(ranks, ranks)
}
