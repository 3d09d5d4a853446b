//! The unit on a card of a cluster, which runs handlers of P4sPIN (sPIN App. B).
//!
//! P4sPIN's header handler decides whether there are payload handlers at all, which the message queues of PsPIN do not know.
//! So the card keeps the order of a message's handlers, as the NIC of PsPIN §III-D2 that holds payload back until the header
//! has come; a message queue sees its handlers as payload handlers. Each goes through queue, dispatcher, scheduler, DMA and
//! HPU with all cycles, and the card tells the queue when the message has ended.
//!
//! * `place`: HPU memory of programs; `queues`: which message has which queue; `tasks`: the tasks in the unit
//! * `hpus`, `run`, `calls`: HPUs, how they run handlers of P4sPIN, and their commands; `own`: the memory of a handler
//! * `interface`: the unit as an [`Accelerator`](accel::Accelerator)
//!
//! The unit simulates ahead of the run, but never beyond the run's next event, or the next thing that it tells the card. So
//! nothing that it has simulated could have been different.

mod calls;
mod hpus;
mod interface;
mod own;
mod place;
mod queues;
mod run;
mod tasks;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::rc::Rc;

use machine::Pspin as Config;
use sim::{Clock, Time};

use self::hpus::Hpus;
use self::place::{Places, cluster_of};
pub use self::place::{most_memory, scratchpad, stack_bytes};
use self::queues::Queues;
use self::run::pad;
use crate::command::{Command, Issued, Send};
use crate::cycle::Cycle;
use crate::her::{Convention, DriverEvent, ExecutionContext, Feedback, Her, HostRange, HpuId, Range};
use crate::memory::{Arena, Place};
use crate::unit::{By, HostFault, Outside, Pspin};
use accel::convention::P4spin;
use accel::memory::Buffers;
use accel::{Env, Event, HandlerSlice, InternalError, Printed};
use accel::{Finished, Usage};
use accel::{Packet, Role, Task};

/// Bytes of a request's header, which a header handler finds with the user header.
const REQUEST_HEADER: u32 = size_of::<abi::device::HeaderArgs>() as u32;

/// What the unit tells the card.
enum Output {
    /// The unit is done with a task.
    Done(u64),
    /// A command of a handler leaves the unit.
    Command(Issued),
    /// A handler has printed.
    Printed(Printed),
}

/// A task that is not in the unit yet.
struct Waiting {
    task: Task,
    /// When its packet is in L2.
    ready: Cycle,
}

/// A PsPIN unit on a card.
pub struct Card {
    config: Rc<Config>,
    clock: Clock,
    mtu: u32,
    unit: Pspin<Hpus>,
    places: Places,
    buffers: Buffers,
    /// When the packets in buffers can be requested to be processed.
    stored: HashMap<u32, Cycle>,
    queues: Queues,
    /// Tasks for the unit, in order.
    waiting: VecDeque<Waiting>,
    /// Tasks of messages for which no queue is free.
    parked: VecDeque<Waiting>,
    /// What the unit tells the card, by cycle and in the order in which it became known.
    outputs: BTreeMap<(Cycle, u64), Output>,
    told: u64,
    /// When the card's next event comes, and its number.
    scheduled: Option<Time>,
    token: u32,
    /// The cycles for which HPUs were occupied.
    busy: u64,
}

/// Collects what the unit tells the card.
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

    /// The end of a task says what has happened to its handler.
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
    /// A unit without a program, for packets of up to `mtu` bytes.
    pub fn new(config: &Config, clock: Clock, mtu: u32) -> Card {
        let config = Rc::new(config.clone());
        Card {
            clock,
            mtu,
            unit: unit(&config, clock),
            places: Places::new(&config),
            buffers: Buffers::new(config.l2_packet.bytes / slot_bytes(mtu)),
            stored: HashMap::new(),
            queues: Queues::new(&config),
            waiting: VecDeque::new(),
            parked: VecDeque::new(),
            outputs: BTreeMap::new(),
            told: 0,
            scheduled: None,
            token: 0,
            busy: 0,
            config,
        }
    }

    /// The first cycle that does not begin before a time.
    fn cycle_of(&self, time: Time) -> Cycle {
        self.unit.cores().cycle_of(time)
    }

    /// Simulates the unit up to the cycle of the present time, in which it can be told something.
    fn catch_up(&mut self, env: &dyn Env) -> Cycle {
        let now = self.cycle_of(env.now());
        if self.unit.now() < now {
            self.simulate(now);
        }
        self.unit.now()
    }

    /// Simulates the unit up to a cycle, or to the first in which it tells the card something.
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

    /// The card does what is due, and lets the unit run as far as nobody can interfere.
    fn proceed(&mut self, env: &mut dyn Env) -> Result<(), InternalError> {
        let now = env.now();
        // What comes at the time of this event comes to the next cycle.
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

    /// The next cycle in which the unit does something, or gets a task.
    fn next(&self) -> Cycle {
        // Without a task the unit has nothing to do, although the watchdog of one that has ended may still tick.
        let next = if self.unit.inside() > 0 { self.unit.next() } else { Cycle::NEVER };
        self.ready().map_or(next, |ready| next.min(ready.max(self.unit.now())))
    }

    /// When the first waiting task can be given to the unit.
    fn ready(&self) -> Option<Cycle> {
        self.waiting.front().map(|waiting| waiting.ready)
    }

    /// Has the card called again when something is due.
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

    /// Gives waiting tasks to the unit, one in a cycle, as far as it takes them.
    fn submit(&mut self) {
        while self.ready().is_some_and(|ready| ready <= self.unit.now())
            && let Some(waiting) = self.waiting.pop_front()
        {
            let home = waiting.task.handlers.state.as_ref().and_then(|state| cluster_of(state.address));
            let Some(queue) = self.queues.enter(waiting.task.message, home) else {
                self.parked.push_back(waiting);
                continue;
            };
            let Waiting { task, ready } = waiting;
            let number = self.unit.cores_mut().environment.tasks.add(task.clone(), queue);
            let her = self.request(&task, queue, number);
            if self.unit.submit(her).is_err() {
                self.unit.cores_mut().environment.tasks.remove(number);
                self.queues.leave(queue);
                self.waiting.push_front(Waiting { task, ready });
                return;
            }
        }
    }

    /// The request to run the handler of a task.
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
            watchdog_cycles: self.config.units.watchdog_cycles,
            // The card says when a message has ended.
            idle_cycles: u64::MAX,
            descriptor: 0,
            tenant: 0,
            convention: Convention::P4spin,
            pin: None,
        };
        Her { message: queue, flow: queue, eom: false, packet, transfer, context: Rc::new(context), user }
    }

    /// Tells the card something whose time has come.
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

    /// A command leaves the unit. The card executes it, unless its handler is over.
    fn leave(&mut self, issued: Issued, env: &mut dyn Env) {
        let cores = self.unit.cores_mut();
        let Command::Card { number, .. } = issued.command else { return };
        let Some(flying) = cores.environment.flying.get_mut(&number) else { return };
        flying.issued = Some(issued);
        let (id, task, command) = (flying.id, flying.task, flying.command.take());
        let is_called = cores.issuer(id).is_some_and(|hpu| hpu.own.call.is_some_and(|(_, called)| called == id));
        match (cores.environment.tasks.get(task).filter(|entry| is_called && !entry.is_withdrawn), command) {
            (Some(entry), Some(command)) => {
                let (message, handler) = (entry.task.message, entry.task.handler.name.clone());
                env.issue(accel::Issued { id, message, handler, command });
            }
            _ => {
                let now = self.cycle_of(env.now());
                self.unit.cores_mut().free(number, now);
                self.complete_commands();
            }
        }
    }

    /// Tells the unit with which commands the card is done.
    fn complete_commands(&mut self) {
        for (at, issued) in std::mem::take(&mut self.unit.cores_mut().environment.done) {
            self.unit.complete(at, issued);
        }
    }

    /// The unit is done with a task.
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
            env.slice(HandlerSlice { hpu, start, end, name: &entry.task.handler.name, packet });
        }
        if !entry.is_withdrawn {
            let usage = Usage { occupancy: end - start, ..ended.usage };
            env.finished(Finished { task: entry.task, outcome: ended.outcome, usage });
        }
        Ok(())
    }

    /// A queue is free: messages that have waited for one go on.
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

/// A unit whose HPUs have booted, without a program.
fn unit(config: &Rc<Config>, clock: Clock) -> Pspin<Hpus> {
    let cores = Hpus::idle(config.clone(), clock, Box::new(P4spin));
    let mut unit = Pspin::new(config.clone(), clock, cores, ());
    unit.boot();
    unit
}

/// Bytes of a packet buffer: a packet of `mtu` bytes, and padding that aligns the data after a user header.
fn slot_bytes(mtu: u32) -> u32 {
    mtu.next_multiple_of(64) + 64
}
