//! `spinkit goal run`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::ValueEnum;
use goal::Schedule;
use goal::loggops::{LogGops, Options, Outcome, run as execute};
use machine::Machine;
use net::Network;
use serde_json::json;
use sim::{Rate, Time};

use super::units::{json_ns, parse_ns, parse_ns_per_byte};
use super::{GoalError, files};
use crate::sdk::Sdk;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The schedule
    file: PathBuf,
    /// What to simulate
    #[arg(long, value_enum, default_value_t = Model::Loggops)]
    model: Model,
    /// Latency L in ns [default: 2500]
    #[arg(short = 'L', value_name = "NS", value_parser = parse_ns)]
    latency: Option<Time>,
    /// CPU time o for a message in ns [default: 1500]
    #[arg(short = 'o', value_name = "NS", value_parser = parse_ns)]
    overhead: Option<Time>,
    /// NIC time g for a message in ns [default: 1000]
    #[arg(short = 'g', value_name = "NS", value_parser = parse_ns)]
    gap: Option<Time>,
    /// NIC time G for a byte in ns [default: 6]
    #[arg(short = 'G', value_name = "NS", value_parser = parse_ns_per_byte)]
    gap_per_byte: Option<Rate>,
    /// CPU time O for a byte in ns [default: 0]
    #[arg(short = 'O', value_name = "NS", value_parser = parse_ns_per_byte)]
    overhead_per_byte: Option<Rate>,
    /// Largest message S in bytes that is sent without waiting for its receive [default: 65535]
    #[arg(short = 'S', value_name = "BYTES")]
    eager: Option<u64>,
    /// Take o, g, G and the longest latency of the network from this machine, a name or a TOML file; options above rule
    #[arg(long, value_name = "NAME|FILE")]
    machine: Option<String>,
    /// Change a parameter of the machine, such as network.g_ns=5
    #[arg(long, value_name = "KEY=VALUE", requires = "machine")]
    set: Vec<String>,
    /// Do as LogGOPSim does where we differ; may be given several times
    #[arg(long, value_enum, value_name = "WHAT")]
    compat: Vec<Compat>,
    /// Write the results as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Model {
    /// LogGP with CPU time a byte (O) and rendezvous above a size (S)
    Loggops,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Compat {
    /// What depends on an operation of another CPU of its rank starts when its own CPU is free, even before that ends
    CrossCpu,
}

pub fn run(arguments: &Arguments) -> Result<(), GoalError> {
    let schedule = files::load(&arguments.file)?;
    let Model::Loggops = arguments.model;
    let parameters = parameters(arguments, &schedule)?;
    let options = Options { ignore_other_cpus: arguments.compat.contains(&Compat::CrossCpu) };
    let start = cpu_time();
    let outcome = execute(&schedule, &parameters, &options);
    let cpu_time = cpu_time() - start;
    let outcome = outcome.map_err(|error| GoalError::Run { file: arguments.file.clone(), error })?;
    if let Some(&first) = outcome.unreceived.first() {
        let (count, first) = (outcome.unreceived.len(), schedule.describe(first));
        eprintln!("spinkit goal: warning: {count} messages are never received, first that of {first}");
    }
    if let Some(path) = &arguments.json {
        files::write_whole(path, |out| out.write_all(report(&schedule, &parameters, &outcome, cpu_time).as_bytes()))?;
    }
    if arguments.json.as_deref() != Some(Path::new("-")) {
        let seconds = cpu_time.as_secs_f64();
        println!("ranks    {}", schedule.ranks());
        println!("events   {}", outcome.events);
        println!("end      {}", outcome.end());
        println!("CPU      {seconds:.3} s, {:.1} million events/s", outcome.events as f64 / seconds.max(1e-9) / 1e6);
    }
    Ok(())
}

fn parameters(arguments: &Arguments, schedule: &Schedule) -> Result<LogGops, GoalError> {
    let mut parameters = match &arguments.machine {
        None => LogGops::default(),
        Some(name) => {
            let machine = Machine::load(name, &[Sdk::find()?.home.join("machines")], &arguments.set)?;
            let nodes = schedule.ranks() as usize;
            // The model has one latency: that between the first and the last node, which no pair exceeds.
            let latency = Network::new(&machine.network, nodes)?.latency(0, nodes - 1);
            LogGops::of_machine(&machine, latency)
        }
    };
    let given = |value: &mut Time, option: Option<Time>| *value = option.unwrap_or(*value);
    given(&mut parameters.latency, arguments.latency);
    given(&mut parameters.overhead, arguments.overhead);
    given(&mut parameters.gap, arguments.gap);
    parameters.gap_per_byte = arguments.gap_per_byte.unwrap_or(parameters.gap_per_byte);
    parameters.overhead_per_byte = arguments.overhead_per_byte.unwrap_or(parameters.overhead_per_byte);
    parameters.eager = arguments.eager.unwrap_or(parameters.eager);
    Ok(parameters)
}

fn report(schedule: &Schedule, parameters: &LogGops, outcome: &Outcome, cpu_time: Duration) -> String {
    let per_byte = |rate: Rate| rate.as_fs_per_byte() as f64 / 1e6;
    let report = json!({
        "model": "loggops",
        "parameters": {
            "L_ns": json_ns(parameters.latency),
            "o_ns": json_ns(parameters.overhead),
            "g_ns": json_ns(parameters.gap),
            "G_ns_per_byte": per_byte(parameters.gap_per_byte),
            "O_ns_per_byte": per_byte(parameters.overhead_per_byte),
            "S_bytes": parameters.eager,
        },
        "ranks": schedule.ranks(),
        "operations": schedule.len(),
        "events": outcome.events,
        "unreceived_messages": outcome.unreceived.len(),
        "max_end_ns": json_ns(outcome.end()),
        "end_ns": outcome.ends.iter().copied().map(json_ns).collect::<Vec<_>>(),
        "cpu_seconds": cpu_time.as_secs_f64(),
    });
    format!("{report}\n")
}

/// CPU time of this process so far.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for the call, which every kernel that runs this has.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}
