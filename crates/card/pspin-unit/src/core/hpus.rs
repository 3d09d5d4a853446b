// SPDX-License-Identifier: Apache-2.0
//! All HPUs, behind the unit's interface to its cores.

use std::fmt::Debug;
use std::rc::Rc;
use std::sync::Arc;

use hpu::isa::Class;
use hpu::{Access, Fault, Pause, Program, Stall, Stepper, Thread, Window};
use machine::Pspin as Config;

use super::cache::Cache;
use super::counters::CoreCounters;
use super::group::Group;
use super::hpu::{Doing, Hpu};
use crate::arbiter::Order;
use crate::cores::{ClusterSide, Cores};
use crate::cycle::Cycle;
use crate::fabric::Remote;
use crate::her::HpuId;
use crate::memory::{Arena, Place};
use crate::observe::Observer;

/// Environment of handlers: the start of a task on its HPU, the meaning of calls and of a handler's return, and the
/// handling of failures. Instructions, memory accesses, and the instruction cache are the same in all environments.
pub trait Environment: Sized {
    /// Action of an HPU in a cycle that is specific to the environment.
    type Act: Copy + Debug;
    /// State of an HPU for the environment.
    type Own;

    /// Returns the action, and its cycle, for an access outside the handler's memories; `None` if it hits no register.
    fn register(own: &Self::Own, access: &Access) -> Option<(Self::Act, u64)>;

    /// Performs an action of an HPU in cycle `now`.
    fn act<O: Observer>(hpus: &mut Hpus<Self>, id: HpuId, act: Self::Act, now: Cycle, side: &mut ClusterSide<'_, O>);

    /// Resolves actions that only one HPU of a cluster may perform in cycle `now`, after all of them have acted. By
    /// default there are no such actions.
    fn settle<O: Observer>(_hpus: &mut Hpus<Self>, _cluster: u16, _now: Cycle, _side: &mut ClusterSide<'_, O>) {}

    /// Handles an environment call of an HPU's thread.
    fn call(hpus: &mut Hpus<Self>, id: HpuId, number: u32, argument: u32);

    /// Handles the return of an HPU's thread.
    fn returned(hpus: &mut Hpus<Self>, id: HpuId, value: u32);

    /// Handles a faulting instruction of an HPU's thread.
    fn fail(hpus: &mut Hpus<Self>, id: HpuId, fault: Fault, memory: &mut Arena);

    /// Announces a task in an HPU's driver from cycle `at` on.
    fn task(hpus: &mut Hpus<Self>, id: HpuId, at: Cycle);

    /// Resumes a waiting HPU in cycle `at`.
    fn resume(hpus: &mut Hpus<Self>, id: HpuId, at: Cycle);

    /// Kills the handler of an HPU in cycle `at` (watchdog).
    fn kill(hpus: &mut Hpus<Self>, id: HpuId, at: Cycle);
}

/// HPUs of all clusters.
pub struct Hpus<E: Environment> {
    pub(crate) config: Rc<Config>,
    pub(crate) environment: E,
    /// Executes the program; `None` before one is loaded.
    stepper: Option<Stepper>,
    /// Empty before a program is loaded.
    groups: Vec<Group<E::Act, E::Own>>,
    /// Number of instructions of finished threads.
    instructions: u64,
}

/// Maximum number of cycles that an HPU runs ahead without an access.
const AHEAD: u64 = 4096;

impl<E: Environment> Hpus<E> {
    /// Creates HPUs without a program.
    pub(crate) fn without_program(config: Rc<Config>, environment: E) -> Hpus<E> {
        Hpus { config, environment, stepper: None, groups: Vec::new(), instructions: 0 }
    }

    /// Loads a program. Each HPU is first active in cycle `at`, or waits.
    pub(crate) fn load(
        &mut self,
        program: Arc<Program>,
        at: u64,
        mut hpu: impl FnMut(HpuId, &mut Stepper) -> Hpu<E::Act, E::Own>,
    ) {
        let mut stepper = Stepper::new(program, self.config.icache.line);
        let count = self.config.units.hpus as u16;
        let group = |cluster| Group {
            next: vec![at; usize::from(count)],
            least: at,
            hpus: (0..count).map(|index| hpu(HpuId { cluster, hpu: index }, &mut stepper)).collect(),
            cache: Cache::new(&self.config, stepper.lines()),
            order: Order::default(),
            counters: CoreCounters::default(),
        };
        self.groups = (0..self.config.units.clusters as u16).map(group).collect();
        self.stepper = Some(stepper);
    }

    /// Returns the counters of a cluster.
    pub fn counters(&self, cluster: u16) -> &CoreCounters {
        &self.groups[usize::from(cluster)].counters
    }

    /// Returns the sum of the counters of all clusters.
    pub fn total(&self) -> CoreCounters {
        let mut total = CoreCounters::default();
        self.groups.iter().for_each(|group| total += group.counters);
        total
    }

    /// Returns the thread of an HPU, for debuggers and tests.
    pub fn thread_of(&self, id: HpuId) -> &Thread {
        &self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)].thread
    }

    /// Returns an HPU; `None` before a program is loaded.
    pub(crate) fn get(&self, id: HpuId) -> Option<&Hpu<E::Act, E::Own>> {
        self.groups.get(usize::from(id.cluster))?.hpus.get(usize::from(id.hpu))
    }

    /// Returns an HPU.
    #[inline]
    pub(crate) fn hpu(&mut self, id: HpuId) -> &mut Hpu<E::Act, E::Own> {
        &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)]
    }

    /// Returns true if an HPU waits for others.
    pub(crate) fn waits(&self, id: HpuId) -> bool {
        self.groups[usize::from(id.cluster)].next[usize::from(id.hpu)] == u64::MAX
    }

    /// Schedules the next action of an HPU during its cluster's turn.
    #[inline]
    pub(crate) fn at(&mut self, id: HpuId, at: u64, doing: Doing<E::Act>) {
        let group = &mut self.groups[usize::from(id.cluster)];
        group.hpus[usize::from(id.hpu)].doing = doing;
        group.next[usize::from(id.hpu)] = at;
    }

    /// Schedules the next action of an HPU outside its cluster's turn.
    pub(crate) fn wake(&mut self, id: HpuId, at: u64, doing: Doing<E::Act>) {
        self.at(id, at, doing);
        self.settle(id.cluster);
    }

    /// Recomputes the next active cycle of a cluster.
    pub(crate) fn settle(&mut self, cluster: u16) {
        self.groups[usize::from(cluster)].settle();
    }

    /// Returns the counters of a cluster, for updates.
    pub(crate) fn counters_mut(&mut self, cluster: u16) -> &mut CoreCounters {
        &mut self.groups[usize::from(cluster)].counters
    }

    /// Starts a new thread on an HPU. An indirect jump calls it in cycle `at`.
    pub(crate) fn begin(&mut self, id: HpuId, at: u64, mut thread: Thread) {
        if let Some(stepper) = &mut self.stepper {
            stepper.call(&mut thread, at);
        }
        self.instructions += self.hpu(id).thread.instructions();
        self.hpu(id).thread = thread;
    }

    /// Lets the thread of an HPU wait until cycle `at`, in which its next instruction begins.
    pub(crate) fn wait(&mut self, id: HpuId, at: u64) {
        let Some(stepper) = &mut self.stepper else { return };
        let thread = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)].thread;
        let waited = at.saturating_sub(thread.cycles());
        stepper.wait(thread, waited);
    }

    /// Answers in cycle `at` an access of an HPU whose thread has already continued.
    pub(super) fn answered(&mut self, id: HpuId, at: u64) {
        let Some(stepper) = &mut self.stepper else { return };
        let thread = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)].thread;
        let waited = at.saturating_sub(thread.cycles());
        stepper.answer(thread, waited);
    }

    /// Runs an HPU up to its next interaction with other parts.
    pub(crate) fn go_on(&mut self, id: HpuId, memory: &mut Arena) {
        let Some(stepper) = &mut self.stepper else { return };
        let group = &mut self.groups[usize::from(id.cluster)];
        let hpu = &mut group.hpus[usize::from(id.hpu)];
        let until = hpu.thread.cycles() + AHEAD;
        let pause = stepper.run(&mut hpu.thread, &group.cache.lines, until);
        self.come_to(id, pause, memory);
    }

    /// Processes the interaction at which an HPU has paused.
    #[inline(always)]
    fn come_to(&mut self, id: HpuId, pause: Pause, memory: &mut Arena) {
        let at = self.hpu(id).thread.cycles();
        match pause {
            Pause::Access(access) => self.ask(id, access, memory),
            Pause::Line(line) => self.at(id, at, Doing::Fetch(line)),
            Pause::Until => self.at(id, at, Doing::Running),
            Pause::Call { number, argument } => E::call(self, id, number, argument),
            Pause::Return(value) => E::returned(self, id, value),
            Pause::Fault(fault) => E::fail(self, id, fault, memory),
        }
    }

    /// Determines the target of an HPU's access, and schedules the access.
    #[inline]
    fn ask(&mut self, id: HpuId, access: Access, memory: &mut Arena) {
        let group = &mut self.groups[usize::from(id.cluster)];
        let hpu = &mut group.hpus[usize::from(id.hpu)];
        let address = memory.common(id.cluster, access.address);
        hpu.access = access;
        let place = memory.locate(address, access.bytes);
        let place = place.filter(|_| hpu.spans.allows(address, access.bytes, access.class != Class::Load));
        // A misaligned atomic operation fails without an access.
        let happens = access.class != Class::Atomic || access.address.is_multiple_of(4);
        (hpu.doing, group.next[usize::from(id.hpu)]) = if let Some((place, offset)) = place.filter(|_| happens) {
            hpu.words = access.words();
            hpu.position = memory.position(place, offset);
            match place {
                Place::L1(owner) if owner == id.cluster => (Doing::Local(offset), access.at),
                place => (Doing::Remote(place, offset), access.at),
            }
        } else if let Some((act, at)) = E::register(&hpu.own, &access).filter(|_| happens) {
            (Doing::Act(act), at)
        } else {
            let Some(stepper) = &mut self.stepper else { return };
            let Err(fault) = stepper.perform(&mut hpu.thread, &mut [], Window::default(), Stall::NONE) else { return };
            return E::fail(self, id, fault, memory);
        };
    }

    /// Executes the access of an HPU with delay `stall` relative to a memory that is always ready, and continues.
    #[inline]
    fn perform(&mut self, id: HpuId, memory: &mut Arena, stall: Stall) {
        match self.perform_last(id, memory, stall) {
            Ok(()) => self.go_on(id, memory),
            Err(fault) => E::fail(self, id, fault, memory),
        }
    }

    /// Executes an access like [`Hpus::perform`], but does not continue.
    #[inline]
    fn perform_last(&mut self, id: HpuId, memory: &mut Arena, stall: Stall) -> Result<(), Fault> {
        let hpu = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)];
        let Some(stepper) = &mut self.stepper else { return Err(Fault::Fetch { pc: hpu.thread.pc() }) };
        let Access { address, bytes, .. } = hpu.access;
        let window = Window { base: address, len: bytes, offset: hpu.position, write: true, ..Window::default() };
        stepper.perform(&mut hpu.thread, memory.bytes(), window, stall)
    }

    /// Executes the access of an HPU to a register with these bytes, which answers in cycle `at`. Returns the bytes
    /// afterwards; `None` if the instruction failed.
    pub(super) fn exchange(&mut self, id: HpuId, mut bytes: [u8; 8], at: u64, memory: &mut Arena) -> Option<[u8; 8]> {
        let stepper = self.stepper.as_mut()?;
        let hpu = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)];
        let window = Window { base: hpu.access.address, len: 8, write: true, ..Window::default() };
        let stall = Stall::answer(at.saturating_sub(hpu.access.at + 1));
        match stepper.perform(&mut hpu.thread, &mut bytes, window, stall) {
            Ok(()) => Some(bytes),
            Err(fault) => {
                E::fail(self, id, fault, memory);
                None
            }
        }
    }

    /// Executes an access like [`Hpus::exchange`] to a register that ignores stores, and continues.
    #[inline]
    pub(super) fn pass(&mut self, id: HpuId, bytes: [u8; 8], at: u64, memory: &mut Arena) {
        let Some(stepper) = &mut self.stepper else { return };
        let Group { hpus, cache, .. } = &mut self.groups[usize::from(id.cluster)];
        let Hpu { thread, access, .. } = &mut hpus[usize::from(id.hpu)];
        let stall = at.saturating_sub(access.at + 1);
        match stepper.pass(thread, &cache.lines, access.address, bytes, stall, AHEAD) {
            Ok(pause) => self.come_to(id, pause, memory),
            Err(fault) => E::fail(self, id, fault, memory),
        }
    }

    /// Performs an HPU's action, unless it competes with other HPUs of the cluster.
    fn act<O: Observer>(&mut self, id: HpuId, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let group = &mut self.groups[usize::from(id.cluster)];
        let hpu = &mut group.hpus[usize::from(id.hpu)];
        match hpu.doing {
            Doing::Local(_) => {}
            Doing::Running => self.go_on(id, side.memory),
            Doing::Remote(place, offset) => {
                // An access that crosses words requests them one after the other.
                let bytes = hpu.access.bytes.min(4 - offset % 4);
                group.counters.remote += u64::from(hpu.words == hpu.access.words());
                let is_atomic = hpu.access.class == Class::Atomic;
                side.ask(id.hpu, Remote { place, offset, bytes, is_atomic });
                self.at(id, u64::MAX, Doing::Asked { at: (place, offset), is_killed: false });
            }
            Doing::Reaches { at: (place, offset), taken, answer, is_killed } => {
                hpu.answer = answer;
                if is_killed {
                    // The handler is dead, so a fault of the access is irrelevant.
                    _ = self.perform_last(id, side.memory, Stall::NONE);
                    return E::kill(self, id, Cycle(answer));
                }
                if hpu.words > 1 {
                    hpu.words -= 1;
                    return self.at(id, answer, Doing::Remote(place, (offset | 3) + 1));
                }
                // Even in a memory that is always ready, an atomic operation takes one cycle more.
                let cycles = 1 + u64::from(hpu.access.class == Class::Atomic);
                let grant = taken.saturating_sub(hpu.access.at);
                self.perform(id, side.memory, Stall { grant, answer: answer.saturating_sub(taken + cycles) });
            }
            Doing::Fetch(line) if group.cache.lines.contains(line) => self.go_on(id, side.memory),
            Doing::Fetch(line) => match group.cache.coming(line) {
                Some(there) => self.at(id, there, Doing::Filled),
                None => {
                    side.fetch(id.hpu, line);
                    self.at(id, u64::MAX, Doing::Missing(line));
                }
            },
            Doing::Asked { .. } | Doing::Missing(_) => {}
            Doing::Filled => {
                self.wait(id, now.0);
                self.go_on(id, side.memory);
            }
            Doing::Act(act) => E::act(self, id, act, now, side),
        }
    }

    /// Requests for an HPU the bank at an offset of its L1 in cycle `now`. Returns false on a bank conflict.
    fn compete<O: Observer>(&mut self, id: HpuId, offset: u32, now: Cycle, side: &mut ClusterSide<'_, O>) -> bool {
        let group = &mut self.groups[usize::from(id.cluster)];
        let hpu = &mut group.hpus[usize::from(id.hpu)];
        if !side.take_bank(id.hpu, now, offset, hpu.access.class == Class::Atomic) {
            group.next[usize::from(id.hpu)] = now.0 + 1;
            group.counters.conflicts += 1;
            return false;
        }
        hpu.words -= 1;
        if hpu.words > 0 {
            hpu.doing = Doing::Local((offset | 3) + 1);
            group.next[usize::from(id.hpu)] = now.0 + 1;
            return true;
        }
        group.counters.local += 1;
        let stall = Stall::grant(now.0 - hpu.access.at);
        self.perform(id, side.memory, stall);
        true
    }
}

impl<E: Environment> Cores for Hpus<E> {
    fn next(&self, cluster: u16) -> Cycle {
        self.groups.get(usize::from(cluster)).map_or(Cycle::NEVER, |group| Cycle(group.least))
    }

    fn step<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let (index, at) = (usize::from(cluster), now.0);
        let group = &mut self.groups[index];
        group.cache.fill(at);
        // An HPU's action never makes another HPU active in the same cycle.
        let mut first_lost = None;
        for hpu in group.order.of(group.due(at)) {
            let id = HpuId { cluster, hpu: hpu as u16 };
            while self.groups[index].next[hpu] <= at {
                let Doing::Local(offset) = self.groups[index].hpus[hpu].doing else {
                    self.act(id, now, side);
                    continue;
                };
                if !self.compete(id, offset, now, side) {
                    first_lost = first_lost.or(Some(hpu));
                }
                break;
            }
        }
        E::settle(self, cluster, now, side);
        let group = &mut self.groups[index];
        if let Some(lost) = first_lost {
            group.order.begin_at(lost);
        }
        group.settle();
    }

    fn task(&mut self, id: HpuId, at: Cycle) {
        E::task(self, id, at);
    }

    fn resume(&mut self, id: HpuId, at: Cycle) {
        E::resume(self, id, at);
    }

    fn kill(&mut self, id: HpuId, at: Cycle) {
        // An access in flight still happens; the HPU recovers once it has the answer.
        let hpu = self.hpu(id);
        match &mut hpu.doing {
            Doing::Asked { is_killed, .. } => *is_killed = true,
            _ => {
                let at = at.max(Cycle(hpu.answer));
                E::kill(self, id, at);
            }
        }
    }

    fn reach(&mut self, id: HpuId, at: Cycle, taken: Cycle, answer: Cycle) {
        if let Doing::Asked { at: word, is_killed } = self.hpu(id).doing {
            self.wake(id, at.0, Doing::Reaches { at: word, taken: taken.0, answer: answer.0, is_killed });
        }
    }

    fn refill(&mut self, cluster: u16, line: u32, there: Cycle) {
        let group = &mut self.groups[usize::from(cluster)];
        group.cache.expect(line, there.0);
        group.counters.misses += 1;
        for (hpu, next) in group.hpus.iter_mut().zip(&mut group.next) {
            if matches!(hpu.doing, Doing::Missing(missing) if missing == line) {
                (hpu.doing, *next) = (Doing::Filled, there.0);
            }
        }
        group.settle();
    }

    fn instructions(&self) -> u64 {
        let running = self.groups.iter().flat_map(|group| &group.hpus).map(|hpu| hpu.thread.instructions());
        self.instructions + running.sum::<u64>()
    }
}
