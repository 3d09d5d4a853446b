// SPDX-License-Identifier: Apache-2.0
//! Several jobs on one cluster: names, start times and ends.
//!
//! The end of a job, its crash or the abort of one of its ranks ends this job's ranks only. A run with one job ends
//! with it.

use cluster::Partition;
use sim::Time;

use super::end::End;
use super::event::Cluster;
use super::processes::Processes;
use super::tenants::{Tenant, Tenants};

impl Processes {
    /// Separates the jobs of the cluster.
    pub(super) fn separate(&mut self, cluster: &mut Cluster, tenants: Vec<Tenant>) {
        let seating = self.job.seating().clone();
        assert_eq!(tenants.len(), seating.jobs(), "each job has its properties");
        let mut names = vec![String::new(); seating.nodes()];
        for (job, Tenant { name, user, weight, .. }) in tenants.iter().enumerate() {
            let members = seating.members(job);
            let nodes = members.iter().map(|node| *node as u32).collect();
            cluster.separate(Partition::new(nodes, *weight), *user);
            for (rank, node) in members.iter().enumerate() {
                names[*node] = format!("rank {rank} of job {name}");
            }
        }
        self.refusals.set_names(names.clone());
        cluster.set_names(names);
        self.tenants = Tenants { ends: vec![None; tenants.len()], list: tenants };
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

    /// Returns the node of a process in the job of `rank`, given by its rank there.
    pub(super) fn node_of(&self, rank: usize, place: u32) -> Option<u32> {
        if self.tenants.list.is_empty() {
            return Some(place);
        }
        let seating = self.job.seating();
        seating.members(seating.job_of(rank)).get(place as usize).map(|node| *node as u32)
    }
}
