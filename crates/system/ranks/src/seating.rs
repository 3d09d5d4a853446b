// SPDX-License-Identifier: Apache-2.0
//! Seats of the ranks: the program, the job and the rank in it of each process.
//!
//! A process has the number of its node. Ranks are numbered in their job, across its applications.

use super::job_spec::{Application, JobSpec};
use std::ops::Range;

/// Program, job and rank of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seat {
    /// Index of its program among those of all jobs.
    pub application: usize,
    /// Index of its job.
    pub job: usize,
    /// Rank in its job.
    pub rank: usize,
}

/// Seats of all processes.
#[derive(Clone, Debug, Default)]
pub struct Seating {
    /// Seat of each node; `None` for a node without a process.
    seats: Vec<Option<Seat>>,
    /// Nodes of each job, by rank.
    members: Vec<Vec<usize>>,
    /// Range of the applications of each job.
    applications: Vec<Range<usize>>,
}

impl Seating {
    /// Returns the seats of a job's applications, or the reason why they do not fit together.
    pub(super) fn new(spec: &JobSpec) -> Result<Seating, String> {
        let mut seating = Seating::default();
        for (number, application) in spec.applications().enumerate() {
            seating.add(number, application)?;
        }
        Ok(seating)
    }

    fn add(&mut self, number: usize, application: Application<'_>) -> Result<(), String> {
        let job = application.job;
        match job.checked_sub(self.members.len()) {
            Some(0) => {
                self.members.push(Vec::new());
                self.applications.push(number..number);
            }
            None if job + 1 == self.members.len() => {}
            _ => return Err(format!("application {number} belongs to job {job}, which does not follow the last")),
        }
        self.applications[job].end = number + 1;
        for index in 0..application.ranks {
            let node = match application.nodes {
                [] => self.seats.len(),
                nodes => *nodes.get(index).ok_or("an application has fewer nodes than ranks")?,
            };
            if self.seats.len() <= node {
                self.seats.resize(node + 1, None);
            }
            let rank = self.members[job].len();
            if self.seats[node].replace(Seat { application: number, job, rank }).is_some() {
                return Err(format!("two processes are on node {node}"));
            }
            self.members[job].push(node);
        }
        Ok(())
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.seats.len()
    }

    /// Returns the seat of the process of a node, if it has one.
    pub fn at(&self, node: usize) -> Option<Seat> {
        self.seats[node]
    }

    /// Returns the job of a node's process.
    ///
    /// # Panics
    /// If the node has none.
    pub fn job_of(&self, node: usize) -> usize {
        self.seats[node].expect("the node has a process").job
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        self.members.len()
    }

    /// Returns the nodes of a job, by rank.
    pub fn members(&self, job: usize) -> &[usize] {
        &self.members[job]
    }

    /// Returns the tags of the ranks' output: their numbers, after the names of their jobs if there are several.
    pub(super) fn tags(&self, names: &[String]) -> Vec<String> {
        let tag = |(node, seat): (usize, &Option<Seat>)| match seat {
            Some(seat) => names.get(seat.job).map_or_else(|| node.to_string(), |name| format!("{name} {}", seat.rank)),
            None => node.to_string(),
        };
        self.seats.iter().enumerate().map(tag).collect()
    }

    /// Returns the index of a process's program in its job.
    pub(super) fn appnum(&self, node: usize) -> usize {
        self.seats[node].map_or(0, |seat| seat.application - self.applications[seat.job].start)
    }

    /// Returns the number of ranks of each application of a job.
    pub(super) fn sizes(&self, job: usize) -> Vec<usize> {
        let mut sizes = vec![0; self.applications[job].len()];
        self.members[job].iter().for_each(|node| sizes[self.appnum(*node)] += 1);
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::super::job_spec::Program;
    use super::*;

    fn program(job: usize, ranks: usize, nodes: &[usize]) -> Program {
        Program { job, ranks, nodes: nodes.to_vec(), ..Program::default() }
    }

    #[test]
    fn ranks_continue_across_the_applications_of_a_job() {
        let spec = JobSpec { ranks: 2, others: vec![program(0, 3, &[]), program(1, 1, &[])], ..JobSpec::default() };
        let seating = Seating::new(&spec).unwrap();
        assert_eq!((seating.nodes(), seating.jobs()), (6, 2));
        assert_eq!(seating.members(0), [0, 1, 2, 3, 4]);
        assert_eq!(seating.at(3), Some(Seat { application: 1, job: 0, rank: 3 }));
        assert_eq!(seating.at(5), Some(Seat { application: 2, job: 1, rank: 0 }));
        assert_eq!([0, 2, 5].map(|node| seating.appnum(node)), [0, 1, 0]);
        assert_eq!((seating.sizes(0), seating.sizes(1)), (vec![2, 3], vec![1]));
    }

    #[test]
    fn nodes_may_be_chosen_but_not_shared() {
        let place = |nodes: &[usize]| {
            let spec = JobSpec { ranks: 1, others: vec![program(1, 2, nodes)], ..JobSpec::default() };
            Seating::new(&spec)
        };
        let seating = place(&[4, 2]).unwrap();
        assert_eq!((seating.members(1), seating.at(3)), (&[4, 2][..], None));
        assert_eq!(seating.job_of(2), 1);
        assert_eq!(place(&[4, 4]).unwrap_err(), "two processes are on node 4");
        assert_eq!(place(&[0, 1]).unwrap_err(), "two processes are on node 0");
        assert_eq!(place(&[1]).unwrap_err(), "an application has fewer nodes than ranks");
    }
}
