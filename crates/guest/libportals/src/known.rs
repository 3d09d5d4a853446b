// SPDX-License-Identifier: Apache-2.0
//! Prediction of results from the last answer: events that were in a queue, and values that counters had reached.
//!
//! A queue delivers its events in order, so its oldest event stays the next one. An empty queue is predicted only until
//! the next event of the simulation ([`crate::quiet`]); the value of a counter that may still rise, never.

use crate::library_state::{process, thread};
use abi::calls::{Op, Polled, PtlCTPoll, PtlCTWait, PtlEQGet, PtlEQPoll};
use abi::mailbox::{KNOWN, Known, KnownCounter};
use abi::portals::{Event, Handle, INVALID_HANDLE};
use std::sync::atomic::Ordering;

/// Disables predictions permanently.
pub fn forget() {
    process().is_shared.store(true, Ordering::Relaxed);
}

/// Records an answer to the thread, which refreshes the known events.
pub fn answered() {
    thread(|thread| thread.taken.set(0));
}

/// Records the arguments of an answered call.
pub fn learn(op: Op, args: &[u64]) {
    match op {
        Op::PtlEQPoll => {
            let poll = PtlEQPoll::read(args);
            thread(|thread| thread.queue.set(if poll.size == 1 { poll.eq_handles } else { 0 }));
        }
        Op::PtlCTPoll => {
            let poll = PtlCTPoll::read(args);
            thread(|thread| thread.counter.set(if poll.size == 1 { (poll.ct_handles, poll.tests) } else { (0, 0) }));
        }
        _ => {}
    }
}

/// Returns the one object of a poll if the thread's last such poll had the same addresses: the simulator has read them,
/// so they are readable. The simulator checks other addresses.
pub fn polled(op: Op, args: &[u64]) -> Option<Polled> {
    let (handles, test) = match op {
        Op::PtlEQPoll => {
            let poll = PtlEQPoll::read(args);
            let is_known =
                poll.size == 1 && poll.eq_handles != 0 && poll.eq_handles == thread(|thread| thread.queue.get());
            (is_known.then_some(poll.eq_handles)?, 0)
        }
        Op::PtlCTPoll => {
            let poll = PtlCTPoll::read(args);
            let is_known = poll.size == 1
                && poll.ct_handles != 0
                && (poll.ct_handles, poll.tests) == thread(|thread| thread.counter.get());
            // SAFETY: the caller passes valid arrays, as the header asks.
            (is_known.then_some(poll.ct_handles)?, unsafe { (poll.tests as *const u64).read_unaligned() })
        }
        _ => return None,
    };
    // SAFETY: as above.
    let handle = unsafe { (handles as *const Handle).read_unaligned() };
    Some(Polled { handle: handle.into(), test })
}

/// Takes the event that the call will return, if known.
pub fn next(op: Op, args: &[u64], known: &Known) -> Option<Event> {
    let taken = thread(|thread| thread.taken.get());
    if taken >= (known.count as usize).min(KNOWN) || process().is_shared.load(Ordering::Relaxed) {
        return None;
    }
    let queue = match op {
        Op::PtlEQGet | Op::PtlEQWait => PtlEQGet::read(args).eq_handle,
        _ => polled(op, args)?.handle as Handle,
    };
    (queue == known.queue).then(|| {
        thread(|thread| thread.taken.set(taken + 1));
        known.events[taken]
    })
}

/// Returns true if the thread has taken all events of the polled queue: the poll finds nothing until the next event.
pub fn is_empty(op: Op, args: &[u64], known: &Known) -> bool {
    let queue = match op {
        Op::PtlEQGet => Some(PtlEQGet::read(args).eq_handle),
        Op::PtlEQPoll if PtlEQPoll::read(args).timeout == 0 => polled(op, args).map(|polled| polled.handle as Handle),
        _ => None,
    };
    // A full list may lack events of the queue.
    let has_all =
        thread(|thread| thread.taken.get()) == known.count as usize && thread(|thread| thread.taken.get()) < KNOWN;
    has_all
        && queue == Some(known.queue)
        && known.queue != INVALID_HANDLE
        && !process().is_shared.load(Ordering::Relaxed)
}

/// Returns true if the counter of a wait is known to have reached the threshold.
pub fn has_reached(args: &[u64], known: &Known) -> bool {
    let PtlCTWait { ct_handle, test, .. } = PtlCTWait::read(args);
    let has_reached = |counter: &KnownCounter| counter.handle == ct_handle && counter.success >= test;
    ct_handle != INVALID_HANDLE
        && known.counters.iter().any(has_reached)
        && !process().is_shared.load(Ordering::Relaxed)
}

/// Held by tests that disable predictions, or use them.
#[cfg(test)]
pub static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use super::*;
    use abi::mailbox::COUNTERS;

    #[test]
    fn what_was_polled_before_comes_with_the_call() {
        let (handles, tests): ([Handle; 2], [u64; 2]) = ([7, 8], [30, 40]);
        let (at, test) = (handles.as_ptr() as u64, tests.as_ptr() as u64);
        let queue = |at, count| polled(Op::PtlEQPoll, &[at, count, 0]).map(|polled| polled.handle);
        assert_eq!((queue(at, 1), queue(0, 1)), (None, None));
        learn(Op::PtlEQPoll, &[at, 2, 0]);
        assert_eq!((queue(at, 1), queue(at, 2)), (None, None));
        learn(Op::PtlEQPoll, &[at, 1, 0]);
        assert_eq!((queue(at, 1), queue(at, 2), queue(at + 4, 1)), (Some(7), None, None));
        let counter = |at, test, count| polled(Op::PtlCTPoll, &[at, test, count, 0]);
        assert_eq!(counter(at, test, 1), None);
        learn(Op::PtlCTPoll, &[at, test, 1, 0]);
        assert_eq!(counter(at, test, 1), Some(Polled { handle: 7, test: 30 }));
        assert_eq!((counter(at, test + 8, 1), counter(at + 4, test, 1), counter(at, test, 2)), (None, None, None));
        assert_eq!((polled(Op::PtlEQWait, &[7]), queue(at, 1)), (None, Some(7)));
        learn(Op::PtlCTPoll, &[at, test, 2, 0]);
        assert_eq!(counter(at, test, 1), None);
    }

    /// A single test, as the predictions belong to the whole process.
    #[test]
    fn events_are_given_in_their_order_until_a_second_thread_is_there() {
        let _alone = ALONE.lock();
        let mut counters = [KnownCounter::NONE; COUNTERS];
        (counters[0], counters[COUNTERS - 1]) = (KnownCounter::new(9, 7), KnownCounter::new(4, 1));
        let mut known =
            Known { queue: 5, count: 3, counters, quiet_ps: 0, poll_ps: 0, events: [Event::default(); KNOWN] };
        for (event, number) in known.events.iter_mut().zip(0..) {
            event.hdr_data = number;
        }
        let queues: [Handle; 2] = [5, 5];
        let at = queues.as_ptr() as u64;
        let number = |op, args: &[u64]| next(op, args, &known).map(|event| event.hdr_data);
        assert_eq!(number(Op::PtlEQGet, &[5]), Some(0));
        assert_eq!(number(Op::PtlEQWait, &[6]), None, "another queue");
        assert_eq!(number(Op::PtlCTWait, &[5, 1]), None);
        assert_eq!(number(Op::PtlEQPoll, &[at, 1, 0]), None, "it is not known that the address can be read");
        learn(Op::PtlEQPoll, &[at, 2, 0]);
        assert_eq!(number(Op::PtlEQPoll, &[at, 2, 0]), None, "several queues");
        learn(Op::PtlEQPoll, &[at, 1, 0]);
        assert_eq!(number(Op::PtlEQPoll, &[at, 1, 0]), Some(1));
        assert_eq!(number(Op::PtlEQPoll, &[at + 4, 1, 0]), None);
        assert_eq!(number(Op::PtlEQWait, &[5]), Some(2));
        assert_eq!(number(Op::PtlEQWait, &[5]), None, "no more are known");
        let is_empty = |op, args: &[u64]| super::is_empty(op, args, &known);
        assert!(is_empty(Op::PtlEQGet, &[5]) && is_empty(Op::PtlEQPoll, &[at, 1, 0]));
        assert!(
            !is_empty(Op::PtlEQGet, &[6]) && !is_empty(Op::PtlEQPoll, &[at, 1, 7]),
            "another queue; a poll that waits"
        );
        answered();
        assert!(!is_empty(Op::PtlEQGet, &[5]));
        assert_eq!(number(Op::PtlEQWait, &[5]), Some(0));
        let none = u64::from(INVALID_HANDLE);
        for (counter, test, reached) in
            [(9, 7, true), (9, 8, false), (8, 1, false), (4, 1, true), (4, 2, false), (none, 0, false)]
        {
            assert_eq!(has_reached(&[counter, test], &known), reached);
        }
        forget();
        answered();
        assert_eq!(number(Op::PtlEQWait, &[5]), None);
        assert!(!has_reached(&[9, 7], &known));
        process().is_shared.store(false, Ordering::Relaxed);
    }
}
