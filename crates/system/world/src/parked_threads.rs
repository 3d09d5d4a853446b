// SPDX-License-Identifier: Apache-2.0
//! Parks threads that poll without success (`spin_idle`).
//!
//! Such a thread polls repeatedly. When an iteration of its loop found nothing, and nothing has changed since that a
//! further one could find, the thread is parked: it continues at its first poll after such a change. The loop thus
//! takes its usual simulated time, but needs no events and no calls.

use abi::calls::{Op, PtlCTPoll, PtlEQPoll, PtlMESearch, SpinIdle, SpinSleep};
use abi::portals::{Event, ReturnCode};
use sim::Time;

use super::completions::is_failed_search;
use super::event::Cluster;
use super::outcome::{Action, Outcome, after};
use super::poll_state::{Change, PollScope};
use super::processes::Processes;
use super::search_streak::Search;
use super::wait::Wait;
use ranks::{Call, Reply};

/// Maximum CPU time in nanoseconds between two polls that counts as the loop around the polls and is covered by the
/// time of the polls. A program that uses more computes.
const LOOP_NS: u64 = 10_000;

impl Processes {
    /// Makes a thread poll once more, or parks it (`spin_idle`). A thread that has read the time since its last
    /// `spin_idle` may wait for a point in time, so it continues.
    pub fn idle(&mut self, cluster: &mut Cluster, call: &Call) -> Outcome {
        let (rank, a) = (call.caller.rank as usize, SpinIdle::read(&call.args));
        let scope = if a.events_only == 0 { PollScope::All } else { PollScope::Events };
        let nothing_new = self.ranks[rank].poll_state.idle(call.caller.slot, scope);
        if a.has_read_time != 0 {
            self.parked_releases.end();
            self.note_sleep(cluster, rank);
        } else if nothing_new {
            return Ok(Action::Wait(
                Wait::Idle { since: cluster.now(), calls: self.parking_limit.calls(), scope },
                None,
            ));
        }
        after(cluster.charge(rank, [cluster.costs().poll()]), Reply::new(ReturnCode::Ok))
    }

    /// Records a sleep. Warns once if ranks only sleep and nothing else happens.
    pub fn note_sleep(&mut self, cluster: &mut Cluster, rank: usize) {
        if self.job.live_since().is_none()
            && let Some(since) = self.sleep_monitor.sleep(cluster.now())
        {
            let message = format!(
                "nothing but sleeps, looks at the clock and polls that found nothing has happened since {since}: what a rank \
                 waits for may never come (--timeout ends such a run)"
            );
            self.warn(cluster, rank, &message);
        }
    }

    /// Records the outcome of a thread's call. Anything but consecutive unsuccessful polls may concern the other
    /// threads of its rank, also through writes to memory. `last_poll_empty` is true if the previous call was an
    /// unsuccessful poll.
    pub fn note_outcome(&mut self, cluster: &mut Cluster, call: &Call, outcome: &Outcome, last_poll_empty: bool) {
        if call.op == Op::SpinShow {
            return; // describes past actions only
        }
        let (rank, slot) = (call.caller.rank as usize, call.caller.slot);
        let finds_nothing = is_poll(call) && is_empty_poll(call.op, outcome);
        if !finds_nothing && !self.is_of_search(call, outcome) {
            self.ranks[rank].search_streak.end();
        }
        if call.op != Op::SpinIdle {
            self.ranks[rank].poll_state.call(slot, finds_nothing);
        }
        if !(last_poll_empty && finds_nothing) {
            self.note_change(cluster, rank, Change::Other);
        }
        if call.op == Op::SpinSleep {
            self.ranks[rank].sleep_streak.sleep(Time::from_ps(SpinSleep::read(&call.args).ps));
        } else if !finds_nothing {
            self.ranks[rank].sleep_streak.end();
            self.sleep_monitor.end();
            self.parking_limit.call();
        }
    }

    /// Returns the wait of a thread that repeats a search: it would find nothing and repeat itself until something
    /// changes.
    pub fn repeated_search(&mut self, cluster: &mut Cluster, call: &Call) -> Option<Wait> {
        if call.op != Op::PtlMESearch {
            return None;
        }
        let (rank, now, a) = (call.caller.rank as usize, cluster.now(), PtlMESearch::read(&call.args));
        let new = self.new_entry(call);
        if cluster.is_dead(rank) || !cluster.card(rank).finds_nothing(a.ni_handle, new) {
            self.ranks[rank].search_streak.end();
            return None;
        }
        let search = Search { ni: a.ni_handle, pt_index: a.pt_index, kind: a.ptl_search_op, me: new.me };
        let period = self.ranks[rank].search_streak.search(call.caller.slot, search, now)?;
        Some(Wait::Search { since: now, calls: self.parking_limit.calls(), period, call: Box::new(call.clone()) })
    }

    /// Returns true if a call is a search, or takes the result of an unsuccessful one.
    fn is_of_search(&self, call: &Call, outcome: &Outcome) -> bool {
        let failed = |reply: &Reply| reply.structure().is_some_and(|event: Event| is_failed_search(&event));
        match (call.op, outcome) {
            (Op::PtlMESearch, Ok(_)) => true,
            (Op::SpinEqTake, Ok(_)) => self.ranks[call.caller.rank as usize].has_taken_failures,
            (op, Ok(Action::Reply(_, reply))) if op.properties().takes_event => failed(reply),
            _ => false,
        }
    }

    /// Returns true if the CPU time before a call belongs to a loop of polls, which is not charged.
    pub fn is_loop_of_polls(&self, call: &Call) -> bool {
        let poll_state = &self.ranks[call.caller.rank as usize].poll_state;
        is_poll(call) && poll_state.last_poll_was_empty(call.caller.slot) && call.elapsed_ns <= LOOP_NS
    }

    /// Without further events, resumes the parked threads of all ranks at their next polls, because they may count
    /// retries. Returns false if there are none, or if earlier releases led to nothing but polls too often.
    pub fn release_parked(&mut self, cluster: &mut Cluster) -> bool {
        let waits = self.ranks.iter().flat_map(|rank| rank.waits.iter());
        let parked = waits.filter(|(_, wait)| matches!(wait, Wait::Idle { .. } | Wait::Search { .. })).count();
        if parked > 0 && self.parked_releases.is_comparison_due() {
            let state = self.job.fingerprint();
            self.parked_releases.compare(state);
        }
        if parked == 0 || !self.parked_releases.begin(cluster.now(), parked) {
            return false;
        }
        (0..self.ranks.len()).for_each(|rank| self.wake_parked(cluster, rank, |_, _| true));
        true
    }

    /// Resumes threads at their next polls that were parked while others made many calls: those calls may wait for the
    /// next action of a parked thread.
    pub fn release_long_parked(&mut self, cluster: &mut Cluster) {
        if let Some(calls) = self.parking_limit.due() {
            (0..self.ranks.len()).for_each(|rank| self.wake_parked(cluster, rank, |at, _| at <= calls));
        }
    }
}

/// Returns true if a call tests for something and returns at once.
fn is_poll(call: &Call) -> bool {
    match call.op {
        Op::SpinIdle | Op::SpinEqTake | Op::PtlEQGet | Op::PtlCTGet => true,
        Op::PtlEQPoll => PtlEQPoll::read(&call.args).timeout == 0,
        Op::PtlCTPoll => PtlCTPoll::read(&call.args).timeout == 0,
        _ => false,
    }
}

/// Returns true if a poll finds nothing. A counter always has a value, and only the thread knows whether it is the
/// expected one.
fn is_empty_poll(op: Op, outcome: &Outcome) -> bool {
    match outcome {
        Ok(Action::Wait(Wait::Idle { .. }, _)) => true,
        Ok(Action::Reply(_, reply)) => {
            let nothing = [ReturnCode::EqEmpty as i32, ReturnCode::CtNoneReached as i32].contains(&reply.rc);
            nothing || matches!(op, Op::SpinIdle | Op::PtlCTGet)
        }
        _ => false,
    }
}
