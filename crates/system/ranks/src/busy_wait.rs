//! Detection of ranks that busy-wait: their threads read their own memory in a loop until a message changes it.
//!
//! Such a rank makes no call, so its simulated time stands still and the message that it waits for would never arrive. A
//! rank that computes makes no call either, and its time has to stand still. To tell the two apart, the threads of a rank
//! that has made no call for a while are stopped and stepped ([`super::walk`]). A thread polls if it repeats itself exactly
//! ([`super::recurrence`]), or if the conditions that could end its loop depend on memory ([`super::loops`]).
//!
//! A thread that polls is stopped in its loop, uses no CPU time, and runs on when the contents of a polled place change.
//! The simulated time of that change depends on the program alone: the thread may be found polling sooner or later, but it
//! would have done nothing else in between. Only a loop that could also end by itself, for example after a number of
//! tries, depends on how long it has run.
//!
//! This only makes waiting fast, and the same in each run. That time goes on at all does not depend on it: a thread that has used
//! much CPU time no longer holds it back ([`super::adrift`]), nor does one that cannot be inspected (another tracer, or no
//! permission).

use super::adrift::REST;
use super::drift::Computing;
use super::held::places;
use super::memory_loop::{NoLoop, Place};
use super::process;
use super::state::{Job, PollingThread, Process, Rank};
use super::steps::{self, StoppedThread};
use super::walk::{Walk, recall};
use rustix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// The real time after which a rank without calls is inspected that was found polling at its last inspection.
const EAGER: Duration = Duration::from_micros(500);
/// The factor by which an inspection comes later, by [`LONGEST_DELAY`] at most, if the rank has used far less CPU time than it was
/// silent: it waits for a processor, or sleeps.
const BUSY: u32 = 9;
const LONGEST_DELAY: Duration = Duration::from_secs(1);
/// Number of stops after which one of several threads waits by habit. It then no longer holds time back where
/// it was stopped, even if its loops look different each time: each look takes far longer than a poll.
const RECORD: u32 = 24;
/// The factor that stands for [`REST`] after this many inspections of threads that evidently compute.
const LONG_REST: u32 = 16;
const DOUBTFUL_LOOKS: u32 = 4;
/// The longest time between two inspections.
const LONGEST_REST: Duration = Duration::from_secs(2);

impl Job {
    /// Inspects a rank that makes no call, if its next inspection is due. Returns the time until the next one.
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
        // On a busy machine it has hardly run.
        let used = used_now().saturating_sub(used_before);
        let longest = silence.inspect_after + (silence.inspect_after * BUSY).min(LONGEST_DELAY);
        if used < silence.inspect_after / 2 && since.elapsed() < longest {
            return Some(silence.inspect_after.clamp(EAGER, quantum.max(EAGER)));
        }
        let (begin, cpu_before) = (since.elapsed(), own_cpu_time());
        let look = self.inspect(rank);
        let Rank { silence, history, .. } = &mut self.ranks[rank];
        let (now, cpu) = (since.elapsed(), own_cpu_time().saturating_sub(cpu_before));
        silence.looked_for += now - begin;
        match look {
            // Threads that were stopped for the inspection need a moment to wait again.
            Finding::Polls => (history.eager, silence.inspect_after) = (true, now + EAGER),
            Finding::Disturbed => {}
            // The time between two inspections doubles, and is long beside them, so that they do not slow down computations. How long one
            // takes on a busy machine says nothing: its CPU time counts.
            Finding::Computes(computing) => {
                history.eager = false;
                let run = now.saturating_sub(silence.looked_for);
                let evidently = silence.looks > DOUBTFUL_LOOKS && !computing.iter().any(|thread| thread.is_suspect);
                let rest = quantum.max(run).min(LONGEST_REST).max(cpu * if evidently { LONG_REST } else { REST });
                silence.inspect_after = now + rest;
                if let Some(left) = self.cut_loose(rank, computing) {
                    // It goes on as if it had been found polling.
                    self.ranks[rank].history.eager = left.is_zero();
                    self.ranks[rank].silence.inspect_after = now + rest.min(left.max(EAGER)).max(cpu);
                }
            }
        }
        Some(self.ranks[rank].silence.inspect_after.saturating_sub(since.elapsed()))
    }

    /// Inspects all running threads of a rank that makes no call. All of them are stopped meanwhile, so that they do not disturb
    /// each other.
    fn inspect(&mut self, rank: usize) -> Finding {
        let shared = &self.shared;
        let disturbed = self.disturbed(rank);
        let Rank { held, caller_pid, process, adrift, silence, history, .. } = &self.ranks[rank];
        let waited_for = |tid| matches!(process, Process::Alive(pid) if *pid == tid);
        let known = |tid| adrift.contains_key(&tid) || held.iter().any(|poller| poller.thread.tid() == tid);
        let waits = |tid| known(tid) || shared.is_inside(rank, *caller_pid, tid);
        let (mut stopped, mut computing) = (Vec::new(), Vec::new());
        let mut unseen = None;
        for tid in steps::running_threads(*caller_pid, waits) {
            match StoppedThread::stop(tid, waited_for(tid), &disturbed) {
                Ok(thread) => stopped.push((tid, Walk::new(&thread, silence.looks.max(history.looks)), thread)),
                Err(NoLoop::Denied) => {
                    unseen = Some(rank);
                    computing.push(Computing { tid, at: 0, code: BTreeSet::new(), is_suspect: false });
                }
                Err(NoLoop::Disturbed) => return Finding::Disturbed,
                Err(_) => computing.push(Computing { tid, at: 0, code: BTreeSet::new(), is_suspect: false }),
            }
        }
        let has_others = process::thread_count(*caller_pid).is_none_or(|count| count > 1);
        let (mut found, mut others) = (Vec::new(), Vec::new());
        let (mut is_disturbed, mut needed, mut waiters) = (false, None, BTreeSet::new());
        while !stopped.is_empty() && !is_disturbed {
            let count = stopped.len();
            let mut blocked = Vec::new();
            for (tid, mut walk, thread) in stopped {
                let known = history.recent.get(&tid);
                let recalled = known.and_then(|known| recall(&thread, known, &disturbed));
                let within = known.filter(|known| recalled.is_none() && has_others && known.stops >= RECORD);
                if let Some(at) = within.and_then(|known| known.place_of(&thread)) {
                    computing.push(Computing { tid, at, code: BTreeSet::from([at]), is_suspect: true });
                    waiters.insert(at);
                    others.push(thread);
                    continue;
                }
                match recalled.map_or_else(|| walk.find_loop(&thread, None, &disturbed), Ok) {
                    // It is known that no card writes what the loop polls, and not when somebody else does.
                    Ok(polls) if !polls.endless && history.closed.contains(&places(&polls)) => {
                        computing.push(Computing { tid, at: walk.at(), code: polls.code, is_suspect: has_others });
                        others.push(thread);
                    }
                    Ok(polls) => {
                        needed = needed.max(walk.looks_needed());
                        found.push(PollingThread::new(thread, polls));
                    }
                    Err(NoLoop::Blocks) => blocked.push((tid, walk, thread)),
                    Err(NoLoop::Disturbed) => is_disturbed = true,
                    Err(verdict) => {
                        let is_suspect = matches!(verdict, NoLoop::Suspect);
                        computing.push(Computing { tid, at: walk.at(), code: walk.code(), is_suspect });
                        others.push(thread);
                    }
                }
            }
            // If none went on, those that are left wait for each other, or for a thread that waits.
            stopped = if blocked.len() < count { blocked } else { Vec::new() };
        }
        drop((disturbed, others, stopped));
        if let Some(rank) = unseen {
            self.unseen.get_or_insert(rank);
        }
        let Rank { silence, history, held, .. } = &mut self.ranks[rank];
        if let Some(needed) = needed {
            history.looks = needed;
        }
        silence.looks += 1;
        history.slow_code.extend(waiters);
        // A loop that may end by itself must be found twice, or as before: it may be part of a longer computation.
        if found.iter().any(|poller| !poller.polls.endless) {
            let reads: BTreeSet<Place> = found.iter().flat_map(|poller| poller.polls.reads.keys()).copied().collect();
            // The other places that it looks at may differ from round to round.
            let known = history.is_known_loop(&reads) || !silence.suspect.is_disjoint(&reads);
            silence.suspect.clone_from(&reads);
            if !known {
                found.retain(|poller| poller.polls.endless);
                found.iter().for_each(|poller| history.note_recent(poller.thread.tid(), &poller.polls));
                held.extend(found);
                return Finding::Computes(computing);
            }
            history.note_loop(reads);
        }
        let none = found.is_empty();
        found.iter().for_each(|poller| history.note_recent(poller.thread.tid(), &poller.polls));
        held.extend(found);
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

/// The result of the inspection of a rank.
enum Finding {
    /// It polls: all its threads that ran are stopped now.
    Polls,
    /// These threads compute, or may not be inspected.
    Computes(Vec<Computing>),
    /// Something has happened that must be handled first.
    Disturbed,
}
