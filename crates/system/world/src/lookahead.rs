//! Threads that poll between sleeps are told how long nothing else happens, so that they need not wait for each answer.

use sim::Time;

use super::event::Cluster;
use super::processes::Processes;
use ranks::Lookahead;

impl Processes {
    /// Returns for how long nothing happens but the calls of the one thread of a rank, which is to be answered now; `None` if that is not known, or
    /// the thread does not poll between sleeps.
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
