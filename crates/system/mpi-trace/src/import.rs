// SPDX-License-Identifier: Apache-2.0
//! Import of a folder of traces, and the report about it.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread;

use goal::Schedule;

use crate::binary;
use crate::convert::Converter;
use crate::error::ImportError;
use crate::event::{Amount, RankTrace, What, index_of};
use crate::options::{Options, Wildcards};
use crate::text;
use crate::windows::Arrivals;

/// A schedule converted from traces, and a report of the traces.
#[derive(Debug)]
pub struct Import {
    /// Schedule.
    pub schedule: Schedule,
    /// Reports of all ranks of the trace.
    pub ranks: Vec<RankReport>,
    /// Warnings about parts of the traces that the schedule omits.
    pub warnings: Vec<String>,
}

/// Totals of a rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankReport {
    /// Number of recorded calls.
    pub calls: u64,
    /// Number of point-to-point messages and one-sided accesses.
    pub messages: u64,
    /// Bytes of these messages and accesses.
    pub message_bytes: u64,
    /// Number of collective calls.
    pub collectives: u64,
    /// Bytes that this rank contributed to collectives.
    pub collective_bytes: u64,
    /// Time in MPI calls, in nanoseconds.
    pub mpi_ns: u64,
    /// Time between MPI calls, in nanoseconds.
    pub compute_ns: u64,
    /// Time from MPI_Init to MPI_Finalize, in nanoseconds.
    pub total_ns: u64,
}

/// Converts the traces in a folder to a schedule.
///
/// # Errors
/// [`ImportError`] if a trace is missing or damaged, or the traces cannot be converted.
pub fn import(folder: &Path, options: &Options) -> Result<Import, ImportError> {
    let files = Files::find(folder)?;
    let ranks = files.ranks();
    let too_many = |problem| ImportError::Files { folder: folder.into(), problem };
    if u64::from(ranks) * u64::from(options.extrapolate) > u64::from(goal::MAX_RANKS) {
        return Err(too_many(format!("{ranks} ranks, {} times, are too many", options.extrapolate)));
    }
    let mut converter = Converter::new(options, ranks);
    let mut notes = Notes::default();
    // From the first rank with a window on, traces stay in memory: the accesses to a window follow from all traces.
    let (mut kept, mut arrivals) = (Vec::new(), Arrivals::default());
    files.read(options, |rank, trace| {
        notes.take(rank, &trace)?;
        if options.extrapolate == 1 && kept.is_empty() && !trace.has_windows {
            return converter.add(rank, 0, &trace, &arrivals);
        }
        arrivals.add(rank, &trace);
        kept.push((rank, trace));
        Ok(())
    })?;
    for copy in 0..options.extrapolate {
        for (rank, trace) in &kept {
            converter.add(*rank, copy, trace, &arrivals)?;
        }
    }
    let (schedule, comms) = converter.finish()?;
    if let Some(comms) = comms {
        notes.warnings.push(format!("{comms} communicators share the matching spaces of {}", goal::MAX_SPACE / 2 + 1));
    }
    let (ranks, warnings) = notes.finish();
    Ok(Import { schedule, ranks, warnings })
}

/// Reads the traces in a folder. Returns the totals of each rank, and warnings about parts that a schedule would omit.
///
/// # Errors
/// [`ImportError`] if a trace is missing or damaged, or the traces cannot be converted.
pub fn report(folder: &Path) -> Result<(Vec<RankReport>, Vec<String>), ImportError> {
    let mut notes = Notes::default();
    Files::find(folder)?.read(&Options::default(), |rank, trace| notes.take(rank, &trace))?;
    Ok(notes.finish())
}

/// Names of totals, for messages.
const MESSAGES: &str = "bytes of messages";
const COLLECTIVES: &str = "bytes of collectives";

#[derive(Default)]
struct Notes {
    ranks: Vec<RankReport>,
    warnings: Vec<String>,
    /// For each call without a counterpart in schedules, the number of ranks that made it.
    others: BTreeMap<String, u32>,
}

impl Notes {
    /// Adds the totals of a rank.
    ///
    /// # Errors
    /// [`ImportError::Calls`] if a total exceeds 64 bits, which no program reaches.
    fn take(&mut self, rank: u32, trace: &RankTrace) -> Result<(), ImportError> {
        let add = |total: &mut u64, more: u64, what: &str| {
            *total = total.checked_add(more).ok_or_else(|| ImportError::Calls {
                rank,
                problem: format!("the sum of its {what} is beyond 2^64: the trace is damaged"),
            })?;
            Ok::<_, ImportError>(())
        };
        let mut report = RankReport { calls: trace.calls, total_ns: trace.total_ns, ..RankReport::default() };
        for event in &trace.events {
            add(&mut report.mpi_ns, event.wall_ns, "nanoseconds in MPI")?;
            add(&mut report.compute_ns, event.gap_ns, "nanoseconds of computation")?;
            match &event.what {
                What::Send { bytes, .. } => {
                    report.messages += 1;
                    add(&mut report.message_bytes, *bytes, MESSAGES)?;
                }
                What::Access(access) => {
                    report.messages += 1;
                    add(&mut report.message_bytes, access.bytes, MESSAGES)?;
                }
                What::Collective(call) => {
                    report.collectives += 1;
                    let total = &mut report.collective_bytes;
                    match &call.amount {
                        Amount::Same(bytes) => add(total, *bytes, COLLECTIVES)?,
                        Amount::Each { own, send, .. } => {
                            add(total, *own, COLLECTIVES)?;
                            send.iter().try_for_each(|size| add(total, *size, COLLECTIVES))?;
                        }
                        Amount::Neighbors { send, .. } => {
                            send.iter().try_for_each(|send| add(total, send.1, COLLECTIVES))?;
                        }
                    }
                }
                _ => {}
            }
        }
        add(&mut report.compute_ns, trace.tail_ns, "nanoseconds of computation")?;
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
        Ok(())
    }

    fn finish(mut self) -> (Vec<RankReport>, Vec<String>) {
        for (name, ranks) in self.others {
            self.warnings.push(format!("{name} is not in the schedule ({ranks} ranks call it)"));
        }
        (self.ranks, self.warnings)
    }
}

/// Trace files of a folder, by rank.
struct Files {
    paths: Vec<PathBuf>,
    form: Form,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Form {
    /// Files of `libspintrace.so`: `rank-N.spintrace`.
    Tracer,
    /// Files of liballprof: `pmpi-trace-rank-N.txt`, where N may have leading zeros.
    Liballprof,
}

/// Returns the format and the rank in the name of a trace file.
fn recognise(name: &str) -> Option<(Form, u32)> {
    let stem = name.strip_suffix(".gz").unwrap_or(name);
    let number = |start, end| stem.strip_prefix(start)?.strip_suffix(end)?.parse().ok();
    let tracer = number("rank-", ".spintrace").map(|rank| (Form::Tracer, rank));
    tracer.or_else(|| number("pmpi-trace-rank-", ".txt").map(|rank| (Form::Liballprof, rank)))
}

/// Divides a name at its last number before the ending.
fn numbered(name: &str) -> Option<(&str, u32, &str)> {
    let end = name.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let start = name[..end].rfind(|letter: char| !letter.is_ascii_digit()).map_or(0, |place| place + 1);
    Some((&name[..start], name[start..end].parse().ok()?, &name[end..]))
}

/// Returns the form of a trace by its first bytes.
fn form_of(path: &Path) -> Option<Form> {
    let mut start = Vec::new();
    let file = fs::File::open(path).ok()?;
    let mut unpacked: Box<dyn std::io::Read> = match path.extension().is_some_and(|ending| ending == "gz") {
        true => Box::new(flate2::read::MultiGzDecoder::new(file)),
        false => Box::new(file),
    };
    unpacked.by_ref().take(4096).read_to_end(&mut start).ok()?;
    if start.starts_with(binary::MAGIC) {
        return Some(Form::Tracer);
    }
    // Names of Fortran are in lower case.
    let is_call = |line: &str| line.starts_with("MPI_") || line.starts_with("mpi_");
    let text = String::from_utf8_lossy(&start);
    let mut lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(is_call).then_some(Form::Liballprof)
}

impl Files {
    fn find(folder: &Path) -> Result<Files, ImportError> {
        let failed = |error| ImportError::Io { path: folder.into(), error };
        let wrong = |problem| ImportError::Files { folder: folder.into(), problem };
        if folder.is_file() {
            return Files::of_first(folder);
        }
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            if let Some((form, rank)) = name.and_then(recognise)
                && let Some(other) = found.insert((form, rank), path.clone())
            {
                return Err(wrong(format!("{} and {} are of the same rank", other.display(), path.display())));
            }
        }
        let Some(&(form, _)) = found.keys().next() else { return Files::of_any_name(folder) };
        if found.keys().any(|key| key.0 != form) {
            return Err(wrong("traces of libspintrace.so and of liballprof: which ones?".into()));
        }
        match found.keys().zip(0..).find(|(key, expected)| key.1 != *expected) {
            Some((_, missing)) => Err(wrong(format!("the trace of rank {missing} is missing"))),
            None => Ok(Files { paths: found.into_values().collect(), form }),
        }
    }

    /// Finds the files of all ranks from that of rank 0: the last number of their names is the rank.
    fn of_first(first: &Path) -> Result<Files, ImportError> {
        let wrong = |problem: &str| ImportError::Files { folder: first.into(), problem: problem.into() };
        let name = first.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((before, number, after)) = numbered(name) else {
            return Err(wrong("its name has no number of a rank; give the folder of the traces"));
        };
        if number != 0 {
            return Err(wrong("it is not the trace of rank 0; give that one, or the folder of the traces"));
        }
        let form = form_of(first).ok_or_else(|| wrong("it is no trace of spinkit trace or liballprof"))?;
        let folder = first.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Files::named(folder, form, before, after)
    }

    /// Finds traces of liballprof with any names: all with one name except for the last number, the rank.
    fn of_any_name(folder: &Path) -> Result<Files, ImportError> {
        let failed = |error| ImportError::Io { path: folder.into(), error };
        let wrong = |problem| Err(ImportError::Files { folder: folder.into(), problem });
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some((before, 0, after)) = numbered(name)
                && form_of(&path) == Some(Form::Liballprof)
            {
                names.push((before.to_owned(), after.to_owned()));
            }
        }
        names.sort();
        match &names[..] {
            [(before, after)] => Files::named(folder, Form::Liballprof, before, after),
            [] => wrong(
                "no traces: expected rank-0.spintrace (spinkit trace), pmpi-trace-rank-0.txt or another file of rank 0 \
                 (liballprof), or PREFIX.0.et (Chakra)"
                    .into(),
            ),
            several => {
                let names: Vec<String> = several.iter().map(|(before, after)| format!("{before}0{after}")).collect();
                wrong(format!("traces of several runs; give the file of rank 0 of one: {}", names.join(", ")))
            }
        }
    }

    /// Finds the files `before` N `after`, where N may have leading zeros.
    fn named(folder: &Path, form: Form, before: &str, after: &str) -> Result<Files, ImportError> {
        let failed = |error| ImportError::Io { path: folder.into(), error };
        let wrong = |problem| ImportError::Files { folder: folder.into(), problem };
        let mut found = BTreeMap::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if let Some((start, rank, end)) = numbered(name)
                && (start, end) == (before, after)
                && let Some(other) = found.insert(rank, path.clone())
            {
                return Err(wrong(format!("{} and {} are of the same rank", other.display(), path.display())));
            }
        }
        match found.keys().zip(0..).find(|(rank, expected)| *rank != expected) {
            Some((_, missing)) => {
                Err(wrong(format!("the trace of rank {missing} ({before}{missing}{after}) is missing")))
            }
            None => Ok(Files { paths: found.into_values().collect(), form }),
        }
    }

    fn ranks(&self) -> u32 {
        index_of(self.paths.len())
    }

    /// Reads all files, several at a time, and calls `take` with the traces in rank order.
    fn read(
        &self,
        options: &Options,
        take: impl FnMut(u32, RankTrace) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let resolve = options.wildcards == Wildcards::Resolve;
        match self.form {
            Form::Tracer => self.each(|rank, path, bytes| self.read_tracer(rank, path, bytes, resolve), take),
            Form::Liballprof => {
                let damaged = |path: &Path, damage| ImportError::Damaged { path: path.into(), damage };
                let mut surveys = Vec::with_capacity(self.paths.len());
                self.each(
                    |_, path, bytes| text::survey(bytes).map_err(|damage| damaged(path, damage)),
                    |_, survey| {
                        surveys.push(survey);
                        Ok(())
                    },
                )?;
                let known = text::resolve(&surveys)
                    .map_err(|misfit| damaged(&self.paths[misfit.rank as usize], misfit.damage))?;
                let read = |rank: u32, path: &Path, bytes: &[u8]| {
                    text::read(bytes, &known[rank as usize]).map_err(|damage| damaged(path, damage))
                };
                self.each(read, take)
            }
        }
    }

    /// Calls `read` with all files, several at a time, and `take` with the results in rank order.
    fn each<T: Send>(
        &self,
        read: impl Fn(u32, &Path, &[u8]) -> Result<T, ImportError> + Sync,
        mut take: impl FnMut(u32, T) -> Result<(), ImportError>,
    ) -> Result<(), ImportError> {
        let at_once = thread::available_parallelism().map_or(1, usize::from);
        for (first, paths) in (0..).step_by(at_once).zip(self.paths.chunks(at_once)) {
            let results: Vec<_> = thread::scope(|scope| {
                let start = |(rank, path): (u32, &'_ PathBuf)| {
                    let (path, read) = (path.clone(), &read);
                    scope.spawn(move || read(rank, &path, &load(&path)?))
                };
                let threads: Vec<_> = (first..).zip(paths).map(start).collect();
                let join = |thread: thread::ScopedJoinHandle<'_, _>| {
                    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                };
                threads.into_iter().map(join).collect()
            });
            for (rank, result) in (first..).zip(results) {
                take(rank, result?)?;
            }
        }
        Ok(())
    }

    fn read_tracer(&self, rank: u32, path: &Path, bytes: &[u8], resolve: bool) -> Result<RankTrace, ImportError> {
        let damaged = |damage| ImportError::Damaged { path: path.into(), damage };
        let start = binary::start(bytes).map_err(damaged)?;
        if (start.rank, start.ranks) != (rank, self.ranks()) {
            let folder = path.parent().unwrap_or(path).into();
            let of = format!("{} is of rank {} of {}", path.display(), start.rank, start.ranks);
            return Err(ImportError::Files { folder, problem: format!("{of}, but there are {} files", self.ranks()) });
        }
        binary::read(bytes, resolve).map_err(damaged)
    }
}

/// Bytes of a file, possibly compressed.
enum Content {
    Mapped(memmap2::Mmap),
    Unpacked(Vec<u8>),
}

impl std::ops::Deref for Content {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Content::Mapped(map) => map,
            Content::Unpacked(bytes) => bytes,
        }
    }
}

fn load(path: &Path) -> Result<Content, ImportError> {
    let failed = |error| ImportError::Io { path: path.into(), error };
    let file = fs::File::open(path).map_err(failed)?;
    if path.extension().is_some_and(|ending| ending == "gz") {
        let mut bytes = Vec::new();
        flate2::read::MultiGzDecoder::new(file).read_to_end(&mut bytes).map_err(failed)?;
        return Ok(Content::Unpacked(bytes));
    }
    // SAFETY: traces are read once, immediately; a program that changes one meanwhile gets an error or a wrong
    // schedule.
    let map = unsafe { memmap2::Mmap::map(&file) };
    map.map(Content::Mapped).map_err(failed)
}
