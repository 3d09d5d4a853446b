use std::error::Error;
use std::fmt::Debug;

use sim::{DelayQueue, Time};

use super::cpu::Cpu;
use super::state::RunState;
use crate::error::RunError;
use crate::outcome::Outcome;
use sim::noise::{CpuTime, Noise, NoisyCpus};

/// A CPU prefetches what a task needs when this many others are before it: many receives may be posted one after the other.
pub(crate) const AHEAD: usize = 8;

/// What a model adds to the [`Executor`]. All functions get the executor, whose field `model` is the model itself.
pub(crate) trait Model<'a>: Sized {
    /// What occupies a CPU
    type Task: Copy + Debug;
    /// What happens at a time
    type Event: Copy;
    /// What the model adds to the outcome
    type Details;
    /// What can be wrong in this model only
    type Error: Error + 'static;

    /// Returns the task that executes an operation.
    fn operation(op: u32) -> Self::Task;

    /// Returns the operation in whose name a task is done.
    fn op(task: Self::Task) -> u32;

    /// Returns the event that a CPU has done its task. [`Model::handle`] answers it with [`Executor::cpu_is_done`].
    fn cpu_is_done(cpu: u32) -> Self::Event;

    /// Starts a task. Returns the task that occupies the CPU from now on, and when it ends; none if the task took no time
    /// and the CPU can go on with the next.
    fn start(run: &mut Executor<'a, Self>, now: Time, cpu: usize, task: Self::Task) -> Started<'a, Self>;

    /// Does what follows from the end of a task.
    fn finish(run: &mut Executor<'a, Self>, now: Time, task: Self::Task) -> Handled<'a, Self>;

    /// Handles an event.
    fn handle(run: &mut Executor<'a, Self>, now: Time, event: Self::Event) -> Handled<'a, Self>;

    /// Prefetches what the events that are due soon will need.
    #[inline(always)]
    fn prefetch(_run: &Executor<'a, Self>) {}

    /// Prefetches what a task will need that its CPU does soon.
    #[inline(always)]
    fn prefetch_task(_run: &Executor<'a, Self>, _task: Self::Task) {}

    /// Accounts for the time that a CPU was idle before it was given a task.
    #[inline]
    fn idled(_run: &mut Executor<'a, Self>, _task: Self::Task, _idle: Time) {}

    /// Accounts for a task that occupies a CPU from `start` to `end`.
    #[inline]
    fn occupied(_run: &mut Executor<'a, Self>, _cpu: usize, _task: Self::Task, _start: Time, _end: Time) {}

    /// Returns what the model adds to the outcome of a run with these ends.
    fn details(self, ends: &[Time]) -> Self::Details;
}

/// The result of [`Model::start`].
pub(crate) type Started<'a, M> = Result<Option<(<M as Model<'a>>::Task, Time)>, RunError<<M as Model<'a>>::Error>>;

/// The result of something that may end the run.
pub(crate) type Handled<'a, M> = Result<(), RunError<<M as Model<'a>>::Error>>;

/// Executes a schedule in a model: CPUs do their tasks first come first served, everything happens in the order of
/// (time, insertion).
pub(crate) struct Executor<'a, M: Model<'a>> {
    pub state: RunState<'a>,
    pub queue: DelayQueue<M::Event>,
    /// All CPUs, by rank and number.
    cpus: Vec<Cpu<M::Task>>,
    /// For each rank, when it has last been busy.
    pub ends: Vec<Time>,
    noise: Option<NoisyCpus>,
    pub model: M,
}

impl<'a, M: Model<'a>> Executor<'a, M> {
    /// Creates the executor of a run that has not begun.
    pub fn new(state: RunState<'a>, noise: Option<&Noise>, model: M) -> Executor<'a, M> {
        let ranks = state.schedule.ranks() as usize;
        let cpus = state.schedule.cpus();
        Executor {
            state,
            queue: DelayQueue::default(),
            cpus: std::iter::repeat_with(Cpu::default).take(ranks * cpus).collect(),
            ends: vec![Time::ZERO; ranks],
            noise: noise.map(|noise| NoisyCpus::new(noise, ranks, cpus)),
            model,
        }
    }

    /// Executes the schedule.
    ///
    /// # Errors
    /// When it cannot finish, does so too late, or the model finds something wrong.
    pub fn run(mut self) -> Result<Outcome<M::Details>, RunError<M::Error>> {
        self.state.reserve_matching();
        let mut first = Vec::new();
        for rank in 0..self.state.schedule.ranks() {
            self.state.dependencies.take_first(self.state.schedule.of_rank(rank), &mut first);
            for &op in &first {
                self.request(Time::ZERO, self.cpu_of(rank, op), M::operation(op))?;
            }
        }
        while let Some((now, event)) = self.queue.pop() {
            M::prefetch(&self);
            M::handle(&mut self, now, event)?;
        }
        let model = self.model;
        Ok(self.state.finish(self.ends, |ends| model.details(ends))?)
    }

    /// Returns the CPU of a rank that has the number of an operation's CPU.
    #[inline]
    pub fn cpu_of(&self, rank: u32, op: u32) -> usize {
        match self.state.schedule.cpus() {
            // The operation need not be in the processor's cache.
            1 => rank as usize,
            cpus => rank as usize * cpus + self.state.ops[op as usize].cpu(),
        }
    }

    /// Returns the rank of a CPU.
    #[inline]
    pub fn rank_of(&self, cpu: usize) -> usize {
        cpu / self.state.schedule.cpus()
    }

    /// Returns the CPU itself, to see its present task or prefetch it.
    #[inline(always)]
    pub fn cpu(&self, cpu: u32) -> &Cpu<M::Task> {
        &self.cpus[cpu as usize]
    }

    /// Returns when a CPU has done `work` that it begins now, with the noise that it meets.
    #[inline]
    pub fn end_of_work(&mut self, now: Time, cpu: usize, work: Time) -> Time {
        Time::from_ps(self.noise.end(cpu, now.as_ps(), work.as_ps()))
    }

    /// Checks that something that happens for `op` is within the time that the simulation can count.
    #[inline]
    pub fn in_time(&self, at: Time, op: u32) -> Result<(), RunError<M::Error>> {
        if at > Time::LIMIT { Err(self.state.too_late(op, 63)) } else { Ok(()) }
    }

    /// Has a CPU do a task after all that it was given before.
    #[inline]
    pub fn request(&mut self, now: Time, cpu: usize, task: M::Task) -> Handled<'a, M> {
        match self.cpus[cpu].add(task) {
            Some(since) => {
                M::idled(self, task, now.saturating_sub(since));
                self.go_on(now, cpu)
            }
            None => Ok(()),
        }
    }

    /// Has a CPU do its tasks up to one that takes time.
    fn go_on(&mut self, now: Time, cpu: usize) -> Handled<'a, M> {
        while let Some(task) = self.cpus[cpu].next(now) {
            if let Some(later) = self.cpus[cpu].waiting(AHEAD) {
                M::prefetch_task(self, later);
            }
            let Some((task, end)) = M::start(self, now, cpu, task)? else {
                self.request_ready(now)?;
                continue;
            };
            self.in_time(end, M::op(task))?;
            M::occupied(self, cpu, task, now, end);
            self.cpus[cpu].begin(task);
            self.queue.push(end, M::cpu_is_done(cpu as u32));
            // Operations that only waited for its start.
            return self.request_ready(now);
        }
        Ok(())
    }

    /// Ends the task of a CPU, whose event [`Model::cpu_is_done`] was.
    #[inline]
    pub fn cpu_is_done(&mut self, now: Time, cpu: u32) -> Handled<'a, M> {
        let cpu = cpu as usize;
        let Some(task) = self.cpus[cpu].end() else {
            return Err(RunError::Internal(format!("CPU {cpu} is done without a task")));
        };
        let rank = self.rank_of(cpu);
        self.ends[rank] = now;
        M::finish(self, now, task)?;
        self.request_ready(now)?;
        self.go_on(now, cpu)
    }

    /// Has CPUs execute the operations that have become ready.
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
