// SPDX-License-Identifier: Apache-2.0
//! Entry point of LogGOPS runs, and the choice between one thread and several.

use sim::Time;
use thiserror::Error;

use super::engine::Engine;
use super::options::Options;
use super::order::Alone;
use super::outcome::Outcome;
use super::parallel;
use super::parameters::LogGops;
use super::resources::{Many, One, Resources};
use crate::error::RunError;
use crate::frame::refuse_card_operations;
use crate::op::{Kind, Op};
use crate::schedule::Schedule;
use sim::noise::{CpuTime, NoNoise, NoisyCpus};

/// Executes a schedule.
///
/// # Errors
/// If the schedule cannot finish (with the wait cause of each rank), lasts too long, or has card operations.
pub fn run(schedule: &Schedule, parameters: &LogGops, options: &Options) -> Result<Outcome, RunError> {
    refuse_card_operations(schedule)?;
    match &options.noise {
        None => run_with(schedule, parameters, options, || NoNoise),
        Some(noise) => {
            let (ranks, cpus) = (schedule.ranks() as usize, schedule.cpus);
            run_with(schedule, parameters, options, || NoisyCpus::new(noise, ranks, cpus))
        }
    }
}

fn run_with<X: CpuTime>(
    schedule: &Schedule,
    parameters: &LogGops,
    options: &Options,
    noise: impl Fn() -> X + Sync,
) -> Result<Outcome, RunError> {
    let is_single = (schedule.cpus, schedule.nics) == (1, 1);
    if options.threads > 1 && one_thread(schedule, parameters, options).is_none() {
        let bounds = parallel::bounds(schedule, options.threads);
        let run = if is_single { parallel::run::<One, X> } else { parallel::run::<Many, X> };
        if let Some(outcome) = run(schedule, parameters, options, &noise, &bounds) {
            return Ok(outcome);
        }
        // A schedule that cannot finish is executed again in one thread, which can report where it stalled.
        options.progress.reset();
    }
    let run = if is_single { run_alone::<One, X> } else { run_alone::<Many, X> };
    run(schedule, parameters, options, noise())
}

fn run_alone<R: Resources, X: CpuTime>(
    schedule: &Schedule,
    parameters: &LogGops,
    options: &Options,
    noise: X,
) -> Result<Outcome, RunError> {
    let ranks = 0..schedule.ranks();
    let mut engine = Engine::<R, _, _>::new(schedule, parameters, options, noise, Alone::default(), ranks);
    engine.begin();
    engine.run(u64::MAX)?;
    Ok(engine.finish()?)
}

/// Reason why a schedule cannot be executed by several threads.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OneThread {
    /// Without latency, the threads could never run independently.
    #[error("o + L is 0")]
    NoLatency,
    /// The match of a message above S affects the sender at once.
    #[error("{0} sends more than S bytes, and its match acts at once in another part of the ranks")]
    Rendezvous(String),
    /// An operation that starts in the past can send a message that arrives in the past.
    #[error("with --compat cross-cpu and several CPUs a rank, operations may start in the past")]
    Past,
    /// The order of the starts of all ranks is known only after the run.
    #[error("what ran when is recorded in the order of its start")]
    Record,
}

/// Returns the reason why [`Options::threads`] would have no effect, if any.
pub fn one_thread(schedule: &Schedule, parameters: &LogGops, options: &Options) -> Option<OneThread> {
    if parameters.overhead + parameters.latency == Time::ZERO {
        return Some(OneThread::NoLatency);
    }
    if options.record {
        return Some(OneThread::Record);
    }
    if options.ignore_other_cpus && schedule.cpus > 1 {
        return Some(OneThread::Past);
    }
    if schedule.largest_message() <= parameters.eager {
        return None;
    }
    let bounds = parallel::bounds(schedule, options.threads);
    let part = |rank: u32| bounds.partition_point(|&first| first <= rank);
    let is_obstacle = |record: &Op| {
        let is_long = record.kind() == Kind::Send && schedule.bytes(record) > parameters.eager;
        is_long && part(record.rank) != part(record.peer)
    };
    let op = schedule.ops[..schedule.len()].iter().position(is_obstacle)?;
    Some(OneThread::Rendezvous(schedule.describe(op as u32)))
}
