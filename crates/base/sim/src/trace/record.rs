// SPDX-License-Identifier: Apache-2.0
//! Recorded events of a trace, before they are written.

use std::collections::HashMap;

use output::Output;

use super::value::{SliceExtras, Value};
use crate::Time;

/// All recorded events.
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

/// A row of slices.
#[derive(Debug)]
pub(super) struct Track {
    pub(super) process: u32,
    pub(super) name: String,
}

/// A row that plots a number over time.
#[derive(Debug)]
pub(super) struct Counter {
    pub(super) track: Track,
    pub(super) unit: String,
}

/// A slice. Texts are indices into [`Texts`].
#[derive(Debug)]
pub(super) struct Event {
    pub(super) track: u32,
    pub(super) name: u32,
    pub(super) start: Time,
    pub(super) end: Time,
    /// Ids of the arrows that end and start here.
    pub(super) flows: (Option<u64>, Option<u64>),
    /// Index of the first argument in [`Recorder::args`], and number of arguments.
    pub(super) args: (usize, usize),
}

/// Value of a counter from a time on.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) counter: u32,
    pub(super) at: Time,
    pub(super) value: i64,
}

/// A [`Value`] with its text stored in [`Texts`].
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

    /// Adds a slice to track `track`.
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

/// Interned texts. Equal texts have the same index, in the order of first use.
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

/// Returns the index of the last element.
pub(super) fn last<T>(all: &[T]) -> u32 {
    u32::try_from(all.len() - 1).expect("a trace has fewer than 2^32 rows and names")
}
