//! Ranks that spin on their own memory until a message changes it.
//!
//! Such a rank makes no call, so its simulated time stands still and the message that it waits for would never come. A
//! rank that computes makes no call either, and its time has to stand still. To tell them apart, the threads of a rank
//! that has been silent for a while are stepped through a few rounds of their loop ([`super::steps`]), and it is found
//! out what could end it ([`super::loops`]).
//!
//! A thread that polls is held in its loop, uses no CPU time, and goes on when a place that it waits for holds something
//! else. When that is, depends on the program alone: a thread may be found polling sooner or later, but it would have
//! done nothing else meanwhile. Only a loop that could also end by itself, for example after a number of tries, depends
//! on how long it has gone on.
//!
//! Where threads cannot be looked at (another tracer, or no permission) nothing is inferred: they are taken to compute.

use super::steps::{self, Held};
use super::{Job, Pause, Process, Rank, signals};
use sim::Time;
use std::collections::BTreeSet;
use std::ops::Range;
use std::time::{Duration, Instant};

/// After how much silence a rank is looked at that has polled before.
const EAGER: Duration = Duration::from_micros(500);
/// Loops of a rank that are remembered.
const LOOPS: usize = 256;
/// How long each of the loops that may end by themselves goes on in turn when nothing else is left to happen.
const TURN: Duration = Duration::from_millis(200);

/// A place in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub length: u64,
}

impl Place {
    /// The addresses of its bytes.
    pub fn bytes(self) -> Range<u64> {
        self.address..self.address.saturating_add(self.length)
    }
}

/// What a place holds; the beginning of it, when it is long.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "without steps, nothing is known"))]
pub type Value = [u8; 32];

/// What a thread does.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "without steps, nothing is known"))]
pub enum Sample {
    /// It goes round in this loop, and is held at its beginning.
    Loop(Loop, Held),
    Computes,
    /// Something happened meanwhile.
    Disturbed,
    /// It may not be looked at.
    Denied,
}

/// A loop that polls.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "without steps, nothing is known"))]
pub struct Loop {
    /// What it waits for.
    pub reads: BTreeSet<Place>,
    /// Whether it can only end when one of these places is written.
    pub endless: bool,
    /// The addresses of its instructions.
    pub code: BTreeSet<u64>,
    /// What the places held, in their order.
    pub seen: Vec<Option<Value>>,
}

/// A thread that is held in its loop.
pub struct Poller {
    thread: Held,
    polls: Loop,
}

/// What is known of a silent rank.
#[derive(Default)]
pub struct Silence {
    /// When its silence began, and after how much of it to look at it (again).
    since: Option<Instant>,
    look_after: Duration,
    /// What its loops waited for at the last look.
    suspect: BTreeSet<Place>,
    /// Whether it polls: all its threads wait, and some of them are held in their loops.
    pub polling: Option<Polling>,
}

/// What is known from earlier silences of a rank.
#[derive(Default)]
pub struct Experience {
    /// What loops that could end by themselves waited for when they were held.
    loops: BTreeSet<BTreeSet<Place>>,
    /// Whether the last look at it found it polling.
    eager: bool,
}

/// How a rank polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Its loops cannot end by themselves.
    Stuck,
    /// They also count, or read a clock.
    Counting,
}

impl Job {
    /// What the loops of a rank that polls wait for.
    pub fn polled(&self, rank: usize) -> impl Iterator<Item = Place> {
        self.ranks[rank].held.iter().flat_map(|poller| poller.polls.reads.iter().copied())
    }

    /// Whether a rank polls, and how.
    pub fn polling(&self, rank: usize) -> Option<Polling> {
        self.ranks[rank].silence.polling
    }

    /// A rank that polls a place that has been written since it was last let go on. Each is named once.
    pub fn touched(&mut self) -> Option<usize> {
        self.touched.pop_first()
    }

    /// Lets a rank that polls see at simulated time `now` what was written, and go on to its next pause.
    pub fn carry_on(&mut self, rank: usize, now: Time) -> Pause {
        self.shared.set_now(now);
        self.stir(rank);
        self.wait(rank)
    }

    /// A rank that was taken to poll computes: waits on for its next pause.
    pub fn not_polling(&mut self, rank: usize) -> Pause {
        let look_after = self.ranks[rank].silence.since.map_or(Duration::ZERO, |since| since.elapsed() * 2);
        self.stir(rank);
        self.ranks[rank].held.retain(|poller| poller.polls.endless);
        self.ranks[rank].silence = Silence { since: Some(Instant::now()), look_after, ..Silence::default() };
        self.wait(rank)
    }

    /// Nothing is left to happen: lets a rank go on that was found polling, to be looked at once more.
    pub fn look_again(&mut self, rank: usize) -> Pause {
        self.let_go(rank);
        self.wait(rank)
    }

    /// Nothing is left to happen: lets a rank whose loop may end by itself go on for a moment; its pause, if it comes to
    /// one. Until then it still counts as polling.
    pub fn last_chance(&mut self, rank: usize, now: Time) -> Option<Pause> {
        if self.polling(rank) != Some(Polling::Counting) {
            return None;
        }
        self.ranks[rank].held.retain(|poller| poller.polls.endless);
        let kept = (self.deadline, self.spec.spin_quantum.take());
        let limit = Instant::now() + TURN;
        self.deadline = Some(kept.0.map_or(limit, |deadline| deadline.min(limit)));
        let pause = self.carry_on(rank, now);
        (self.deadline, self.spec.spin_quantum) = kept;
        if matches!(pause, Pause::TimedOut) && self.deadline.is_none_or(|deadline| deadline > Instant::now()) {
            self.ranks[rank].silence.polling = Some(Polling::Counting);
            return None;
        }
        Some(pause)
    }

    /// The threads of a rank may go on. Those that are proven to poll stay where they are while they have no reason to.
    pub(super) fn stir(&mut self, rank: usize) {
        self.touched.remove(&rank);
        self.asleep.retain(|&other| other != rank);
        self.ranks[rank].silence = Silence::default();
    }

    /// Ends every hold of a rank.
    pub(super) fn let_go(&mut self, rank: usize) {
        self.stir(rank);
        self.ranks[rank].held.clear();
    }

    /// Looks at a silent rank when it is time; how long to wait until the next look.
    pub(super) fn listen(&mut self, rank: usize) -> Option<Duration> {
        let quantum = self.spec.spin_quantum?;
        if self.ranks[rank].caller_pid == 0 {
            return None; // no card could write its memory
        }
        let Rank { silence, experience, .. } = &mut self.ranks[rank];
        let since = *silence.since.get_or_insert_with(Instant::now);
        if silence.look_after.is_zero() {
            silence.look_after = if experience.eager { EAGER.min(quantum) } else { quantum };
        }
        let left = silence.look_after.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return Some(left);
        }
        let look = self.look(rank);
        let Rank { silence, experience, .. } = &mut self.ranks[rank];
        match look {
            Look::Polls => experience.eager = true,
            // Twice as long between two looks, so that long work is not held up by them.
            Look::Computes => {
                experience.eager = false;
                silence.look_after = quantum.max(since.elapsed() * 2);
            }
            Look::Disturbed => {}
        }
        Some(silence.look_after.saturating_sub(since.elapsed()))
    }

    /// Looks at all threads of a silent rank that run.
    fn look(&mut self, rank: usize) -> Look {
        let shared = &self.shared;
        let disturbed = self.disturbed(rank);
        let Rank { held, caller_pid, process, .. } = &self.ranks[rank];
        let waited_for = |tid| matches!(process, Process::Alive(pid) if *pid == tid);
        let known = |tid| held.iter().any(|poller| poller.thread.is(tid));
        let waits = |tid| known(tid) || shared.is_inside(rank, *caller_pid, tid);
        let mut found = Vec::new();
        for tid in steps::running_threads(*caller_pid, waits) {
            match steps::sample(tid, waited_for(tid), &disturbed) {
                Sample::Loop(polls, thread) => found.push(Poller { thread, polls }),
                Sample::Computes => return Look::Computes,
                Sample::Disturbed => return Look::Disturbed,
                Sample::Denied => {
                    drop(disturbed);
                    self.unseen.get_or_insert(rank);
                    return Look::Computes;
                }
            }
        }
        drop(disturbed);
        if found.is_empty() {
            return Look::Computes;
        }
        let Rank { silence, experience, held, .. } = &mut self.ranks[rank];
        // A loop that may end by itself must be found twice, or as before: it may be part of something that moves on.
        if found.iter().any(|poller| !poller.polls.endless) {
            let reads: BTreeSet<Place> = found.iter().flat_map(|poller| &poller.polls.reads).copied().collect();
            let known = experience.loops.contains(&reads) || silence.suspect == reads;
            silence.suspect.clone_from(&reads);
            if !known {
                return Look::Computes;
            }
            if experience.loops.len() < LOOPS {
                experience.loops.insert(reads);
            }
        }
        let before = held.len();
        held.extend(found);
        // They may wait for each other, or for a thread that was woken meanwhile.
        if self.is_settled(rank) {
            return Look::Polls;
        }
        let held = &mut self.ranks[rank].held;
        held.truncate(before.min(held.len()));
        Look::Disturbed
    }

    /// Whether something has happened for which a step must not be waited for, from now on.
    fn disturbed(&self, rank: usize) -> impl Fn() -> bool {
        let seen = self.shared.doorbell();
        move || {
            self.shared.doorbell() != seen
                || self.pmi.has_input(rank)
                || signals::received().is_some()
                || self.deadline.is_some_and(|deadline| deadline <= Instant::now())
        }
    }

    /// Lets the held threads of a rank go on whose places hold something else by now; whether there was one. One that only
    /// polls on is held again.
    pub(super) fn rouse(&mut self, rank: usize) -> bool {
        let roused = |poller: &Poller| poller.thread.is_roused(&poller.polls);
        if !self.ranks[rank].held.iter().any(roused) {
            return false;
        }
        let mut held = std::mem::take(&mut self.ranks[rank].held);
        let disturbed = self.disturbed(rank);
        held.retain_mut(|poller| {
            if !roused(poller) {
                return true;
            }
            let again = poller.thread.find_loop(Some(&poller.polls.code), &disturbed).ok();
            again.filter(|again| again.endless == poller.polls.endless).map(|again| poller.polls = again).is_some()
        });
        drop(disturbed);
        self.ranks[rank].held = held;
        let silence = &mut self.ranks[rank].silence;
        (silence.since, silence.look_after) = (None, Duration::ZERO);
        true
    }

    /// How a rank polls all of whose threads wait.
    pub(super) fn holds(&self, rank: usize) -> Option<Polling> {
        let held = &self.ranks[rank].held;
        let counts = held.iter().any(|poller| !poller.polls.endless);
        (!held.is_empty()).then_some(if counts { Polling::Counting } else { Polling::Stuck })
    }

    /// Lets the kernel end a rank whose threads were held when it was killed.
    pub(super) fn bury(&mut self, rank: usize) {
        self.ranks[rank].held.retain(|poller| !poller.thread.has_ended());
    }

    /// `length` bytes of a rank's memory at `address` have been written.
    pub(super) fn note_write(&mut self, rank: usize, address: u64, length: u64) {
        let overlaps = |place: Place| {
            place.address < address.saturating_add(length) && address < place.address.saturating_add(place.length)
        };
        if self.polling(rank).is_some() && self.polled(rank).any(overlaps) {
            self.touched.insert(rank);
        }
    }
}

/// What a silent rank does.
enum Look {
    /// Its threads that ran are held now.
    Polls,
    Computes,
    Disturbed,
}
