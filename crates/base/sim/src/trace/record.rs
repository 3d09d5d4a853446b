//! What a trace has recorded, until it is written.

use std::collections::HashMap;

use output::Output;

use super::value::{SliceExtras, Value};
use crate::Time;

/// Everything that was recorded so far.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) output: Output,
    pub(super) processes: Vec<String>,
    pub(super) tracks: Vec<Track>,
    pub(super) counters: Vec<Counter>,
    pub(super) texts: Texts,
    pub(super) events: Vec<Event>,
    pub(super) args: Vec<(u32, Stored)>,
    pub(super) samples: Vec<Sample>,
}

/// A row that shows slices.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) process: u32,
    pub(super) name: String,
}

/// A row that shows a number over time.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) track: Track,
    pub(super) unit: String,
}

/// A slice. Texts are numbers of [`Texts`].
#[derive(Debug)]
pub(super) struct Event {
    pub(super) track: u32,
    pub(super) name: u32,
    pub(super) start: Time,
    pub(super) end: Time,
    /// The numbers of the arrows that end here and that start here.
    pub(super) flows: (Option<u64>, Option<u64>),
    /// The index of its first argument in [`Recorder::args`], and their number.
    pub(super) args: (usize, usize),
}

/// The value of a counter from a time on.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) counter: u32,
    pub(super) at: Time,
    pub(super) value: i64,
}

/// A [`Value`] whose text is stored in [`Texts`].
#[derive(Clone, Copy, Debug)]
pub(super) enum Stored {
    Uint(u64),
    Text(u32),
}

impl Recorder {
    pub(super) fn new(output: Output) -> Recorder {
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

    /// Adds a slice of track number `track`.
    pub(super) fn record(&mut self, track: u32, name: &str, start: Time, end: Time, extras: &SliceExtras) {
        let first = self.args.len();
        for &(name, value) in extras.args {
            let value = match value {
                Value::Uint(value) => Stored::Uint(value),
                Value::Text(text) => Stored::Text(self.texts.number(text)),
            };
            self.args.push((self.texts.number(name), value));
        }
        let name = self.texts.number(name);
        let flows = (extras.flow_in, extras.flow_out);
        self.events.push(Event { track, name, start, end, flows, args: (first, extras.args.len()) });
    }
}

/// Texts. Equal texts are stored once and have the same number; numbers count first uses.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) numbers: HashMap<Box<str>, u32>,
    pub(super) texts: Vec<Box<str>>,
}

impl Texts {
    pub(super) fn number(&mut self, text: &str) -> u32 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push(text.into());
        let number = last(&self.texts);
        self.numbers.insert(text.into(), number);
        number
    }
}

/// The index of the last element, as a number of a row or name.
pub(super) fn last<T>(all: &[T]) -> u32 {
    u32::try_from(all.len() - 1).expect("a trace has fewer than 2^32 rows and names")
}
