//! HPUs that execute the published runtime, which is code of the program: it gets tasks from the registers of the HPU driver, and
//! handlers give commands by them (§III-B2).

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

/// Where the HPUs find the runtime. It gets the number of the cluster and that of the HPU as arguments.
#[derive(Clone, Copy, Debug)]
pub struct Runtime {
    /// Where an HPU starts.
    pub boot: u32,
    /// Where it starts again after a handler that failed or was killed.
    pub again: u32,
}

/// The environment of handlers for the published interface.
pub struct Published {
    program: Arc<Program>,
    runtime: Runtime,
    /// What HPUs have printed: complete lines.
    output: Vec<(HpuId, Vec<u8>)>,
    /// The instruction at which the watchdog has found the handler of each HPU that it has killed, the latest one.
    killed: BTreeMap<HpuId, u32>,
    /// The HPUs that launch a transfer in this cycle, of the cluster that is acting.
    launching: u64,
}

/// What an HPU does with the registers of its driver.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    /// Its access reaches a register.
    Reach(Register),
    /// It waits for the driver, which has the access to this register; no cycle is known.
    Held(Register),
    /// It waits for a command after the store that said so.
    Waiting,
    /// Its handler has failed or was killed. It is about to leave for the loop of the runtime, and the task to end, not before the
    /// first of these cycles. Up to the second one, the watchdog still comes first.
    Leaves(TaskOutcome, u64, u64),
    /// The task of that handler ends; the loop begins in this cycle.
    Ends(TaskOutcome, u64),
    /// The loop begins.
    Begins,
}

/// Cycles that an HPU takes, when the task can end that has failed, to begin with the loop of the runtime.
const LEAVE_CYCLES: u64 = 5;

/// The registers of an HPU.
#[derive(Default)]
pub struct Registers {
    /// The cycle from which a load of the function pointer returns, when there is a task.
    task_from: Option<u64>,
    /// The words of the next command, and whether the command of the latest test was done.
    command: [u32; COMMAND_WORDS],
    is_done: bool,
    /// The words of the next transfer.
    transfer: [u32; TRANSFER_WORDS],
    /// Number of transfers that were launched, and those of them that were not done when the HPU looked last.
    launched: u32,
    transfers: VecDeque<TransferId>,
    /// The characters of a line that has no end yet.
    line: Vec<u8>,
}

/// What a load of some bytes of a register gets: those at its address.
fn part(value: u64, address: u32) -> [u8; 8] {
    (value >> (8 * (address & 3))).to_le_bytes()
}

impl Registers {
    /// Source and destination of the next transfer.
    fn ranges<O: Observer>(&self, id: HpuId, side: &ClusterSide<'_, O>) -> [Range; 2] {
        let [from, to, size] = self.transfer;
        [from, to].map(|address| Range { address: side.memory.common(id.cluster, address), size })
    }

    /// Whether all transfers are done that the HPU has launched. A handler ends after them: a later one may have its memory.
    fn has_landed<O: Observer>(&mut self, now: Cycle, side: &ClusterSide<'_, O>) -> bool {
        while self.transfers.front().is_some_and(|transfer| side.is_copied(now, *transfer)) {
            self.transfers.pop_front();
        }
        self.transfers.is_empty()
    }
}

/// Whether an instruction that fails is a call of the environment, or one for a control register.
fn is_system(word: u32) -> bool {
    word == 0x73 || word & 0x7F == 0x73 && word >> 12 & 7 != 0
}

/// What a register of one word gives.
fn word(value: u32) -> [u8; 8] {
    u64::from(value).to_le_bytes()
}

/// A thread of an HPU that begins at `pc` with an empty stack.
fn thread(config: &Config, program: &Program, id: HpuId, pc: u32) -> Thread {
    let stack = stack(config, id);
    Thread::new(program, pc, stack.address + stack.size, [id.cluster.into(), id.hpu.into(), 0])
}

/// The stack of an HPU.
fn stack(config: &Config, id: HpuId) -> Range {
    let size = config.units.stack;
    Range { address: Arena::start(Place::L1(id.cluster)) + u32::from(id.hpu) * size, size }
}

/// HPUs for the published interface.
pub type Hpus = hpus::Hpus<Published>;

impl Hpus {
    /// HPUs that start in cycle 0 to execute the runtime that is part of `program`.
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

    /// Takes the lines that HPUs have printed since the last time, without their ends.
    pub fn take_output(&mut self) -> Vec<(HpuId, Vec<u8>)> {
        std::mem::take(&mut self.environment.output)
    }

    /// The instruction at which the watchdog has found the handler that it has killed last on an HPU.
    pub fn killed_at(&self, hpu: HpuId) -> Option<u32> {
        self.environment.killed.get(&hpu).copied()
    }

    /// A handler has failed or is killed, which the HPU sees in cycle `seen`: it recovers.
    fn recover(&mut self, id: HpuId, at: u64, seen: u64, outcome: TaskOutcome) {
        self.counters_mut(id.cluster).failed += 1;
        let ends = at + u64::from(self.config.cluster.trap_cycles);
        self.at(id, ends - LEAVE_CYCLES, Doing::Act(Act::Leaves(outcome, ends, seen)));
    }

    /// A command or a transfer uses memory that is not the handler's.
    fn misuse(&mut self, id: HpuId, now: Cycle, Range { address, size }: Range) {
        self.recover(id, now.0, now.0, TaskOutcome::Faulted(Failure::Command { address, size }));
    }

    /// An HPU waits until the driver lets it go on.
    fn hold(&mut self, id: HpuId, act: Act) {
        self.at(id, u64::MAX, Doing::Act(act));
    }

    /// An HPU tries the same again in a later cycle.
    fn again(&mut self, id: HpuId, at: u64) {
        let doing = self.hpu(id).doing;
        self.at(id, at, doing);
    }

    /// The access of an HPU reaches a register.
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
                // No DMA engine reaches program memory, which a handler may only read.
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

    /// The DMA engine takes the transfer of an HPU.
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

    /// An instruction of a handler has failed.
    fn fail(&mut self, id: HpuId, fault: Fault) {
        let hpu = self.hpu(id);
        let at = hpu.thread.cycles();
        let seen = match fault {
            Fault::Load { .. } | Fault::Store { .. } | Fault::Misaligned { .. } => hpu.access.at,
            // What is no instruction leaves the execute stage a cycle later; what is no code is seen another cycle later.
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

    /// The DMA engine of the cluster takes one transfer in a cycle; the other HPUs try again.
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

    /// The runtime has no environment to call.
    fn call(hpus: &mut Hpus, id: HpuId, _number: u32, _argument: u32) {
        let pc = hpus.hpu(id).thread.command_pc();
        hpus.fail(id, Fault::Illegal { pc, word: 0x0000_0073 });
    }

    /// The runtime never returns.
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
