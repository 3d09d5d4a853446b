// SPDX-License-Identifier: Apache-2.0
//! The boundary between the unit and its cores.

use crate::command::{Command, CommandId};
use crate::cycle::Cycle;
use crate::fabric::{DmaInterconnect, PeInterconnect, ProgramPort, Remote, TransferId};
use crate::her::{DriverEvent, HpuId, Range, Task, TaskOutcome};
use crate::hpu_cluster::HpuCluster;
use crate::memory::{Arena, Place};
use crate::observe::{Noted, Observer};
use crate::schedule::Tasks;

/// The HPUs of all clusters, seen from the unit.
///
/// The unit hands over tasks, wakes HPUs that wait, and kills handlers when the watchdog expires. In its turn in a
/// cycle, each active cluster acts on its surroundings through [`ClusterSide`].
pub trait Cores {
    /// Returns the next cycle in which an HPU of `cluster` is active; [`Cycle::NEVER`] if all of them wait.
    fn next(&self, cluster: u16) -> Cycle;

    /// Simulates the HPUs of `cluster` in cycle `now`. Their L1 accesses in this cycle compete for its banks.
    fn step<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>);

    /// Gives `hpu` a task: its load of the function pointer returns in cycle `at`, or later if the HPU issues it later.
    fn task(&mut self, hpu: HpuId, at: Cycle);

    /// Resumes `hpu` in cycle `at`: it either retries a doorbell or command that found no room, or its command is done.
    fn resume(&mut self, hpu: HpuId, at: Cycle);

    /// Kills the handler of `hpu` in cycle `at` (watchdog). The HPU calls [`ClusterSide::end`] once it has recovered.
    fn kill(&mut self, hpu: HpuId, at: Cycle);

    /// Performs the access requested with [`ClusterSide::ask`] in cycle `at`, before the cluster acts in this cycle.
    /// The cluster's port accepted it in cycle `taken`, and the answer reaches the HPU in cycle `answer`. Cores that
    /// never request accesses need not implement this.
    fn reach(&mut self, _hpu: HpuId, _at: Cycle, _taken: Cycle, _answer: Cycle) {}

    /// Announces that the line requested with [`ClusterSide::fetch`] is in the cache from cycle `_there` on. Cores that
    /// never fetch lines need not implement this.
    fn refill(&mut self, _cluster: u16, _line: u32, _there: Cycle) {}

    /// Returns the number of instructions executed by all HPUs so far; 0 for cores without instructions.
    fn instructions(&self) -> u64 {
        0
    }
}

/// Parts of the unit that the HPUs of a cluster use in their turn in a cycle.
pub struct ClusterSide<'a, O> {
    /// Scheduler and HPU drivers of the cluster.
    pub cluster: &'a mut HpuCluster,
    /// All tasks.
    pub tasks: &'a Tasks,
    /// Contents of all memories.
    pub memory: &'a mut Arena,
    /// Interconnect to remote memories.
    pub pe: &'a mut PeInterconnect,
    /// Port of the program memory.
    pub program: &'a mut ProgramPort,
    /// DMA engines.
    pub dma: &'a mut DmaInterconnect,
    /// Events that the host driver receives at the end of the cycle.
    pub events: &'a mut Vec<DriverEvent>,
    /// Observer of the unit.
    pub observer: &'a mut O,
}

impl<O: Observer> ClusterSide<'_, O> {
    fn id(&self, hpu: u16) -> HpuId {
        HpuId { cluster: self.cluster.index(), hpu }
    }

    /// Returns the task of `hpu`, from assignment to doorbell, and its packet in L1.
    pub fn task(&self, hpu: u16) -> Option<(&Task, Range)> {
        let (task, packet) = self.cluster.task(self.cluster.drivers[usize::from(hpu)].task?)?;
        Some((&self.tasks[task], packet))
    }

    /// Completes the load of the function pointer. Returns the handler's first instruction.
    pub fn start(&mut self, hpu: u16, now: Cycle) -> Option<u32> {
        let id = self.id(hpu);
        let (task, _) = self.cluster.task(self.cluster.drivers[usize::from(hpu)].task?)?;
        let task = &self.tasks[task];
        self.observer.note(now, Noted::Start { hpu: id, task });
        task.her.context.entry(task.role)
    }

    /// Ends the handler of `hpu`: it rings the doorbell or has failed. Returns false if the HPU must wait until
    /// [`Cores::resume`] and retry in that cycle.
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

    /// Returns true if [`ClusterSide::end`] would succeed; otherwise the HPU waits until [`Cores::resume`].
    pub fn could_end(&mut self, hpu: u16) -> bool {
        self.cluster.could_finish(hpu)
    }

    /// Requests the bank of the word at `offset` in the cluster's own L1 for cycle `now`. Returns false on a bank
    /// conflict; the HPU then retries in the next cycle.
    #[inline]
    pub fn take_bank(&mut self, hpu: u16, now: Cycle, offset: u32, is_atomic: bool) -> bool {
        let is_granted = self.cluster.banks.take(now, offset, is_atomic);
        if !is_granted && O::WATCHES {
            let (id, address) = (self.id(hpu), Arena::start(Place::L1(self.cluster.index())) + offset);
            self.observer.note(now, Noted::Conflict { hpu: id, address });
        }
        is_granted
    }

    /// Requests an access to a memory other than the cluster's L1; [`Cores::reach`] is called when it happens.
    pub fn ask(&mut self, hpu: u16, remote: Remote) {
        self.pe.ask(self.id(hpu), remote);
    }

    /// Requests a line of code after an instruction cache miss; [`Cores::refill`] reports when it arrives.
    pub fn fetch(&mut self, hpu: u16, line: u32) {
        self.program.ask(self.id(hpu), line);
    }

    /// Issues a command; the core has already checked that the handler may use the memory it names. Returns its number,
    /// or `None` if the HPU must wait for [`Cores::resume`] and retry.
    pub fn issue(&mut self, hpu: u16, command: Command) -> Option<CommandId> {
        let issued = self.cluster.drivers[usize::from(hpu)].issue(command);
        if issued.is_some() {
            self.cluster.issue(hpu);
        }
        issued
    }

    /// Chooses the HPU in the set `hpus` whose copy the cluster's DMA engine accepts in this cycle; `None` if its queue
    /// is full.
    pub fn choose_launch(&mut self, now: Cycle, hpus: u64) -> Option<u32> {
        self.dma.choose_launch(self.cluster.index(), now, hpus)
    }

    /// Starts a copy of at least one byte for the chosen HPU. The handler may use both memories.
    pub fn copy(&mut self, now: Cycle, from: Range, to: u32) -> TransferId {
        self.dma.copy(self.cluster.index(), now, from, to)
    }

    /// Returns true if copy `id` is done in cycle `now`.
    pub fn is_copied(&self, now: Cycle, id: TransferId) -> bool {
        self.dma.is_done(self.cluster.index(), now, id)
    }
}
