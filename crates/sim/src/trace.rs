//! Timelines for Perfetto: a process for each rank, a thread for each thing of it that is busy or idle (CPU, NIC in and
//! out, DMA, every HPU), counters, and arrows from what causes to what is caused.
//!
//! Events may be handed over in any order. They are kept until [`Trace::finish`], which sorts and writes them: the same
//! events in the same order give the same bytes. A trace that is [off](Trace::off) costs one comparison a call; look at
//! [`Trace::is_on`] before formatting names.
//!
//! Perfetto counts nanoseconds, so a timestamp is the nearest one and the exact picoseconds stand beside it as
//! `start_ps` and `dur_ps` (`at_ps` of an instant).

mod order;
mod proto;
mod write;

use std::collections::HashMap;
use std::io;
use std::path::Path;

use output::Output;

use crate::Time;

/// A recorder of timelines, or none.
#[derive(Debug, Default)]
pub struct Trace(Option<Box<Recorder>>);

/// A process of a trace: a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessId(u32);

/// A row of a process that shows slices and instants.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackId(u32);

/// A row of a process that shows a number over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterId(u32);

/// A value of an argument.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Shown as decimal.
    Uint(u64),
    /// Shown as decimal.
    Int(i64),
    /// Shown as hexadecimal.
    Pointer(u64),
    /// A number that is not whole.
    Float(f64),
    /// Yes or no.
    Bool(bool),
    /// Text; equal texts are stored once.
    Text(&'a str),
}

/// What a slice has besides its name and times. An arrow goes from the slice that starts first to the later one; of two
/// that start together, from the one whose track was made first.
#[derive(Clone, Copy, Debug, Default)]
pub struct SliceExtras<'a> {
    /// The arrow of this number ends here.
    pub flow_in: Option<u64>,
    /// The arrow of this number starts here, or, when it is also `flow_in`, goes on.
    pub flow_out: Option<u64>,
    /// Name and value, in the order of display.
    pub args: &'a [(&'static str, Value<'a>)],
}

impl Trace {
    /// Records nothing.
    pub fn off() -> Trace {
        Trace(None)
    }

    /// Records for the file `path`, which [`Trace::finish`] writes as [`Output`] does; nothing is left of a trace that is
    /// dropped.
    ///
    /// # Errors
    /// When `path` cannot be written.
    pub fn to_file(path: &Path) -> io::Result<Trace> {
        let output = Output::create(path)?;
        Ok(Trace(Some(Box::new(Recorder::new(output)))))
    }

    /// Whether anything is recorded.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a process. Processes are shown in the order of their making.
    pub fn process(&mut self, name: &str) -> ProcessId {
        let Some(recorder) = &mut self.0 else { return ProcessId::default() };
        recorder.processes.push(name.to_owned());
        ProcessId(last(&recorder.processes))
    }

    /// Adds a track to a process. Tracks are shown in the order of their making. Slices that overlap without one being
    /// within the other go to further tracks "`name` 2", "`name` 3", ….
    pub fn track(&mut self, process: ProcessId, name: &str) -> TrackId {
        let Some(recorder) = &mut self.0 else { return TrackId::default() };
        recorder.tracks.push(Track { process: process.0, name: name.to_owned() });
        TrackId(last(&recorder.tracks))
    }

    /// Adds a counter with values in `unit` to a process.
    pub fn counter_track(&mut self, process: ProcessId, name: &str, unit: &str) -> CounterId {
        let Some(recorder) = &mut self.0 else { return CounterId::default() };
        let track = Track { process: process.0, name: name.to_owned() };
        recorder.counters.push(Counter { track, unit: unit.to_owned() });
        CounterId(last(&recorder.counters))
    }

    /// Something that lasts from `start` to `end`. A slice within another of the same track is shown below it.
    #[inline]
    pub fn slice(&mut self, track: TrackId, name: &str, start: Time, end: Time, extras: SliceExtras) {
        if let Some(recorder) = &mut self.0 {
            debug_assert!(start <= end, "slice {name} ends at {end}, before its start {start}");
            let flows = (extras.flow_in, extras.flow_out);
            recorder.record(track, name, What::Slice { end, flows }, start, extras.args);
        }
    }

    /// Something that happens in no time.
    #[inline]
    pub fn instant(&mut self, track: TrackId, name: &str, at: Time, args: &[(&'static str, Value)]) {
        if let Some(recorder) = &mut self.0 {
            recorder.record(track, name, What::Instant, at, args);
        }
    }

    /// A counter's value from `at` on.
    #[inline]
    pub fn counter(&mut self, counter: CounterId, at: Time, value: i64) {
        if let Some(recorder) = &mut self.0 {
            recorder.samples.push(Sample { counter: counter.0, at, value });
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// When writing fails; then there is no new file.
    pub fn finish(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |recorder| write::write(*recorder))
    }
}

#[derive(Debug)]
struct Recorder {
    output: Output,
    processes: Vec<String>,
    tracks: Vec<Track>,
    counters: Vec<Counter>,
    texts: Texts,
    events: Vec<Event>,
    args: Vec<(u32, Stored)>,
    samples: Vec<Sample>,
}

#[derive(Debug)]
struct Track {
    process: u32,
    name: String,
}

#[derive(Debug)]
struct Counter {
    track: Track,
    unit: String,
}

#[derive(Debug)]
struct Event {
    track: u32,
    name: u32,
    start: Time,
    what: What,
    /// Where its arguments start and how many they are.
    args: (usize, usize),
}

#[derive(Clone, Copy, Debug)]
enum What {
    Slice { end: Time, flows: (Option<u64>, Option<u64>) },
    Instant,
}

#[derive(Debug)]
struct Sample {
    counter: u32,
    at: Time,
    value: i64,
}

#[derive(Clone, Copy, Debug)]
enum Stored {
    Uint(u64),
    Int(i64),
    Pointer(u64),
    Float(f64),
    Bool(bool),
    Text(u32),
}

impl Recorder {
    fn new(output: Output) -> Recorder {
        Recorder {
            output,
            processes: Vec::new(),
            tracks: Vec::new(),
            counters: Vec::new(),
            texts: Texts::default(),
            events: Vec::new(),
            args: Vec::new(),
            samples: Vec::new(),
        }
    }

    fn record(&mut self, track: TrackId, name: &str, what: What, start: Time, args: &[(&'static str, Value)]) {
        let first = self.args.len();
        for &(name, value) in args {
            let value = match value {
                Value::Uint(value) => Stored::Uint(value),
                Value::Int(value) => Stored::Int(value),
                Value::Pointer(value) => Stored::Pointer(value),
                Value::Float(value) => Stored::Float(value),
                Value::Bool(value) => Stored::Bool(value),
                Value::Text(text) => Stored::Text(self.texts.number(text)),
            };
            self.args.push((self.texts.number(name), value));
        }
        let name = self.texts.number(name);
        self.events.push(Event { track: track.0, name, start, what, args: (first, args.len()) });
    }
}

/// Texts, each stored once and numbered by first use.
#[derive(Debug, Default)]
struct Texts {
    numbers: HashMap<Box<str>, u32>,
    texts: Vec<Box<str>>,
}

impl Texts {
    fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push(text.into());
        let number = last(&self.texts);
        self.numbers.insert(text.into(), number);
        number
    }
}

fn last<T>(all: &[T]) -> u32 {
    u32::try_from(all.len() - 1).expect("a trace has fewer than 2^32 rows and names")
}

#[cfg(test)]
mod tests;
