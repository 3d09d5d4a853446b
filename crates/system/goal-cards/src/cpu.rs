// SPDX-License-Identifier: Apache-2.0
//! CPU time of operations, and the actions after it.
//!
//! The costs are those of [`cluster::HostCosts`], as under `spinrun`. On rdma cards the CPU completes messages when it
//! is otherwise idle (sPIN §4.4.1).

use cluster::Work;
use goal::{Action, NicOp, Verb};
use nic::Notice;
use sim::Time;

use crate::error::RunError;
use crate::rank_state::{After, Cluster, CpuDone, Scripts, Task, WaitingTest, WorkList};

impl Scripts<'_> {
    /// Handles the notices of a rank's card to its host, and runs the rank's CPUs until all are busy or idle at this
    /// time.
    pub(crate) fn settle(&mut self, cluster: &mut Cluster, rank: u32) -> Result<(), RunError> {
        loop {
            self.take_notices(cluster, rank)?;
            let Some(cpu) = self.ready.pop_front() else { return Ok(()) };
            self.work(cluster, cpu)?;
        }
    }

    /// Turns the notices of a rank's card to its host into tasks of the CPUs.
    fn take_notices(&mut self, cluster: &mut Cluster, rank: u32) -> Result<(), RunError> {
        // Renewed overflow entries may cause further notices.
        while !cluster.notices().is_empty() {
            let (mut counters, mut queues, mut completions) = (false, false, false);
            for (_, notice) in cluster.notices() {
                match notice {
                    Notice::Counter(_) => counters = true,
                    Notice::Queue(_) => queues = true,
                    Notice::Completion => completions = true,
                    Notice::Portal(..) => {} // no schedule disables a portal table entry
                }
            }
            cluster.clear_notices();
            if counters {
                self.look_at_tests(cluster, rank);
            }
            if queues {
                self.take_events(cluster, rank)?;
            }
            if completions {
                self.ready.push_back(rank as usize * self.schedule.cpus());
            }
        }
        Ok(())
    }

    /// Starts the next task of an idle CPU.
    fn work(&mut self, cluster: &mut Cluster, cpu: usize) -> Result<(), RunError> {
        if self.cpus[cpu].busy {
            return Ok(());
        }
        match self.cpus[cpu].tasks.pop_front() {
            Some(Task::Start(op)) => {
                let (work, after) = self.start(cluster, op)?;
                self.occupy(cluster, cpu, work.into_iter().flatten(), after, Some(op))?;
                self.started(op, cluster.now());
                Ok(())
            }
            Some(task @ (Task::Look(_) | Task::Arrived(..))) if self.begins_poll_later(cluster, cpu) => {
                self.cpus[cpu].tasks.push_front(task);
                Ok(())
            }
            Some(Task::Look(op)) => self.occupy(cluster, cpu, cluster.costs().notice(), After::Done(op), Some(op)),
            Some(Task::Arrived(op, event)) => {
                let (work, after) = self.arrived(cluster, op, &event)?;
                self.occupy(cluster, cpu, work.into_iter().flatten(), after, Some(op))
            }
            None => self.complete(cluster, cpu),
        }
    }

    /// Keeps a polling CPU busy until the end of its current poll. Returns false if a poll starts now.
    fn begins_poll_later(&mut self, cluster: &mut Cluster, cpu: usize) -> bool {
        let Some(period) = self.poll.filter(|period| *period > Time::ZERO) else { return false };
        let since = cluster.now() - self.cpus[cpu].end;
        let into = since.as_ps() % period.as_ps();
        if into == 0 {
            return false;
        }
        let rest = period - Time::from_ps(into);
        self.cpus[cpu].busy = true;
        cluster.schedule(rest, CpuDone { cpu: cpu as u32, after: After::Nothing });
        true
    }

    /// Occupies a CPU with work that starts now.
    fn occupy(
        &mut self,
        cluster: &mut Cluster,
        cpu: usize,
        work: impl IntoIterator<Item = Work, IntoIter: Clone>,
        after: After,
        op: Option<u32>,
    ) -> Result<(), RunError> {
        let rank = self.rank_of(cpu);
        let delay = cluster.charge(rank as usize, work);
        let end = cluster.now() + delay;
        if end > Time::LIMIT {
            let what = op.map_or_else(|| format!("rank {rank}"), |op| self.schedule.describe(op));
            return Err(RunError::TooLate { what, bits: 63 });
        }
        self.cpus[cpu].busy = true;
        self.cpus[cpu].end = end;
        cluster.schedule(delay, CpuDone { cpu: cpu as u32, after });
        Ok(())
    }

    /// Handles the end of a CPU's work.
    pub(crate) fn cpu_done(&mut self, cluster: &mut Cluster, CpuDone { cpu, after }: CpuDone) -> Result<(), RunError> {
        let cpu = cpu as usize;
        let rank = self.rank_of(cpu);
        if after == After::Completion {
            self.act(cluster, rank, |card, ports| card.process_completion(ports));
            self.take_notices(cluster, rank)?;
        }
        self.cpus[cpu].busy = false;
        if let After::Done(op) = after {
            self.done(op, cluster.now());
        }
        self.ready.push_back(cpu);
        self.settle(cluster, rank)
    }

    /// Makes a rank's first CPU, if idle, complete the messages that an rdma card leaves to it.
    fn complete(&mut self, cluster: &mut Cluster, cpu: usize) -> Result<(), RunError> {
        if !cpu.is_multiple_of(self.schedule.cpus()) {
            return Ok(());
        }
        match cluster.completion(self.rank_of(cpu) as usize) {
            Some(work) => self.occupy(cluster, cpu, work, After::Completion, None),
            None => Ok(()),
        }
    }

    /// Starts an operation. Returns the work of the CPU, and the action after it.
    fn start(&mut self, cluster: &mut Cluster, op: u32) -> Result<(WorkList, After), RunError> {
        let rank = self.schedule.rank(op);
        match self.schedule.action(op) {
            Action::Calc(ns) => Ok(([Some(Work::compute(Time::from_ns(ns))), None], After::Done(op))),
            Action::Send { bytes, to, tag, space } => self.send(cluster, op, bytes, to, (space, tag)),
            Action::Recv { bytes, from, tag, space } => self.receive(cluster, op, bytes, from, (space, tag)),
            Action::Nic(NicOp { verb: Verb::Test { counter, reaches }, .. }) => {
                if self.counter_value(cluster, rank, *counter).success >= *reaches {
                    Ok(([Some(cluster.costs().poll()), None], After::Done(op)))
                } else {
                    let test = WaitingTest { op, counter: *counter, reaches: *reaches };
                    self.ranks[rank as usize].tests.push(test);
                    Ok(([None; 2], After::Nothing))
                }
            }
            Action::Nic(nic) => Ok((self.command(cluster, op, nic)?, After::Done(op))),
        }
    }
}
