// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal run loggops`

use std::collections::BTreeMap;

use clap::ValueEnum;
use goal::loggops::{LogGops, Options, Queues, one_thread, run as execute, single_thread_reason};
use goal::{Action, Schedule};
use net::Latency;
use serde_json::{Map, Value, json};
use sim::trace::Trace;
use sim::{Time, TimePerByte};

use super::super::error::GoalError;
use super::common::{Common, Costs, Eager, Network};
use super::report::{Report, warn_of_lost};
use super::{critical, timeline};
use command::noise;
use command::units::{json_ns, parse_ns};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    /// Latency L in ns [default: the machine's longest; without --machine: 2500]
    #[arg(short = 'L', value_name = "NS", value_parser = parse_ns)]
    latency: Option<Time>,
    #[command(flatten)]
    costs: Costs,
    #[command(flatten)]
    threshold: Eager,
    /// Behave as LogGOPSim where spinkit differs; may be given several times
    #[arg(long, value_enum, value_name = "WHAT")]
    compat: Vec<Compat>,
    /// Number of simulation threads, if the run is long and the processors are free (results are identical) [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..))]
    threads: Option<u8>,
    /// Report the chain of operations and messages that determines the end
    #[arg(long)]
    critical_path: bool,
    #[command(flatten)]
    noise: noise::Arguments,
    #[command(flatten)]
    pub timeline: timeline::Arguments,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compat {
    /// An operation starts when its CPU is free, even if an operation of another CPU that it requires ends later
    CrossCpu,
}

/// Executes a schedule.
pub fn run(schedule: &Schedule, arguments: &Arguments, trace: Trace) -> Result<Report, GoalError> {
    let common = &arguments.common;
    let parameters = parameters(schedule, arguments)?;
    let record = arguments.critical_path || trace.is_on();
    let ignore_other_cpus = arguments.compat.contains(&Compat::CrossCpu);
    let threads = arguments.threads.map_or(1, usize::from);
    let noise = arguments.noise.noise();
    let mut options = Options { ignore_other_cpus, noise, record, threads, ..Options::default() };
    let is_impossible = || one_thread(schedule, &parameters, &options).map(|why| why.to_string());
    let is_wasteful = || single_thread_reason(schedule, threads).map(|why| why.to_string());
    if threads > 1
        && let Some(why) = is_impossible().or_else(is_wasteful)
    {
        eprintln!("spinkit goal: note: runs in one thread: {why}");
        options.threads = 1;
    }
    let (outcome, took) = common.timed(schedule, &options.progress, || execute(schedule, &parameters, &options));
    let outcome = outcome.map_err(|error| GoalError::run(&common.file, error))?;
    warn_of_lost(schedule, &outcome.unreceived);
    if let Some(path) = arguments.timeline.file() {
        let write = || arguments.timeline.write(trace, schedule, &outcome);
        common.writing(path, write).map_err(GoalError::write(path))?;
    }
    let mut more = Map::new();
    more.insert("unreceived_messages".into(), outcome.unreceived.len().into());
    more.insert("threads".into(), options.threads.into());
    more.insert("queues".into(), queues(&outcome.details.queues));
    more.insert("message_sizes".into(), sizes(schedule));
    let mut lines = Vec::new();
    if arguments.critical_path {
        let follow = || critical::report(schedule, &parameters, &outcome);
        let (json, table) = common.slowly("following the critical path of", &common.file, follow);
        more.insert("critical_path".into(), json);
        lines.push(("critical", table));
    }
    let per_byte = |rate: TimePerByte| rate.as_fs_per_byte() as f64 / 1e6;
    Ok(Report {
        model: "loggops",
        parameters: json!({
            "L_ns": json_ns(parameters.latency),
            "o_ns": json_ns(parameters.overhead),
            "g_ns": json_ns(parameters.gap),
            "G_ns_per_byte": per_byte(parameters.gap_per_byte),
            "O_ns_per_byte": per_byte(parameters.overhead_per_byte),
            "S_bytes": parameters.eager,
            "noise": noise::describe(options.noise.as_ref()),
        }),
        events: outcome.events,
        ends: outcome.ends,
        took,
        more,
        lines,
    })
}

/// Describes the matching queues: their maximum length, and the mean length at a search.
fn queues(queues: &Queues) -> Value {
    let mean = |lengths: u64, searches: u64| lengths as f64 / searches.max(1) as f64;
    json!({
        "longest_posted": queues.longest_posted,
        "longest_unexpected": queues.longest_unexpected,
        "mean_posted": mean(queues.posted_lengths, queues.posted_searches),
        "mean_unexpected": mean(queues.unexpected_lengths, queues.unexpected_searches),
        "searches_of_posted": queues.posted_searches,
        "searches_of_unexpected": queues.unexpected_searches,
    })
}

/// Returns the number of messages by size class: the smallest power of two that is not below their size in bytes.
fn sizes(schedule: &Schedule) -> Value {
    let mut sizes = BTreeMap::<u32, u64>::new();
    for op in 0..schedule.len() as u32 {
        if let Action::Send { bytes, .. } = schedule.action(op) {
            *sizes.entry(u64::BITS - bytes.saturating_sub(1).leading_zeros()).or_default() += 1;
        }
    }
    let entry = |(power, count): (u32, u64)| json!({ "up_to_bytes": 1u128 << power, "messages": count });
    sizes.into_iter().map(entry).collect()
}

fn parameters(schedule: &Schedule, arguments: &Arguments) -> Result<LogGops, GoalError> {
    let mut parameters = match arguments.common.machine(Network::Latency)? {
        None => LogGops::default(),
        Some(machine) => {
            let nodes = schedule.ranks() as usize;
            // The model has one latency: that between the first and the last node is the maximum.
            let latency = Latency::new(&machine.network, nodes)?.between(0, nodes - 1);
            LogGops::of_machine(&machine, latency)
        }
    };
    let costs = &arguments.costs;
    let given = |value: &mut Time, option: Option<Time>| *value = option.unwrap_or(*value);
    given(&mut parameters.latency, arguments.latency);
    given(&mut parameters.overhead, costs.overhead);
    given(&mut parameters.gap, costs.gap);
    parameters.gap_per_byte = costs.gap_per_byte.unwrap_or(parameters.gap_per_byte);
    parameters.overhead_per_byte = costs.overhead_per_byte.unwrap_or(parameters.overhead_per_byte);
    parameters.eager = arguments.threshold.eager;
    Ok(parameters)
}
