//! Detects that all ranks only sleep or poll, so that nothing can change, and that parked threads keep others waiting.

use sim::Time;

/// The number of sleeps in a row at which the user is told. They take about a second of real time, and a program that
/// waits by sleeping makes fewer before what it waits for comes.
const MANY: u64 = 200_000;

/// Counts the sleeps since something else happened.
#[derive(Debug, Default)]
pub struct SleepMonitor {
    sleeps: u64,
    since: Time,
}

impl SleepMonitor {
    /// Counts a sleep. The last of [`MANY`] sleeps in a row returns the time of the first one.
    pub fn sleep(&mut self, now: Time) -> Option<Time> {
        if self.sleeps == 0 {
            self.since = now;
        }
        self.sleeps += 1;
        (self.sleeps == MANY).then_some(self.since)
    }

    /// Takes note that something other than a sleep happens. The count starts again.
    pub fn end(&mut self) {
        self.sleeps = 0;
    }
}

/// How often parked threads are released in a row at least before they count as waiting for ever. A thread that counts its tries goes
/// on to its limit in that time.
const RELEASES: u64 = 1000;

/// At how many parked_releases in a row the state of the ranks is compared with that at the first of these.
const COMPARISONS: u64 = 16;

/// Counts how often parked threads were released since something else happened.
#[derive(Debug)]
pub struct ParkedReleases {
    /// How often threads go on, all together, before they count as waiting for ever, if that takes more than [`RELEASES`].
    limit: u64,
    count: u64,
    turns: u64,
    /// The time of the first one.
    since: Option<Time>,
    /// The state of the ranks at a release with which that at later ones is compared.
    state: Option<u64>,
    /// Whether the ranks have been in the same state twice.
    repeats: bool,
}

impl ParkedReleases {
    /// The limit is a number of polls of all threads together.
    pub fn new(limit: u64) -> ParkedReleases {
        ParkedReleases { limit, count: 0, turns: 0, since: None, state: None, repeats: false }
    }

    /// Counts a release of this many threads. Returns whether there may be one.
    pub fn begin(&mut self, now: Time, threads: usize) -> bool {
        self.since.get_or_insert(now);
        self.count += 1;
        self.turns += threads as u64;
        !self.repeats && (self.count <= RELEASES || self.turns <= self.limit)
    }

    /// Whether the state of the ranks is to be found out before the next release ([`ParkedReleases::compare`]): at a few in a row, later and later.
    pub fn is_comparison_due(&self) -> bool {
        let rounds = self.count / RELEASES;
        rounds.is_power_of_two() && self.count % RELEASES <= COMPARISONS
    }

    /// Compares the state of the ranks with that at an earlier release: the ranks wait for ever if it is the same. `None` if it is not known.
    pub fn compare(&mut self, state: Option<u64>) {
        if self.count.is_multiple_of(RELEASES) {
            self.state = state;
        } else {
            self.repeats = state.is_some() && state == self.state;
        }
    }

    /// Takes note that something else happens. The count starts again.
    pub fn end(&mut self) {
        *self = ParkedReleases::new(self.limit);
    }

    /// Returns how often the threads, all together, were released; 0 if it is certain that they wait for ever.
    pub fn doubtful_turns(&self) -> u64 {
        if self.repeats { 0 } else { self.turns }
    }

    /// Returns since when nothing else has happened.
    pub fn since(&self) -> Option<Time> {
        self.since
    }
}

/// For how many calls of each rank, on average, a thread stays parked at most, or up to twice that.
const CALLS: u64 = 500;

/// Counts calls while threads are parked. A program may poll once or twice in empty before it does what others wait for, and these may
/// wait by calls that are no polls (`PtlMESearch`), so that the simulation never runs out of events.
#[derive(Debug)]
pub struct ParkingLimit {
    /// How many calls a parked thread waits for.
    limit: u64,
    calls: u64,
    next_check: u64,
}

impl ParkingLimit {
    /// The parking_limit of the threads of this many ranks. So letting them go on never takes more than a small part of all calls.
    pub fn of(ranks: usize) -> ParkingLimit {
        let limit = CALLS * ranks as u64;
        ParkingLimit { limit, calls: 0, next_check: limit }
    }

    /// The number of calls so far that were no polls in empty.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Counts a call that is no poll in empty.
    pub fn call(&mut self) {
        self.calls += 1;
    }

    /// Returns, now and then, the number of calls up to which a thread must have been parked that goes on.
    pub fn due(&mut self) -> Option<u64> {
        if self.calls < self.next_check {
            return None;
        }
        self.next_check = self.calls + self.limit;
        Some(self.calls - self.limit)
    }
}

/// After how many sleeps a thread is told: to find out takes longer than a few sleeps.
const SLEEPS: u32 = 16;
/// The least number of further sleeps for which it is told.
const LEAST: u64 = 8;

/// The sleeps of a rank since it did something other than to sleep and to poll and find nothing.
#[derive(Debug, Default)]
pub struct SleepStreak {
    count: u32,
    last: Time,
}

impl SleepStreak {
    /// Takes note of a sleep.
    pub fn sleep(&mut self, span: Time) {
        self.count = self.count.saturating_add(1);
        self.last = span;
    }

    /// Takes note that the rank does something else.
    pub fn end(&mut self) {
        self.count = 0;
    }

    /// Whether it is of use to know that nothing else happens for this long.
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
        let looks: Vec<(u64, u64)> = (0..9 * CALLS).filter_map(&mut look).collect();
        assert_eq!(looks, [(1500, 0), (3000, 1500), (4500, 3000)]);
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
