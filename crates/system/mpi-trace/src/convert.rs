// SPDX-License-Identifier: Apache-2.0
//! Conversion of traces to a schedule.

mod comm;
mod part;
mod windows;

use std::collections::HashMap;
use std::sync::Arc;

use goal::{Action, Builder, Schedule};

use crate::Options;
use crate::error::ImportError;
use crate::event::{Group, RankTrace, What, index_of};
use crate::windows::Arrivals;
use comm::{Comm, SPACES};
use part::Part;
use windows::Windows;

/// Converts traces of ranks to a schedule.
pub struct Converter<'a> {
    options: &'a Options,
    /// Number of ranks of the trace.
    ranks: u32,
    builder: Builder,
    /// Number of each communicator, the same on all of its ranks.
    numbers: HashMap<Group, u32>,
}

impl<'a> Converter<'a> {
    pub fn new(options: &'a Options, ranks: u32) -> Converter<'a> {
        let builder = Builder::new(ranks * options.extrapolate);
        Converter { options, ranks, builder, numbers: HashMap::new() }
    }

    /// Adds rank `rank` of copy `copy` of the trace. `arrivals` are the one-sided accesses of all ranks.
    pub fn add(&mut self, rank: u32, copy: u32, trace: &RankTrace, arrivals: &Arrivals) -> Result<(), ImportError> {
        let mut comms = Vec::with_capacity(trace.comms.len());
        for group in &trace.comms {
            comms.push(self.comm(rank, group)?);
        }
        self.builder.begin_rank(rank + copy * self.ranks);
        let mut part = Part {
            options: self.options,
            builder: &mut self.builder,
            ranks: self.ranks,
            rank,
            offset: copy * self.ranks,
            comms,
            frontier: Vec::new(),
            started: HashMap::new(),
        };
        let mut windows = Windows::new(arrivals);
        for (place, event) in trace.events.iter().enumerate() {
            part.compute(event.gap_ns)?;
            part.event(&mut windows, index_of(place), &event.what)?;
        }
        part.compute(trace.tail_ns)?;
        Ok(self.builder.end_rank()?)
    }

    fn comm<'g>(&mut self, rank: u32, group: &'g Arc<Group>) -> Result<Comm<'g>, ImportError> {
        // Both sides of an intercommunicator use one number.
        let key = match &group.remote {
            Some(remote) if remote < &group.local => {
                Group { local: remote.clone(), remote: Some(group.local.clone()), ordinal: group.ordinal }
            }
            _ => Group::clone(group),
        };
        let next = index_of(self.numbers.len());
        let number = *self.numbers.entry(key).or_insert(next);
        let is_here = |me: usize| group.local.get(me) == Some(&rank);
        let me = Some(rank as usize).filter(|&me| is_here(me));
        let me = me.or_else(|| group.local.iter().position(|&other| other == rank));
        let Some(me) = me else {
            return Err(ImportError::Calls { rank, problem: "it uses a communicator that it is not in".into() });
        };
        let is_whole = group.remote.is_none() && group.local.len() == self.ranks as usize;
        Ok(Comm { group, number, me: index_of(me), is_whole, collectives: 0 })
    }

    /// Returns the schedule, and the number of communicators if it exceeds [`SPACES`].
    pub fn finish(self) -> Result<(Schedule, Option<u32>), ImportError> {
        let comms = index_of(self.numbers.len());
        Ok((self.builder.finish()?, (comms > SPACES).then_some(comms)))
    }
}

impl Part<'_> {
    /// Adds the operations of the event with index `place`.
    fn event(&mut self, windows: &mut Windows, place: u32, what: &What) -> Result<(), ImportError> {
        match *what {
            What::Nothing => {}
            What::Send { comm, to, tag, bytes, blocking } => {
                let space = self.comms[comm as usize].space();
                let to = to + self.offset;
                self.message(place, Action::Send { bytes, to, tag, space }, blocking)?;
            }
            What::Recv { comm, from, tag, bytes, blocking } => {
                let space = self.comms[comm as usize].space();
                let from = from.map(|from| from + self.offset);
                self.message(place, Action::Recv { bytes, from, tag, space }, blocking)?;
            }
            What::Wait(started) => {
                let ends = self.started.remove(&started).unwrap_or_default();
                self.after(ends);
            }
            What::Collective(ref collective) => self.collective(place, collective)?,
            What::Access(ref access) => windows.access(self, place, access)?,
            What::Window(window, ref call) => windows.call(self, place, window, call)?,
        }
        Ok(())
    }
}
