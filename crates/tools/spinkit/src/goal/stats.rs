// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal stats`

use std::collections::BTreeMap;
use std::path::PathBuf;

use goal::{Action, Schedule};
use serde::Serialize;

use super::error::GoalError;
use super::files;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The schedule
    file: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Counts of a schedule.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
struct Stats {
    ranks: u32,
    cpus: usize,
    nics: usize,
    operations: usize,
    dependencies: usize,
    calcs: u64,
    sends: u64,
    recvs: u64,
    wildcard_recvs: u64,
    card_operations: u64,
    calc_ns: u128,
    sent_bytes: u128,
    least_operations_of_a_rank: u32,
    most_operations_of_a_rank: u32,
    /// Number of messages by size class: the smallest power of two that is not below their size in bytes.
    messages_up_to_bytes: BTreeMap<u64, u64>,
}

impl Stats {
    fn of(schedule: &Schedule) -> Stats {
        let of_rank = || (0..schedule.ranks()).map(|rank| schedule.of_rank(rank).len() as u32);
        let mut stats = Stats {
            ranks: schedule.ranks(),
            cpus: schedule.cpus(),
            nics: schedule.nics(),
            operations: schedule.len(),
            dependencies: schedule.dependencies(),
            least_operations_of_a_rank: of_rank().min().unwrap_or(0),
            most_operations_of_a_rank: of_rank().max().unwrap_or(0),
            ..Stats::default()
        };
        for op in 0..schedule.len() as u32 {
            match schedule.action(op) {
                Action::Calc(ns) => {
                    stats.calcs += 1;
                    stats.calc_ns += u128::from(ns);
                }
                Action::Send { bytes, .. } => {
                    stats.sends += 1;
                    stats.sent_bytes += u128::from(bytes);
                    *stats.messages_up_to_bytes.entry(bytes.next_power_of_two()).or_default() += 1;
                }
                Action::Recv { from, tag, .. } => {
                    stats.recvs += 1;
                    stats.wildcard_recvs += u64::from(from.is_none() || tag.is_none());
                }
                Action::Nic(_) => stats.card_operations += 1,
            }
        }
        stats
    }
}

/// Executes the command.
pub fn run(arguments: &Arguments) -> Result<(), GoalError> {
    let stats = Stats::of(&files::load(&arguments.file)?);
    let json = serde_json::to_value(&stats).expect("numbers with names");
    files::print(|out| {
        use std::io::Write;
        if arguments.json {
            return writeln!(out, "{json}");
        }
        for (name, value) in json.as_object().into_iter().flatten() {
            match value.as_object() {
                None => writeln!(out, "{name:27} {value}")?,
                Some(sizes) => {
                    for size in stats.messages_up_to_bytes.keys() {
                        writeln!(out, "{:27} {}", format!("messages_up_to_{size}_bytes"), sizes[&size.to_string()])?;
                    }
                }
            }
        }
        Ok(())
    })
}
