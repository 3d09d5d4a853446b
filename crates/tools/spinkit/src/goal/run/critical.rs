// SPDX-License-Identifier: Apache-2.0
//! `--critical-path`

use goal::Schedule;
use goal::loggops::{CriticalPath, LogGops, Outcome, Part, critical_path};
use serde_json::{Value, json};
use sim::Time;

use command::units::json_ns;

/// Number of steps shown on a terminal.
const SHOWN: usize = 20;

fn name(part: Part) -> &'static str {
    match part {
        Part::Compute => "compute",
        Part::Send => "send",
        Part::Flight => "flight",
        Part::Receive => "receive",
        Part::Nic => "nic",
    }
}

fn split(path: &CriticalPath) -> [(&'static str, Time); 6] {
    [
        ("compute", path.compute),
        ("overhead", path.overhead),
        ("latency", path.latency),
        ("gap", path.gap),
        ("bandwidth", path.bandwidth),
        ("waiting", path.waiting),
    ]
}

/// Returns the critical path as JSON and as lines for a terminal.
pub fn report(schedule: &Schedule, parameters: &LogGops, outcome: &Outcome) -> (Value, String) {
    let path = critical_path(schedule, parameters, outcome);
    let end = outcome.end().as_ps().max(1) as f64;
    let mut lines = format!("{} steps", path.steps.len());
    for (name, time) in split(&path) {
        lines += &format!("\n  {name:10} {:5.1} %  {time}", time.as_ps() as f64 / end * 100.0);
    }
    for step in path.steps.iter().rev().take(SHOWN).rev() {
        let what = schedule.describe(step.op);
        lines += &format!("\n  {:>20} {:8} rank {:<7} {what}", step.start.to_string(), name(step.part), step.rank);
    }
    let steps = path.steps.iter().map(|step| {
        json!({
            "rank": step.rank,
            "of_rank": schedule.rank(step.op),
            "operation": schedule.ordinal(step.op),
            "action": schedule.action(step.op).to_string(),
            "part": name(step.part),
            "start_ns": json_ns(step.start),
            "end_ns": json_ns(step.end),
        })
    });
    let steps: Vec<Value> = steps.collect();
    let mut json = json!({ "steps": steps });
    for (name, time) in split(&path) {
        json[format!("{name}_ns")] = json_ns(time);
    }
    (json, lines)
}
