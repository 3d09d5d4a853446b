// SPDX-License-Identifier: Apache-2.0
//! Several jobs on one cluster: names, start times and ends.
//!
//! The end of a job, its crash or the abort of one of its ranks ends this job's ranks only. A run with one job ends
//! with it.

use std::process::ExitStatus;

use cluster::Partition;
use sim::Time;

use super::end::End;
use super::event::{Cluster, Event};
use super::processes::Processes;

/// Properties of a job among others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tenant {
    /// Name, for messages and reports.
    pub name: String,
    /// Portals user id of its processes.
    pub user: u32,
    /// Simulated time at which its ranks start.
    pub start: Time,
    /// Share of the cards' resources, relative to those of other jobs.
    pub weight: u32,
}

/// Jobs of a run with several.
#[derive(Default)]
pub(super) struct Tenants {
    pub(super) list: Vec<Tenant>,
    /// Ends of the jobs that have ended early.
    pub(super) ends: Vec<Option<End>>,
}

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

    /// Starts the ranks, each at the time of its job.
    ///
    /// # Errors
    /// If a program cannot be started.
    pub(super) fn start_ranks(&mut self, cluster: &mut Cluster) -> Result<(), ranks::JobError> {
        for rank in 0..self.ranks.len() {
            if self.ranks[rank].status.is_some() {
                continue; // a node without a process, or a job that a sibling has ended
            }
            match self.start_time(rank) {
                Time::ZERO => self.start_rank(cluster, rank)?,
                start => cluster.schedule(start, Event::Start(rank as u32)),
            }
            if self.end.is_some() {
                break;
            }
        }
        Ok(())
    }

    fn start_time(&self, rank: usize) -> Time {
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
        let members = self.job.seating().members(job).to_vec();
        let statuses = self.job.kill_ranks(&members);
        for (member, status) in members.into_iter().zip(statuses) {
            self.ranks[member].is_doomed = true;
            if self.ranks[member].status.is_none() {
                self.exited(cluster, member, status);
            } else {
                self.act(cluster, member, |card, ports| card.process_dies(ports));
            }
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

    /// Returns the exit status of a node without a process.
    pub(super) fn status_without_process(&self, node: usize) -> Option<ExitStatus> {
        self.job.seating().at(node).is_none().then(ExitStatus::default)
    }

    /// Returns the end of each job; `None` for one that a limit of the whole run has ended.
    pub(super) fn job_ends(&self, cluster: &mut Cluster) -> Vec<Option<End>> {
        let end = |(job, early): (usize, &Option<End>)| {
            let members = self.job.seating().members(job);
            match early {
                Some(end) => Some(end.clone()),
                None if members.iter().all(|member| self.ranks[*member].status.is_some()) => Some(End::Finished),
                None if self.end.is_some() => None,
                None => Some(self.deadlock(cluster, members)),
            }
        };
        self.tenants.ends.iter().enumerate().map(end).collect()
    }
}
