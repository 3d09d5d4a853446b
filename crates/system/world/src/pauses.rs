// SPDX-License-Identifier: Apache-2.0
//! Handles the pauses of ranks: in a library call, asleep, polling, or ended.

use std::process::ExitStatus;

use abi::mailbox::KnownCounter;
use abi::portals::INVALID_HANDLE;

use super::end::End;
use super::event::Cluster;
use super::poll_state::Change;
use super::processes::{Processes, Rank, Watched};
use ranks::{Caller, Pause, Reply};

impl Processes {
    /// Starts a rank, which runs to its first pause.
    ///
    /// # Errors
    /// If its program cannot be started.
    pub fn start_rank(&mut self, cluster: &mut Cluster, rank: usize) -> Result<(), ranks::JobError> {
        let pause = self.job.start(rank)?;
        self.paused(cluster, rank, pause);
        Ok(())
    }

    /// Replies to a call; its thread runs to the next pause of its rank.
    pub fn resume(&mut self, cluster: &mut Cluster, caller: Caller, reply: Reply) {
        // The actions of a thread after a call may concern another polling thread of its rank.
        if !self.ranks[caller.rank as usize].poll_state.resume(caller.slot) {
            self.note_change(cluster, caller.rank as usize, Change::Other);
        }
        if self.job.may_know(caller) {
            self.tell(cluster, caller);
        }
        let pause = self.job.resume(caller, cluster.now(), &reply);
        self.paused(cluster, caller.rank as usize, pause);
    }

    /// Attaches known events, counters and the lookahead to a thread's next reply.
    fn tell(&mut self, cluster: &mut Cluster, caller: Caller) {
        let Rank { watched: Watched { queue, counters }, aborted, .. } = self.ranks[caller.rank as usize];
        if aborted {
            return; // calls that wait fail
        }
        let lookahead = self.lookahead(cluster, caller.rank as usize).unwrap_or_default();
        let card = cluster.card(caller.rank as usize);
        let counters = counters.map(|ct| {
            let known = ct.and_then(|ct| Some(KnownCounter::new(ct, card.portals_mut().ct_value(ct).ok()?.success)));
            known.unwrap_or(KnownCounter::NONE)
        });
        let events = queue.and_then(|eq| Some((eq, card.portals_mut().eq_known(eq).ok()?)));
        match events {
            Some(events) => self.job.tell(caller, events, counters, lookahead),
            None => self.job.tell(caller, (INVALID_HANDLE, std::iter::empty()), counters, lookahead),
        }
    }

    /// Handles a pause of rank `running`, or another event while it ran, and all pauses that follow.
    pub fn paused(&mut self, cluster: &mut Cluster, running: usize, pause: Pause) {
        let mut next = Some((running, pause));
        while let Some((running, pause)) = next {
            next = self.handle_pause(cluster, running, pause);
        }
    }

    /// Handles one pause. Returns a rank that ran because of it, with its next pause.
    fn handle_pause(&mut self, cluster: &mut Cluster, running: usize, pause: Pause) -> Option<(usize, Pause)> {
        let at = cluster.now();
        for (rank, why) in self.job.pmi_refusals() {
            self.warn(cluster, rank, why);
        }
        match pause {
            Pause::Call(call) => {
                let rank = call.caller.rank as usize;
                if let Some(call) = self.charge_computation(cluster, call).or_else(|| self.pending(cluster, rank)) {
                    self.call(cluster, call);
                }
            }
            Pause::Runs => {}
            // Its threads continue when events answer them.
            Pause::Asleep { rank } => {
                self.note_change(cluster, rank, Change::Other);
                if self.job.is_free_running(rank) {
                    self.start_completion(cluster, rank);
                }
            }
            Pause::Polls { rank } => return self.polls(cluster, rank).map(|pause| (rank, pause)),
            Pause::Uninspectable { rank } => return Some((rank, self.uninspectable(cluster, rank))),
            Pause::Exited { rank, status } => {
                self.exited(cluster, rank, status);
                if rank != running && !self.is_over(running) {
                    return Some((running, self.job.wait(running)));
                }
            }
            Pause::Refused { rank, message } => {
                self.end_job(cluster, rank, End::BadProgram { rank, message });
                if rank != running && !self.is_over(running) {
                    return Some((running, self.job.wait(running)));
                }
            }
            Pause::Interrupted { signal } => self.end = Some(End::Interrupted { signal, running, at }),
            Pause::TimedOut => self.end = Some(End::TimedOut { running, at, idle_since: self.parked_releases.since() }),
        }
        None
    }

    pub fn exited(&mut self, cluster: &mut Cluster, rank: usize, status: ExitStatus) {
        self.parked_releases.end();
        let left = self.job.posts_left(rank);
        if left > 0 && !self.ranks[rank].is_doomed {
            let message = format!(
                "it has ended without exit handlers or PtlFini, so its last calls ({left}) were not made; with --post-ahead 0 each \
                 call is made before the program goes on"
            );
            self.warn(cluster, rank, &message);
        }
        let state = &mut self.ranks[rank];
        state.status = Some(status);
        state.end = cluster.now();
        state.waits.clear();
        let is_doomed = state.is_doomed;
        if status.success() && self.job.has_aborted(rank) {
            self.end_job(cluster, rank, End::Aborted { rank });
        } else if status.success() || is_doomed {
            if is_doomed {
                self.act(cluster, rank, |card, ports| card.process_dies(ports));
                self.leave_barriers(cluster, rank);
            } else {
                self.act(cluster, rank, |card, ports| card.reset(ports));
            }
        } else {
            // The run ends here, so packets in flight to its card are not lost for another reason.
            self.end_job(cluster, rank, End::RankFailed { rank, status, at: cluster.now() });
        }
    }
}
