//! Detects that all ranks only sleep, so that nothing can change.

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
}
