//! When writes of cards to the memory of ranks may wait, and when they are made.

use super::process;
use super::rank_state::{Job, Rank};
use abi::mailbox::SLOTS;
use std::io;

impl Job {
    /// Whether nothing but an answer, or a signal, lets a rank run: its only thread waits in a call, and the kernel copies.
    pub(super) fn sleeps_in_a_call(&self, rank: usize) -> bool {
        let Rank { inside, stopped, free_running, .. } = &self.ranks[rank];
        let slot = inside.trailing_zeros() as usize;
        !self.serve_copies
            && inside.is_power_of_two()
            && slot < SLOTS
            && stopped.is_empty()
            && free_running.is_empty()
            && self.shared.requested(rank, slot) == Some(0)
    }

    /// Makes the writes that wait.
    pub(super) fn write_batch(&mut self) {
        let Some(rank) = self.batch.rank() else { return };
        let pid = self.ranks[rank].caller_pid;
        let written = match i32::try_from(pid) {
            Ok(pid) if self.is_of_rank(rank, pid as u32) => self.batch.write(pid),
            _ => {
                self.batch.forget();
                Ok(()) // it has ended
            }
        };
        self.check_written(rank, pid, written);
    }

    /// Writes what cards have changed in the pages of a rank that are kept.
    pub(super) fn write_pages(&mut self, rank: usize) {
        let Some(pid) = self.ranks[rank].pages.changed() else { return };
        let is_there = self.is_of_rank(rank, pid as u32);
        let pages = &mut self.ranks[rank].pages;
        let written = if is_there {
            pages.write_back()
        } else {
            pages.forget_changes();
            Ok(()) // it has ended
        };
        self.check_written(rank, pid as u32, written);
    }

    fn check_written(&mut self, rank: usize, pid: u32, written: io::Result<()>) {
        // A rank that sleeps loses memory only by a signal handler, or if it is ended. A process that is being ended has no memory before
        // it counts as ended.
        let Err(error) = written else { return };
        if error.raw_os_error() != Some(libc::ESRCH) && !process::has_ended(pid) {
            let message = format!("memory that a card has written while it slept is gone: {error}");
            self.refused.get_or_insert((rank, message));
        }
    }

    /// A rank is about to run.
    pub(super) fn end_batch(&mut self) {
        self.write_batch();
        self.batch.forget_pages();
    }
}
