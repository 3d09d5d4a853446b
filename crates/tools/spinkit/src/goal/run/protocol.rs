// SPDX-License-Identifier: Apache-2.0
//! `spinkit goal run protocol`

use goal::Schedule;
use goal::protocol::{Outcome, Parameters, run as execute};
use serde_json::json;
use sim::Time;

use super::super::error::GoalError;
use super::common::{Common, Eager, Network, Took};
use super::report::{Report, warn_of_lost};
use command::card::Card;
use command::noise;
use command::units::{json_ns, parse_ns};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    pub common: Common,
    #[command(flatten)]
    threshold: Eager,
    /// Kind of card, which decides whether the CPU, the card or a handler matches and answers messages [default: the
    /// machine's]
    #[arg(long, value_enum)]
    card: Option<Card>,
    /// Time in ns of the header handler that gets the data of a long message [default: the time of the library's handler]
    #[arg(long, value_name = "NS", value_parser = parse_ns)]
    handler_time: Option<Time>,
    #[command(flatten)]
    noise: noise::Arguments,
}

/// Executes a schedule.
pub fn run(schedule: &Schedule, arguments: &Arguments) -> Result<Report, GoalError> {
    let common = &arguments.common;
    let machine = common.machine_or_default(Network::Latency)?;
    let mut parameters = Parameters::new(&machine, arguments.threshold.eager);
    parameters.noise = arguments.noise.noise();
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
