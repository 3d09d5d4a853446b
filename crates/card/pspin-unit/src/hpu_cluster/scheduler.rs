// SPDX-License-Identifier: Apache-2.0
//! Cluster-local scheduler (CSCHED, §III-B2): it has packets copied to L1 and assigns tasks to idle HPUs, in order.

use std::collections::VecDeque;

use machine::Pspin;
use machine::pspin::DispatchPolicy;

use super::driver::{Driver, Finished};
use crate::arbiter::RoundRobin;
use crate::command::Command;
use crate::cycle::Cycle;
use crate::her::{Failure, Range, TaskOutcome};
use crate::memory::{Allocation, Arena, Banks, Place, Ring};
use crate::schedule::{TaskId, Tasks};
use accel::shares::Shares;

/// Minimum watchdog limit in cycles: the driver learns the limit a cycle after the task.
const LEAST_WATCHDOG: u64 = 2;

/// A task in a cluster.
struct Placed {
    task: TaskId,
    tenant: u32,
    transfer: u32,
    buffer: Allocation,
    /// Cycle in which its packet is in L1.
    landed: Cycle,
}

/// A cluster without its cores.
pub struct HpuCluster {
    index: u16,
    places: Vec<Option<Placed>>,
    /// Set of free places.
    free: u64,
    /// Tasks without an HPU, in order.
    waiting: VecDeque<u8>,
    packets: Ring,
    /// Address of the packet buffer.
    packets_at: u32,
    /// Driver of each HPU.
    pub drivers: Vec<Driver>,
    /// Banks of its L1.
    pub banks: Banks,
    /// Set of HPUs whose driver has no task.
    idle: u32,
    /// No task is assigned before this cycle: at most one per cycle.
    assign_from: Cycle,
    /// Next cycle in which a task can be assigned.
    wake: Cycle,
    assign_cycles: u64,
    buffered: usize,
    /// Set of HPUs with feedback ready to send.
    done: u32,
    arbiter: RoundRobin,
    /// Set of HPUs with a command for the command unit.
    issuing: u32,
    command_arbiter: RoundRobin,
    /// No watchdog expires before this cycle.
    watchdog: Cycle,
    /// State by tenant, if the scheduler separates them.
    apart: Option<Apart>,
}

/// Use of a cluster by one tenant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Use {
    /// Bytes in the packet buffer.
    pub bytes: u32,
    /// Tasks, waiting or on an HPU.
    pub tasks: u32,
    /// Tasks on an HPU.
    pub running: u32,
}

/// State of a cluster by tenant.
#[derive(Default)]
struct Apart {
    /// Use of the cluster by each tenant.
    uses: Vec<Use>,
    /// Limit of running tasks per cluster; otherwise only that of all clusters applies.
    limits_cluster: bool,
    /// Tenants whose task has left its HPU since [`HpuCluster::take_stopped`].
    stopped: Vec<u32>,
}

impl HpuCluster {
    /// Creates a cluster without tasks. Its HPUs accept none before [`HpuCluster::boot`].
    pub fn new(unit: &Pspin, index: u16) -> HpuCluster {
        let (tasks, hpus) = (unit.cluster.tasks, unit.units.hpus);
        HpuCluster {
            index,
            places: (0..tasks).map(|_| None).collect(),
            free: u64::MAX >> (64 - tasks),
            waiting: VecDeque::new(),
            packets: match unit.sharing.separated() {
                Some(_) => Ring::scattered(unit.cluster.packet_buffer, unit.cluster.slot),
                None => Ring::new(unit.cluster.packet_buffer, unit.cluster.slot),
            },
            packets_at: Arena::start(Place::L1(index)) + unit.cluster.runtime,
            drivers: (0..hpus).map(|_| Driver::new(unit)).collect(),
            banks: Banks::new(unit),
            idle: 0,
            assign_from: Cycle::ZERO,
            wake: Cycle::NEVER,
            assign_cycles: u64::from(unit.cluster.assign_cycles),
            buffered: unit.cluster.buffered_completions as usize,
            done: 0,
            arbiter: RoundRobin::default(),
            issuing: 0,
            command_arbiter: RoundRobin::default(),
            watchdog: Cycle::NEVER,
            apart: unit
                .sharing
                .separated()
                .map(|_| Apart { limits_cluster: unit.dispatch.policy != DispatchPolicy::Pinned, ..Apart::default() }),
        }
    }

    /// Returns the number of tasks in the cluster.
    #[inline]
    pub fn tasks(&self) -> u32 {
        self.places.len() as u32 - self.free.count_ones()
    }

    /// Returns the number of HPUs.
    pub fn hpus(&self) -> u32 {
        self.drivers.len() as u32
    }

    /// Returns the size of the packet buffer.
    pub fn packet_buffer_bytes(&self) -> u32 {
        self.packets.size()
    }

    /// Returns the use of the cluster by a tenant; none unless tenants are separated.
    pub fn used_by(&self, tenant: u32) -> Use {
        self.apart.as_ref().and_then(|apart| apart.uses.get(tenant as usize)).copied().unwrap_or_default()
    }

    fn use_of(&mut self, tenant: u32) -> Option<&mut Use> {
        let uses = &mut self.apart.as_mut()?.uses;
        uses.resize(uses.len().max(tenant as usize + 1), Use::default());
        uses.get_mut(tenant as usize)
    }

    /// Takes the tenants whose task has left its HPU since the last call.
    pub fn take_stopped(&mut self) -> Vec<u32> {
        self.apart.as_mut().map(|apart| std::mem::take(&mut apart.stopped)).unwrap_or_default()
    }

    /// Returns true if the cluster has room for a task that copies `transfer` bytes to L1 (§III-B1).
    #[inline]
    pub fn has_room(&self, transfer: u32) -> bool {
        self.free != 0 && self.packets.has_room(transfer)
    }

    /// Accepts a task that copies `size` bytes to L1. Returns its place and the destination; `None` if no room is left.
    #[inline]
    pub fn accept(&mut self, now: Cycle, task: TaskId, tenant: u32, size: u32) -> Option<(u8, Range)> {
        let place = (self.free != 0).then(|| self.free.trailing_zeros() as u8)?;
        let buffer = self.packets.allocate(size)?;
        if let Some(used) = self.use_of(tenant) {
            used.bytes += buffer.bytes;
            used.tasks += 1;
        }
        self.free &= !(1 << place);
        // A task without bytes needs no copy and is ready once the scheduler has it.
        let landed = if size == 0 { now + 1_u64 } else { Cycle::NEVER };
        self.places[usize::from(place)] = Some(Placed { task, tenant, transfer: size, buffer, landed });
        self.waiting.push_back(place);
        self.settle();
        Some((place, Range { address: self.packets_at + buffer.start, size }))
    }

    /// Records that the packet of a task is in L1 from cycle `at` on.
    #[inline]
    pub fn land(&mut self, place: u8, at: Cycle) {
        if let Some(placed) = &mut self.places[usize::from(place)] {
            placed.landed = at;
        }
        self.settle();
    }

    /// Returns the task at a place, and its packet in L1.
    #[inline]
    pub fn task(&self, place: u8) -> Option<(TaskId, Range)> {
        let placed = self.places.get(usize::from(place))?.as_ref()?;
        Some((placed.task, Range { address: self.packets_at + placed.buffer.start, size: placed.transfer }))
    }

    /// Returns the next cycle in which a task can be assigned.
    #[inline]
    pub fn wake(&self) -> Cycle {
        self.wake
    }

    /// Recomputes the next cycle in which a task can be assigned.
    #[inline]
    fn settle(&mut self) {
        if self.apart.is_some() {
            return self.settle_apart();
        }
        let head = match (self.idle, self.waiting.front()) {
            (0, _) | (_, None) => Cycle::NEVER,
            (_, Some(place)) => self.places[usize::from(*place)].as_ref().map_or(Cycle::NEVER, |placed| placed.landed),
        };
        self.wake = head.max(self.assign_from);
    }

    /// Recomputes the next cycle in which a task of any tenant can be assigned.
    #[cold]
    fn settle_apart(&mut self) {
        let landed = self.waiting.iter().filter_map(|place| self.places[usize::from(*place)].as_ref());
        let first = landed.map(|placed| placed.landed).min().unwrap_or(Cycle::NEVER);
        let first = if self.idle == 0 { Cycle::NEVER } else { first };
        self.wake = first.max(self.assign_from);
    }

    /// Removes the waiting task of the tenant that goes first, among those in L1 whose tenant may use another HPU.
    #[cold]
    fn next_apart(&mut self, now: Cycle, shares: &Shares) -> Option<u8> {
        let tenant = |index: usize| {
            let placed = self.places[usize::from(self.waiting[index])].as_ref()?;
            let running =
                self.apart.as_ref().filter(|apart| apart.limits_cluster).map(|_| self.used_by(placed.tenant).running);
            let may_start = shares.may_start(now.0, placed.tenant, running.unwrap_or_default(), self.hpus());
            (placed.landed <= now && may_start).then_some(placed.tenant)
        };
        let all = (0..self.waiting.len()).filter_map(|index| Some((index, tenant(index)?)));
        let best = all.reduce(|best, next| if shares.precedes(now.0, next.1, best.1) { next } else { best });
        let Some((index, _)) = best else {
            // A part grows with time, when another tenant stays without work.
            self.wake = now + 1_u64;
            return None;
        };
        self.waiting.remove(index)
    }

    /// Assigns the first task, once its packet has landed, to the idle HPU with the lowest number. Returns HPU, place,
    /// and the cycle in which the HPU driver has the task.
    #[inline]
    pub fn assign(&mut self, now: Cycle, tasks: &Tasks, shares: Option<&Shares>) -> Option<(u16, u8, Cycle)> {
        if self.wake > now {
            return None;
        }
        let place = match shares {
            Some(shares) => {
                let place = self.next_apart(now, shares)?;
                let tenant = self.places[usize::from(place)].as_ref()?.tenant;
                self.use_of(tenant)?.running += 1;
                place
            }
            None => self.waiting.pop_front()?,
        };
        let hpu = self.idle.trailing_zeros();
        self.idle &= !(1 << hpu);
        self.assign_from = now + 1_u64;
        self.settle();
        let at = now + self.assign_cycles;
        let watchdog_cycles = tasks[self.places[usize::from(place)].as_ref()?.task].her.context.watchdog_cycles;
        let driver = &mut self.drivers[hpu as usize];
        driver.task = Some(place);
        driver.watchdog = match watchdog_cycles {
            0 => Cycle::NEVER,
            cycles => at + cycles.max(LEAST_WATCHDOG),
        };
        self.watchdog = self.watchdog.min(driver.watchdog);
        Some((hpu as u16, place, at))
    }

    /// Boots all HPUs; they wait for their first task.
    pub fn boot(&mut self) {
        self.idle = u32::MAX >> (32 - self.drivers.len());
        self.settle();
    }

    /// Returns true if the HPU has room to record the end of its task; otherwise it waits until one of its feedbacks is
    /// sent.
    #[inline]
    pub fn could_finish(&mut self, hpu: u16) -> bool {
        let driver = &mut self.drivers[usize::from(hpu)];
        driver.is_stalled = driver.task.is_some() && driver.finished.len() >= self.buffered;
        !driver.is_stalled
    }

    /// Ends the task of an HPU. Returns its outcome, or `None` if the HPU must wait until one of its feedbacks is sent
    /// and then retry.
    #[inline]
    pub fn finish(&mut self, hpu: u16, outcome: TaskOutcome) -> Option<TaskOutcome> {
        let driver = &mut self.drivers[usize::from(hpu)];
        let Some(place) = driver.task else { return Some(outcome) };
        driver.watchdog = Cycle::NEVER;
        if !self.could_finish(hpu) {
            return None;
        }
        let driver = &mut self.drivers[usize::from(hpu)];
        driver.task = None;
        let (in_flight, outcome) = (driver.in_flight(place), driver.outcome(place, outcome));
        driver.finished.push_back(Finished { place, outcome, in_flight });
        self.done |= u32::from(driver.could_feed_back()) << hpu;
        if let (Some(apart), Some(placed)) = (&mut self.apart, &self.places[usize::from(place)]) {
            apart.stopped.push(placed.tenant);
            apart.uses[placed.tenant as usize].running -= 1;
        }
        self.idle |= 1 << hpu;
        self.settle();
        Some(outcome)
    }

    /// Records that an HPU has a command for the command unit.
    pub fn issue(&mut self, hpu: u16) {
        self.issuing |= 1 << hpu;
    }

    /// Returns the tenant whose task issued the command in a slot of an HPU.
    pub fn tenant_of(&self, hpu: u16, slot: u8) -> u32 {
        let place = self.drivers[usize::from(hpu)].owner(slot);
        place.and_then(|place| self.places[usize::from(place)].as_ref()).map_or(0, |placed| placed.tenant)
    }

    /// Returns true if any HPU has a command for the command unit.
    #[inline]
    pub fn has_command(&self) -> bool {
        self.issuing != 0
    }

    /// Returns the HPU whose command is granted next, among those whose command has room.
    #[inline]
    pub fn next_command(&self, has_room: impl Fn(u32, &Command) -> bool) -> Option<u16> {
        let mut requests = 0;
        for (hpu, driver) in self.drivers.iter().enumerate() {
            if self.issuing >> hpu & 1 != 0 {
                requests |= u64::from(
                    driver
                        .issuing()
                        .is_some_and(|(slot, command)| has_room(self.tenant_of(hpu as u16, *slot), command)),
                ) << hpu;
            }
        }
        self.command_arbiter.choice(requests).map(|hpu| hpu as u16)
    }

    /// Grants the command of an HPU; it keeps its place until it [has left](Self::command_has_left). Returns its slot
    /// and the command.
    pub fn take_command(&mut self, hpu: u16) -> Option<(u8, Command)> {
        self.command_arbiter.grant(u32::from(hpu));
        self.drivers[usize::from(hpu)].issuing().copied()
    }

    /// Removes the granted command of an HPU from its driver. Returns true if this resumes the HPU.
    pub fn command_has_left(&mut self, hpu: u16) -> bool {
        self.issuing &= !(1 << hpu);
        self.drivers[usize::from(hpu)].command_has_left()
    }

    /// Returns the task that issued the command in a slot of an HPU and still waits for the response.
    pub fn issuer(&self, hpu: u16, slot: u8) -> Option<TaskId> {
        let place = self.drivers[usize::from(hpu)].owner(slot)?;
        Some(self.places[usize::from(place)].as_ref()?.task)
    }

    /// Processes the response to a command of an HPU. Returns true if this resumes the HPU.
    pub fn respond(&mut self, hpu: u16, slot: u8, data: [u8; 64], refused: Option<Failure>) -> bool {
        let driver = &mut self.drivers[usize::from(hpu)];
        let goes_on = driver.respond(slot, data, refused);
        self.done |= u32::from(driver.could_feed_back()) << hpu;
        goes_on
    }

    /// Returns true if any feedback is ready to send.
    #[inline]
    pub fn has_feedback(&self) -> bool {
        self.done != 0
    }

    /// Grants the next feedback, round robin; the task keeps its places until it [leaves](Self::leave). Returns the
    /// HPU, the task, and its outcome.
    #[inline]
    pub fn feed_back(&mut self) -> Option<(u16, TaskId, TaskOutcome)> {
        let hpu = self.arbiter.choice(u64::from(self.done))?;
        self.arbiter.grant(hpu);
        let finished = self.drivers[hpu as usize].finished.front()?;
        let task = self.places[usize::from(finished.place)].as_ref()?.task;
        Some((hpu as u16, task, finished.outcome))
    }

    /// Frees the driver entry, place and buffer of a task whose feedback is sent. Returns true if the HPU was stalled
    /// on that.
    #[inline]
    pub fn leave(&mut self, hpu: u16) -> bool {
        let driver = &mut self.drivers[usize::from(hpu)];
        let Some(Finished { place, .. }) = driver.finished.pop_front() else { return false };
        let is_stalled = std::mem::take(&mut driver.is_stalled);
        if !driver.could_feed_back() {
            self.done &= !(1 << hpu);
        }
        if let Some(placed) = self.places[usize::from(place)].take() {
            if let Some(used) = self.use_of(placed.tenant) {
                used.bytes -= placed.buffer.bytes;
                used.tasks -= 1;
            }
            self.packets.free(placed.buffer);
            self.free |= 1 << place;
        }
        is_stalled
    }

    /// Returns the earliest cycle in which a watchdog may expire.
    #[inline]
    pub fn watchdog(&self) -> Cycle {
        self.watchdog
    }

    /// Returns the set of HPUs whose handlers exceed their watchdog limit.
    pub fn bite(&mut self, now: Cycle) -> u32 {
        let mut bitten = 0;
        self.watchdog = Cycle::NEVER;
        for (hpu, driver) in self.drivers.iter_mut().enumerate() {
            if driver.watchdog <= now {
                driver.interrupt();
                bitten |= 1 << hpu;
            }
            self.watchdog = self.watchdog.min(driver.watchdog);
        }
        bitten
    }

    /// Returns the cluster's index.
    #[inline]
    pub fn index(&self) -> u16 {
        self.index
    }
}
