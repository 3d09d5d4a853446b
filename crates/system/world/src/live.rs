// SPDX-License-Identifier: Apache-2.0
//! Ranks in real time (`spinrun --live`): all of them run at once, and their calls are made as they come.
//!
//! The cards are those of a simulation. Their events take no real time but that of their execution; only delays of
//! ranks pass in real time ([`Cluster::set_live`]).

use std::time::Duration;

use super::end::End;
use super::event::Cluster;
use super::processes::Processes;
use super::wait::Wait;

/// Real time after which a parked thread polls again, because it may count its polls, or wait for memory that another
/// process writes.
const PARKED: Duration = Duration::from_millis(1);
/// Real time without any activity after which waiting ranks are examined for a deadlock.
const SILENCE: Duration = Duration::from_secs(1);

impl Processes {
    /// Lets live ranks act. Returns true if one acted or time has passed, and false if an event of a card is due.
    pub(super) fn act_live(&mut self, cluster: &mut Cluster) -> bool {
        cluster.keep_pace();
        self.release_long_parked(cluster);
        if let Some((rank, pause)) = self.job.next_live_pause() {
            self.paused(cluster, rank, pause);
        } else if let Some((rank, message)) = self.job.refusal() {
            self.end_job(cluster, rank, End::BadProgram { rank, message });
        } else if cluster.next_event().is_some() {
            return false;
        } else if self.ranks.iter().all(|rank| rank.status.is_some()) {
            self.end = Some(End::Finished);
        } else {
            self.await_live_ranks(cluster);
        }
        true
    }

    /// Sleeps until a rank acts or a delay ends.
    fn await_live_ranks(&mut self, cluster: &mut Cluster) {
        let waits = || self.ranks.iter().flat_map(|rank| rank.waits.iter());
        let has_parked = waits().any(|(_, wait)| matches!(wait, Wait::Idle { .. } | Wait::Search { .. }));
        let timer = cluster.time_to_timer();
        let limit = if has_parked { PARKED } else { SILENCE };
        let is_silent = self.job.await_live_pause(Some(timer.map_or(limit, |timer| timer.min(limit))));
        if !is_silent || timer.is_some_and(|timer| timer <= limit) {
            return;
        }
        cluster.keep_pace();
        if has_parked {
            (0..self.ranks.len()).for_each(|rank| self.wake_parked(cluster, rank, |_, _| true));
        } else if timer.is_none() && self.job.all_wait_for_cards() {
            self.end = Some(self.deadlock(cluster, &(0..self.ranks.len()).collect::<Vec<_>>()));
        }
    }
}
