// SPDX-License-Identifier: Apache-2.0
//! Detects ranks that only sleep or poll although nothing can change, and parked threads that keep others waiting.

use sim::Time;

/// Number of consecutive sleeps at which the user is warned. They take about a second of real time, and a program that
/// waits by sleeping usually needs fewer.
const MANY: u64 = 200_000;

/// Counts consecutive sleeps.
#[derive(Debug, Default)]
pub struct SleepMonitor {
    sleeps: u64,
    since: Time,
}

impl SleepMonitor {
    /// Counts a sleep. Returns the time of the first one at [`MANY`] consecutive sleeps.
    pub fn sleep(&mut self, now: Time) -> Option<Time> {
        if self.sleeps == 0 {
            self.since = now;
        }
        self.sleeps += 1;
        (self.sleeps == MANY).then_some(self.since)
    }

    /// Restarts the count, because something other than a sleep happens.
    pub fn end(&mut self) {
        self.sleeps = 0;
    }
}

/// Minimum number of consecutive releases of parked threads before they count as waiting forever. A thread that counts
/// retries reaches its limit in that time.
const RELEASES: u64 = 1000;

/// Number of consecutive releases at which the state of the ranks is compared with that at the first of these.
const COMPARISONS: u64 = 16;

/// Counts consecutive releases of parked threads.
#[derive(Debug)]
pub struct ParkedReleases {
    /// Total number of thread resumptions before the threads count as waiting forever, if that takes more than
    /// [`RELEASES`] releases.
    limit: u64,
    count: u64,
    turns: u64,
    /// Time of the first release.
    since: Option<Time>,
    /// Fingerprint of the ranks at an earlier release, for comparison.
    state: Option<u64>,
    /// Set once the ranks were in the same state twice.
    repeats: bool,
}

impl ParkedReleases {
    /// Creates a counter; `limit` is a number of polls of all threads together.
    pub fn new(limit: u64) -> ParkedReleases {
        ParkedReleases { limit, count: 0, turns: 0, since: None, state: None, repeats: false }
    }

    /// Counts a release of this many threads. Returns false if the limits are exceeded.
    pub fn begin(&mut self, now: Time, threads: usize) -> bool {
        self.since.get_or_insert(now);
        self.count += 1;
        self.turns += threads as u64;
        !self.repeats && (self.count <= RELEASES || self.turns <= self.limit)
    }

    /// Returns true if the fingerprint of the ranks is needed before the next release ([`ParkedReleases::compare`]):
    /// for a few consecutive releases, at growing intervals.
    pub fn is_comparison_due(&self) -> bool {
        let rounds = self.count / RELEASES;
        rounds.is_power_of_two() && self.count % RELEASES <= COMPARISONS
    }

    /// Compares the fingerprint of the ranks with an earlier one; equality means that they wait forever. `None` if
    /// unknown.
    pub fn compare(&mut self, state: Option<u64>) {
        if self.count.is_multiple_of(RELEASES) {
            self.state = state;
        } else {
            self.repeats = state.is_some() && state == self.state;
        }
    }

    /// Restarts the count, because something else happens.
    pub fn end(&mut self) {
        *self = ParkedReleases::new(self.limit);
    }

    /// Returns the total number of thread resumptions; 0 if the threads certainly wait forever.
    pub fn doubtful_turns(&self) -> u64 {
        if self.repeats { 0 } else { self.turns }
    }

    /// Returns the time since which nothing else has happened.
    pub fn since(&self) -> Option<Time> {
        self.since
    }
}

/// Number of calls per rank, on average, for which a thread stays parked at most, or up to twice that.
const CALLS: u64 = 500;

/// Counts calls while threads are parked. A program may poll once or twice without success before it acts, and other
/// ranks may wait for that action by calls that are no polls (`PtlMESearch`), so that the simulation never runs out of
/// events.
#[derive(Debug)]
pub struct ParkingLimit {
    /// Number of calls for which a thread stays parked.
    limit: u64,
    calls: u64,
    next_check: u64,
}

impl ParkingLimit {
    /// Creates the limit for this number of ranks. It grows with the ranks, so that resumptions remain a small part of
    /// all calls.
    pub fn of(ranks: usize) -> ParkingLimit {
        let limit = CALLS * ranks as u64;
        ParkingLimit { limit, calls: 0, next_check: limit }
    }

    /// Returns the number of calls so far other than unsuccessful polls.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Counts a call that is no unsuccessful poll.
    pub fn call(&mut self) {
        self.calls += 1;
    }

    /// Returns, periodically, the call count up to which parked threads are to be resumed.
    pub fn due(&mut self) -> Option<u64> {
        if self.calls < self.next_check {
            return None;
        }
        self.next_check = self.calls + self.limit;
        Some(self.calls - self.limit)
    }
}

/// Number of sleeps before a thread gets a lookahead, whose computation takes longer than a few sleeps.
const SLEEPS: u32 = 16;
/// Minimum number of further sleeps that a lookahead must cover.
const LEAST: u64 = 8;

/// Consecutive sleeps of a rank that only sleeps and polls without success.
#[derive(Debug, Default)]
pub struct SleepStreak {
    count: u32,
    last: Time,
}

impl SleepStreak {
    /// Records a sleep.
    pub fn sleep(&mut self, span: Time) {
        self.count = self.count.saturating_add(1);
        self.last = span;
    }

    /// Ends the streak, because the rank does something else.
    pub fn end(&mut self) {
        self.count = 0;
    }

    /// Returns true if a lookahead of this length is useful.
    pub fn are_many(&self, span: Time) -> bool {
        self.count >= SLEEPS && span.as_ps() / LEAST > self.last.as_ps()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lookahead_pays_after_many_short_sleeps() {
        let mut sleep_streak = SleepStreak::default();
        let us = |count: u64| Time::from_ns(count * 1000);
        (0..SLEEPS - 1).for_each(|_| sleep_streak.sleep(us(5)));
        assert!(!sleep_streak.are_many(us(100)));
        sleep_streak.sleep(us(5));
        assert!(sleep_streak.are_many(us(41)) && !sleep_streak.are_many(us(40)));
        sleep_streak.end();
        sleep_streak.sleep(us(5));
        assert!(!sleep_streak.are_many(us(100)));
    }

    #[test]
    fn many_sleeps_in_a_row_are_reported_once() {
        let mut sleep_monitor = SleepMonitor::default();
        assert!((0..MANY - 1).all(|count| sleep_monitor.sleep(Time::from_ns(count)).is_none()));
        sleep_monitor.end();
        let told: Vec<Time> = (0..3 * MANY).filter_map(|count| sleep_monitor.sleep(Time::from_ns(7 + count))).collect();
        assert_eq!(told, [Time::from_ns(7)]);
    }

    #[test]
    fn parked_threads_are_released_every_500_calls_per_rank() {
        let mut parking_limit = ParkingLimit::of(3);
        let mut look = |_| {
            parking_limit.call();
            Some((parking_limit.calls(), parking_limit.due()?))
        };
        let told: Vec<(u64, u64)> = (0..9 * CALLS).filter_map(&mut look).collect();
        assert_eq!(told, [(1500, 0), (3000, 1500), (4500, 3000)]);
    }

    #[test]
    fn a_repeated_state_ends_the_releases() {
        let mut parked_releases = ParkedReleases::new(u64::MAX);
        // States that repeat every third release.
        let ends = (0..10 * RELEASES).find(|&n| {
            if parked_releases.is_comparison_due() {
                parked_releases.compare(Some(n % 3));
            }
            !parked_releases.begin(Time::ZERO, 2)
        });
        assert_eq!(ends, Some(RELEASES + 3));
        parked_releases.end();
        let compared = (0..10 * RELEASES).filter(|&n| {
            let is_due = parked_releases.is_comparison_due();
            if is_due {
                parked_releases.compare(if n % 2 == 0 { None } else { Some(n) });
            }
            assert!(parked_releases.begin(Time::ZERO, 2));
            is_due
        });
        assert_eq!(compared.count() as u64, 4 * (COMPARISONS + 1), "at 1000, 2000, 4000 and 8000");
    }

    #[test]
    fn releases_are_limited() {
        const TURNS: u64 = 300_000;
        let mut parked_releases = ParkedReleases::new(TURNS);
        for (threads, limit) in [(1, TURNS), (3, TURNS / 3), (200, TURNS / 200), (5000, RELEASES)] {
            let begun = (0..2 * TURNS).take_while(|n| parked_releases.begin(Time::from_ns(*n), threads)).count();
            assert_eq!((begun as u64, parked_releases.since()), (limit, Some(Time::ZERO)));
            assert!(!parked_releases.begin(Time::ZERO, threads));
            parked_releases.end();
            assert_eq!(parked_releases.since(), None);
        }
    }
}
