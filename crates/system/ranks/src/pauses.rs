// SPDX-License-Identifier: Apache-2.0
//! Waits for the next pause of a rank.

use super::call::{Call, Caller, PMI, Pause, Reply};
use super::output::Output;
use super::polling_loop::Polling;
use super::prediction::Prediction;
use super::rank_state::{Job, Posted, Process, Rank};
use super::{process, process_tree, signals, threads};
use abi::calls::Op;
use abi::mailbox::ARGS;
use abi::portals::ReturnCode;
use embedded::Stop;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Minimum time between two checks of all children, whose cost is proportional to their number.
const CHILDREN_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Interval between checks of the free-running and stopped threads.
const RECHECK_INTERVAL: Duration = Duration::from_millis(1);

impl Job {
    /// Returns the next call that arrived with the last pause of a rank with several threads. Call it after each pause
    /// whose call is not answered at once.
    pub fn pending(&mut self, rank: usize) -> Option<Call> {
        if self.first_post(rank).is_some() {
            return self.next_post(rank);
        }
        let (slot, tid) = self.first_request(rank)?;
        let caller = Caller { rank: rank as u32, slot: slot as u32 };
        if caller.slot == PMI {
            self.ranks[rank].inside |= 1 << PMI;
            return Some(Call { caller, op: Op::PmiBarrier, elapsed_ns: 0, args: [0; ARGS] });
        }
        match self.shared.call(caller, |pid| self.is_of_rank(rank, pid)) {
            Ok((call, pid)) => {
                self.called = true;
                self.ranks[rank].inside |= 1 << slot;
                self.ranks[rank].caller_pid = pid;
                self.ranks[rank].free_running.retain(|&thread, _| tid != 0 && thread != tid);
                if tid != 0 {
                    self.note_threads();
                }
                Some(call)
            }
            Err(message) => {
                self.shared.answer(caller, &Reply::new(ReturnCode::Fail));
                self.refused.get_or_insert((rank, message));
                None
            }
        }
    }

    /// Returns the slot with the next posted call to hand out, unless one is already outstanding.
    fn first_post(&self, rank: usize) -> Option<usize> {
        let Rank { inside, posted, .. } = &self.ranks[rank];
        if posted.is_none() { self.shared.first_post(rank, *inside) } else { None }
    }

    /// Returns the next posted call to hand out, if any. A call that no correct program posts marks the rank as
    /// refused.
    pub(super) fn next_post(&mut self, rank: usize) -> Option<Call> {
        let slot = self.first_post(rank)?;
        let caller = Caller { rank: rank as u32, slot: slot as u32 };
        match self.shared.take_post(caller, |pid| self.is_of_rank(rank, pid)) {
            Ok((call, pid, payload)) => {
                let state = &mut self.ranks[rank];
                state.inside |= 1 << caller.slot;
                let prediction = Prediction::of(call.op, &call.args, payload.claim());
                let posted = Posted { slot: caller.slot, op: call.op, prediction };
                (state.caller_pid, state.posted, state.payload) = (pid, Some(posted), Some(payload));
                Some(call)
            }
            Err(message) => {
                self.refused.get_or_insert((rank, message));
                None
            }
        }
    }

    /// Checks the MPI of the first rank that speaks PMI, and returns the reason if it cannot use the card. Programs in
    /// interpreted languages load their MPI only now. Builds the provider of an MPI that uses libfabric before the rank
    /// gets its reply, and thus before it looks for the provider.
    pub(super) fn check_mpi_of_first_rank(&mut self, rank: usize) -> Option<String> {
        let Process::Alive(pid) = self.ranks[rank].process else { return None };
        if !self.pmi.has_begun(rank) {
            return None;
        }
        let seat = self.seating.at(rank)?;
        let application = self.spec.application(seat.application);
        let variable = |name: &str| application.variable(name);
        process_tree::of(pid).into_iter().find_map(|pid| {
            let files = match process_tree::mapped_files(pid) {
                Ok(files) => files,
                Err(why) => return Some(format!("its libraries are not known, and so neither is its MPI: {why}")),
            };
            let verdict = crate::mpi::judge(files.iter().map(PathBuf::as_path), variable);
            verdict.objection(self.seating.members(seat.job).len(), self.spec.provider.as_ref())
        })
    }

    /// Returns the pause of a rank with a new call by one of its sleeping threads. Call it before each event, and
    /// before a deadlock is declared.
    pub fn poll(&mut self) -> Option<(usize, Pause)> {
        for rank in &self.asleep {
            self.pmi.serve(*rank);
        }
        match self.asleep.iter().find(|&&rank| self.first_request(rank).is_some()) {
            Some(&rank) => Some((rank, self.wait(rank))),
            None => self.recheck_threads(),
        }
    }

    /// Runs a rank that does not hold back simulated time until the clock interrupts it. Returns its pause if it makes a
    /// call or ends.
    fn run_freely(&mut self, rank: usize) -> Option<Pause> {
        let stop = self.embedded.as_mut()?.run(rank);
        self.drain(rank);
        match stop {
            Stop::Waits => {
                self.ranks[rank].free_running.clear();
                Some(self.next_pause(rank))
            }
            Stop::Computes => {
                self.inspect_free_running(rank);
                None
            }
            Stop::Ended(status) => Some(Pause::Exited { rank, status: self.end_embedded(rank, status) }),
        }
    }

    /// Checks free-running threads, and threads stopped for long, of paused ranks. Returns a rank that continues by
    /// itself, with its next pause.
    fn recheck_threads(&mut self) -> Option<(usize, Pause)> {
        if self.free_running_checked_at.elapsed() < RECHECK_INTERVAL {
            return None;
        }
        self.free_running_checked_at = Instant::now();
        for rank in self.asleep.clone() {
            if self.embedded.is_some() && self.is_free_running(rank) {
                if let Some(pause) = self.run_freely(rank) {
                    return Some((rank, pause));
                }
                continue;
            }
            if self.is_free_running(rank) {
                if let Some(status) = self.reap(rank) {
                    return Some((rank, Pause::Exited { rank, status }));
                }
                self.drop_blocked(rank);
                self.inspect_free_running(rank);
            }
            let is_changed = self.recheck_stopped(rank);
            if (is_changed || self.is_free_running(rank)) && !self.is_settled(rank) {
                return Some((rank, self.next_pause(rank)));
            }
        }
        None
    }

    /// Waits for the next pause of a running rank. Needed after [`Pause::Exited`] of another rank.
    pub fn wait(&mut self, rank: usize) -> Pause {
        self.end_batch();
        self.next_pause(rank)
    }

    /// Waits for the next pause of a rank, which may already be paused.
    pub(super) fn next_pause(&mut self, rank: usize) -> Pause {
        self.asleep.retain(|&other| other != rank);
        let mut period = threads::PERIOD;
        let mut slept = false;
        loop {
            let seen = self.shared.doorbell();
            if let Some(signal) = signals::received() {
                return Pause::Interrupted { signal };
            }
            // Checked in every iteration, because there may always be other work.
            let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
            if left == Some(Duration::ZERO) {
                return Pause::TimedOut;
            }
            self.pmi.serve(rank);
            let pause = self.pause_if_settled(rank);
            if let Some((rank, message)) = self.refused.take() {
                return Pause::Refused { rank, message };
            }
            if let Some(pause) = pause {
                self.drain(rank);
                self.note_wait(slept);
                return pause;
            }
            if matches!(self.ranks[rank].process, Process::Embedded) {
                if self.ranks[rank].stopped.is_empty()
                    && let Some(pause) = self.run_embedded(rank)
                {
                    return pause;
                }
                continue;
            }
            // Before reaping: SIGPIPE may kill a rank whose connection was closed, but the user needs the reason for
            // closing.
            if let Some(message) = self.pmi.fault(rank) {
                return Pause::Refused { rank, message: format!("PMI: {message}") };
            }
            if let Some(code) = self.pmi.aborted(rank) {
                return Pause::Exited { rank, status: abort_status(code) };
            }
            if let Some((rank, status)) = self.ended(rank) {
                return Pause::Exited { rank, status };
            }
            if let Some(message) = self.check_mpi_of_first_rank(rank) {
                return Pause::Refused { rank, message };
            }
            if self.shared.watch_doorbell(seen) {
                continue;
            }
            // A full pipe would block the rank forever, so it is drained periodically.
            let output = self.drain(rank).then_some(Output::PERIOD);
            let look = self.inspect_when_due(rank);
            if let Some(rank) =
                self.uninspectable.take().filter(|_| !std::mem::replace(&mut self.reported_uninspectable, true))
            {
                return Pause::Uninspectable { rank };
            }
            let threads = self.has_threads(rank).then_some(period);
            period = (period * 2).min(Output::PERIOD);
            slept = true;
            let children = self.next_children_check();
            self.shared.sleep(seen, [left, look, output, threads, children].into_iter().flatten().min());
        }
    }

    /// Returns the pause of a rank if all its threads wait.
    fn pause_if_settled(&mut self, rank: usize) -> Option<Pause> {
        let alone = self.first_request(rank).filter(|&(_, tid)| tid == 0).map(|(slot, _)| slot as u32);
        if let Some(slot) =
            alone.filter(|&slot| self.first_post(rank).is_none() && self.shared.is_flush(rank, slot as usize))
        {
            self.mark_running(rank);
            self.shared.answer(Caller { rank: rank as u32, slot }, &Reply::new(ReturnCode::Ok));
            return None;
        }
        if alone.is_none() {
            if !self.has_threads(rank) || !self.is_settled(rank) {
                return None;
            }
            let polling = self.kind_of_polling(rank);
            let before = std::mem::replace(&mut self.ranks[rank].silence.polling, polling);
            self.asleep.push(rank);
            // The caller decides whether a counting loop polls. Calls of other threads wait for that decision.
            let has_posted = self.first_post(rank).is_some();
            if polling == Some(Polling::Counting) && before.is_none() && !has_posted {
                return Some(Pause::Polls { rank });
            }
        }
        let call = self.pending(rank).map(Pause::Call);
        call.or_else(|| {
            let polls = self.polling(rank).is_some();
            alone.is_none().then_some(if polls { Pause::Polls { rank } } else { Pause::Asleep { rank } })
        })
    }

    /// Returns an ended rank: the running one, or any other if a child of the simulator ended since the last check.
    pub(super) fn ended(&mut self, running: usize) -> Option<(usize, ExitStatus)> {
        if let Process::Ended(status) = self.ranks[running].process {
            return Some((running, status));
        }
        let children = signals::children();
        if children == self.children_seen {
            return None;
        }
        if let Some(status) = self.reap(running) {
            return Some((running, status));
        }
        // If ranks end one after the other, most notifications concern ranks already reaped.
        let now = Instant::now();
        if now - self.children_checked_at < CHILDREN_CHECK_INTERVAL {
            return None;
        }
        self.children_checked_at = now;
        let ranks = if process::may_any_have_ended() { 0..self.ranks.len() } else { 0..0 };
        // Update the counter only when no further rank is found.
        let found = ranks.into_iter().find_map(|rank| Some((rank, self.reap(rank)?)));
        match found {
            Some(_) => self.children_checked_at -= CHILDREN_CHECK_INTERVAL,
            None => self.children_seen = children,
        }
        found
    }

    /// Returns the time after which [`Job::ended`] must run again, if a rank may have ended unnoticed.
    fn next_children_check(&self) -> Option<Duration> {
        (signals::children() != self.children_seen).then_some(CHILDREN_CHECK_INTERVAL)
    }

    /// Reaps a rank and returns its exit status if it ended. Kills the remaining processes of its group.
    pub(super) fn reap(&mut self, rank: usize) -> Option<ExitStatus> {
        let Process::Alive(pid) = self.ranks[rank].process else { return None };
        self.forget_killed_threads(rank);
        let status = process::reap(pid)?;
        self.thread_files.forget(pid);
        let status = self.pmi.disconnect(rank).map_or(status, abort_status);
        self.ranks[rank] = Rank { process: Process::Ended(status), ..Rank::default() };
        if let Some(output) = &mut self.output {
            output.finish(rank);
        }
        Some(status)
    }
}

/// Returns the exit status of a rank that aborts the job with this code. A nonzero code with a low byte of 0 still
/// counts as a failure.
pub(super) fn abort_status(code: i32) -> ExitStatus {
    ExitStatus::from_raw((code & 0xff).max(i32::from(code != 0)) << 8)
}
