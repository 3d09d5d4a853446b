// SPDX-License-Identifier: Apache-2.0
//! Timelines for Perfetto: one process for each rank, one thread for each of its units (CPU, incoming and outgoing NIC
//! port, DMA engine, every HPU), counters, and arrows from causes to effects.
//!
//! Slices may be recorded in any order. [`Trace::finish`] sorts and writes them: the same calls in the same order give
//! the same bytes. A trace that is [off](Trace::off) costs one comparison per call; callers check [`Trace::is_on`]
//! before they format names.
//!
//! Perfetto counts in nanoseconds, so timestamps are rounded to the nearest one. The arguments `start_ps` and `dur_ps`
//! hold the exact picoseconds.

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

/// A timeline recorder, or nothing if tracing is off.
#[derive(Debug, Default)]
pub struct Trace(Option<Box<Recorder>>);

/// A process of a trace; represents a rank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessId(u32);

/// A row of slices of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrackId(u32);

/// A row of a process that plots a number over time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterId(u32);

impl Trace {
    /// Creates a trace that records nothing.
    pub fn off() -> Trace {
        Trace(None)
    }

    /// Creates a trace that records for the file `path`. [`Trace::finish`] writes the file as [`Output`] does; dropping
    /// a trace leaves nothing behind.
    ///
    /// # Errors
    /// The system's error if `path` cannot be written.
    pub fn to_file(path: &Path) -> io::Result<Trace> {
        let output = Output::create(path)?;
        Ok(Trace(Some(Box::new(Recorder::new(output)))))
    }

    /// Returns true if the trace records.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.0.is_some()
    }

    /// Adds a process. Processes are shown in creation order.
    pub fn process(&mut self, name: &str) -> ProcessId {
        let Some(recorder) = &mut self.0 else { return ProcessId::default() };
        recorder.processes.push(name.to_owned());
        ProcessId(last(&recorder.processes))
    }

    /// Adds a track to a process. Tracks are shown in creation order. Slices that overlap without nesting are shown on
    /// further tracks "`name` 2", "`name` 3", ….
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

    /// Records a slice from `start` to `end`. A slice within another one of the same track is shown below it.
    #[inline]
    pub fn slice(&mut self, track: TrackId, name: &str, start: Time, end: Time, extras: SliceExtras) {
        if let Some(recorder) = &mut self.0 {
            debug_assert!(start <= end, "slice {name} ends at {end}, before its start {start}");
            recorder.record(track.0, name, start, end, &extras);
        }
    }

    /// Records the value of a counter from `at` on.
    #[inline]
    pub fn counter(&mut self, counter: CounterId, at: Time, value: i64) {
        if let Some(recorder) = &mut self.0 {
            recorder.samples.push(Sample { counter: counter.0, at, value });
        }
    }

    /// Writes the file.
    ///
    /// # Errors
    /// The system's error if writing fails; the file then keeps its former contents.
    pub fn finish(self) -> io::Result<()> {
        self.0.map_or(Ok(()), |recorder| write::write(*recorder))
    }
}

#[cfg(test)]
mod tests;
