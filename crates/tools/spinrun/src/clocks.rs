// SPDX-License-Identifier: Apache-2.0
//! Clocks that ranks read: `--clock`, and the start date of simulated ones.

use std::ffi::OsString;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::ValueEnum;

/// Variable that makes `libsimclock.so` show simulated time on clocks too.
const SIMULATED_CLOCK: &str = "SPIN_SIMULATED_CLOCK";
/// Variable with the start date of simulated clocks, in seconds since 1970, for `libsimclock.so`.
const CLOCK_START: &str = "SPIN_CLOCK_START";
/// Variable with the frequency of the time-stamp counter in Hz, for `libsimclock.so`.
const TSC_HZ: &str = "SPIN_TSC_HZ";

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Clock {
    /// The time of this computer
    Real,
    /// Simulated time
    Simulated,
}

/// Start date of simulated clocks, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start(u64);

impl Start {
    /// Parses `now`, or seconds since 1970.
    ///
    /// # Errors
    /// A message with the allowed values.
    pub fn parse(text: &str) -> Result<Start, String> {
        /// Last second with a four-digit year: 9999.
        const LAST: u64 = 253_402_300_799;
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let seconds = if text == "now" { Some(now()) } else { text.parse().ok() };
        let seconds = seconds.filter(|seconds| *seconds <= LAST);
        seconds.map(Start).ok_or(format!("is `now`, or a number of seconds since 1970, at most {LAST}"))
    }
}

/// Returns the variables that configure the clocks of `libsimclock.so`.
pub fn variables(clock: Clock, start: Option<Start>) -> Vec<(OsString, OsString)> {
    if clock == Clock::Real {
        return Vec::new();
    }
    let start = start.map(|Start(seconds)| (CLOCK_START.into(), seconds.to_string().into()));
    let always = [(SIMULATED_CLOCK.into(), "1".into()), (TSC_HZ.into(), tsc_hz().to_string().into())];
    always.into_iter().chain(start).collect()
}

/// Returns the frequency of the simulated time-stamp counter in Hz: the one that the kernel reports for this computer's
/// first CPU, which programs use to convert ticks; 1 GHz if unknown.
fn tsc_hz() -> u64 {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let speed = text.lines().find_map(|line| line.strip_prefix("cpu MHz")?.split_once(':')?.1.trim().parse().ok());
    let speed = speed.filter(|mhz: &f64| (1.0..1e6).contains(mhz));
    speed.map_or(1_000_000_000, |mhz| (mhz * 1e6).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_is_now_or_a_number() {
        assert_eq!(Start::parse("0"), Ok(Start(0)));
        assert_eq!(Start::parse("1600000000"), Ok(Start(1_600_000_000)));
        assert!(Start::parse("now").unwrap().0 > 1_700_000_000);
        for wrong in ["", "today", "-1", "1.5", "253402300800"] {
            assert!(Start::parse(wrong).is_err(), "{wrong}");
        }
    }
}
