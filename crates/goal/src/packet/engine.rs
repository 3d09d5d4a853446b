use net::packet::{Message, Notice, PacketNetwork};
use net::{NetError, Topology};
use sim::memory::prefetch;
use sim::{EventQueue, Time};

use super::record::{Recorder, Window};
use super::task::{Phase, Task};
use super::{Outcome, Parameters, RunError, hosts};
use crate::cpu::Cpu;
use crate::matching::Matching;
use crate::noise::{Noisy, Stretch};
use crate::op::{Kind, Op};
use crate::progress::Progress;
use crate::schedule::Schedule;
use crate::stuck::Stuck;

/// Links in the report.
const BUSIEST: usize = 10;
/// Nothing starts later, so that sums of times stay within 64 bits.
const LATEST: Time = Time::from_ps(1 << 63);

/// Something that happens. 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Network(net::packet::Event),
    /// What a CPU does is done.
    Cpu(u32),
    /// A card takes a message that had to wait for its gap.
    Take(u32),
}

impl From<net::packet::Event> for Event {
    #[inline]
    fn from(event: net::packet::Event) -> Event {
        Event::Network(event)
    }
}

/// Executes a schedule.
///
/// # Errors
/// When the schedule cannot finish, with what each rank waits for, or has operations that are not of this model; when the
/// topology has fewer hosts than the schedule [needs](hosts()), or a parameter is impossible.
pub fn run(schedule: &Schedule, topology: Topology, parameters: &Parameters) -> Result<Outcome, RunError> {
    execute(schedule, topology, parameters, None)
}

/// Executes a schedule and keeps what goes on in a window: 32 bytes for whatever a CPU does and for each message.
///
/// # Errors
/// As [`run`].
pub fn record(
    schedule: &Schedule,
    topology: Topology,
    parameters: &Parameters,
    window: Window,
) -> Result<Outcome, RunError> {
    execute(schedule, topology, parameters, Some(Recorder::new(window)))
}

fn execute(
    schedule: &Schedule,
    topology: Topology,
    parameters: &Parameters,
    recorder: Option<Recorder>,
) -> Result<Outcome, RunError> {
    if let Some(op) = schedule.first_of_card() {
        return Err(RunError::NeedsCard(schedule.describe(op)));
    }
    let nodes = hosts(schedule)?;
    if nodes > topology.hosts() as usize {
        let (hosts, topology) = (topology.hosts(), topology.description().to_owned());
        return Err(NetError::TooFewHosts { topology, hosts, nodes }.into());
    }
    let network = PacketNetwork::new(topology, parameters.network.clone())?;
    Engine { recorder, ..Engine::new(schedule, network, parameters) }.run()
}

struct Engine<'a> {
    schedule: &'a Schedule,
    ops: &'a [Op],
    parameters: &'a Parameters,
    progress: Progress<'a>,
    matching: Matching<'a>,
    queue: EventQueue<Event>,
    network: PacketNetwork,
    /// By rank and number.
    cpus: Vec<Cpu<Task>>,
    /// By rank and NIC, when it may take the next message.
    cards: Vec<Time>,
    ends: Vec<Time>,
    noise: Option<Noisy<'a>>,
    messages: u64,
    freed: Vec<u32>,
    recorder: Option<Recorder>,
}

impl<'a> Engine<'a> {
    fn new(schedule: &'a Schedule, network: PacketNetwork, parameters: &'a Parameters) -> Engine<'a> {
        let ranks = schedule.ranks() as usize;
        let cpus = ranks * schedule.cpus();
        Engine {
            schedule,
            ops: &schedule.ops,
            parameters,
            progress: Progress::new(schedule, false),
            matching: Matching::new(schedule),
            queue: EventQueue::default(),
            network,
            cpus: std::iter::repeat_with(Cpu::default).take(cpus).collect(),
            cards: vec![Time::ZERO; ranks * schedule.nics()],
            ends: vec![Time::ZERO; ranks],
            noise: parameters.noise.as_ref().map(|noise| Noisy::new(noise, cpus)),
            messages: 0,
            freed: Vec::new(),
            recorder: None,
        }
    }

    fn run(mut self) -> Result<Outcome, RunError> {
        self.begin()?;
        while let Some((now, event)) = self.queue.pop() {
            self.prefetch();
            match event {
                Event::Network(event) => match self.network.handle(now, event, &mut self.queue) {
                    None => {}
                    Some(Notice::Arrived(token)) => self.arrived(now, Task::from_token(token))?,
                    Some(Notice::Sent(token)) => self.sent(now, Task::from_token(token).op())?,
                },
                Event::Cpu(cpu) => self.finish(now, cpu as usize)?,
                Event::Take(token) => self.take(now, Task::from_token(token))?,
            }
        }
        debug_assert_eq!(self.network.in_flight(), 0, "what is sent arrives");
        let left = self.matching.left(&self.progress);
        if self.progress.count() < self.schedule.len() {
            let is_blocked = |&op: &u32| self.ops[op as usize].kind() == Kind::Recv || !self.is_eager(op);
            let blocked: Vec<u32> = left.into_iter().filter(is_blocked).collect();
            return Err(Stuck::new(self.schedule, &self.progress, &blocked).into());
        }
        let end = self.ends.iter().copied().max().unwrap_or_default();
        Ok(Outcome {
            ends: self.ends,
            events: self.schedule.len() as u64 + self.messages,
            unreceived: left,
            network: self.network.report(end, BUSIEST),
            spans: self.recorder.map_or_else(Vec::new, |recorder| recorder.spans),
        })
    }

    /// Fetches what the events that are due soon will need: with many ranks, little of it is in the cache.
    #[inline(always)]
    fn prefetch(&self) {
        match self.queue.soon(12) {
            Some(&Event::Network(event)) => self.network.prefetch(event),
            Some(&Event::Cpu(cpu)) => prefetch(&raw const self.cpus[cpu as usize]),
            Some(&Event::Take(token)) => prefetch(&raw const self.ops[Task::from_token(token).op() as usize]),
            None => {}
        }
        match self.queue.soon(9) {
            Some(&Event::Network(event)) => self.network.prefetch_next(event),
            Some(&Event::Cpu(cpu)) => {
                if let Some(task) = self.cpus[cpu as usize].current() {
                    prefetch(&raw const self.ops[task.op() as usize]);
                }
            }
            _ => {}
        }
        match self.queue.soon(6) {
            Some(&Event::Network(event)) => {
                if let Some(token) = self.network.prefetch_last(event) {
                    prefetch(&raw const self.ops[Task::from_token(token).op() as usize]);
                }
            }
            Some(&Event::Cpu(cpu)) => {
                if let Some(task) = self.cpus[cpu as usize].current() {
                    let record = &self.ops[task.op() as usize];
                    if task.phase() == Phase::Message {
                        prefetch(self.matching.slot_of(record));
                    } else {
                        self.progress.prefetch_dependents(record);
                    }
                }
            }
            _ => {}
        }
        match self.queue.soon(3) {
            Some(&Event::Cpu(cpu)) => {
                if let Some(task) = self.cpus[cpu as usize].current() {
                    let record = &self.ops[task.op() as usize];
                    if task.phase() == Phase::Message {
                        let last = self.last_of(record);
                        prefetch(self.ops.as_ptr().wrapping_add(last));
                        prefetch(self.progress.words.as_ptr().wrapping_add(last));
                    } else {
                        self.progress.prefetch_counts(record);
                    }
                }
            }
            Some(&Event::Network(event @ net::packet::Event::Arrived(_))) => {
                if let Some(token) = self.network.prefetch_last(event) {
                    let op = Task::from_token(token).op();
                    let record = &self.ops[op as usize];
                    prefetch(&raw const self.cards[self.card(record.peer, op) as usize]);
                    prefetch(&raw const self.cpus[self.cpu(record.peer, op)]);
                }
            }
            _ => {}
        }
        if let Some(&Event::Cpu(cpu)) = self.queue.soon(1)
            && let Some(task) = self.cpus[cpu as usize].current()
            && task.phase() == Phase::Message
            && let Some(record) = self.ops.get(self.last_of(&self.ops[task.op() as usize]))
        {
            self.progress.prefetch_dependents(record);
        }
    }

    /// The last of those posted or arrived that start where the search for the partner of a message starts; or any number.
    #[inline(always)]
    fn last_of(&self, message: &Op) -> usize {
        (*self.matching.slot_of(message) as u32).wrapping_sub(1) as usize
    }

    /// Takes all operations that depend on nothing.
    fn begin(&mut self) -> Result<(), RunError> {
        let mut first = Vec::new();
        for rank in 0..self.schedule.ranks() {
            self.progress.take_first(self.schedule.of_rank(rank), &mut first);
            for &op in &first {
                self.request(Time::ZERO, self.cpu(rank, op), Task::new(op, Phase::Operation))?;
            }
        }
        Ok(())
    }

    /// The CPU of a rank that has the number of an operation's.
    #[inline]
    fn cpu(&self, rank: u32, op: u32) -> usize {
        rank as usize * self.schedule.cpus() + self.ops[op as usize].cpu()
    }

    /// The card of a rank that has the number of an operation's.
    #[inline]
    fn card(&self, rank: u32, op: u32) -> u32 {
        (rank as usize * self.schedule.nics() + self.ops[op as usize].nic()) as u32
    }

    #[inline]
    fn bytes(&self, op: u32) -> u64 {
        self.schedule.bytes(&self.ops[op as usize])
    }

    #[inline]
    fn is_eager(&self, op: u32) -> bool {
        self.bytes(op) <= self.parameters.eager
    }

    /// Has a CPU do something when it has done all that it was given before.
    #[inline]
    fn request(&mut self, now: Time, cpu: usize, task: Task) -> Result<(), RunError> {
        if self.cpus[cpu].add(task) { self.go_on(now, cpu) } else { Ok(()) }
    }

    /// Has a CPU do what it has to do up to something that takes time.
    fn go_on(&mut self, now: Time, cpu: usize) -> Result<(), RunError> {
        while let Some(task) = self.cpus[cpu].next() {
            let op = task.op();
            if task.phase() == Phase::Operation && self.ops[op as usize].kind() == Kind::Recv {
                self.post(now, op)?;
                continue;
            }
            let end = self.start(now, cpu, task)?;
            self.in_time(end, op)?;
            if let Some(recorder) = &mut self.recorder {
                recorder.works((cpu / self.schedule.cpus()) as u32, task, now, end);
            }
            self.cpus[cpu].begin(task);
            self.queue.push(end, Event::Cpu(cpu as u32));
            // Those that only waited for its start.
            return self.request_freed(now);
        }
        Ok(())
    }

    /// Starts a task; returns when it ends.
    #[inline]
    fn start(&mut self, now: Time, cpu: usize, task: Task) -> Result<Time, RunError> {
        let op = task.op();
        let record = &self.ops[op as usize];
        let bytes = self.bytes(op);
        let overhead = self.parameters.overhead;
        let of_bytes = self.parameters.overhead_per_byte.time(bytes.saturating_sub(1));
        Ok(match task.phase() {
            Phase::Operation => {
                self.progress.started(op, now);
                if record.kind() == Kind::Calc {
                    return Ok(self.works(now, cpu, Time::from_ns(record.calc_ns())));
                }
                self.messages += 1;
                let at = self.works(now, cpu, overhead).min(LATEST);
                self.send(now, at, op, Phase::Message, if self.is_eager(op) { bytes } else { 0 })?;
                self.works(at, cpu, of_bytes)
            }
            Phase::Message if !self.is_eager(op) => self.works(now, cpu, overhead),
            _ => self.works(now, cpu, overhead.saturating_add(of_bytes)),
        })
    }

    /// When a CPU has done so much.
    #[inline]
    fn works(&mut self, now: Time, cpu: usize, work: Time) -> Time {
        Time::from_ps(self.noise.end(cpu, now.as_ps(), work.as_ps()))
    }

    #[inline]
    fn in_time(&self, at: Time, op: u32) -> Result<(), RunError> {
        if at > LATEST { Err(RunError::TooLate(self.schedule.describe(op))) } else { Ok(()) }
    }

    /// Sends the message of a send, or what belongs to it.
    fn send(&mut self, now: Time, at: Time, op: u32, phase: Phase, bytes: u64) -> Result<(), RunError> {
        self.in_time(at.saturating_add(self.parameters.network.gap_per_byte.time(bytes)), op)?;
        let record = &self.ops[op as usize];
        let (mut from, mut to) = (record.rank, record.peer);
        let is_answer = phase == Phase::Clear;
        if is_answer {
            std::mem::swap(&mut from, &mut to);
        }
        let task = Task::new(op, phase);
        if let Some(recorder) = &mut self.recorder {
            recorder.sends(from, task, at);
        }
        let (token, tell_sent) = (task.token(), phase == Phase::Data);
        let (from, to) = (self.card(from, op), self.card(to, op));
        let message = Message { from, to, bytes, token, tell_sent, is_urgent: is_answer };
        self.network.send(now, at, message, &mut self.queue);
        Ok(())
    }

    /// What a CPU does is done.
    #[inline]
    fn finish(&mut self, now: Time, cpu: usize) -> Result<(), RunError> {
        let task = self.cpus[cpu].end();
        let rank = cpu / self.schedule.cpus();
        self.ends[rank] = now;
        let op = task.op();
        match task.phase() {
            Phase::Operation if self.ops[op as usize].kind() == Kind::Calc || self.is_eager(op) => {
                self.progress.done(op, now);
            }
            Phase::Operation => {}
            Phase::Message => {
                if let Some(receive) = self.matching.arrive(op, &mut self.progress) {
                    self.matched(now, op, receive)?;
                }
            }
            _ => {
                let receive = self.progress.words[op as usize];
                self.progress.done(receive, now);
            }
        }
        self.request_freed(now)?;
        self.go_on(now, cpu)
    }

    fn post(&mut self, now: Time, receive: u32) -> Result<(), RunError> {
        self.progress.started(receive, now);
        if let Some(message) = self.matching.post(receive, &mut self.progress) {
            self.matched(now, message, receive)?;
        }
        self.request_freed(now)
    }

    fn matched(&mut self, now: Time, message: u32, receive: u32) -> Result<(), RunError> {
        if self.is_eager(message) {
            self.progress.done(receive, now);
            return Ok(());
        }
        // The word of a matched send is free; its data will ask for whom it is.
        self.progress.words[message as usize] = receive;
        self.send(now, now, message, Phase::Clear, 0)
    }

    /// A card has all of a message.
    fn arrived(&mut self, now: Time, task: Task) -> Result<(), RunError> {
        if let Some(recorder) = &mut self.recorder {
            recorder.arrived(task, now);
        }
        let op = task.op();
        if task.phase() == Phase::Clear {
            return self.send(now, now, op, Phase::Data, self.bytes(op));
        }
        let card = self.card(self.ops[op as usize].peer, op) as usize;
        let at = now.max(self.cards[card]);
        self.cards[card] = at.saturating_add(self.parameters.network.gap);
        if at > now {
            self.queue.push(at, Event::Take(task.token()));
            return Ok(());
        }
        self.take(now, task)
    }

    /// Hands a message to the CPU, which will look for its receive.
    fn take(&mut self, now: Time, task: Task) -> Result<(), RunError> {
        let record = &self.ops[task.op() as usize];
        prefetch(self.matching.slot_of(record));
        let cpu = self.cpu(record.peer, task.op());
        self.request(now, cpu, task)
    }

    /// The data of a send above S has left.
    fn sent(&mut self, now: Time, op: u32) -> Result<(), RunError> {
        let end = &mut self.ends[self.ops[op as usize].rank as usize];
        *end = now.max(*end);
        self.progress.done(op, now);
        self.request_freed(now)
    }

    /// Has CPUs take the operations that have been freed.
    #[inline]
    fn request_freed(&mut self, now: Time) -> Result<(), RunError> {
        let mut freed = std::mem::take(&mut self.freed);
        self.progress.take_freed(&mut freed);
        for &op in &freed {
            let cpu = self.cpu(self.ops[op as usize].rank, op);
            self.request(now, cpu, Task::new(op, Phase::Operation))?;
        }
        self.freed = freed;
        Ok(())
    }
}
