//! The state of the ranks: their CPUs and waiting tasks, their memory, and the operations that are not done.

use std::collections::VecDeque;

use abi::portals::{Event as FullEvent, Handle};
use cluster::{CardPorts, Work};
use goal::{DependencyTracker, RunProgress, Schedule};
use nic::Nic;
use sim::Time;
use sim::memory::push_back_frugally;

use crate::memory::SparseMemory;

/// The cluster whose ranks are schedules.
pub(crate) type Cluster = cluster::Cluster<CpuDone>;

/// A CPU, by its place in [`Scripts::cpus`], has finished its work.
pub(crate) struct CpuDone {
    pub cpu: u32,
    pub after: After,
}

/// What follows when a CPU has finished its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The operation is done.
    Done(u32),
    /// The operation waits.
    Nothing,
    /// A message of an rdma card is completed.
    Completion,
}

/// The work of a CPU for an operation, one piece after the other.
pub(crate) type WorkList = [Option<Work>; 2];

/// A CPU of a rank.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub busy: bool,
    /// When it was last busy.
    pub end: Time,
    /// Work for it, in the order in which it came up.
    pub tasks: VecDeque<Task>,
}

/// Work for a CPU.
#[derive(Debug)]
pub(crate) enum Task {
    /// Start an operation whose dependencies are satisfied.
    Start(u32),
    /// Go on with an operation whose condition is now satisfied.
    Look(u32),
    /// Process the message of a receive that is in an overflow entry, or its announcement.
    Arrived(u32, Box<FullEvent>),
}

/// The state of a rank besides its card and its CPUs.
#[derive(Debug, Default)]
pub(crate) struct Rank {
    /// The card's counters by the number that the schedule gives them.
    pub counters: Vec<(u32, Handle)>,
    /// The HPU memories of its entries.
    pub memories: Vec<Handle>,
    /// Its tests that wait for their counter.
    pub tests: Vec<WaitingTest>,
    /// Its sends and receives that wait for a message.
    pub messages: Vec<u32>,
    /// The queue with the events of its sends and receives.
    pub queue: Option<Handle>,
}

/// A test that waits for its counter.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitingTest {
    pub op: u32,
    pub counter: u32,
    pub reaches: u64,
}

/// The ranks of a schedule.
pub(crate) struct Scripts<'a> {
    pub schedule: &'a Schedule,
    pub ranks: Vec<Rank>,
    /// The CPUs of all ranks; those of one rank are neighbours.
    pub cpus: Vec<Cpu>,
    /// CPUs that may have a task to begin, in the order in which they got it.
    pub ready: VecDeque<usize>,
    pub dependencies: DependencyTracker<'a>,
    pub memory: SparseMemory,
    /// Largest message that is sent without waiting for its receive, in bytes.
    pub eager: u64,
    /// Largest message that the CPU hands to its card with the descriptor, in bytes.
    pub inject: u64,
    /// The time of a poll, if CPUs that wait poll for what comes.
    pub poll: Option<Time>,
    /// The interface, whose handle is the same on every card.
    pub ni: Handle,
    /// An empty list, kept for its memory.
    unblocked: Vec<u32>,
}

impl<'a> Scripts<'a> {
    /// Creates the ranks of `schedule`, none of which has started.
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

    /// Has a card act. Its notices are handled before the next CPU begins a task.
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

    /// Gives work to the CPU of an operation.
    pub fn enqueue(&mut self, op: u32, task: Task) {
        let cpu = self.cpu_of(op);
        push_back_frugally(&mut self.cpus[cpu].tasks, task);
        self.ready.push_back(cpu);
    }

    /// Gives operations that have become ready to their CPUs.
    pub fn begin(&mut self, ops: &[u32]) {
        ops.iter().for_each(|&op| self.enqueue(op, Task::Start(op)));
    }

    /// Reports that an operation has started.
    pub fn started(&mut self, op: u32, now: Time) {
        self.dependencies.started(op, now);
        self.begin_unblocked();
    }

    /// Reports that an operation is done.
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
