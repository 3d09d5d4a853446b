// SPDX-License-Identifier: Apache-2.0
//! Entry points of packet runs, and the choice between one thread and several.

use std::sync::Arc;

use net::fabric::Flow;
use net::messages::MessageNetwork;
use net::{NetError, Partition, Topology};
use sim::Time;
use thiserror::Error;

use super::record::{Recorder, Window};
use super::{Outcome, Parameters, RunError, WindowCounts, engine, hosts, parallel};
use crate::frame::refuse_card_operations;
use crate::op::Kind;
use crate::schedule::Schedule;

/// Reason why a run uses one thread.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum OneThread {
    /// A receiver knows how much its senders want to send, without a message.
    #[error("with trimming, receivers and senders share windows, which act at once on each other")]
    Trim,
    /// Parts affect each other without delay, so they could never run independently.
    #[error("links between parts of the network have no latency")]
    NoLatency,
    /// The hosts cannot be divided.
    #[error("the network cannot be divided: {0}")]
    OnePart(String),
}

/// Executes a schedule.
///
/// # Errors
/// If the schedule cannot finish (with the wait cause of each rank), or has card operations; if the topology has fewer
/// hosts than the schedule [needs](hosts()), or a parameter is invalid.
pub fn run(
    schedule: &Schedule,
    topology: impl Into<Arc<Topology>>,
    parameters: &Parameters,
) -> Result<Outcome, RunError> {
    execute(schedule, &topology.into(), parameters, None).map(|(outcome, _)| outcome)
}

/// Executes a schedule and records the spans in a window, which takes 32 bytes for each CPU task and each message.
///
/// # Errors
/// As for [`run`].
pub fn record(
    schedule: &Schedule,
    topology: impl Into<Arc<Topology>>,
    parameters: &Parameters,
    window: Window,
) -> Result<Outcome, RunError> {
    execute(schedule, &topology.into(), parameters, Some(&window)).map(|(outcome, _)| outcome)
}

/// Executes a schedule and counts the events of each part in each window of the threads. The counts are zero if the run
/// uses [one thread](one_thread()).
///
/// # Errors
/// As for [`run`].
pub fn count(
    schedule: &Schedule,
    topology: impl Into<Arc<Topology>>,
    parameters: &Parameters,
) -> Result<(Outcome, WindowCounts), RunError> {
    execute(schedule, &topology.into(), parameters, None)
}

/// Returns the number of packets that a schedule sends, without those of a rendezvous.
pub fn packets(schedule: &Schedule, mtu: u32) -> u64 {
    weights(schedule, mtu).iter().sum::<u64>() / 2
}

/// Returns the number of packets of each rank, sent and received.
fn weights(schedule: &Schedule, mtu: u32) -> Vec<u64> {
    let mut weights = vec![0; schedule.ranks() as usize];
    for record in schedule.ops[..schedule.len()].iter().filter(|record| record.kind() == Kind::Send) {
        let packets = schedule.bytes(record).max(1).div_ceil(mtu.max(1).into());
        for rank in [record.rank, record.peer] {
            weights[rank as usize] += packets;
        }
    }
    weights
}

/// Divides a network, for a run by [`Parameters::threads`] threads.
fn partition(schedule: &Schedule, topology: &Topology, parameters: &Parameters) -> Result<Partition, OneThread> {
    if parameters.network.flow == Flow::Trim {
        return Err(OneThread::Trim);
    }
    let weights = weights(schedule, parameters.network.mtu);
    let nics = schedule.nics() as u32;
    let weight = |host: u32| weights.get((host / nics) as usize).map_or(0, |packets| 1 + packets);
    let partition = Partition::new(topology, weight, nics, parameters.threads);
    if partition.parts() < 2 {
        return Err(OneThread::OnePart(topology.description().to_owned()));
    }
    match partition.lookahead(topology, &parameters.network) {
        Time::ZERO => Err(OneThread::NoLatency),
        _ => Ok(partition),
    }
}

/// Returns the reason why [`Parameters::threads`] would have no effect, if any.
pub fn one_thread(schedule: &Schedule, topology: &Topology, parameters: &Parameters) -> Option<OneThread> {
    partition(schedule, topology, parameters).err()
}

fn execute(
    schedule: &Schedule,
    topology: &Arc<Topology>,
    parameters: &Parameters,
    window: Option<&Window>,
) -> Result<(Outcome, WindowCounts), RunError> {
    refuse_card_operations(schedule)?;
    let nodes = hosts(schedule)?;
    if nodes > topology.hosts() as usize {
        let (hosts, topology) = (topology.hosts(), topology.description().to_owned());
        return Err(NetError::TooFewHosts { topology, hosts, nodes }.into());
    }
    if parameters.threads > 1
        && let Ok(partition) = partition(schedule, topology, parameters)
    {
        if let Some(finished) = parallel::run(schedule, topology, parameters, window, Arc::new(partition)) {
            return Ok(finished);
        }
        // A schedule that cannot finish is executed again in one thread, which can report where it stalled.
        parameters.progress.reset();
    }
    let network = MessageNetwork::new(Arc::clone(topology), parameters.network.clone())?;
    let recorder = window.map(|window| Recorder::new(window.clone(), false));
    let outcome = engine::executor(schedule, 0..schedule.ranks(), parameters, network, recorder).run()?;
    Ok((outcome, WindowCounts::default()))
}
