//! Detection of ranks that busy-wait: their threads read their own memory in a loop until a message changes it.
//!
//! Such a rank makes no call, so its simulated time stands still and the message that it waits for would never arrive. A
//! rank that computes makes no call either, and its time has to stand still. To tell the two apart, the threads of a rank
//! that has made no call for a while are stepped through a few iterations of their loop ([`super::steps`]), and the
//! conditions that could end the loop are determined ([`super::loops`]).
//!
//! A thread that polls is stopped in its loop, uses no CPU time, and runs on when the contents of a polled place change.
//! The simulated time of that change depends on the program alone: the thread may be found polling sooner or later, but it
//! would have done nothing else in between. Only a loop that could also end by itself, for example after a number of
//! tries, depends on how long it has run.
//!
//! Threads that cannot be inspected (another tracer, or no permission) are treated as computing.

use super::memory_loop::{NoLoop, Place};
use super::state::{Job, PollingThread, Process, Rank};
use super::steps;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The real time after which a rank without calls is inspected that was found polling at its last inspection.
const EAGER: Duration = Duration::from_micros(500);
/// How many times as long as an inspection has taken a rank computes at least until the next one.
const REST: u32 = 10;
/// The number of groups of loops that are remembered for each rank.
const LOOPS: usize = 256;

impl Job {
    /// Inspects a rank that makes no call, if its next inspection is due. Returns the time until the next one.
    pub(super) fn inspect_when_due(&mut self, rank: usize) -> Option<Duration> {
        let quantum = self.spec.busy_wait_quantum?;
        if self.ranks[rank].caller_pid == 0 {
            return None; // no card could write its memory
        }
        let Rank { silence, history, .. } = &mut self.ranks[rank];
        let since = *silence.since.get_or_insert_with(Instant::now);
        if silence.inspect_after.is_zero() {
            silence.inspect_after = if history.eager { EAGER.min(quantum) } else { quantum };
        }
        let left = silence.inspect_after.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        let begin = since.elapsed();
        let look = self.inspect(rank);
        let Rank { silence, history, .. } = &mut self.ranks[rank];
        match look {
            Finding::Polls => history.eager = true,
            // The time between two inspections doubles, and is long beside them, so that they do not slow down computations.
            Finding::Computes => {
                history.eager = false;
                let now = since.elapsed();
                silence.inspect_after = quantum.max(now * 2).max(now + (now - begin) * REST);
            }
            Finding::Disturbed => {}
        }
        Some(silence.inspect_after.saturating_sub(since.elapsed()))
    }

    /// Inspects all running threads of a rank that makes no call.
    fn inspect(&mut self, rank: usize) -> Finding {
        let shared = &self.shared;
        let disturbed = self.disturbed(rank);
        let Rank { held, caller_pid, process, .. } = &self.ranks[rank];
        let waited_for = |tid| matches!(process, Process::Alive(pid) if *pid == tid);
        let known = |tid| held.iter().any(|poller| poller.thread.is(tid));
        let waits = |tid| known(tid) || shared.is_inside(rank, *caller_pid, tid);
        let mut found = Vec::new();
        for tid in steps::running_threads(*caller_pid, waits) {
            match steps::find_polling(tid, waited_for(tid), &disturbed) {
                Ok((polls, thread)) => found.push(PollingThread { thread, polls }),
                Err(NoLoop::Computes) => return Finding::Computes,
                Err(NoLoop::Disturbed) => return Finding::Disturbed,
                Err(NoLoop::Denied) => {
                    drop(disturbed);
                    self.unseen.get_or_insert(rank);
                    return Finding::Computes;
                }
            }
        }
        drop(disturbed);
        if found.is_empty() {
            return Finding::Computes;
        }
        let Rank { silence, history, held, .. } = &mut self.ranks[rank];
        // A loop that may end by itself must be found twice, or as before: it may be part of a longer computation.
        if found.iter().any(|poller| !poller.polls.endless) {
            let reads: BTreeSet<Place> = found.iter().flat_map(|poller| &poller.polls.reads).copied().collect();
            let known = history.loops.contains(&reads) || silence.suspect == reads;
            silence.suspect.clone_from(&reads);
            if !known {
                return Finding::Computes;
            }
            if history.loops.len() < LOOPS {
                history.loops.insert(reads);
            }
        }
        let before = held.len();
        held.extend(found);
        // The threads may wait for each other, or for a thread that was woken in the meantime.
        if self.is_settled(rank) {
            return Finding::Polls;
        }
        let held = &mut self.ranks[rank].held;
        held.truncate(before.min(held.len()));
        Finding::Disturbed
    }
}

/// The result of the inspection of a rank.
enum Finding {
    /// It polls: all its threads that ran are stopped now.
    Polls,
    /// It computes, or may not be inspected.
    Computes,
    /// Something has happened that must be handled first.
    Disturbed,
}
