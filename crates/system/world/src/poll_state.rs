// SPDX-License-Identifier: Apache-2.0
//! Records unsuccessful polls of a rank's threads, and the changes that a further poll could find.

use std::collections::BTreeMap;

use sim::Time;

/// Kind of a change that concerns a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A card wrote to the rank's memory without an event or counter.
    Memory,
    /// Events, counters, or actions of a thread of the rank.
    Other,
}

/// Changes that the polls of a thread can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollScope {
    /// All changes (`spin_idle`).
    All,
    /// Changes other than those of memory (`spin_idle_events`).
    Events,
}

impl PollScope {
    /// Returns true if the polls can find a change.
    pub fn find(self, change: Change) -> bool {
        self == PollScope::All || change == Change::Other
    }
}

/// Number of changes so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Changes {
    memory: u64,
    other: u64,
}

/// Changes that polls of a rank can find, and its threads that poll without success.
#[derive(Debug, Default)]
pub struct PollState {
    changes: Changes,
    /// Threads whose last call was an unsuccessful poll, by slot.
    empty_polls: BTreeMap<u32, EmptyPoll>,
}

/// State of a thread whose last call was an unsuccessful poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmptyPoll {
    /// Has not called `spin_idle` since its last call that was no unsuccessful poll.
    Polls,
    /// Is in `spin_idle`.
    Idles,
    /// Has made only unsuccessful polls since `spin_idle` returned; with the changes at that time.
    Saw(Changes),
}

impl PollState {
    /// Records a change that a poll can find.
    pub fn change(&mut self, change: Change) {
        match change {
            Change::Memory => self.changes.memory += 1,
            Change::Other => self.changes.other += 1,
        }
    }

    /// Returns true if the last call of a thread was an unsuccessful poll.
    pub fn last_poll_was_empty(&self, slot: u32) -> bool {
        self.empty_polls.contains_key(&slot)
    }

    /// Records a call other than `spin_idle`, which is an unsuccessful poll if `finds_nothing` is set.
    pub fn call(&mut self, slot: u32, finds_nothing: bool) {
        if finds_nothing {
            self.empty_polls.entry(slot).or_insert(EmptyPoll::Polls);
        } else {
            self.empty_polls.remove(&slot);
        }
    }

    /// Records a `spin_idle` call. Returns true if the thread made only unsuccessful polls since the previous one
    /// returned, and nothing in their scope has changed since.
    pub fn idle(&mut self, slot: u32, scope: PollScope) -> bool {
        let Some(EmptyPoll::Saw(seen)) = self.empty_polls.insert(slot, EmptyPoll::Idles) else { return false };
        seen.other == self.changes.other && (seen.memory == self.changes.memory || !scope.find(Change::Memory))
    }

    /// Records a reply to a thread. Returns true if its call was an unsuccessful poll.
    pub fn resume(&mut self, slot: u32) -> bool {
        let Some(poll) = self.empty_polls.get_mut(&slot) else { return false };
        if *poll == EmptyPoll::Idles {
            *poll = EmptyPoll::Saw(self.changes);
        }
        true
    }
}

/// Returns the start of the first poll at or after `now` of a thread that polls every `period` since `since`.
pub fn next_poll(since: Time, now: Time, period: Time) -> Time {
    let polls = (now - since).as_ps().div_ceil(period.as_ps().max(1)).max(1);
    (since + period * polls).max(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_poll_is_a_multiple_of_the_period() {
        let next = |now, period| next_poll(Time::from_ps(100), Time::from_ps(now), Time::from_ps(period)).as_ps();
        for (now, poll) in [(100, 151), (151, 151), (152, 202), (202, 202), (1_000_000, 1_000_006)] {
            assert_eq!(next(now, 51), poll, "{now}");
        }
        assert_eq!((next(100, 0), next(777, 0)), (100, 777));
    }

    /// Thread 3 calls `spin_idle` and gets a reply. Returns true if it was parked.
    fn idle(poll_state: &mut PollState) -> bool {
        let parks = poll_state.idle(3, PollScope::All);
        assert!(poll_state.resume(3));
        parks
    }

    #[test]
    fn a_second_poll_without_a_change_parks() {
        let mut poll_state = PollState::default();
        assert!(!poll_state.resume(3));
        assert!(!idle(&mut poll_state) && idle(&mut poll_state));
        poll_state.call(3, true);
        poll_state.call(4, false); // of another thread
        assert!(poll_state.resume(3) && idle(&mut poll_state));
        poll_state.call(3, false);
        assert!(!poll_state.last_poll_was_empty(3) && !poll_state.resume(3));
        assert!(!idle(&mut poll_state) && idle(&mut poll_state));
    }

    #[test]
    fn a_change_allows_one_more_round_of_polls() {
        let mut poll_state = PollState::default();
        idle(&mut poll_state);
        poll_state.call(3, true);
        poll_state.change(Change::Other); // before the reply: the poll may have missed the change
        assert!(poll_state.resume(3));
        assert!(!idle(&mut poll_state) && idle(&mut poll_state));
        // A change during spin_idle is found by the polls after it.
        assert!(poll_state.idle(3, PollScope::All));
        poll_state.change(Change::Other);
        assert!(poll_state.resume(3) && idle(&mut poll_state));
    }

    #[test]
    fn event_polls_ignore_memory_changes() {
        for (scope, change, parks) in [
            (PollScope::All, Change::Memory, false),
            (PollScope::All, Change::Other, false),
            (PollScope::Events, Change::Memory, true),
            (PollScope::Events, Change::Other, false),
        ] {
            let mut poll_state = PollState::default();
            idle(&mut poll_state);
            poll_state.change(change);
            assert_eq!(poll_state.idle(3, scope), parks, "{scope:?}, {change:?}");
            assert_eq!(scope.find(change), !parks);
        }
    }
}
