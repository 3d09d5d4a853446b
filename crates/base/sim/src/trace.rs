//! Timelines for Perfetto: one process for each rank, one thread for each of its units that can be busy (CPU, incoming and
//! outgoing NIC port, DMA engine, every HPU), counters, and arrows from causes to effects.
//!
//! Slices may be recorded in any order. [`Trace::finish`] sorts and writes them: the same calls in the same order give the
//! same bytes. A trace that is [off](Trace::off) costs one comparison per call; callers check [`Trace::is_on`] before they
//! format names.
//!
//! Perfetto counts in nanoseconds, so a timestamp is rounded to the nearest one, and the exact picoseconds are arguments:
//! `start_ps` and `dur_ps`.

mod order;
mod proto;
mod record;
mod value;
mod write;

use std::io;
use std::path::Path;

use output::Output;

use crate::Time;
use record::{Counter, Recorder, Sample, Track, last};
pub use value::{SliceExtras, Value};

/// A recorder of a timeline, or nothing when tracing is off.
#[derive(Debug, Default)]
pub struct Trace(Option<Box<Recorder>>);

/// A process of a trace, which stands for a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessId(u32);

/// A row of a process that shows slices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackId(u32);

/// A row of a process that shows a number over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterId(u32);

impl Trace {
    /// Makes a trace that records nothing.
    pub fn off() -> Trace {
        Trace(None)
    }

    /// Makes a trace that records for the file `path`. [`Trace::finish`] writes the file as [`Output`] does; a trace that is
    /// dropped leaves nothing behind.
    ///
    /// # Errors
    /// The system's error when `path` cannot be written.
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

    /// Records something that lasts from `start` to `end`. A slice within another one of the same track is shown below it.
    #[inline]
    pub fn slice(&mut self, track: TrackId, name: &str, start: Time, end: Time, extras: SliceExtras) {
        if let Some(recorder) = &mut self.0 {
            debug_assert!(start <= end, "slice {name} ends at {end}, before its start {start}");
            recorder.record(track.0, name, start, end, &extras);
        }
    }

    /// Records that a counter has this value from `at` on.
    #[inline]
    pub fn counter(&mut self, counter: CounterId, at: Time, value: i64) {
        if let Some(recorder) = &mut self.0 {
            recorder.samples.push(Sample { counter: counter.0, at, value });
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The system's error when writing fails; there is then no new file.
    pub fn finish(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |recorder| write::write(*recorder))
    }
}

#[cfg(test)]
mod tests;
