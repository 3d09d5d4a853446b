//! All HPUs, as the unit sees them.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use hpu::isa::Class;
use hpu::{Access, Fault, Pause, Program, Stepper, Thread, Window};
use machine::Pspin as Config;

use super::cache::Cache;
use super::counters::CoreCounters;
use super::device::{self, COMMAND_WORDS, Register, TRANSFER_WORDS};
use super::group::Group;
use super::hpu::{Doing, Hpu};
use super::protect::Spans;
use crate::pspin::command::{Command, CommandId};
use crate::pspin::cores::{ClusterSide, Cores};
use crate::pspin::cycle::Cycle;
use crate::pspin::her::{DriverEvent, Failure, HpuId, Range, TaskOutcome};
use crate::pspin::memory::{Arena, Place};
use crate::pspin::observe::Observer;

/// Where the HPUs find the runtime (§III-B2). It gets the number of the cluster and that of the HPU as arguments.
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    /// Where an HPU starts.
    pub boot: u32,
    /// Where it starts again after a handler that failed or was killed.
    pub again: u32,
}

/// The HPUs of all clusters.
pub struct Hpus {
    config: Rc<Config>,
    program: Arc<Program>,
    stepper: Stepper,
    runtime: Runtime,
    groups: Vec<Group>,
    /// What HPUs have printed: complete lines.
    output: Vec<(HpuId, Vec<u8>)>,
    /// Instructions of threads that are over.
    instructions: u64,
}

/// What a register of one word gives.
fn word(value: u32) -> [u8; 8] {
    u64::from(value).to_le_bytes()
}

/// Cycles that an HPU may run ahead without an access.
const AHEAD: u64 = 4096;

impl Hpus {
    /// HPUs that start in cycle 0 to execute the runtime that is part of `program`.
    pub fn new(config: Rc<Config>, program: Arc<Program>, runtime: Runtime) -> Hpus {
        let stepper = Stepper::new(program.clone(), config.icache.line);
        let mut hpus =
            Hpus { stepper, runtime, groups: Vec::new(), output: Vec::new(), instructions: 0, program, config };
        for cluster in 0..hpus.config.units.clusters as u16 {
            let group = hpus.group(cluster);
            hpus.groups.push(group);
        }
        hpus
    }

    fn group(&mut self, cluster: u16) -> Group {
        let count = self.config.units.hpus as u16;
        let hpus = (0..count).map(|hpu| self.hpu(HpuId { cluster, hpu })).collect();
        Group {
            next: vec![0; usize::from(count)],
            least: 0,
            hpus,
            cache: Cache::new(&self.config, self.stepper.lines()),
            turn: 0,
            counters: CoreCounters::default(),
        }
    }

    fn hpu(&mut self, id: HpuId) -> Hpu {
        let stack = self.config.units.stack;
        let bottom = Arena::start(Place::L1(id.cluster)) + u32::from(id.hpu) * stack;
        Hpu {
            thread: self.thread(id, self.runtime.boot, 0),
            doing: Doing::Running,
            access: Access { at: 0, address: 0, bytes: 0, class: Class::Load },
            words: 0,
            position: 0,
            spans: Spans::of_boot(Range { address: bottom, size: stack }, &self.program),
            task_from: None,
            command: [0; COMMAND_WORDS],
            is_done: false,
            transfer: [0; TRANSFER_WORDS],
            launched: 0,
            transfers: VecDeque::new(),
            line: Vec::new(),
        }
    }

    fn thread(&mut self, id: HpuId, pc: u32, at: u64) -> Thread {
        let stack_top = Arena::start(Place::L1(id.cluster)) + (u32::from(id.hpu) + 1) * self.config.units.stack;
        let mut thread = Thread::new(&self.program, pc, stack_top, [id.cluster.into(), id.hpu.into(), 0]);
        self.stepper.call(&mut thread, at);
        thread
    }

    /// What the HPUs of a cluster have done so far.
    pub fn counters(&self, cluster: u16) -> &CoreCounters {
        &self.groups[usize::from(cluster)].counters
    }

    /// The thread of an HPU, for debuggers and tests.
    pub fn thread_of(&self, hpu: HpuId) -> &Thread {
        &self.groups[usize::from(hpu.cluster)].hpus[usize::from(hpu.hpu)].thread
    }

    /// Takes the lines that HPUs have printed since the last time, without their ends.
    pub fn take_output(&mut self) -> Vec<(HpuId, Vec<u8>)> {
        std::mem::take(&mut self.output)
    }

    /// Runs an HPU up to the next point at which others decide.
    fn go_on(&mut self, cluster: usize, hpu: usize, memory: &mut Arena) {
        let group = &mut self.groups[cluster];
        let core = &mut group.hpus[hpu];
        let until = core.thread.cycles() + AHEAD;
        let fault = match self.stepper.run(&mut core.thread, &group.cache.lines, until) {
            Pause::Access(access) => return self.ask(cluster, hpu, access, memory),
            Pause::Line(line) => {
                core.doing = Doing::Fetch(line);
                group.next[hpu] = core.thread.cycles();
                return;
            }
            Pause::Until => {
                core.doing = Doing::Running;
                group.next[hpu] = core.thread.cycles();
                return;
            }
            Pause::Fault(fault) => fault,
            // The runtime never returns, and has no environment to call.
            Pause::Call { .. } => Fault::Illegal { pc: core.thread.command_pc(), word: 0x0000_0073 },
            Pause::Return(_) => Fault::Fetch { pc: core.thread.pc() },
        };
        self.fail(cluster, hpu, fault);
    }

    /// An HPU has come to an access: finds out what it is an access to.
    #[inline]
    fn ask(&mut self, cluster: usize, hpu: usize, access: Access, memory: &mut Arena) {
        let group = &mut self.groups[cluster];
        let core = &mut group.hpus[hpu];
        let address = memory.common(cluster as u16, access.address);
        core.access = access;
        core.words = access.words();
        let place = memory.locate(address, access.bytes);
        let place = place.filter(|_| core.spans.allows(address, access.bytes, access.class != Class::Load));
        (core.doing, group.next[hpu]) = if let Some((place, offset)) = place {
            core.position = memory.position(place, offset);
            match place {
                Place::L1(owner) if usize::from(owner) == cluster => (Doing::Local(offset), access.at),
                place => (Doing::Remote(place), access.at),
            }
        } else if let Some(register) = device::register(address, access.bytes) {
            (Doing::Device(register), access.at + 1)
        } else {
            let Err(fault) = self.stepper.perform(&mut core.thread, &mut [], Window::default(), 0) else { return };
            return self.fail(cluster, hpu, fault);
        };
    }

    /// Executes the access of an HPU in its memory, `stall` cycles later than in one that is ready at once.
    #[inline]
    fn perform(&mut self, cluster: usize, hpu: usize, memory: &mut Arena, stall: u64) {
        let core = &mut self.groups[cluster].hpus[hpu];
        let Access { address, bytes, .. } = core.access;
        let window = Window { base: address, len: bytes, offset: core.position, write: true, ..Window::default() };
        match self.stepper.perform(&mut core.thread, memory.bytes(), window, stall) {
            Ok(()) => self.go_on(cluster, hpu, memory),
            Err(fault) => self.fail(cluster, hpu, fault),
        }
    }

    /// Executes the access of an HPU to a register with these bytes, which answers in cycle `at`. Returns the bytes afterwards;
    /// `None` when the instruction has failed.
    fn exchange(&mut self, cluster: usize, hpu: usize, bytes: [u8; 8], at: u64) -> Option<[u8; 8]> {
        let core = &mut self.groups[cluster].hpus[hpu];
        let window = Window { base: core.access.address, len: 8, write: true, ..Window::default() };
        let (stall, mut bytes) = (at.saturating_sub(core.access.at + 1), bytes);
        match self.stepper.perform(&mut core.thread, &mut bytes, window, stall) {
            Ok(()) => Some(bytes),
            Err(fault) => {
                self.fail(cluster, hpu, fault);
                None
            }
        }
    }

    /// A handler has failed: the HPU recovers.
    fn fail(&mut self, cluster: usize, hpu: usize, fault: Fault) {
        let at = self.groups[cluster].hpus[hpu].thread.cycles();
        self.recover(cluster, hpu, at, TaskOutcome::Faulted(Failure::Fault(fault)));
    }

    /// A command or a transfer uses memory that is not the handler's.
    fn misuse(&mut self, cluster: usize, hpu: usize, now: Cycle, Range { address, size }: Range) {
        self.recover(cluster, hpu, now.0, TaskOutcome::Faulted(Failure::Command { address, size }));
    }

    fn recover(&mut self, cluster: usize, hpu: usize, at: u64, outcome: TaskOutcome) {
        let group = &mut self.groups[cluster];
        group.counters.failed += 1;
        group.hpus[hpu].doing = Doing::Recovered(outcome);
        group.next[hpu] = at + u64::from(self.config.cluster.trap_cycles.max(1));
    }

    /// What an HPU does that does not compete with the others of its cluster.
    fn act<O: Observer>(&mut self, hpu: usize, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let (id, at) = (HpuId { cluster: side.cluster.index(), hpu: hpu as u16 }, now.0);
        let cluster = usize::from(id.cluster);
        let group = &mut self.groups[cluster];
        let core = &mut group.hpus[hpu];
        match core.doing {
            Doing::Held(_) => group.next[hpu] = u64::MAX,
            Doing::Waiting => {
                let waited = at.saturating_sub(core.thread.cycles());
                self.stepper.wait(&mut core.thread, waited);
                self.go_on(cluster, hpu, side.memory);
            }
            Doing::Local(_) => {}
            Doing::Running => self.go_on(cluster, hpu, side.memory),
            Doing::Remote(place) => {
                group.counters.remote += 1;
                let remote = side.ask(now, place, core.access.bytes);
                core.doing = Doing::Arriving(remote.answer.0);
                group.next[hpu] = remote.access.0;
            }
            Doing::Arriving(answer) => {
                let stall = answer.saturating_sub(core.access.at + 1);
                self.perform(cluster, hpu, side.memory, stall);
            }
            Doing::Device(register) => {
                group.counters.device += 1;
                self.reach(id, register, now, side);
            }
            Doing::Fetch(line) if group.cache.lines.contains(line) => self.go_on(cluster, hpu, side.memory),
            Doing::Fetch(line) => {
                core.doing = Doing::Filled(at);
                group.next[hpu] = match group.cache.coming(line) {
                    Some(there) => there,
                    None => {
                        let address = Arena::start(Place::Program) + line * self.config.icache.line;
                        let there = side.fetch(id.hpu, now, address).0;
                        group.cache.expect(line, there);
                        group.counters.misses += 1;
                        there
                    }
                };
            }
            Doing::Filled(since) => {
                self.stepper.wait(&mut core.thread, at - since);
                self.go_on(cluster, hpu, side.memory);
            }
            Doing::Recovered(outcome) => {
                if !core.has_landed(now, side) {
                    group.next[hpu] = at + 1;
                    return;
                }
                core.spans.keep_own();
                core.line.clear();
                self.instructions += core.thread.instructions();
                let thread = self.thread(id, self.runtime.again, at);
                self.groups[cluster].hpus[hpu].thread = thread;
                if side.end(id.hpu, now, outcome) {
                    self.go_on(cluster, hpu, side.memory);
                } else {
                    self.hold(cluster, hpu, Doing::Recovered(outcome));
                }
            }
        }
    }

    /// An HPU waits until the driver lets it go on.
    fn hold(&mut self, cluster: usize, hpu: usize, doing: Doing) {
        let group = &mut self.groups[cluster];
        group.hpus[hpu].doing = doing;
        group.next[hpu] = u64::MAX;
    }

    /// The access of an HPU reaches a register.
    fn reach<O: Observer>(&mut self, id: HpuId, register: Register, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let (cluster, hpu) = (usize::from(id.cluster), usize::from(id.hpu));
        let core = &mut self.groups[cluster].hpus[hpu];
        let bytes = match register {
            Register::Function => {
                match core.task_from {
                    Some(from) if from <= now.0 => core.task_from = None,
                    Some(from) => {
                        self.groups[cluster].next[hpu] = from;
                        return;
                    }
                    None => return self.hold(cluster, hpu, Doing::Held(register)),
                }
                let entry = side.start(id.hpu, now).unwrap_or_default();
                if let Some((task, packet)) = side.task(id.hpu) {
                    core.spans.allow(task, packet);
                }
                word(entry)
            }
            Register::Task(offset) => match side.task(id.hpu) {
                Some((task, packet)) => device::read(task, packet, self.config.units.clusters, offset),
                None => [0; 8],
            },
            Register::Doorbell => {
                if !core.has_landed(now, side) {
                    self.groups[cluster].next[hpu] = now.0 + 1;
                    return;
                }
                if !side.end(id.hpu, now, TaskOutcome::Done) {
                    return self.hold(cluster, hpu, Doing::Held(register));
                }
                core.spans.keep_own();
                [0; 8]
            }
            Register::Issue => {
                let common = |address| side.memory.common(id.cluster, address);
                let Some(command) = device::command(core.command, common) else {
                    let fault = Fault::Load { pc: core.thread.pc(), addr: core.access.address, len: core.access.bytes };
                    return self.fail(cluster, hpu, fault);
                };
                let writes = matches!(command, Command::FromHost { .. });
                if let Some(data) = command.local().filter(|data| !core.may_use(*data, writes, side.memory)) {
                    return self.misuse(cluster, hpu, now, data);
                }
                let Some(CommandId(number)) = side.issue(id.hpu, command) else {
                    return self.hold(cluster, hpu, Doing::Held(register));
                };
                word(number)
            }
            Register::Launch => {
                let [from, to, size] = core.transfer;
                let range = |address| Range { address: side.memory.common(id.cluster, address), size };
                let (from, to) = (range(from), range(to));
                let mut wanted = [(from, false), (to, true)].into_iter();
                if let Some((range, _)) = wanted.find(|(range, writes)| !core.may_use(*range, *writes, side.memory)) {
                    return self.misuse(cluster, hpu, now, range);
                }
                let Some(transfer) = side.copy(now, from, to.address) else {
                    self.groups[cluster].next[hpu] = now.0 + 1;
                    return;
                };
                core.transfers.push_back(transfer);
                core.launched = core.launched.wrapping_add(1);
                word(core.launched)
            }
            Register::Landed => {
                core.has_landed(now, side);
                word(core.launched.wrapping_sub(core.transfers.len() as u32))
            }
            Register::Transfer(index) => word(core.transfer[usize::from(index)]),
            Register::Test => word(core.is_done.into()),
            Register::Command(index) => word(core.command[usize::from(index)]),
            Register::Wait | Register::Output | Register::Error | Register::Terminate => [0; 8],
        };
        let is_store = core.access.class == Class::Store;
        let Some([a, b, c, d, ..]) = self.exchange(cluster, hpu, bytes, now.0) else { return };
        if is_store {
            let value = u32::from_le_bytes([a, b, c, d]);
            let core = &mut self.groups[cluster].hpus[hpu];
            let driver = &mut side.cluster.drivers[hpu];
            match register {
                Register::Wait if !driver.wait(CommandId(value)) => return self.hold(cluster, hpu, Doing::Waiting),
                Register::Test => core.is_done = driver.is_done(CommandId(value)),
                Register::Command(index) => core.command[usize::from(index)] = value,
                Register::Transfer(index) => core.transfer[usize::from(index)] = value,
                Register::Error => driver.fail(Failure::Reported { code: value }),
                Register::Terminate => side.events.push(DriverEvent::Terminated { hpu: id }),
                Register::Output => self.print(id, a),
                _ => {}
            }
        }
        self.go_on(cluster, hpu, side.memory);
    }

    fn print(&mut self, id: HpuId, character: u8) {
        let line = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)].line;
        if character == b'\n' {
            self.output.push((id, std::mem::take(line)));
        } else {
            line.push(character);
        }
    }

    /// An HPU asks in cycle `now` for the bank at an offset of its L1. Returns whether it gets the bank.
    fn compete<O: Observer>(&mut self, hpu: usize, offset: u32, now: Cycle, side: &mut ClusterSide<'_, O>) -> bool {
        let (cluster, at) = (usize::from(side.cluster.index()), now.0);
        let group = &mut self.groups[cluster];
        let core = &mut group.hpus[hpu];
        if !side.take_bank(hpu as u16, now, offset, core.access.class == Class::Atomic) {
            group.next[hpu] = at + 1;
            group.counters.conflicts += 1;
            return false;
        }
        core.words -= 1;
        if core.words > 0 {
            core.doing = Doing::Local((offset | 3) + 1);
            group.next[hpu] = at + 1;
            return true;
        }
        group.counters.local += 1;
        // Each further word takes a cycle even when no other HPU is in the way.
        let stall = at - core.access.at - u64::from(core.access.words() - 1);
        self.perform(cluster, hpu, side.memory, stall);
        true
    }
}

impl Cores for Hpus {
    fn next(&self, cluster: u16) -> Cycle {
        Cycle(self.groups[usize::from(cluster)].least)
    }

    fn step<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let (index, at) = (usize::from(cluster), now.0);
        let group = &mut self.groups[index];
        group.cache.fill(at);
        let (count, first) = (group.next.len(), group.turn);
        let (mut winner, mut has_loser) = (None, false);
        for hpu in (first..count).chain(0..first) {
            while self.groups[index].next[hpu] <= at {
                let Doing::Local(offset) = self.groups[index].hpus[hpu].doing else {
                    self.act(hpu, now, side);
                    continue;
                };
                if self.compete(hpu, offset, now, side) {
                    winner = winner.or(Some(hpu));
                } else {
                    has_loser = true;
                }
                break;
            }
        }
        let group = &mut self.groups[index];
        if let Some(winner) = winner.filter(|_| has_loser) {
            group.turn = (winner + 1) % count;
        }
        group.settle();
    }

    fn task(&mut self, hpu: HpuId, at: Cycle) {
        let group = &mut self.groups[usize::from(hpu.cluster)];
        let core = &mut group.hpus[usize::from(hpu.hpu)];
        core.task_from = Some(at.0);
        if let Doing::Held(Register::Function) = core.doing {
            core.doing = Doing::Device(Register::Function);
            group.next[usize::from(hpu.hpu)] = at.0;
            group.settle();
        }
    }

    fn resume(&mut self, hpu: HpuId, at: Cycle) {
        let group = &mut self.groups[usize::from(hpu.cluster)];
        let core = &mut group.hpus[usize::from(hpu.hpu)];
        if let Doing::Held(register) = core.doing {
            core.doing = Doing::Device(register);
        }
        group.next[usize::from(hpu.hpu)] = at.0;
        group.settle();
    }

    fn kill(&mut self, hpu: HpuId, at: Cycle) {
        let (cluster, index) = (usize::from(hpu.cluster), usize::from(hpu.hpu));
        self.recover(cluster, index, at.0, TaskOutcome::TimedOut);
        self.groups[cluster].settle();
    }

    fn instructions(&self) -> u64 {
        let running = self.groups.iter().flat_map(|group| &group.hpus).map(|core| core.thread.instructions());
        self.instructions + running.sum::<u64>()
    }
}
