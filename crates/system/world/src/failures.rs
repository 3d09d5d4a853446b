// SPDX-License-Identifier: Apache-2.0
//! Scheduled failures of ranks and cards.

use std::collections::VecDeque;

use abi::portals::ReturnCode;
use cluster::{Death, Failures, NetError, Victim};
use sim::Time;
use thiserror::Error;

use super::event::Cluster;
use super::processes::{Processes, answer};
use super::wait::Wait;
use ranks::{Caller, Reply};

/// Reason why the failures cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FailureError {
    /// The rank to fail does not exist.
    #[error("there is no rank {rank} to fail; the last of {ranks} is {}", ranks - 1)]
    NoRank {
        /// Rank number.
        rank: u32,
        /// Number of ranks.
        ranks: usize,
    },
    /// Packets are to be lost at a place that no packet passes.
    #[error("packets cannot be lost there: {0}")]
    Network(#[from] NetError),
}

impl Processes {
    /// Schedules failures of ranks and cards, and losses of packets.
    ///
    /// # Errors
    /// If a rank or a link does not exist.
    pub fn set_failures(&mut self, cluster: &mut Cluster, failures: &Failures) -> Result<(), FailureError> {
        let ranks = self.ranks.len();
        if let Some(Death { rank, .. }) = failures.deaths.iter().find(|death| death.rank as usize >= ranks) {
            return Err(FailureError::NoRank { rank: *rank, ranks });
        }
        cluster.set_losses(&failures.losses, failures.seed)?;
        let mut deaths = failures.deaths.clone();
        deaths.sort_by_key(|death| death.at);
        self.deaths = VecDeque::from(deaths);
        Ok(())
    }

    /// Executes the next failure unless an event precedes it. Returns true if it happened.
    pub fn die_when_due(&mut self, cluster: &mut Cluster) -> bool {
        let Some(&Death { rank, at, victim }) = self.deaths.front() else { return false };
        if cluster.next_event().is_some_and(|next| next <= at) || self.ranks.iter().all(|rank| rank.status.is_some()) {
            return false;
        }
        self.deaths.pop_front();
        cluster.pass_until(at);
        match victim {
            Victim::Process => self.process_dies(cluster, rank as usize, at),
            Victim::Card => self.card_dies(cluster, rank as usize, at),
        }
        true
    }

    fn process_dies(&mut self, cluster: &mut Cluster, rank: usize, at: Time) {
        if self.ranks[rank].status.is_some() {
            return;
        }
        self.ranks[rank].is_doomed = true;
        let status = self.job.end_rank(rank);
        self.warn(cluster, rank, &format!("its process is killed at {at} (--fail)"));
        self.exited(cluster, rank, status);
    }

    fn card_dies(&mut self, cluster: &mut Cluster, rank: usize, at: Time) {
        if self.ranks[rank].status.is_some() || cluster.is_dead(rank) {
            return;
        }
        cluster.kill_card(rank);
        let beside = cluster.places().beside(rank).to_vec();
        let running = |other: &u32| self.ranks[*other as usize].status.is_none();
        let others: Vec<u32> = beside.into_iter().filter(|other| *other as usize != rank).filter(running).collect();
        self.lose_card(cluster, rank, at);
        others.into_iter().for_each(|other| self.lose_card(cluster, other as usize, at));
    }

    /// Ends the waits of a rank whose card has died.
    fn lose_card(&mut self, cluster: &mut Cluster, rank: usize, at: Time) {
        self.ranks[rank].is_doomed = true;
        self.warn(cluster, rank, &format!("its card dies at {at} (--kill-card)"));
        self.ranks[rank].waits.retain(|slot, wait| {
            let needs_card = !matches!(wait, Wait::Barrier(_));
            if needs_card {
                answer(cluster, Caller { rank: rank as u32, slot }, Time::ZERO, Reply::new(ReturnCode::Fail));
            }
            !needs_card
        });
    }
}
