use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread;

use goal::Schedule;

use crate::binary;
use crate::choice::Collectives;
use crate::convert::Converter;
use crate::error::ImportError;
use crate::event::{Amount, RankTrace, What};

/// What to make of receives that took any source or any tag.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wildcards {
    /// They stay: what they receive is decided in the simulation.
    Keep,
    /// They receive what they received when the program was traced, where the trace says it.
    #[default]
    Resolve,
}

/// How to make a schedule.
#[derive(Clone, Debug)]
pub struct Options {
    /// Factor on all computation
    pub calc_scale: f64,
    /// Algorithms of collectives
    pub collectives: Collectives,
    /// What to do with wildcards
    pub wildcards: Wildcards,
    /// So many copies of the program, at least one. Collectives on all ranks are on all ranks of all copies; all else
    /// stays within a copy.
    pub extrapolate: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            calc_scale: 1.0,
            collectives: Collectives::default(),
            wildcards: Wildcards::default(),
            extrapolate: 1,
        }
    }
}

/// A schedule, and what was learned on the way.
#[derive(Debug)]
pub struct Import {
    /// The schedule
    pub schedule: Schedule,
    /// One a rank of the trace
    pub ranks: Vec<RankReport>,
    /// What the schedule lacks, for people
    pub warnings: Vec<String>,
}

/// What one rank did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankReport {
    /// Recorded calls
    pub calls: u64,
    /// Messages sent by point-to-point calls
    pub messages: u64,
    /// Bytes of them
    pub message_bytes: u64,
    /// Collective calls
    pub collectives: u64,
    /// Bytes that this rank gave to collectives
    pub collective_bytes: u64,
    /// Nanoseconds within MPI
    pub mpi_ns: u64,
    /// Nanoseconds of computation
    pub compute_ns: u64,
    /// Nanoseconds from MPI_Init to MPI_Finalize
    pub total_ns: u64,
}

/// Reads the traces in a folder and makes a schedule of them.
///
/// # Errors
/// See [`ImportError`].
pub fn import(folder: &Path, options: &Options) -> Result<Import, ImportError> {
    let files = Files::find(folder)?;
    let ranks = files.ranks();
    let too_many = |problem| ImportError::Files { folder: folder.into(), problem };
    if u64::from(ranks) * u64::from(options.extrapolate) > u64::from(goal::MAX_RANKS) {
        return Err(too_many(format!("{ranks} ranks, {} times, are too many", options.extrapolate)));
    }
    let mut converter = Converter::new(options, ranks);
    let mut notes = Notes::default();
    if options.extrapolate == 1 {
        files.read(options, |rank, trace| {
            notes.take(rank, &trace);
            converter.add(rank, 0, &trace)
        })?;
    } else {
        let mut all = Vec::with_capacity(ranks as usize);
        files.read(options, |rank, trace| {
            notes.take(rank, &trace);
            all.push(trace);
            Ok(())
        })?;
        for copy in 0..options.extrapolate {
            for (rank, trace) in (0..).zip(&all) {
                converter.add(rank, copy, trace)?;
            }
        }
    }
    let (schedule, comms) = converter.finish()?;
    if let Some(comms) = comms {
        notes.warnings.push(format!("{comms} communicators share the matching spaces of {}", goal::MAX_SPACE / 2 + 1));
    }
    let (ranks, warnings) = notes.finish();
    Ok(Import { schedule, ranks, warnings })
}

/// Reads the traces in a folder: what each rank did, and what a schedule would lack.
///
/// # Errors
/// See [`ImportError`].
pub fn report(folder: &Path) -> Result<(Vec<RankReport>, Vec<String>), ImportError> {
    let mut notes = Notes::default();
    Files::find(folder)?.read(&Options::default(), |rank, trace| {
        notes.take(rank, &trace);
        Ok(())
    })?;
    Ok(notes.finish())
}

#[derive(Default)]
struct Notes {
    ranks: Vec<RankReport>,
    warnings: Vec<String>,
    /// Ranks that made each call
    others: BTreeMap<String, u32>,
}

impl Notes {
    fn take(&mut self, rank: u32, trace: &RankTrace) {
        let mut report = RankReport { calls: trace.calls, total_ns: trace.total_ns, ..RankReport::default() };
        for event in &trace.events {
            report.mpi_ns += event.wall_ns;
            report.compute_ns += event.gap_ns;
            match &event.what {
                What::Send { bytes, .. } => {
                    report.messages += 1;
                    report.message_bytes += bytes;
                }
                What::Collective(call) => {
                    report.collectives += 1;
                    report.collective_bytes += match &call.amount {
                        Amount::Same(bytes) => *bytes,
                        Amount::Each { own, send, .. } => send.iter().fold(*own, |sum, size| sum.saturating_add(*size)),
                        Amount::Neighbors { send, .. } => send.iter().map(|send| send.1).sum(),
                    };
                }
                _ => {}
            }
        }
        report.compute_ns += trace.tail_ns;
        self.ranks.push(report);
        if trace.truncated {
            let calls = trace.calls;
            self.warnings.push(format!(
                "rank {rank}: its trace is cut off (the program ended without MPI_Finalize): {calls} calls are used"
            ));
        }
        for name in &trace.others {
            *self.others.entry(name.clone()).or_default() += 1;
        }
    }

    fn finish(mut self) -> (Vec<RankReport>, Vec<String>) {
        for (name, ranks) in self.others {
            self.warnings.push(format!("{name} is not in the schedule ({ranks} ranks call it)"));
        }
        (self.ranks, self.warnings)
    }
}

/// The trace files of a folder, by rank.
struct Files {
    paths: Vec<PathBuf>,
}

/// The rank in a file's name, if it is a trace file's.
fn rank_of(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    stem.strip_prefix("rank-")?.strip_suffix(".spintrace")?.parse().ok()
}

impl Files {
    fn find(folder: &Path) -> Result<Files, ImportError> {
        let failed = |error| ImportError::Io { path: folder.into(), error };
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some(rank) = name.and_then(rank_of)
                && let Some(other) = found.insert(rank, path.clone())
            {
                let problem = format!("{} and {} are of the same rank", other.display(), path.display());
                return Err(ImportError::Files { folder: folder.into(), problem });
            }
        }
        let problem = match found.keys().zip(0..).find(|&(&rank, expected)| rank != expected) {
            Some((_, missing)) => format!("the trace of rank {missing} is missing"),
            None if found.is_empty() => "no traces: neither rank-N.spintrace nor pmpi-trace-rank-N.txt".into(),
            None => return Ok(Files { paths: found.into_values().collect() }),
        };
        Err(ImportError::Files { folder: folder.into(), problem })
    }

    fn ranks(&self) -> u32 {
        self.paths.len() as u32
    }

    /// Reads all, several at a time, and hands them over in the order of their ranks.
    fn read(
        &self,
        options: &Options,
        mut take: impl FnMut(u32, RankTrace) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let resolve = options.wildcards == Wildcards::Resolve;
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        for (first, paths) in (0..).step_by(at_once).zip(self.paths.chunks(at_once)) {
            let traces: Vec<_> = thread::scope(|scope| {
                let read = |(rank, path): (u32, &'_ PathBuf)| {
                    let path = path.clone();
                    scope.spawn(move || self.read_one(rank, &path, resolve))
                };
                let threads: Vec<_> = (first..).zip(paths).map(read).collect();
                threads
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            });
            for (rank, trace) in (first..).zip(traces) {
                take(rank, trace?)?;
            }
        }
        Ok(())
    }

    fn read_one(&self, rank: u32, path: &Path, resolve: bool) -> Result<RankTrace, ImportError> {
        let bytes = load(path)?;
        let damaged = |damage| ImportError::Damaged { path: path.into(), damage };
        let start = binary::start(&bytes).map_err(damaged)?;
        if (start.rank, start.ranks) != (rank, self.ranks()) {
            let folder = path.parent().unwrap_or(path).into();
            let problem = format!(
                "{} is of rank {} of {}, but there are {} files",
                path.display(),
                start.rank,
                start.ranks,
                self.ranks()
            );
            return Err(ImportError::Files { folder, problem });
        }
        binary::read(&bytes, resolve).map_err(damaged)
    }
}

fn load(path: &Path) -> Result<Vec<u8>, ImportError> {
    let failed = |error| ImportError::Io { path: path.into(), error };
    let bytes = fs::read(path).map_err(failed)?;
    if path.extension().is_none_or(|ending| ending != "gz") {
        return Ok(bytes);
    }
    let mut whole = Vec::new();
    flate2::read::MultiGzDecoder::new(&bytes[..]).read_to_end(&mut whole).map_err(failed)?;
    Ok(whole)
}
