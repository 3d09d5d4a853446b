// SPDX-License-Identifier: Apache-2.0
//! `--noise` of `spinrun` and `spinkit goal run`

use std::fs;
use std::ops::RangeInclusive;

use serde_json::{Value, json};
use sim::noise::{Detours, Noise, Trace};

use crate::units::{json_ns, parse_ns};

/// Options about interruptions of the CPUs.
#[derive(Debug, clap::Args)]
#[group(id = "noise_options")]
#[command(next_help_heading = "Noise")]
pub struct Arguments {
    /// Interruptions of the CPUs: periodic:PERIOD:LENGTH, poisson:INTERVAL:LENGTH (all in ns), or trace:FILE with lines of
    /// START LENGTH
    #[arg(long, value_name = "WHAT", value_parser = parse)]
    noise: Option<Detours>,
    /// Seed of the noise: runs with the same seed have the same noise
    #[arg(long, value_name = "N", default_value_t = 1, requires = "noise")]
    noise_seed: u64,
    /// Interrupt all CPUs at the same times
    #[arg(long, requires = "noise")]
    noise_coscheduled: bool,
    /// Interrupt only the CPUs of these ranks, such as 1 or 0-3,7
    #[arg(long, value_name = "RANKS", value_parser = parse_ranks, requires = "noise")]
    noise_ranks: Option<Ranks>,
}

/// Set of ranks as ranges of their numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Ranks(Vec<RangeInclusive<u32>>);

impl Arguments {
    /// Returns the noise, if any.
    pub fn noise(&self) -> Option<Noise> {
        let detours = self.noise.clone()?;
        let ranks = self.noise_ranks.clone().map(|Ranks(ranks)| ranks);
        Some(Noise { detours, seed: self.noise_seed, co_scheduled: self.noise_coscheduled, ranks })
    }
}

/// Parses `periodic:PERIOD:LENGTH`, `poisson:INTERVAL:LENGTH` or `trace:FILE`.
///
/// # Errors
/// When the text is not of this form; the reason is for the user.
pub fn parse(text: &str) -> Result<Detours, String> {
    let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
    if kind == "trace" {
        let content = fs::read_to_string(rest).map_err(|error| format!("cannot read {rest}: {error}"))?;
        return Trace::read(&content).map(Detours::Trace).map_err(|error| format!("{rest}: {error}"));
    }
    let times = || {
        let (one, other) = rest.split_once(':').ok_or(format!("{kind} needs two times in ns"))?;
        Ok::<_, String>((parse_ns(one)?, parse_ns(other)?))
    };
    let detours = match kind {
        "periodic" => times().map(|(period, length)| Detours::Periodic { period, length })?,
        "poisson" => times().map(|(interval, length)| Detours::Poisson { interval, length })?,
        _ => return Err("starts with periodic:, poisson: or trace:".into()),
    };
    detours.check().map_err(|error| error.to_string())?;
    Ok(detours)
}

/// Parses ranks and ranges of ranks, separated by commas.
fn parse_ranks(text: &str) -> Result<Ranks, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        (first <= last).then_some(first..=last)
    };
    let ranges: Option<Vec<_>> = text.split(',').map(range).collect();
    ranges.map(Ranks).ok_or_else(|| "is like 1 or 0-3,7".to_owned())
}

/// Describes noise for the report; null without noise.
pub fn describe(noise: Option<&Noise>) -> Value {
    let Some(noise) = noise else { return Value::Null };
    let mut described = describe_detours(&noise.detours);
    described["seed"] = noise.seed.into();
    described["coscheduled"] = noise.co_scheduled.into();
    if let Some(ranks) = &noise.ranks {
        described["ranks"] = ranks.iter().map(|range| [*range.start(), *range.end()]).collect::<Vec<_>>().into();
    }
    described
}

fn describe_detours(detours: &Detours) -> Value {
    match detours {
        Detours::Periodic { period, length } => json!({
            "kind": "periodic", "period_ns": json_ns(*period), "length_ns": json_ns(*length),
        }),
        Detours::Poisson { interval, length } => json!({
            "kind": "poisson", "interval_ns": json_ns(*interval), "length_ns": json_ns(*length),
        }),
        Detours::Trace(trace) => json!({
            "kind": "trace", "detours": trace.len(), "span_ns": json_ns(trace.span()),
        }),
    }
}

#[cfg(test)]
mod tests {
    use sim::Time;

    use super::*;

    #[test]
    fn noise_is_named_or_an_error() {
        let (period, length) = (Time::from_ns(1_000_000), Time::from_ps(25_500));
        assert_eq!(parse("periodic:1000000:25.5"), Ok(Detours::Periodic { period, length }));
        for (text, error) in [
            ("", "starts with periodic:, poisson: or trace:"),
            ("poisson:3", "poisson needs two times in ns"),
            ("periodic:x:1", "not a number of nanoseconds"),
            ("trace:/nowhere", "cannot read /nowhere: No such file or directory (os error 2)"),
        ] {
            assert_eq!(parse(text), Err(error.to_owned()), "{text}");
        }
        assert!(parse("periodic:25:25").unwrap_err().starts_with("detours must be shorter than their period"));
    }

    #[test]
    fn ranks_are_numbers_and_ranges() {
        assert_eq!(parse_ranks("1"), Ok(Ranks(vec![1..=1])));
        assert_eq!(parse_ranks("0-3,7"), Ok(Ranks(vec![0..=3, 7..=7])));
        for text in ["", "x", "3-1", "1,", "-1", "1-", "4294967296"] {
            assert_eq!(parse_ranks(text), Err("is like 1 or 0-3,7".to_owned()), "{text}");
        }
    }
}
