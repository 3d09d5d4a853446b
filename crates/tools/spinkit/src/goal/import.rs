// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal import`

use std::fmt::Display;
use std::fs;
use std::io::{Read as _, Write};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use command::units;
use mpi_trace::{Import, Options, RankReport, Wildcards};
use output::Output;
use serde_json::{Value, json};
use workload::{chakra, connections};

use super::error::GoalError;
use super::files::{self, Format};

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Any {
    /// The simulation decides which messages they receive
    Keep,
    /// They receive the message that they received when the program was traced, if the trace contains it
    Resolve,
}

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Traces: a folder with one file a rank (rank-N.spintrace of `spinkit trace`, liballprof's of any name, PREFIX.N.et of
    /// Chakra), the file of rank 0, PREFIX of Chakra's files, or a connection matrix of htsim (.cm)
    #[arg(value_name = "TRACES")]
    folder: PathBuf,
    /// Schedule to write; without this option the traces are only read
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Format to write [default: binary for .bin, else text]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Factor for the length of all computation
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = parse_scale)]
    calc_scale: f64,
    /// Algorithms of collectives, such as allreduce=ring,bcast=binomial [default: depends on the size; Chakra: rings]; Chakra
    /// also has channels, chunk, protocol and node, such as allreduce=hierarchical,node=8,channels=4
    #[arg(long, value_name = "COLLECTIVE=ALGORITHM,…")]
    collectives: Option<String>,
    /// Treatment of receives from any source or with any tag
    #[arg(long, value_enum, default_value_t = Any::Resolve)]
    wildcards: Any,
    /// Number of copies of the program; collectives on all ranks span all copies
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    extrapolate: u32,
    /// Groups of ranks of a Chakra workload, as ASTRA-sim reads them: {"1": [0, 1], …}
    #[arg(long, value_name = "FILE", help_heading = "Chakra")]
    groups: Option<PathBuf>,
    /// Sides of the grid of ranks, for collectives of some dimensions; the first is that of neighbours
    #[arg(long, value_name = "AxB", value_parser = units::parse_dims, help_heading = "Chakra")]
    dims: Option<units::Dims>,
    /// Peak rate of an accelerator in 10^12 operations/s; it computes by this rate, or by that of its memory if that takes
    /// longer [default: recorded durations]
    #[arg(long, value_name = "X", value_parser = parse_rate, requires = "memory_gbps", help_heading = "Chakra")]
    peak_tflops: Option<f64>,
    /// Rate of an accelerator's memory in 10^9 bytes/s
    #[arg(long, value_name = "X", value_parser = parse_rate, requires = "peak_tflops", help_heading = "Chakra")]
    memory_gbps: Option<f64>,
    /// Also write what each rank did, as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(scale) if (0.0..=1e9).contains(&scale) => Ok(scale),
        _ => Err("is a number from 0 to 1e9".into()),
    }
}

fn parse_rate(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(rate) if (1e-6..=1e12).contains(&rate) => Ok(rate),
        _ => Err("is a number from 1e-6 to 1e12".into()),
    }
}

/// Parses `--collectives`, whose choices depend on the traces.
fn collectives<T: FromStr<Err: Display> + Default>(text: Option<&str>) -> Result<T, GoalError> {
    let wrong = |error: T::Err| GoalError::Usage(format!("--collectives: {error}"));
    text.map_or(Ok(T::default()), |text| text.parse().map_err(wrong))
}

/// Executes the command.
pub fn run(arguments: Arguments) -> Result<(), GoalError> {
    let json = arguments.json.as_deref();
    let report = json.map(|path| Output::create(path).map_err(GoalError::write(path))).transpose()?;
    let (contents, warnings) = match Traces::find(&arguments.folder)? {
        Traces::Chakra(files) => of_chakra(&arguments, &files)?,
        Traces::Connections(text) => of_connections(&arguments, &text)?,
        Traces::Mpi => of_mpi(&arguments)?,
    };
    for warning in &warnings {
        eprintln!("spinkit goal: warning: {warning}");
    }
    if let (Some(path), Some(report)) = (json, report) {
        let mut value = contents;
        value["warnings"] = json!(warnings);
        let write = |out: &mut Output| writeln!(out, "{value:#}");
        output::complete(report, path, write).map_err(GoalError::write(path))?;
    }
    Ok(())
}

/// Kind of traces.
enum Traces {
    Mpi,
    Chakra(chakra::Files),
    Connections(String),
}

impl Traces {
    fn find(path: &Path) -> Result<Traces, GoalError> {
        if let Some(files) = chakra::Files::find(path)? {
            return Ok(Traces::Chakra(files));
        }
        let mut start = String::new();
        if path.is_file()
            && let Ok(file) = fs::File::open(path)
            && file.take(4096).read_to_string(&mut start).is_ok()
            && connections::is_matrix(&start)
        {
            let failed = |error| GoalError::Import(mpi_trace::ImportError::Io { path: path.into(), error });
            return fs::read_to_string(path).map(Traces::Connections).map_err(failed);
        }
        Ok(Traces::Mpi)
    }
}

fn save(arguments: &Arguments, schedule: &goal::Schedule) -> Result<(), GoalError> {
    let Some(out) = &arguments.out else { return Ok(()) };
    files::save(schedule, out, arguments.format.or_else(|| Format::of(out)).unwrap_or(Format::Text))
}

/// Refuses options that have no meaning for these traces.
fn refuse(traces: &str, options: &[(&str, bool)]) -> Result<(), GoalError> {
    match options.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(GoalError::Usage(format!("{name} has no meaning for {traces}: leave it out"))),
        None => Ok(()),
    }
}

fn of_chakra(arguments: &Arguments, files: &chakra::Files) -> Result<(Value, Vec<String>), GoalError> {
    refuse("Chakra traces", &[("--extrapolate", arguments.extrapolate > 1)])?;
    let rates = arguments.peak_tflops.zip(arguments.memory_gbps);
    let options = chakra::Options {
        collectives: collectives(arguments.collectives.as_deref())?,
        calc_scale: arguments.calc_scale,
        groups: arguments.groups.clone(),
        dims: arguments.dims.as_ref().map_or(Vec::new(), |dims| dims.0.clone()),
        roofline: rates.map(|(tflops, gbps)| chakra::Roofline { operations_per_ns: tflops * 1e3, bytes_per_ns: gbps }),
    };
    let import = chakra::import(files, &options)?;
    save(arguments, &import.schedule)?;
    let of_rank = |rank: &chakra::RankReport| {
        json!({
            "nodes": rank.nodes,
            "messages": rank.messages,
            "message_bytes": rank.message_bytes,
            "collectives": rank.collectives,
            "collective_bytes": rank.collective_bytes,
            "compute_ns": rank.compute_ns,
        })
    };
    Ok((json!({ "ranks": import.ranks.iter().map(of_rank).collect::<Vec<_>>() }), import.warnings))
}

fn refuse_chakra(arguments: &Arguments, traces: &str) -> Result<(), GoalError> {
    refuse(
        traces,
        &[
            ("--groups", arguments.groups.is_some()),
            ("--dims", arguments.dims.is_some()),
            ("--peak-tflops", arguments.peak_tflops.is_some()),
        ],
    )
}

fn of_connections(arguments: &Arguments, text: &str) -> Result<(Value, Vec<String>), GoalError> {
    let traces = "connection matrices";
    refuse_chakra(arguments, traces)?;
    refuse(
        traces,
        &[("--extrapolate", arguments.extrapolate > 1), ("--collectives", arguments.collectives.is_some())],
    )?;
    let wrong = |error| GoalError::Connections { file: arguments.folder.clone(), error };
    let import = connections::import(text).map_err(wrong)?;
    save(arguments, &import.schedule)?;
    let counts = json!({
        "ranks": import.schedule.ranks(),
        "connections": import.connections,
        "bytes": u64::try_from(import.bytes).unwrap_or(u64::MAX),
    });
    Ok((counts, import.warnings))
}

fn of_mpi(arguments: &Arguments) -> Result<(Value, Vec<String>), GoalError> {
    refuse_chakra(arguments, "traces of MPI programs")?;
    let collectives = collectives(arguments.collectives.as_deref())?;
    let (ranks, warnings) = match &arguments.out {
        None => mpi_trace::report(&arguments.folder)?,
        Some(_) => {
            let options = Options {
                calc_scale: arguments.calc_scale,
                collectives,
                wildcards: match arguments.wildcards {
                    Any::Keep => Wildcards::Keep,
                    Any::Resolve => Wildcards::Resolve,
                },
                extrapolate: arguments.extrapolate,
            };
            let Import { schedule, ranks, warnings } = mpi_trace::import(&arguments.folder, &options)?;
            save(arguments, &schedule)?;
            (ranks, warnings)
        }
    };
    Ok((json!({ "ranks": ranks.iter().map(of_rank).collect::<Vec<_>>() }), warnings))
}

fn of_rank(rank: &RankReport) -> Value {
    json!({
        "calls": rank.calls,
        "messages": rank.messages,
        "message_bytes": rank.message_bytes,
        "collectives": rank.collectives,
        "collective_bytes": rank.collective_bytes,
        "mpi_ns": rank.mpi_ns,
        "compute_ns": rank.compute_ns,
        "total_ns": rank.total_ns,
    })
}
