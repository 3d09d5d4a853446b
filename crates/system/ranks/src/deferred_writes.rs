// SPDX-License-Identifier: Apache-2.0
//! Decides when card writes to the memory of ranks may be deferred, and performs them.

use super::process;
use super::rank_state::{Job, Rank};
use abi::mailbox::SLOTS;
use std::io;

impl Job {
    /// Returns true if only a reply or a signal makes a rank run: its only thread waits in a call, and the kernel
    /// copies memory.
    pub(super) fn sleeps_in_a_call(&self, rank: usize) -> bool {
        let Rank { inside, stopped, free_running, .. } = &self.ranks[rank];
        let slot = inside.trailing_zeros() as usize;
        !self.serve_copies
            && self.live.is_none()
            && inside.is_power_of_two()
            && slot < SLOTS
            && stopped.is_empty()
            && free_running.is_empty()
            && self.shared.requested(rank, slot) == Some(0)
    }

    /// Performs the deferred writes of the batch.
    pub(super) fn write_batch(&mut self) {
        let Some(rank) = self.batch.rank() else { return };
        let pid = self.ranks[rank].caller_pid;
        let written = match i32::try_from(pid) {
            Ok(pid) if self.is_of_rank(rank, pid as u32) => self.batch.write(pid),
            _ => {
                self.batch.forget();
                Ok(()) // the process has ended
            }
        };
        self.check_written(rank, pid, written);
    }

    /// Writes back the cached pages that cards modified.
    pub(super) fn write_pages(&mut self, rank: usize) {
        let Some(pid) = self.ranks[rank].pages.changed() else { return };
        let is_there = self.is_of_rank(rank, pid as u32);
        let pages = &mut self.ranks[rank].pages;
        let written = if is_there {
            pages.write_back()
        } else {
            pages.forget_changes();
            Ok(()) // the process has ended
        };
        self.check_written(rank, pid as u32, written);
    }

    fn check_written(&mut self, rank: usize, pid: u32, written: io::Result<()>) {
        // A sleeping rank loses memory only through a signal handler or its own end. A dying process loses its memory
        // before the kernel reports it as ended.
        let Err(error) = written else { return };
        if error.raw_os_error() != Some(libc::ESRCH) && !process::has_ended(pid) {
            let message = format!("memory that a card has written while it slept is gone: {error}");
            self.refused.get_or_insert((rank, message));
        }
    }

    /// Flushes the batch before a rank runs.
    pub(super) fn end_batch(&mut self) {
        self.write_batch();
        self.batch.forget_pages();
    }
}
