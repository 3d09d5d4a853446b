//! What the threads of a rank have found, and whether a further poll could find more.

use std::collections::BTreeMap;

use sim::Time;

/// What has changed for a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A card has written to its memory, and has told nothing.
    Memory,
    /// Events, counters, or what a thread of the rank has done.
    Other,
}

/// What the polls of a thread can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollScope {
    /// Each change (`spin_idle`).
    All,
    /// Changes other than those of memory (`spin_idle_events`).
    Events,
}

impl PollScope {
    /// Whether the polls can find a change.
    pub fn find(self, change: Change) -> bool {
        self == PollScope::All || change == Change::Other
    }
}

/// How many changes there have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Changes {
    memory: u64,
    other: u64,
}

/// The changes that polls of a rank can find, and its threads that poll in empty.
#[derive(Debug, Default)]
pub struct PollState {
    changes: Changes,
    /// The threads whose last call was a poll that found nothing, by slot.
    empty: BTreeMap<u32, EmptyPoll>,
}

/// What a thread has done whose last call was a poll that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EmptyPoll {
    /// It has not called `spin_idle` since its last call that was no such poll.
    Polls,
    /// It is in `spin_idle`.
    Idles,
    /// It has polled in empty since `spin_idle` returned, when there had been these changes.
    Saw(Changes),
}

impl PollState {
    /// Takes note that something has changed that a poll can find.
    pub fn change(&mut self, change: Change) {
        match change {
            Change::Memory => self.changes.memory += 1,
            Change::Other => self.changes.other += 1,
        }
    }

    /// Whether the last call of a thread was a poll that found nothing.
    pub fn last_poll_was_empty(&self, slot: u32) -> bool {
        self.empty.contains_key(&slot)
    }

    /// A thread makes a call other than `spin_idle`: a poll that finds nothing, or something else.
    pub fn call(&mut self, slot: u32, finds_nothing: bool) {
        if finds_nothing {
            self.empty.entry(slot).or_insert(EmptyPoll::Polls);
        } else {
            self.empty.remove(&slot);
        }
    }

    /// A thread calls `spin_idle`. Returns whether it has only polled in empty since the last time, and nothing at which it looks has
    /// changed since that returned.
    pub fn idle(&mut self, slot: u32, scope: PollScope) -> bool {
        let Some(EmptyPoll::Saw(seen)) = self.empty.insert(slot, EmptyPoll::Idles) else { return false };
        seen.other == self.changes.other && (seen.memory == self.changes.memory || !scope.find(Change::Memory))
    }

    /// A thread is answered. Returns whether its call was a poll that found nothing.
    pub fn resume(&mut self, slot: u32) -> bool {
        let Some(empty) = self.empty.get_mut(&slot) else { return false };
        if *empty == EmptyPoll::Idles {
            *empty = EmptyPoll::Saw(self.changes);
        }
        true
    }
}

/// Returns when a thread that has polled since `since`, a poll every `period`, begins its first later poll at `now` or after.
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

    /// Thread 3 calls `spin_idle` and is answered. Returns whether it was parked.
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
        poll_state.call(4, false); // another thread's
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
        poll_state.change(Change::Other); // before the poll is answered: it may not have seen the change
        assert!(poll_state.resume(3));
        assert!(!idle(&mut poll_state) && idle(&mut poll_state));
        // What changes during spin_idle is found by the polls after it.
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
