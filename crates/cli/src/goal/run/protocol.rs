//! `--model protocol`

use goal::Schedule;
use goal::protocol::{Outcome, Parameters, run as execute};
use serde_json::json;
use sim::Time;

use super::super::GoalError;
use super::super::units::{json_ns, parse_ns};
use super::report::{Report, Took, warn_of_lost};
use super::{Common, first_given, loggops, noise};
use crate::card::Card;

/// The sPIN paper's.
const MACHINE: &str = "sc17-int";

#[derive(Debug, clap::Args)]
#[group(id = "protocol")]
#[command(next_help_heading = "Protocols (--model protocol; also -S; the machine is sc17-int by default)")]
pub struct Arguments {
    /// Who matches, copies and answers [default: the machine's card]
    #[arg(long, value_enum)]
    card: Option<Card>,
    /// Time of the header handler that gets the data of a long message in ns [default: that of the library's handler]
    #[arg(long, value_name = "NS", value_parser = parse_ns)]
    handler_time: Option<Time>,
}

impl Arguments {
    /// An option that was given: no other model has it.
    pub fn given(&self) -> Option<&'static str> {
        first_given([("--card", self.card.is_some()), ("--handler-time", self.handler_time.is_some())])
    }
}

pub fn run(
    schedule: &Schedule,
    common: &Common,
    cpu: &loggops::Arguments,
    arguments: &Arguments,
) -> Result<Report, GoalError> {
    if let Some(name) = cpu.but_eager().or(cpu.timeline.given()) {
        return Err(GoalError::Usage(format!("{name} is not for --model protocol")));
    }
    let machine = common.machine_or(MACHINE)?;
    let mut parameters = Parameters::new(&machine, cpu.eager());
    parameters.noise = cpu.noise.noise();
    parameters.handler = arguments.handler_time.unwrap_or(parameters.handler);
    parameters.card = arguments.card.map_or(parameters.card, Card::into);
    let (outcome, took) = common.timed(schedule, &parameters.progress, || execute(schedule, &parameters));
    let outcome = outcome.map_err(|error| GoalError::run(&common.file, error))?;
    warn_of_lost(schedule, &outcome.unreceived);
    Ok(report(schedule, &parameters, outcome, took))
}

fn report(schedule: &Schedule, parameters: &Parameters, outcome: Outcome, took: Took) -> Report {
    let card = parameters.card.name();
    let all = outcome.end() * u64::from(schedule.ranks());
    let percent = |part: Time| 100.0 * part.as_ns_f64() / all.as_ns_f64().max(f64::MIN_POSITIVE);
    let details = &outcome.details;
    let shares = &details.shares;
    let more = [
        ("messages", json!(details.messages)),
        ("long_messages", json!(details.long)),
        ("unexpected_messages", json!(details.unexpected)),
        ("copied_bytes", json!(details.copied)),
        ("unreceived_messages", json!(outcome.unreceived.len())),
        (
            "cpu_time_percent",
            json!({
                "compute": percent(shares.compute),
                "point_to_point": percent(shares.point_to_point),
                "collective": percent(shares.collective),
            }),
        ),
    ];
    let lines = vec![
        ("card", card.to_owned()),
        ("messages", format!("{} point to point, {} of them long", details.messages, details.long)),
        ("", format!("{} before their receive, {} bytes copied", details.unexpected, details.copied)),
        (
            "time",
            format!(
                "{:.1} % computation, {:.1} % point to point, {:.1} % collective",
                percent(shares.compute),
                percent(shares.point_to_point),
                percent(shares.collective)
            ),
        ),
    ];
    Report {
        model: "protocol",
        parameters: json!({
            "card": card,
            "S_bytes": parameters.eager,
            "noise": noise::describe(parameters.noise.as_ref()),
            "o_ns": json_ns(parameters.machine.host.overhead),
            "handler_ns": json_ns(parameters.handler),
        }),
        events: outcome.events,
        ends: outcome.ends,
        took,
        more: more.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
        lines,
    }
}
