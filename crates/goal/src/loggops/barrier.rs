use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::{hint, thread};

/// Number of times that a thread looks before it yields its CPU.
const LOOKS: u32 = 1 << 12;

/// A barrier for threads. They spin, as a window takes only microseconds, and to sleep and wake takes as long.
#[derive(Debug)]
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    round: AtomicUsize,
    is_broken: AtomicBool,
}

/// The membership of a thread. If the thread panics, the others panic too instead of waiting for ever.
#[derive(Debug)]
pub(super) struct Member<'a>(&'a Barrier);

impl Drop for Member<'_> {
    fn drop(&mut self) {
        self.0.is_broken.fetch_or(thread::panicking(), Ordering::Relaxed);
    }
}

impl Barrier {
    pub fn new(threads: usize) -> Barrier {
        Barrier { threads, arrived: 0.into(), round: 0.into(), is_broken: false.into() }
    }

    pub fn member(&self) -> Member<'_> {
        Member(self)
    }

    /// Waits for all threads. What each of them did before is then visible to all.
    pub fn wait(&self) {
        let round = self.round.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.round.store(round + 1, Ordering::Release);
            return;
        }
        let mut looks = 0;
        while self.round.load(Ordering::Acquire) == round {
            assert!(!self.is_broken.load(Ordering::Relaxed), "another thread of the run has panicked");
            looks += 1;
            if looks < LOOKS {
                hint::spin_loop();
            } else {
                thread::yield_now();
            }
        }
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
