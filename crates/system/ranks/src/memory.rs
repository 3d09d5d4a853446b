// SPDX-License-Identifier: Apache-2.0
//! Access to the memory of ranks.
//!
//! The kernel copies between processes where that is permitted. Otherwise (containers without the capability, hardened
//! kernels) the rank's library copies, in its thread that waits for a reply.

use super::call::Caller;
use super::rank_state::{Job, Process};
use super::write_batch::Plan;
use super::{process, remote, signals};
use abi::mailbox::{BOUNCE, SLOTS, state};
use std::io;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Error of an access to unmapped or protected memory of a rank.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("rank {rank}: {length} bytes at {address:#x} cannot be {}", if *write { "written" } else { "read" })]
pub struct MemoryFault {
    /// Rank number.
    pub rank: usize,
    /// First address of the access.
    pub address: u64,
    /// Length of the access in bytes.
    pub length: usize,
    /// True for a write.
    pub write: bool,
}

/// Interval at which the rank is checked to be alive while its library copies.
const CHECK: Duration = Duration::from_millis(50);

impl Job {
    /// Reads memory of a rank that waits in a call or polls.
    ///
    /// # Errors
    /// [`MemoryFault`] when a byte is unmapped or unreadable; `out` may then be partly written.
    pub fn read(&mut self, rank: usize, address: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let copied = self.ranks[rank].payload.as_ref().and_then(|payload| payload.get(address, out.len()));
        if let Some(bytes) = copied {
            out.copy_from_slice(bytes);
            return Ok(());
        }
        let fault = MemoryFault { rank, address, length: out.len(), write: false };
        if let Some(host) = &self.embedded {
            return if host.read(rank, address, out) { Ok(()) } else { Err(fault) };
        }
        let may_keep = self.sleeps_in_a_call(rank);
        if may_keep && self.ranks[rank].pages.read(address, out) {
            return Ok(());
        }
        self.write_batch();
        self.write_pages(rank);
        let mut done = 0;
        while done < out.len() {
            let (rest, from) = (&mut out[done..], address.wrapping_add(done as u64));
            done += match self.kernel_copy(rank, |pid| remote::read(pid, from, rest)) {
                Some(copied) => copied.ok_or(fault)?,
                None => {
                    let length = rest.len().min(BOUNCE);
                    self.library_copy(rank, from, length, false).ok_or(fault)?;
                    self.shared.read_bounce(rank, &mut rest[..length]);
                    length
                }
            };
        }
        if may_keep {
            self.note_page(rank, address, out.len(), false);
        }
        Ok(())
    }

    /// Writes memory of a rank that waits in a call or polls.
    ///
    /// # Errors
    /// [`MemoryFault`] when a byte is unmapped or read-only; the bytes before it may be written.
    pub fn write(&mut self, rank: usize, address: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let fault = MemoryFault { rank, address, length: bytes.len(), write: true };
        if let Some(host) = &mut self.embedded {
            let is_written = host.write(rank, address, bytes);
            self.note_write(rank, address, bytes.len() as u64);
            return if is_written { Ok(()) } else { Err(fault) };
        }
        let may_wait = self.sleeps_in_a_call(rank);
        if may_wait && self.ranks[rank].pages.write(address, bytes) {
            return Ok(());
        }
        self.write_pages(rank);
        self.ranks[rank].pages.forget_range(address, bytes.len());
        if self.batch.is_full(rank) {
            self.write_batch();
        }
        match if may_wait { self.batch.plan(rank, address, bytes) } else { Plan::AfterOthers } {
            Plan::Kept => return Ok(()),
            Plan::AfterOthers => self.write_batch(),
            Plan::Now => {}
        }
        let mut done = 0;
        while done < bytes.len() {
            let (rest, to) = (&bytes[done..], address.wrapping_add(done as u64));
            done += match self.kernel_copy(rank, |pid| remote::write(pid, to, rest)) {
                Some(copied) => copied.ok_or(fault)?,
                None => {
                    let length = rest.len().min(BOUNCE);
                    self.shared.write_bounce(rank, &rest[..length]);
                    self.library_copy(rank, to, length, true).ok_or(fault)?;
                    length
                }
            };
        }
        if may_wait {
            self.batch.note(address, bytes.len());
            self.note_page(rank, address, bytes.len(), true);
        }
        self.note_write(rank, address, bytes.len() as u64);
        Ok(())
    }

    /// Records an access to memory of a sleeping rank without deferred writes to it.
    fn note_page(&mut self, rank: usize, address: u64, length: usize, write: bool) {
        let pid = self.ranks[rank].caller_pid;
        if let (Ok(pid), false) = (i32::try_from(pid), self.serve_copies) {
            self.ranks[rank].pages.note(pid, address, length, write);
        }
    }

    /// Records that the card of a rank wrote its memory.
    pub fn note_card_write(&mut self, rank: u32) {
        if !self.card_writes.contains(&rank) {
            self.card_writes.push(rank);
        }
    }

    /// Returns true if the card of a rank wrote its memory since the last call of this function for the rank.
    pub fn take_card_write(&mut self, rank: usize) -> bool {
        let place = self.card_writes.iter().position(|written| *written as usize == rank);
        place.map(|place| self.card_writes.swap_remove(place)).is_some()
    }

    /// Returns true if a rank's process has ended, and with it its memory.
    pub fn has_ended(&self, rank: usize) -> bool {
        matches!(self.ranks[rank].process, Process::Ended(_))
    }

    /// Has the kernel copy between this process and the one that made the rank's last call. Returns the number of bytes
    /// copied, `Some(None)` if the first byte is unmapped, and `None` where the system does not permit it.
    fn kernel_copy(&mut self, rank: usize, copy: impl FnOnce(i32) -> io::Result<usize>) -> Option<Option<usize>> {
        if self.serve_copies {
            return None;
        }
        // The process may have ended since its call, and its id may be reused.
        let pid = Some(self.ranks[rank].caller_pid).filter(|&pid| self.is_of_rank(rank, pid));
        let Some(pid) = pid.and_then(|pid| i32::try_from(pid).ok()) else { return Some(None) };
        let copied = copy(pid);
        if matches!(copied.as_ref().map_err(io::Error::raw_os_error), Err(Some(libc::EPERM | libc::ENOSYS))) {
            if self.live.is_some() {
                let message = "the system forbids the card to access its memory (process_vm_readv): a live card needs the \
                               right to trace processes (CAP_SYS_PTRACE, or kernel.yama.ptrace_scope at most 1)";
                self.refused.get_or_insert((rank, message.into()));
                return Some(None);
            }
            self.serve_copies = true;
            self.shared.end_posting();
            return None;
        }
        Some(copied.ok().filter(|&copied| copied > 0))
    }

    /// Has a waiting thread of the rank copy between the rank's memory and its bounce buffer.
    fn library_copy(&mut self, rank: usize, address: u64, length: usize, write: bool) -> Option<()> {
        let waits = |k: usize| matches!(self.shared.activity(rank, k), state::REQUEST | state::COPIED);
        let slot = (0..SLOTS).find(|&k| self.ranks[rank].inside & 1 << k != 0 && waits(k))?;
        let caller = Caller { rank: rank as u32, slot: slot as u32 };
        self.shared.ask_copy(caller, address, length, write);
        loop {
            let seen = self.shared.doorbell();
            if self.shared.activity(rank, slot) == state::COPIED {
                return (self.shared.copy_result(caller) == 0).then_some(());
            }
            let is_late = self.deadline.is_some_and(|deadline| deadline <= Instant::now());
            let has_ended = matches!(self.ranks[rank].process, Process::Alive(pid) if process::has_ended(pid));
            if has_ended || is_late || signals::received().is_some() {
                return None;
            }
            if !self.shared.watch_doorbell(seen) {
                self.shared.sleep(seen, Some(CHECK));
            }
        }
    }
}
