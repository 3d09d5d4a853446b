// SPDX-License-Identifier: Apache-2.0
//! Packet model: CPUs, cards and the packet network.

use std::ops::Range;

use net::key_of_executor;
use net::messages::{Message, MessageNetwork, Notice, Scope};
use sim::memory::prefetch;
use sim::{Time, TimePerByte};

use super::record::{self, Recorder};
use super::task::{Phase, Task};
use super::{Details, PacketError, Parameters, RunError};
use crate::frame::{AHEAD, Executor, Model, RunState};
use crate::op::{Kind, Op};
use crate::schedule::Schedule;

/// Number of links in the report.
const BUSIEST: usize = 10;

/// Classes of this model's events for their keys. A card accepts a message before a CPU that becomes free looks for it.
const TAKE: u8 = 0;
const CPU: u8 = 1;

/// An event, in 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    Network(net::messages::Event),
    /// A CPU finishes its task.
    Cpu(u32),
    /// A card accepts a message that waited for the gap.
    Take(u32),
}

impl From<net::messages::Event> for Event {
    #[inline]
    fn from(event: net::messages::Event) -> Event {
        Event::Network(event)
    }
}

/// Creates the executor of ranks over a network.
pub(super) fn executor<'a, S: Scope>(
    schedule: &'a Schedule,
    ranks: Range<u32>,
    parameters: &'a Parameters,
    network: MessageNetwork<S>,
    recorder: Option<Recorder>,
) -> Executor<'a, Packets<'a, S>> {
    let state = RunState::new(schedule, ranks, parameters.eager, false, parameters.progress.clone());
    let cards = vec![Time::ZERO; schedule.ranks() as usize * schedule.nics()];
    Executor::new(state, parameters.noise.as_ref(), Packets { parameters, network, cards, recorder })
}

/// The model: cards that send and receive messages over a packet network.
pub(super) struct Packets<'a, S> {
    parameters: &'a Parameters,
    pub network: MessageNetwork<S>,
    /// For each rank and NIC, the time from which the card may accept the next message.
    cards: Vec<Time>,
    pub recorder: Option<Recorder>,
}

/// A run in this model.
type Run<'a, S> = Executor<'a, Packets<'a, S>>;

impl<'a, S: Scope> Model<'a> for Packets<'a, S> {
    type Task = Task;
    type Event = Event;
    type Details = Details;
    type Error = PacketError;

    fn operation(op: u32) -> Task {
        Task::new(op, Phase::Operation)
    }

    #[inline(always)]
    fn op(task: Task) -> u32 {
        task.op()
    }

    #[inline(always)]
    fn cpu_is_done(cpu: u32) -> Event {
        Event::Cpu(cpu)
    }

    #[inline(always)]
    fn key_of_cpu(_: &Run<'a, S>, cpu: u32) -> u64 {
        key_of_executor(CPU, cpu)
    }

    #[inline]
    fn start(run: &mut Run<'a, S>, now: Time, cpu: usize, task: Task) -> Result<Option<(Task, Time)>, RunError> {
        let (op, mut task) = (task.op(), task);
        let (overhead, per_byte) = (run.model.parameters.overhead, run.model.parameters.overhead_per_byte);
        let of_bytes = |bytes: u64| per_byte.time(bytes.saturating_sub(1));
        let end = match task.phase() {
            Phase::Operation => {
                run.state.dependencies.started(op, now);
                let record = &run.state.ops[op as usize];
                match record.kind() {
                    Kind::Recv => {
                        if let Some(message) = run.state.post(op) {
                            matched(run, now, message, op)?;
                        }
                        return Ok(None);
                    }
                    Kind::Calc => {
                        task = task.ending(!run.state.dependencies.has_dependents(op));
                        run.end_of_work(now, cpu, Time::from_ns(record.calc_ns()))
                    }
                    _ => {
                        run.state.messages += 1;
                        let (bytes, is_eager) = (run.state.bytes(op), run.state.is_eager(op));
                        task = task.ending(is_eager && !run.state.dependencies.has_dependents(op));
                        let at = run.end_of_work(now, cpu, overhead).min(Time::LIMIT);
                        let sent = if is_eager { bytes } else { 0 };
                        send(run, now, at, op, Phase::Message, sent)?;
                        run.end_of_work(at, cpu, of_bytes(bytes))
                    }
                }
            }
            // Avoids reading the operation, which may not be in the processor's cache.
            _ if per_byte == TimePerByte::INFINITE => run.end_of_work(now, cpu, overhead),
            Phase::Message if !run.state.is_eager(op) => run.end_of_work(now, cpu, overhead),
            _ => run.end_of_work(now, cpu, overhead.saturating_add(of_bytes(run.state.bytes(op)))),
        };
        Ok(Some((task, end)))
    }

    #[inline]
    fn occupied(run: &mut Run<'a, S>, cpu: usize, task: Task, start: Time, end: Time) {
        let rank = run.rank_of(cpu) as u32;
        if let Some(recorder) = &mut run.model.recorder {
            recorder.works(rank, task, start, end);
        }
    }

    #[inline]
    fn finish(run: &mut Run<'a, S>, now: Time, task: Task) -> Result<(), RunError> {
        let op = task.op();
        match task.phase() {
            _ if task.is_last() => run.state.dependencies.done_alone(),
            Phase::Operation if run.state.ops[op as usize].kind() == Kind::Calc || run.state.is_eager(op) => {
                run.state.dependencies.done(op, now);
            }
            Phase::Operation => {}
            Phase::Message => {
                if let Some(receive) = run.state.arrive(op) {
                    matched(run, now, op, receive)?;
                }
            }
            _ => {
                let receive = run.state.dependencies.operations.receive_of(op);
                run.state.dependencies.done(receive, now);
            }
        }
        Ok(())
    }

    #[inline]
    fn handle(run: &mut Run<'a, S>, now: Time, event: Event) -> Result<(), RunError> {
        match event {
            Event::Network(event) => match run.model.network.handle(now, event, &mut run.queue) {
                None => Ok(()),
                Some(Notice::Arrived { token, to }) => arrived(run, now, Task::from_token(token), to),
                Some(Notice::Sent(token)) => sent(run, now, Task::from_token(token).op()),
            },
            Event::Cpu(cpu) => run.cpu_is_done(now, cpu),
            Event::Take(token) => {
                let task = Task::from_token(token);
                take(run, now, task, run.state.ops[task.op() as usize].peer)
            }
        }
    }

    fn details(self, ends: &[Time]) -> Details {
        details(&self.network, self.recorder.into_iter().collect(), ends)
    }

    #[inline(always)]
    fn prefetch_task(run: &Run<'a, S>, task: Task) {
        let record = &run.state.ops[task.op() as usize];
        if task.phase() == Phase::Message || record.kind() == Kind::Recv {
            prefetch(run.state.matching.slot_of(record));
        }
    }

    /// With many ranks, little of an event's data is in the cache.
    #[inline(always)]
    fn prefetch(run: &Run<'a, S>) {
        let (state, network, soon) = (&run.state, &run.model.network, run.queue.soon());
        // Current task of a CPU, if its end needs the operation.
        let current = |cpu: u32| run.cpu(cpu).current().filter(|task| !task.is_last());
        soon.prefetch(20);
        match soon.get(12) {
            Some(&Event::Network(event)) => network.prefetch(event),
            Some(&Event::Cpu(cpu)) => prefetch(run.cpu(cpu)),
            Some(&Event::Take(token)) => prefetch(&raw const state.ops[Task::from_token(token).op() as usize]),
            None => {}
        }
        match soon.get(9) {
            Some(&Event::Network(event)) => network.prefetch_next(event),
            Some(&Event::Cpu(cpu)) => {
                if let Some(task) = current(cpu) {
                    prefetch(&raw const state.ops[task.op() as usize]);
                }
            }
            _ => {}
        }
        match soon.get(6) {
            Some(&Event::Network(event)) => network.prefetch_last(event),
            Some(&Event::Cpu(cpu)) => {
                if let Some(task) = current(cpu) {
                    let record = &state.ops[task.op() as usize];
                    if task.phase() == Phase::Message {
                        prefetch(state.matching.slot_of(record));
                        // The operation waiting for the message is usually a send.
                        network.prefetch(net::messages::Event::Send(card_of(state, record.peer, task.op())));
                    } else {
                        state.dependencies.prefetch_dependents(record);
                    }
                }
            }
            _ => {}
        }
        match soon.get(3) {
            Some(&Event::Cpu(cpu)) => {
                for task in (0..AHEAD).map_while(|before| run.cpu(cpu).waiting(before)) {
                    Self::prefetch_task(run, task);
                }
                if let Some(task) = current(cpu) {
                    let record = &state.ops[task.op() as usize];
                    if task.phase() == Phase::Message {
                        let last = last_of(state, record);
                        prefetch(state.ops.as_ptr().wrapping_add(last));
                        state.dependencies.operations.prefetch(last);
                    } else {
                        state.dependencies.prefetch_counts(record);
                    }
                }
            }
            Some(&Event::Network(event)) => {
                if let Some(card) = network.receiver(event) {
                    prefetch(&raw const run.model.cards[card as usize]);
                    prefetch(run.cpu((card as usize / state.schedule.nics() * state.schedule.cpus()) as u32));
                }
            }
            _ => {}
        }
        if let Some(&Event::Cpu(cpu)) = soon.get(1)
            && let Some(task) = current(cpu)
            && task.phase() == Phase::Message
            && let Some(record) = state.ops.get(last_of(state, &state.ops[task.op() as usize]))
        {
            state.dependencies.prefetch_dependents(record);
        }
    }
}

/// Returns the model-specific part of the outcome of a run with these ends.
pub(super) fn details<S: Scope>(network: &MessageNetwork<S>, recorders: Vec<Recorder>, ends: &[Time]) -> Details {
    debug_assert_eq!(network.in_flight(), 0, "what is sent arrives");
    let end = ends.iter().copied().max().unwrap_or_default();
    Details { network: network.report(end, BUSIEST), spans: record::join(recorders) }
}

/// Returns the last member of the list in which a message's search for its partner starts, or any number.
#[inline(always)]
fn last_of(state: &RunState, message: &Op) -> usize {
    (*state.matching.slot_of(message) as u32).wrapping_sub(1) as usize
}

/// Returns the card of `rank` that has the number of the NIC of `op`.
#[inline]
fn card_of(state: &RunState, rank: u32, op: u32) -> u32 {
    (rank as usize * state.schedule.nics() + state.ops[op as usize].nic()) as u32
}

/// Sends the message of a send, or another message of its rendezvous.
fn send<S: Scope>(
    run: &mut Run<'_, S>,
    now: Time,
    at: Time,
    op: u32,
    phase: Phase,
    bytes: u64,
) -> Result<(), RunError> {
    run.in_time(at.saturating_add(run.model.parameters.network.gap_per_byte.time(bytes)), op)?;
    let record = &run.state.ops[op as usize];
    let (mut from, mut to) = (record.rank, record.peer);
    let is_answer = phase == Phase::Clear;
    if is_answer {
        std::mem::swap(&mut from, &mut to);
    }
    let task = Task::new(op, phase);
    if let Some(recorder) = &mut run.model.recorder {
        recorder.sends(from, task, at);
    }
    let (token, tell_sent) = (task.token(), phase == Phase::Data);
    let (from, to) = (card_of(&run.state, from, op), card_of(&run.state, to, op));
    let message = Message { from, to, bytes, token, tell_sent, is_urgent: is_answer };
    run.model.network.send(now, at, message, &mut run.queue);
    Ok(())
}

/// Handles the match of a message with its receive.
fn matched<S: Scope>(run: &mut Run<'_, S>, now: Time, message: u32, receive: u32) -> Result<(), RunError> {
    if run.state.is_eager(message) {
        run.state.dependencies.done(receive, now);
        return Ok(());
    }
    run.state.dependencies.operations.set_receive_of(message, receive);
    send(run, now, now, message, Phase::Clear, 0)
}

/// Handles the complete arrival of a message at a card.
fn arrived<S: Scope>(run: &mut Run<'_, S>, now: Time, task: Task, card: u32) -> Result<(), RunError> {
    if let Some(recorder) = &mut run.model.recorder {
        recorder.arrived(task, now);
    }
    if task.phase() == Phase::Clear {
        let op = task.op();
        return send(run, now, now, op, Phase::Data, run.state.bytes(op));
    }
    let next = &mut run.model.cards[card as usize];
    let at = now.max(*next);
    *next = at.saturating_add(run.model.parameters.network.gap);
    if at > now {
        run.queue.push(at, key_of_executor(TAKE, card), Event::Take(task.token()));
        return Ok(());
    }
    take(run, now, task, (card as usize / run.state.schedule.nics()) as u32)
}

/// Passes a message from a card to the CPU of its rank, which searches its receive.
fn take<S: Scope>(run: &mut Run<'_, S>, now: Time, task: Task, rank: u32) -> Result<(), RunError> {
    let cpu = run.cpu_of(rank, task.op());
    run.request(now, cpu, task)
}

/// Handles the departure of the data of a send above S.
fn sent<S: Scope>(run: &mut Run<'_, S>, now: Time, op: u32) -> Result<(), RunError> {
    let end = run.end_of(run.state.ops[op as usize].rank);
    *end = now.max(*end);
    run.state.dependencies.done(op, now);
    run.request_ready(now)
}
