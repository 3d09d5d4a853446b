// SPDX-License-Identifier: Apache-2.0
//! Conversion state of a rank: its schedule so far.

use std::collections::HashMap;

use goal::generate::{Pattern, Place, Sizes, Spec, emit};
use goal::{Action, Builder, MAX_CALC_NS, Wait};

use super::comm::{CollectiveGroup, Comm};
use crate::Options;
use crate::error::ImportError;
use crate::event::{Amount, Collective, Operation, Root, index_of};

/// Segment size of segmented broadcasts, in bytes.
const SEGMENT: u64 = 64 * 1024;

/// Conversion state of one rank of a copy.
pub struct Part<'a> {
    pub options: &'a Options,
    pub builder: &'a mut Builder,
    pub ranks: u32,
    pub rank: u32,
    /// Number of rank 0 of this copy.
    pub offset: u32,
    pub comms: Vec<Comm<'a>>,
    /// Operations that the next one depends on.
    pub frontier: Vec<(u32, Wait)>,
    /// Operations that complete an event, by the event's index.
    pub started: HashMap<u32, Vec<u32>>,
}

impl Part<'_> {
    pub fn compute(&mut self, ns: u64) -> Result<(), ImportError> {
        let scaled = match self.options.calc_scale {
            1.0 => ns,
            #[expect(clippy::cast_possible_truncation, reason = "a larger product becomes u64::MAX")]
            scale => (ns as f64 * scale).round() as u64,
        };
        if scaled > 0 {
            self.step(Action::Calc(scaled.min(MAX_CALC_NS)), Wait::Done)?;
        }
        Ok(())
    }

    /// Adds an operation that depends on all before it. Later ones depend on it.
    pub fn step(&mut self, action: Action, wait: Wait) -> Result<u32, ImportError> {
        let op = self.builder.add(action, 0, 0)?;
        for &(earlier, wait) in &self.frontier {
            self.builder.depend(op, earlier, wait);
        }
        self.frontier.clear();
        self.frontier.push((op, wait));
        Ok(op)
    }

    /// Adds an empty operation if there are several dependencies, so that each of several later operations has only
    /// one.
    pub fn join(&mut self) -> Result<(), ImportError> {
        if self.frontier.len() > 1 {
            self.step(Action::Calc(0), Wait::Done)?;
        }
        Ok(())
    }

    /// Makes later operations also depend on the completion of `ends`.
    pub fn after(&mut self, mut ends: Vec<u32>) {
        ends.sort_unstable();
        self.frontier.retain(|(other, _)| ends.binary_search(other).is_err());
        self.frontier.extend(ends.into_iter().map(|op| (op, Wait::Done)));
    }

    pub fn message(&mut self, place: u32, action: Action, blocking: bool) -> Result<(), ImportError> {
        let op = self.step(action, if blocking { Wait::Done } else { Wait::Started })?;
        if !blocking {
            self.started.insert(place, vec![op]);
        }
        Ok(())
    }

    pub fn collective(&mut self, place: u32, call: &Collective) -> Result<(), ImportError> {
        let (space, tag) = self.comms[call.comm as usize].next_collective();
        if call.root == Root::Beside {
            return Ok(());
        }
        self.join()?;
        let mut ends = Vec::new();
        match &call.amount {
            Amount::Neighbors { send, recv } => {
                for &(to, bytes) in send {
                    let action = Action::Send { bytes, to: to + self.offset, tag, space };
                    ends.push(self.builder.add(action, 0, 0)?);
                }
                for &(from, bytes) in recv {
                    let action = Action::Recv { bytes, from: Some(from + self.offset), tag: Some(tag), space };
                    ends.push(self.builder.add(action, 0, 0)?);
                }
                for &op in &ends {
                    for &(earlier, wait) in &self.frontier {
                        self.builder.depend(op, earlier, wait);
                    }
                }
            }
            _ => self.pattern(call, space, tag, &mut ends)?,
        }
        if !call.blocking {
            self.started.insert(place, ends);
        } else if !ends.is_empty() {
            self.frontier = ends.into_iter().map(|op| (op, Wait::Done)).collect();
        }
        Ok(())
    }

    fn pattern(&mut self, call: &Collective, space: u16, tag: u32, ends: &mut Vec<u32>) -> Result<(), ImportError> {
        let comm = &self.comms[call.comm as usize];
        let group = CollectiveGroup::new(comm, self.rank, call.root);
        let copies = if comm.is_whole { self.options.extrapolate } else { 1 };
        let (offset, world, count) = (self.offset, self.ranks, index_of(group.members.len()));
        let copy = offset / world;
        let members = |number: u32| match comm.is_whole {
            true => group.members[(number % count) as usize] + number / count * world,
            false => group.members[number as usize] + offset,
        };
        let me = if comm.is_whole { group.me + copy * count } else { group.me };
        let own;
        let (bytes, send, recv) = match &call.amount {
            Amount::Each { own, send, recv } => (*own, group.expand(send), group.expand(recv)),
            &Amount::Same(bytes) => {
                // The vector of a reduce-scatter comprises all its blocks.
                own = if call.operation == Operation::ReduceScatterBlock {
                    bytes.saturating_mul(u64::from(count) * u64::from(copies))
                } else {
                    bytes
                };
                (own, Vec::new(), Vec::new())
            }
            Amount::Neighbors { .. } => (0, Vec::new(), Vec::new()),
        };
        let largest = send.iter().chain(&recv).copied().max().unwrap_or(bytes);
        let pattern = self.options.collectives.pattern(call.operation, largest.max(bytes), count * copies);
        let spec = Spec {
            ranks: count * copies,
            bytes,
            root: group.root,
            tag,
            segment: if matches!(pattern, Pattern::BcastPipeline | Pattern::BcastDoubleTree) { SEGMENT } else { 0 },
            ..Spec::default()
        };
        let sizes = Sizes { send: &send, recv: &recv };
        let sizes = (!send.is_empty() || !recv.is_empty()).then_some(sizes);
        let place = Place { me, members: &members, space, sizes, after: &self.frontier };
        Ok(emit(pattern, &spec, place, self.builder, ends)?)
    }
}
