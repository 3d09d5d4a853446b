//! Detects that all ranks only sleep or poll, so that nothing can change.

use sim::Time;

/// The number of sleeps in a row at which the user is told. They take about a second of real time, and a program that
/// waits by sleeping makes fewer before what it waits for comes.
const MANY: u64 = 200_000;

/// Counts the sleeps since something else happened.
#[derive(Debug, Default)]
pub struct Idleness {
    sleeps: u64,
    since: Time,
}

impl Idleness {
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

/// How often parked threads are released in a row before they count as waiting for ever. A thread that counts its tries goes on
/// to its limit in that time. More would let a deadlock of many ranks go unnoticed for seconds of real time.
const RELEASES: u32 = 1000;

/// Counts how often parked threads were released since something else happened.
#[derive(Debug, Default)]
pub struct Releases {
    count: u32,
    /// The time of the first one.
    since: Option<Time>,
}

impl Releases {
    /// Counts a release. Returns whether there may be one.
    pub fn begin(&mut self, now: Time) -> bool {
        self.since.get_or_insert(now);
        self.count = (self.count + 1).min(RELEASES + 1);
        self.count <= RELEASES
    }

    /// Takes note that something else happens. The count starts again.
    pub fn end(&mut self) {
        *self = Releases::default();
    }

    /// Returns since when nothing else has happened.
    pub fn since(&self) -> Option<Time> {
        self.since
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_sleeps_in_a_row_are_told_once() {
        let mut idleness = Idleness::default();
        assert!((0..MANY - 1).all(|count| idleness.sleep(Time::from_ns(count)).is_none()));
        idleness.end();
        let told: Vec<Time> = (0..3 * MANY).filter_map(|count| idleness.sleep(Time::from_ns(7 + count))).collect();
        assert_eq!(told, [Time::from_ns(7)]);
    }
    #[test]
    fn releases_come_to_an_end() {
        let mut releases = Releases::default();
        let begun = |releases: &mut Releases| {
            (0..2 * RELEASES).filter(|n| releases.begin(Time::from_ns(u64::from(*n)))).count()
        };
        assert_eq!((begun(&mut releases), releases.since()), (RELEASES as usize, Some(Time::ZERO)));
        releases.end();
        assert_eq!((releases.since(), begun(&mut releases)), (None, RELEASES as usize));
    }
}
