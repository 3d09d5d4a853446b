// SPDX-License-Identifier: Apache-2.0
//! Counts refused calls: a program that ignores return codes may wait for an operation that never started.

use std::collections::BTreeMap;

use abi::portals::ReturnCode;
use nic::Reason;
use sim::Time;

/// Refusals of a run by function, return code and argument, and the last one of each rank.
#[derive(Debug, Default)]
pub struct Refusals {
    kinds: BTreeMap<(&'static str, ReturnCode, String), Refused>,
    last: BTreeMap<usize, String>,
    /// Names of the ranks for the user; empty for "rank N".
    names: Vec<String>,
}

/// Refusals of one function with the same code because of the same argument.
#[derive(Debug)]
pub struct Refused {
    /// Number of refusals.
    pub count: u64,
    /// Rank of the first refusal.
    pub rank: usize,
    /// Simulated time of the first refusal.
    pub at: Time,
    /// Reason of the first refusal, with the name of its argument.
    pub reason: Option<Reason>,
}

impl Refused {
    /// Returns the text that follows the name of the function; empty without a reason.
    fn why(&self) -> String {
        self.reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"))
    }
}

impl Refusals {
    /// Names the ranks in messages for the user.
    pub(super) fn set_names(&mut self, names: Vec<String>) {
        self.names = names;
    }

    fn name(&self, rank: usize) -> String {
        self.names.get(rank).cloned().unwrap_or_else(|| format!("rank {rank}"))
    }

    /// Records a refusal of the function `name`. Returns a message for the user if it is the first of its kind. An
    /// empty queue or an unreached counter is no refusal.
    pub fn note(
        &mut self,
        rank: usize,
        name: &'static str,
        code: ReturnCode,
        reason: Option<Reason>,
        at: Time,
    ) -> Option<String> {
        if !is_refusal(code) {
            return None;
        }
        let why = reason.as_ref().map_or(String::new(), |reason| format!(": {reason}"));
        let argument = reason.as_ref().map_or(String::new(), |reason| reason.argument.clone());
        self.last.insert(rank, format!("{name} has returned {} at {at}{why}", code.c_name()));
        let mut is_first = false;
        let refused = self.kinds.entry((name, code, argument)).or_insert_with(|| {
            is_first = true;
            Refused { count: 0, rank, at, reason }
        });
        refused.count += 1;
        is_first.then(|| format!("{name} returns {} to {} at {at}{why}", code.c_name(), self.name(rank)))
    }

    /// Returns a sentence for each function, code and argument whose first refusal was one of a rank that `concerns`.
    pub fn sentences(&self, concerns: impl Fn(usize) -> bool) -> impl Iterator<Item = String> {
        self.kinds().filter(move |(_, _, refused)| concerns(refused.rank)).map(|(name, code, refused)| {
            let Refused { count, at, .. } = refused;
            let rank = self.name(refused.rank);
            let times = if *count == 1 { "once".into() } else { format!("{count} times, first") };
            format!("{name} has returned {}, {times} to {rank} at {at}{}", code.c_name(), refused.why())
        })
    }

    /// Returns the refusals of each function, code and argument.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, ReturnCode, &Refused)> {
        self.kinds.iter().map(|((name, code, _), refused)| (*name, *code, refused))
    }

    /// Returns a sentence about the last refused call of a rank.
    pub fn last(&self, rank: usize) -> Option<&str> {
        self.last.get(&rank).map(String::as_str)
    }
}

/// Returns true if a return code means a refusal. Empty queues, unreached counters and aborted waits are none.
pub fn is_refusal(code: ReturnCode) -> bool {
    !matches!(code, ReturnCode::Ok | ReturnCode::EqEmpty | ReturnCode::CtNoneReached | ReturnCode::Aborted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_refusals_are_counted() {
        let mut refusals = Refusals::default();
        let reason = |argument: &str, why: &str| Some(Reason { argument: argument.into(), why: why.into() });
        let mut note = |rank, name, code, reason, ns| refusals.note(rank, name, code, reason, Time::from_ns(ns));
        let told = note(3, "PtlPut", ReturnCode::ArgInvalid, reason("target_id", "rank 7 of 3"), 7);
        assert_eq!(
            told.as_deref(),
            Some("PtlPut returns PTL_ARG_INVALID to rank 3 at 7.000 ns: target_id: rank 7 of 3")
        );
        assert_eq!(note(2, "PtlPut", ReturnCode::ArgInvalid, reason("target_id", "rank 8 of 3"), 8), None);
        assert!(note(2, "PtlPut", ReturnCode::ArgInvalid, reason("length", "is 9"), 8).is_some());
        assert_eq!(note(2, "PtlEQGet", ReturnCode::EqEmpty, None, 8), None);
        assert!(note(1, "PtlPut", ReturnCode::Fail, None, 9).is_some());
        assert_eq!(
            refusals.sentences(|_| true).collect::<Vec<_>>(),
            [
                "PtlPut has returned PTL_ARG_INVALID, once to rank 2 at 8.000 ns: length: is 9",
                "PtlPut has returned PTL_ARG_INVALID, 2 times, first to rank 3 at 7.000 ns: target_id: rank 7 of 3",
                "PtlPut has returned PTL_FAIL, once to rank 1 at 9.000 ns"
            ]
        );
        assert_eq!(refusals.last(2), Some("PtlPut has returned PTL_ARG_INVALID at 8.000 ns: length: is 9"));
        assert_eq!(refusals.last(0), None);
    }
}
