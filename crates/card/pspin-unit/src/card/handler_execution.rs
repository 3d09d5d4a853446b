// SPDX-License-Identifier: Apache-2.0
//! Start and end of P4sPIN handlers on the HPUs of the card.

use abi::device::map;
use hpu::{Access, Fault, Thread};
use machine::Pspin as Config;

use super::hpus::{Act, Calls, Hpus, Own};
use super::own::OwnMemory;
use super::place::stack_bytes;
use crate::core::{Environment, Span, Spans};
use crate::cores::ClusterSide;
use crate::cycle::Cycle;
use crate::her::{self, HpuId, Range, TaskOutcome};
use crate::memory::{Arena, Place};
use crate::observe::Observer;
use accel::convention::{Arguments, Call, Convention, HandlerMemory};
use accel::fault::{self, Purpose};
use accel::{Failure, HandlerError};
use accel::{Role, Task};

/// Runtime cycles from the load of the function pointer to the first instruction of the handler: a move, and an
/// indirect call that waits for the pointer (§IV-B1).
const CALL: u64 = 4;
/// Cycles from the doorbell to the next load of the function pointer.
const LOOP: u64 = 3;

impl Hpus {
    /// Starts the handler of the task assigned to an HPU.
    fn start<O: Observer>(&mut self, id: HpuId, now: Cycle, side: &mut ClusterSide<'_, O>) {
        side.start(id.hpu, now);
        let Some((task, l1)) = side.task(id.hpu) else { return };
        let number = task.her.user;
        let Calls { convention, program, tasks, runs, .. } = &mut self.environment;
        let (Some(entry), Some(card)) = (tasks.get(number), program) else { return };
        let is_withdrawn = entry.is_withdrawn;
        let (bottom, block) = stack(&self.config, id);
        let arguments = arguments(&**convention, entry.task.clone(), l1, block, side.memory);
        if let Some(bytes) = side.memory.write(block, map::ARGS_BYTES) {
            let length = arguments.block.len().min(bytes.len());
            bytes[..length].copy_from_slice(&arguments.block[..length]);
            bytes[length..].fill(0);
        }
        let program = &card.device().program;
        let mut spans = Vec::with_capacity(6);
        let mut span = |address, size, write| {
            spans.push(Span { range: Range { address, size }, write });
        };
        span(bottom, block - bottom, true);
        span(block, map::ARGS_BYTES, false);
        if let Some(packet) = entry.task.packet.filter(|_| entry.task.role() == Role::Payload) {
            // The runtime's memcpy reads whole aligned words.
            span(l1.address + pad(packet.user_header), packet.length.next_multiple_of(8), true);
        }
        if let Some(state) = &entry.task.handlers.state {
            span(state.address, state.length, true);
        }
        let (code, data) = (program.program_segment().len() as u32, program.data_segment().len() as u32);
        span(map::PROGRAM, code.next_multiple_of(8), false);
        if data > 0 {
            span(map::DATA, data.next_multiple_of(8), true);
        }
        let thread = Thread::new(program, entry.task.handler.entry, block, arguments.registers);
        *runs = runs.wrapping_add(1);
        let run = *runs;
        self.begin(id, now.0 + CALL, thread);
        let hpu = self.hpu(id);
        hpu.spans = Spans::of(spans);
        let own = &mut hpu.own;
        (own.task, own.run, own.started, own.call, own.refused) = (Some(number), run, now, None, None);
        if is_withdrawn {
            self.acts(id, now + CALL, Act::Doorbell(TaskOutcome::Done));
        } else {
            self.go_on(id, side.memory);
        }
    }

    /// Fails a handler because of a fault.
    fn fail(&mut self, id: HpuId, fault: Fault, memory: &mut Arena) {
        let hpu = self.hpu(id);
        let (pc, at) = (hpu.thread.pc(), Cycle(hpu.thread.cycles()));
        let message = format!("failed: {fault}{}{}", self.missed(id, fault), self.place(id, pc, memory));
        let error = HandlerError { failure: Failure::Segv, message, detail: u64::from(fault.address()) };
        self.end_badly(id, at, error, TaskOutcome::Faulted(her::Failure::Fault(fault)));
    }

    /// Describes the memory region that a faulting access missed.
    fn missed(&self, id: HpuId, fault: Fault) -> String {
        let (Some(hpu), Some(card)) = (self.get(id), &self.environment.program) else { return String::new() };
        let task = hpu.own.task.and_then(|task| self.environment.tasks.peek(task));
        let state = task.and_then(|entry| entry.task.handlers.state.as_ref()).map(|state| state.address);
        let (bottom, block) = stack(&self.config, id);
        let purpose = |start| match start {
            map::PROGRAM => Purpose::Program,
            map::DATA => Purpose::Data,
            _ if start == bottom => Purpose::Stack,
            _ if start == block => Purpose::Arguments,
            _ if Some(start) == state => Purpose::State,
            _ => Purpose::Packet,
        };
        let spans = hpu.spans.iter().map(|Span { range, .. }| fault::Span {
            start: range.address,
            length: range.size,
            purpose: purpose(range.address),
        });
        let stack_pointer = hpu.thread.stack_pointer();
        fault::missed(fault, &spans.collect::<Vec<_>>(), stack_pointer, &card.device().program)
    }

    /// Describes the source line of a handler's instruction and its call stack.
    pub(super) fn place(&self, id: HpuId, pc: u32, memory: &mut Arena) -> String {
        let (Some(hpu), Some(card)) = (self.get(id), &self.environment.program) else { return String::new() };
        let mut own = OwnMemory { memory, spans: &hpu.spans, cluster: id.cluster };
        fault::place(&card.device().program, &hpu.thread, pc, |address| own.word(address))
    }

    /// Rings the doorbell of an HPU.
    fn ring<O: Observer>(&mut self, id: HpuId, now: Cycle, outcome: TaskOutcome, side: &mut ClusterSide<'_, O>) {
        let gid = self.gid(id) as u16;
        self.environment.handles.abandon(gid);
        let rings = side.end(id.hpu, now, outcome);
        let own = &mut self.hpu(id).own;
        own.task = None;
        if rings {
            (own.ready, own.pointer) = (now + LOOP, Cycle::NEVER);
            self.acts(id, Cycle::NEVER, Act::Idle);
        } else {
            self.acts(id, Cycle::NEVER, Act::Doorbell(outcome));
        }
    }
}

impl Environment for Calls {
    type Act = Act;
    type Own = Own;

    /// P4sPIN handlers use no device registers.
    fn register(_own: &Own, _access: &Access) -> Option<(Act, u64)> {
        None
    }

    fn act<O: Observer>(hpus: &mut Hpus, id: HpuId, act: Act, now: Cycle, side: &mut ClusterSide<'_, O>) {
        match act {
            Act::Idle => hpus.start(id, now, side),
            Act::Calling(call) => hpus.call(id, now, call, side.memory),
            Act::Issue => hpus.give(id, side),
            Act::Answer(result) => {
                hpus.wait(id, now.0);
                hpus.hpu(id).thread.set_result(result as u32);
                hpus.go_on(id, side.memory);
            }
            Act::Doorbell(outcome) => hpus.ring(id, now, outcome, side),
            Act::Reply(_) | Act::Handle => hpus.acts(id, Cycle::NEVER, act),
        }
    }

    fn call(hpus: &mut Hpus, id: HpuId, number: u32, argument: u32) {
        let at = Cycle(hpus.hpu(id).thread.cycles());
        hpus.acts(id, at, Act::Calling(Call { number, argument }));
    }

    fn returned(hpus: &mut Hpus, id: HpuId, value: u32) {
        let hpu = hpus.hpu(id);
        let (at, task) = (Cycle(hpu.thread.cycles()), hpu.own.task);
        let role = task.and_then(|task| hpus.environment.tasks.get(task)).map(|entry| entry.task.role());
        let refused = hpus.hpu(id).own.refused.take();
        let outcome = hpus.environment.convention.outcome(role.unwrap_or(Role::Payload), value).after(refused);
        hpus.end(id, at + 1_u64, outcome, TaskOutcome::Done);
    }

    fn fail(hpus: &mut Hpus, id: HpuId, fault: Fault, memory: &mut Arena) {
        hpus.fail(id, fault, memory);
    }

    fn task(hpus: &mut Hpus, id: HpuId, at: Cycle) {
        let own = &mut hpus.hpu(id).own;
        own.pointer = at;
        let from = at.max(own.ready);
        hpus.acts(id, from, Act::Idle);
    }

    fn resume(hpus: &mut Hpus, id: HpuId, at: Cycle) {
        // A handler withdrawn while it waited is already ending.
        if hpus.waits(id) {
            let doing = hpus.hpu(id).doing;
            hpus.wake(id, at.0, doing);
        }
    }

    fn kill(hpus: &mut Hpus, id: HpuId, at: Cycle) {
        let task = hpus.hpu(id).own.task;
        let ended = task.and_then(|task| hpus.environment.tasks.get(task)).and_then(|entry| entry.ended.as_ref());
        // HPUs are simulated ahead, so a handler may have returned in a future cycle.
        let returns_later = ended.is_some_and(|ended| ended.ran.end > at);
        match hpus.doing(id) {
            Some(Act::Doorbell(TaskOutcome::Done)) if returns_later => {}
            Some(Act::Doorbell(_) | Act::Idle) => return,
            _ => {}
        }
        let pc = hpus.hpu(id).thread.pc();
        let cycles = hpus.config.units.watchdog_cycles;
        let message =
            format!("was killed after {cycles} cycles (accelerator.default_watchdog_cycles){}", hpus.line(pc));
        let error = HandlerError { failure: Failure::Timeout, message, detail: cycles };
        hpus.end_badly(id, at, error, TaskOutcome::TimedOut);
    }
}

/// Returns the first byte of an HPU's stack, and the end of the stack, where its argument block begins.
fn stack(config: &Config, id: HpuId) -> (u32, u32) {
    let end = Arena::start(Place::L1(id.cluster)) + config.l1.bytes;
    let block = end - u32::from(id.hpu) * (stack_bytes(config) + map::ARGS_BYTES) - map::ARGS_BYTES;
    (block - stack_bytes(config), block)
}

/// Returns the bytes of padding before a packet that align the payload after the user header.
pub(super) fn pad(user_header: u32) -> u32 {
    user_header.next_multiple_of(accel::FRAGMENT) - user_header
}

/// Builds the arguments of a handler with the argument block at `block`. A payload handler's packet is in L1.
fn arguments(convention: &dyn Convention, mut task: Task, l1: Range, block: u32, memory: &Arena) -> Arguments {
    let header = task.packet.filter(|_| task.role() == Role::Header);
    let user_header = header.and_then(|packet| memory.read(packet.start, packet.user_header)).unwrap_or_default();
    if let Some(packet) = &mut task.packet {
        packet.start = l1.address + pad(packet.user_header);
    }
    convention.arguments(&task, block, user_header)
}
