// SPDX-License-Identifier: Apache-2.0
//! Lookahead for threads that poll between sleeps: the time until the next event, so that they need not wait for each
//! reply.

use sim::Time;

use super::event::Cluster;
use super::processes::Processes;
use ranks::Lookahead;

impl Processes {
    /// Returns the period during which only the calls of a rank's single thread happen, for its next reply; `None` if
    /// it is unknown, or the thread does not poll between sleeps.
    pub fn lookahead(&self, cluster: &Cluster, rank: usize) -> Option<Lookahead> {
        let death = self.deaths.front().map(|death| death.at);
        let next = [cluster.next_event(), death].into_iter().flatten().min().unwrap_or(Time::LIMIT);
        let span = Time::from_ps(next.as_ps().saturating_sub(cluster.now().as_ps()));
        let state = &self.ranks[rank];
        let is_alone = state.waits.is_empty() && !state.completing;
        let takes_known_time = cluster.is_free(rank) && !cluster.costs().cpu_completes();
        (state.sleep_streak.are_many(span) && is_alone && takes_known_time && self.job.has_one_active_thread(rank))
            .then(|| Lookahead { span, poll: cluster.costs().poll().span })
    }
}
