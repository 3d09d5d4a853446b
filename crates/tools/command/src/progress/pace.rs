// SPDX-License-Identifier: Apache-2.0
//! Describes in words the progress and speed of a task.

use std::collections::VecDeque;
use std::time::Duration;

use super::task::Task;

/// Averaging time of the rate: long enough to be steady, short enough to follow a change of speed.
const WINDOW: Duration = Duration::from_secs(10);

/// Progress of a task.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// Completed part, from 0 to 1, if known.
    pub fraction: Option<f64>,
    /// Progress in words.
    pub words: String,
}

/// Earlier counts, from which the rate is computed.
#[derive(Debug)]
pub struct Pace {
    /// Times and counts since the beginning of the window.
    samples: VecDeque<(Duration, u64)>,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { samples: VecDeque::from([(Duration::ZERO, 0)]) }
    }
}

impl Pace {
    /// Describes the progress of a task that started `elapsed` ago.
    pub fn tell(&mut self, elapsed: Duration, task: &Task<'_>) -> Told {
        match task {
            Task::Unknown(what) => Told { fraction: None, words: format!("{what}, {}", span(elapsed.as_secs_f64())) },
            // An operation executed again counts again, so the count may exceed the total.
            Task::Counted { done, all } => self.count(elapsed, done().min(*all), *all),
            Task::Simulated { now, events } => {
                let events = events();
                let rate = in_words(self.rate(elapsed, events));
                Told { fraction: None, words: format!("{} of simulated time, {events} events, {rate}", now()) }
            }
        }
    }

    fn count(&mut self, elapsed: Duration, done: u64, all: u64) -> Told {
        let rate = self.rate(elapsed, done);
        let fraction = done as f64 / all.max(1) as f64;
        let mut words = format!("{:.0} %, {done}/{all} operations", (fraction * 100.0).floor());
        if done > 0 {
            words += &format!(", {}", in_words(rate));
        }
        if rate > 0.0 {
            words += &format!(", {} left", span((all.saturating_sub(done) as f64 / rate).ceil()));
        }
        Told { fraction: Some(fraction), words }
    }

    /// Returns the number of operations per second within the window.
    fn rate(&mut self, elapsed: Duration, done: u64) -> f64 {
        self.samples.push_back((elapsed, done));
        // The time before the first operation is preparation and does not count.
        while self.samples.get(1).is_some_and(|&(at, done)| done == 0 || at + WINDOW <= elapsed) {
            self.samples.pop_front();
        }
        let (since, before) = self.samples[0];
        (done - before) as f64 / (elapsed - since).as_secs_f64().max(f64::MIN_POSITIVE)
    }
}

fn in_words(rate: f64) -> String {
    if rate < 1e6 { format!("{rate:.0}/s") } else { format!("{:.1} million/s", rate / 1e6) }
}

/// Formats a duration in words, with the significant digits only.
fn span(seconds: f64) -> String {
    match seconds {
        ..100.0 => format!("{seconds:.0} s"),
        ..6000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use sim::Time;

    use super::*;

    fn words(pace: &mut Pace, seconds: u64, done: u64, all: u64) -> String {
        pace.tell(Duration::from_secs(seconds), &Task::Counted { done: &move || done, all }).words
    }

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds() {
        let mut pace = Pace::default();
        // 1.5 million per second from the start; (24 − 6) / 1.5 = 12 s.
        assert_eq!(
            words(&mut pace, 4, 6_000_000, 24_000_000),
            "25 %, 6000000/24000000 operations, 1.5 million/s, 12 s left"
        );
        // The window still reaches the start: 8 / 10 = 0.8; 16 / 0.8 = 20.
        assert_eq!(
            words(&mut pace, 10, 8_000_000, 24_000_000),
            "33 %, 8000000/24000000 operations, 800000/s, 20 s left"
        );
        // From 4 s on: (16 − 6) / 10 = 1; 8 / 1 = 8.
        assert_eq!(
            words(&mut pace, 14, 16_000_000, 24_000_000),
            "66 %, 16000000/24000000 operations, 1.0 million/s, 8 s left"
        );
        // No operation within the window: the remaining time is unknown.
        assert_eq!(words(&mut pace, 30, 16_000_000, 24_000_000), "66 %, 16000000/24000000 operations, 0/s");
    }

    #[test]
    fn preparation_is_not_counted() {
        let mut pace = Pace::default();
        assert_eq!(words(&mut pace, 3, 0, 4000), "0 %, 0/4000 operations");
        assert_eq!(words(&mut pace, 4, 0, 4000), "0 %, 0/4000 operations");
        // 1000 in 2 s.
        assert_eq!(words(&mut pace, 6, 1000, 4000), "25 %, 1000/4000 operations, 500/s, 6 s left");
    }

    #[test]
    fn nothing_done_has_no_rate() {
        assert_eq!(words(&mut Pace::default(), 2, 0, 5), "0 %, 0/5 operations");
        assert_eq!(words(&mut Pace::default(), 2, 0, 0), "0 %, 0/0 operations");
    }

    #[test]
    fn the_whole_is_not_there_before_its_end() {
        let told = Pace::default().count(Duration::from_secs(1), 1999, 2000);
        assert_eq!(told.words, "99 %, 1999/2000 operations, 1999/s, 1 s left");
        assert_eq!(told.fraction, Some(0.9995));
    }

    #[test]
    fn what_is_not_counted_tells_how_long_it_has_taken() {
        let task = Task::Unknown("reading a.goal".into());
        let told = Pace::default().tell(Duration::from_millis(12_400), &task);
        assert_eq!(told, Told { fraction: None, words: "reading a.goal, 12 s".into() });
    }

    #[test]
    fn a_simulation_tells_its_time() {
        let mut pace = Pace::default();
        let mut words = |seconds, ns, events| {
            let task = Task::Simulated { now: &move || Time::from_ns(ns), events: &move || events };
            pace.tell(Duration::from_secs(seconds), &task).words
        };
        assert_eq!(words(2, 1500, 6_000_000), "1500.000 ns of simulated time, 6000000 events, 3.0 million/s");
        // 500 in the last 10 s.
        assert_eq!(words(12, 1600, 6_000_500), "1600.000 ns of simulated time, 6000500 events, 50/s");
    }

    #[test]
    fn spans_have_the_digits_that_matter() {
        let spans = [0.4, 99.0, 100.0, 150.0, 5999.0, 6000.0, 36_000.0].map(span);
        assert_eq!(spans, ["0 s", "99 s", "2 min", "2 min", "100 min", "1.7 h", "10.0 h"]);
    }
}
