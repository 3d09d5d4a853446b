//! The shared memory of a job, the simulator's side of [`abi::mailbox`].

use super::call::{Call, Caller, Reply};
use super::signals;
use super::spec::JobError;
use abi::mailbox::{self, BOUNCE, DOORBELL_SLEEPS, Header, Op, Patience, Slot, state};
use bytemuck::AnyBitPattern;
use sim::Time;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The shared memory file of a job, and its mapping in this process.
pub struct Shared {
    base: NonNull<u8>,
    length: usize,
    ranks: usize,
    file: File,
    patience: Patience,
}

// SAFETY: the mapping belongs to this value, wherever it is.
unsafe impl Send for Shared {}

impl Shared {
    /// Makes the shared memory of a job. Its file has no name, so it disappears with the last process that uses it.
    ///
    /// # Errors
    /// [`JobError::System`] when the system gives no memory.
    pub fn new(ranks: usize, compute_scale_milli: u64) -> Result<Shared, JobError> {
        let length = mailbox::file_size(ranks);
        // SAFETY: system calls with valid arguments; the descriptor is ours alone, the mapping new.
        let (file, base) = unsafe {
            let fd = libc::memfd_create(c"spin-job".as_ptr(), libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING);
            if fd == -1 {
                return Err(JobError::last("make the job's shared memory"));
            }
            let file = File::from_raw_fd(fd);
            if libc::ftruncate(fd, length as i64) == -1 {
                return Err(JobError::last("size the job's shared memory"));
            }
            // A rank that made it shorter would end the simulator by SIGBUS.
            if libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL) == -1 {
                return Err(JobError::last("seal the job's shared memory"));
            }
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let base = libc::mmap(std::ptr::null_mut(), length, protection, libc::MAP_SHARED, fd, 0);
            (file, base)
        };
        let base = NonNull::new(base.cast::<u8>()).filter(|_| base != libc::MAP_FAILED);
        let base = base.ok_or_else(|| JobError::last("map the job's shared memory"))?;
        // SAFETY: the file is at least a header long, and nobody else has it yet; the rest of it is zeros.
        unsafe {
            base.cast::<Header>().write(Header {
                magic: mailbox::MAGIC,
                ranks: ranks as u32,
                doorbell: 0.into(),
                now_ps: 0.into(),
                compute_scale_milli: compute_scale_milli.into(),
            });
        }
        Ok(Shared { base, length, ranks, file, patience: Patience::new() })
    }

    /// Makes signals to this process ring the doorbell.
    pub(super) fn watch_signals(&self) -> Result<(), JobError> {
        signals::watch(&self.header().doorbell)
    }

    /// Returns the descriptor of the memory file in this process.
    pub fn fd(&self) -> RawFd {
        self.file.as_raw_fd()
    }

    fn header(&self) -> &Header {
        // SAFETY: mapped and initialised for as long as `self` lives; ranks write only its atomics.
        unsafe { self.base.cast().as_ref() }
    }

    fn slot(&self, rank: usize, k: usize) -> *mut Slot {
        assert!(rank < self.ranks && k < mailbox::SLOTS);
        // SAFETY: within the mapping.
        unsafe { self.base.as_ptr().add(mailbox::slot_offset(rank, k)).cast() }
    }

    fn state(&self, rank: usize, k: usize) -> &AtomicU32 {
        // SAFETY: mapped for as long as `self` lives, and an atomic.
        unsafe { &(*self.slot(rank, k)).state }
    }

    /// Returns the state of the slot: a value of [`state`].
    pub fn activity(&self, rank: usize, k: usize) -> u32 {
        self.state(rank, k).load(Ordering::Acquire) & !state::SLEEPS
    }

    /// Returns the process id of the slot's thread.
    pub fn pid(&self, rank: usize, k: usize) -> u32 {
        // SAFETY: mapped, and an atomic.
        unsafe { (*self.slot(rank, k)).pid.load(Ordering::Acquire) }
    }

    /// Returns the thread id of the slot's thread at its last call, or 0 if its process had one thread then.
    pub fn tid(&self, rank: usize, k: usize) -> u32 {
        // SAFETY: mapped; any value is valid.
        unsafe { (&raw const (*self.slot(rank, k)).tid).read_volatile() }
    }

    /// Whether this thread of a process waits in the library.
    pub fn is_inside(&self, rank: usize, pid: u32, tid: u32) -> bool {
        (0..mailbox::SLOTS).any(|k| {
            let waits = matches!(self.activity(rank, k), state::REQUEST | state::COPY | state::COPIED);
            waits && self.pid(rank, k) == pid && [0, tid].contains(&self.tid(rank, k))
        })
    }

    /// Returns the caller's thread id if the slot holds a call.
    pub fn requested(&self, rank: usize, k: usize) -> Option<u32> {
        (self.activity(rank, k) == state::REQUEST).then(|| self.tid(rank, k))
    }

    /// Returns the slot and the thread id of the rank's call that is handed out next. `inside` has a bit set for each slot
    /// whose call was handed out before.
    pub fn first_request(&self, rank: usize, inside: u32) -> Option<(usize, u32)> {
        let calls = (0..mailbox::SLOTS).filter(|k| inside & 1 << k == 0);
        calls.filter_map(|k| Some((k, self.requested(rank, k)?))).min_by_key(|&(_, tid)| tid)
    }

    /// Returns the call in a slot, and the id of the process that made it.
    ///
    /// # Errors
    /// A message when the number of the call does not exist, or the process does not belong to the rank. No correct
    /// program causes either.
    pub fn call(&self, caller: Caller, is_of_rank: impl FnOnce(u32) -> bool) -> Result<(Call, u32), String> {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        // SAFETY: mapped; any value is valid, and each is read once.
        let (op, elapsed_ns, args) = unsafe {
            let op = (&raw const (*slot).op).read_volatile();
            (op, (&raw const (*slot).elapsed_ns).read_volatile(), (&raw const (*slot).args).read_volatile())
        };
        let op = Op::from_raw(op).ok_or_else(|| format!("its slot for calls holds call {op}, which does not exist"))?;
        let pid = self.pid(caller.rank as usize, caller.slot as usize);
        match is_of_rank(pid) {
            true => Ok((Call { caller, op, elapsed_ns, args }, pid)),
            false => Err(format!("its slot for calls names process {pid}, which is none of the rank's")),
        }
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

    /// Answers a call.
    pub fn answer(&mut self, caller: Caller, reply: &Reply) {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        let bytes = reply.data.bytes();
        // SAFETY: as for `call`; a structure result fits into a slot.
        unsafe {
            (&raw mut (*slot).result).write_volatile(reply.rc);
            (&raw mut (*slot).out).write_volatile(reply.out);
            (&raw mut (*slot).data).cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
        self.set(caller, state::REPLY);
    }

    /// Asks the thread to copy `length` bytes from `address` to the bounce area, or with `write` back.
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

    /// Returns the error number of the last copy, 0 if it succeeded.
    pub fn copy_result(&self, caller: Caller) -> i32 {
        // SAFETY: as for `call`.
        unsafe { (&raw const (*self.slot(caller.rank as usize, caller.slot as usize)).copy_result).read_volatile() }
    }

    /// Asks a thread that waits for an answer to end its process.
    pub fn end(&mut self, caller: Caller) {
        self.set(caller, state::END);
    }

    fn bounce(&self, rank: usize) -> *mut u8 {
        assert!(rank < self.ranks);
        // SAFETY: within the mapping.
        unsafe { self.base.as_ptr().add(mailbox::bounce_offset(self.ranks, rank)) }
    }

    /// Copies the beginning of a rank's bounce area to `out`, which is at most as long.
    pub fn read_bounce(&self, rank: usize, out: &mut [u8]) {
        assert!(out.len() <= BOUNCE);
        // SAFETY: mapped for as long as `self` lives, and any value is valid.
        unsafe { self.bounce(rank).copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) };
    }

    /// Copies `bytes` to the beginning of a rank's bounce area, which is at least as long.
    pub fn write_bounce(&mut self, rank: usize, bytes: &[u8]) {
        assert!(bytes.len() <= BOUNCE);
        // SAFETY: as above.
        unsafe { self.bounce(rank).copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    fn set(&self, caller: Caller, value: u32) {
        let word = self.state(caller.rank as usize, caller.slot as usize);
        if word.swap(value, Ordering::SeqCst) & state::SLEEPS != 0 {
            // SAFETY: a system call on a mapped word.
            unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, 1) };
        }
    }

    /// Returns the number of rings so far, which wraps around.
    pub fn doorbell(&self) -> u32 {
        self.header().doorbell.load(Ordering::SeqCst) & !DOORBELL_SLEEPS
    }

    /// Watches the doorbell for a moment without sleeping. Returns whether it was rung.
    pub fn watch_doorbell(&mut self, seen: u32) -> bool {
        for _ in 0..self.patience.spins() {
            std::hint::spin_loop();
            if self.doorbell() != seen {
                self.patience.hit();
                return true;
            }
        }
        self.patience.miss();
        false
    }

    /// Sleeps until the doorbell is rung, at most for `timeout`. `seen` is its last known value.
    pub fn sleep(&self, seen: u32, timeout: Option<Duration>) {
        let bell = &self.header().doorbell;
        let asleep = seen | DOORBELL_SLEEPS;
        if bell.compare_exchange(seen, asleep, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
            let timeout = timeout
                .map(|left| libc::timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) });
            let timeout = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
            // SAFETY: a system call on a mapped word.
            unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAIT, asleep, timeout) };
            bell.fetch_and(!DOORBELL_SLEEPS, Ordering::SeqCst);
        }
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        signals::unwatch(&self.header().doorbell);
        // SAFETY: our own mapping, and nothing refers to it any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.length) };
    }
}
