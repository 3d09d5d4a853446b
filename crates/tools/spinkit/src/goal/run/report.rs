// SPDX-License-Identifier: Apache-2.0
//! Report of a run: the members common to all models, then those of this run's model.

use std::fs;
use std::io::Write;
use std::path::Path;

use goal::Schedule;
use output::Output;
use serde_json::{Map, Value, json};
use sim::Time;

use super::super::error::GoalError;
use super::super::files;
use super::common::{Common, Took};
use command::units::json_ns;

/// Results of a run.
#[derive(Debug)]
pub struct Report {
    /// Name of the model.
    pub model: &'static str,
    /// JSON object: name with unit, and value.
    pub parameters: Value,
    /// Number of events, as counted by the model.
    pub events: u64,
    /// End of each rank.
    pub ends: Vec<Time>,
    /// Duration of the execution, without reading the schedule.
    pub took: Took,
    /// Further members of the JSON object.
    pub more: Map<String, Value>,
    /// Further lines for the terminal: name and value.
    pub lines: Vec<(&'static str, String)>,
}

impl Report {
    /// Writes the JSON to `output`, if requested, and prints a table unless standard output has the JSON.
    ///
    /// # Errors
    /// When writing fails.
    pub fn deliver(self, schedule: &Schedule, common: &Common, output: Option<Output>) -> Result<(), GoalError> {
        let json = common.json.as_deref();
        let end = self.ends.iter().copied().max().unwrap_or_default();
        let (cpu, wall) = (self.took.cpu.as_secs_f64(), self.took.wall.as_secs_f64());
        if json != Some(Path::new("-")) {
            let rate = |seconds: f64| self.events as f64 / seconds.max(1e-9) / 1e6;
            let head = [
                ("ranks", schedule.ranks().to_string()),
                ("events", self.events.to_string()),
                ("end", end.to_string()),
                ("CPU", format!("{cpu:.3} s, {:.1} million events/s", rate(cpu))),
                ("clock", format!("{wall:.3} s, {:.1} million events/s", rate(wall))),
            ];
            files::print(|out| {
                head.iter().chain(&self.lines).try_for_each(|(name, value)| writeln!(out, "{name:8} {value}"))
            })?;
        }
        let (Some(path), Some(output)) = (json, output) else { return Ok(()) };
        // Measured before the report, which must not count.
        let peak_memory = peak_memory();
        let mut report = self.more;
        let head = json!({
            "model": self.model,
            "parameters": self.parameters,
            "ranks": schedule.ranks(),
            "operations": schedule.len(),
            "events": self.events,
            "max_end_ns": json_ns(end),
            "end_ns": self.ends.into_iter().map(json_ns).collect::<Vec<_>>(),
            "cpu_seconds": cpu,
            "wall_seconds": wall,
            "peak_memory_bytes": peak_memory,
        });
        if let Value::Object(head) = head {
            report.extend(head);
        }
        let report = Value::Object(report);
        let write = || output::complete(output, path, |out| writeln!(out, "{report}"));
        common.writing(path, write).map_err(GoalError::write(path))
    }
}

/// Warns on standard error if messages were never received.
pub fn warn_of_lost(schedule: &Schedule, unreceived: &[u32]) {
    if let Some(&first) = unreceived.first() {
        let (count, first) = (unreceived.len(), schedule.describe(first));
        eprintln!("spinkit goal: warning: {count} messages are never received, first that of {first}");
    }
}

/// Returns this process's peak resident memory in bytes, mapped files included; `None` where the system does not report
/// it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.strip_suffix("kB")?.trim().parse().ok())?;
    Some(kib * 1024)
}
