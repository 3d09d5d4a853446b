// SPDX-License-Identifier: Apache-2.0
//! Ends of handlers: return, failure, watchdog, withdrawal.

use hpu::Fault;

use super::context::{Context, OwnMemory, span};
use super::paper_unit::Unit;
use super::space::Space;
use crate::accelerator::{Env, InternalError};
use crate::convention::HandlerMemory;
use crate::debug::Halt;
use crate::fault::{self, Span};
use crate::outcome::{Failure, Finished, HandlerError, Outcome, Usage};
use crate::task::{MessageId, Task};

impl Unit {
    /// Handles the return of a handler.
    pub(super) fn returned(&mut self, context: u16, value: u32, env: &mut dyn Env) -> Result<(), InternalError> {
        let resident = self.resident(context)?;
        let (role, refused) = (resident.task.role(), resident.refused.take());
        let outcome = self.convention.outcome(role, value).after(refused);
        self.end(context, outcome, env)
    }

    /// Handles a fault of a handler.
    pub(super) fn faulted(&mut self, context: u16, fault: Fault, env: &mut dyn Env) -> Result<(), InternalError> {
        self.halt(context, Halt::Fault);
        let detail = u64::from(fault.address());
        let pc = fault.pc();
        let message = format!("failed: {fault}{}{}", self.missed(context, fault), self.place(context, pc));
        self.end(context, Outcome::Failed(HandlerError { failure: Failure::Segv, message, detail }), env)
    }

    /// Handles a command that is unknown or addresses memory outside the handler's own.
    pub(super) fn command_fault(
        &mut self,
        context: u16,
        what: &str,
        detail: u32,
        env: &mut dyn Env,
    ) -> Result<(), InternalError> {
        let pc = self.resident(context)?.thread.command_pc();
        let message = format!("{what}{}", self.place(context, pc));
        let error = HandlerError { failure: Failure::Segv, message, detail: u64::from(detail) };
        self.end(context, Outcome::Failed(error), env)
    }

    /// Records the reason and source location of a refused command.
    pub(super) fn note_refusal(&mut self, context: u16, why: &str) -> Result<(), InternalError> {
        let pc = self.resident(context)?.thread.command_pc();
        let told = format!("{why}{}", self.place(context, pc));
        self.resident(context)?.refused = Some(told);
        Ok(())
    }

    /// Kills a handler that exceeded the watchdog limit.
    pub(super) fn timed_out(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        let pc = self.resident(context)?.thread.pc();
        let cycles = self.config.watchdog_cycles;
        let place = self.place(context, pc);
        let message = format!("was killed after {cycles} cycles (accelerator.watchdog_cycles){place}");
        self.end(context, Outcome::Failed(HandlerError { failure: Failure::Timeout, message, detail: cycles }), env)
    }

    /// Describes the memory next to a handler's failed access.
    fn missed(&self, context: u16, fault: Fault) -> String {
        let resident = self.contexts[usize::from(context)].as_deref();
        let Some(resident) = resident else { return String::new() };
        let Some(loaded) = &self.spaces[resident.space()].program else { return String::new() };
        let spans: Vec<Span> = resident.windows.iter().map(span).collect();
        fault::missed(fault, &spans, resident.thread.stack_pointer(), &loaded.program.device().program)
    }

    /// Describes the source location of a handler's instruction, and its call stack.
    fn place(&mut self, context: u16, pc: u32) -> String {
        let resident = self.contexts[usize::from(context)].as_deref();
        let Some(resident) = resident else { return String::new() };
        let Space { program, memories, .. } = &mut self.spaces[resident.space()];
        let Some(loaded) = program else { return String::new() };
        let mut memory = OwnMemory { memories, windows: &resident.windows };
        fault::place(&loaded.program.device().program, &resident.thread, pc, |address| memory.word(address))
    }

    /// Ends a handler. Its context stays reserved until the card acts on the outcome.
    pub(super) fn end(&mut self, context: u16, outcome: Outcome, env: &mut dyn Env) -> Result<(), InternalError> {
        self.end_stay(context, env)?;
        let Context { task, thread, started, .. } = *self.vacate(context, env)?;
        let (instructions, cycles) = (thread.instructions(), thread.cycles());
        if let Some(loaded) = &self.spaces[task.process as usize].program {
            loaded.program.end(thread);
        }
        let usage = Usage { instructions, cycles, occupancy: env.now() - started };
        self.run_next(context, env)?;
        env.finished(Finished { task, outcome, usage });
        Ok(())
    }

    /// Removes a handler from its context.
    fn vacate(&mut self, context: u16, env: &dyn Env) -> Result<Box<Context>, InternalError> {
        let resident = self.contexts[usize::from(context)].take().ok_or(InternalError::NoHandler(context))?;
        if let Some(shares) = &mut self.shares {
            let (now, tenant) = (self.clock.cycles(env.now()), resident.task.tenant);
            shares.stop(now, tenant);
            shares.end(now, tenant, true, true);
        }
        if let Some(sanitizer) = &mut self.spaces[resident.space()].sanitizer {
            sanitizer.ends(u32::from(context));
        }
        if let Some(debugger) = &mut self.debugger {
            debugger.ended(u32::from(context));
        }
        self.hpus.get_mut(context).resident -= 1;
        self.handles.abandon(context);
        Ok(resident)
    }

    /// Ends the tasks of withdrawn messages; completions of their commands have no effect.
    pub(super) fn withdraw_tasks(
        &mut self,
        messages: &[MessageId],
        env: &mut dyn Env,
    ) -> Result<Vec<Task>, InternalError> {
        let ends = |task: &Task| messages.binary_search(&task.message).is_ok();
        let (mut withdrawn, waiting): (Vec<Task>, Vec<Task>) = self.tasks.drain(..).partition(ends);
        self.tasks.extend(waiting);
        if let Some(shares) = &mut self.shares {
            for task in &withdrawn {
                shares.pop(task.tenant);
                shares.end(self.clock.cycles(env.now()), task.tenant, false, true);
            }
        }
        let is_ended = |context: &u16| {
            self.contexts[usize::from(*context)].as_deref().is_some_and(|resident| ends(&resident.task))
        };
        let ended: Vec<u16> = (0..self.contexts.len() as u16).filter(is_ended).collect();
        for &context in &ended {
            if self.hpus.get(context).running == Some(context) {
                self.end_stay(context, env)?;
            }
            withdrawn.push(self.vacate(context, env)?.task);
            self.hpus.get_mut(context).ready.retain(|other| *other != context);
        }
        for context in ended {
            self.run_next(context, env)?;
        }
        self.dispatch(env)?;
        Ok(withdrawn)
    }
}
