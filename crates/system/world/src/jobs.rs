// SPDX-License-Identifier: Apache-2.0
//! Several jobs on one cluster: names, start times and ends.
//!
//! The end of a job, its crash or the abort of one of its ranks ends this job's ranks only. A run with one job ends
//! with it.

use sim::Time;

use super::end::End;
use super::event::Cluster;
use super::membership::{Membership, memberships};
use super::processes::Processes;
use super::tenants::{Tenant, Tenants};

impl Processes {
    /// Separates the jobs of the cluster.
    pub(super) fn separate(&mut self, cluster: &mut Cluster, tenants: Vec<Tenant>) {
        let seating = self.job.seating().clone();
        assert_eq!(tenants.len(), seating.jobs(), "each job has its properties");
        let mut names = vec![String::new(); seating.places()];
        for (job, Tenant { name, .. }) in tenants.iter().enumerate() {
            for (rank, place) in seating.members(job).iter().enumerate() {
                names[*place] = format!("rank {rank} of job {name}");
            }
        }
        self.refusals.set_names(names.clone());
        cluster.set_names(names);
        let memberships = memberships(&seating, &tenants).into_iter();
        cluster.separate(memberships.map(|Membership { place, job, member }| (place, member, tenants[job].user)));
        self.tenants = Tenants { ends: vec![None; tenants.len()], list: tenants };
    }

    /// Divides the cards of the only job's nodes among their ranks, which have equal shares.
    pub(super) fn share_nodes(&mut self, cluster: &mut Cluster, uid: u32) {
        let memberships = memberships(self.job.seating(), &[]).into_iter();
        cluster.separate(memberships.map(|Membership { place, member, .. }| (place, member, uid)));
    }

    /// Returns the time at which a rank starts.
    pub(super) fn start_time(&self, rank: usize) -> Time {
        match self.tenants.list.as_slice() {
            [] => Time::ZERO,
            list => list[self.job.seating().job_of(rank)].start,
        }
    }

    /// Ends the run, or, if it has several jobs, the job of a rank.
    pub(super) fn end_job(&mut self, cluster: &mut Cluster, rank: usize, end: End) {
        if self.tenants.list.is_empty() {
            self.end = Some(end);
            return;
        }
        let job = self.job.seating().job_of(rank);
        if self.tenants.ends[job].is_some() {
            return;
        }
        self.tenants.ends[job] = Some(end);
        self.parked_releases.end();
        let members = self.job.seating().members(job).to_vec();
        let statuses = self.job.kill_ranks(&members);
        for (member, status) in members.into_iter().zip(statuses) {
            let state = &mut self.ranks[member];
            state.is_doomed = true;
            if state.status.is_none() {
                (state.status, state.end) = (Some(status), cluster.now());
                state.waits.clear();
            }
            self.act(cluster, member, |card, ports| card.process_dies(ports));
            self.leave_barriers(cluster, member);
        }
        if self.ranks.iter().all(|rank| rank.status.is_some()) {
            self.end = Some(End::Finished);
        }
    }

    /// Returns true if nothing of a rank remains to be done: the run or the rank has ended.
    pub(super) fn is_over(&self, rank: usize) -> bool {
        self.end.is_some() || !self.tenants.list.is_empty() && self.ranks[rank].status.is_some()
    }

    /// Returns the place of a process in the job of `rank`, given by its rank there.
    pub(super) fn place_of(&self, rank: usize, number: u32) -> Option<u32> {
        if self.tenants.list.is_empty() {
            return Some(number);
        }
        let seating = self.job.seating();
        seating.members(seating.job_of(rank)).get(number as usize).map(|place| *place as u32)
    }
}
