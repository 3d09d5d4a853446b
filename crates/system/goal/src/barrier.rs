// SPDX-License-Identifier: Apache-2.0
//! Thread barrier for the windows of parallel execution.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::{hint, thread};

/// Number of spins before a thread sleeps: about as long as a wake-up takes.
const LOOKS: u32 = 1 << 10;

/// A thread barrier that spins, then sleeps. It spins first, as a window takes only microseconds and sleeping and
/// waking take longer. It then sleeps, as the missing thread may have no CPU and must not compete with the waiting
/// ones.
#[derive(Debug)]
pub(crate) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    sleepers: AtomicUsize,
    bed: Mutex<()>,
    bell: Condvar,
    is_broken: AtomicBool,
}

/// Membership of a thread. If the thread panics, the others panic too instead of waiting forever.
#[derive(Debug)]
pub(crate) struct Member<'a>(&'a Barrier);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.is_broken.store(true, Ordering::SeqCst);
            self.0.wake();
        }
    }
}

impl Barrier {
    pub fn new(threads: usize) -> Barrier {
        Barrier {
            threads,
            arrived: 0.into(),
            round: 0.into(),
            sleepers: 0.into(),
            bed: Mutex::new(()),
            bell: Condvar::new(),
            is_broken: false.into(),
        }
    }

    pub fn member(&self) -> Member<'_> {
        Member(self)
    }

    /// Waits for all threads. All their earlier writes are visible afterwards.
    pub fn wait(&self) {
        let round = self.round.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            // A thread that falls asleep registers itself before it checks the round for the last time.
            self.round.store(round + 1, Ordering::SeqCst);
            if self.sleepers.load(Ordering::SeqCst) > 0 {
                self.wake();
            }
            return;
        }
        for _ in 0..LOOKS {
            if self.is_over(round) {
                return;
            }
            hint::spin_loop();
        }
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let mut awake = self.bed.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.is_over(round) {
            awake = self.bell.wait(awake).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns true if all threads have arrived in a round.
    fn is_over(&self, round: usize) -> bool {
        assert!(!self.is_broken.load(Ordering::SeqCst), "another thread of the run has panicked");
        self.round.load(Ordering::SeqCst) != round
    }

    fn wake(&self) {
        // A thread holds the lock from its last check until it sleeps.
        drop(self.bed.lock());
        self.bell.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_goes_on_before_all_are_there() {
        let (barrier, count) = (Barrier::new(3), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for round in 1..=1000 {
                        count.fetch_add(1, Ordering::Relaxed);
                        barrier.wait();
                        assert_eq!(count.load(Ordering::Relaxed), 3 * round);
                        barrier.wait();
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_all() {
        let barrier = Barrier::new(2);
        thread::scope(|scope| {
            let panics = scope.spawn(|| {
                let _member = barrier.member();
                panic!("on purpose");
            });
            let waits = scope.spawn(|| {
                let _member = barrier.member();
                barrier.wait();
            });
            assert!(panics.join().is_err() && waits.join().is_err());
        });
    }
}
