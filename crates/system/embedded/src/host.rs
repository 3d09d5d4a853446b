// SPDX-License-Identifier: Apache-2.0
//! All ranks of a job in this process.

use crate::context;
use crate::faults::Clock;
use crate::program::{PAGE, Program};
use crate::rank::{Rank, Start};
use crate::streams::{self, File, Input};
use crate::suspended::Suspended;
use crate::types::{Job, Stop, Style};
use portals::session::Session;
use std::ffi::{CString, c_int};
use std::hash::Hasher;
use std::io;
use std::ops::Range;
use std::ptr::null_mut;
use std::rc::Rc;

/// The ranks of a job.
pub struct Host {
    program: Rc<Program>,
    style: Style,
    job: Job,
    /// Addresses of all ranks.
    area: Range<u64>,
    /// Bytes of addresses of a rank.
    share: u64,
    /// Loaded ranks; null for others.
    ranks: Vec<*mut Rank>,
    /// Output streams of all ranks that were started, in the order of their creation.
    outputs: Vec<*mut File>,
    _clock: Clock,
}

/// First address of the ranks, if it is free: the same in each run.
const FIRST: u64 = 0x1000_0000_0000;
/// Addresses for all ranks, and the most for one, in bytes.
const ADDRESSES: u64 = 32 << 40;
const MOST_ADDRESSES: u64 = 64 << 30;
/// Size of a rank's stack unless the limit of the system is another.
const STACK: u64 = 8 << 20;
/// Number of ranks from which each has few mappings, as their number in a process is limited (vm.max_map_count).
const MANY: usize = 8192;
/// Space between ranks, which is never mapped.
const GAP: u64 = 1 << 20;

impl Host {
    /// Reserves addresses for the ranks of a program.
    ///
    /// # Safety
    /// The memory of `job` must be a job's shared memory and stay mapped as long as the host.
    ///
    /// # Errors
    /// The system's error when it provides no addresses.
    pub unsafe fn new(program: Rc<Program>, style: Style, job: Job) -> io::Result<Host> {
        let share = (ADDRESSES / job.ranks as u64).min(MOST_ADDRESSES) & !(PAGE - 1);
        let length = share * job.ranks as u64;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: reserves free addresses.
        let reserve = |at: u64, more: c_int| unsafe {
            libc::mmap(at as *mut _, length as usize, libc::PROT_NONE, flags | more, -1, 0)
        };
        let mut start = reserve(FIRST, libc::MAP_FIXED_NOREPLACE);
        if start == libc::MAP_FAILED {
            start = reserve(0, 0);
        }
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let area = start as u64..start as u64 + length;
        let ranks = vec![null_mut(); job.ranks];
        Ok(Host { program, style, job, area, share, ranks, outputs: Vec::new(), _clock: Clock::new()? })
    }

    fn range(&self, rank: usize) -> Range<u64> {
        let start = self.area.start + rank as u64 * self.share;
        start..start + self.share - GAP
    }

    /// Loads the program for a rank with these additional environment variables.
    ///
    /// # Errors
    /// The system's error when it provides no memory.
    pub fn start(&mut self, rank: usize, variables: &[CString]) -> io::Result<()> {
        // SAFETY: `new` requires it.
        let session = unsafe { Session::embedded(rank, self.job.ranks, self.job.memory, self.job.file) };
        let start = Start {
            area: self.range(rank),
            stack_size: stack_size().min(self.share / 4) & !(PAGE - 1),
            is_compact: self.job.ranks > MANY,
            arguments: &self.style.arguments,
            common: &self.style.variables,
            variables,
            session,
            input: if !self.program.uses_input {
                Input::None
            } else if rank == 0 {
                Input::Inherited
            } else {
                Input::Empty
            },
            forwards: self.style.forwards,
        };
        let state = Rank::new(&self.program, start)?;
        self.outputs.extend(&state.streams.standard[1..]);
        self.ranks[rank] = Box::into_raw(state);
        Ok(())
    }

    /// Returns a loaded rank.
    fn state(&self, rank: usize) -> Option<&Rank> {
        // SAFETY: null, or a rank that only `release` drops; the simulator runs, so the rank does not.
        unsafe { self.ranks[rank].as_ref() }
    }

    /// Returns a loaded rank.
    fn state_mut(&mut self, rank: usize) -> Option<&mut Rank> {
        // SAFETY: as above.
        unsafe { self.ranks[rank].as_mut() }
    }

    /// Continues a rank until it is suspended again. Its memory remains until [`Host::end`].
    ///
    /// # Panics
    /// If the rank is not loaded.
    pub fn run(&mut self, rank: usize) -> Stop {
        assert!(!self.ranks[rank].is_null(), "the rank is loaded");
        // SAFETY: a loaded rank is suspended, and a host does not leave its thread.
        unsafe { Rank::run(self.ranks[rank]) }
    }

    /// Returns a rank that was interrupted while it computed.
    pub fn suspended(&self, rank: usize) -> Option<Suspended> {
        let is_interrupted = !self.state(rank)?.interrupted.is_null();
        is_interrupted.then(|| Suspended { rank: self.ranks[rank] })
    }

    /// Hashes the registers and the memory of a rank that waits for the answer to its call. Returns the number of
    /// bytes; `None` if there are more than `most`, or the rank does not wait.
    pub fn hash(&self, rank: usize, most: u64, hasher: &mut impl Hasher) -> Option<u64> {
        let state = self.state(rank).filter(|state| state.interrupted.is_null() && state.stop == Stop::Waits)?;
        // SAFETY: the rank is suspended, and these parts of its memory are mapped and readable.
        unsafe { state.hash(most, hasher) }
    }

    /// Returns the output that a rank has written since the last call, if the simulator forwards it.
    pub fn take_output(&mut self, rank: usize) -> [Vec<u8>; 2] {
        self.state_mut(rank).map_or_else(Default::default, |state| std::mem::take(&mut state.streams.output))
    }

    /// Ends a rank at once, and discards its memory and its unwritten output.
    pub fn end(&mut self, rank: usize) {
        self.release(rank);
    }

    /// Writes the buffered output of a rank.
    pub fn flush(&mut self, rank: usize) {
        if let Some(state) = self.state_mut(rank) {
            state.streams.flush();
        }
    }

    /// Copies memory of a rank to `out`. Returns false if a byte is not the rank's or unreadable; `out` may then be
    /// partly written.
    pub fn read(&self, rank: usize, address: u64, out: &mut [u8]) -> bool {
        // SAFETY: the destination is valid, and faults of the source are caught.
        self.owns(rank, address, out.len())
            && unsafe { context::copy(out.as_mut_ptr(), address as *const u8, out.len()) }
    }

    /// Copies `bytes` to memory of a rank. Returns false if a byte is not the rank's or read-only; the bytes before it
    /// may be written.
    pub fn write(&mut self, rank: usize, address: u64, bytes: &[u8]) -> bool {
        // SAFETY: the memory is the rank's, which is suspended, and faults are caught.
        self.owns(rank, address, bytes.len())
            && unsafe { context::copy(address as *mut u8, bytes.as_ptr(), bytes.len()) }
    }

    fn owns(&self, rank: usize, address: u64, length: usize) -> bool {
        let end = address.checked_add(length as u64);
        let within = |start: u64, last: u64| start <= address && end.is_some_and(|end| end <= last);
        let range = |state: &Rank| {
            let (start, last) = state.library.lent.get();
            within(state.area.start, state.area.end) || within(start, last)
        };
        length == 0 || self.state(rank).is_some_and(range)
    }

    /// Drops a rank without writing its buffered output, and unmaps its memory.
    fn release(&mut self, rank: usize) {
        let state = std::mem::replace(&mut self.ranks[rank], null_mut());
        if state.is_null() {
            return;
        }
        // SAFETY: from `Box::into_raw` in `start`.
        let mut state = unsafe { Box::from_raw(state) };
        state.streams.discard();
        let range = self.range(rank);
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: the rank's addresses, which nothing uses any more.
        unsafe { libc::mmap(range.start as *mut _, self.share as usize, libc::PROT_NONE, flags, -1, 0) };
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        (0..self.ranks.len()).for_each(|rank| self.release(rank));
        // SAFETY: the streams of dropped ranks, and the reserved addresses.
        unsafe {
            streams::close(self.outputs.iter().rev().copied());
            libc::munmap(self.area.start as *mut _, (self.area.end - self.area.start) as usize);
        }
    }
}

/// Returns the size of the stack that a process of this user would have.
fn stack_size() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: a valid structure.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_STACK, &raw mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY { limit.rlim_cur.max(64 << 10) } else { STACK }
}

const _: () = assert!(ADDRESSES / (1 << 16) > STACK, "the largest job has room for stacks");
