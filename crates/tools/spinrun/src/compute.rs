// SPDX-License-Identifier: Apache-2.0
//! `--compute`: the simulated time of the ranks' own code between library calls.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use output::Output;
use serde::{Deserialize, Serialize};
use sim::Time;
use thiserror::Error;
use world::{Computation, ComputeTimes};

/// Format identifier of a file of recorded times.
const FORMAT: &str = "spinkit compute times 1";
/// Simulated picoseconds per microsecond of CPU time at the speed of this computer.
const AS_MEASURED: u64 = 1_000_000;

/// Value of `--compute`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Compute {
    /// Charges no time, or measured CPU time by a scale: simulated picoseconds per microsecond.
    Measured(u64),
    /// Charges measured CPU time, and records it in a file.
    Record(PathBuf),
    /// Charges the recorded times of a file.
    Replay(PathBuf),
}

impl Compute {
    /// Parses the value of the option.
    pub fn parse(text: &str) -> Result<Compute, String> {
        match text.split_once(':') {
            None if text == "zero" => Ok(Compute::Measured(0)),
            Some(("measured", scale)) => parse_scale(scale).map(Compute::Measured),
            Some(("record" | "perf", "")) => Err("needs the name of a file".into()),
            Some(("record", file)) => Ok(Compute::Record(file.into())),
            Some(("perf", file)) => Ok(Compute::Replay(file.into())),
            _ => Err("is `zero`, `measured:SCALE`, `record:FILE` or `perf:FILE`".into()),
        }
    }

    /// Returns the scale of the CPU time that the ranks measure; 0 if they do not.
    pub fn scale(&self) -> u64 {
        match self {
            Compute::Measured(scale) => *scale,
            Compute::Record(_) => AS_MEASURED,
            Compute::Replay(_) => 0,
        }
    }

    /// Warns at the end of a run on simulated clocks that the ranks' computation took no simulated time, if the results
    /// depend on it: each rank used a second of CPU time on average, and a tenth of the simulated time.
    pub fn tell_if_free(&self, ranks: u32, end: Time) {
        let used = cpu_time_of_ranks();
        let simulated_ps = u128::from(end.as_ps()) * u128::from(ranks);
        let is_significant = used >= Duration::from_secs(1) * ranks && used.as_nanos() * 10_000 >= simulated_ps;
        if *self == Compute::Measured(0) && is_significant {
            eprintln!(
                "spinrun: note: the ranks' own computation, {:.1} s of CPU time, has taken no simulated time (--compute zero), so rates that \
                 the program prints leave it out; --compute measured:1 charges it",
                used.as_secs_f64()
            );
        }
    }

    /// Returns the treatment of computation in a job of `ranks` ranks.
    ///
    /// # Errors
    /// When a file does not contain recorded times, or is for another number of ranks.
    pub fn computation(&self, ranks: usize) -> Result<Computation, ComputeError> {
        match self {
            Compute::Measured(_) => Ok(Computation::Measured),
            Compute::Record(_) => Ok(Computation::Recorded(vec![Vec::new(); ranks])),
            Compute::Replay(path) => read(path, ranks).map(|times| Computation::replay(times, AS_MEASURED)),
        }
    }
}

/// Returns the CPU time that the ended ranks spent in their own code and libraries.
fn cpu_time_of_ranks() -> Duration {
    // SAFETY: all-zero bytes are a valid value, and the kernel fills it in.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    Duration::new(usage.ru_utime.tv_sec as u64, usage.ru_utime.tv_usec as u32 * 1000)
}

fn parse_scale(text: &str) -> Result<u64, String> {
    let scale: f64 = text.parse().map_err(|_| format!("the scale is a number, not `{text}`"))?;
    if !(1e-6..=1e6).contains(&scale) {
        return Err(format!("the scale is between 0.000001 and 1000000, not {scale}"));
    }
    Ok((scale * 1e6).round() as u64)
}

/// Reason for which recorded times are unusable.
#[derive(Debug, Error)]
pub enum ComputeError {
    #[error("--compute perf: cannot read {}: {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("--compute perf: {}: {why}; make it by --compute record:FILE", path.display())]
    Format { path: PathBuf, why: String },
    #[error(
        "--compute perf: {} has the computation of {there} ranks, and this job has {ranks}: use -n {there}, or record it again \
         by --compute record:FILE", path.display()
    )]
    Ranks { path: PathBuf, there: usize, ranks: usize },
}

/// Contents of a file of recorded times.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recording {
    format: String,
    /// Version of spinkit that wrote it, for information.
    version: String,
    /// CPU time of each rank before each of its library calls.
    nanoseconds: ComputeTimes,
}

fn read(path: &Path, ranks: usize) -> Result<ComputeTimes, ComputeError> {
    let path = path.to_owned();
    let text = match fs::read(&path) {
        Ok(text) => text,
        Err(error) => return Err(ComputeError::Read { path, error }),
    };
    let recording: Recording = match serde_json::from_slice(&text) {
        Ok(recording) => recording,
        Err(error) => return Err(ComputeError::Format { path, why: error.to_string() }),
    };
    if recording.format != FORMAT {
        let why = format!("format is `{}` instead of `{FORMAT}`", recording.format);
        return Err(ComputeError::Format { path, why });
    }
    match recording.nanoseconds.len() {
        there if there != ranks => Err(ComputeError::Ranks { path, there, ranks }),
        _ => Ok(recording.nanoseconds),
    }
}

/// Writes recorded times.
///
/// # Errors
/// When writing fails.
pub fn write(output: Output, path: &Path, times: &ComputeTimes) -> io::Result<()> {
    let recording =
        Recording { format: FORMAT.into(), version: env!("CARGO_PKG_VERSION").into(), nanoseconds: times.clone() };
    output::complete(output, path, |out| {
        serde_json::to_writer(&mut *out, &recording)?;
        writeln!(out)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_option_are_parsed() {
        assert_eq!(Compute::parse("zero"), Ok(Compute::Measured(0)));
        assert_eq!(Compute::parse("measured:2.5"), Ok(Compute::Measured(2_500_000)));
        assert_eq!(Compute::parse("record:a:b"), Ok(Compute::Record("a:b".into())));
        assert_eq!(Compute::parse("perf:x.json"), Ok(Compute::Replay("x.json".into())));
        for wrong in ["", "measured", "measured:", "measured:1e7", "measured:0", "perf", "perf:", "record:", "none"] {
            assert!(Compute::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn files_are_read_as_they_were_written_or_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("times.json");
        let times = vec![vec![0, 12, u64::MAX], vec![]];
        write(Output::create(&path).unwrap(), &path, &times).unwrap();
        assert_eq!(read(&path, 2).unwrap(), times);
        let refused = |ranks: usize, words: &str| {
            let error = read(&path, ranks).unwrap_err().to_string();
            assert!(error.contains("times.json") && error.contains(words), "{error}");
        };
        refused(3, "has the computation of 2 ranks, and this job has 3: use -n 2");
        let text = fs::read_to_string(&path).unwrap();
        for (from, to, words) in [
            ("times 1", "times 2", "format is `spinkit compute times 2` instead of"),
            ("[0,12", "[0,-12", "line 1 column"),
            ("\"version\"", "\"versions\"", "unknown field `versions`"),
            ("}", "", "EOF while parsing"),
        ] {
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            refused(2, words);
        }
        fs::remove_file(&path).unwrap();
        refused(2, "cannot read");
    }
}
