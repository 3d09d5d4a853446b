// SPDX-License-Identifier: Apache-2.0
//! Ranks with several threads.
//!
//! The behaviour of such a rank must not depend on how the machine schedules its threads. It therefore pauses only when
//! each of them waits: in the library, stopped in a polling loop, or blocked in the kernel.

use super::free_run_state::FreeRunState;
use super::process::{Activity, tasks, timed_sleep};
use super::rank_state::{Job, Rank};
use super::shared_memory::SharedMemory;
use super::thread_files::ThreadFiles;
use abi::mailbox::state;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Minimum interval between checks whether all threads wait.
pub const PERIOD: Duration = Duration::from_micros(50);
/// Context switch count of each blocked thread, by process and thread id.
pub(super) type Census = BTreeMap<(u32, u32), u64>;

/// Returns the threads of a rank that wait in calls: process id, thread id (0 for the only one), and true if the thread
/// sleeps.
fn callers(shared: &SharedMemory, rank: usize) -> Vec<(u32, u32, bool)> {
    let calls = shared.claimed(rank, 0).filter(|&k| matches!(shared.activity(rank, k), state::REQUEST | state::COPIED));
    calls.map(|k| (shared.pid(rank, k), shared.tid(rank, k), shared.sleeps(rank, k))).collect()
}

/// Finding about the threads of a rank.
enum Look {
    /// Each of them waits.
    AllWait,
    /// One of them runs.
    OneRuns,
    /// Some wait for something else, or start or end.
    Unclear,
}

impl Look {
    /// Returns the finding about one thread ([`ThreadFiles::waits_for_futex`]).
    fn of(waits: Option<bool>) -> Look {
        match waits {
            Some(true) => Look::AllWait,
            Some(false) => Look::OneRuns,
            None => Look::Unclear,
        }
    }
}

/// Finds out if each thread of `process`, and of all processes that wait in calls, waits for the reply to a call, or in
/// a futex call outside of the library, like the idle threads of a library. [`Look::AllWait`] is equivalent to a
/// [`census`] of them, but far cheaper.
///
/// Only a reply, a signal or the end of its process lets a thread leave a call, so the callers need not be observed at
/// the same time. A single other thread that sleeps then has no thread to wake it. Several might wake each other, so
/// they are observed twice, and none may run in between.
fn look_at_all(files: &ThreadFiles, shared: &SharedMemory, rank: usize, process: u32) -> Look {
    let callers = callers(shared, rank);
    // A caller that went to sleep and is awake runs a signal handler.
    let sleeps = |pid, tid| files.waits_for_futex(pid, if tid == 0 { pid } else { tid }) == Some(true);
    if callers.iter().any(|&(pid, tid, is_asleep)| is_asleep && !sleeps(pid, tid)) {
        return Look::OneRuns;
    }
    let mut others = Vec::new();
    let pids: BTreeSet<u32> = callers.iter().map(|(pid, ..)| *pid).chain((process != 0).then_some(process)).collect();
    for pid in pids {
        let of_process = || callers.iter().filter(|(caller, ..)| *caller == pid);
        let Some(mut tids) = files.tasks(pid) else { return Look::Unclear };
        if of_process().all(|&(.., is_asleep)| is_asleep) && tids.len() == of_process().count() {
            continue;
        }
        let before = tids.len();
        tids.retain(|&tid| !of_process().any(|&(_, caller, _)| caller == tid || tid == pid && caller == 0));
        // The threads of an exiting process disappear one by one.
        if before - tids.len() != of_process().count() {
            files.forget(pid);
            return Look::Unclear;
        }
        others.extend(tids.into_iter().map(|tid| (pid, tid)));
    }
    if let [(pid, tid)] = others[..] {
        return Look::of(files.waits_for_futex(pid, tid));
    }
    // A thread that has not run since it was last found blocked has woken no other one.
    if others.iter().all(|&(pid, tid)| files.still_waits(pid, tid)) {
        return Look::AllWait;
    }
    for &(pid, tid) in &others {
        match Look::of(files.note_futex_wait(pid, tid)) {
            Look::AllWait => {}
            other => return other,
        }
    }
    if !others.iter().all(|&(pid, tid)| files.still_waits(pid, tid)) {
        return Look::OneRuns;
    }
    Look::AllWait
}

/// Returns true if each thread of a rank waits in a call, or in a futex call without a time limit ([`look_at_all`]).
pub(super) fn all_wait(job: &Job, rank: usize) -> bool {
    matches!(look_at_all(&job.thread_files, &job.shared, rank, job.ranks[rank].caller_pid), Look::AllWait)
}

/// Lists the blocked threads of a rank: those of `process` and of all processes that wait in calls. Returns `None` if a
/// thread runs that neither spins on its reply nor is `free_running`, or while a process exits.
fn census(
    files: &ThreadFiles,
    shared: &SharedMemory,
    rank: usize,
    process: u32,
    free_running: &BTreeMap<u32, FreeRunState>,
) -> Option<Census> {
    let callers = callers(shared, rank);
    let mut blocked = Census::new();
    for pid in callers.iter().map(|&(pid, ..)| pid).chain((process != 0).then_some(process)) {
        let tids = files.tasks(pid)?;
        // The threads of an exiting process disappear one by one.
        if callers.iter().any(|&(process, tid, _)| process == pid && tid != 0 && !tids.contains(&tid)) {
            return None;
        }
        let (mut alive, mut ended) = (false, false);
        let mut busy = false;
        for tid in tids {
            let is_thread = |thread| thread == tid || tid == pid && thread == 0;
            let sleeps =
                callers.iter().find(|&&(process, thread, _)| process == pid && is_thread(thread)).map(|&(.., s)| s);
            match (files.activity(pid, tid), sleeps) {
                (Activity::Runs, Some(false)) => (alive, busy) = (true, true),
                (Activity::Runs | Activity::Waits(_), None) if free_running.contains_key(&tid) => alive = true,
                // A caller that went to sleep runs a signal handler, which may end the process.
                (Activity::Runs, _) | (Activity::Ended, Some(_)) => return None,
                (Activity::Waits(times), _) => {
                    alive = true;
                    blocked.insert((pid, tid), times);
                }
                (Activity::Ended, None) => ended = true,
            }
        }
        // While a process exits, its threads in the library are woken to end, too.
        if !alive || ended && busy {
            return None;
        }
    }
    Some(blocked)
}

/// One sleep of a thread: thread id and context switch count.
pub(super) type Sleep = (u32, String);

impl Job {
    /// Returns true if all threads of a rank wait until a call is answered, a polled location is written, or a system
    /// call ends in real time. Ignores free-running threads. Releases stopped threads if another thread wrote their
    /// polled locations.
    pub(super) fn is_settled(&mut self, rank: usize) -> bool {
        if self.release_changed(rank, false) {
            return false;
        }
        let Rank { caller_pid, free_running, stopped, .. } = &self.ranks[rank];
        if self.embedded.is_some() {
            return !stopped.is_empty() || !free_running.is_empty() || self.has_callers(rank);
        }
        if stopped.is_empty() && free_running.is_empty() {
            match look_at_all(&self.thread_files, &self.shared, rank, *caller_pid) {
                Look::AllWait => return true,
                Look::OneRuns => return false,
                Look::Unclear => {}
            }
        }
        let before = self.census(rank);
        // No thread ran between the two lists, so all of them waited at the same time.
        before.is_some() && !self.release_changed(rank, true) && before == self.census(rank)
    }

    /// Lists the blocked threads of a rank ([`census`]).
    pub(super) fn census(&self, rank: usize) -> Option<Census> {
        if self.embedded.is_some() {
            return Some(Census::new());
        }
        let Rank { caller_pid, free_running, .. } = &self.ranks[rank];
        census(&self.thread_files, &self.shared, rank, *caller_pid, free_running)
    }

    /// Returns true if a thread runs freely, or sleeps in real time outside of the library in a system call with a
    /// time-out.
    pub fn has_sleepers(&self) -> bool {
        self.has_free_running() || !self.asleep.is_empty() && !self.sleeps().is_empty()
    }

    /// Returns true if only replies to calls cause changes: all threads wait in the library, and the rank has a single
    /// calling thread.
    pub fn has_one_active_thread(&self, rank: usize) -> bool {
        let is_still = |rank: &Rank| rank.stopped.is_empty() && rank.free_running.is_empty();
        self.shared.claimed(rank, 0).count() == 1 && self.ranks.iter().all(is_still) && !self.has_sleepers()
    }

    /// Returns the sleeps of all threads of paused ranks.
    pub(super) fn sleeps(&self) -> Vec<Sleep> {
        let of = |&rank: &usize| {
            let Rank { caller_pid: process, free_running, .. } = &self.ranks[rank];
            let tids = tasks(*process).unwrap_or_default().into_iter();
            tids.filter(move |&tid| !free_running.contains_key(&tid) && !self.shared.is_inside(rank, *process, tid))
                .filter_map(move |tid| Some((tid, timed_sleep(*process, tid)?)))
        };
        if self.embedded.is_some() {
            return Vec::new();
        }
        self.asleep.iter().flat_map(of).collect()
    }
}
