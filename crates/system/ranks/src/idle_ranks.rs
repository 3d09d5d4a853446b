// SPDX-License-Identifier: Apache-2.0
//! Resumes ranks that poll or sleep, without a pending call.

use super::call::Pause;
use super::polling_threads::locations;
use super::rank_state::{Job, Rank, SilentPeriod};
use super::signals;
use sim::Time;
use std::time::{Duration, Instant};

/// Real time for which repeatedly sleeping threads are awaited when no event is left.
const LAST_CHANCE: Duration = Duration::from_secs(3);
/// Interval between checks of sleeping threads. Their calls are noticed at once.
const CHECK_INTERVAL: Duration = Duration::from_millis(1);
/// Time for which free-running threads are awaited when no event is left.
const FREE_RUN_TIME: Duration = Duration::from_millis(20);

impl Job {
    /// Runs a polling rank from simulated time `now` to its next pause. It sees all writes so far.
    pub fn resume_polling(&mut self, rank: usize, now: Time) -> Pause {
        self.shared.set_now(now);
        self.mark_running(rank);
        self.wait(rank)
    }

    /// Records that a rank computes rather than polls, and runs it to its next pause.
    pub fn resume_computing(&mut self, rank: usize) -> Pause {
        let inspect_after = self.ranks[rank].silence.since.map_or(Duration::ZERO, |since| since.elapsed() * 2);
        self.mark_running(rank);
        let Rank { stopped, history, .. } = &mut self.ranks[rank];
        for poller in stopped.iter().filter(|poller| !poller.polls.endless) {
            history.note_closed(locations(&poller.polls));
        }
        stopped.retain(|poller| poller.polls.endless);
        self.ranks[rank].silence =
            SilentPeriod { since: Some(Instant::now()), inspect_after, ..SilentPeriod::default() };
        self.wait(rank)
    }

    /// Runs a polling rank to its next pause, so that it is inspected once more. Used when no event is left.
    pub fn reinspect(&mut self, rank: usize) -> Pause {
        self.release_all(rank);
        self.wait(rank)
    }

    /// Checks that all threads still wait after a moment, before a deadlock is declared: a signal handler in one of
    /// them may end its process. Returns a rank that continues or ended, and its pause.
    pub fn recheck_before_deadlock(&mut self) -> Option<(usize, Pause)> {
        let since = Instant::now();
        let counts = |job: &Job| job.asleep.iter().map(|&rank| job.census(rank)).collect::<Option<Vec<_>>>();
        loop {
            let before = counts(self);
            std::thread::sleep(CHECK_INTERVAL);
            if let Some(woken) = self.poll() {
                return Some(woken);
            }
            for rank in self.asleep.clone() {
                if let Some(status) = self.reap(rank) {
                    return Some((rank, Pause::Exited { rank, status }));
                }
            }
            let is_still = before.is_some() && before == counts(self);
            if is_still || since.elapsed() >= LAST_CHANCE {
                return None;
            }
        }
    }

    /// Gives threads that sleep in real time or run freely a chance to make a call before simulated time passes without
    /// an event, for `span` or, with `None`, forever. Waits for `span` of real time; without `span`, until the current
    /// sleeps end and then for [`LAST_CHANCE`], or for [`FREE_RUN_TIME`] if there are only free-running threads.
    /// Returns the rank that continues, and its pause.
    pub fn await_sleepers(&mut self, span: Option<Duration>) -> Option<(usize, Pause)> {
        let began = self.sleeps();
        let running = *self.asleep.first().filter(|_| !began.is_empty() || self.has_free_running())?;
        let since = Instant::now();
        loop {
            let seen = self.shared.doorbell();
            if let Some(woken) = self.poll() {
                return Some(woken);
            }
            if let Some(signal) = signals::received() {
                return Some((running, Pause::Interrupted { signal }));
            }
            if let Some((rank, status)) = self.ended(running) {
                return Some((rank, Pause::Exited { rank, status }));
            }
            if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
                return Some((running, Pause::TimedOut));
            }
            let sleeps = self.sleeps();
            let over = match span {
                Some(span) => since.elapsed() >= span,
                None if sleeps.is_empty() => since.elapsed() >= FREE_RUN_TIME || !self.has_free_running(),
                None => since.elapsed() >= LAST_CHANCE && !sleeps.iter().any(|sleep| began.contains(sleep)),
            };
            // A thread that woke up may be about to make a call.
            let all_wait = || self.asleep.iter().all(|&rank| self.census(rank).is_some());
            let none_left = sleeps.is_empty() && !self.has_free_running();
            if (over || none_left) && all_wait() && self.shared.doorbell() == seen {
                return None;
            }
            for rank in self.asleep.clone() {
                self.drain(rank);
            }
            self.shared.sleep(seen, Some(CHECK_INTERVAL));
        }
    }
}
