//! Runs ranks that poll or sleep, when their calls are not what the simulator waits for.

use super::call::Pause;
use super::memory_loop::Polling;
use super::signals;
use super::state::{Job, SilentPeriod};
use super::threads::census;
use sim::Time;
use std::time::{Duration, Instant};

/// How long threads that sleep again and again are awaited in real time when no event is left.
const LAST_CHANCE: Duration = Duration::from_secs(3);
/// The time between two checks of sleeping threads. A call of theirs is noticed at once.
const NAP: Duration = Duration::from_millis(1);
/// How long each rank whose loops may end by themselves runs in turn when no event is left.
const TURN: Duration = Duration::from_millis(200);

impl Job {
    /// Runs a polling rank from simulated time `now` to its next pause. It sees what was written.
    pub fn carry_on(&mut self, rank: usize, now: Time) -> Pause {
        self.shared.set_now(now);
        self.mark_running(rank);
        self.wait(rank)
    }

    /// Takes note that a rank does not poll but computes, and runs it to its next pause.
    pub fn not_polling(&mut self, rank: usize) -> Pause {
        let inspect_after = self.ranks[rank].silence.since.map_or(Duration::ZERO, |since| since.elapsed() * 2);
        self.mark_running(rank);
        self.ranks[rank].held.retain(|poller| poller.polls.endless);
        self.ranks[rank].silence =
            SilentPeriod { since: Some(Instant::now()), inspect_after, ..SilentPeriod::default() };
        self.wait(rank)
    }

    /// Runs a rank that was found polling to its next pause, so that it is inspected once more. Used when no event is left.
    pub fn look_again(&mut self, rank: usize) -> Pause {
        self.release_all(rank);
        self.wait(rank)
    }

    /// Runs a rank whose loops may end by themselves for a moment, and returns its pause if it comes to one. Otherwise it
    /// still counts as polling. Used when no event is left.
    pub fn last_chance(&mut self, rank: usize, now: Time) -> Option<Pause> {
        if self.polling(rank) != Some(Polling::Counting) {
            return None;
        }
        self.ranks[rank].held.retain(|poller| poller.polls.endless);
        let kept = (self.deadline, self.spec.busy_wait_quantum.take());
        let limit = Instant::now() + TURN;
        self.deadline = Some(kept.0.map_or(limit, |deadline| deadline.min(limit)));
        let pause = self.carry_on(rank, now);
        (self.deadline, self.spec.busy_wait_quantum) = kept;
        if matches!(pause, Pause::TimedOut) && self.deadline.is_none_or(|deadline| deadline > Instant::now()) {
            self.ranks[rank].silence.polling = Some(Polling::Counting);
            return None;
        }
        Some(pause)
    }

    /// Gives threads that sleep in real time the chance to make a call before simulated time passes without an event, for
    /// `span`, or for ever (`None`). They are awaited for `span` of real time; without `span` as long as a sleep lasts and
    /// then for [`LAST_CHANCE`]. Returns the rank that goes on, and its pause.
    pub fn await_sleepers(&mut self, span: Option<Duration>) -> Option<(usize, Pause)> {
        let began = self.sleeps();
        let running = *self.asleep.first().filter(|_| !began.is_empty())?;
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
                None => since.elapsed() >= LAST_CHANCE && !sleeps.iter().any(|sleep| began.contains(sleep)),
            };
            // A thread that has woken may be about to make a call.
            let all_wait = || {
                let waits = |&rank: &usize| census(&self.shared, rank, self.ranks[rank].caller_pid).is_some();
                self.asleep.iter().all(waits)
            };
            if (over || sleeps.is_empty()) && all_wait() && self.shared.doorbell() == seen {
                return None;
            }
            for rank in self.asleep.clone() {
                self.drain(rank);
            }
            self.shared.sleep(seen, Some(NAP));
        }
    }
}
