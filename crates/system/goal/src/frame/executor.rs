// SPDX-License-Identifier: Apache-2.0
//! Generic executor of schedules, and the trait of its models.

use std::error::Error;
use std::fmt::Debug;

use sim::{DelayQueue, Time};

use super::cpu::Cpu;
use super::run_state::RunState;
use crate::error::RunError;
use crate::outcome::Outcome;
use sim::noise::{CpuTime, Noise, NoisyCpus};

/// Prefetch distance in waiting tasks of a CPU: many receives may be posted in sequence.
pub(crate) const AHEAD: usize = 8;

/// Model-specific part of the [`Executor`]. All functions get the executor; its field `model` is the model itself.
pub(crate) trait Model<'a>: Sized {
    /// Task that occupies a CPU
    type Task: Copy + Debug;
    /// Timed event
    type Event: Copy;
    /// Model-specific part of the outcome
    type Details;
    /// Model-specific error
    type Error: Error + 'static;

    /// Returns the task that executes an operation.
    fn operation(op: u32) -> Self::Task;

    /// Returns the operation to which a task belongs.
    fn op(task: Self::Task) -> u32;

    /// Returns the event for the end of a CPU's task. [`Model::handle`] passes it to [`Executor::cpu_is_done`].
    fn cpu_is_done(cpu: u32) -> Self::Event;

    /// Returns the key of that event among simultaneous ones: by default, they are handled in the order of insertion.
    #[inline(always)]
    fn key_of_cpu(run: &Executor<'a, Self>, _cpu: u32) -> u64 {
        run.queue.inserted()
    }

    /// Starts a task. Returns the task that occupies the CPU from now on, and its end; `None` if the task takes no time
    /// and the CPU can continue with the next.
    fn start(run: &mut Executor<'a, Self>, now: Time, cpu: usize, task: Self::Task) -> Started<'a, Self>;

    /// Performs the actions after the end of a task.
    fn finish(run: &mut Executor<'a, Self>, now: Time, task: Self::Task) -> Handled<'a, Self>;

    /// Handles an event.
    fn handle(run: &mut Executor<'a, Self>, now: Time, event: Self::Event) -> Handled<'a, Self>;

    /// Prefetches data for the events that are due soon.
    #[inline(always)]
    fn prefetch(_run: &Executor<'a, Self>) {}

    /// Prefetches data for a task that its CPU executes soon.
    #[inline(always)]
    fn prefetch_task(_run: &Executor<'a, Self>, _task: Self::Task) {}

    /// Accounts for the idle time of a CPU before it was given a task.
    #[inline]
    fn idled(_run: &mut Executor<'a, Self>, _task: Self::Task, _idle: Time) {}

    /// Accounts for a task that occupies a CPU from `start` to `end`.
    #[inline]
    fn occupied(_run: &mut Executor<'a, Self>, _cpu: usize, _task: Self::Task, _start: Time, _end: Time) {}

    /// Returns the model-specific part of the outcome of a run with these ends.
    fn details(self, ends: &[Time]) -> Self::Details;
}

/// Result of [`Model::start`].
pub(crate) type Started<'a, M> = Result<Option<(<M as Model<'a>>::Task, Time)>, RunError<<M as Model<'a>>::Error>>;

/// Result of a step that may end the run.
pub(crate) type Handled<'a, M> = Result<(), RunError<<M as Model<'a>>::Error>>;

/// Executes a schedule in a model: CPUs execute their tasks first come first served, and events are handled in the
/// order of (time, key, insertion).
pub(crate) struct Executor<'a, M: Model<'a>> {
    pub state: RunState<'a>,
    pub queue: DelayQueue<M::Event>,
    /// CPUs of the executed ranks, by rank and number.
    cpus: Vec<Cpu<M::Task>>,
    /// Number of CPUs of the ranks before the first executed one.
    first_cpu: usize,
    /// End of each executed rank's last work.
    ends: Vec<Time>,
    noise: Option<NoisyCpus>,
    pub model: M,
}

impl<'a, M: Model<'a>> Executor<'a, M> {
    /// Creates the executor of a run of the state's ranks before its start.
    pub fn new(state: RunState<'a>, noise: Option<&Noise>, model: M) -> Executor<'a, M> {
        let (all, ranks) = (state.schedule.ranks() as usize, state.ranks());
        let cpus = state.schedule.cpus();
        Executor {
            state,
            queue: DelayQueue::default(),
            cpus: std::iter::repeat_with(Cpu::default).take(ranks.len() * cpus).collect(),
            first_cpu: ranks.start as usize * cpus,
            ends: vec![Time::ZERO; ranks.len()],
            noise: noise.map(|noise| NoisyCpus::new(noise, all, cpus)),
            model,
        }
    }

    /// Executes the schedule.
    ///
    /// # Errors
    /// If it cannot finish, exceeds the clock, or the model reports an error.
    pub fn run(mut self) -> Result<Outcome<M::Details>, RunError<M::Error>> {
        self.start()?;
        while let Some((now, event)) = self.queue.pop() {
            M::prefetch(&self);
            M::handle(&mut self, now, event)?;
        }
        let (outcome, model) = self.finish()?;
        let details = model.details(&outcome.ends);
        Ok(outcome.with(details))
    }

    /// Requests the operations without dependencies.
    pub fn start(&mut self) -> Handled<'a, M> {
        self.state.reserve_matching();
        let mut first = Vec::new();
        for rank in self.state.ranks() {
            self.state.dependencies.take_first(self.state.schedule.of_rank(rank), &mut first);
            for &op in &first {
                self.request(Time::ZERO, self.cpu_of(rank, op), M::operation(op))?;
            }
        }
        Ok(())
    }

    /// Handles all events before `limit`. Returns their number.
    pub fn run_until(&mut self, limit: Time) -> Result<u64, RunError<M::Error>> {
        let mut events = 0;
        while let Some((now, event)) = self.queue.pop_before(limit) {
            M::prefetch(self);
            M::handle(self, now, event)?;
            events += 1;
        }
        Ok(events)
    }

    /// Ends a run without further events.
    ///
    /// # Errors
    /// If it is not finished.
    pub fn finish(self) -> Result<(Outcome<()>, M), RunError<M::Error>> {
        Ok((self.state.finish(self.ends)?, self.model))
    }

    /// Returns the CPU of `rank` that has the number of the CPU of `op`.
    #[inline]
    pub fn cpu_of(&self, rank: u32, op: u32) -> usize {
        match self.state.schedule.cpus() {
            // Avoids reading the operation, which may not be in the processor's cache.
            1 => rank as usize,
            cpus => rank as usize * cpus + self.state.ops[op as usize].cpu(),
        }
    }

    /// Returns the rank of a CPU.
    #[inline]
    pub fn rank_of(&self, cpu: usize) -> usize {
        cpu / self.state.schedule.cpus()
    }

    /// Returns the CPU itself, for reading its current task or prefetching it.
    #[inline(always)]
    pub fn cpu(&self, cpu: u32) -> &Cpu<M::Task> {
        &self.cpus[cpu as usize - self.first_cpu]
    }

    #[inline(always)]
    fn cpu_mut(&mut self, cpu: usize) -> &mut Cpu<M::Task> {
        &mut self.cpus[cpu - self.first_cpu]
    }

    /// Returns the end of a rank's last work.
    #[inline]
    pub fn end_of(&mut self, rank: u32) -> &mut Time {
        &mut self.ends[(rank - self.state.ranks().start) as usize]
    }

    /// Returns the end of `work` that a CPU starts now, including noise.
    #[inline]
    pub fn end_of_work(&mut self, now: Time, cpu: usize, work: Time) -> Time {
        Time::from_ps(self.noise.end(cpu, now.as_ps(), work.as_ps()))
    }

    /// Checks that a time for `op` is within the range of simulated time.
    #[inline]
    pub fn in_time(&self, at: Time, op: u32) -> Result<(), RunError<M::Error>> {
        if at > Time::LIMIT { Err(self.state.too_late(op, 63)) } else { Ok(()) }
    }

    /// Enqueues a task at a CPU.
    #[inline]
    pub fn request(&mut self, now: Time, cpu: usize, task: M::Task) -> Handled<'a, M> {
        match self.cpu_mut(cpu).add(task) {
            Some(since) => {
                M::idled(self, task, now.saturating_sub(since));
                self.go_on(now, cpu)
            }
            None => Ok(()),
        }
    }

    /// Executes the tasks of a CPU up to one that takes time.
    fn go_on(&mut self, now: Time, cpu: usize) -> Handled<'a, M> {
        while let Some(task) = self.cpu_mut(cpu).next(now) {
            if let Some(later) = self.cpu(cpu as u32).waiting(AHEAD) {
                M::prefetch_task(self, later);
            }
            let Some((task, end)) = M::start(self, now, cpu, task)? else {
                self.request_ready(now)?;
                continue;
            };
            self.in_time(end, M::op(task))?;
            M::occupied(self, cpu, task, now, end);
            self.cpu_mut(cpu).begin(task);
            self.queue.push(end, M::key_of_cpu(self, cpu as u32), M::cpu_is_done(cpu as u32));
            // Operations that waited only for its start.
            return self.request_ready(now);
        }
        Ok(())
    }

    /// Ends the task of a CPU, after the event [`Model::cpu_is_done`].
    #[inline]
    pub fn cpu_is_done(&mut self, now: Time, cpu: u32) -> Handled<'a, M> {
        let cpu = cpu as usize;
        let Some(task) = self.cpu_mut(cpu).end() else {
            return Err(RunError::Internal(format!("CPU {cpu} is done without a task")));
        };
        *self.end_of(self.rank_of(cpu) as u32) = now;
        M::finish(self, now, task)?;
        self.request_ready(now)?;
        self.go_on(now, cpu)
    }

    /// Makes CPUs execute the operations that became ready.
    #[inline]
    pub fn request_ready(&mut self, now: Time) -> Handled<'a, M> {
        if !self.state.has_ready() {
            return Ok(());
        }
        let ready = self.state.take_ready();
        for &op in &ready {
            let cpu = self.cpu_of(self.state.ops[op as usize].rank, op);
            self.request(now, cpu, M::operation(op))?;
        }
        self.state.recycle(ready);
        Ok(())
    }
}
