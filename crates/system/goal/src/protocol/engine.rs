// SPDX-License-Identifier: Apache-2.0
//! Protocol model: CPUs, cards and handlers that match, copy and answer messages.

use machine::NicKind;
use net::Latency;
use sim::{SerialResource, Time};

use super::timing::{self, Initiator};
use super::{Details, Outcome, Parameters, ProtocolError, RunError};
use crate::frame::{Executor, Model, RunState, refuse_card_operations};
use crate::op::{ANY, Kind, Op};
use crate::schedule::Schedule;

/// Message kind in the protocol of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Travel {
    /// The message with its data, or the header of a long message
    Message,
    /// The receiver's request for the data of a long message
    Get,
    /// Data of a long message
    Data,
    /// Notification that the receiver's CPU has the data
    End,
}

/// A CPU task, in 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// Execute an operation
    Run(u32),
    /// Process the arrived message of a send
    Take(u32),
    /// Copy the data of a matched message, or get it
    Serve(u32),
    /// Notice that the data of a matched send is in place
    Complete(u32),
    /// Notice the end of a long send
    Release(u32),
}

/// An event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// A CPU finishes its task
    Cpu(u32),
    /// The first byte arrives at the card
    Arrives(Travel, u32),
    /// The card has received and matched the whole message
    Arrived(Travel, u32),
    /// A handler or a trigger requests the data of a long message
    Get(u32),
    /// A card passes a task to a CPU
    Tell(Task),
}

/// Executes a schedule.
///
/// # Errors
/// If the schedule cannot finish (with the wait cause of each rank), has card operations, or uses several CPUs or NICs;
/// if the machine's network does not support that number of nodes.
pub fn run(schedule: &Schedule, parameters: &Parameters<'_>) -> Result<Outcome, RunError> {
    refuse_card_operations(schedule)?;
    let (cpus, nics) = (schedule.cpus(), schedule.nics());
    if cpus > 1 || nics > 1 {
        return Err(ProtocolError::Resources { cpus, nics }.into());
    }
    let network = Latency::new(&parameters.machine.network, schedule.ranks() as usize)?;
    let ports = std::iter::repeat_with(Ports::default).take(schedule.ranks() as usize).collect();
    let state = RunState::new(schedule, 0..schedule.ranks(), parameters.eager, false, parameters.progress.clone());
    let model = Protocol { parameters, network, ports, details: Details::default() };
    Executor::new(state, parameters.noise.as_ref(), model).run()
}

/// Ports of a rank's card.
#[derive(Debug, Default)]
struct Ports {
    sending: SerialResource,
    receiving: SerialResource,
}

/// The model: matching, copying and answering of messages.
struct Protocol<'a> {
    parameters: &'a Parameters<'a>,
    network: Latency,
    ports: Vec<Ports>,
    details: Details,
}

/// A run in this model.
type Run<'a> = Executor<'a, Protocol<'a>>;

impl<'a> Model<'a> for Protocol<'a> {
    type Task = Task;
    type Event = Event;
    type Details = Details;
    type Error = ProtocolError;

    fn operation(op: u32) -> Task {
        Task::Run(op)
    }

    #[inline]
    fn op(task: Task) -> u32 {
        let (Task::Run(op) | Task::Take(op) | Task::Serve(op) | Task::Complete(op) | Task::Release(op)) = task;
        op
    }

    fn cpu_is_done(cpu: u32) -> Event {
        Event::Cpu(cpu)
    }

    fn start(run: &mut Run<'a>, now: Time, cpu: usize, task: Task) -> Result<Option<(Task, Time)>, RunError> {
        let (task, work) = run.begin(now, task);
        Ok(Some((task, run.end_of_work(now, cpu, work))))
    }

    fn idled(run: &mut Run<'a>, task: Task, idle: Time) {
        *run.share(task) += idle;
    }

    fn occupied(run: &mut Run<'a>, _: usize, task: Task, start: Time, end: Time) {
        *run.share(task) += end - start;
    }

    fn finish(run: &mut Run<'a>, now: Time, task: Task) -> Result<(), RunError> {
        match task {
            Task::Run(op) => match run.state.ops[op as usize].kind() {
                Kind::Calc => run.state.dependencies.done(op, now),
                Kind::Send => {
                    let is_eager = run.state.is_eager(op);
                    run.state.messages += 1;
                    if !run.is_collective(op) {
                        run.model.details.messages += 1;
                        run.model.details.long += u64::from(!is_eager);
                    }
                    if is_eager {
                        run.state.dependencies.done(op, now);
                    }
                    run.send(now, Travel::Message, op, Initiator::Host);
                }
                _ => {}
            },
            Task::Take(_) => {}
            Task::Serve(op) if !run.state.is_eager(op) => run.send(now, Travel::Get, op, Initiator::Host),
            Task::Serve(op) => run.received(now, op),
            Task::Complete(op) => {
                if !run.state.is_eager(op) && !run.card(op).matches_on_card() {
                    run.send(now, Travel::End, op, Initiator::Host);
                }
                run.received(now, op);
            }
            Task::Release(op) => run.state.dependencies.done(op, now),
        }
        Ok(())
    }

    fn handle(run: &mut Run<'a>, now: Time, event: Event) -> Result<(), RunError> {
        match event {
            Event::Cpu(cpu) => return run.cpu_is_done(now, cpu),
            Event::Arrives(travel, op) => run.arrives(now, travel, op),
            Event::Arrived(travel, op) => run.arrived(now, travel, op),
            Event::Get(op) => {
                let has_handler = run.card(op).runs_handlers();
                run.send(now, Travel::Get, op, if has_handler { Initiator::Handler } else { Initiator::Host });
            }
            Event::Tell(task) => return run.request(now, run.cpu_for(task), task),
        }
        Ok(())
    }

    fn details(self, _: &[Time]) -> Details {
        self.details
    }
}

impl Run<'_> {
    /// Returns true if an operation belongs to a collective.
    #[inline]
    fn is_collective(&self, op: u32) -> bool {
        self.state.ops[op as usize].space() % 2 == 1
    }

    /// Returns the kind of card whose protocol an operation uses.
    #[inline]
    fn card(&self, op: u32) -> NicKind {
        if self.is_collective(op) { NicKind::Rdma } else { self.model.parameters.card }
    }

    /// Returns true if the header of a long message makes the card get the data without the CPU.
    #[inline]
    fn gets_by_itself(&self, receive: u32) -> bool {
        let card = self.card(receive);
        card.runs_handlers() || card.matches_on_card() && self.state.ops[receive as usize].peer != ANY
    }

    /// Returns the CPU time after the match of a message: the copy of a short one, the get of a long one.
    fn serve_time(&mut self, send: u32) -> Time {
        let host = &self.model.parameters.machine.host;
        if !self.state.is_eager(send) {
            return host.overhead;
        }
        let bytes = self.state.bytes(send);
        self.model.details.copied += bytes;
        host.copy_time(bytes)
    }

    /// Returns the CPU for a task passed by a card.
    #[inline]
    fn cpu_for(&self, task: Task) -> usize {
        let record = &self.state.ops[Protocol::op(task) as usize];
        (if matches!(task, Task::Release(_)) { record.rank } else { record.peer }) as usize
    }

    /// Returns the account for the time of a task.
    #[inline]
    fn share(&mut self, task: Task) -> &mut Time {
        let op = Protocol::op(task);
        let is_collective = self.is_collective(op);
        let shares = &mut self.model.details.shares;
        if self.state.ops[op as usize].kind() == Kind::Calc {
            &mut shares.compute
        } else if is_collective {
            &mut shares.collective
        } else {
            &mut shares.point_to_point
        }
    }

    /// Starts a task. Returns the task that occupies the CPU, which may be a different one, and its CPU time.
    fn begin(&mut self, now: Time, task: Task) -> (Task, Time) {
        let host = &self.model.parameters.machine.host;
        match task {
            Task::Run(op) => {
                self.state.dependencies.started(op, now);
                let time = match self.state.ops[op as usize].kind() {
                    Kind::Calc => Time::from_ns(self.state.ops[op as usize].calc_ns()),
                    Kind::Send => host.overhead,
                    _ => return self.post(op),
                };
                (task, time)
            }
            // The card has matched this message, but cannot answer it.
            Task::Take(op) if self.card(op).matches_on_card() => (Task::Serve(op), host.poll + host.overhead),
            Task::Take(op) => {
                let search = host.poll + host.matching;
                match self.state.arrive(op) {
                    None => {
                        self.model.details.unexpected += 1;
                        (task, search)
                    }
                    Some(receive) => {
                        self.state.dependencies.operations.set_receive_of(op, receive);
                        (Task::Serve(op), search + self.serve_time(op))
                    }
                }
            }
            Task::Complete(op) if !self.state.is_eager(op) && !self.card(op).matches_on_card() => {
                (task, host.poll + host.overhead)
            }
            Task::Serve(_) | Task::Complete(_) | Task::Release(_) => (task, host.poll),
        }
    }

    /// Posts a receive.
    fn post(&mut self, receive: u32) -> (Task, Time) {
        let host = &self.model.parameters.machine.host;
        let card = self.card(receive);
        // Without handlers, the card gets the data of a long message by a triggered operation, posted after the entry
        // unless the entry has found the message.
        let is_triggered = !card.runs_handlers() && self.gets_by_itself(receive) && !self.state.is_eager(receive);
        let (posting, finding) = match card.matches_on_card() {
            false => (host.matching, Time::ZERO),
            true => (host.overhead, host.poll),
        };
        let preparing = if is_triggered { host.overhead } else { Time::ZERO };
        match self.state.post(receive) {
            None => (Task::Run(receive), posting + preparing),
            Some(send) => {
                self.state.dependencies.operations.set_receive_of(send, receive);
                (Task::Serve(send), posting + finding + self.serve_time(send))
            }
        }
    }

    /// Handles the complete reception of a send's data.
    fn received(&mut self, now: Time, send: u32) {
        let receive = self.state.dependencies.operations.receive_of(send);
        self.state.dependencies.done(receive, now);
    }

    /// Returns the number of bytes, the sender and the receiver of a message.
    fn route(&self, travel: Travel, op: u32) -> (u64, u32, u32) {
        let (bytes, &Op { rank, peer, .. }) = (self.state.bytes(op), &self.state.ops[op as usize]);
        match travel {
            Travel::Message => (if self.state.is_eager(op) { bytes } else { 0 }, rank, peer),
            Travel::Data => (bytes, rank, peer),
            Travel::Get | Travel::End => (0, peer, rank),
        }
    }

    /// Makes a card fetch a message from memory and send it.
    fn send(&mut self, now: Time, travel: Travel, op: u32, initiator: Initiator) {
        let (bytes, from, to) = self.route(travel, op);
        let Parameters { machine, .. } = self.model.parameters;
        let ready = now.saturating_add(timing::fetch(machine, bytes, initiator));
        let port = &mut self.model.ports[from as usize].sending;
        let (start, end) =
            port.reserve(ready, bytes, machine.network.gap_per_byte, timing::injection_gap(machine, bytes));
        if travel == Travel::Data && self.card(op).matches_on_card() {
            // The event for the sender crosses as an empty DMA write.
            self.later(end, timing::deposit(machine, 0), Event::Tell(Task::Release(op)));
        }
        let first = start.saturating_add(self.model.network.of_packet(from as usize, to as usize));
        self.later(first, Time::ZERO, Event::Arrives(travel, op));
    }

    /// Handles the arrival of a message's first byte. The port of a card receives one message after the other.
    fn arrives(&mut self, now: Time, travel: Travel, op: u32) {
        let (bytes, _, to) = self.route(travel, op);
        let Parameters { machine, .. } = self.model.parameters;
        let reception = timing::reception(machine, bytes, travel == Travel::Data);
        let port = &mut self.model.ports[to as usize].receiving;
        let (start, _) = port.reserve(now, bytes, machine.network.gap_per_byte, reception.occupied);
        self.later(start, reception.matched, Event::Arrived(travel, op));
    }

    /// Handles the complete arrival and match of a message.
    fn arrived(&mut self, now: Time, travel: Travel, op: u32) {
        let machine = self.model.parameters.machine;
        match travel {
            Travel::Message => self.message(now, op),
            Travel::Get => self.send(now, Travel::Data, op, Initiator::Card),
            Travel::Data => {
                let deposit = timing::deposit(machine, self.state.bytes(op));
                self.later(now, deposit, Event::Tell(Task::Complete(op)));
            }
            Travel::End => self.later(now, timing::deposit(machine, 0), Event::Tell(Task::Release(op))),
        }
    }

    /// Handles an eager message, or the header of a long one, at a card.
    fn message(&mut self, now: Time, op: u32) {
        let is_eager = self.state.is_eager(op);
        let Parameters { machine, handler, .. } = *self.model.parameters;
        let in_memory = timing::deposit(machine, if is_eager { self.state.bytes(op) } else { 0 });
        if !self.card(op).matches_on_card() {
            return self.later(now, in_memory, Event::Tell(Task::Take(op)));
        }
        let Some(receive) = self.state.arrive(op) else {
            self.model.details.unexpected += 1;
            return;
        };
        self.state.dependencies.operations.set_receive_of(op, receive);
        if is_eager {
            self.later(now, in_memory, Event::Tell(Task::Complete(op)));
        } else if self.gets_by_itself(receive) {
            let answer = if self.card(op).runs_handlers() { handler } else { Time::ZERO };
            self.later(now, answer, Event::Get(op));
        } else {
            self.later(now, in_memory, Event::Tell(Task::Take(op)));
        }
    }

    fn later(&mut self, now: Time, wait: Time, event: Event) {
        self.queue.push(now.saturating_add(wait).min(Time::LIMIT), self.queue.inserted(), event);
    }
}
