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
pub enum Looks {
    /// Each change (`spin_idle`).
    All,
    /// Changes other than those of memory (`spin_idle_events`).
    Events,
}

impl Looks {
    /// Whether the polls can find a change.
    pub fn find(self, change: Change) -> bool {
        self == Looks::All || change == Change::Other
    }
}

/// How many changes there have been.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Changes {
    memory: u64,
    other: u64,
}

/// The changes that polls of a rank can find, and its threads that poll in vain.
#[derive(Debug, Default)]
pub struct Attention {
    changes: Changes,
    /// The threads whose last call was a poll that found nothing, by slot.
    vain: BTreeMap<u32, Vain>,
}

/// What a thread has done whose last call was a poll that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Vain {
    /// It has not called `spin_idle` since its last call that was no such poll.
    Polls,
    /// It is in `spin_idle`.
    Idles,
    /// It has polled in vain since `spin_idle` returned, when there had been these changes.
    Saw(Changes),
}

impl Attention {
    /// Takes note that something has changed that a poll can find.
    pub fn change(&mut self, change: Change) {
        match change {
            Change::Memory => self.changes.memory += 1,
            Change::Other => self.changes.other += 1,
        }
    }

    /// Whether the last call of a thread was a poll that found nothing.
    pub fn polls_in_vain(&self, slot: u32) -> bool {
        self.vain.contains_key(&slot)
    }

    /// A thread makes a call other than `spin_idle`: a poll that finds nothing, or something else.
    pub fn call(&mut self, slot: u32, finds_nothing: bool) {
        if finds_nothing {
            self.vain.entry(slot).or_insert(Vain::Polls);
        } else {
            self.vain.remove(&slot);
        }
    }

    /// A thread calls `spin_idle`. Returns whether it has only polled in vain since the last time, and nothing at which it looks has
    /// changed since that returned.
    pub fn idle(&mut self, slot: u32, looks_at: Looks) -> bool {
        let Some(Vain::Saw(seen)) = self.vain.insert(slot, Vain::Idles) else { return false };
        seen.other == self.changes.other && (seen.memory == self.changes.memory || !looks_at.find(Change::Memory))
    }

    /// A thread is answered. Returns whether its call was a poll that found nothing.
    pub fn resume(&mut self, slot: u32) -> bool {
        let Some(vain) = self.vain.get_mut(&slot) else { return false };
        if *vain == Vain::Idles {
            *vain = Vain::Saw(self.changes);
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
    fn polls_follow_each_other() {
        let next = |now, period| next_poll(Time::from_ps(100), Time::from_ps(now), Time::from_ps(period)).as_ps();
        for (now, poll) in [(100, 151), (151, 151), (152, 202), (202, 202), (1_000_000, 1_000_006)] {
            assert_eq!(next(now, 51), poll, "{now}");
        }
        assert_eq!((next(100, 0), next(777, 0)), (100, 777));
    }

    /// Thread 3 calls `spin_idle` and is answered. Returns whether it was parked.
    fn idle(attention: &mut Attention) -> bool {
        let parks = attention.idle(3, Looks::All);
        assert!(attention.resume(3));
        parks
    }

    #[test]
    fn a_second_look_at_the_same_is_in_vain() {
        let mut attention = Attention::default();
        assert!(!attention.resume(3));
        assert!(!idle(&mut attention) && idle(&mut attention));
        attention.call(3, true);
        attention.call(4, false); // another thread's
        assert!(attention.resume(3) && idle(&mut attention));
        attention.call(3, false);
        assert!(!attention.polls_in_vain(3) && !attention.resume(3));
        assert!(!idle(&mut attention) && idle(&mut attention));
    }

    #[test]
    fn a_change_is_looked_at_once() {
        let mut attention = Attention::default();
        idle(&mut attention);
        attention.call(3, true);
        attention.change(Change::Other); // before the poll is answered: it may not have seen the change
        assert!(attention.resume(3));
        assert!(!idle(&mut attention) && idle(&mut attention));
        // What changes during spin_idle is found by the polls after it.
        assert!(attention.idle(3, Looks::All));
        attention.change(Change::Other);
        assert!(attention.resume(3) && idle(&mut attention));
    }

    #[test]
    fn a_thread_that_looks_at_events_does_not_see_memory() {
        for (looks_at, change, parks) in [
            (Looks::All, Change::Memory, false),
            (Looks::All, Change::Other, false),
            (Looks::Events, Change::Memory, true),
            (Looks::Events, Change::Other, false),
        ] {
            let mut attention = Attention::default();
            idle(&mut attention);
            attention.change(change);
            assert_eq!(attention.idle(3, looks_at), parks, "{looks_at:?}, {change:?}");
            assert_eq!(looks_at.find(change), !parks);
        }
    }
}
