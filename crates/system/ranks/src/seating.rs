// SPDX-License-Identifier: Apache-2.0
//! Seats of the ranks: the program, the job and the rank in it of each process.
//!
//! The place of a process numbers it in the run: its node, or its turn if a node has several processes. Ranks are numbered
//! in their job, across its applications.

use super::job_spec::{Application, JobSpec};
use std::collections::{BTreeMap, BTreeSet};
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
    /// Seat of each place; `None` for a node without a process.
    seats: Vec<Option<Seat>>,
    /// Node of each place.
    nodes: Vec<usize>,
    /// Places of each job, by rank.
    members: Vec<Vec<usize>>,
    /// Range of the applications of each job.
    applications: Vec<Range<usize>>,
}

impl Seating {
    /// Returns the seats of a job's applications, or the reason why they do not fit together.
    pub(super) fn new(spec: &JobSpec) -> Result<Seating, String> {
        let mut seating = Seating::default();
        for (number, application) in spec.applications().enumerate() {
            seating.add(number, application, spec)?;
        }
        seating.number_by_node();
        Ok(seating)
    }

    fn add(&mut self, number: usize, application: Application<'_>, spec: &JobSpec) -> Result<(), String> {
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
            let place = self.seats.len();
            let node = match application.nodes {
                [] => place / spec.ranks_per_node.max(1),
                nodes => *nodes.get(index).ok_or("an application has fewer nodes than ranks")?,
            };
            let rank = self.members[job].len();
            self.seats.push(Some(Seat { application: number, job, rank }));
            self.nodes.push(node);
            self.members[job].push(place);
        }
        Ok(())
    }

    /// Numbers the processes by node if each node has at most one.
    fn number_by_node(&mut self) {
        let nodes = self.nodes.iter().max().map_or(0, |last| last + 1);
        let mut by_node = vec![None; nodes];
        for (seat, node) in self.seats.iter().zip(&self.nodes) {
            if std::mem::replace(&mut by_node[*node], *seat).is_some() {
                return;
            }
        }
        for members in &mut self.members {
            members.iter_mut().for_each(|place| *place = self.nodes[*place]);
        }
        (self.seats, self.nodes) = (by_node, (0..nodes).collect());
    }

    /// Returns the number of places of processes.
    pub fn places(&self) -> usize {
        self.seats.len()
    }

    /// Returns the node of each place.
    pub fn nodes(&self) -> &[usize] {
        &self.nodes
    }

    /// Returns the nodes of a job's ranks, numbered in the order of their first ranks.
    pub fn nodes_of_job(&self, job: usize) -> Vec<u32> {
        let mut numbers = BTreeMap::new();
        let number = |place: &usize| {
            let next = numbers.len() as u32;
            *numbers.entry(self.nodes[*place]).or_insert(next)
        };
        self.members[job].iter().map(number).collect()
    }

    /// Returns true if a node has several processes.
    pub fn shares_cards(&self) -> bool {
        self.nodes.iter().collect::<BTreeSet<_>>().len() < self.nodes.len()
    }

    /// Returns true if ranks of a job share nodes.
    pub fn shares_nodes(&self, job: usize) -> bool {
        let nodes: BTreeSet<usize> = self.members[job].iter().map(|place| self.nodes[*place]).collect();
        nodes.len() < self.members[job].len()
    }

    /// Returns the seat of the process of a place, if it has one.
    pub fn at(&self, place: usize) -> Option<Seat> {
        self.seats[place]
    }

    /// Returns the job of the process of a place.
    ///
    /// # Panics
    /// If the place has none.
    pub fn job_of(&self, place: usize) -> usize {
        self.seats[place].expect("the place has a process").job
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        self.members.len()
    }

    /// Returns the places of a job, by rank.
    pub fn members(&self, job: usize) -> &[usize] {
        &self.members[job]
    }

    /// Returns the tags of the ranks' output: their numbers, after the names of their jobs if there are several.
    pub(super) fn tags(&self, names: &[String]) -> Vec<String> {
        let tag = |(place, seat): (usize, &Option<Seat>)| match seat {
            Some(seat) => names.get(seat.job).map_or_else(|| place.to_string(), |name| format!("{name} {}", seat.rank)),
            None => place.to_string(),
        };
        self.seats.iter().enumerate().map(tag).collect()
    }

    /// Returns the index of a process's program in its job.
    pub(super) fn appnum(&self, place: usize) -> usize {
        self.seats[place].map_or(0, |seat| seat.application - self.applications[seat.job].start)
    }

    /// Returns the number of ranks of each application of a job.
    pub(super) fn sizes(&self, job: usize) -> Vec<usize> {
        let mut sizes = vec![0; self.applications[job].len()];
        self.members[job].iter().for_each(|place| sizes[self.appnum(*place)] += 1);
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
        assert_eq!((seating.places(), seating.jobs()), (6, 2));
        assert_eq!(seating.members(0), [0, 1, 2, 3, 4]);
        assert_eq!(seating.at(3), Some(Seat { application: 1, job: 0, rank: 3 }));
        assert_eq!(seating.at(5), Some(Seat { application: 2, job: 1, rank: 0 }));
        assert_eq!([0, 2, 5].map(|node| seating.appnum(node)), [0, 1, 0]);
        assert_eq!((seating.sizes(0), seating.sizes(1)), (vec![2, 3], vec![1]));
    }

    #[test]
    fn places_are_nodes_unless_processes_share_them() {
        let place = |nodes: &[usize]| {
            let spec = JobSpec { ranks: 1, others: vec![program(1, 2, nodes)], ..JobSpec::default() };
            Seating::new(&spec)
        };
        let seating = place(&[4, 2]).unwrap();
        assert_eq!((seating.members(1), seating.at(3)), (&[4, 2][..], None));
        assert_eq!((seating.job_of(2), seating.nodes_of_job(1)), (1, vec![0, 1]));
        let seating = place(&[4, 0]).unwrap();
        assert_eq!((seating.members(1), seating.nodes()), (&[1, 2][..], &[0, 4, 0][..]));
        let seating = place(&[4, 4]).unwrap();
        assert_eq!((seating.nodes(), seating.nodes_of_job(1)), (&[0, 4, 4][..], vec![0, 0]));
        assert_eq!(place(&[1]).unwrap_err(), "an application has fewer nodes than ranks");
    }

    #[test]
    fn consecutive_ranks_share_a_node() {
        let others = vec![program(0, 3, &[])];
        let spec = JobSpec { ranks: 2, ranks_per_node: 2, others, ..JobSpec::default() };
        let seating = Seating::new(&spec).unwrap();
        assert_eq!((seating.members(0), seating.nodes()), (&[0, 1, 2, 3, 4][..], &[0, 0, 1, 1, 2][..]));
        assert_eq!(seating.nodes_of_job(0), [0, 0, 1, 1, 2]);
    }
}
