// SPDX-License-Identifier: Apache-2.0
//! A call of the simulator through the calling thread's slot.

use crate::known;
use crate::library_state::{Embedded, Place, process, say, thread};
use crate::output;
use crate::posting::{self, Copied};
use crate::quiet::{self, Passing};
use crate::session::{self, Session};
use abi::calls::{Op, Polled};
use abi::mailbox::{
    ARGS, BOUNCE, DOORBELL_RING, DOORBELL_SLEEPS, NOTHING, POST_ARGS, POSTS, Post, SLOTS, Slot, digest, env, state,
};
use abi::portals::{Event, ReturnCode};
use bytemuck::{AnyBitPattern, NoUninit};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use rustix::thread::{futex, gettid};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::ffi::{c_char, c_int};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{MutexGuard, PoisonError};

/// Interval in seconds at which a sleeping thread checks that the simulator is alive, unless the kernel ends it with
/// the simulator.
const CHECK_S: i64 = 1;
/// Exit status of a rank that cannot continue: the simulator is gone, or a call interrupted another call.
const LOST: c_int = 1;

unsafe extern "C" {
    /// A variable of glibc; non-zero until the process creates its second thread.
    static __libc_single_threaded: c_char;
}

thread_local! {
    static LEASE: Lease = const { Lease };
}

/// Value of [`Post::out`] until the call completes.
const NO_RESULT: u64 = u64::MAX;

/// Releases the thread's slot when the thread ends.
struct Lease;

impl Drop for Lease {
    fn drop(&mut self) {
        leave();
    }
}

/// Completes the posted calls of this thread and releases its slot, at the end of the thread. It posts no more calls.
pub fn leave() {
    flush();
    thread(|thread| thread.is_ending.set(true));
    let slot = thread(|thread| thread.slot.take());
    if let (Some(k), Some(session), false) = (slot, Session::get(), session::forked()) {
        // SAFETY: the slot is mapped and owned by this thread.
        unsafe { (*session.slot(k)).state.store(state::FREE, Ordering::Release) };
    }
}

/// Marks the thread as busy with a call until it is dropped.
struct Busy;

impl Busy {
    fn begin() -> Busy {
        refuse_within_call();
        thread(|thread| thread.busy.set(true));
        Busy
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        thread(|thread| thread.busy.set(false));
    }
}

/// Ends the process if this thread is already in a call. Only a signal handler can make such a call. It would wait
/// forever, as the interrupted call uses the slot.
pub fn refuse_within_call() {
    if !thread(|thread| thread.busy.get()) {
        return;
    }
    let rank = std::env::var(env::RANK).unwrap_or_default();
    say(format_args!(
        "rank {rank}: a signal handler calls the library while its thread is in another call: it must not, \
         as the library's functions are not async-signal-safe; let it set a flag, and call when the thread looks at it"
    ));
    if let Some(rank) = Embedded::selected() {
        (rank.services.end)(LOST);
    }
    // SAFETY: ends the process without its exit handlers, which would call the library, too.
    unsafe { libc::_exit(LOST) };
}

/// A call under construction.
pub struct Call {
    session: &'static Session,
    busy: Busy,
    slot: *mut Slot,
    words: usize,
}

/// An answered call. The slot holds its results until this value is dropped.
pub struct Answer {
    slot: *const Slot,
    words: usize,
    _busy: Busy,
}

impl Call {
    /// Starts a call in the thread's slot.
    ///
    /// # Errors
    /// `PTL_FAIL`, after a message, without a simulator or without a free slot.
    pub fn begin(op: Op) -> Result<Call, ReturnCode> {
        let busy = Busy::begin();
        let session = Session::get().ok_or(ReturnCode::Fail)?;
        if session::forked() {
            return Err(complain(session, "a forked child cannot use the library: its parent is the rank"));
        }
        let k = match thread(|thread| thread.slot.get()) {
            Some(k) => k,
            None => claim(session)
                .ok_or_else(|| complain(session, &format!("more than {SLOTS} threads use the library")))?,
        };
        let slot = session.slot(k);
        if !matches!(op, Op::SpinSleep | Op::SpinShow | Op::SpinFlush) {
            thread(|thread| thread.time_reads.set(0));
        }
        // SAFETY: the slot is mapped, and owned by this thread until the call is sent.
        unsafe {
            (*slot).op = op as u32;
            (*slot).elapsed_ns = unanswered_ns(session);
            let single =
                Embedded::selected().is_some() || std::ptr::addr_of!(__libc_single_threaded).read_volatile() != 0;
            (*slot).tid = if single { 0 } else { Pid::as_raw(Some(gettid())) as u32 };
            if !single {
                known::forget();
            }
        }
        Ok(Call { session, busy, slot, words: 0 })
    }

    /// Adds the next argument.
    pub fn word(&mut self, word: u64) {
        assert!(self.words < ARGS);
        // SAFETY: as in `begin`.
        unsafe { (*self.slot).args[self.words] = word };
        self.words += 1;
    }

    /// Sets the structure argument.
    pub fn data<T: NoUninit>(&mut self, value: &T) {
        let bytes = bytemuck::bytes_of(value);
        // SAFETY: as in `begin`.
        unsafe { (&mut (*self.slot).data)[..bytes.len()].copy_from_slice(bytes) };
    }

    /// Sets the start of the structure argument to these bytes, truncated to its size.
    pub fn bytes(&mut self, bytes: &[u8]) {
        // SAFETY: as in `begin`.
        let data = unsafe { &mut (*self.slot).data };
        let length = bytes.len().min(data.len());
        data[..length].copy_from_slice(&bytes[..length]);
    }

    /// Returns the maximum number of posted calls at this time.
    fn post_limit(&self) -> u32 {
        let header = self.session.header();
        let limit = if thread(|thread| thread.defers.get()) { &header.defer } else { &header.post_ahead };
        limit.load(Ordering::Relaxed).min(POSTS as u32)
    }

    /// Returns true if this thread may post calls, now or later.
    pub fn may_post(&self) -> bool {
        let header = self.session.header();
        [&header.defer, &header.post_ahead].into_iter().any(|limit| limit.load(Ordering::Relaxed) > 0)
    }

    /// Returns the arguments so far.
    pub fn args(&self) -> [u64; ARGS] {
        // SAFETY: as in `begin`.
        unsafe { (*self.slot).args }
    }

    /// Returns the structure argument.
    pub fn structure<T: AnyBitPattern>(&self) -> T {
        // SAFETY: as in `begin`.
        let bytes = unsafe { &(*self.slot).data };
        bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
    }

    /// Returns the index for the next posted call, if this thread may post it and a post is free.
    fn room(&self) -> Option<usize> {
        self.room_within(self.post_limit())
    }

    /// Like [`Call::room`], for up to `limit` posted calls.
    fn room_within(&self, limit: u32) -> Option<usize> {
        // SAFETY: mapped, and this thread's until the call is sent.
        let (posted, tid) = unsafe { ((*self.slot).posted.load(Ordering::Relaxed), (*self.slot).tid) };
        // Posted calls of several threads would need a common order, and an ending thread must post no more.
        let is_ending = match Embedded::selected() {
            Some(rank) => rank.thread.is_ending.get(),
            None => LEASE.try_with(|_| ()).is_err(),
        };
        (posted < limit && tid == 0 && !is_ending).then_some(posted as usize)
    }

    /// Returns the posted call at an index returned by `room`.
    fn post_at(&self, index: usize) -> *mut Post {
        assert!(index < POSTS);
        // SAFETY: the slot is mapped, and the index is less than POSTS.
        unsafe { (&raw mut (*self.slot).posts).cast::<Post>().add(index) }
    }

    /// Fills in a posted call except its payload, and publishes it to the simulator.
    fn fill(&self, index: usize, op: Op, (payload_addr, payload_len): (u64, usize), claim: u64) {
        quiet::end();
        self.fill_quietly(index, op, (payload_addr, payload_len), claim);
    }

    /// Like [`Call::fill`], for a call that takes a known time.
    fn fill_quietly(&self, index: usize, op: Op, (payload_addr, payload_len): (u64, usize), claim: u64) {
        let args = self.args();
        let mut words = [0; POST_ARGS];
        words.copy_from_slice(&args[..POST_ARGS]);
        let post = self.post_at(index);
        // SAFETY: as in `room`.
        unsafe {
            (*post).op = op as u32;
            (*post).args = words;
            ((*post).payload_addr, (*post).payload_len) = (payload_addr, payload_len as u32);
            (*post).claim = claim;
            (*self.slot).posted.store(index as u32 + 1, Ordering::Release);
        }
    }

    /// Posts the call if its success is predictable and a post is free; otherwise returns false, and the caller must
    /// perform it. Its result is written to `place` unless that is NULL.
    pub fn post(&mut self, op: Op, place: *mut u32) -> bool {
        let Some(index) = self.room() else { return false };
        let args = self.args();
        let defers = thread(|thread| thread.defers.get());
        let copied = match defers {
            true => posting::defers(op, &args, || self.structure(), || self.structure()),
            false => posting::accepts(op, &args, || self.structure()),
        };
        let Some(copied) = copied else { return false };
        let post = self.post_at(index);
        // SAFETY: as in `room`. A program that defers calls guarantees that their data are readable.
        let copied = unsafe {
            let payload = (&raw mut (*post).payload).cast::<u8>();
            match copied {
                Copied::Nothing => (0, 0),
                Copied::Structure => {
                    payload.copy_from_nonoverlapping((&raw const (*self.slot).data).cast(), posting::PLAIN_ME);
                    (0, posting::PLAIN_ME)
                }
                Copied::Memory(address, length) if defers => {
                    payload.copy_from_nonoverlapping(address as *const u8, length);
                    (address, length)
                }
                Copied::Memory(address, length) => {
                    if length > 0 && !self.copy_payload(address, length, index) {
                        return false; // the simulator reports the address
                    }
                    (address, length)
                }
            }
        };
        if !place.is_null() {
            // SAFETY: as above.
            unsafe { (*post).out = NO_RESULT };
            places().push(Place { post: post as usize, to: place as usize });
            process().pending.fetch_add(1, Ordering::Release);
        }
        self.fill(index, if op == Op::PtlMEAppendHandlers { Op::PtlMEAppend } else { op }, copied, 0);
        true
    }

    /// Posts the call if it only sleeps, or polls an empty queue, until the next event.
    ///
    /// # Errors
    /// The call, which must be performed: its result is unknown, or no post is free.
    pub fn pass(self, op: Op) -> Result<Answer, Call> {
        let limit = if self.may_post() { POSTS as u32 } else { 0 };
        let Some(index) = self.room_within(limit) else { return Err(self) };
        // SAFETY: mapped; the simulator has written it before its last answer.
        let known = unsafe { &(*self.slot).known };
        let Some(passing) = quiet::pass(op, &self.args(), known) else { return Err(self) };
        let polled = Polled { handle: known.queue.into(), test: 0 };
        let (length, claim, code) = match passing {
            Passing::Sleeps => (0, 0, ReturnCode::Ok),
            Passing::FindsNothing => (size_of::<Polled>(), NOTHING, ReturnCode::EqEmpty),
        };
        // SAFETY: as in `room`.
        unsafe { (&raw mut (*self.post_at(index)).payload).cast::<Polled>().write_unaligned(polled) };
        self.fill_quietly(index, op, (0, length), claim);
        // SAFETY: as above.
        unsafe { (*self.slot).result = code as i32 };
        Ok(Answer { slot: self.slot, words: 0, _busy: self.busy })
    }

    /// Takes the next known event of the call's queue, and posts the call.
    ///
    /// # Errors
    /// The call, which must be performed: no event is known, or no post is free.
    pub fn take_known(self, op: Op) -> Result<Answer, Call> {
        let Some(index) = self.room() else { return Err(self) };
        let args = self.args();
        // SAFETY: mapped; the simulator wrote it before its last answer.
        let known = unsafe { &(*self.slot).known };
        let Some(event) = known::next(op, &args, known) else { return Err(self) };
        let polled = Polled { handle: known.queue.into(), test: 0 };
        // SAFETY: as in `room`.
        unsafe { (&raw mut (*self.post_at(index)).payload).cast::<Polled>().write_unaligned(polled) };
        self.fill(index, op, (0, size_of::<Polled>()), digest(&event));
        // SAFETY: as above.
        unsafe {
            (*self.slot).result = ReturnCode::Ok as i32;
            (*self.slot).out = [0; 4];
            (&raw mut (*self.slot).data).cast::<Event>().write_unaligned(event);
        }
        Ok(Answer { slot: self.slot, words: 0, _busy: self.busy })
    }

    /// Posts a wait for a counter that is known to have reached the threshold. Returns true if posted.
    pub fn post_reached(&self) -> bool {
        let args = self.args();
        // SAFETY: as in `take_known`.
        let has_reached = known::has_reached(&args, unsafe { &(*self.slot).known });
        let index = self.room().filter(|_| has_reached);
        index.map(|index| self.fill(index, Op::PtlCTWait, (0, 0), 0)).is_some()
    }

    /// Copies data of the call into its post. The kernel copies, as the address may be invalid.
    fn copy_payload(&self, address: u64, length: usize, index: usize) -> bool {
        let (file, at) = self.session.payload(self.slot, index);
        // SAFETY: the system call checks the address.
        unsafe { libc::pwrite(file, address as *const _, length, at) == length as isize }
    }

    /// Sends the call and waits for its answer. Meanwhile it copies memory at the simulator's request.
    pub fn perform(self) -> Answer {
        // SAFETY: the word is atomic, and mapped for the life of the process.
        let word = unsafe { &(*self.slot).state };
        word.store(state::REQUEST, Ordering::Release);
        self.ring();
        loop {
            let seen = word.load(Ordering::Acquire);
            match (seen & !state::SLEEPS, Embedded::selected()) {
                (state::REPLY, _) => break,
                (state::END, _) => output::end_process(),
                (_, Some(rank)) => (rank.services.wait)(),
                (state::COPY, None) => {
                    self.copy();
                    word.store(state::COPIED, Ordering::Release);
                    self.ring();
                }
                _ if self.watch(word, seen) => {}
                _ => self.sleep(word, seen),
            }
        }
        word.store(state::RUNNING, Ordering::Relaxed);
        known::answered();
        quiet::answered();
        if process().pending.load(Ordering::Acquire) > 0 {
            take_results();
        }
        if charged(self.session) {
            thread(|thread| thread.answered_ns.set(cpu_ns()));
        }
        Answer { slot: self.slot, words: 0, _busy: self.busy }
    }

    /// Watches the word for a moment without sleeping. Returns whether it has changed. Nothing of what it counts is left in the rank's memory
    /// above the stack pointer.
    #[inline(never)]
    fn watch(&self, word: &AtomicU32, seen: u32) -> bool {
        if self.shares_cpu() {
            return false;
        }
        // SAFETY: mapped, and this thread's while it owns the slot.
        let patience = unsafe { &mut (*self.slot).patience };
        for _ in 0..patience.spins() {
            if word.load(Ordering::Acquire) != seen {
                patience.hit();
                return true;
            }
            std::hint::spin_loop();
        }
        patience.miss();
        false
    }

    fn shares_cpu(&self) -> bool {
        self.session.header().together.load(Ordering::Relaxed) != 0
    }

    fn ring(&self) {
        let bell = &self.session.header().doorbell;
        if bell.fetch_add(DOORBELL_RING, Ordering::SeqCst) & DOORBELL_SLEEPS != 0 {
            // Cannot fail: the word is mapped and aligned.
            let _ = futex::wake(bell, futex::Flags::empty(), i32::MAX as u32);
        }
    }

    fn sleep(&self, word: &AtomicU32, seen: u32) {
        let asleep = seen | state::SLEEPS;
        if word.compare_exchange(seen, asleep, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            return;
        }
        // With many ranks, these checks would dominate the run time.
        let timeout = (!self.session.is_bound()).then_some(Timespec { tv_sec: CHECK_S, tv_nsec: 0 });
        let woken = futex::wait(word, futex::Flags::empty(), asleep, timeout.as_ref());
        if woken == Err(Errno::TIMEDOUT) && !self.session.alive() {
            say(format_args!("rank {}: spinrun is gone", self.session.rank));
            // SAFETY: ends the process without its exit handlers, which would wait for the simulator.
            unsafe { libc::_exit(LOST) };
        }
    }

    /// Copies between the process's memory and the bounce area. The kernel copies, so that an invalid address is an
    /// error and not a crash. The functions of rustix take slices, which cannot represent such an address.
    fn copy(&self) {
        let (file, bounce) = self.session.bounce();
        // SAFETY: the simulator filled in the fields and waits; the system calls check the address.
        unsafe {
            let slot = self.slot;
            let (address, length) = ((*slot).copy_addr as usize, ((*slot).copy_len as usize).min(BOUNCE));
            let copied = if (*slot).copy_write == 0 {
                libc::pwrite(file, address as *const _, length, bounce)
            } else {
                libc::pread(file, address as *mut _, length, bounce)
            };
            (*slot).copy_result = match copied {
                -1 => errno(),
                copied if copied as usize == length => 0,
                _ => libc::EFAULT,
            };
        }
    }
}

impl Answer {
    /// Returns the return code.
    pub fn rc(&self) -> i32 {
        // SAFETY: the slot is mapped, and owned by this thread after the answer.
        unsafe { (*self.slot).result }
    }

    /// Returns the next scalar result.
    pub fn word(&mut self) -> u64 {
        self.words += 1;
        // SAFETY: as above.
        unsafe { (&(*self.slot).out)[self.words - 1] }
    }

    /// Returns the structure result.
    pub fn data<T: AnyBitPattern>(&self) -> T {
        // SAFETY: as above.
        let bytes = unsafe { &(*self.slot).data };
        bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
    }
}

fn places() -> MutexGuard<'static, Vec<Place>> {
    process().places.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the results of completed posted calls to their destinations. An answer completes all posted calls of this
/// thread.
fn take_results() {
    let mut places = places();
    places.retain(|place| {
        // SAFETY: slots are mapped for the life of the process, and a post is reused only after its thread's next
        // answer, which follows this call.
        let result = unsafe { (&raw const (*(place.post as *const Post)).out).read_volatile() };
        if result != NO_RESULT {
            // SAFETY: a program that defers calls keeps the destinations of their results valid.
            unsafe { (place.to as *mut u32).write_unaligned(result as u32) };
        }
        result == NO_RESULT
    });
    process().pending.store(places.len() as u32, Ordering::Release);
}

/// Waits until the posted calls of this thread complete. Does nothing in a signal handler that interrupts a call.
pub fn flush() {
    let Some((k, session)) = thread(|thread| thread.slot.get()).zip(Session::get()) else { return };
    if thread(|thread| thread.busy.get()) || session::forked() {
        return;
    }
    // SAFETY: mapped atomics.
    let (posted, taken) = unsafe { (&(*session.slot(k)).posted, &(*session.slot(k)).taken) };
    if posted.load(Ordering::Relaxed) == taken.load(Ordering::Relaxed) {
        return;
    }
    if let Ok(call) = Call::begin(Op::SpinFlush) {
        call.perform();
    }
}

/// Enables or disables deferred calls of this thread. Returns the previous setting.
pub fn defer(on: bool) -> bool {
    thread(|thread| thread.defers.replace(on))
}

/// Counts a time read. Returns the number of this thread's reads since its last call other than a sleep.
pub fn looks_in_a_row() -> u32 {
    thread(|thread| {
        thread.has_read_time.set(true);
        thread.time_reads.set(thread.time_reads.get().saturating_add(1));
        thread.time_reads.get()
    })
}

/// Returns true if this thread has read the time since the last call of this function, before each `spin_idle`.
pub fn has_looked_since_idle() -> bool {
    thread(|thread| thread.has_read_time.take())
}

/// Returns the simulated time of the thread's own computation since its last answer, in picoseconds; 0 unless it is
/// measured.
pub fn unanswered_ps(session: &Session) -> u64 {
    let scale = session.header().compute_scale_milli.load(Ordering::Relaxed);
    (u128::from(unanswered_ns(session)) * u128::from(scale) / 1000).try_into().unwrap_or(u64::MAX)
}

fn unanswered_ns(session: &Session) -> u64 {
    if charged(session) { cpu_ns().saturating_sub(thread(|thread| thread.answered_ns.get())) } else { 0 }
}

fn charged(session: &Session) -> bool {
    session.header().compute_scale_milli.load(Ordering::Relaxed) != 0
}

/// Returns the CPU time of the thread in nanoseconds. rustix makes a system call; the C function may be interposed
/// (`--clock simulated`).
fn cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Claims a slot for this thread: a free one, or one whose owner process has ended.
fn claim(session: &Session) -> Option<usize> {
    let me = std::process::id();
    for k in 0..SLOTS {
        // SAFETY: mapped; only atomics are touched before this thread owns the slot.
        let (word, owner) = unsafe { (&(*session.slot(k)).state, &(*session.slot(k)).pid) };
        let free = word.compare_exchange(state::FREE, state::RUNNING, Ordering::AcqRel, Ordering::Relaxed).is_ok();
        let pid = owner.load(Ordering::Acquire);
        let taken = free || (pid != me && word.load(Ordering::Acquire) == state::RUNNING && ended(pid));
        if taken && owner.compare_exchange(pid, me, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            session.claimed().fetch_or(1 << k, Ordering::Release);
            if pid != me {
                forget_posts(session, k);
            }
            thread(|thread| thread.slot.set(Some(k)));
            if Embedded::selected().is_none() {
                // While a thread ends, its thread-local values may be gone; then its slot is not released.
                let _ = LEASE.try_with(|_| ());
            }
            return Some(k);
        }
    }
    None
}

/// Discards the posts of the slot's previous owner.
fn forget_posts(session: &Session, k: usize) {
    // SAFETY: mapped atomics of this thread's slot.
    unsafe {
        (*session.slot(k)).posted.store(0, Ordering::Relaxed);
        (*session.slot(k)).taken.store(0, Ordering::Relaxed);
    }
}

fn ended(pid: u32) -> bool {
    Pid::from_raw(pid as i32).is_some_and(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

fn complain(session: &Session, what: &str) -> ReturnCode {
    say(format_args!("rank {}: {what}", session.rank));
    ReturnCode::Fail
}

fn errno() -> i32 {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(0)
}
