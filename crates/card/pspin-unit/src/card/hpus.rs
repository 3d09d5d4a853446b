// SPDX-License-Identifier: Apache-2.0
//! HPUs that run P4sPIN handlers: arguments are in registers, and commands are environment calls. The HPU runtime is
//! not code, but costs the cycles of the published loop (PsPIN §III-B2).

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

/// Pending action of an HPU outside its handler's code.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Act {
    /// Receives a task, or waits for one.
    Idle,
    /// Executes an environment call.
    Calling(Call),
    /// Issues the command of its call, or waits for a free slot.
    Issue,
    /// Waits for the reply to this command.
    Reply(u32),
    /// Waits for the end of a command with a handle.
    Handle,
    /// Receives the result of its call.
    Answer(i32),
    /// Rings the doorbell after the end of its handler.
    Doorbell(TaskOutcome),
}

/// Task and commands of an HPU.
pub struct Own {
    /// Number of the running task.
    pub task: Option<u64>,
    /// Run number, which distinguishes successive handlers.
    pub run: u32,
    /// Command to issue; the flag is set if the call returns a handle.
    pub issues: Option<(Call, Command, bool)>,
    /// Outstanding call, and its command.
    pub call: Option<(Call, CommandId)>,
    /// Reason for the latest refusal of a command, and its place in the source.
    pub refused: Option<String>,
    pub started: Cycle,
    /// Cycle in which the driver has the function pointer of the next task.
    pub pointer: Cycle,
    /// Cycle in which the HPU is back at the load of the function pointer.
    pub ready: Cycle,
}

/// A command in flight.
pub(super) struct Flying {
    pub id: CommandId,
    /// Task of its handler.
    pub task: u64,
    /// Command for the card, until it leaves the unit.
    pub command: Option<Command>,
    /// Command as issued by the unit, once it has left.
    pub issued: Option<Issued>,
}

/// Environment of P4sPIN handlers.
pub struct Calls {
    pub(super) clock: Clock,
    pub(super) convention: Box<dyn Convention>,
    /// Loaded program.
    pub(super) program: Option<Rc<CardProgram>>,
    pub(super) tasks: Tasks,
    pub(super) handles: Handles,
    /// Commands in flight, by number.
    pub(super) flying: HashMap<u32, Flying>,
    /// Number of commands issued.
    pub(super) commands: u32,
    /// Commands that the card finishes, each with the cycle of its completion.
    pub(super) done: Vec<(Cycle, Issued)>,
    /// Printed text that the unit has not handed over.
    pub(super) printed: Vec<(Cycle, Printed)>,
    /// Cycles that printing a text costs.
    pub(super) print_cycles: u64,
    /// Number of handlers started.
    pub(super) runs: u32,
}

/// HPUs of all clusters.
pub type Hpus = HpusIn<Calls>;

impl Hpus {
    /// Creates HPUs without a program.
    pub(super) fn idle(config: Rc<Config>, clock: Clock, convention: Box<dyn Convention>, print_cycles: u64) -> Hpus {
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
            print_cycles,
            runs: 0,
        };
        Hpus::without_program(config, environment)
    }

    /// Takes over the state that commands in flight refer to, from the HPUs of the unloaded program.
    pub fn succeed(&mut self, mut old: Hpus) {
        (0..old.config.hpus()).for_each(|gid| old.environment.handles.abandon(gid as u16));
        let Calls { handles, runs, commands, .. } = old.environment;
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

    /// Returns the global number of an HPU.
    pub(super) fn gid(&self, id: HpuId) -> u32 {
        u32::from(id.cluster) * self.config.units.hpus + u32::from(id.hpu)
    }

    /// Returns the HPU with a global number.
    pub(super) fn by_gid(&self, gid: u32) -> HpuId {
        HpuId { cluster: (gid / self.config.units.hpus) as u16, hpu: (gid % self.config.units.hpus) as u16 }
    }

    /// Returns the HPU that issued a command, if the handler still runs.
    pub(super) fn issuer(&self, id: CommandId) -> Option<&Hpu<Act, Own>> {
        let hpu = self.get(self.by_gid(id.thread))?;
        (hpu.own.run == id.run && hpu.own.task.is_some()).then_some(hpu)
    }

    /// Returns the HPU's pending action, or `None` while it executes code.
    pub(super) fn doing(&mut self, id: HpuId) -> Option<Act> {
        match self.hpu(id).doing {
            Doing::Act(act) => Some(act),
            _ => None,
        }
    }

    /// Schedules an action of an HPU in cycle `at`.
    pub(super) fn acts(&mut self, id: HpuId, at: Cycle, act: Act) {
        self.wake(id, at.0, Doing::Act(act));
    }

    /// Delivers a result to an HPU in cycle `at`.
    pub(super) fn answer(&mut self, id: HpuId, at: Cycle, result: i32) {
        self.acts(id, at, Act::Answer(result));
    }

    /// Returns the source line of an instruction.
    pub(super) fn line(&self, pc: u32) -> String {
        self.environment.program.as_ref().map_or_else(String::new, |card| card.suffix(pc))
    }

    /// Fails a handler; its HPU then recovers.
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

    /// Discards the outstanding call of a handler that has ended.
    pub(super) fn drop_call(&mut self, id: HpuId) {
        let own = &mut self.hpu(id).own;
        own.issues = None;
        if let Some((_, CommandId { slot: Some(handle), .. })) = own.call.take() {
            self.environment.handles.free(handle);
        }
    }

    /// Completes a command in cycle `from`.
    pub(super) fn free(&mut self, number: u32, from: Cycle) {
        let flying = self.environment.flying.remove(&number);
        self.environment.done.extend(flying.and_then(|flying| flying.issued).map(|issued| (from, issued)));
    }

    /// Ends the handlers of a withdrawn task, in whatever state, and completes its commands in flight.
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
