//! Answers that are known before the call is made: events that were in a queue at the last answer, and counters that had reached a value.
//!
//! A queue gives its events in their order, so that the oldest one remains the next. That a queue is empty, or the value of a counter that
//! may still rise, is never known.

use abi::mailbox::{KNOWN, Known, Op};
use abi::portals::{Event, Handle};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

thread_local! {
    /// The number of events that the thread has taken since its last answer.
    static TAKEN: Cell<usize> = const { Cell::new(0) };
    /// The address of the one queue at which the thread has looked last by `PtlEQPoll`; 0 if there is none.
    static POLLED: Cell<u64> = const { Cell::new(0) };
}

/// Whether the process has had a second thread, which could take the events.
static SHARED: AtomicBool = AtomicBool::new(false);

/// Forgets what is known, for ever.
pub fn forget() {
    SHARED.store(true, Ordering::Relaxed);
}

/// Takes note that the thread was answered: what is known is new.
pub fn answered() {
    TAKEN.set(0);
}

/// Takes note of a call that was answered.
pub fn learn(op: Op, args: &[u64]) {
    if op == Op::PtlEQPoll {
        POLLED.set(if args[1] == 1 { args[0] } else { 0 });
    }
}

/// Whether a call takes one event of a queue.
pub fn takes_event(op: Op) -> bool {
    matches!(op, Op::PtlEQGet | Op::PtlEQWait | Op::PtlEQPoll)
}

/// Takes the event that the call will get. Returns the address of the queue's handle, too, if the call has that.
pub fn next(op: Op, args: &[u64], known: &Known) -> Option<(Event, Option<u64>)> {
    let taken = TAKEN.get();
    if taken >= (known.count as usize).min(KNOWN) || SHARED.load(Ordering::Relaxed) {
        return None;
    }
    let (queue, address) = match op {
        Op::PtlEQGet | Op::PtlEQWait => (args[0] as Handle, None),
        // An address that was read before can be read again.
        Op::PtlEQPoll if args[1] == 1 && args[0] == POLLED.get() && args[0] != 0 => {
            // SAFETY: the caller passes valid queues, as the header asks.
            (unsafe { (args[0] as *const Handle).read_unaligned() }, Some(args[0]))
        }
        _ => return None,
    };
    (queue == known.queue).then(|| {
        TAKEN.set(taken + 1);
        (known.events[taken], address)
    })
}

/// Whether the counter of a wait has reached the threshold.
pub fn has_reached(args: &[u64], known: &Known) -> bool {
    known.counter == args[0] as Handle && known.success >= args[1] && !SHARED.load(Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::portals::INVALID_HANDLE;

    /// One test, as what is forgotten is the process's.
    #[test]
    fn events_are_given_in_their_order_until_a_second_thread_is_there() {
        let mut known = Known { queue: 5, count: 3, counter: 9, success: 7, events: [Event::default(); KNOWN] };
        for (event, number) in known.events.iter_mut().zip(0..) {
            event.hdr_data = number;
        }
        let queues: [Handle; 2] = [5, 5];
        let at = queues.as_ptr() as u64;
        let number = |op, args: &[u64]| next(op, args, &known).map(|(event, address)| (event.hdr_data, address));
        assert_eq!(number(Op::PtlEQGet, &[5]), Some((0, None)));
        assert_eq!(number(Op::PtlEQWait, &[6]), None, "another queue");
        assert_eq!(number(Op::PtlCTWait, &[5, 1]), None);
        assert_eq!(number(Op::PtlEQPoll, &[at, 1, 0]), None, "it is not known that the address can be read");
        learn(Op::PtlEQPoll, &[at, 2, 0]);
        assert_eq!(number(Op::PtlEQPoll, &[at, 2, 0]), None, "several queues");
        learn(Op::PtlEQPoll, &[at, 1, 0]);
        assert_eq!(number(Op::PtlEQPoll, &[at, 1, 0]), Some((1, Some(at))));
        assert_eq!(number(Op::PtlEQPoll, &[at + 4, 1, 0]), None);
        assert_eq!(number(Op::PtlEQWait, &[5]), Some((2, None)));
        assert_eq!(number(Op::PtlEQWait, &[5]), None, "no more are known");
        answered();
        assert_eq!(number(Op::PtlEQWait, &[5]), Some((0, None)));
        for (counter, test, reached) in [(9, 7, true), (9, 8, false), (8, 1, false), (INVALID_HANDLE.into(), 0, false)]
        {
            assert_eq!(has_reached(&[counter, test], &known), reached);
        }
        forget();
        answered();
        assert_eq!(number(Op::PtlEQWait, &[5]), None);
        assert!(!has_reached(&[9, 7], &known));
    }
}
