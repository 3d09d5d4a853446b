//! Calls that were refused: a program that does not look at return codes may wait for what it has never started.

use std::collections::BTreeMap;

use abi::mailbox::Op;
use abi::portals::ReturnCode;
use sim::Time;

/// The refusals of a run by function and return code.
#[derive(Debug, Default)]
pub struct Refusals(BTreeMap<(&'static str, ReturnCode), Refused>);

/// Refusals of the same function with the same code.
#[derive(Debug)]
struct Refused {
    count: u64,
    /// The rank and the time of the first one.
    rank: usize,
    at: Time,
}

impl Refusals {
    /// Takes note of a refusal. Returns a text for the user if it is the first of its kind. That nothing has happened yet is no
    /// refusal.
    pub fn note(&mut self, rank: usize, op: Op, code: ReturnCode, at: Time) -> Option<String> {
        if matches!(code, ReturnCode::EqEmpty | ReturnCode::CtNoneReached | ReturnCode::Aborted) {
            return None;
        }
        let mut is_first = false;
        let refused = self.0.entry((op.c_name(), code)).or_insert_with(|| {
            is_first = true;
            Refused { count: 0, rank, at }
        });
        refused.count += 1;
        is_first.then(|| format!("{} returns {} to rank {rank} at {at}", op.c_name(), code.c_name()))
    }

    /// A sentence for each function and code.
    pub fn sentences(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|((name, code), Refused { count, rank, at })| {
            let times = if *count == 1 { "once".into() } else { format!("{count} times, first") };
            format!("{name} has returned {}, {times} to rank {rank} at {at}", code.c_name())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_a_kind_are_one() {
        let mut refusals = Refusals::default();
        let mut note = |rank, op, code, ns| refusals.note(rank, op, code, Time::from_ns(ns));
        let told = note(3, Op::PtlPut, ReturnCode::ArgInvalid, 7);
        assert_eq!(told.as_deref(), Some("PtlPut returns PTL_ARG_INVALID to rank 3 at 7.000 ns"));
        assert_eq!(note(2, Op::PtlPut, ReturnCode::ArgInvalid, 8), None);
        assert_eq!(note(2, Op::PtlEQGet, ReturnCode::EqEmpty, 8), None);
        assert!(note(1, Op::PtlPut, ReturnCode::Fail, 9).is_some());
        assert_eq!(
            refusals.sentences().collect::<Vec<_>>(),
            [
                "PtlPut has returned PTL_ARG_INVALID, 2 times, first to rank 3 at 7.000 ns",
                "PtlPut has returned PTL_FAIL, once to rank 1 at 9.000 ns"
            ]
        );
    }
}
