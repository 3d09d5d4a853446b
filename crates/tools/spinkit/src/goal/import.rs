// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal import`

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use mpi_trace::{Collectives, Import, Options, RankReport, Wildcards};
use output::Output;
use serde_json::json;

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
    /// Folder with one trace a rank: rank-N.spintrace of `spinkit trace`, or pmpi-trace-rank-N.txt of liballprof
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
    /// Algorithms of collectives, such as allreduce=ring,bcast=binomial [default: depends on the size]
    #[arg(long, value_name = "COLLECTIVE=ALGORITHM,…")]
    collectives: Option<Collectives>,
    /// Treatment of receives from any source or with any tag
    #[arg(long, value_enum, default_value_t = Any::Resolve)]
    wildcards: Any,
    /// Number of copies of the program; collectives on all ranks span all copies
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    extrapolate: u32,
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

/// Executes the command.
pub fn run(arguments: Arguments) -> Result<(), GoalError> {
    let json = arguments.json.as_deref();
    let report = json.map(|path| Output::create(path).map_err(GoalError::write(path))).transpose()?;
    let (ranks, warnings) = match &arguments.out {
        None => mpi_trace::report(&arguments.folder)?,
        Some(out) => {
            let options = Options {
                calc_scale: arguments.calc_scale,
                collectives: arguments.collectives.unwrap_or_default(),
                wildcards: match arguments.wildcards {
                    Any::Keep => Wildcards::Keep,
                    Any::Resolve => Wildcards::Resolve,
                },
                extrapolate: arguments.extrapolate,
            };
            let Import { schedule, ranks, warnings } = mpi_trace::import(&arguments.folder, &options)?;
            let format = arguments.format.or_else(|| Format::of(out)).unwrap_or(Format::Text);
            files::save(&schedule, out, format)?;
            (ranks, warnings)
        }
    };
    for warning in &warnings {
        eprintln!("spinkit goal: warning: {warning}");
    }
    if let (Some(path), Some(report)) = (json, report) {
        let ranks: Vec<_> = ranks.iter().map(of_rank).collect();
        let write = |out: &mut Output| writeln!(out, "{:#}", json!({ "ranks": ranks, "warnings": warnings }));
        output::complete(report, path, write).map_err(GoalError::write(path))?;
    }
    Ok(())
}

fn of_rank(rank: &RankReport) -> serde_json::Value {
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
