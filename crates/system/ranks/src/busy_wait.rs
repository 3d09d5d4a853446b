// SPDX-License-Identifier: Apache-2.0
//! Detects ranks that busy-wait: their threads read their own memory in a loop until a message changes it.
//!
//! Such a rank makes no call, so its simulated time does not advance and the expected message would never arrive. A
//! computing rank makes no call either, and its time must not advance. To distinguish the two, the threads of a rank
//! without recent calls are stopped and single-stepped ([`super::step_trace`]). A thread polls if it repeats an earlier
//! state exactly ([`super::recurrence`]), or if the exit conditions of its loop depend on memory
//! ([`super::loop_analysis`]).
//!
//! A polling thread stays stopped in its loop, uses no CPU time, and continues when a polled location changes. The
//! simulated time of that change depends on the program alone: the thread may be found polling earlier or later, but
//! does nothing else in between. Only a loop that could also end by itself, for example after a number of retries,
//! depends on how long it ran.
//!
//! This makes waiting fast and reproducible. Progress of simulated time does not depend on it: a thread that used much
//! CPU time no longer holds it back ([`super::free_running`]), nor does one that cannot be inspected (another tracer,
//! or no permission).

use super::free_run_state::Computing;
use super::free_running::REST;
use super::polling_loop::{Location, NotPolling};
use super::polling_threads::locations;
use super::process;
use super::rank_state::{Job, PollingThread, Process, Rank};
use super::step_trace::{StepTrace, recall};
use super::stopped_thread::{self, StoppedThread};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Real time after the last call until the inspection of a rank that was found polling the last time.
const EAGER: Duration = Duration::from_micros(500);
/// Postpones an inspection by this factor, but at most by [`LONGEST_DELAY`], if the rank used far less CPU time than
/// real time: it waits for a processor, or sleeps.
const BUSY: u32 = 9;
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// Number of stops after which one of several threads counts as a habitual waiter. It no longer holds back time in
/// loops where it was stopped, even if they look different each time, because an inspection takes far longer than a
/// poll.
const RECORD: u32 = 24;
/// Replaces [`REST`] after more than [`DOUBTFUL_INSPECTIONS`] inspections of threads that evidently compute.
const LONG_REST: u32 = 16;
const DOUBTFUL_INSPECTIONS: u32 = 4;
/// Maximum time between two inspections.
const LONGEST_REST: Duration = Duration::from_secs(2);

impl Job {
    /// Inspects a rank without recent calls if its inspection is due. Returns the time until the next one.
    pub(super) fn inspect_when_due(&mut self, rank: usize) -> Option<Duration> {
        let quantum = self.spec.busy_wait_quantum?;
        if self.ranks[rank].caller_pid == 0 {
            return None; // no card could write its memory
        }
        let Rank { silence, history, caller_pid, .. } = &mut self.ranks[rank];
        let since = *silence.since.get_or_insert_with(Instant::now);
        let used_now = || process::cpu_time_of_all(*caller_pid).unwrap_or_default();
        let used_before = *silence.used_before.get_or_insert_with(used_now);
        if silence.inspect_after.is_zero() {
            silence.inspect_after = if history.eager { EAGER.min(quantum) } else { quantum };
        }
        let left = silence.inspect_after.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        // On a busy machine the rank has hardly run.
        let used = used_now().saturating_sub(used_before);
        let longest = silence.inspect_after + (silence.inspect_after * BUSY).min(LONGEST_DELAY);
        if used < silence.inspect_after / 2 && since.elapsed() < longest {
            return Some(silence.inspect_after.clamp(EAGER, quantum.max(EAGER)));
        }
        let (begin, cpu_before) = (since.elapsed(), own_cpu_time());
        let look = self.inspect(rank);
        let Rank { silence, history, .. } = &mut self.ranks[rank];
        let (now, cpu) = (since.elapsed(), own_cpu_time().saturating_sub(cpu_before));
        silence.inspected_for += now - begin;
        match look {
            // Threads that were stopped for the inspection need a moment to block again.
            Finding::Polls => (history.eager, silence.inspect_after) = (true, now + EAGER),
            Finding::Disturbed => {}
            // The interval between inspections doubles and is long compared with them, to limit the slowdown of
            // computations. On a busy machine only the CPU time of an inspection is meaningful.
            Finding::Computes(computing) => {
                history.eager = false;
                let run = now.saturating_sub(silence.inspected_for);
                let evidently =
                    silence.inspections > DOUBTFUL_INSPECTIONS && !computing.iter().any(|thread| thread.is_suspect);
                let rest = quantum.max(run).min(LONGEST_REST).max(cpu * if evidently { LONG_REST } else { REST });
                silence.inspect_after = now + rest;
                if let Some(left) = self.release_expired(rank, computing) {
                    // It continues as if it had been found polling.
                    self.ranks[rank].history.eager = left.is_zero();
                    self.ranks[rank].silence.inspect_after = now + rest.min(left.max(EAGER)).max(cpu);
                }
            }
        }
        Some(self.ranks[rank].silence.inspect_after.saturating_sub(since.elapsed()))
    }

    /// Inspects all running threads of a rank without recent calls. All are stopped meanwhile, so that they do not
    /// disturb each other.
    fn inspect(&mut self, rank: usize) -> Finding {
        let shared = &self.shared;
        let disturbed = self.disturbed(rank);
        let Rank { stopped, caller_pid, process, free_running, silence, history, .. } = &self.ranks[rank];
        let waited_for = |tid| matches!(process, Process::Alive(pid) if *pid == tid);
        let known = |tid| free_running.contains_key(&tid) || stopped.iter().any(|poller| poller.thread.tid() == tid);
        let waits = |tid| known(tid) || shared.is_inside(rank, *caller_pid, tid);
        let (mut candidates, mut computing) = (Vec::new(), Vec::new());
        let mut unseen = None;
        let is_embedded = self.embedded.is_some();
        let tids = if is_embedded { vec![0] } else { stopped_thread::running_threads(*caller_pid, waits) };
        for tid in tids {
            let stopped = match &self.embedded {
                Some(host) => host.suspended(rank).map(StoppedThread::embedded).ok_or(NotPolling::Disturbed),
                None => StoppedThread::stop(tid, waited_for(tid), &disturbed),
            };
            match stopped {
                Ok(thread) => candidates.push((
                    tid,
                    StepTrace::new(&thread, silence.inspections.max(history.inspections)),
                    thread,
                )),
                Err(NotPolling::Denied) => {
                    unseen = Some(rank);
                    computing.push(Computing { tid, at: 0, code: BTreeSet::new(), is_suspect: false });
                }
                Err(NotPolling::Disturbed) => return Finding::Disturbed,
                Err(_) => computing.push(Computing { tid, at: 0, code: BTreeSet::new(), is_suspect: false }),
            }
        }
        let has_others = !is_embedded && process::thread_count(*caller_pid).is_none_or(|count| count > 1);
        let (mut found, mut others) = (Vec::new(), Vec::new());
        let (mut is_disturbed, mut needed, mut waiters) = (false, None, BTreeSet::new());
        while !candidates.is_empty() && !is_disturbed {
            let count = candidates.len();
            let mut blocked = Vec::new();
            for (tid, mut trace, thread) in candidates {
                let known = history.recent.get(&tid);
                let recalled = known.and_then(|known| recall(&thread, known, &disturbed));
                let within = known.filter(|known| recalled.is_none() && has_others && known.stops >= RECORD);
                if let Some(at) = within.and_then(|known| known.instruction_in_loop(&thread)) {
                    computing.push(Computing { tid, at, code: BTreeSet::from([at]), is_suspect: true });
                    waiters.insert(at);
                    others.push(thread);
                    continue;
                }
                match recalled.map_or_else(|| trace.find_loop(&thread, None, &disturbed), Ok) {
                    // No card writes the polled locations, and the time of other writes is unknown.
                    Ok(polls) if !polls.endless && history.closed.contains(&locations(&polls)) => {
                        computing.push(Computing { tid, at: trace.at(), code: polls.code, is_suspect: has_others });
                        others.push(thread);
                    }
                    Ok(polls) => {
                        needed = needed.max(trace.inspections_needed());
                        found.push(PollingThread::new(thread, polls));
                    }
                    Err(NotPolling::Blocks) => blocked.push((tid, trace, thread)),
                    Err(NotPolling::Disturbed) => is_disturbed = true,
                    Err(verdict) => {
                        let is_suspect = matches!(verdict, NotPolling::Suspect);
                        computing.push(Computing { tid, at: trace.at(), code: trace.code(), is_suspect });
                        others.push(thread);
                    }
                }
            }
            // If no thread made progress, the remaining ones wait for each other, or for a thread that waits.
            candidates = if blocked.len() < count { blocked } else { Vec::new() };
        }
        drop((disturbed, others, candidates));
        if let Some(rank) = unseen {
            self.uninspectable.get_or_insert(rank);
        }
        let Rank { silence, history, stopped, .. } = &mut self.ranks[rank];
        if let Some(needed) = needed {
            history.inspections = needed;
        }
        silence.inspections += 1;
        history.slow_code.extend(waiters);
        // A loop that may end by itself must be found twice, or match an earlier one: it may be part of a longer
        // computation.
        if found.iter().any(|poller| !poller.polls.endless) {
            let reads: BTreeSet<Location> =
                found.iter().flat_map(|poller| poller.polls.reads.keys()).copied().collect();
            // Its other locations may differ between iterations.
            let known = history.is_known_loop(&reads) || !silence.suspect.is_disjoint(&reads);
            silence.suspect.clone_from(&reads);
            if !known {
                found.retain(|poller| poller.polls.endless);
                found.iter().for_each(|poller| history.note_recent(poller.thread.tid(), &poller.polls));
                stopped.extend(found);
                return Finding::Computes(computing);
            }
            history.note_loop(reads);
        }
        let none = found.is_empty();
        found.iter().for_each(|poller| history.note_recent(poller.thread.tid(), &poller.polls));
        stopped.extend(found);
        if is_disturbed {
            return Finding::Disturbed;
        }
        if none || !computing.is_empty() {
            return Finding::Computes(computing);
        }
        Finding::Polls
    }
}

/// Returns the CPU time of this thread.
fn own_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Result of the inspection of a rank.
enum Finding {
    /// The rank polls; all its running threads are now stopped.
    Polls,
    /// These threads compute, or may not be inspected.
    Computes(Vec<Computing>),
    /// An event that must be handled first interrupted the inspection.
    Disturbed,
}
