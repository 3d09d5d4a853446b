//! The shared memory of a job, the simulator's side of [`abi::mailbox`].

use super::{Call, Caller, JobError, Reply, signals};
use abi::mailbox::{self, BOUNCE, DOORBELL_RING, DOORBELL_SLEEPS, Header, Op, Patience, Slot, state};
use abi::portals::Plain;
use sim::Time;
use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The memory file and its mapping.
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
    /// A job's memory; the file has no name, so it goes with the last process that uses it.
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

    /// From now on signals to this process ring the doorbell.
    pub(super) fn watch_signals(&self) -> Result<(), JobError> {
        signals::watch(&self.header().doorbell)
    }

    /// The file's descriptor in this process.
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

    /// What the slot's thread does: a value of [`state`].
    pub fn activity(&self, rank: usize, k: usize) -> u32 {
        self.state(rank, k).load(Ordering::Acquire) & !state::SLEEPS
    }

    /// The process of the slot's thread.
    pub fn pid(&self, rank: usize, k: usize) -> u32 {
        // SAFETY: mapped, and an atomic.
        unsafe { (*self.slot(rank, k)).pid.load(Ordering::Acquire) }
    }

    /// The thread id of the slot's thread as of its last call, 0 when its process has one thread.
    pub fn tid(&self, rank: usize, k: usize) -> u32 {
        // SAFETY: mapped; any value is valid.
        unsafe { (&raw const (*self.slot(rank, k)).tid).read_volatile() }
    }

    /// Whether a thread of a process waits in the library.
    pub fn is_inside(&self, rank: usize, pid: u32, tid: u32) -> bool {
        (0..mailbox::SLOTS).any(|k| {
            let waits = matches!(self.activity(rank, k), state::REQUEST | state::COPY | state::COPIED);
            waits && self.pid(rank, k) == pid && [0, tid].contains(&self.tid(rank, k))
        })
    }

    /// The caller's thread id when a call is in the slot.
    pub fn requested(&self, rank: usize, k: usize) -> Option<u32> {
        (self.activity(rank, k) == state::REQUEST).then(|| self.tid(rank, k))
    }

    /// The slot and thread id of a rank's new call that is handed out next. `inside` has the bits of the slots whose calls
    /// were handed out before.
    pub fn first_request(&self, rank: usize, inside: u32) -> Option<(usize, u32)> {
        let calls = (0..mailbox::SLOTS).filter(|k| inside & 1 << k == 0);
        calls.filter_map(|k| Some((k, self.requested(rank, k)?))).min_by_key(|&(_, tid)| tid)
    }

    /// The call in a slot, and the process that made it.
    ///
    /// # Errors
    /// What no correct program does: the number of the call is none, or the process is not of the rank.
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

    /// A copy of the structure argument of a call.
    pub fn data<T: Plain>(&self, caller: Caller) -> T {
        let slot = self.slot(caller.rank as usize, caller.slot as usize);
        // SAFETY: mapped, and any value is valid.
        let bytes = unsafe { (&raw const (*slot).data).read_volatile() };
        T::from_bytes(&bytes).expect("structures fit into a slot")
    }

    /// Sets the time that ranks see.
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

    /// Has the thread copy `length` bytes between `address` and the bounce area.
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

    /// 0, or the error number of the last copy.
    pub fn copy_result(&self, caller: Caller) -> i32 {
        // SAFETY: as for `call`.
        unsafe { (&raw const (*self.slot(caller.rank as usize, caller.slot as usize)).copy_result).read_volatile() }
    }

    /// Has a thread that waits for an answer end its process.
    pub fn end(&mut self, caller: Caller) {
        self.set(caller, state::END);
    }

    fn bounce(&self, rank: usize) -> *mut u8 {
        assert!(rank < self.ranks);
        // SAFETY: within the mapping.
        unsafe { self.base.as_ptr().add(mailbox::bounce_offset(self.ranks, rank)) }
    }

    /// Copies the start of a rank's bounce area, at most all of it.
    pub fn read_bounce(&self, rank: usize, out: &mut [u8]) {
        assert!(out.len() <= BOUNCE);
        // SAFETY: mapped for as long as `self` lives, and any value is valid.
        unsafe { self.bounce(rank).copy_to_nonoverlapping(out.as_mut_ptr(), out.len()) };
    }

    /// Fills the start of a rank's bounce area, at most all of it.
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

    /// The doorbell now.
    pub fn doorbell(&self) -> u32 {
        self.header().doorbell.load(Ordering::SeqCst) & !DOORBELL_SLEEPS
    }

    /// Watches the doorbell for a moment; whether it was rung.
    pub fn spin(&mut self, seen: u32) -> bool {
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

    /// Sleeps until the doorbell is rung, or for `timeout`.
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

/// Rings a doorbell; safe in signal handlers.
pub fn ring(bell: &AtomicU32) {
    if bell.fetch_add(DOORBELL_RING, Ordering::SeqCst) & DOORBELL_SLEEPS != 0 {
        // SAFETY: a system call on a mapped word.
        unsafe { libc::syscall(libc::SYS_futex, bell.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
    }
}
