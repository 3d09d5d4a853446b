// SPDX-License-Identifier: Apache-2.0
//! Describes deadlocks: the wait of each rank.

use super::end::End;
use super::event::Cluster;
use super::processes::Processes;
use super::wait::Wait;

impl Processes {
    /// Returns the deadlock of these ranks.
    pub(super) fn deadlock(&self, cluster: &mut Cluster, ranks: &[usize]) -> End {
        let waits = ranks.iter().map(|rank| self.describe_wait(cluster, *rank)).collect();
        // The polls of parked threads since that time changed nothing.
        End::Deadlock {
            at: self.parked_releases.since().unwrap_or(cluster.now()),
            waits,
            polls: self.parked_releases.doubtful_turns(),
        }
    }

    fn describe_wait(&self, cluster: &mut Cluster, number: usize) -> String {
        let (rank, name) = (&self.ranks[number], cluster.name(number));
        match (&rank.status, rank.waits.iter().next().map(|(_, wait)| wait)) {
            (Some(_), _) => format!("{name} has ended"),
            (None, _) if self.job.polling(number).is_some() => self.describe_polling(cluster, number),
            (None, Some(Wait::Barrier(kind))) => {
                let (barrier, (arrived, ranks)) = (kind.name(), self.arrived(number, *kind));
                format!("{name} waits in {barrier}, where {arrived} of {ranks} ranks have come")
            }
            (None, Some(Wait::Idle { .. } | Wait::Search { .. })) => {
                format!("{name} polls for events that nothing will bring")
            }
            (None, Some(wait)) => format!("{name} waits in {}", wait.describe(cluster.card(number))),
            (None, None) => format!("{name} waits outside of the library"),
        }
    }
}
