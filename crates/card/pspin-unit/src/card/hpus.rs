//! HPUs that run handlers of P4sPIN: their arguments are in registers, and commands are calls of the environment. The runtime
//! of the HPUs is not code but takes the cycles of the published loop (PsPIN §III-B2).

use std::collections::HashMap;
use std::rc::Rc;

use abi::device::map;
use hpu::Thread;
use machine::Pspin as Config;
use sim::Clock;

use super::tasks::{Ended, Ran, Tasks};
use crate::command::Issued;
use crate::core::{Doing, Hpu, HpusIn, Spans};
use crate::cycle::Cycle;
use crate::her::{HpuId, TaskOutcome};
use accel::CardProgram;
use accel::Printed;
use accel::convention::{Call, Convention};
use accel::handles::Handles;
use accel::{Command, CommandId};
use accel::{HandlerError, Outcome, Usage};

/// What an HPU does that has to do with its handler's task and calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// It gets a task, or waits for one.
    Idle,
    /// It calls for something.
    Calling(Call),
    /// It issues the command of its call, or waits until it may.
    Issue,
    /// It waits for the reply to this command.
    Reply(u32),
    /// It waits for the end of a command with a handle.
    Handle,
    /// The result of its command is there.
    Answer(i32),
    /// Its handler is over, and it rings the doorbell.
    Doorbell(TaskOutcome),
}

/// The task and the commands of an HPU.
pub struct Own {
    /// The number of the task that it runs.
    pub task: Option<u64>,
    /// Distinguishes the handlers that it runs one after the other.
    pub run: u32,
    /// The command that it issues, and whether the call returns a handle.
    pub issues: Option<(Call, Command, bool)>,
    /// The call to which the card has not replied, and its command.
    pub call: Option<(Call, CommandId)>,
    /// Why the card has refused its latest command that was refused, and the place in the source.
    pub refused: Option<String>,
    pub started: Cycle,
    /// When the driver has the function pointer of the next task.
    pub pointer: Cycle,
    /// When it is back at the load of the function pointer.
    pub ready: Cycle,
}

/// A command that is in flight.
pub(super) struct Flying {
    pub id: CommandId,
    /// The task of its handler.
    pub task: u64,
    /// What the card is to do, until the command has left the unit.
    pub command: Option<Command>,
    /// How the unit knows it, when it has left.
    pub issued: Option<Issued>,
}

/// The environment of handlers of P4sPIN.
pub struct Calls {
    pub(super) clock: Clock,
    pub(super) convention: Box<dyn Convention>,
    /// The program that is loaded.
    pub(super) program: Option<Rc<CardProgram>>,
    pub(super) tasks: Tasks,
    pub(super) handles: Handles,
    /// Commands in flight, by their numbers.
    pub(super) flying: HashMap<u32, Flying>,
    /// Number of commands that were issued.
    pub(super) commands: u32,
    /// Commands that the card is done with from a cycle on.
    pub(super) done: Vec<(Cycle, Issued)>,
    /// Texts that handlers have printed, until the unit hands them over.
    pub(super) printed: Vec<(Cycle, Printed)>,
    /// Cycles of a text that a handler prints.
    pub(super) print_cycles: u64,
    /// Number of handlers that were started.
    pub(super) runs: u32,
}

/// The HPUs of all clusters.
pub type Hpus = HpusIn<Calls>;

impl Hpus {
    /// HPUs without a program.
    pub(super) fn idle(config: Rc<Config>, clock: Clock, convention: Box<dyn Convention>) -> Hpus {
        let environment = Calls {
            clock,
            convention,
            program: None,
            tasks: Tasks::default(),
            handles: Handles::default(),
            flying: HashMap::new(),
            commands: 0,
            done: Vec::new(),
            printed: Vec::new(),
            print_cycles: accel::PRINT_CYCLES,
            runs: 0,
        };
        Hpus::without_program(config, environment)
    }

    /// Takes over from HPUs whose program is unloaded what commands in flight refer to.
    pub fn succeed(&mut self, mut old: Hpus) {
        (0..old.config.hpus()).for_each(|gid| old.environment.handles.abandon(gid as u16));
        let Calls { handles, runs, commands, print_cycles, .. } = old.environment;
        self.environment.print_cycles = print_cycles;
        (self.environment.handles, self.environment.runs, self.environment.commands) = (handles, runs, commands);
    }

    /// Loads a program.
    pub(super) fn load_card(&mut self, card: Rc<CardProgram>) {
        let program = card.device().program.clone();
        self.load(program.clone(), u64::MAX, |_, _| {
            let own = Own {
                task: None,
                run: 0,
                issues: None,
                call: None,
                refused: None,
                started: Cycle::ZERO,
                pointer: Cycle::NEVER,
                ready: Cycle::ZERO,
            };
            let thread = Thread::new(&program, map::RETURN, 0, [0; 3]);
            Hpu::new(thread, Doing::Act(Act::Idle), Spans::default(), own)
        });
        self.environment.program = Some(card);
    }

    /// The number of an HPU among all.
    pub(super) fn gid(&self, id: HpuId) -> u32 {
        u32::from(id.cluster) * self.config.units.hpus + u32::from(id.hpu)
    }

    /// The HPU with a number.
    pub(super) fn by_gid(&self, gid: u32) -> HpuId {
        HpuId { cluster: (gid / self.config.units.hpus) as u16, hpu: (gid % self.config.units.hpus) as u16 }
    }

    /// The HPU that has issued a command, if the handler still runs.
    pub(super) fn issuer(&self, id: CommandId) -> Option<&Hpu<Act, Own>> {
        let hpu = self.get(self.by_gid(id.thread))?;
        (hpu.own.run == id.run && hpu.own.task.is_some()).then_some(hpu)
    }

    /// What an HPU does that has to do with its handler's task and calls.
    pub(super) fn doing(&mut self, id: HpuId) -> Option<Act> {
        match self.hpu(id).doing {
            Doing::Act(act) => Some(act),
            _ => None,
        }
    }

    /// An HPU does something in cycle `at`.
    pub(super) fn acts(&mut self, id: HpuId, at: Cycle, act: Act) {
        self.wake(id, at.0, Doing::Act(act));
    }

    /// A result is there for an HPU in cycle `at`.
    pub(super) fn answer(&mut self, id: HpuId, at: Cycle, result: i32) {
        self.acts(id, at, Act::Answer(result));
    }

    /// The source line of an instruction.
    pub(super) fn line(&self, pc: u32) -> String {
        self.environment.program.as_ref().map_or_else(String::new, |card| card.suffix(pc))
    }

    /// Ends a handler with an error, after which the HPU recovers.
    pub(super) fn end_badly(&mut self, id: HpuId, at: Cycle, error: HandlerError, outcome: TaskOutcome) {
        let trap = self.config.cluster.trap_cycles;
        self.end(id, at + trap, Outcome::Failed(error), outcome);
    }

    /// Ends a handler: its HPU rings the doorbell in cycle `at`.
    pub(super) fn end(&mut self, id: HpuId, at: Cycle, outcome: Outcome, tells: TaskOutcome) {
        self.drop_call(id);
        let hpu = self.hpu(id);
        let (number, start) = (hpu.own.task, hpu.own.started);
        let cycles = hpu.thread.cycles().saturating_sub(start.0);
        let usage = Usage { instructions: hpu.thread.instructions(), cycles, ..Usage::default() };
        if let Some(entry) = number.and_then(|number| self.environment.tasks.get(number)) {
            entry.ended = Some(Ended { outcome, usage, ran: Ran { hpu: id, start, end: at } });
        }
        self.acts(id, at, Act::Doorbell(tells));
    }

    /// Forgets a call to which the card has not replied, whose handler is over.
    pub(super) fn drop_call(&mut self, id: HpuId) {
        let own = &mut self.hpu(id).own;
        own.issues = None;
        if let Some((_, CommandId { slot: Some(handle), .. })) = own.call.take() {
            self.environment.handles.free(handle);
        }
    }

    /// The card is done with a command from a cycle on.
    pub(super) fn free(&mut self, number: u32, from: Cycle) {
        let flying = self.environment.flying.remove(&number);
        self.environment.done.extend(flying.and_then(|flying| flying.issued).map(|issued| (from, issued)));
    }

    /// Ends the handlers of a withdrawn task, wherever it is. Nobody waits for its commands any more.
    pub(super) fn withdraw(&mut self, number: u64, now: Cycle) {
        let commands = self.environment.flying.iter();
        let has_left = commands.filter(|(_, flying)| flying.task == number && flying.issued.is_some());
        let mut left: Vec<u32> = has_left.map(|(command, _)| *command).collect();
        left.sort_unstable();
        left.into_iter().for_each(|command| self.free(command, now));
        for gid in 0..self.config.hpus() {
            let id = self.by_gid(gid);
            let trap = self.config.cluster.trap_cycles;
            let has_it = self.get(id).is_some_and(|hpu| hpu.own.task == Some(number));
            if has_it && !matches!(self.doing(id), Some(Act::Doorbell(_))) {
                self.drop_call(id);
                self.environment.handles.abandon(gid as u16);
                self.acts(id, now + trap, Act::Doorbell(TaskOutcome::Done));
            }
        }
    }
}
