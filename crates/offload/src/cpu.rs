//! What operations cost the CPU, and what happens when it has done them.
//!
//! As under `spinrun`: handing something to the card costs LogGP's o, a look that finds what was waited for costs a poll.
//! On rdma cards entries and triggered operations live in the library: describing them costs nothing, and the CPU pays
//! for matching, and for what it starts, when it has nothing else to do (sPIN §4.4.1).

use abi::portals::Event as FullEvent;
use goal::{Action, NicOp, Verb};
use nic::Completion;
use sim::Time;

use crate::error::RunError;
use crate::world::{Event, Tasks, World};

/// A CPU of a rank.
#[derive(Debug, Default)]
pub(crate) struct Cpu {
    pub busy: bool,
    /// When it was last busy.
    pub end: Time,
    pub tasks: Tasks,
}

/// Work for a CPU.
#[derive(Debug)]
pub(crate) enum Task {
    /// An operation whose dependencies are satisfied.
    Start(u32),
    /// A look at what an operation has waited for, and which is there.
    Look(u32),
    /// A receive's message has come, or the announcement of one.
    Arrived(u32, Box<FullEvent>),
}

/// What follows when a CPU has done something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The operation is done.
    Done(u32),
    /// The operation waits.
    Nothing,
    /// A completion of an rdma card is dealt with.
    Completion,
}

/// Spans of CPU time with their names for the timeline.
pub(crate) type Spans = Vec<(&'static str, Time)>;

impl World<'_> {
    /// The CPU of an operation.
    pub(crate) fn cpu_of(&self, op: u32) -> usize {
        self.schedule.rank(op) as usize * self.schedule.cpus() + self.schedule.resources(op).0
    }

    /// Lets a CPU do what there is for it.
    pub(crate) fn go_on(&mut self, cpu: usize) -> Result<(), RunError> {
        if self.cpus[cpu].busy {
            return Ok(());
        }
        match self.cpus[cpu].next() {
            Some(Task::Start(op)) => {
                self.cpus[cpu].busy = true;
                let (spans, after) = self.start(op)?;
                self.occupy(cpu, spans, after, Some(op))?;
                self.started(op)?;
            }
            Some(Task::Look(op)) => {
                let spans = self.look();
                self.occupy(cpu, spans, After::Done(op), Some(op))?;
            }
            Some(Task::Arrived(op, event)) => {
                self.cpus[cpu].busy = true;
                let (spans, after) = self.arrived(op, &event)?;
                self.heed_notices(self.schedule.rank(op))?;
                self.occupy(cpu, spans, after, Some(op))?;
            }
            None => self.complete(cpu)?,
        }
        Ok(())
    }

    /// Has a CPU work for some time, from now on.
    fn occupy(&mut self, cpu: usize, spans: Spans, after: After, op: Option<u32>) -> Result<(), RunError> {
        let rank = cpu / self.schedule.cpus();
        let mut at = self.now;
        for (name, span) in spans {
            let end = at.saturating_add(span);
            self.timeline.cpu(rank, at, end, name);
            at = end;
        }
        if at > Time::LIMIT {
            return Err(RunError::TooLate(op.map_or_else(|| format!("rank {rank}"), |op| self.schedule.describe(op))));
        }
        self.cpus[cpu].busy = true;
        self.cpus[cpu].end = at;
        self.queue.push(at, Event::Cpu(cpu as u32, after));
        Ok(())
    }

    /// A CPU has done something.
    pub(crate) fn cpu_done(&mut self, cpu: u32, after: After) -> Result<(), RunError> {
        let rank = cpu / self.schedule.cpus() as u32;
        if after == After::Completion {
            self.on_card(rank, |card, ports| card.process_completion(ports));
            self.heed_notices(rank)?;
        }
        self.cpus[cpu as usize].busy = false;
        if let After::Done(op) = after {
            self.done(op)?;
        }
        self.go_on(cpu as usize)
    }

    /// With nothing else to do, a rank's first CPU completes what an rdma card has left to it.
    fn complete(&mut self, cpu: usize) -> Result<(), RunError> {
        if self.machine.nic.matches_on_card() || !cpu.is_multiple_of(self.schedule.cpus()) {
            return Ok(());
        }
        let host = &self.machine.host;
        let spans = match self.cards[cpu / self.schedule.cpus()].next_completion() {
            None => return Ok(()),
            Some(Completion::Arrived(_)) => vec![("poll", host.poll), ("match", host.matching)],
            Some(Completion::Operation(..)) => vec![("poll", host.poll)],
            Some(Completion::Triggered(..)) => vec![("post", host.overhead)],
        };
        self.occupy(cpu, spans, After::Completion, None)
    }

    /// Starts an operation: what it costs, and what follows.
    fn start(&mut self, op: u32) -> Result<(Spans, After), RunError> {
        let rank = self.schedule.rank(op);
        let outcome = match self.schedule.action(op) {
            Action::Calc(ns) => (vec![("compute", Time::from_ns(ns))], After::Done(op)),
            Action::Send { .. } => self.send(op)?,
            Action::Recv { .. } => self.receive(op)?,
            Action::Nic(NicOp { verb: Verb::Test { counter, reaches }, .. }) => {
                if self.counter_value(rank, *counter).success >= *reaches {
                    (vec![("poll", self.machine.host.poll)], After::Done(op))
                } else {
                    self.ranks[rank as usize].tests.push(op);
                    (Vec::new(), After::Nothing)
                }
            }
            Action::Nic(nic) => (self.command(op, nic)?, After::Done(op)),
        };
        self.heed_notices(rank)?;
        Ok(outcome)
    }

    /// The cost of handing the card an operation.
    pub(crate) fn post(&self) -> (&'static str, Time) {
        ("post", self.machine.host.overhead)
    }

    /// The cost of handing the card something that rdma cards leave to the library.
    pub(crate) fn describe(&self) -> Spans {
        if !self.machine.nic.matches_on_card() { Vec::new() } else { vec![self.post()] }
    }

    /// The cost of seeing something that was waited for; on rdma cards the CPU has seen it with the completion.
    pub(crate) fn look(&self) -> Spans {
        if !self.machine.nic.matches_on_card() { Vec::new() } else { vec![("poll", self.machine.host.poll)] }
    }

    /// Has an operation's CPU do something.
    pub(crate) fn enqueue(&mut self, op: u32, task: Task) -> Result<(), RunError> {
        let cpu = self.cpu_of(op);
        self.cpus[cpu].tasks.push_back(task);
        self.go_on(cpu)
    }
}
