//! The boundary between the unit and its cores.

use crate::cluster::Cluster;
use crate::command::{Command, CommandId};
use crate::cycle::Cycle;
use crate::fabric::{DmaInterconnect, PeInterconnect, ProgramPort, Remote, TransferId};
use crate::her::{DriverEvent, HpuId, Range, Task, TaskOutcome};
use crate::memory::{Arena, Place};
use crate::observe::{Noted, Observer};
use crate::schedule::Tasks;

/// The HPUs of all clusters, as the unit sees them.
///
/// The unit tells them that there is a task, that what they waited for has come, or that the watchdog bites. In its own part of
/// each cycle, a cluster with something to do acts on its surroundings ([`ClusterSide`]).
pub trait Cores {
    /// The next cycle in which an HPU of a cluster does something by itself; [`Cycle::NEVER`] when all of them wait.
    fn next(&self, cluster: u16) -> Cycle;

    /// Does what the HPUs of a cluster have to do in cycle `now`. Their accesses to L1 in this cycle compete for its banks.
    fn step<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>);

    /// The driver of an HPU has a task: a load of the function pointer returns in cycle `at`, or later when the HPU is late.
    fn task(&mut self, hpu: HpuId, at: Cycle);

    /// What an HPU waited for has come: there is room for its doorbell or its command, which it tries again in cycle `at`, or its
    /// command is done.
    fn resume(&mut self, hpu: HpuId, at: Cycle);

    /// The watchdog kills the handler of an HPU in cycle `at`, whatever it does. The HPU calls [`ClusterSide::end`] when it has
    /// recovered.
    fn kill(&mut self, hpu: HpuId, at: Cycle);

    /// The access for which an HPU has asked ([`ClusterSide::ask`]) happens in cycle `at`, before the cluster acts in this cycle.
    /// The cluster's port has taken it in cycle `taken`, and the HPU has the answer in cycle `answer`. Cores that never ask need not do anything.
    fn reach(&mut self, _hpu: HpuId, _at: Cycle, _taken: Cycle, _answer: Cycle) {}

    /// A line of code, for which an HPU of a cluster has asked ([`ClusterSide::fetch`]), will be there in a cycle. Cores that never
    /// ask need not do anything.
    fn refill(&mut self, _cluster: u16, _line: u32, _there: Cycle) {}

    /// The instructions that all HPUs have executed so far; 0 when they execute none.
    fn instructions(&self) -> u64 {
        0
    }
}

/// What the HPUs of a cluster reach in their part of a cycle.
pub struct ClusterSide<'a, O> {
    /// Scheduler and HPU drivers of the cluster.
    pub cluster: &'a mut Cluster,
    /// All tasks.
    pub tasks: &'a Tasks,
    /// The bytes of all memories.
    pub memory: &'a mut Arena,
    /// The interconnect to remote memories.
    pub pe: &'a mut PeInterconnect,
    /// The port of the program memory.
    pub program: &'a mut ProgramPort,
    /// The DMA engines.
    pub dma: &'a mut DmaInterconnect,
    /// What the driver on the host is told at the end of the cycle.
    pub events: &'a mut Vec<DriverEvent>,
    /// The observer of the unit.
    pub observer: &'a mut O,
}

impl<O: Observer> ClusterSide<'_, O> {
    fn id(&self, hpu: u16) -> HpuId {
        HpuId { cluster: self.cluster.index(), hpu }
    }

    /// The task of an HPU, and its packet in L1, from the assignment to the doorbell.
    pub fn task(&self, hpu: u16) -> Option<(&Task, Range)> {
        let (task, packet) = self.cluster.task(self.cluster.drivers[usize::from(hpu)].task?)?;
        Some((&self.tasks[task], packet))
    }

    /// The load of the function pointer returns. Returns the first instruction of the handler.
    pub fn start(&mut self, hpu: u16, now: Cycle) -> Option<u32> {
        let id = self.id(hpu);
        let (task, _) = self.cluster.task(self.cluster.drivers[usize::from(hpu)].task?)?;
        let task = &self.tasks[task];
        self.observer.note(now, Noted::Start { hpu: id, task });
        task.her.context.entry(task.role)
    }

    /// An HPU rings the doorbell, or gives its handler up. Returns whether it may go on; otherwise it waits until
    /// [`Cores::resume`] and tries again in that cycle.
    pub fn end(&mut self, hpu: u16, now: Cycle, outcome: TaskOutcome) -> bool {
        let id = self.id(hpu);
        let place = self.cluster.drivers[usize::from(hpu)].task;
        let Some(outcome) = self.cluster.finish(hpu, outcome) else {
            self.observer.note(now, Noted::Held { hpu: id });
            return false;
        };
        if let Some((task, _)) = place.and_then(|place| self.cluster.task(place)) {
            self.observer.note(now, Noted::End { hpu: id, task: &self.tasks[task], outcome });
        }
        true
    }

    /// Whether [`ClusterSide::end`] would succeed; otherwise the HPU waits until [`Cores::resume`].
    pub fn could_end(&mut self, hpu: u16) -> bool {
        self.cluster.could_finish(hpu)
    }

    /// An HPU wants a word of its own cluster's L1, at this offset, in this cycle. Returns whether it gets the bank; otherwise it
    /// asks again in the next cycle.
    #[inline]
    pub fn take_bank(&mut self, hpu: u16, now: Cycle, offset: u32, is_atomic: bool) -> bool {
        let is_granted = self.cluster.banks.take(now, offset, is_atomic);
        if !is_granted && O::WATCHES {
            let (id, address) = (self.id(hpu), Arena::start(Place::L1(self.cluster.index())) + offset);
            self.observer.note(now, Noted::Conflict { hpu: id, address });
        }
        is_granted
    }

    /// An HPU asks for an access to a memory that is not its own L1; [`Cores::reach`] tells when it happens.
    pub fn ask(&mut self, hpu: u16, remote: Remote) {
        self.pe.ask(self.id(hpu), remote);
    }

    /// An HPU needs a line of code that is not in the instruction cache of the cluster; [`Cores::refill`] tells when it is there.
    pub fn fetch(&mut self, hpu: u16, line: u32) {
        self.program.ask(self.id(hpu), line);
    }

    /// An HPU issues a command, of which the core has checked that its handler may use the memory. Returns its number; `None`
    /// when the HPU has to wait: it is resumed when it may issue the command again.
    pub fn issue(&mut self, hpu: u16, command: Command) -> Option<CommandId> {
        let issued = self.cluster.drivers[usize::from(hpu)].issue(command);
        if issued.is_some() {
            self.cluster.issue(hpu);
        }
        issued
    }

    /// The HPU whose copy the DMA engine of the cluster takes in this cycle, of those in the set `hpus`; `None` when its queue is full.
    pub fn choose_launch(&mut self, now: Cycle, hpus: u64) -> Option<u32> {
        self.dma.choose_launch(self.cluster.index(), now, hpus)
    }

    /// The chosen HPU starts a copy of at least one byte between memories that its handler may use.
    pub fn copy(&mut self, now: Cycle, from: Range, to: u32) -> TransferId {
        self.dma.copy(self.cluster.index(), now, from, to)
    }

    /// Whether a copy is done in cycle `now`.
    pub fn is_copied(&self, now: Cycle, id: TransferId) -> bool {
        self.dma.is_done(self.cluster.index(), now, id)
    }
}
