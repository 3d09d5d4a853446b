use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use abi::portals::{self as ptl, Handle, Process, ni};
use goal::{Action, DependencyTracker, RunProgress, Schedule, Verb};
use machine::Machine;
use net::Interconnect;
use nic::{Card, CardEvent, CardProgram, HandlerStats, Notice, Timeline};
use sim::trace::Trace;
use sim::{EventQueue, Time};

use crate::check;
use crate::cpu::{After, Cpu, Task};
use crate::error::{RunError, StuckRank};
use crate::memory::HostMemory;
use crate::ports::WorldPorts;

/// Something that is due.
pub(crate) enum Event {
    Card(u32, CardEvent),
    /// A CPU, by its place in [`World::cpus`], has done what it did.
    Cpu(u32, After),
}

/// What the world knows of a rank besides its card and its CPUs.
#[derive(Debug, Default)]
pub(crate) struct Rank {
    /// Its counters by number.
    pub counters: Vec<(u32, Handle)>,
    /// HPU memories of its entries.
    pub memories: Vec<Handle>,
    /// Its tests that wait for their counter.
    pub tests: Vec<u32>,
    /// Its sends and receives that wait for a message.
    pub messages: Vec<u32>,
    /// The queue with the events of its sends and receives.
    pub queue: Option<Handle>,
}

/// What came of a schedule.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// For each rank, when the last of its CPUs was free.
    pub ends: Vec<Time>,
    /// When the last card was done.
    pub last: Time,
    /// Messages that cards have sent, acknowledgements and replies included.
    pub messages: u64,
    /// Their packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Messages that no entry took.
    pub dropped: u64,
    /// Triggered operations whose counter was never reached.
    pub untriggered: u64,
    /// By name, of all cards together.
    pub handlers: BTreeMap<String, HandlerStats>,
    /// Events of the simulation.
    pub steps: u64,
}

/// A schedule on a machine.
pub struct World<'a> {
    pub(crate) schedule: &'a Schedule,
    pub(crate) machine: Rc<Machine>,
    interconnect: Interconnect,
    pub(crate) queue: EventQueue<Event>,
    pub(crate) cards: Vec<Card>,
    pub(crate) ranks: Vec<Rank>,
    /// Those of one rank after those of another.
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) dependencies: DependencyTracker<'a>,
    pub(crate) memory: HostMemory,
    /// Largest message that is sent without waiting for its receive.
    pub(crate) eager: u64,
    /// The interface, the same on every card.
    pub(crate) ni: Handle,
    notices: Vec<Notice>,
    pub(crate) timeline: Timeline,
    fault: Option<(Time, String)>,
    pub(crate) now: Time,
    freed: Vec<u32>,
}

impl<'a> World<'a> {
    /// A world for `schedule` on `machine`. Cards with HPUs have `program`; messages above `eager` bytes wait for their
    /// receive.
    ///
    /// # Errors
    /// Operations that cannot be, with their place.
    pub fn new(
        schedule: &'a Schedule,
        machine: Machine,
        program: Option<Rc<CardProgram>>,
        eager: u64,
        trace: Trace,
    ) -> Result<World<'a>, RunError> {
        check::schedule(schedule, &machine, program.as_deref())?;
        let ranks = schedule.ranks();
        let machine = Rc::new(machine);
        let interconnect = Interconnect::new(&machine.network, ranks as usize)?;
        let timeline = Timeline::new(trace, ranks as usize, &machine);
        let map: Rc<[Process]> = (0..ranks).map(|nid| Process { nid, pid: nic::api::DEFAULT_PID }).collect();
        let mut ni = ptl::INVALID_HANDLE;
        let mut cards = Vec::with_capacity(ranks as usize);
        for node in 0..ranks {
            let mut card = Card::new(machine.clone(), node, ranks, 0);
            let ready = card.ni_init(ptl::IFACE_DEFAULT, ni::MATCHING | ni::LOGICAL, ptl::ID_ANY, None);
            ni = ready.expect("a fresh card has an interface to give").0;
            card.set_map(ni, map.clone()).expect("every rank is in the map");
            card.pt_alloc(ni, 0, ptl::EQ_NONE, crate::entries::PORTAL).expect("a fresh portal table is empty");
            if let Some(program) = program.as_ref().filter(|_| machine.nic.runs_handlers()) {
                card.share_program(program.clone());
            }
            cards.push(card);
        }
        let mut world = World {
            schedule,
            interconnect,
            queue: EventQueue::default(),
            cards,
            ranks: (0..ranks).map(|_| Rank::default()).collect(),
            cpus: (0..ranks as usize * schedule.cpus()).map(|_| Cpu::default()).collect(),
            dependencies: DependencyTracker::new(schedule, false, RunProgress::default()),
            memory: HostMemory::default(),
            eager,
            ni,
            notices: Vec::new(),
            timeline,
            fault: None,
            now: Time::ZERO,
            freed: Vec::new(),
            machine,
        };
        let is_message = |op| matches!(schedule.action(op), Action::Send { .. } | Action::Recv { .. });
        if (0..schedule.len() as u32).any(is_message) {
            world.open_messages();
        }
        Ok(world)
    }

    /// Executes the schedule to its end.
    ///
    /// # Errors
    /// When it cannot finish, a card refuses an operation, or a handler fails.
    pub fn run(&mut self) -> Result<Outcome, RunError> {
        let mut first = Vec::new();
        for rank in 0..self.schedule.ranks() {
            self.dependencies.take_first(self.schedule.of_rank(rank), &mut first);
            self.begin(&first)?;
        }
        while let Some((at, event)) = self.queue.pop() {
            self.now = at;
            match event {
                Event::Card(node, event) => {
                    let ends_message = matches!(event, CardEvent::Complete(_));
                    self.on_card(node, |card, ports| card.handle(event, ports));
                    if ends_message {
                        self.cards[node as usize].trim();
                    }
                    self.heed_notices(node)?;
                }
                Event::Cpu(cpu, after) => self.cpu_done(cpu, after)?,
            }
            if let Some((at, message)) = self.fault.take() {
                return Err(RunError::Handler { at, message });
            }
        }
        if self.dependencies.done_count() < self.schedule.len() { Err(self.stuck()) } else { Ok(self.outcome()) }
    }

    /// Has the run show how far it is. To be called before [`World::run`].
    pub fn report_progress(&mut self, progress: RunProgress) {
        self.dependencies.report_to(progress);
    }

    /// The memories of the ranks.
    pub fn memory(&self) -> &HostMemory {
        &self.memory
    }

    /// Writes the timeline, if one was asked for.
    ///
    /// # Errors
    /// When writing fails.
    pub fn finish_trace(self) -> std::io::Result<()> {
        self.timeline.finish()
    }

    /// Lets a card act. What that means to its rank follows with [`World::heed_notices`].
    pub(crate) fn on_card<R>(&mut self, node: u32, act: impl FnOnce(&mut Card, &mut WorldPorts<'_>) -> R) -> R {
        let World { cards, queue, interconnect, memory, notices, timeline, fault, now, .. } = self;
        let mut ports = WorldPorts { now: *now, node, queue, interconnect, memory, notices, timeline, fault };
        act(&mut cards[node as usize], &mut ports)
    }

    /// Looks what the latest news of a card means to its rank.
    pub(crate) fn heed_notices(&mut self, rank: u32) -> Result<(), RunError> {
        while !self.notices.is_empty() {
            let (mut counters, mut queues, mut completions) = (false, false, false);
            for notice in self.notices.drain(..) {
                match notice {
                    Notice::Counter(_) => counters = true,
                    Notice::Queue(_) => queues = true,
                    Notice::Completion => completions = true,
                    Notice::Portal(..) => {} // no schedule disables a portal table entry
                }
            }
            if counters {
                self.look_at_tests(rank)?;
            }
            if queues {
                self.take_events(rank)?;
            }
            if completions {
                self.go_on(rank as usize * self.schedule.cpus())?;
            }
        }
        Ok(())
    }

    /// Hands operations of one rank, which wait for nothing any more, to their CPUs.
    pub(crate) fn begin(&mut self, ops: &[u32]) -> Result<(), RunError> {
        for &op in ops {
            let cpu = self.cpu_of(op);
            self.cpus[cpu].tasks.push_back(Task::Start(op));
        }
        for &op in ops {
            self.go_on(self.cpu_of(op))?;
        }
        Ok(())
    }

    /// An operation has started.
    pub(crate) fn started(&mut self, op: u32) -> Result<(), RunError> {
        self.dependencies.started(op, self.now);
        self.begin_freed()
    }

    /// An operation is done.
    pub(crate) fn done(&mut self, op: u32) -> Result<(), RunError> {
        self.dependencies.done(op, self.now);
        self.begin_freed()
    }

    fn begin_freed(&mut self) -> Result<(), RunError> {
        let mut freed = std::mem::take(&mut self.freed);
        self.dependencies.take_ready(&mut freed);
        let begun = self.begin(&freed);
        self.freed = freed;
        begun
    }

    fn stuck(&mut self) -> RunError {
        let schedule = self.schedule;
        let mut ranks = Vec::new();
        for rank in 0..schedule.ranks() {
            let mut blocked = std::mem::take(&mut self.ranks[rank as usize].tests);
            blocked.append(&mut self.ranks[rank as usize].messages);
            if blocked.is_empty() {
                continue;
            }
            blocked.sort_unstable();
            let waits = blocked.into_iter().map(|op| self.describe_wait(op)).collect();
            let held = schedule.of_rank(rank).filter(|&op| self.dependencies.is_blocked(op)).count();
            ranks.push(StuckRank { rank, waits, held });
        }
        let (done, operations) = (self.dependencies.done_count(), schedule.len());
        RunError::Stuck { done, operations, at: self.now, dropped: self.dropped(), ranks }
    }

    fn describe_wait(&mut self, op: u32) -> String {
        let (rank, ordinal, action) = (self.schedule.rank(op), self.schedule.ordinal(op), self.schedule.action(op));
        let what = match action {
            Action::Nic(goal::NicOp { verb: Verb::Test { counter, reaches }, .. }) => {
                let value = self.counter_value(rank, *counter);
                let failures = if value.failure > 0 { format!(" ({} failures)", value.failure) } else { String::new() };
                format!("for counter {counter}, which is at {}{failures} of {reaches},", value.success)
            }
            Action::Send { .. } => "for the receive".into(),
            _ => "for the message".into(),
        };
        format!("{what} of operation {ordinal} ({action})")
    }

    fn dropped(&mut self) -> u64 {
        let (ni, register) = (self.ni, ptl::StatusRegister::DropCount as u64);
        self.cards.iter_mut().filter_map(|card| card.ni_status(ni, register).ok()).map(|count| count as u64).sum()
    }

    fn outcome(&mut self) -> Outcome {
        let ends = self.cpus.chunks(self.schedule.cpus());
        let ends = ends.map(|cpus| cpus.iter().map(|cpu| cpu.end).max().unwrap_or_default()).collect();
        let steps = self.queue.inserted();
        let mut outcome = Outcome { ends, last: self.now, dropped: self.dropped(), steps, ..Outcome::default() };
        for card in &self.cards {
            let stats = card.stats();
            outcome.messages += stats.messages_sent;
            outcome.packets += stats.packets_sent;
            outcome.bytes += stats.bytes_sent;
            outcome.untriggered += card.triggered_left() as u64;
            for (name, handler) in stats.handlers {
                outcome.handlers.entry(name).or_default().merge(&handler);
            }
        }
        outcome
    }
}

impl Cpu {
    /// What it has still to do.
    pub fn next(&mut self) -> Option<Task> {
        self.tasks.pop_front()
    }
}

/// Tasks in the order in which they came up.
pub(crate) type Tasks = VecDeque<Task>;
