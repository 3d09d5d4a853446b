// SPDX-License-Identifier: Apache-2.0
//! `--fail`, `--kill-card` and `--drop` of `spinrun`

use cluster::{Death, Failures, Loss, LossyPlace, Victim};
use serde_json::{Value, json};
use sim::Time;

use crate::units::parse_time;

/// Options about failures.
#[derive(Debug, clap::Args)]
#[group(id = "failure_options")]
#[command(next_help_heading = "Failures")]
pub struct Arguments {
    /// Kill the process of RANK at this simulated time, such as 3@5us; repeat it or separate several by commas
    #[arg(long, value_name = "RANK@TIME", value_delimiter = ',', value_parser = parse_death)]
    #[arg(
        long_help = "Kill the process of RANK at this simulated time, such as 3@5us; repeat it or separate several by commas.\n\n\
        TIME is in ns, or has a unit: ns, us, ms, s. The rank's card closes its interfaces and goes on: messages to it are \
        refused. Barriers do not wait for the rank any more, and its status does not count for spinrun's."
    )]
    fail: Vec<(u32, Time)>,
    /// Stop the card of RANK at this simulated time, such as 3@5us; repeat it or separate several by commas
    #[arg(long, value_name = "RANK@TIME", value_delimiter = ',', value_parser = parse_death)]
    #[arg(
        long_help = "Stop the card of RANK at this simulated time, such as 3@5us; repeat it or separate several by commas.\n\n\
        Nothing leaves the card and nothing reaches it any more, and the rank's calls return PTL_FAIL. Other cards send \
        their packets again and give up after network.retries retries, network.retransmit_ns apart: what waits for the card \
        then fails with PTL_NI_UNDELIVERABLE. The rank's status does not count for spinrun's."
    )]
    kill_card: Vec<(u32, Time)>,
    /// Lose packets on LINK with this probability, such as 0-3:0.01 or *:0.01; repeat it or separate several by commas
    #[arg(long, value_name = "LINK:RATE", value_delimiter = ',', value_parser = parse_losses)]
    #[arg(
        long_help = "Lose packets on LINK with this probability, such as 0-3:0.01 or *:0.01; repeat it or separate several by \
        commas.\n\n\
        LINK is * (all paths), A>B (the path from rank A to rank B), A-B (both ways; A or B may be *), or, with \
        network.model=fabric, FROM>TO with the names of a link's ends as --json has them, such as \"host 0>switch 0 of level \
        1\". A card sends a lost packet again after network.retransmit_ns, and gives up after network.retries retries."
    )]
    drop: Vec<Losses>,
    /// Seed of --drop: runs with the same seed lose the same packets
    #[arg(long, value_name = "N", default_value_t = 1, requires = "drop")]
    failure_seed: u64,
}

/// Value of `--drop`.
#[derive(Clone, Debug, PartialEq)]
struct Losses(Vec<Loss>);

impl Arguments {
    /// Returns true if ranks or cards die.
    pub fn kills(&self) -> bool {
        !self.fail.is_empty() || !self.kill_card.is_empty()
    }

    /// Returns the failures to inject; `None` if nothing fails.
    pub fn failures(&self) -> Option<Failures> {
        self.with_deaths(Vec::new())
    }

    /// Returns the failures to inject, with further deaths; `None` if nothing fails.
    pub fn with_deaths(&self, further: Vec<Death>) -> Option<Failures> {
        let dies = |victim| move |&(rank, at): &(u32, Time)| Death { rank, at, victim };
        let processes = self.fail.iter().map(dies(Victim::Process));
        let cards = self.kill_card.iter().map(dies(Victim::Card));
        let deaths: Vec<Death> = processes.chain(cards).chain(further).collect();
        let losses: Vec<Loss> = self.drop.iter().flat_map(|Losses(losses)| losses.clone()).collect();
        let is_any = !deaths.is_empty() || !losses.is_empty();
        is_any.then_some(Failures { deaths, losses, seed: self.failure_seed })
    }
}

/// Parses `RANK@TIME`.
///
/// # Errors
/// The reason for which it is none.
pub fn parse_death(text: &str) -> Result<(u32, Time), String> {
    let (rank, at) = text.split_once('@').ok_or("is like 3@5us")?;
    Ok((rank.parse().map_err(|_| "the part before @ is a rank")?, parse_time(at)?))
}

/// Parses `LINK:RATE`.
fn parse_losses(text: &str) -> Result<Losses, String> {
    let (place, rate) = text.rsplit_once(':').ok_or("is like 0-3:0.01")?;
    let rate: f64 = rate.parse().map_err(|_| "the rate is a number from 0 to 1")?;
    if !(0.0..=1.0).contains(&rate) {
        return Err("the rate is a number from 0 to 1".into());
    }
    let places = parse_places(place)?;
    Ok(Losses(places.into_iter().map(|place| Loss { place, rate }).collect()))
}

fn parse_places(text: &str) -> Result<Vec<LossyPlace>, String> {
    let end = |text: &str| match text {
        "*" => Some(None),
        rank => rank.parse().ok().map(Some),
    };
    if text == "*" {
        return Ok(vec![LossyPlace::Path { from: None, to: None }]);
    }
    if let Some((from, to)) = text.split_once('>') {
        return Ok(vec![match (end(from), end(to)) {
            (Some(from), Some(to)) => LossyPlace::Path { from, to },
            _ => LossyPlace::Link { from: from.to_owned(), to: to.to_owned() },
        }]);
    }
    match text.split_once('-').map(|(one, other)| (end(one), end(other))) {
        Some((Some(one), Some(other))) => {
            Ok(vec![LossyPlace::Path { from: one, to: other }, LossyPlace::Path { from: other, to: one }])
        }
        _ => Err("the link is *, A-B, A>B, or FROM>TO with the names of a fabric's link".into()),
    }
}

/// Describes failures for the report. `lost` is the number of packets lost on each link.
pub fn describe(failures: &Failures, lost: &[u64]) -> Value {
    let deaths = failures.deaths.iter().map(|Death { rank, at, victim }| {
        let victim = match victim {
            Victim::Process => "process",
            Victim::Card => "card",
        };
        json!({ "rank": rank, "at_ps": at.as_ps(), "victim": victim })
    });
    let losses = failures.losses.iter().zip(lost).map(|(Loss { place, rate }, lost)| match place {
        LossyPlace::Path { from, to } => json!({ "from": from, "to": to, "rate": rate, "packets": lost }),
        LossyPlace::Link { from, to } => json!({ "link": [from, to], "rate": rate, "packets": lost }),
    });
    json!({ "seed": failures.seed, "deaths": deaths.collect::<Vec<_>>(), "losses": losses.collect::<Vec<_>>() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(from: impl Into<Option<u32>>, to: impl Into<Option<u32>>) -> LossyPlace {
        LossyPlace::Path { from: from.into(), to: to.into() }
    }

    #[test]
    fn deaths_have_a_rank_and_a_time() {
        assert_eq!(parse_death("3@5us"), Ok((3, Time::from_ns(5000))));
        assert_eq!(parse_death("0@12.5"), Ok((0, Time::from_ps(12_500))));
        for (text, error) in [
            ("3", "is like 3@5us"),
            ("x@5", "the part before @ is a rank"),
            ("3@y", "y is no unit of time: ns, us, ms or s"),
        ] {
            assert_eq!(parse_death(text), Err(error.to_owned()), "{text}");
        }
    }

    #[test]
    fn losses_have_a_link_and_a_rate() {
        let link = LossyPlace::Link { from: "host 0".into(), to: "switch 0 of level 1".into() };
        for (text, places, rate) in [
            ("*:0.01", vec![path(None, None)], 0.01),
            ("0>3:1", vec![path(0, 3)], 1.0),
            ("0-3:0", vec![path(0, 3), path(3, 0)], 0.0),
            ("*>3:0.5", vec![path(None, 3)], 0.5),
            ("host 0>switch 0 of level 1:0.25", vec![link], 0.25),
        ] {
            let losses = places.into_iter().map(|place| Loss { place, rate }).collect();
            assert_eq!(parse_losses(text), Ok(Losses(losses)), "{text}");
        }
        for (text, error) in [
            ("0-3", "is like 0-3:0.01"),
            ("0-3:2", "the rate is a number from 0 to 1"),
            ("0-3:NaN", "the rate is a number from 0 to 1"),
            ("0-3:x", "the rate is a number from 0 to 1"),
            ("0+3:0.5", "the link is *, A-B, A>B, or FROM>TO with the names of a fabric's link"),
            (":0.5", "the link is *, A-B, A>B, or FROM>TO with the names of a fabric's link"),
        ] {
            assert_eq!(parse_losses(text), Err(error.to_owned()), "{text}");
        }
    }
}
