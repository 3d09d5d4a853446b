// SPDX-License-Identifier: Apache-2.0
//! Moves the simulator and the ranks to their chosen CPUs.

use super::affinity::Choice;
use super::process::{process_id, tasks};
use super::rank_state::{Job, Process};
use rustix::thread::{CpuSet, sched_setaffinity};

impl Job {
    /// Records a wait for a rank, and moves all processes to other CPUs if that is better.
    pub(super) fn note_wait(&mut self, slept: bool) {
        // Ranks inherit the CPUs on which they are started.
        let is_complete = !self.ranks.last().is_some_and(|rank| matches!(rank.process, Process::NotStarted));
        let Some(choice) = (if is_complete { self.affinity.note(slept) } else { None }) else { return };
        let Some(cpus) = self.affinity.cpus(&choice) else { return };
        self.shared.set_same_cpu(matches!(choice, Choice::On(_)));
        self.run_on(&cpus, |pid| vec![pid]);
    }

    /// Records that a rank has several threads, which may compute in parallel: processes are no longer moved.
    pub(super) fn note_threads(&mut self) {
        if let Some(cpus) = self.affinity.end() {
            self.shared.set_same_cpu(false);
            self.run_on(&cpus, |pid| tasks(pid).unwrap_or_default());
        }
    }

    fn run_on(&self, cpus: &CpuSet, threads: impl Fn(u32) -> Vec<u32>) {
        // An ended rank cannot be moved and need not be.
        let _ = sched_setaffinity(None, cpus);
        for rank in &self.ranks {
            let Process::Alive(pid) = rank.process else { continue };
            let caller = Some(rank.caller_pid).filter(|&caller| caller != 0 && caller != pid);
            for tid in [pid].into_iter().chain(caller).flat_map(&threads) {
                let _ = process_id(tid).map(|tid| sched_setaffinity(Some(tid), cpus));
            }
        }
    }
}
