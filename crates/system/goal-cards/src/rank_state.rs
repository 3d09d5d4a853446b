// SPDX-License-Identifier: Apache-2.0
//! State of the ranks: CPUs and waiting tasks, memory, and unfinished operations.

use std::collections::VecDeque;

use abi::portals::{Event as FullEvent, Handle};
use cluster::{CardPorts, Work};
use goal::{DependencyTracker, RunProgress, Schedule};
use nic::Nic;
use sim::Time;
use sim::memory::push_back_frugally;

use crate::memory::SparseMemory;

/// A cluster whose ranks are schedules.
pub(crate) type Cluster = cluster::Cluster<CpuDone>;

/// End of a CPU's work; `cpu` is an index into [`Scripts::cpus`].
pub(crate) struct CpuDone {
    pub cpu: u32,
    pub after: After,
}

/// Action after the end of a CPU's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The operation is done.
    Done(u32),
    /// The operation waits.
    Nothing,
    /// A message of an rdma card is complete.
    Completion,
}

/// Work of a CPU for an operation, in sequence.
pub(crate) type WorkList = [Option<Work>; 2];

/// A CPU of a rank.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub busy: bool,
    /// End of its last work.
    pub end: Time,
    /// Waiting work, first come first served.
    pub tasks: VecDeque<Task>,
}

/// Work for a CPU.
#[derive(Debug)]
pub(crate) enum Task {
    /// Start an operation with satisfied dependencies.
    Start(u32),
    /// Resume an operation whose condition is satisfied.
    Look(u32),
    /// Process a receive's message in an overflow entry, or its announcement.
    Arrived(u32, Box<FullEvent>),
}

/// State of a rank besides its card and its CPUs.
#[derive(Debug, Default)]
pub(crate) struct Rank {
    /// Card counters, by the number in the schedule.
    pub counters: Vec<(u32, Handle)>,
    /// HPU memories of the rank's entries.
    pub memories: Vec<Handle>,
    /// Tests that wait for their counter.
    pub tests: Vec<WaitingTest>,
    /// Sends and receives that wait for a message.
    pub messages: Vec<u32>,
    /// Queue for the events of sends and receives.
    pub queue: Option<Handle>,
}

/// A test that waits for its counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTest {
    pub op: u32,
    pub counter: u32,
    pub reaches: u64,
}

/// Ranks of a schedule.
pub(crate) struct Scripts<'a> {
    pub schedule: &'a Schedule,
    pub ranks: Vec<Rank>,
    /// CPUs of all ranks, grouped by rank.
    pub cpus: Vec<Cpu>,
    /// CPUs that may have a task to start, first come first served.
    pub ready: VecDeque<usize>,
    pub dependencies: DependencyTracker<'a>,
    pub memory: SparseMemory,
    /// Eager limit: maximum size of a message that does not wait for its receive, in bytes.
    pub eager: u64,
    /// Maximum size of a message that the CPU passes to its card with the descriptor, in bytes.
    pub inject: u64,
    /// Duration of a poll, if waiting CPUs poll.
    pub poll: Option<Time>,
    /// Network interface handle, the same on every card.
    pub ni: Handle,
    /// Scratch list, kept for its allocation.
    unblocked: Vec<u32>,
}

impl<'a> Scripts<'a> {
    /// Creates the ranks of `schedule` before their start.
    pub fn new(schedule: &'a Schedule, ni: Handle, eager: u64) -> Scripts<'a> {
        let ranks = schedule.ranks() as usize;
        Scripts {
            schedule,
            ranks: std::iter::repeat_with(Rank::default).take(ranks).collect(),
            cpus: std::iter::repeat_with(Cpu::default).take(ranks * schedule.cpus()).collect(),
            ready: VecDeque::new(),
            dependencies: DependencyTracker::new(schedule, false, RunProgress::default()),
            memory: SparseMemory::default(),
            eager,
            inject: 0,
            poll: None,
            ni,
            unblocked: Vec::new(),
        }
    }

    /// Lets a card act. Its notices are handled before the next CPU starts a task.
    pub fn act<R>(
        &mut self,
        cluster: &mut Cluster,
        rank: u32,
        act: impl FnOnce(&mut Nic, &mut CardPorts<'_, CpuDone, SparseMemory>) -> R,
    ) -> R {
        cluster.act(rank as usize, &mut self.memory, act)
    }

    /// Returns the CPU of an operation.
    pub fn cpu_of(&self, op: u32) -> usize {
        self.schedule.rank(op) as usize * self.schedule.cpus() + self.schedule.resources(op).0
    }

    /// Returns the rank of a CPU.
    pub fn rank_of(&self, cpu: usize) -> u32 {
        (cpu / self.schedule.cpus()) as u32
    }

    /// Enqueues a task for the CPU of an operation.
    pub fn enqueue(&mut self, op: u32, task: Task) {
        let cpu = self.cpu_of(op);
        push_back_frugally(&mut self.cpus[cpu].tasks, task);
        self.ready.push_back(cpu);
    }

    /// Enqueues ready operations at their CPUs.
    pub fn begin(&mut self, ops: &[u32]) {
        ops.iter().for_each(|&op| self.enqueue(op, Task::Start(op)));
    }

    /// Records the start of an operation.
    pub fn started(&mut self, op: u32, now: Time) {
        self.dependencies.started(op, now);
        self.begin_unblocked();
    }

    /// Records the end of an operation.
    pub fn done(&mut self, op: u32, now: Time) {
        self.dependencies.done(op, now);
        self.begin_unblocked();
    }

    fn begin_unblocked(&mut self) {
        let mut unblocked = std::mem::take(&mut self.unblocked);
        self.dependencies.take_ready(&mut unblocked);
        self.begin(&unblocked);
        self.unblocked = unblocked;
    }
}
