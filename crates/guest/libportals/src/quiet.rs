// SPDX-License-Identifier: Apache-2.0
//! Sleeps and polls of a thread while nothing else happens in the simulation: they are posted, as the simulator has said until when that is so.

use crate::known;
use crate::library_state::thread;
use abi::calls::{Op, SpinSleep};
use abi::mailbox::Known;

/// Effect of a call until the next event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Passing {
    /// It sleeps.
    Sleeps,
    /// It finds nothing in its queue.
    FindsNothing,
}

/// Takes note that the thread was answered.
pub fn answered() {
    thread(|thread| thread.passed_ps.set(Some(0)));
}

/// Takes note that the thread has posted a call whose end is not known.
pub fn end() {
    thread(|thread| thread.passed_ps.set(None));
}

/// Returns what a call does if nothing else happens before it is over, and takes note of its time.
pub fn pass(op: Op, args: &[u64], known: &Known) -> Option<Passing> {
    let (span, passing) = match op {
        Op::SpinSleep => (SpinSleep::read(args).ps, Passing::Sleeps),
        _ if known::is_empty(op, args, known) => (known.poll_ps, Passing::FindsNothing),
        _ => return None,
    };
    let passed =
        thread(|thread| thread.passed_ps.get())?.checked_add(span).filter(|passed| *passed < known.quiet_ps)?;
    thread(|thread| thread.passed_ps.set(Some(passed)));
    Some(passing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::mailbox::{COUNTERS, KNOWN, KnownCounter};
    use abi::portals::Event;

    #[test]
    fn calls_pass_until_something_happens() {
        let _alone = known::ALONE.lock();
        let counters = [KnownCounter::NONE; COUNTERS];
        let mut known =
            Known { queue: 5, count: 0, counters, quiet_ps: 100, poll_ps: 7, events: [Event::default(); KNOWN] };
        assert_eq!(pass(Op::SpinSleep, &[1], &known), None, "there was no answer");
        known::answered();
        answered();
        assert_eq!(pass(Op::SpinSleep, &[40], &known), Some(Passing::Sleeps));
        assert_eq!(pass(Op::PtlEQGet, &[5], &known), Some(Passing::FindsNothing));
        assert_eq!(pass(Op::PtlEQGet, &[6], &known), None, "another queue");
        assert_eq!(pass(Op::SpinSleep, &[u64::MAX], &known), None);
        assert_eq!(pass(Op::SpinSleep, &[53], &known), None);
        assert_eq!(pass(Op::SpinSleep, &[45], &known), Some(Passing::Sleeps));
        assert_eq!(pass(Op::PtlEQGet, &[5], &known), Some(Passing::FindsNothing));
        assert_eq!(pass(Op::PtlEQGet, &[5], &known), None);
        answered();
        end();
        assert_eq!(pass(Op::SpinSleep, &[1], &known), None);
        answered();
        known.quiet_ps = 0;
        assert_eq!(pass(Op::SpinSleep, &[0], &known), None);
    }
}
