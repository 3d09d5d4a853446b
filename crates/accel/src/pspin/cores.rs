//! The boundary between the unit and its cores.

use crate::pspin::cluster::Cluster;
use crate::pspin::cycle::Cycle;
use crate::pspin::her::{HpuId, Range, Task, TaskOutcome};
use crate::pspin::memory::Arena;
use crate::pspin::observe::{Noted, Observer};

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

    /// What an HPU waited for has come: there is room for its doorbell, or its access has this result. It goes on in cycle `at`.
    fn resume(&mut self, hpu: HpuId, at: Cycle, value: u32);

    /// The watchdog kills the handler of an HPU in cycle `at`, whatever it does. The HPU calls [`ClusterSide::end`] when it has
    /// recovered.
    fn kill(&mut self, hpu: HpuId, at: Cycle);
}

/// What the HPUs of a cluster reach in their part of a cycle.
pub struct ClusterSide<'a, O> {
    /// Scheduler and HPU drivers of the cluster.
    pub cluster: &'a mut Cluster,
    /// The bytes of all memories.
    pub memory: &'a mut Arena,
    /// Who watches.
    pub observer: &'a mut O,
}

impl<O: Observer> ClusterSide<'_, O> {
    fn id(&self, hpu: u16) -> HpuId {
        HpuId { cluster: self.cluster.index(), hpu }
    }

    /// The task of an HPU, and its packet in L1, from the assignment to the doorbell.
    pub fn task(&self, hpu: u16) -> Option<(&Task, Range)> {
        self.cluster.task(self.cluster.drivers[usize::from(hpu)].task?)
    }

    /// The load of the function pointer returns. Returns the first instruction of the handler.
    pub fn start(&mut self, hpu: u16, now: Cycle) -> Option<u32> {
        let id = self.id(hpu);
        let (task, _) = self.cluster.task(self.cluster.drivers[usize::from(hpu)].task?)?;
        self.observer.note(now, Noted::Start { hpu: id, task });
        task.her.context.entry(task.role)
    }

    /// An HPU rings the doorbell, or gives its handler up. Returns whether it may go on; otherwise it waits until
    /// [`Cores::resume`] and tries again in that cycle.
    pub fn end(&mut self, hpu: u16, now: Cycle, outcome: TaskOutcome) -> bool {
        let id = self.id(hpu);
        let place = self.cluster.drivers[usize::from(hpu)].task;
        let goes_on = self.cluster.finish(hpu, outcome, 0);
        if goes_on && let Some((task, _)) = place.and_then(|place| self.cluster.task(place)) {
            self.observer.note(now, Noted::End { hpu: id, task, outcome });
        }
        goes_on
    }
}
