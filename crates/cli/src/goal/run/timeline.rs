//! `--trace`: what CPUs and NICs of ranks did, for Perfetto.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use goal::Schedule;
use goal::loggops::Outcome;
use sim::Time;
use sim::trace::{SliceExtras, Trace, TrackId};

use super::super::GoalError;
use super::super::units::parse_ns;

#[derive(Debug, clap::Args)]
#[group(id = "timeline")]
pub struct Arguments {
    /// Write a timeline for Perfetto: CPU and NIC of each rank, arrows from send to receive
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Only what is going on from this time on
    #[arg(long, value_name = "NS", value_parser = parse_ns, default_value = "0", requires = "trace")]
    trace_from: Time,
    /// Only what is going on up to this time
    #[arg(long, value_name = "NS", value_parser = parse_ns, requires = "trace")]
    trace_to: Option<Time>,
    /// Only these ranks: A-B, or A
    #[arg(long, value_name = "A-B", value_parser = parse_ranks, requires = "trace")]
    trace_ranks: Option<(u32, u32)>,
}

fn parse_ranks(text: &str) -> Result<(u32, u32), String> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last => Ok((first, last)),
        _ => Err("is like 0-15".into()),
    }
}

/// Rows of a rank: for each CPU, and for each NIC its sending and receiving side.
struct Rows {
    cpus: Vec<TrackId>,
    nics: Vec<[TrackId; 2]>,
}

impl Arguments {
    /// What to write, if asked for.
    pub fn file(&self) -> Option<&Path> {
        self.trace.as_deref()
    }

    /// Writes the file.
    pub fn write(&self, path: &Path, schedule: &Schedule, outcome: &Outcome) -> Result<(), GoalError> {
        let failed = |error| GoalError::Write { path: path.to_owned(), error };
        let mut trace = Trace::to_file(path).map_err(failed)?;
        let (from, to) = (self.trace_from, self.trace_to.unwrap_or(Time::MAX));
        let (first, last) = self.trace_ranks.unwrap_or((0, u32::MAX));
        let mut rows = BTreeMap::new();
        for rank in first..=last.min(schedule.ranks() - 1) {
            let process = trace.process(&format!("rank {rank}"));
            let cpus = (0..schedule.cpus()).map(|cpu| trace.track(process, &format!("CPU {cpu}"))).collect();
            let nics = (0..schedule.nics())
                .map(|nic| ["out", "in"].map(|side| trace.track(process, &format!("NIC {nic} {side}"))))
                .collect();
            rows.insert(rank, Rows { cpus, nics });
        }
        for span in &outcome.spans {
            let Some(rows) = rows.get(&span.rank) else { continue };
            if span.start > to || span.cpu_end.max(span.nic_end) < from {
                continue;
            }
            let (cpu, nic) = schedule.resources(span.op);
            let action = schedule.action(span.op).to_string();
            let is_calc = action.starts_with("calc");
            let name =
                if span.is_message { format!("receive from {}: {action}", schedule.rank(span.op)) } else { action };
            let flow = (!is_calc).then_some(u64::from(span.op) + 1);
            let (flow_in, flow_out) = if span.is_message { (flow, None) } else { (None, flow) };
            let extras = SliceExtras { flow_in, flow_out, args: &[] };
            trace.slice(rows.cpus[cpu], &name, span.start, span.cpu_end, extras);
            if !is_calc {
                let side = usize::from(span.is_message);
                trace.slice(rows.nics[nic][side], &name, span.start, span.nic_end, SliceExtras::default());
            }
        }
        trace.finish().map_err(failed)
    }
}
