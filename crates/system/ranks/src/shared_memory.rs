// SPDX-License-Identifier: Apache-2.0
//! Shared memory of a job, the simulator's side of [`abi::mailbox`].

use super::call::{Call, Caller, Reply};
use super::job_spec::JobError;
use super::signals;
use abi::calls::Op;
use abi::mailbox::{
    self, ARGS, BOUNCE, COUNTERS, DOORBELL_SLEEPS, Header, KNOWN, KnownCounter, PAYLOAD, POST_ARGS, POSTS, Patience,
    Slot, state,
};
use abi::portals::{Event, Handle};
use bytemuck::AnyBitPattern;
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::thread::futex;
use rustix::time::{ClockId, clock_gettime};
use sim::Time;
use std::fs::File;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Shared memory file of a job, and its mapping in this process.
pub struct SharedMemory {
    map: MmapRaw,
    ranks: usize,
    file: File,
    spin_limit: Patience,
    /// True if the ranks share one CPU with the simulator.
    same_cpu: bool,
    /// True if ranks may post calls.
    posts: bool,
    /// Caller whose next reply carries known events and counters.
    known_caller: Option<Caller>,
}

const _: () = assert!(PAYLOAD as u64 >= nic::api::MAX_VOLATILE_SIZE, "all volatile data are copied");

/// Period during which only the calls of one thread happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lookahead {
    /// Length of the period; zero if unknown.
    pub span: Time,
    /// Duration of a poll during the period.
    pub poll: Time,
}

/// Bytes copied when a call was posted, in place of the memory at `address`.
pub struct Payload {
    address: u64,
    bytes: [u8; PAYLOAD],
    length: usize,
    claim: u64,
}

impl Payload {
    /// Returns the predicted result that the rank stored with the call.
    pub fn claim(&self) -> u64 {
        self.claim
    }

    /// Returns the call's structure argument, if any. Only its beginning was copied; the rest is zero.
    pub fn structure<T: AnyBitPattern>(&self) -> Option<T> {
        let mut bytes = [0; mailbox::DATA];
        bytes[..self.length].copy_from_slice(&self.bytes[..self.length]);
        (self.address == 0 && self.length > 0).then(|| bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()]))
    }

    /// Returns the `length` bytes copied from `address`, if all of them were copied.
    pub fn get(&self, address: u64, length: usize) -> Option<&[u8]> {
        if self.address == 0 {
            return None; // a structure
        }
        let start = usize::try_from(address.checked_sub(self.address)?).ok()?;
        self.bytes[..self.length].get(start..start.checked_add(length)?)
    }
}

impl SharedMemory {
    /// Creates the shared memory of a job. Its file has no name, so it disappears with the last process that uses it.
    ///
    /// # Errors
    /// [`JobError::System`] when the system provides no memory.
    pub fn new(ranks: usize, compute_scale_milli: u64, post_ahead: u32, defer: u32) -> Result<SharedMemory, JobError> {
        let length = mailbox::file_size(ranks);
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let file = memfd_create(c"spin-job", flags).map_err(JobError::system("make the job's shared memory"))?;
        let file = File::from(file);
        file.set_len(length as u64).map_err(JobError::system("size the job's shared memory"))?;
        // Truncation by a rank would kill the simulator with SIGBUS.
        let seals = SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL;
        fcntl_add_seals(&file, seals).map_err(JobError::system("seal the job's shared memory"))?;
        let map = MmapRaw::map_raw(&file).map_err(JobError::system("map the job's shared memory"))?;
        // SAFETY: the file has at least the size of a header and is not shared yet; the rest of it is zero.
        unsafe {
            map.as_mut_ptr().cast::<Header>().write(Header {
                magic: mailbox::MAGIC,
                ranks: ranks as u32,
                doorbell: 0.into(),
                now_ps: 0.into(),
                compute_scale_milli: compute_scale_milli.into(),
                post_ahead: post_ahead.into(),
                defer: defer.into(),
                together: 0.into(),
                live_since_ns: 0.into(),
            });
        }
        Ok(SharedMemory {
            map,
            ranks,
            file,
            spin_limit: Patience::new(),
            same_cpu: false,
            posts: post_ahead > 0 || defer > 0,
            known_caller: None,
        })
    }

    /// Makes signals to this process ring the doorbell.
    pub(super) fn watch_signals(&self) -> Result<(), JobError> {
        signals::watch(&self.header().doorbell)
    }

    /// Returns the descriptor of the memory file in this process.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    /// Returns the memory as ranks in this process use it.
    pub(super) fn job(&self) -> embedded::Job {
        embedded::Job { ranks: self.ranks, memory: self.map.as_mut_ptr(), file: self.fd() }
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped and initialised for as long as `self` lives; ranks write only its atomics.
        unsafe { &*self.map.as_ptr().cast() }
    }

    fn slot(&self, rank: usize, k: usize) -> *mut Slot {
        assert!(rank < self.ranks && k < mailbox::SLOTS);
        self.map.as_mut_ptr().wrapping_add(mailbox::slot_offset(self.ranks, rank, k)).cast()
    }

    fn state(&self, rank: usize, k: usize) -> &AtomicU32 {
        // SAFETY: mapped for as long as `self` lives, and an atomic.
        unsafe { &(*self.slot(rank, k)).state }
    }

    /// Returns the slots that threads of a rank have ever claimed, except those in the bit set `without`.
    pub fn claimed(&self, rank: usize, without: u32) -> impl Iterator<Item = usize> + use<> {
        assert!(rank < self.ranks);
        // SAFETY: mapped for as long as `self` lives, and an atomic.
        let word = unsafe { &*self.map.as_ptr().add(mailbox::claimed_offset(rank)).cast::<AtomicU32>() };
        let mut left = word.load(Ordering::Acquire) & !without;
        std::iter::from_fn(move || {
            let k = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            (k < mailbox::SLOTS).then_some(k)
        })
    }

    /// Returns the state of the slot, a value of [`state`].
    pub fn activity(&self, rank: usize, k: usize) -> u32 {
        self.state(rank, k).load(Ordering::Acquire) & !state::SLEEPS
    }

    /// Returns true if the slot's thread sleeps until the simulator wakes it.
    pub fn sleeps(&self, rank: usize, k: usize) -> bool {
        self.state(rank, k).load(Ordering::Acquire) & state::SLEEPS != 0
    }

    /// Returns the process id of the slot's thread.
    pub fn pid(&self, rank: usize, k: usize) -> u32 {
        // SAFETY: mapped, and an atomic.
        unsafe { (*self.slot(rank, k)).pid.load(Ordering::Acquire) }
    }

    /// Returns the thread id of the slot's thread at its last call, or 0 if its process was single-threaded then.
    pub fn tid(&self, rank: usize, k: usize) -> u32 {
        // SAFETY: mapped; any value is valid.
        unsafe { (&raw const (*self.slot(rank, k)).tid).read_volatile() }
    }

    /// Returns true if this thread of a process waits in the library.
    pub fn is_inside(&self, rank: usize, pid: u32, tid: u32) -> bool {
        self.claimed(rank, 0).any(|k| {
            let waits = matches!(self.activity(rank, k), state::REQUEST | state::COPY | state::COPIED);
            waits && self.pid(rank, k) == pid && [0, tid].contains(&self.tid(rank, k))
        })
    }

    /// Returns the caller's thread id if the slot holds a call.
    pub fn requested(&self, rank: usize, k: usize) -> Option<u32> {
        // A thread that copied memory for a posted call still waits for the reply to its own call.
        matches!(self.activity(rank, k), state::REQUEST | state::COPIED).then(|| self.tid(rank, k))
    }

    /// Returns true if the call in a slot only waits for the posted calls to complete.
    pub fn is_flush(&self, rank: usize, k: usize) -> bool {
        // SAFETY: mapped; any value is valid.
        unsafe { (&raw const (*self.slot(rank, k)).op).read_volatile() == Op::SpinFlush as u32 }
    }

    /// Returns the slot and thread id of the rank's next call to hand out. `inside` is the bit set of slots with calls
    /// already handed out.
    pub fn first_request(&self, rank: usize, inside: u32) -> Option<(usize, u32)> {
        let mut first = None;
        for k in self.claimed(rank, inside) {
            match self.requested(rank, k) {
                Some(0) => return Some((k, 0)), // the only thread
                Some(tid) if first.is_none_or(|(_, least)| tid < least) => first = Some((k, tid)),
                _ => {}
            }
        }
        first
    }

    /// Returns the call in a slot, and the id of the calling process.
    ///
    /// # Errors
    /// A message when the operation does not exist, or the process does not belong to the rank. No correct program
    /// causes either.
    pub fn call(&self, caller: Caller, is_of_rank: impl FnOnce(u32) -> bool) -> Result<(Call, u32), String> {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        // SAFETY: mapped; any value is valid, and each is read once.
        let (op, elapsed_ns, args) = unsafe {
            let op = (&raw const (*slot).op).read_volatile();
            (op, (&raw const (*slot).elapsed_ns).read_volatile(), (&raw const (*slot).args).read_volatile())
        };
        let op = Op::from_raw(op).ok_or_else(|| format!("its slot for calls holds call {op}, which does not exist"))?;
        Ok((Call { caller, op, elapsed_ns, args }, self.caller_pid(caller, is_of_rank)?))
    }

    /// Returns the id of the calling process.
    fn caller_pid(&self, caller: Caller, is_of_rank: impl FnOnce(u32) -> bool) -> Result<u32, String> {
        let pid = self.pid(caller.rank as usize, caller.slot as usize);
        match is_of_rank(pid) {
            true => Ok(pid),
            false => Err(format!("its slot for calls names process {pid}, which is none of the rank's")),
        }
    }

    /// Returns the first slot with a posted call that is not taken over, except those in the bit set `inside`.
    pub fn first_post(&self, rank: usize, inside: u32) -> Option<usize> {
        self.claimed(rank, inside).find(|&k| self.posts_left(rank, k) > 0)
    }

    /// Returns the number of posted calls of a rank that are not taken over.
    pub fn all_posts_left(&self, rank: usize) -> u32 {
        self.claimed(rank, 0).map(|k| self.posts_left(rank, k)).sum()
    }

    fn posts_left(&self, rank: usize, k: usize) -> u32 {
        if !self.posts {
            return 0;
        }
        let slot = self.slot(rank, k);
        // SAFETY: mapped, and atomics.
        let (posted, taken) = unsafe { (&(*slot).posted, &(*slot).taken) };
        posted.load(Ordering::Acquire).min(POSTS as u32).saturating_sub(taken.load(Ordering::Relaxed))
    }

    /// Takes over the next posted call of a slot that has one, with its copied data.
    ///
    /// # Errors
    /// As for [`SharedMemory::call`].
    pub fn take_post(
        &self,
        caller: Caller,
        is_of_rank: impl FnOnce(u32) -> bool,
    ) -> Result<(Call, u32, Payload), String> {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        // SAFETY: mapped; any value is valid, and each is read once.
        let post = unsafe {
            let index = (*slot).taken.fetch_add(1, Ordering::Relaxed) as usize % POSTS;
            (&raw const (*slot).posts).cast::<mailbox::Post>().add(index).read_volatile()
        };
        let op =
            Op::from_raw(post.op).ok_or_else(|| format!("it has posted call {}, which does not exist", post.op))?;
        let pid = self.caller_pid(caller, is_of_rank)?;
        let mut args = [0; ARGS];
        args[..POST_ARGS].copy_from_slice(&post.args);
        let length = (post.payload_len as usize).min(PAYLOAD);
        let payload = Payload { address: post.payload_addr, bytes: post.payload, length, claim: post.claim };
        Ok((Call { caller, op, elapsed_ns: 0, args }, pid, payload))
    }

    /// Stores the result of the posted call that was taken over last.
    pub fn answer_post(&mut self, caller: Caller, out: u64) {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        // SAFETY: mapped; the rank reads it when its own call is answered.
        unsafe {
            let index = (*slot).taken.load(Ordering::Relaxed).wrapping_sub(1) as usize % POSTS;
            (&raw mut (*(&raw mut (*slot).posts).cast::<mailbox::Post>().add(index)).out).write_volatile(out);
        }
    }

    /// Makes every further call of a rank wait for its reply.
    pub fn end_posting(&mut self) {
        self.header().post_ahead.store(0, Ordering::Relaxed);
        self.header().defer.store(0, Ordering::Relaxed);
    }

    /// Returns a copy of the structure argument of a call.
    pub fn data<T: AnyBitPattern>(&self, caller: Caller) -> T {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        // SAFETY: mapped, and any value is valid.
        let bytes = unsafe { (&raw const (*slot).data).read_volatile() };
        bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
    }

    /// Sets the simulated time that ranks read.
    pub fn set_now(&mut self, now: Time) {
        self.header().now_ps.store(now.as_ps(), Ordering::Relaxed);
    }

    /// Makes the ranks read real time, which begins now. Returns its beginning.
    pub(super) fn begin_live(&mut self) -> Instant {
        let (now, since) = (clock_gettime(ClockId::Monotonic), Instant::now());
        self.header().live_since_ns.store(now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64, Ordering::Relaxed);
        since
    }

    /// Tells the ranks whether they share one CPU with the simulator.
    pub fn set_same_cpu(&mut self, same_cpu: bool) {
        self.header().together.store(same_cpu.into(), Ordering::Relaxed);
        self.same_cpu = same_cpu;
    }

    /// Returns true if the caller may use known events and counters: it may post calls, and its process is
    /// single-threaded.
    pub fn may_know(&self, caller: Caller) -> bool {
        self.posts && self.tid(caller.rank as usize, caller.slot as usize) == 0
    }

    /// Writes the oldest events of a queue, at most [`KNOWN`], and the success counts of counters into a slot whose
    /// call is answered next.
    pub fn tell<'a>(
        &mut self,
        caller: Caller,
        (queue, events): (Handle, impl Iterator<Item = &'a Event>),
        counters: [KnownCounter; COUNTERS],
        lookahead: Lookahead,
    ) {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        let mut count = 0;
        // SAFETY: as for `call`; the array has KNOWN entries.
        unsafe {
            let known = &raw mut (*slot).known;
            let places = (&raw mut (*known).events).cast::<Event>();
            for event in events.take(KNOWN) {
                places.add(count).write_volatile(*event);
                count += 1;
            }
            (&raw mut (*known).queue).write_volatile(queue);
            (&raw mut (*known).count).write_volatile(count as u32);
            (&raw mut (*known).counters).write_volatile(counters);
            (&raw mut (*known).quiet_ps).write_volatile(lookahead.span.as_ps());
            (&raw mut (*known).poll_ps).write_volatile(lookahead.poll.as_ps());
        }
        self.known_caller = Some(caller);
    }

    /// Replies to a call.
    pub fn answer(&mut self, caller: Caller, reply: &Reply) {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        let bytes = reply.data.bytes();
        // SAFETY: as for `call`; a structure result fits into a slot.
        unsafe {
            if self.posts {
                (*slot).posted.store(0, Ordering::Relaxed);
                (*slot).taken.store(0, Ordering::Relaxed);
                if self.known_caller.take() != Some(caller) {
                    (&raw mut (*slot).known.count).write_volatile(0);
                    (&raw mut (*slot).known.quiet_ps).write_volatile(0);
                    (&raw mut (*slot).known.counters).write_volatile([KnownCounter::NONE; COUNTERS]);
                }
            }
            (&raw mut (*slot).result).write_volatile(reply.rc);
            (&raw mut (*slot).out).write_volatile(reply.out);
            (&raw mut (*slot).data).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.set(caller, state::REPLY);
    }

    /// Asks the thread to copy `length` bytes from `address` to the bounce buffer, or back if `write` is set.
    pub fn ask_copy(&mut self, caller: Caller, address: u64, length: usize, write: bool) {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        // SAFETY: as for `call`.
        unsafe {
            (&raw mut (*slot).copy_addr).write_volatile(address);
            (&raw mut (*slot).copy_len).write_volatile(length as u32);
            (&raw mut (*slot).copy_write).write_volatile(u32::from(write));
        }
        self.set(caller, state::COPY);
    }

    /// Returns the error number of the last copy, or 0 if it succeeded.
    pub fn copy_result(&self, caller: Caller) -> i32 {
        // SAFETY: as for `call`.
        unsafe { (&raw const (*self.slot(caller.rank as usize, caller.slot as usize)).copy_result).read_volatile() }
    }

    /// Asks a thread that waits for a reply to end its process.
    pub fn end(&mut self, caller: Caller) {
        self.set(caller, state::END);
    }

    fn bounce(&self, rank: usize) -> *mut u8 {
        assert!(rank < self.ranks);
        self.map.as_mut_ptr().wrapping_add(mailbox::bounce_offset(self.ranks, rank))
    }

    /// Copies the beginning of a rank's bounce buffer to `out`, which must not be longer.
    pub fn read_bounce(&self, rank: usize, out: &mut [u8]) {
        assert!(out.len() <= BOUNCE);
        // SAFETY: mapped for as long as `self` lives, and any value is valid.
        unsafe { self.bounce(rank).copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) };
    }

    /// Copies `bytes` to the beginning of a rank's bounce buffer, which must not be shorter.
    pub fn write_bounce(&mut self, rank: usize, bytes: &[u8]) {
        assert!(bytes.len() <= BOUNCE);
        // SAFETY: as above.
        unsafe { self.bounce(rank).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn set(&self, caller: Caller, value: u32) {
        let word = self.state(caller.rank as usize, caller.slot as usize);
        if word.swap(value, Ordering::SeqCst) & state::SLEEPS != 0 {
            // Cannot fail: the word is mapped and aligned.
            let _ = futex::wake(word, futex::Flags::empty(), 1);
        }
    }

    /// Returns the number of rings so far, which wraps around.
    pub fn doorbell(&self) -> u32 {
        self.header().doorbell.load(Ordering::SeqCst) & !DOORBELL_SLEEPS
    }

    /// Spins briefly on the doorbell. Returns true if it rang.
    pub fn watch_doorbell(&mut self, seen: u32) -> bool {
        if self.same_cpu {
            return false;
        }
        for _ in 0..self.spin_limit.spins() {
            std::hint::spin_loop();
            if self.doorbell() != seen {
                self.spin_limit.hit();
                return true;
            }
        }
        self.spin_limit.miss();
        false
    }

    /// Sleeps until the doorbell differs from `seen`, for at most `timeout`.
    pub fn sleep(&self, seen: u32, timeout: Option<Duration>) {
        let bell = &self.header().doorbell;
        let asleep = seen | DOORBELL_SLEEPS;
        if bell.compare_exchange(seen, asleep, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            // A time-out beyond the system's range is equivalent to none.
            let timeout = timeout.and_then(|left| futex::Timespec::try_from(left).ok());
            // The caller checks the doorbell again whatever ended the sleep.
            let _ = futex::wait(bell, futex::Flags::empty(), asleep, timeout.as_ref());
            bell.fetch_and(!DOORBELL_SLEEPS, Ordering::SeqCst);
        }
    }
}

impl Drop for SharedMemory {
    fn drop(&mut self) {
        signals::unwatch(&self.header().doorbell);
    }
}
