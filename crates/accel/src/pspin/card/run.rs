//! How the HPUs of the card run: what each does in the cycle for which it waits.

use abi::device::map;
use hpu::isa::Class;
use hpu::{Access, Fault, Pause, Thread, Window};
use machine::Pspin as Config;

use super::hpus::{Doing, Hpus};
use super::own::{Span, owns};
use super::place::stack_bytes;
use crate::convention::{Arguments, Call, Convention};
use crate::outcome::{Failure, HandlerError};
use crate::pspin::cores::{ClusterSide, Cores};
use crate::pspin::cycle::Cycle;
use crate::pspin::her::{self, HpuId, Range, TaskOutcome};
use crate::pspin::memory::{Arena, Place};
use crate::pspin::observe::Observer;
use crate::task::{Role, Task};

/// Cycles of the runtime from the load of the function pointer to the first instruction of the handler: a move, and an
/// indirect call that waits for the pointer (§IV-B1).
const CALL: u64 = 4;
/// Cycles from the doorbell to the next load of the function pointer.
const LOOP: u64 = 3;
/// Cycles that an HPU may run ahead without an access.
const AHEAD: u64 = 4096;

impl Hpus {
    /// Starts the handler of the task that an HPU has got.
    fn start<O: Observer>(&mut self, id: HpuId, now: Cycle, side: &mut ClusterSide<'_, O>) {
        side.start(id.hpu, now);
        let Some((task, l1)) = side.task(id.hpu) else { return };
        let number = task.her.user;
        let (Some(entry), Some(loaded)) = (self.tasks.get(number), &mut self.loaded) else { return };
        let is_withdrawn = entry.is_withdrawn;
        let (bottom, block) = stack(&self.config, id);
        let arguments = arguments(&*self.convention, entry.task.clone(), l1, block, side.memory);
        if let Some(bytes) = side.memory.write(block, map::ARGS_BYTES) {
            let length = arguments.block.len().min(bytes.len());
            bytes[..length].copy_from_slice(&arguments.block[..length]);
            bytes[length..].fill(0);
        }
        let program = &loaded.card.device().program;
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
        let mut thread = Thread::new(program, entry.task.handler.entry, block, arguments.registers);
        loaded.stepper.call(&mut thread, now.0 + CALL);
        self.runs = self.runs.wrapping_add(1);
        let run = self.runs;
        let hpu = self.hpu(id);
        (hpu.thread, hpu.spans, hpu.run) = (thread, spans, run);
        (hpu.task, hpu.started, hpu.call) = (Some(number), now, None);
        if is_withdrawn {
            self.at(id, now + CALL, Doing::Doorbell(TaskOutcome::Done));
        } else {
            self.go_on(id, side.memory);
        }
    }

    /// Runs an HPU up to the next point at which others decide.
    fn go_on(&mut self, id: HpuId, memory: &mut Arena) {
        let Some(loaded) = &mut self.loaded else { return };
        let group = &mut self.groups[usize::from(id.cluster)];
        let hpu = &mut group.hpus[usize::from(id.hpu)];
        let until = hpu.thread.cycles() + AHEAD;
        let pause = loaded.stepper.run(&mut hpu.thread, &group.cache.lines, until);
        let at = Cycle(hpu.thread.cycles());
        match pause {
            Pause::Access(access) => self.ask(id, access, memory),
            Pause::Line(line) => self.at(id, at, Doing::Line(line)),
            Pause::Until => self.at(id, at, Doing::Running),
            Pause::Call { number, argument } => self.at(id, at, Doing::Calling(Call { number, argument })),
            Pause::Return(value) => {
                let role = hpu.task.and_then(|task| self.tasks.get(task)).map(|entry| entry.task.role());
                let outcome = self.convention.outcome(role.unwrap_or(Role::Payload), value);
                self.end(id, at + 1_u64, outcome, TaskOutcome::Done);
            }
            Pause::Fault(fault) => self.fail(id, fault),
        }
    }

    /// An HPU has come to an access: finds out which memory it is for.
    fn ask(&mut self, id: HpuId, access: Access, memory: &mut Arena) {
        let Some(loaded) = &mut self.loaded else { return };
        let hpu = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)];
        let address = memory.common(id.cluster, access.address);
        (hpu.access, hpu.words) = (access, access.words());
        let may = owns(&hpu.spans, address, access.bytes, access.class != Class::Load);
        let Some((place, offset)) = memory.locate(address, access.bytes).filter(|_| may) else {
            let denied = loaded.stepper.perform(&mut hpu.thread, &mut [], Window::default(), 0);
            if let Err(fault) = denied {
                self.fail(id, fault);
            }
            return;
        };
        hpu.position = memory.position(place, offset);
        let doing = if place == Place::L1(id.cluster) { Doing::Local(offset) } else { Doing::Remote(place) };
        self.at(id, Cycle(access.at), doing);
    }

    /// Executes the access of an HPU, `stall` cycles later than in a memory that is ready at once.
    fn perform(&mut self, id: HpuId, memory: &mut Arena, stall: u64) {
        let Some(loaded) = &mut self.loaded else { return };
        let hpu = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)];
        let Access { address, bytes, .. } = hpu.access;
        let window = Window { base: address, len: bytes, offset: hpu.position, write: true, ..Window::default() };
        match loaded.stepper.perform(&mut hpu.thread, memory.bytes(), window, stall) {
            Ok(()) => self.go_on(id, memory),
            Err(fault) => self.fail(id, fault),
        }
    }

    /// A handler has failed.
    fn fail(&mut self, id: HpuId, fault: Fault) {
        let stack_bytes = stack_bytes(&self.config);
        let (bottom, _) = stack(&self.config, id);
        let hpu = self.hpu(id);
        let (pc, at) = (hpu.thread.pc(), Cycle(hpu.thread.cycles()));
        let detail = match fault {
            Fault::Load { addr, .. } | Fault::Store { addr, .. } | Fault::Misaligned { addr, .. } => addr,
            Fault::Fetch { pc } | Fault::Illegal { pc, .. } | Fault::Breakpoint { pc } => pc,
        };
        let below = matches!(fault, Fault::Load { .. } | Fault::Store { .. }) && detail < bottom;
        let hint = if below && detail >= bottom - stack_bytes {
            format!("; it needs more than {stack_bytes} bytes of stack (accelerator.stack_bytes)")
        } else {
            String::new()
        };
        let message = format!("failed: {fault}{}{hint}", self.place(pc));
        let error = HandlerError { failure: Failure::Segv, message, detail: u64::from(detail) };
        self.end_badly(id, at, error, TaskOutcome::Faulted(her::Failure::Fault(fault)));
    }

    /// An HPU rings the doorbell.
    fn ring<O: Observer>(&mut self, id: HpuId, now: Cycle, outcome: TaskOutcome, side: &mut ClusterSide<'_, O>) {
        self.handles.abandon(self.gid(id) as u16);
        let rings = side.end(id.hpu, now, outcome);
        let hpu = self.hpu(id);
        hpu.task = None;
        if rings {
            (hpu.ready, hpu.pointer) = (now + LOOP, Cycle::NEVER);
            self.at(id, Cycle::NEVER, Doing::Idle);
        } else {
            self.at(id, Cycle::NEVER, Doing::Doorbell(outcome));
        }
    }

    /// What an HPU does in cycle `now`.
    fn act<O: Observer>(&mut self, id: HpuId, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let hpu = self.hpu(id);
        let (access, doing) = (hpu.access, hpu.doing);
        let is_atomic = access.class == Class::Atomic;
        match hpu.doing {
            Doing::Idle => self.start(id, now, side),
            Doing::Running => self.go_on(id, side.memory),
            Doing::Local(offset) => {
                if !side.take_bank(id.hpu, now, offset, is_atomic) {
                    return self.at(id, now + 1_u64, Doing::Local(offset));
                }
                hpu.words -= 1;
                if hpu.words > 0 {
                    return self.at(id, now + 1_u64, Doing::Local((offset | 3) + 1));
                }
                // Each further word takes a cycle even when no other HPU is in the way.
                self.perform(id, side.memory, now.0 - access.at - u64::from(access.words() - 1));
            }
            Doing::Remote(place) => {
                let remote = side.ask(now, place, access.bytes);
                self.at(id, remote.access, Doing::Arriving(remote.answer));
            }
            Doing::Arriving(answer) => self.perform(id, side.memory, answer.0.saturating_sub(access.at + 1)),
            Doing::Line(line) => {
                let group = &mut self.groups[usize::from(id.cluster)];
                if group.cache.lines.contains(line) {
                    return self.go_on(id, side.memory);
                }
                let at = group.cache.coming(line).map_or_else(
                    || {
                        let at = side.fetch(id.hpu, now, map::PROGRAM + line * self.config.icache.line);
                        group.cache.expect(line, at.0);
                        at
                    },
                    Cycle,
                );
                self.at(id, at, Doing::Filled(now));
            }
            Doing::Filled(since) => {
                if let Some(loaded) = &mut self.loaded {
                    let hpu = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)];
                    loaded.stepper.wait(&mut hpu.thread, now - since);
                }
                self.go_on(id, side.memory);
            }
            Doing::Calling(call) => self.call(id, now, call, side.memory),
            Doing::Answer(result) => {
                if let Some(loaded) = &mut self.loaded {
                    let hpu = &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)];
                    let waits = now.0.saturating_sub(hpu.thread.cycles());
                    loaded.stepper.wait(&mut hpu.thread, waits);
                    hpu.thread.set_result(result as u32);
                }
                self.go_on(id, side.memory);
            }
            Doing::Doorbell(outcome) => self.ring(id, now, outcome, side),
            Doing::Reply(_) | Doing::Handle => self.at(id, Cycle::NEVER, doing),
        }
    }
}

impl Cores for Hpus {
    fn next(&self, cluster: u16) -> Cycle {
        self.groups.get(usize::from(cluster)).map_or(Cycle::NEVER, |group| group.least)
    }

    fn step<O: Observer>(&mut self, cluster: u16, now: Cycle, side: &mut ClusterSide<'_, O>) {
        let group = &mut self.groups[usize::from(cluster)];
        group.cache.fill(now.0);
        // In each cycle another HPU is the first to ask for a bank.
        let count = group.next.len() as u64;
        for place in 0..count {
            let hpu = ((now.0 + place) % count) as u16;
            while self.groups[usize::from(cluster)].next[usize::from(hpu)] <= now {
                self.act(HpuId { cluster, hpu }, now, side);
            }
        }
    }

    fn task(&mut self, id: HpuId, at: Cycle) {
        let hpu = self.hpu(id);
        hpu.pointer = at;
        let from = at.max(hpu.ready);
        self.at(id, from, Doing::Idle);
    }

    fn resume(&mut self, id: HpuId, at: Cycle) {
        let doing = self.hpu(id).doing;
        self.at(id, at, doing);
    }

    fn kill(&mut self, id: HpuId, at: Cycle) {
        if matches!(self.hpu(id).doing, Doing::Doorbell(_) | Doing::Idle) {
            return;
        }
        let pc = self.hpu(id).thread.pc();
        let cycles = self.config.units.watchdog_cycles;
        let message =
            format!("was killed after {cycles} cycles (accelerator.default_watchdog_cycles){}", self.place(pc));
        let error = HandlerError { failure: Failure::Timeout, message, detail: cycles };
        self.end_badly(id, at, error, TaskOutcome::TimedOut);
    }
}

/// The first byte of the stack of an HPU, and the first behind it: that of its argument block.
fn stack(config: &Config, id: HpuId) -> (u32, u32) {
    let end = Arena::start(Place::L1(id.cluster)) + config.l1.bytes;
    let block = end - u32::from(id.hpu) * (stack_bytes(config) + map::ARGS_BYTES) - map::ARGS_BYTES;
    (block - stack_bytes(config), block)
}

/// Bytes before a packet in its buffer that align the payload behind the user header.
pub(super) fn pad(user_header: u32) -> u32 {
    user_header.next_multiple_of(crate::FRAGMENT) - user_header
}

/// The arguments of a handler, whose block is at this address. A payload handler finds its packet in L1.
fn arguments(convention: &dyn Convention, mut task: Task, l1: Range, block: u32, memory: &Arena) -> Arguments {
    let header = task.packet.filter(|_| task.role() == Role::Header);
    let user_header = header.and_then(|packet| memory.read(packet.start, packet.user_header)).unwrap_or_default();
    if let Some(packet) = &mut task.packet {
        packet.start = l1.address + pad(packet.user_header);
    }
    convention.arguments(&task, block, user_header)
}
