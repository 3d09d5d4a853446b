// SPDX-License-Identifier: Apache-2.0
//! The unit on a card of a cluster, running P4sPIN handlers (sPIN App. B).
//!
//! In P4sPIN, the header handler decides whether payload handlers run at all. PsPIN's message queues cannot express
//! that, so the card keeps the order of a message's handlers, like the NIC of PsPIN §III-D2 that holds payload back
//! until the header arrives. The message queue sees all handlers as payload handlers. Each passes through queue,
//! dispatcher, scheduler, DMA and HPU with full timing, and the card tells the queue when the message ends.
//!
//! * `place`: HPU memory of programs; `queues`: message queues of messages; `tasks`: tasks in the unit
//! * `hpus`, `handler_execution`, `calls`: HPUs, execution of P4sPIN handlers, and their commands; `own`: memory of a handler
//! * `interface`: the unit as an [`Accelerator`](accel::Accelerator)
//!
//! The unit simulates ahead of the run, but never beyond the run's next event or its own next output to the card. So no
//! input can arrive for a cycle that is already simulated.

mod calls;
mod handler_execution;
mod hpus;
mod interface;
mod own;
mod place;
mod queues;
mod tasks;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use machine::Pspin as Config;
use sim::{Clock, Time};

use self::handler_execution::pad;
use self::hpus::Hpus;
pub use self::place::{Layout, most_memory, stack_bytes};
use self::place::{Places, cluster_of};
use self::queues::Queues;
use crate::command::{Command, Issued, Send};
use crate::cycle::Cycle;
use crate::her::{Busy, Convention, DriverEvent, ExecutionContext, Feedback, Her, HostRange, HpuId, Range};
use crate::memory::{Arena, Place};
use crate::pspin::{By, HostFault, Outside, Pspin};
use accel::convention::P4spin;
use accel::memory::Buffers;
use accel::{Env, Event, HandlerSlice, InternalError, Printed};
use accel::{Finished, Usage};
use accel::{Packet, Role, Task};

/// Bytes of a request's header, copied with the user header for a header handler.
const REQUEST_HEADER: u32 = size_of::<abi::device::HeaderArgs>() as u32;

/// Output of the unit to the card.
enum Output {
    /// The unit is done with a task.
    Done(u64),
    /// A handler's command leaves the unit.
    Command(Issued),
    /// A handler printed text.
    Printed(Printed),
}

/// A task that is not in the unit yet.
struct Waiting {
    task: Task,
    /// First cycle in which its request may be submitted.
    ready: Cycle,
}

/// A PsPIN unit on a card.
pub struct Card {
    layout: Layout,
    clock: Clock,
    mtu: u32,
    unit: Pspin<Hpus>,
    places: Places,
    buffers: Buffers,
    /// First cycle in which a request for the packet in a buffer may be submitted, by buffer.
    stored: HashMap<u32, Cycle>,
    queues: Queues,
    /// Tasks for the unit, in order.
    waiting: VecDeque<Waiting>,
    /// Tasks of messages that found no free queue.
    parked: VecDeque<Waiting>,
    /// Outputs of the unit, by cycle and then in the order in which they became known.
    outputs: BTreeMap<(Cycle, u64), Output>,
    told: u64,
    /// Time and token of the card's next event.
    scheduled: Option<Time>,
    token: u32,
    /// Sum of the cycles for which HPUs were occupied.
    busy: u64,
}

/// Collects outputs of the unit.
#[derive(Default)]
struct Told(Vec<(Cycle, Output)>);

impl Outside for Told {
    fn feedback(&mut self, at: Cycle, feedback: &Feedback) -> bool {
        self.0.push((at, Output::Done(feedback.user)));
        true
    }

    fn leave(&mut self, at: Cycle, issued: Issued) {
        self.0.push((at, Output::Command(issued)));
    }

    /// Ignored: the end of a task reports the handler's failure.
    fn raise(&mut self, _: Cycle, _: DriverEvent) {}

    fn send(&mut self, _: Cycle, _: HpuId, _: Send, _: &[u8]) {}

    fn host_write(&mut self, _: Cycle, _: By<'_>, _: u64, _: &[u8]) -> Result<(), HostFault> {
        Err(HostFault)
    }

    fn host_read(&mut self, _: Cycle, _: By<'_>, _: u64, _: &mut [u8]) -> Result<(), HostFault> {
        Err(HostFault)
    }
}

impl Card {
    /// Creates a unit without a program, for packets of up to `mtu` bytes. A print by a handler takes `print_cycles`.
    pub fn new(layout: Layout, clock: Clock, mtu: u32, print_cycles: u64) -> Card {
        let config = layout.config();
        Card {
            clock,
            mtu,
            unit: unit(config, clock, print_cycles),
            places: Places::new(&layout),
            buffers: Buffers::new(config.l2_packet.bytes / slot_bytes(mtu)),
            stored: HashMap::new(),
            queues: Queues::new(config),
            waiting: VecDeque::new(),
            parked: VecDeque::new(),
            outputs: BTreeMap::new(),
            told: 0,
            scheduled: None,
            token: 0,
            busy: 0,
            layout,
        }
    }

    /// Returns the first cycle that begins at or after `time`.
    fn cycle_of(&self, time: Time) -> Cycle {
        self.unit.cores().cycle_of(time)
    }

    /// Simulates the unit up to the cycle of the present time, so that it can accept input.
    fn catch_up(&mut self, env: &dyn Env) -> Cycle {
        let now = self.cycle_of(env.now());
        if self.unit.now() < now {
            self.simulate(now);
        }
        self.unit.now()
    }

    /// Simulates the unit until a cycle or its first output, whichever is earlier.
    fn simulate(&mut self, until: Cycle) {
        let mut told = Told::default();
        self.unit.advance(until, &mut told);
        let printed = self.unit.cores_mut().environment.printed.drain(..);
        told.0.extend(printed.map(|(at, printed)| (at, Output::Printed(printed))));
        for (at, output) in told.0 {
            self.outputs.insert((at, self.told), output);
            self.told += 1;
        }
    }

    /// Processes due outputs, and advances the unit as far as no input can arrive.
    fn proceed(&mut self, env: &mut dyn Env) -> Result<(), InternalError> {
        let now = env.now();
        // Input at the time of this event takes effect in the next cycle.
        let first = self.cycle_of(now) + 1_u64;
        let limit = self.cycle_of(env.horizon().min(Time::LIMIT)).max(first);
        let mut has_told = false;
        loop {
            self.submit();
            while let Some(output) = self.outputs.first_entry()
                && self.clock.time(output.key().0.0) <= now
            {
                has_told = true;
                let output = output.remove();
                self.act(output, env)?;
            }
            if has_told {
                break; // the card replies before the unit goes on
            }
            let next = self.next();
            let output = self.outputs.first_key_value().map_or(Cycle::NEVER, |((at, _), _)| *at);
            let until = limit.min(output);
            let until = self.ready().map_or(until, |ready| until.min(ready.max(self.unit.now() + 1_u64)));
            if next >= limit || until <= self.unit.now() {
                break;
            }
            self.simulate(until);
        }
        self.wake(env);
        Ok(())
    }

    /// Returns the next cycle in which the unit is active or a task can be submitted.
    fn next(&self) -> Cycle {
        // Without a task the unit is idle, even if the watchdog of an ended task is still due.
        let next = if self.unit.inside() > 0 { self.unit.next() } else { Cycle::NEVER };
        self.ready().map_or(next, |ready| next.min(ready.max(self.unit.now())))
    }

    /// Returns the first cycle in which the first waiting task can be submitted.
    fn ready(&self) -> Option<Cycle> {
        self.waiting.front().map(|waiting| waiting.ready)
    }

    /// Schedules the card's next event, if any.
    fn wake(&mut self, env: &mut dyn Env) {
        let output = self.outputs.first_key_value().map_or(Cycle::NEVER, |((at, _), _)| *at);
        let next = self.next().min(output);
        if next == Cycle::NEVER {
            return;
        }
        let at = self.clock.time(next.0).max(env.now());
        if self.scheduled.is_none_or(|scheduled| at < scheduled) {
            self.token = self.token.wrapping_add(1);
            self.scheduled = Some(at);
            env.schedule(at, Event { unit: 0, token: self.token });
        }
    }

    /// Submits waiting tasks, one per cycle, until the unit exerts back-pressure. If tenants are separated, a task that has
    /// to wait lets those of other tenants pass.
    fn submit(&mut self) {
        let is_apart = self.layout.config().sharing.separated().is_some();
        let (mut index, mut blocked) = (0, Vec::new());
        while self.waiting.get(index).is_some_and(|waiting| waiting.ready <= self.unit.now()) {
            if blocked.contains(&self.waiting[index].task.tenant) {
                index += 1;
                continue;
            }
            let Some(waiting) = self.waiting.remove(index) else { return };
            let home = waiting.task.handlers.state.as_ref().and_then(|state| cluster_of(state.address));
            let Some(queue) = self.queues.enter(waiting.task.message, home) else {
                self.parked.push_back(waiting);
                continue;
            };
            let Waiting { task, ready } = waiting;
            let number = self.unit.cores_mut().environment.tasks.add(task.clone(), queue);
            let her = self.request(&task, queue, number);
            if let Err((busy, _)) = self.unit.submit(her) {
                self.unit.cores_mut().environment.tasks.remove(number);
                self.queues.leave(queue);
                blocked.push(task.tenant);
                self.waiting.insert(index, Waiting { task, ready });
                if !is_apart || busy == Busy::Cycle {
                    return;
                }
            }
        }
    }

    /// Returns the request that runs the handler of a task.
    fn request(&self, task: &Task, queue: u32, user: u64) -> Her {
        let (packet, transfer) = match task.packet {
            Some(packet) => {
                let address = packet.start - pad(packet.user_header);
                let size = pad(packet.user_header) + packet.length;
                let is_header = task.role() == Role::Header;
                let transfer = if is_header { REQUEST_HEADER + task.handlers.user_hdr } else { size };
                (Range { address, size }, transfer)
            }
            None => (Range { address: Arena::start(Place::Packet), size: 0 }, 0),
        };
        let context = ExecutionContext {
            handler_memory: Range::default(),
            host: HostRange::default(),
            handlers: [Range::default(), Range { address: task.handler.entry, size: 0 }, Range::default()],
            scratchpads: Vec::new(),
            code: Vec::new(),
            watchdog_cycles: self.layout.config().units.watchdog_cycles,
            // The card reports the end of a message.
            idle_cycles: u64::MAX,
            descriptor: 0,
            tenant: task.tenant,
            share: task.share,
            convention: Convention::P4spin,
            pin: None,
        };
        Her { message: queue, flow: queue, eom: false, packet, transfer, context: Rc::new(context), user }
    }

    /// Processes an output of the unit that is due.
    fn act(&mut self, output: Output, env: &mut dyn Env) -> Result<(), InternalError> {
        match output {
            Output::Done(number) => self.done(number, env),
            Output::Command(issued) => {
                self.leave(issued, env);
                Ok(())
            }
            Output::Printed(printed) => {
                env.print(printed);
                Ok(())
            }
        }
    }

    /// Executes a command that leaves the unit, unless its handler has ended.
    fn leave(&mut self, issued: Issued, env: &mut dyn Env) {
        let cores = self.unit.cores_mut();
        let Command::Card { number, .. } = issued.command else { return };
        let Some(flying) = cores.environment.flying.get_mut(&number) else { return };
        flying.issued = Some(issued);
        let (id, task, command) = (flying.id, flying.task, flying.command.take());
        let is_called = cores.issuer(id).is_some_and(|hpu| hpu.own.call.is_some_and(|(_, called)| called == id));
        match (cores.environment.tasks.get(task).filter(|entry| is_called && !entry.is_withdrawn), command) {
            (Some(entry), Some(command)) => {
                let Task { process, message, handler, .. } = &entry.task;
                let handler = handler.name.clone();
                env.issue(accel::Issued { id, process: *process, message: *message, handler, command });
            }
            _ => {
                let now = self.cycle_of(env.now());
                self.unit.cores_mut().free(number, now);
                self.complete_commands();
            }
        }
    }

    /// Completes in the unit the commands that the card has finished.
    fn complete_commands(&mut self) {
        for (at, issued) in std::mem::take(&mut self.unit.cores_mut().environment.done) {
            self.unit.complete(at, issued);
        }
    }

    /// Processes the end of a task.
    fn done(&mut self, number: u64, env: &mut dyn Env) -> Result<(), InternalError> {
        let entry =
            self.unit.cores_mut().environment.tasks.remove(number).ok_or(InternalError::NotRunning(number as u16))?;
        if self.queues.leave(entry.queue) {
            self.release(entry.queue);
        }
        if entry.frees_packet
            && let Some(packet) = entry.task.packet
        {
            self.free_buffer(packet);
        }
        let Some(ended) = entry.ended else { return Ok(()) };
        self.busy += ended.ran.end - ended.ran.start;
        let (start, end) = (self.clock.time(ended.ran.start.0), self.clock.time(ended.ran.end.0));
        if env.tracing() {
            let packet = entry.task.packet.map(|packet| (entry.task.message, packet));
            let hpu = self.unit.cores().gid(ended.ran.hpu);
            let (process, name) = (entry.task.process, &*entry.task.handler.name);
            env.slice(HandlerSlice { process, hpu, start, end, name, packet });
        }
        if !entry.is_withdrawn {
            let usage = Usage { occupancy: end - start, ..ended.usage };
            env.finished(Finished { task: entry.task, outcome: ended.outcome, usage });
        }
        Ok(())
    }

    /// Releases a queue, so that parked tasks retry.
    fn release(&mut self, queue: u32) {
        self.unit.reset_message(queue);
        while let Some(parked) = self.parked.pop_back() {
            self.waiting.push_front(parked);
        }
    }

    fn free_buffer(&mut self, packet: Packet) {
        self.stored.remove(&packet.buffer);
        self.buffers.free(packet.buffer, packet.length);
    }
}

/// Creates a unit without a program, whose HPUs have booted.
fn unit(config: &Rc<Config>, clock: Clock, print_cycles: u64) -> Pspin<Hpus> {
    let cores = Hpus::idle(config.clone(), clock, Box::new(P4spin), print_cycles);
    let mut unit = Pspin::new(config.clone(), clock, cores, ());
    unit.boot();
    unit
}

/// Returns the size of a packet buffer: `mtu` bytes, and padding that aligns the data after a user header.
fn slot_bytes(mtu: u32) -> u32 {
    mtu.next_multiple_of(64) + 64
}
