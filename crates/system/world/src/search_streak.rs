// SPDX-License-Identifier: Apache-2.0
//! Detects threads that repeatedly search the card's unexpected headers and find nothing.

use abi::portals::{Handle, Me};
use sim::Time;

/// Number of equal iterations after which a thread is parked. A program may search several times before it does
/// something else.
const ROUNDS: u32 = 16;

/// Arguments of a search (`PtlMESearch`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Search {
    /// Interface.
    pub ni: Handle,
    /// Portal table index.
    pub pt_index: u32,
    /// Kind of search.
    pub kind: u8,
    /// Matching criteria.
    pub me: Me,
}

/// Latest search of a rank, unsuccessful so far, if the rank has only tested for its result since.
#[derive(Debug, Default)]
pub struct SearchStreak(Option<Round>);

#[derive(Debug)]
struct Round {
    slot: u32,
    search: Search,
    began: Time,
    period: Time,
    /// Number of preceding equal iterations.
    equal: u32,
}

impl SearchStreak {
    /// Records an unsuccessful search of the thread in a slot. Returns the period of its loop after many equal
    /// iterations.
    pub fn search(&mut self, slot: u32, search: Search, now: Time) -> Option<Time> {
        let last = self.0.take().filter(|last| last.slot == slot && last.search == search);
        let (period, equal) = match last {
            Some(Round { began, period, equal, .. }) if now - began == period => (period, equal + 1),
            Some(Round { began, .. }) => (now - began, 0),
            None => (Time::ZERO, 0),
        };
        self.0 = Some(Round { slot, search, began: now, period, equal });
        (equal >= ROUNDS && period > Time::ZERO).then_some(period)
    }

    /// Ends the streak, because the rank does something else.
    pub fn end(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rounds_are_counted() {
        let search = Search { ni: 1, pt_index: 2, kind: 0, me: Me::default() };
        let mut search_streak = SearchStreak::default();
        let look =
            |search_streak: &mut SearchStreak, slot, search, ns| search_streak.search(slot, search, Time::from_ns(ns));
        let rounds = u64::from(ROUNDS) + 1;
        assert!((0..rounds).all(|n| look(&mut search_streak, 0, search, n * 70).is_none()));
        assert_eq!(look(&mut search_streak, 0, search, rounds * 70), Some(Time::from_ns(70)));
        assert_eq!(look(&mut search_streak, 0, search, rounds * 70 + 71), None, "a longer round");
        assert!((1..rounds).all(|n| look(&mut search_streak, 0, search, 10_000 + n * 70).is_none()));
        assert_eq!(look(&mut search_streak, 1, search, 10_000 + rounds * 70), None, "another thread");
        let other = Search { pt_index: 3, ..search };
        assert!((1..rounds).all(|n| look(&mut search_streak, 0, [search, other][n as usize % 2], n * 70).is_none()));
        search_streak.end();
        assert!((0..rounds).all(|n| look(&mut search_streak, 0, search, n * 70).is_none()));
    }
}
