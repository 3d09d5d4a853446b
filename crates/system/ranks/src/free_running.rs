// SPDX-License-Identifier: Apache-2.0
//! Free-running threads: they run user code and do not hold back simulated time.
//!
//! The inspection infers from instructions that a thread waits, so it can miss a waiting thread. A thread that uses
//! much CPU time while everything else waits for simulated time is therefore set free: time advances, and its next call
//! happens whenever it arrives. An unrecognized loop thus never hangs a run, but the moment at which such a thread
//! notices a change depends on the machine; the run warns about it.
//!
//! A thread that evidently computes, because it accesses new memory locations or only counts, may use far more CPU
//! time.

use super::free_run_state::{Computing, FreeRunReport, FreeRunState};
use super::job_spec::CPU_LIMIT;
use super::polling_loop::{Location, NotPolling, PollingLoop};
use super::process::{self, Activity, tasks, timed_sleep};
use super::rank_state::{Job, PollingThread, Process, Rank};
use super::step_trace::StepTrace;
use super::stopped_thread::StoppedThread;
use super::symbols;
use rustix::time::{ClockId, clock_gettime};
use std::time::{Duration, Instant};

/// CPU time limit of a thread that evidently computes, as a multiple of that of one that may wait.
const WORK: u32 = 400;
/// Factor of the limit for a thread that computes in code where a thread was set free before.
const KNOWN_WORK: u32 = 20;
/// Minimum computing time between two inspections, as a multiple of the duration of an inspection.
pub(super) const REST: u32 = 4;
/// Maximum time between inspections of a free-running thread.
const LONGEST_REST: Duration = Duration::from_secs(1);
/// Time for which a thread stays stopped in a loop before it is checked again.
const HOLD: Duration = Duration::from_secs(1);

impl Job {
    /// Sets free the computing threads that exceeded their CPU time. Returns the CPU time until the next one does, or
    /// zero if one was set free.
    pub(super) fn release_expired(&mut self, rank: usize, computing: Vec<Computing>) -> Option<Duration> {
        let cpu_limit = self.spec.cpu_limit.unwrap_or(CPU_LIMIT);
        let pid = self.ranks[rank].caller_pid;
        let mut least = None;
        for Computing { tid, at, code, is_suspect } in computing {
            let used = if self.embedded.is_some() { Some(own_cpu_ns()) } else { process::cpu_time(pid, tid) };
            let Some(used) = used else { continue };
            let Rank { silence, history, .. } = &mut self.ranks[rank];
            let used = used - *silence.cpu.entry(tid).or_insert(used);
            let is_known = !code.is_empty() && code.is_subset(&history.slow_code);
            let limit = match (is_suspect, is_known) {
                (true, true) => Duration::ZERO,
                (true, false) => cpu_limit,
                (false, true) => cpu_limit * KNOWN_WORK,
                (false, false) => cpu_limit * WORK,
            };
            let left = limit.saturating_sub(Duration::from_nanos(used));
            if left.is_zero() {
                history.slow_code.extend(code);
                self.ranks[rank].free_running.insert(tid, FreeRunState::new(None));
                self.note_free_run(rank, tid, at, used);
            }
            least = Some(least.map_or(left, |least: Duration| least.min(left)));
        }
        least
    }

    fn note_free_run(&mut self, rank: usize, tid: u32, at: u64, used_ns: u64) {
        let pid = self.ranks[rank].caller_pid;
        let place = symbols::describe(pid, at);
        let is_known = |other: &FreeRunReport| other.rank == rank && other.place == place;
        if !self.unreported_free_runs.iter().chain(&self.reported_free_runs).any(is_known) {
            let mut tids = if self.embedded.is_some() { vec![tid] } else { tasks(pid).unwrap_or_default() };
            tids.sort_unstable();
            let thread = tids.iter().position(|other| *other == tid).unwrap_or_default();
            self.unreported_free_runs.push(FreeRunReport { rank, thread, place, used_ms: used_ns / 1_000_000 });
        }
    }

    /// Returns the reports of free-running threads that are not returned yet, one per code position.
    pub fn take_free_runs(&mut self) -> Vec<FreeRunReport> {
        let free_runs = std::mem::take(&mut self.unreported_free_runs);
        self.reported_free_runs.extend(free_runs.iter().cloned());
        free_runs
    }

    /// Returns all reports that [`Job::take_free_runs`] returned.
    pub fn free_runs(&self) -> &[FreeRunReport] {
        &self.reported_free_runs
    }

    /// Returns true if a rank has free-running threads.
    pub fn is_free_running(&self, rank: usize) -> bool {
        !self.ranks[rank].free_running.is_empty()
    }

    /// Returns true if any paused rank has free-running threads.
    pub fn has_free_running(&self) -> bool {
        self.asleep.iter().any(|&rank| self.is_free_running(rank))
    }

    /// Sets free the stopped threads of a rank whose loops may end by themselves. Used when no event is left.
    pub fn free_counting_loops(&mut self, rank: usize) {
        let stopped = std::mem::take(&mut self.ranks[rank].stopped);
        for poller in stopped {
            match poller.polls.endless {
                true => self.ranks[rank].stopped.push(poller),
                false => drop(self.ranks[rank].free_running.insert(poller.thread.tid(), FreeRunState::new(None))),
            }
        }
        self.ranks[rank].silence.polling = self.kind_of_polling(rank);
    }

    /// Removes threads from the free-running ones that ended or block in the kernel without a time-out.
    pub(super) fn drop_blocked(&mut self, rank: usize) {
        if self.embedded.is_some() {
            return;
        }
        let Rank { free_running, caller_pid: pid, .. } = &mut self.ranks[rank];
        free_running.retain(|&tid, state| match self.thread_files.activity(*pid, tid) {
            Activity::Ended => false,
            Activity::Waits(times) if timed_sleep(*pid, tid).is_none() => state.blocked.replace(times) != Some(times),
            _ => {
                state.blocked = None;
                true
            }
        });
    }

    /// Stops the free-running threads of a rank that now poll.
    pub(super) fn inspect_free_running(&mut self, rank: usize) {
        let due = |(tid, state): (&u32, &FreeRunState)| (state.inspect_at <= Instant::now()).then_some(*tid);
        let due: Vec<u32> = self.ranks[rank].free_running.iter().filter_map(due).collect();
        for tid in due {
            let began = Instant::now();
            let disturbed = self.disturbed(rank);
            let waited_for = matches!(self.ranks[rank].process, Process::Alive(pid) if pid == tid);
            let stopped = match &self.embedded {
                Some(host) => host.suspended(rank).map(StoppedThread::embedded).ok_or(NotPolling::Disturbed),
                None => StoppedThread::stop(tid, waited_for, &disturbed),
            };
            let found = stopped
                .and_then(|thread| Ok((StepTrace::new(&thread, 0).find_loop(&thread, None, &disturbed)?, thread)));
            drop(disturbed);
            let state = self.ranks[rank].free_running.get_mut(&tid).expect("it runs freely");
            let as_before =
                |polls: &PollingLoop| state.turn.as_ref().is_some_and(|turn| turn.reads.keys().eq(polls.reads.keys()));
            match found {
                Ok((polls, thread)) if polls.endless || as_before(&polls) => {
                    self.ranks[rank].free_running.remove(&tid);
                    self.ranks[rank].stopped.push(PollingThread::new(thread, polls));
                    self.ranks[rank].silence.polling = self.kind_of_polling(rank);
                }
                _ => {
                    state.turn = None;
                    state.rest = (state.rest * 2).min(LONGEST_REST).max(began.elapsed() * REST);
                    state.inspect_at = Instant::now() + state.rest;
                }
            }
        }
    }

    /// Returns true if a stopped thread of a rank may hold a lock for which another one waits in the kernel, or spins.
    pub fn may_hold_lock(&self, rank: usize) -> bool {
        let stopped = &self.ranks[rank].stopped;
        let writes = |poller: &PollingThread| poller.polls.reads.values().any(|polled| polled.is_own);
        let awaited = self.awaited_futexes(rank);
        stopped.len() > 1 && stopped.iter().any(writes)
            || stopped.iter().any(|poller| writes_any(&poller.polls, &awaited))
    }

    /// Returns the futex addresses for which threads of a rank wait in the kernel.
    fn awaited_futexes(&self, rank: usize) -> Vec<u64> {
        if self.embedded.is_some() {
            return Vec::new();
        }
        let pid = self.ranks[rank].caller_pid;
        tasks(pid).unwrap_or_default().into_iter().filter_map(|tid| process::futex_of(pid, tid)).collect()
    }

    /// Checks again the threads of a rank that have been stopped for long, because waiting is only inferred. Threads
    /// whose loops can end by themselves, or that may hold a lock for which another thread waits, run briefly. Returns
    /// true if one continues.
    ///
    /// Skips ranks with a written polled location: they continue at the simulated time at which they notice the write.
    pub(super) fn recheck_stopped(&mut self, rank: usize) -> bool {
        let due = |poller: &PollingThread| poller.since.elapsed() >= poller.hold;
        let Rank { stopped, silence, posted, .. } = &self.ranks[rank];
        if silence.is_written || posted.is_some() || !stopped.iter().any(due) {
            return false;
        }
        let awaited = self.awaited_futexes(rank);
        let may_hold = |polls: &PollingLoop| writes_any(polls, &awaited);
        let stopped = std::mem::take(&mut self.ranks[rank].stopped);
        let disturbed = self.disturbed(rank);
        let (mut kept, mut goes_on) = (Vec::new(), false);
        let mut turns = Vec::new();
        for mut poller in stopped {
            if !due(&poller) {
                kept.push(poller);
            } else if !poller.polls.endless || may_hold(&poller.polls) {
                turns.push(poller);
            } else {
                let hold = poller.hold * 2;
                if poller.polls_again(&disturbed) {
                    kept.push(PollingThread { hold, since: Instant::now(), ..poller });
                } else {
                    goes_on = true;
                }
            }
        }
        drop(disturbed);
        self.ranks[rank].stopped = kept;
        for PollingThread { thread, polls, .. } in turns {
            self.ranks[rank].free_running.insert(thread.tid(), FreeRunState::new(Some(polls)));
        }
        goes_on
    }
}

/// Returns the CPU time of this thread in nanoseconds.
fn own_cpu_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Returns true if a loop writes one of these futexes, as a lock operation does.
fn writes_any(polls: &PollingLoop, futexes: &[u64]) -> bool {
    let is_one = |place: &Location| futexes.iter().any(|word| place.bytes().contains(word));
    polls.reads.iter().any(|(place, polled)| polled.is_own && is_one(place))
}

impl PollingThread {
    /// Creates the state of a thread that is stopped now.
    pub(super) fn new(thread: StoppedThread, polls: PollingLoop) -> PollingThread {
        PollingThread { thread, polls, since: Instant::now(), hold: HOLD }
    }
}
