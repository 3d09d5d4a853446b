//! Ranks that spin on their own memory until a message changes it.
//!
//! Such a rank makes no call, so its simulated time stands still and the message that it waits for would never come. A
//! rank that computes makes no call either, and its time has to stand still. To tell them apart, the threads of a rank
//! that has been silent for a while are stepped through a few rounds of their loop ([`super::steps`]). A thread polls
//! when its loop reads the same places in each round, writes the same places, and its registers are unchanged or count
//! (`while (!*flag && ++tries < limit)`), whatever it calls between two reads: sched_yield, nanosleep, a clock. Work
//! moves through memory, or computes something; counting alone is told from polling by what is read, which only the
//! card can judge ([`Pause::Polls`](super::Pause::Polls)).
//!
//! A rank that polls is held in its loop, uses no CPU time, and goes on when a place that it reads is written.

use super::steps::{self, Held};
use super::{Job, Pause, Process, Rank, signals};
use sim::Time;
use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Where steps are not permitted, silence for this long is taken for polling.
const UNPROVEN: Duration = Duration::from_secs(1);
/// After how much silence a rank is looked at that has polled before.
const EAGER: Duration = Duration::from_millis(2);
/// Loops of a rank that are remembered.
const LOOPS: usize = 256;
/// How long a rank may take to see what was written before it is looked at again.
const REACTION: Duration = Duration::from_millis(1);
/// How long a loop that counts may go on when nothing else is left to happen.
const LAST_CHANCE: Duration = Duration::from_secs(3);

/// A place that a loop reads and does not write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Polled {
    /// Its address.
    pub address: u64,
    /// Bytes.
    pub length: u64,
    /// Whether it is on the stack of the thread, near its top.
    pub on_stack: bool,
}

/// What a thread does.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code, reason = "without steps, nothing is known"))]
pub enum Sample {
    /// It goes round in this loop, and is held.
    Loop(Loop, Held),
    Computes,
    /// Something happened meanwhile.
    Disturbed,
    /// It may not be looked at.
    Denied,
}

/// A loop that moves nothing on.
pub struct Loop {
    /// What it reads and does not write.
    pub reads: BTreeSet<Polled>,
    /// Whether a round leaves everything as it was.
    pub stuck: bool,
}

/// What is known of a silent rank.
#[derive(Default)]
pub struct Silence {
    /// When its silence began, and after how much of it to look at it (again).
    since: Option<Instant>,
    look_after: Duration,
    /// What its loops read at the last look.
    suspect: BTreeSet<Polled>,
    /// Whether it polls, or is taken to.
    pub polling: Option<Polling>,
    /// Whether it was taken to poll before, unproven.
    unproven: bool,
    /// Its threads while it polls.
    held: Vec<Held>,
}

/// What is known from earlier silences of a rank.
#[derive(Default)]
pub struct Experience {
    /// What loops read that ended when it was written.
    loops: BTreeSet<BTreeSet<Polled>>,
    /// Whether the last look at it found it polling.
    eager: bool,
}

/// How sure it is that a rank polls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polling {
    /// Its loops cannot end by themselves.
    Stuck,
    /// They also count, or read a clock.
    Counting,
    /// It could not be looked at, and still runs.
    Unproven,
}

impl Job {
    /// What the loops of a rank that polls read; nothing when that is unknown.
    pub fn polled(&self, rank: usize) -> impl Iterator<Item = Polled> {
        self.ranks[rank].silence.suspect.iter().copied()
    }

    /// Whether a rank polls, and how sure that is.
    pub fn polling(&self, rank: usize) -> Option<Polling> {
        self.ranks[rank].silence.polling
    }

    /// A rank that polls a place that has been written since it was last let go on. Each is named once.
    pub fn touched(&mut self) -> Option<usize> {
        self.touched.pop_first()
    }

    /// Lets a rank that polls go on at simulated time `now`, to its next pause.
    pub fn carry_on(&mut self, rank: usize, now: Time) -> Pause {
        let suspect = std::mem::take(&mut self.ranks[rank].silence.suspect);
        let unproven = self.ranks[rank].silence.polling == Some(Polling::Unproven);
        let experience = &mut self.ranks[rank].experience;
        if !unproven && experience.loops.len() < LOOPS {
            experience.eager = true;
            experience.loops.insert(suspect.clone());
        }
        let look_after = if unproven { self.spec.spin_quantum.unwrap_or_default() } else { REACTION };
        self.shared.set_now(now);
        self.let_go(rank);
        self.ranks[rank].silence = Silence { look_after, suspect, unproven, ..Silence::default() };
        self.wait(rank)
    }

    /// A rank that was taken to poll computes after all, or may: waits on for its next pause.
    pub fn not_polling(&mut self, rank: usize) -> Pause {
        self.dismiss(rank);
        self.wait(rank)
    }

    /// Whether the threads of a rank that do not wait in the library poll, and cannot go on by themselves. They are held
    /// then until a call of the rank is answered, or what they poll is written.
    pub(super) fn is_stuck(&mut self, rank: usize) -> bool {
        match self.listen(rank) {
            ControlFlow::Break(_) if self.polling(rank) == Some(Polling::Stuck) => true,
            ControlFlow::Break(_) => {
                self.dismiss(rank);
                false
            }
            ControlFlow::Continue(_) => false,
        }
    }

    fn dismiss(&mut self, rank: usize) {
        self.let_go(rank);
        let silence = &mut self.ranks[rank].silence;
        silence.look_after = silence.since.map_or(Duration::ZERO, |since| since.elapsed() * 2);
    }

    /// Nothing is left to happen: lets a rank that counts while it polls, or may compute, go on for a moment.
    pub fn last_chance(&mut self, rank: usize, now: Time) -> Option<Pause> {
        if matches!(self.ranks[rank].silence.polling, None | Some(Polling::Stuck)) {
            return None;
        }
        let kept = (self.deadline, self.spec.spin_quantum.take());
        let limit = Instant::now() + LAST_CHANCE;
        self.deadline = Some(kept.0.map_or(limit, |deadline| deadline.min(limit)));
        let polling = self.ranks[rank].silence.polling;
        let pause = self.carry_on(rank, now);
        (self.deadline, self.spec.spin_quantum) = kept;
        if matches!(pause, Pause::TimedOut) && self.deadline.is_none_or(|deadline| deadline > Instant::now()) {
            self.ranks[rank].silence.polling = polling;
            return None;
        }
        Some(pause)
    }

    /// Ends the silence of a rank: it was answered, or ends.
    pub(super) fn let_go(&mut self, rank: usize) {
        if self.ranks[rank].silence.polling.take().is_some() {
            self.touched.remove(&rank);
            self.asleep.retain(|&other| other != rank);
            self.ranks[rank].silence.held.clear();
        }
    }

    /// A silent rank: whether it is time to look at it, and whether it polls then. Otherwise, when to ask again.
    pub(super) fn listen(&mut self, rank: usize) -> ControlFlow<Pause, Option<Duration>> {
        let Some(quantum) = self.spec.spin_quantum else { return ControlFlow::Continue(None) };
        if self.ranks[rank].caller_pid == 0 {
            return ControlFlow::Continue(None); // no card could write its memory
        }
        let Rank { silence, experience, .. } = &mut self.ranks[rank];
        let since = *silence.since.get_or_insert_with(Instant::now);
        if silence.look_after.is_zero() {
            silence.look_after = if experience.eager { EAGER.min(quantum) } else { quantum };
        }
        let left = silence.look_after.saturating_sub(since.elapsed());
        if !left.is_zero() {
            return ControlFlow::Continue(Some(left));
        }
        match self.look(rank) {
            Some(Look::Polls(polling)) => {
                let silence = &mut self.ranks[rank].silence;
                silence.polling = Some(polling);
                if polling == Polling::Unproven {
                    self.asleep.push(rank);
                }
                ControlFlow::Break(Pause::Polls { rank, patient: since.elapsed() > UNPROVEN })
            }
            // Twice as long between two looks, so that long work is not held up by them.
            Some(Look::Computes) => {
                let Rank { silence, experience, .. } = &mut self.ranks[rank];
                experience.eager = false;
                silence.look_after = quantum.max(since.elapsed() * 2);
                ControlFlow::Continue(Some(silence.look_after.saturating_sub(since.elapsed())))
            }
            None => ControlFlow::Continue(Some(Duration::ZERO)),
        }
    }

    /// Looks at all threads of a silent rank that run. `None` when something has happened meanwhile.
    fn look(&mut self, rank: usize) -> Option<Look> {
        let seen = self.shared.doorbell();
        let shared = &self.shared;
        let deadline = self.deadline;
        let disturbed = || {
            shared.doorbell() != seen
                || signals::received().is_some()
                || deadline.is_some_and(|deadline| deadline < Instant::now())
        };
        let process = self.ranks[rank].caller_pid;
        let waited_for = |tid| matches!(self.ranks[rank].process, Process::Alive(pid) if pid == tid);
        let mut held = Vec::new();
        let mut reads = BTreeSet::new();
        let mut stuck = true;
        for tid in steps::running_threads(process, |tid| self.shared.is_inside(rank, process, tid)) {
            match steps::sample(tid, waited_for(tid), &disturbed) {
                Sample::Loop(found, thread) => {
                    reads.extend(found.reads);
                    stuck &= found.stuck;
                    held.push(thread);
                }
                Sample::Computes => return Some(Look::Computes),
                Sample::Disturbed => return None,
                Sample::Denied => {
                    let silence = &self.ranks[rank].silence;
                    let long = silence.unproven || silence.since.is_some_and(|since| since.elapsed() >= UNPROVEN);
                    return Some(if long { Look::Polls(Polling::Unproven) } else { Look::Computes });
                }
            }
        }
        let Rank { silence, experience, .. } = &mut self.ranks[rank];
        // Two looks that find the same, or the same as before: not an inner loop of something that moves on.
        let known = experience.loops.contains(&reads);
        let same = std::mem::replace(&mut silence.suspect, reads.clone()) == reads;
        if held.is_empty() || !(known || same) {
            return Some(Look::Computes);
        }
        silence.held = held;
        Some(Look::Polls(if stuck { Polling::Stuck } else { Polling::Counting }))
    }

    /// Lets the kernel end a rank whose threads were held when it was killed.
    pub(super) fn bury(&mut self, rank: usize) {
        self.ranks[rank].silence.held.retain(|thread| !thread.has_ended());
    }

    /// `length` bytes of a rank's memory at `address` have been written.
    pub(super) fn note_write(&mut self, rank: usize, address: u64, length: u64) {
        let silence = &self.ranks[rank].silence;
        let overlaps = |place: &Polled| {
            place.address < address.saturating_add(length) && address < place.address.saturating_add(place.length)
        };
        let seen = match silence.polling {
            None => false,
            Some(Polling::Unproven) => true,
            Some(_) => silence.suspect.iter().any(overlaps),
        };
        if seen {
            self.touched.insert(rank);
        }
    }
}

/// What a silent rank does.
enum Look {
    Computes,
    Polls(Polling),
}
