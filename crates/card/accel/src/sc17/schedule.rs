// SPDX-License-Identifier: Apache-2.0
//! Scheduling of handlers on HPUs.

use abi::device::map;
use hpu::{Memory, Sharing, Stop, Watcher, Window};
use machine::Scheduler;
use sim::Time;

use super::context::{Context, Wait};
use super::paper_unit::Unit;
use super::space::{Space, words};
use crate::accelerator::{Env, Event, HandlerSlice, InternalError};
use crate::debug::{Debugger, Halt};
use crate::memory::HpuMemory;
use crate::task::{Role, Task};

/// Cycles that a handler runs ahead of simulated time before it yields: its plain stores become visible too early by at
/// most this much. Accesses that synchronise ([`Stop::Sync`](hpu::Stop::Sync)) are exact.
const QUANTUM: u64 = 512;

impl Unit {
    /// Assigns free contexts to waiting tasks, on the HPUs with the fewest resident handlers first.
    pub(super) fn dispatch(&mut self, env: &mut dyn Env) -> Result<(), InternalError> {
        while !self.tasks.is_empty()
            && let Some(context) = self.free_context()
            && let Some(index) = self.next_task(env.now())
            && let Some(task) = self.tasks.remove(index)
        {
            self.latest = task.tenant;
            let now = self.clock.cycles(env.now());
            if let Some(shares) = &mut self.shares {
                shares.pop(task.tenant);
                shares.send(task.tenant);
                shares.start(now, task.tenant);
            }
            self.start(context, task, env)?;
        }
        Ok(())
    }

    /// Returns the index of the waiting task that gets the next context; `None` if no tenant may use another one.
    fn next_task(&self, now: Time) -> Option<usize> {
        let scheduler = self.config.sharing.scheduler.unwrap_or(Scheduler::Fifo);
        if scheduler == Scheduler::Fifo {
            return Some(0);
        }
        // The first task of each tenant, in the order of arrival.
        let mut first: Vec<(usize, u32)> = Vec::new();
        for (index, task) in self.tasks.iter().enumerate() {
            if first.iter().all(|(_, tenant)| *tenant != task.tenant) {
                first.push((index, task.tenant));
            }
        }
        let Some(shares) = &self.shares else {
            let distance = |tenant: u32| tenant.wrapping_sub(self.latest.wrapping_add(1));
            return first.into_iter().min_by_key(|(_, tenant)| distance(*tenant)).map(|(index, _)| index);
        };
        let now = self.clock.cycles(now);
        let may = |(_, tenant): &(usize, u32)| shares.may_start(now, *tenant, 0, self.config.contexts);
        let best = first.into_iter().filter(may);
        best.reduce(|best, next| if shares.precedes(now, next.1, best.1) { next } else { best }).map(|(index, _)| index)
    }

    /// Returns a free context of the HPU with the fewest resident handlers.
    fn free_context(&self) -> Option<u16> {
        (0..self.contexts.len() as u16)
            .filter(|context| self.contexts[usize::from(*context)].is_none())
            .min_by_key(|context| (self.hpus.get(*context).resident, *context))
    }

    fn start(&mut self, context: u16, task: Task, env: &mut dyn Env) -> Result<(), InternalError> {
        let space = &mut self.spaces[task.process as usize];
        let loaded = space.program.as_ref().ok_or(InternalError::NoProgram)?;
        let block = map::CONTEXTS + u32::from(context) * map::CONTEXT_STRIDE;
        let program = &loaded.program.device().program;
        space.memories.provide(map::PROGRAM, program.program_segment())?;
        let user_header = match task.packet {
            Some(packet) if task.role() == Role::Header => space.memories.slice(packet.start, packet.user_header)?,
            _ => &mut [],
        };
        let arguments = self.convention.arguments(&task, block, user_header);
        space.memories.write(block, &arguments.block)?;
        let stack_top = block + map::CONTEXT_STRIDE;
        let thread = loaded.program.start(task.handler.entry, stack_top, arguments.registers);
        if let Some(sanitizer) = &mut space.sanitizer {
            sanitizer.begins(u32::from(context), task.message, task.role());
        }
        if let Some(debugger) = &mut self.debugger {
            debugger.starts(u32::from(context), &task.handler.name);
        }
        let window = |base, len, write, sharing| Window { base, len, offset: 0, write, sharing };
        let packet = task.packet.filter(|_| task.role() == Role::Payload);
        let packet = packet.map(|packet| window(packet.start, words(packet.length), true, Sharing::Input));
        let state = task.handlers.state.clone();
        let memory = |state: &HpuMemory| window(state.address, state.length, true, Sharing::Shared);
        let (code, data) = (program.program_segment().len() as u32, program.data_segment().len() as u32);
        let own = [
            window(stack_top - self.config.stack, self.config.stack, true, Sharing::Private),
            window(block, map::ARGS_BYTES, false, Sharing::Private),
            window(map::PROGRAM, words(code), false, Sharing::Private),
        ];
        let data = (data > 0).then(|| window(map::DATA, words(data), true, Sharing::Shared));
        let windows = packet.into_iter().chain(state.as_deref().map(memory)).chain(own).chain(data).collect();
        let now = env.now();
        self.runs = self.runs.wrapping_add(1);
        self.contexts[usize::from(context)] = Some(Box::new(Context {
            run: self.runs,
            task,
            thread,
            windows,
            _state: state,
            layout: None,
            stop: None,
            call: None,
            refused: None,
            commands: 0,
            started: now,
            stay: now,
            waits: Wait::Nothing,
            waiting: None,
        }));
        let hpu = self.hpus.get_mut(context);
        hpu.resident += 1;
        hpu.ready.push_back(context);
        self.run_next(context, env)
    }

    /// Runs the next ready handler of a context's HPU, if the HPU is free or its handler waits.
    pub(super) fn run_next(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        let hpu = self.hpus.get(context);
        if hpu.ready.is_empty() {
            return Ok(());
        }
        if let Some(occupant) = hpu.running {
            if self.resident(occupant)?.waits == Wait::Nothing {
                return Ok(());
            }
            self.end_stay(occupant, env)?;
        }
        let hpu = self.hpus.get_mut(context);
        let Some(next) = hpu.ready.pop_front() else { return Ok(()) };
        hpu.running = Some(next);
        self.resident(next)?.stay = env.now();
        self.run(next, env)
    }

    /// Runs a handler until it needs the unit, and schedules an event for that time.
    pub(super) fn run(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        self.run_after(context, 0, env)
    }

    /// Runs a handler after its call kept the HPU busy for `busy` cycles.
    pub(super) fn run_after(&mut self, context: u16, busy: u64, env: &mut dyn Env) -> Result<(), InternalError> {
        let resident = self.resident(context)?;
        let before = resident.thread.cycles();
        resident.thread.take_cycles(busy);
        let limit = (before + QUANTUM).min(self.config.watchdog_cycles);
        let mut stop = self.execute(context, limit)?;
        // The debugger looks immediately, not at the time of the instruction, so that the order of events is unchanged.
        while stop == Stop::Break {
            self.halt(context, Halt::Asked);
            stop = self.execute(context, limit)?;
        }
        let space = self.resident(context)?.space();
        self.tell_findings(space, env);
        let resident = self.resident(context)?;
        resident.stop = Some(stop);
        let (cycles, token) = (resident.thread.cycles(), resident.run);
        let ran = self.clock.time(cycles - before);
        env.schedule(env.now() + ran, Event { unit: u32::from(context), token });
        Ok(())
    }

    /// Executes a handler's instructions until it needs the unit.
    fn execute(&mut self, context: u16, limit: u64) -> Result<Stop, InternalError> {
        let resident = self.contexts[usize::from(context)].as_deref_mut().ok_or(InternalError::NoHandler(context))?;
        let Space { program, memories, watched, sanitizer, .. } = &mut self.spaces[resident.space()];
        let loaded = program.as_mut().ok_or(InternalError::NoProgram)?;
        if resident.layout != Some(memories.layout()) {
            resident.layout = Some(memories.locate(&mut resident.windows)?);
        }
        let arena = memories.arena();
        let mut memory = Memory { arena, windows: &resident.windows, watched };
        let mut engine = loaded.program.engine();
        engine.swap_predictor(&mut loaded.predictor);
        let stop = match (&mut self.debugger, sanitizer) {
            (None, None) => engine.run(&mut resident.thread, &mut memory, limit),
            (Some(debugger), _) => {
                let mut stops = Stops { debugger: &mut **debugger, context: u32::from(context) };
                engine.run_stepwise(&mut resident.thread, &mut memory, limit, &mut stops)
            }
            (None, Some(sanitizer)) => {
                sanitizer.switch(u32::from(context));
                engine.run_stepwise(&mut resident.thread, &mut memory, limit, &mut **sanitizer)
            }
        };
        engine.swap_predictor(&mut loaded.predictor);
        Ok(stop)
    }

    /// Removes a waiting handler from its HPU, if another is ready there.
    pub(super) fn deschedule(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        if self.hpus.get(context).ready.is_empty() {
            return Ok(());
        }
        self.end_stay(context, env)?;
        self.run_next(context, env)
    }

    /// Marks a handler as ready after its wait.
    pub(super) fn wake(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        self.show_wait(context, env)?;
        let hpu = self.hpus.get_mut(context);
        if hpu.running == Some(context) {
            self.run(context, env)
        } else {
            hpu.ready.push_back(context);
            self.run_next(context, env)
        }
    }

    /// Adds the wait that ends now to the timeline.
    fn show_wait(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        let (end, hpu) = (env.now(), self.hpus.of(context));
        let resident = self.resident(context)?;
        if let Some((start, name)) = resident.waiting.take()
            && start < end
            && env.tracing()
        {
            env.slice(HandlerSlice { process: resident.task.process, hpu, start, end, name, packet: None });
        }
        Ok(())
    }

    /// Removes a handler from its HPU.
    pub(super) fn end_stay(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        self.show_wait(context, env)?;
        let (now, hpu) = (env.now(), self.hpus.of(context));
        let resident = self.resident(context)?;
        let (start, task) = (resident.stay, &resident.task);
        if env.tracing() {
            let packet = task.packet.map(|packet| (task.message, packet));
            let (process, name) = (task.process, &*task.handler.name);
            env.slice(HandlerSlice { process, hpu, start, end: now, name, packet });
        }
        let number = resident.space();
        self.spaces[number].busy += now - start;
        self.hpus.get_mut(context).running = None;
        Ok(())
    }
}

/// Watcher that queries the debugger about one handler.
struct Stops<'a> {
    debugger: &'a mut dyn Debugger,
    context: u32,
}

impl Watcher for Stops<'_> {
    fn stops(&mut self, pc: u32) -> bool {
        self.debugger.stops(self.context, pc)
    }

    fn wants_accesses(&self) -> bool {
        false
    }

    fn accesses(&mut self, _: u32, _: u32, _: bool, _: bool) {}
}
