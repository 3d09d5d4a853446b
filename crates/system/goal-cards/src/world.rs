// SPDX-License-Identifier: Apache-2.0
//! Ranks in the event loop of a cluster, and the public interface of a run.

use std::collections::BTreeMap;
use std::rc::Rc;

use abi::portals::{self as ptl, Handle, Process, ni};
use cluster::{InternalError, Listener, Ranks};
use goal::{Action, Deadlock, RunProgress, Schedule, Verb, WaitCause};
use nic::{CardModel, CardProgram, HandlerStats};
use sim::Time;
use sim::noise::Noise;
use sim::trace::Trace;

use crate::check;
use crate::commands::PORTAL;
use crate::error::{CardError, RunError};
use crate::memory::SparseMemory;
use crate::rank_state::{Cluster, CpuDone, Rank, Scripts};

/// Results of a run; `ends` are the times at which each rank's last CPU became free.
pub type Outcome = goal::Outcome<Details>;

/// Results specific to cards.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// Time at which the last card finished.
    pub last: Time,
    /// Number of messages sent by cards, including acknowledgements and replies.
    pub messages: u64,
    /// Number of packets of these messages.
    pub packets: u64,
    /// Number of bytes of these messages.
    pub bytes: u64,
    /// Number of messages that matched no entry.
    pub dropped: u64,
    /// Number of triggered operations whose counter never reached its threshold.
    pub untriggered: u64,
    /// Statistics of handlers by name, summed over all cards.
    pub handlers: BTreeMap<String, HandlerStats>,
    /// Number of simulation events.
    pub steps: u64,
}

/// A schedule on a simulated machine.
pub struct World<'a> {
    cluster: Cluster,
    scripts: Scripts<'a>,
}

impl<'a> World<'a> {
    /// Creates a world for `schedule` on the machine of a card model. Cards with HPUs run `program`. Messages above `eager` bytes wait
    /// for their receive.
    ///
    /// # Errors
    /// If an operation cannot be executed, or the machine does not support the schedule's ranks and CPUs.
    pub fn new(
        schedule: &'a Schedule,
        model: CardModel,
        program: Option<Rc<CardProgram>>,
        eager: u64,
        trace: Trace,
        listener: Listener,
    ) -> Result<World<'a>, RunError> {
        let machine = model.machine();
        check::schedule(schedule, machine, program.as_deref())?;
        let program = program.filter(|_| machine.nic.runs_handlers());
        // Cards warn only about failed handlers, which end the run.
        let mut cluster = Cluster::new(model, schedule.ranks() as usize, 0, trace, listener)?;
        cluster.trim_cards();
        let ni = open_interfaces(&mut cluster, program.as_ref());
        let mut scripts = Scripts::new(schedule, ni, eager);
        let is_message = |op| matches!(schedule.action(op), Action::Send { .. } | Action::Recv { .. });
        if (0..schedule.len() as u32).any(is_message) {
            scripts.open_messages(&mut cluster);
        }
        Ok(World { cluster, scripts })
    }

    /// Executes the schedule to its end.
    ///
    /// # Errors
    /// If it cannot finish, a card refuses an operation, or a handler fails.
    pub fn run(&mut self) -> Result<Outcome, RunError> {
        self.cluster.run(&mut self.scripts)
    }

    /// Adds noise to the CPUs, which delays their work.
    pub fn set_noise(&mut self, noise: &Noise) {
        self.cluster.set_noise(noise);
    }

    /// Makes CPUs pass messages of up to `bytes` to their cards with the descriptors, so that the cards do not read
    /// them from memory. Cards accept up to `nic::api::MAX_VOLATILE_SIZE`.
    pub fn set_inject(&mut self, bytes: u64) {
        self.scripts.inject = bytes;
    }

    /// Makes waiting CPUs poll back to back from the start of the wait, so that they notice an event at the start of
    /// the next poll. By default they notice it at once.
    pub fn set_polling(&mut self) {
        self.scripts.poll = Some(self.cluster.machine().host.poll);
    }

    /// Reports the progress of the run in `progress`. Must be called before [`World::run`].
    pub fn report_progress(&mut self, progress: RunProgress) {
        self.scripts.dependencies.report_to(progress);
    }

    /// Returns the memory of the ranks.
    pub fn memory(&self) -> &SparseMemory {
        &self.scripts.memory
    }

    /// Writes the timeline, if requested.
    ///
    /// # Errors
    /// If writing fails.
    pub fn finish_trace(self) -> std::io::Result<()> {
        self.cluster.finish_trace()
    }
}

/// Opens the interface of every card. The handle is the same on all cards.
fn open_interfaces(cluster: &mut Cluster, program: Option<&Rc<CardProgram>>) -> Handle {
    let nodes = cluster.ranks() as u32;
    let map: Rc<[Process]> = (0..nodes).map(|nid| Process { nid, pid: nic::api::DEFAULT_PID }).collect();
    let mut ni = ptl::INVALID_HANDLE;
    for node in 0..nodes {
        let card = cluster.card(node as usize);
        let ready = card.portals_mut().ni_init(ptl::IFACE_DEFAULT, ni::MATCHING | ni::LOGICAL, ptl::ID_ANY, None);
        ni = ready.expect("a fresh card has an interface to give").0;
        card.portals_mut().set_map(ni, map.clone()).expect("every rank is in the map");
        card.portals_mut().pt_alloc(ni, 0, ptl::EQ_NONE, PORTAL).expect("a fresh portal table is empty");
        if let Some(program) = program {
            card.share_program(program.clone()).expect("the program was prepared for these cards");
        }
    }
    ni
}

impl Ranks for Scripts<'_> {
    type Event = CpuDone;
    type Memory = SparseMemory;
    type End = Outcome;
    type Error = RunError;

    fn memory(&mut self) -> &mut SparseMemory {
        &mut self.memory
    }

    fn rank_of(&self, event: &CpuDone) -> usize {
        self.rank_of(event.cpu as usize) as usize
    }

    fn start(&mut self, cluster: &mut Cluster) -> Result<(), RunError> {
        let mut first = Vec::new();
        for rank in 0..self.schedule.ranks() {
            self.dependencies.take_first(self.schedule.of_rank(rank), &mut first);
            self.begin(&first);
            self.settle(cluster, rank)?;
        }
        Ok(())
    }

    fn end(&mut self) -> Option<Outcome> {
        None // a schedule ends when no event is left
    }

    fn act_between_events(&mut self, _: &mut Cluster) -> Result<bool, RunError> {
        Ok(false) // schedules live only in simulated time
    }

    fn handle(&mut self, event: CpuDone, cluster: &mut Cluster) -> Result<(), RunError> {
        self.cpu_done(cluster, event)
    }

    fn card_has_acted(&mut self, rank: usize, cluster: &mut Cluster) -> Result<(), RunError> {
        self.settle(cluster, rank as u32)
    }

    fn card_has_failed(&mut self, error: InternalError) -> RunError {
        CardError::Internal(error).into()
    }

    fn event_is_over(&mut self, cluster: &mut Cluster) -> Result<(), RunError> {
        match cluster.messages().first_warning() {
            Some((at, message)) => Err(CardError::Handler { at: *at, message: message.clone() }.into()),
            None => Ok(()),
        }
    }

    fn is_out_of_time(&mut self, rank: usize, _: &mut Cluster) -> Result<(), RunError> {
        Err(RunError::TooLate { what: format!("rank {rank}"), bits: 63 })
    }

    fn no_event_is_left(&mut self, cluster: &mut Cluster) -> Result<Option<Outcome>, RunError> {
        if self.dependencies.done_count() < self.schedule.len() {
            return Err(self.deadlock(cluster).into());
        }
        Ok(Some(self.outcome(cluster)))
    }
}

impl Scripts<'_> {
    fn deadlock(&mut self, cluster: &mut Cluster) -> Deadlock {
        let mut waiting: Vec<(u32, WaitCause)> = Vec::new();
        for rank in 0..self.schedule.ranks() {
            let Rank { tests, messages, .. } = &self.ranks[rank as usize];
            let mut ops: Vec<u32> = tests.iter().map(|test| test.op).chain(messages.iter().copied()).collect();
            ops.sort_unstable();
            waiting.extend(ops.into_iter().map(|op| (op, self.wait_cause(cluster, op))));
        }
        let (at, dropped) = (Some(cluster.now()), self.dropped(cluster));
        Deadlock { at, dropped, ..Deadlock::new(self.schedule, &self.dependencies, &waiting) }
    }

    /// Returns the wait cause of a started, unfinished operation.
    fn wait_cause(&mut self, cluster: &mut Cluster, op: u32) -> WaitCause {
        match self.schedule.action(op) {
            Action::Nic(goal::NicOp { verb: Verb::Test { counter, reaches }, .. }) => {
                let value = self.counter_value(cluster, self.schedule.rank(op), *counter);
                let (successes, failures) = (value.success, value.failure);
                WaitCause::Counter { counter: *counter, successes, failures, target: *reaches }
            }
            action => WaitCause::of(action),
        }
    }

    /// Returns the number of messages that matched no entry.
    fn dropped(&self, cluster: &mut Cluster) -> u64 {
        let register = ptl::StatusRegister::DropCount as u64;
        let counts =
            (0..cluster.ranks()).filter_map(|rank| cluster.card(rank).portals_mut().ni_status(self.ni, register).ok());
        counts.map(|count| count as u64).sum()
    }

    fn outcome(&self, cluster: &mut Cluster) -> Outcome {
        let ends = self.cpus.chunks(self.schedule.cpus());
        let ends = ends.map(|cpus| cpus.iter().map(|cpu| cpu.end).max().unwrap_or_default()).collect();
        let mut details = Details {
            last: cluster.now(),
            dropped: self.dropped(cluster),
            steps: cluster.events(),
            ..Details::default()
        };
        for card in cluster.cards() {
            let [messages, packets, bytes] = card.traffic();
            details.messages += messages;
            details.packets += packets;
            details.bytes += bytes;
            details.untriggered += card.portals().triggered_left() as u64;
            for (name, handler) in card.handler_stats() {
                match details.handlers.get_mut(name) {
                    Some(sum) => sum.merge(handler),
                    None => drop(details.handlers.insert(name.to_owned(), *handler)),
                }
            }
        }
        let events = self.schedule.len() as u64 + details.messages;
        // An unreceived message stays in its target's overflow buffer, available for a later receive.
        Outcome { ends, events, unreceived: Vec::new(), details }
    }
}
