// SPDX-License-Identifier: Apache-2.0
//! HPUs that execute the published runtime, which is part of the program. It receives tasks through HPU driver
//! registers, and handlers issue commands through them (§III-B2).

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;

use hpu::isa::Class;
use hpu::{Access, Fault, Program, Thread};
use machine::Pspin as Config;

use super::device::{self, COMMAND_WORDS, Register, TRANSFER_WORDS};
use super::hpu::{Doing, Hpu};
use super::hpus::{self, Environment};
use super::protect::Spans;
use crate::command::{Command, CommandId};
use crate::cores::ClusterSide;
use crate::cycle::Cycle;
use crate::fabric::TransferId;
use crate::her::{DriverEvent, Failure, HpuId, Range, TaskOutcome};
use crate::memory::{Arena, Place};
use crate::observe::{Noted, Observer};

/// Entry points of the runtime. Its arguments are the numbers of the cluster and of the HPU.
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    /// Entry point at boot.
    pub boot: u32,
    /// Entry point after a handler that failed or was killed.
    pub again: u32,
}

/// Environment of handlers for the published interface.
pub struct Published {
    program: Arc<Program>,
    runtime: Runtime,
    /// Complete lines printed by HPUs.
    output: Vec<(HpuId, Vec<u8>)>,
    /// Instruction of the latest handler that the watchdog killed, by HPU.
    killed: BTreeMap<HpuId, u32>,
    /// Set of HPUs in the acting cluster that launch a transfer in this cycle.
    launching: u64,
}

/// Action of an HPU on the registers of its driver.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Accesses a register.
    Reach(Register),
    /// Waits for the driver to complete the access to this register.
    Held(Register),
    /// Waits for a command, after a store to the wait register.
    Waiting,
    /// Recovers after the handler failed or was killed. The task ends in the first of these cycles or later; up to and
    /// including the second, a watchdog kill takes precedence.
    Leaves(TaskOutcome, u64, u64),
    /// Ends the task of that handler; the runtime loop begins in this cycle.
    Ends(TaskOutcome, u64),
    /// Begins the runtime loop.
    Begins,
}

/// Cycles between the point at which a failed task can end and the start of the runtime loop.
const LEAVE_CYCLES: u64 = 5;

/// Registers of an HPU.
#[derive(Default)]
pub struct Registers {
    /// Cycle from which a load of the function pointer returns, if a task is assigned.
    task_from: Option<u64>,
    /// Words of the next command, and result of the latest test.
    command: [u32; COMMAND_WORDS],
    is_done: bool,
    /// Words of the next transfer.
    transfer: [u32; TRANSFER_WORDS],
    /// Number of transfers launched, and those not done at the HPU's latest check.
    launched: u32,
    transfers: VecDeque<TransferId>,
    /// Characters of an unfinished line.
    line: Vec<u8>,
}

/// Returns the bytes that a load at `address` receives from a register.
fn part(value: u64, address: u32) -> [u8; 8] {
    (value >> (8 * (address & 3))).to_le_bytes()
}

impl Registers {
    /// Returns source and destination of the next transfer.
    fn ranges<O: Observer>(&self, id: HpuId, side: &ClusterSide<'_, O>) -> [Range; 2] {
        let [from, to, size] = self.transfer;
        [from, to].map(|address| Range { address: side.memory.common(id.cluster, address), size })
    }

    /// Returns true if all transfers launched by the HPU are done. A handler ends only then, because its memory may be
    /// reused.
    fn has_landed<O: Observer>(&mut self, now: Cycle, side: &ClusterSide<'_, O>) -> bool {
        while self.transfers.front().is_some_and(|transfer| side.is_copied(now, *transfer)) {
            self.transfers.pop_front();
        }
        self.transfers.is_empty()
    }
}

/// Returns true if a failing instruction is an environment call or accesses a control register.
fn is_system(word: u32) -> bool {
    word == 0x73 || word & 0x7F == 0x73 && word >> 12 & 7 != 0
}

/// Returns the bytes of a register of one word.
fn word(value: u32) -> [u8; 8] {
    u64::from(value).to_le_bytes()
}

/// Creates a thread of an HPU that begins at `pc` with an empty stack.
fn thread(config: &Config, program: &Program, id: HpuId, pc: u32) -> Thread {
    let stack = stack(config, id);
    Thread::new(program, pc, stack.address + stack.size, [id.cluster.into(), id.hpu.into(), 0])
}

/// Returns the stack of an HPU.
fn stack(config: &Config, id: HpuId) -> Range {
    let size = config.units.stack;
    Range { address: Arena::start(Place::L1(id.cluster)) + u32::from(id.hpu) * size, size }
}

/// HPUs for the published interface.
pub type Hpus = hpus::Hpus<Published>;

impl Hpus {
    /// Creates HPUs that start executing the runtime contained in `program` in cycle 0.
    pub fn new(config: Rc<Config>, program: Arc<Program>, runtime: Runtime) -> Hpus {
        let environment =
            Published { program: program.clone(), runtime, output: Vec::new(), killed: BTreeMap::new(), launching: 0 };
        let mut hpus = Hpus::without_program(config.clone(), environment);
        hpus.load(program.clone(), 0, |id, stepper| {
            let mut thread = thread(&config, &program, id, runtime.boot);
            stepper.call(&mut thread, 0);
            let spans = Spans::of_boot(stack(&config, id), &program);
            Hpu::new(thread, Doing::Running, spans, Registers::default())
        });
        hpus
    }

    /// Takes the lines printed by HPUs since the previous call, without line ends.
    pub fn take_output(&mut self) -> Vec<(HpuId, Vec<u8>)> {
        std::mem::take(&mut self.environment.output)
    }

    /// Returns the instruction of the handler that the watchdog last killed on an HPU.
    pub fn killed_at(&self, hpu: HpuId) -> Option<u32> {
        self.environment.killed.get(&hpu).copied()
    }

    /// Starts the recovery of an HPU whose handler failed or is killed in cycle `at`; the HPU detects it in cycle
    /// `seen`.
    fn recover(&mut self, id: HpuId, at: u64, seen: u64, outcome: TaskOutcome) {
        self.counters_mut(id.cluster).failed += 1;
        let ends = at + u64::from(self.config.cluster.trap_cycles);
        self.at(id, ends - LEAVE_CYCLES, Doing::Act(Act::Leaves(outcome, ends, seen)));
    }

    /// Fails a handler whose command or transfer uses foreign memory.
    fn misuse(&mut self, id: HpuId, now: Cycle, Range { address, size }: Range) {
        self.recover(id, now.0, now.0, TaskOutcome::Faulted(Failure::Command { address, size }));
    }

    /// Suspends an HPU until the driver resumes it.
    fn hold(&mut self, id: HpuId, act: Act) {
        self.at(id, u64::MAX, Doing::Act(act));
    }

    /// Repeats an HPU's action in cycle `at`.
    fn again(&mut self, id: HpuId, at: u64) {
        let doing = self.hpu(id).doing;
        self.at(id, at, doing);
    }

    /// Performs the access of an HPU to a register.
    fn reach<O: Observer>(&mut self, id: HpuId, register: Register, now: Cycle, side: &mut ClusterSide<'_, O>) {
        self.counters_mut(id.cluster).device += 1;
        let clusters = self.config.units.clusters;
        let most_direct = self.config.commands.host_direct_bytes;
        let hpu = self.hpu(id);
        let own = &mut hpu.own;
        let bytes = match register {
            Register::Function => {
                match own.task_from {
                    Some(from) if from <= now.0 => own.task_from = None,
                    Some(from) => return self.again(id, from),
                    None => return self.hold(id, Act::Held(register)),
                }
                let entry = side.start(id.hpu, now).unwrap_or_default();
                if let Some((task, packet)) = side.task(id.hpu) {
                    hpu.spans.allow(task, packet);
                }
                word(entry)
            }
            Register::Task(offset) => match side.task(id.hpu) {
                Some((task, packet)) => device::read(task, packet, clusters, offset),
                None => [0; 8],
            },
            Register::Doorbell => {
                if !own.has_landed(now, side) {
                    return self.again(id, now.0 + 1);
                }
                if !side.end(id.hpu, now, TaskOutcome::Done) {
                    return self.hold(id, Act::Held(register));
                }
                hpu.spans.keep_own();
                [0; 8]
            }
            Register::Issue => {
                let common = |address| side.memory.common(id.cluster, address);
                let Some(command) = device::command(own.command, most_direct, common) else {
                    let fault = Fault::Load { pc: hpu.thread.pc(), addr: hpu.access.address, len: hpu.access.bytes };
                    return self.fail(id, fault);
                };
                let writes = matches!(command, Command::FromHost { .. });
                if let Some(data) = command.local().filter(|data| !hpu.may_use(*data, writes, side.memory)) {
                    return self.misuse(id, now, data);
                }
                let Some(CommandId(number)) = side.issue(id.hpu, command) else {
                    return self.hold(id, Act::Held(register));
                };
                word(number)
            }
            Register::Launch => {
                let [from, to] = own.ranges(id, side);
                // DMA engines cannot access program memory. Handlers may only read it, so requiring write permission
                // excludes it.
                if let Some(range) = [from, to].into_iter().find(|range| !hpu.may_use(*range, true, side.memory)) {
                    return self.misuse(id, now, range);
                }
                self.environment.launching |= 1 << id.hpu;
                return self.hold(id, Act::Reach(register));
            }
            Register::Landed => {
                own.has_landed(now, side);
                word(own.launched.wrapping_sub(own.transfers.len() as u32))
            }
            Register::Transfer(index) => word(own.transfer[usize::from(index)]),
            Register::Test => word(own.is_done.into()),
            Register::Command(index) => word(own.command[usize::from(index)]),
            Register::Wait | Register::Output | Register::Error | Register::Terminate => [0; 8],
        };
        let bytes = match register {
            Register::Task(_) => bytes,
            _ => part(u64::from_le_bytes(bytes), hpu.access.address),
        };
        if let Register::Function | Register::Doorbell = register {
            return self.pass(id, bytes, now.0, side.memory);
        }
        let is_store = hpu.access.class == Class::Store;
        let Some([a, b, c, d, ..]) = self.exchange(id, bytes, now.0, side.memory) else { return };
        if is_store {
            let value = u32::from_le_bytes([a, b, c, d]);
            let own = &mut self.hpu(id).own;
            let driver = &mut side.cluster.drivers[usize::from(id.hpu)];
            match register {
                Register::Wait if !driver.wait(CommandId(value)) => return self.hold(id, Act::Waiting),
                Register::Test => own.is_done = driver.is_done(CommandId(value)),
                Register::Command(index) => own.command[usize::from(index)] = value,
                Register::Transfer(index) => own.transfer[usize::from(index)] = value,
                Register::Error => driver.fail(Failure::Reported { code: value }),
                Register::Terminate => side.events.push(DriverEvent::Terminated { hpu: id }),
                Register::Output => {
                    side.observer.note(now, Noted::Printed { hpu: id, byte: a });
                    self.print(id, a);
                }
                _ => {}
            }
        }
        self.go_on(id, side.memory);
    }

    /// Starts the transfer of an HPU in the DMA engine.
    fn launch<O: Observer>(&mut self, id: HpuId, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let hpu = self.hpu(id);
        let own = &mut hpu.own;
        let [from, to] = own.ranges(id, side);
        own.transfers.push_back(side.copy(now, from, to.address));
        own.launched = own.launched.wrapping_add(1);
        let bytes = part(own.launched.into(), hpu.access.address);
        if self.exchange(id, bytes, now.0, side.memory).is_some() {
            self.go_on(id, side.memory);
        }
    }

    fn print(&mut self, id: HpuId, character: u8) {
        let line = &mut self.hpu(id).own.line;
        if character == b'\n' {
            let line = std::mem::take(line);
            self.environment.output.push((id, line));
        } else {
            line.push(character);
        }
    }

    /// Fails a handler because of a fault.
    fn fail(&mut self, id: HpuId, fault: Fault) {
        let hpu = self.hpu(id);
        let at = hpu.thread.cycles();
        let seen = match fault {
            Fault::Load { .. } | Fault::Store { .. } | Fault::Misaligned { .. } => hpu.access.at,
            // An illegal instruction leaves the execute stage a cycle later; a fetch fault is detected one more cycle
            // later.
            Fault::Fetch { .. } => at + 1,
            Fault::Illegal { word, .. } if !is_system(word) => at,
            Fault::Illegal { .. } | Fault::Breakpoint { .. } => at - 1,
        };
        self.recover(id, at, seen, TaskOutcome::Faulted(Failure::Fault(fault)));
    }
}

impl Environment for Published {
    type Act = Act;
    type Own = Registers;

    fn register(own: &Registers, access: &Access) -> Option<(Act, u64)> {
        let register = device::register(access.address, access.bytes)?;
        let has_to_wait = register == Register::Function && own.task_from.is_none();
        Some(if has_to_wait { (Act::Held(register), u64::MAX) } else { (Act::Reach(register), access.at + 1) })
    }

    fn act<O: Observer>(hpus: &mut Hpus, id: HpuId, act: Act, now: Cycle, side: &mut ClusterSide<'_, O>) {
        match act {
            Act::Reach(register) => hpus.reach(id, register, now, side),
            Act::Held(_) => hpus.hold(id, act),
            Act::Waiting => {
                hpus.answered(id, now.0);
                hpus.go_on(id, side.memory);
            }
            Act::Leaves(outcome, ends, _) => {
                if !hpus.hpu(id).own.has_landed(now, side) {
                    return hpus.again(id, now.0 + 1);
                }
                if !side.could_end(id.hpu) {
                    return hpus.hold(id, act);
                }
                hpus.at(id, ends.max(now.0), Doing::Act(Act::Ends(outcome, now.0 + LEAVE_CYCLES)));
            }
            Act::Ends(outcome, begins) => {
                side.end(id.hpu, now, outcome);
                let hpu = hpus.hpu(id);
                hpu.spans.keep_own();
                hpu.own.line.clear();
                hpus.at(id, begins, Doing::Act(Act::Begins));
            }
            Act::Begins => {
                let Published { program, runtime, .. } = &hpus.environment;
                let thread = thread(&hpus.config, program, id, runtime.again);
                hpus.begin(id, now.0, thread);
                hpus.go_on(id, side.memory);
            }
        }
    }

    /// Grants one transfer per cycle to the cluster's DMA engine; the other HPUs retry.
    fn settle<O: Observer>(hpus: &mut Hpus, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let mut launching = std::mem::take(&mut hpus.environment.launching);
        if launching == 0 {
            return;
        }
        if let Some(chosen) = side.choose_launch(now, launching) {
            launching &= !(1 << chosen);
            hpus.launch(HpuId { cluster, hpu: chosen as u16 }, now, side);
        }
        while launching != 0 {
            hpus.again(HpuId { cluster, hpu: launching.trailing_zeros() as u16 }, now.0 + 1);
            launching &= launching - 1;
        }
    }

    /// Fails: the runtime has no environment to call.
    fn call(hpus: &mut Hpus, id: HpuId, _number: u32, _argument: u32) {
        let pc = hpus.hpu(id).thread.command_pc();
        hpus.fail(id, Fault::Illegal { pc, word: 0x0000_0073 });
    }

    /// Fails: the runtime never returns.
    fn returned(hpus: &mut Hpus, id: HpuId, _value: u32) {
        let pc = hpus.hpu(id).thread.pc();
        hpus.fail(id, Fault::Fetch { pc });
    }

    fn fail(hpus: &mut Hpus, id: HpuId, fault: Fault, _: &mut Arena) {
        hpus.fail(id, fault);
    }

    fn task(hpus: &mut Hpus, id: HpuId, at: Cycle) {
        let hpu = hpus.hpu(id);
        hpu.own.task_from = Some(at.0);
        if let Doing::Act(Act::Held(Register::Function)) = hpu.doing {
            let at = at.0.max(hpu.access.at + 1);
            hpus.wake(id, at, Doing::Act(Act::Reach(Register::Function)));
        }
    }

    fn resume(hpus: &mut Hpus, id: HpuId, at: Cycle) {
        let doing = match hpus.hpu(id).doing {
            Doing::Act(Act::Held(register)) => Doing::Act(Act::Reach(register)),
            doing => doing,
        };
        hpus.wake(id, at.0, doing);
    }

    fn kill(hpus: &mut Hpus, id: HpuId, at: Cycle) {
        match hpus.hpu(id).doing {
            Doing::Act(Act::Leaves(_, _, seen)) if at.0 <= seen => hpus.counters_mut(id.cluster).failed -= 1,
            Doing::Act(Act::Leaves(..) | Act::Ends(..)) => return,
            _ => {}
        }
        let pc = hpus.hpu(id).thread.pc();
        hpus.environment.killed.insert(id, pc);
        hpus.recover(id, at.0, at.0, TaskOutcome::TimedOut);
        hpus.settle(id.cluster);
    }
}
