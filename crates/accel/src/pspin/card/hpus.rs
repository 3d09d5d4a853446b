//! HPUs that run handlers of P4sPIN: their arguments are in registers, and commands are calls of the environment. The runtime
//! of the HPUs is not code but takes the cycles of the published loop (PsPIN §III-B2).

use std::collections::VecDeque;
use std::rc::Rc;

use abi::device::map;
use hpu::isa::Class;
use hpu::{Access, Stepper, Thread};
use machine::Pspin as Config;
use sim::Clock;

use super::own::Span;
use super::slots::Slots;
use super::tasks::{Ended, Ran, Tasks};
use crate::command::{Command, CommandId};
use crate::convention::{Call, Convention};
use crate::handles::Handles;
use crate::outcome::{HandlerError, Outcome, Usage};
use crate::program::CardProgram;
use crate::pspin::core::Cache;
use crate::pspin::cycle::Cycle;
use crate::pspin::her::{HpuId, TaskOutcome};
use crate::pspin::memory::Place;

/// What an HPU does in the cycle for which it waits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Doing {
    /// It waits for a task.
    Idle,
    /// It runs instructions without accesses.
    Running,
    /// It asks for a bank of its own L1, at this offset.
    Local(u32),
    /// It asks for a memory that is not its own L1.
    Remote(Place),
    /// Its access reaches that memory, which answers in this cycle.
    Arriving(Cycle),
    /// It asks for a line of code.
    Line(u32),
    /// The line is there that it asked for in this cycle.
    Filled(Cycle),
    /// It issues a command.
    Calling(Call),
    /// It waits for the reply to this command.
    Reply(u32),
    /// It waits for the end of a command with a handle.
    Handle,
    /// The result of its command is there.
    Answer(i32),
    /// Its handler is over, and it rings the doorbell.
    Doorbell(TaskOutcome),
}

/// An HPU.
pub(super) struct Hpu {
    pub thread: Thread,
    pub doing: Doing,
    pub access: Access,
    /// Words of the access that have no grant yet.
    pub words: u32,
    /// Where the first byte of the access is among all bytes.
    pub position: usize,
    pub spans: Vec<Span>,
    /// The number of the task that it runs.
    pub task: Option<u64>,
    /// Distinguishes the handlers that it runs one after the other.
    pub run: u32,
    pub slots: Slots,
    /// Number of commands that it has issued.
    pub commands: u32,
    /// The call to which the card has not replied, and its command.
    pub call: Option<(Call, CommandId)>,
    pub started: Cycle,
    /// When the driver has the function pointer of the next task.
    pub pointer: Cycle,
    /// When it is back at the load of the function pointer.
    pub ready: Cycle,
}

/// The HPUs of a cluster.
pub(super) struct Group {
    pub next: Vec<Cycle>,
    pub least: Cycle,
    pub hpus: Vec<Hpu>,
    pub cache: Cache,
}

impl Group {
    pub fn settle(&mut self) {
        self.least = self.next.iter().copied().min().unwrap_or(Cycle::NEVER);
    }
}

/// A command on its way to the card.
pub(super) struct Outgoing {
    /// When it leaves the unit.
    pub at: Cycle,
    pub id: CommandId,
    /// The task of its handler.
    pub task: u64,
    pub command: Command,
}

/// A device program, and the stepper that runs it.
pub(super) struct Loaded {
    pub card: Rc<CardProgram>,
    pub stepper: Stepper,
}

/// The HPUs of all clusters.
pub struct Hpus {
    pub(super) config: Rc<Config>,
    pub(super) clock: Clock,
    pub(super) convention: Box<dyn Convention>,
    pub(super) loaded: Option<Loaded>,
    pub(super) groups: Vec<Group>,
    pub(super) tasks: Tasks,
    pub(super) handles: Handles,
    /// Commands that leave the unit, in the order of their calls.
    pub(super) outgoing: VecDeque<Outgoing>,
    /// Number of handlers that were started.
    pub(super) runs: u32,
}

impl Hpus {
    /// HPUs without a program.
    pub fn new(config: Rc<Config>, clock: Clock, convention: Box<dyn Convention>) -> Hpus {
        Hpus {
            config,
            clock,
            convention,
            loaded: None,
            groups: Vec::new(),
            tasks: Tasks::default(),
            handles: Handles::default(),
            outgoing: VecDeque::new(),
            runs: 0,
        }
    }

    /// Takes over from HPUs whose program is unloaded what commands in flight refer to.
    pub fn succeed(&mut self, mut old: Hpus) {
        (0..old.config.hpus()).for_each(|gid| old.handles.abandon(gid as u16));
        (self.handles, self.runs) = (old.handles, old.runs);
    }

    /// Loads a program.
    pub fn load(&mut self, card: Rc<CardProgram>) {
        let program = &card.device().program;
        let stepper = Stepper::new(program.clone(), self.config.icache.line);
        let group = |_| {
            let hpu = |_| Hpu {
                thread: Thread::new(program, map::RETURN, 0, [0; 3]),
                doing: Doing::Idle,
                access: Access { at: 0, address: 0, bytes: 0, class: Class::Load },
                words: 0,
                position: 0,
                spans: Vec::new(),
                task: None,
                run: 0,
                slots: Slots::new(self.config.cluster.commands_in_flight),
                commands: 0,
                call: None,
                started: Cycle::ZERO,
                pointer: Cycle::NEVER,
                ready: Cycle::ZERO,
            };
            let count = self.config.units.hpus as usize;
            let cache = Cache::new(&self.config, stepper.lines());
            Group { next: vec![Cycle::NEVER; count], least: Cycle::NEVER, hpus: (0..count).map(hpu).collect(), cache }
        };
        self.groups = (0..self.config.units.clusters).map(group).collect();
        self.loaded = Some(Loaded { card, stepper });
    }

    /// The number of an HPU among all.
    pub(super) fn gid(&self, id: HpuId) -> u32 {
        u32::from(id.cluster) * self.config.units.hpus + u32::from(id.hpu)
    }

    /// The HPU with a number.
    pub(super) fn by_gid(&self, gid: u32) -> HpuId {
        HpuId { cluster: (gid / self.config.units.hpus) as u16, hpu: (gid % self.config.units.hpus) as u16 }
    }

    pub(super) fn hpu(&mut self, id: HpuId) -> &mut Hpu {
        &mut self.groups[usize::from(id.cluster)].hpus[usize::from(id.hpu)]
    }

    /// The HPU that has issued a command, if the handler still runs.
    pub(super) fn issuer(&self, id: CommandId) -> Option<&Hpu> {
        let place = self.by_gid(id.thread);
        let hpu = self.groups.get(usize::from(place.cluster))?.hpus.get(usize::from(place.hpu))?;
        (hpu.run == id.run && hpu.task.is_some()).then_some(hpu)
    }

    /// An HPU does something in cycle `at`.
    pub(super) fn at(&mut self, id: HpuId, at: Cycle, doing: Doing) {
        let group = &mut self.groups[usize::from(id.cluster)];
        group.hpus[usize::from(id.hpu)].doing = doing;
        group.next[usize::from(id.hpu)] = at;
        group.settle();
    }

    /// A result is there for an HPU in cycle `at`.
    pub(super) fn answer(&mut self, id: HpuId, at: Cycle, result: i32) {
        self.at(id, at, Doing::Answer(result));
    }

    /// The place of an instruction in the source.
    pub(super) fn place(&self, pc: u32) -> String {
        self.loaded.as_ref().map_or_else(String::new, |loaded| loaded.card.suffix(pc))
    }

    /// Ends a handler with an error, after which the HPU recovers.
    pub(super) fn end_badly(&mut self, id: HpuId, at: Cycle, error: HandlerError, outcome: TaskOutcome) {
        let trap = self.config.cluster.trap_cycles;
        self.end(id, at + trap, Outcome::Failed(error), outcome);
    }

    /// Ends a handler: its HPU rings the doorbell in cycle `at`.
    pub(super) fn end(&mut self, id: HpuId, at: Cycle, outcome: Outcome, tells: TaskOutcome) {
        self.drop_call(id, at);
        let hpu = self.hpu(id);
        let (number, start) = (hpu.task, hpu.started);
        let cycles = hpu.thread.cycles().saturating_sub(start.0);
        let usage = Usage { instructions: hpu.thread.instructions(), cycles, ..Usage::default() };
        if let Some(entry) = number.and_then(|number| self.tasks.get(number)) {
            entry.ended = Some(Ended { outcome, usage, ran: Ran { hpu: id, start, end: at } });
        }
        self.at(id, at, Doing::Doorbell(tells));
    }

    /// Forgets a command that has not left the unit, whose handler is over.
    pub(super) fn drop_call(&mut self, id: HpuId, at: Cycle) {
        let hpu = self.hpu(id);
        if let Some((_, command)) = hpu.call.take() {
            hpu.slots.free(command.number, at);
            if let Some(handle) = command.slot {
                self.handles.free(handle);
            }
        }
    }

    /// Ends the handlers of a withdrawn task, wherever it is.
    pub(super) fn withdraw(&mut self, number: u64, now: Cycle) {
        for gid in 0..self.config.hpus() {
            let id = self.by_gid(gid);
            let trap = self.config.cluster.trap_cycles;
            let hpu = self.hpu(id);
            if hpu.task == Some(number) && !matches!(hpu.doing, Doing::Doorbell(_)) {
                self.drop_call(id, now);
                self.handles.abandon(gid as u16);
                self.at(id, now + trap, Doing::Doorbell(TaskOutcome::Done));
            }
        }
    }
}
