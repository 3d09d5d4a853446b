use machine::NicKind;
use net::Latency;
use sim::{EventQueue, Pipe, Time};

use super::{Outcome, Parameters, RunError, Shares};
use crate::cpu::Cpu;
use crate::matching::Matching;
use crate::noise::{Noisy, Stretch};
use crate::op::{ANY, Kind, Op};
use crate::progress::Progress;
use crate::schedule::Schedule;
use crate::stuck::Stuck;

/// Nothing starts later, so that sums of times stay within 64 bits.
const LATEST: Time = Time::from_ps(1 << 63);

/// What travels, all in the name of a send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Travel {
    /// The message with its data, or the header of a long one
    Message,
    /// The receiver asks for the data of a long message
    Get,
    /// The data
    Data,
    /// The receiver's CPU has the data
    End,
}

/// What a CPU does. 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    /// An operation
    Run(u32),
    /// The message of a send has come and wants the CPU's attention
    Take(u32),
    /// As above; it is matched
    Serve(u32),
    /// The data of a matched send is in place
    Complete(u32),
    /// A long send is over
    Release(u32),
}

impl Task {
    #[inline]
    fn op(self) -> u32 {
        let (Task::Run(op) | Task::Take(op) | Task::Serve(op) | Task::Complete(op) | Task::Release(op)) = self;
        op
    }
}

/// Something that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    /// What a CPU does is done
    Cpu(u32),
    /// The first byte is at the card
    Arrives(Travel, u32),
    /// The card has all of it, and has looked
    Arrived(Travel, u32),
    /// A handler or a trigger asks for the data of a long message
    Get(u32),
    /// A card has told the CPU
    Tell(Task),
}

/// Executes a schedule.
///
/// # Errors
/// When the schedule cannot finish, with what each rank waits for, has operations that are not of this model, or uses
/// several CPUs or NICs; when the machine's network cannot have that many nodes.
pub fn run(schedule: &Schedule, parameters: &Parameters<'_>) -> Result<Outcome, RunError> {
    if let Some(op) = schedule.first_of_card() {
        return Err(RunError::NeedsCard(schedule.describe(op)));
    }
    let (cpus, nics) = (schedule.cpus(), schedule.nics());
    if cpus > 1 || nics > 1 {
        return Err(RunError::Resources { cpus, nics });
    }
    let network = Latency::new(&parameters.machine.network, schedule.ranks() as usize)?;
    Engine::new(schedule, network, parameters).run()
}

/// A rank's CPU and card.
#[derive(Debug, Default)]
struct Node {
    cpu: Cpu<Task>,
    /// Since when the CPU has nothing to do
    idle: Time,
    end: Time,
    sends: Pipe,
    receives: Pipe,
}

struct Engine<'a> {
    schedule: &'a Schedule,
    ops: &'a [Op],
    parameters: &'a Parameters<'a>,
    network: Latency,
    progress: Progress<'a>,
    matching: Matching<'a>,
    queue: EventQueue<Event>,
    nodes: Vec<Node>,
    noise: Option<Noisy<'a>>,
    freed: Vec<u32>,
    outcome: Outcome,
}

impl<'a> Engine<'a> {
    fn new(schedule: &'a Schedule, network: Latency, parameters: &'a Parameters<'a>) -> Engine<'a> {
        Engine {
            schedule,
            ops: &schedule.ops,
            parameters,
            network,
            progress: Progress::new(schedule, false),
            matching: Matching::new(schedule),
            queue: EventQueue::default(),
            nodes: std::iter::repeat_with(Node::default).take(schedule.ranks() as usize).collect(),
            noise: parameters.noise.as_ref().map(|noise| Noisy::new(noise, schedule.ranks() as usize)),
            freed: Vec::new(),
            outcome: Outcome {
                ends: Vec::new(),
                events: schedule.len() as u64,
                messages: 0,
                long: 0,
                unexpected: 0,
                copied: 0,
                shares: Shares::default(),
                unreceived: Vec::new(),
            },
        }
    }

    fn run(mut self) -> Result<Outcome, RunError> {
        let mut first = Vec::new();
        for rank in 0..self.schedule.ranks() {
            self.progress.take_first(self.schedule.of_rank(rank), &mut first);
            for &op in &first {
                self.request(Time::ZERO, rank, Task::Run(op))?;
            }
        }
        while let Some((now, event)) = self.queue.pop() {
            match event {
                Event::Cpu(rank) => self.finish(now, rank)?,
                Event::Arrives(travel, op) => self.arrives(now, travel, op),
                Event::Arrived(travel, op) => self.arrived(now, travel, op),
                Event::Get(op) => self.send(now, Travel::Get, op),
                Event::Tell(task) => self.request(now, self.place(task), task)?,
            }
        }
        let left = self.matching.left(&self.progress);
        if self.progress.count() < self.schedule.len() {
            let is_blocked = |&op: &u32| self.ops[op as usize].kind() == Kind::Recv || self.is_long(op);
            let blocked: Vec<u32> = left.into_iter().filter(is_blocked).collect();
            return Err(Stuck::new(self.schedule, &self.progress, &blocked).into());
        }
        self.outcome.unreceived = left;
        self.outcome.ends = self.nodes.iter().map(|node| node.end).collect();
        Ok(self.outcome)
    }

    #[inline]
    fn bytes(&self, op: u32) -> u64 {
        self.schedule.bytes(&self.ops[op as usize])
    }

    #[inline]
    fn is_long(&self, send: u32) -> bool {
        self.bytes(send) > self.parameters.eager
    }

    /// Whether an operation belongs to a collective.
    #[inline]
    fn is_collective(&self, op: u32) -> bool {
        self.ops[op as usize].space() % 2 == 1
    }

    /// Who does the work of a message.
    #[inline]
    fn card(&self, op: u32) -> NicKind {
        if self.is_collective(op) { NicKind::Rdma } else { self.parameters.card }
    }

    /// Whether the header of a long message leads to a get without the CPU.
    #[inline]
    fn gets_by_itself(&self, receive: u32) -> bool {
        let card = self.card(receive);
        card.runs_handlers() || card.matches_on_card() && self.ops[receive as usize].peer != ANY
    }

    /// What a CPU adds when a message is matched late: the copy of a short one, the get of a long one.
    fn late(&mut self, send: u32) -> Time {
        let host = &self.parameters.machine.host;
        if self.is_long(send) {
            return host.overhead;
        }
        let bytes = self.bytes(send);
        self.outcome.copied += bytes;
        host.memory_time(bytes, bytes)
    }

    /// Whose CPU does a task that the card tells of.
    #[inline]
    fn place(&self, task: Task) -> u32 {
        let record = &self.ops[task.op() as usize];
        if matches!(task, Task::Release(_)) { record.rank } else { record.peer }
    }

    /// Has a CPU do something when it has done all that it was given before.
    fn request(&mut self, now: Time, rank: u32, task: Task) -> Result<(), RunError> {
        let node = &mut self.nodes[rank as usize];
        if !node.cpu.add(task) {
            return Ok(());
        }
        let waited = now.saturating_sub(node.idle);
        *self.share(task) += waited;
        self.go_on(now, rank)
    }

    /// Where the time of a task counts.
    #[inline]
    fn share(&mut self, task: Task) -> &mut Time {
        let (op, is_collective) = (task.op(), self.is_collective(task.op()));
        let shares = &mut self.outcome.shares;
        if self.ops[op as usize].kind() == Kind::Calc {
            &mut shares.compute
        } else if is_collective {
            &mut shares.collective
        } else {
            &mut shares.point_to_point
        }
    }

    fn go_on(&mut self, now: Time, rank: u32) -> Result<(), RunError> {
        let Some(task) = self.nodes[rank as usize].cpu.next() else {
            self.nodes[rank as usize].idle = now;
            return Ok(());
        };
        let (task, takes) = self.start(now, task);
        let end = Time::from_ps(self.noise.end(rank as usize, now.as_ps(), takes.as_ps()));
        if end > LATEST {
            return Err(RunError::TooLate(self.schedule.describe(task.op())));
        }
        *self.share(task) += end - now;
        self.nodes[rank as usize].cpu.begin(task);
        self.queue.push(end, Event::Cpu(rank));
        // Those that only waited for its start.
        self.request_freed(now)
    }

    /// Starts a task; returns what ends it, and how long it takes.
    fn start(&mut self, now: Time, task: Task) -> (Task, Time) {
        let host = &self.parameters.machine.host;
        match task {
            Task::Run(op) => {
                self.progress.started(op, now);
                let time = match self.ops[op as usize].kind() {
                    Kind::Calc => Time::from_ns(self.ops[op as usize].calc_ns()),
                    Kind::Send => host.overhead,
                    _ => return self.post(op),
                };
                (task, time)
            }
            Task::Take(op) => {
                let looks = host.poll + if self.card(op).matches_on_card() { Time::ZERO } else { host.matching };
                // A message that the card has matched, but not answered.
                if self.card(op).matches_on_card() {
                    return (Task::Serve(op), looks + host.overhead);
                }
                match self.matching.arrive(op, &mut self.progress) {
                    None => {
                        self.outcome.unexpected += 1;
                        (task, looks)
                    }
                    Some(receive) => {
                        self.progress.words[op as usize] = receive;
                        (Task::Serve(op), looks + self.late(op))
                    }
                }
            }
            Task::Complete(op) if self.is_long(op) && !self.card(op).matches_on_card() => {
                (task, host.poll + host.overhead)
            }
            Task::Serve(_) | Task::Complete(_) | Task::Release(_) => (task, host.poll),
        }
    }

    /// Posts a receive.
    fn post(&mut self, receive: u32) -> (Task, Time) {
        let host = &self.parameters.machine.host;
        let card = self.card(receive);
        // Without handlers the card gets the data of a long message by a triggered operation, which is posted beside it.
        let is_triggered =
            !card.runs_handlers() && self.gets_by_itself(receive) && self.bytes(receive) > self.parameters.eager;
        let (posting, finding) = match card.matches_on_card() {
            false => (host.matching, Time::ZERO),
            true if is_triggered => (host.overhead * 2, host.poll),
            true => (host.overhead, host.poll),
        };
        match self.matching.post(receive, &mut self.progress) {
            None => (Task::Run(receive), posting),
            Some(send) => {
                self.progress.words[send as usize] = receive;
                (Task::Serve(send), posting + finding + self.late(send))
            }
        }
    }

    /// What a CPU does is done.
    fn finish(&mut self, now: Time, rank: u32) -> Result<(), RunError> {
        let task = self.nodes[rank as usize].cpu.end();
        self.nodes[rank as usize].end = now;
        match task {
            Task::Run(op) => match self.ops[op as usize].kind() {
                Kind::Calc => self.progress.done(op, now),
                Kind::Send => {
                    let is_long = self.is_long(op);
                    self.outcome.events += 1;
                    if !self.is_collective(op) {
                        self.outcome.messages += 1;
                        self.outcome.long += u64::from(is_long);
                    }
                    if !is_long {
                        self.progress.done(op, now);
                    }
                    self.send(now, Travel::Message, op);
                }
                _ => {}
            },
            Task::Take(_) => {}
            Task::Serve(op) if self.is_long(op) => self.send(now, Travel::Get, op),
            Task::Serve(op) => self.progress.done(self.progress.words[op as usize], now),
            Task::Complete(op) => {
                if self.is_long(op) && !self.card(op).matches_on_card() {
                    self.send(now, Travel::End, op);
                }
                self.progress.done(self.progress.words[op as usize], now);
            }
            Task::Release(op) => self.progress.done(op, now),
        }
        self.request_freed(now)?;
        self.go_on(now, rank)
    }

    /// Bytes that travel with a message, and who sends and receives it.
    fn route(&self, travel: Travel, op: u32) -> (u64, u32, u32) {
        let (bytes, &Op { rank, peer, .. }) = (self.bytes(op), &self.ops[op as usize]);
        match travel {
            Travel::Message => (if self.is_long(op) { 0 } else { bytes }, rank, peer),
            Travel::Data => (bytes, rank, peer),
            Travel::Get | Travel::End => (0, peer, rank),
        }
    }

    /// A card fetches a message and puts it on the wire.
    fn send(&mut self, now: Time, travel: Travel, op: u32) {
        let network = &self.parameters.machine.network;
        let (bytes, from, to) = self.route(travel, op);
        let dma = &self.parameters.machine.dma;
        let fetch = dma.latency * 2 + dma.gap_per_byte.time(bytes.min(network.mtu.into()));
        let ready = if bytes == 0 { now } else { now.saturating_add(fetch) };
        let (start, end) = self.nodes[from as usize].sends.reserve(ready, bytes, network.gap_per_byte, network.gap);
        if travel == Travel::Data && self.card(op).matches_on_card() {
            // The event that tells the sender crosses as an empty DMA write.
            self.later(end, self.deposit(0), Event::Tell(Task::Release(op)));
        }
        let first = start.saturating_add(self.network.between(from as usize, to as usize));
        self.later(first, Time::ZERO, Event::Arrives(travel, op));
    }

    /// The wire of a receiver takes one message after the other.
    fn arrives(&mut self, now: Time, travel: Travel, op: u32) {
        let network = &self.parameters.machine.network;
        let (bytes, _, to) = self.route(travel, op);
        let gap = if bytes == 0 { Time::ZERO } else { network.gap };
        let (_, end) = self.nodes[to as usize].receives.reserve(now, bytes, network.gap_per_byte, gap);
        let nic = &self.parameters.machine.nic;
        let is_header = travel != Travel::Data && bytes <= network.mtu.into();
        let looks = if is_header { nic.match_header } else { nic.match_cam };
        self.later(end, looks, Event::Arrived(travel, op));
    }

    /// A card has all of a message, and knows what it is.
    fn arrived(&mut self, now: Time, travel: Travel, op: u32) {
        match travel {
            Travel::Message => self.message(now, op),
            Travel::Get => self.send(now, Travel::Data, op),
            Travel::Data => self.later(now, self.deposit(self.bytes(op)), Event::Tell(Task::Complete(op))),
            Travel::End => self.later(now, self.deposit(0), Event::Tell(Task::Release(op))),
        }
    }

    /// A card has a message, or the header of a long one.
    fn message(&mut self, now: Time, op: u32) {
        let is_long = self.is_long(op);
        let in_memory = self.deposit(if is_long { 0 } else { self.bytes(op) });
        if !self.card(op).matches_on_card() {
            return self.later(now, in_memory, Event::Tell(Task::Take(op)));
        }
        let Some(receive) = self.matching.arrive(op, &mut self.progress) else {
            self.outcome.unexpected += 1;
            return;
        };
        self.progress.words[op as usize] = receive;
        if !is_long {
            self.later(now, in_memory, Event::Tell(Task::Complete(op)));
        } else if self.gets_by_itself(receive) {
            let runs = if self.card(op).runs_handlers() { self.parameters.handler } else { Time::ZERO };
            self.later(now, runs, Event::Get(op));
        } else {
            self.later(now, in_memory, Event::Tell(Task::Take(op)));
        }
    }

    /// DMA of a message to host memory: of its last packet, which nothing hides.
    fn deposit(&self, bytes: u64) -> Time {
        let (dma, mtu) = (&self.parameters.machine.dma, u64::from(self.parameters.machine.network.mtu));
        let last = bytes.checked_sub(1).map_or(0, |bytes| bytes % mtu + 1);
        dma.latency + dma.gap_per_byte.time(last)
    }

    fn later(&mut self, now: Time, wait: Time, event: Event) {
        self.queue.push(now.saturating_add(wait).min(LATEST), event);
    }

    /// Has CPUs take the operations that have been freed.
    fn request_freed(&mut self, now: Time) -> Result<(), RunError> {
        let mut freed = std::mem::take(&mut self.freed);
        self.progress.take_freed(&mut freed);
        for &op in &freed {
            self.request(now, self.ops[op as usize].rank, Task::Run(op))?;
        }
        self.freed = freed;
        Ok(())
    }
}
