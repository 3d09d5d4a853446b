// SPDX-License-Identifier: Apache-2.0
//! Converts one-sided calls to messages. Section "One-sided calls" of docs/goal.md describes the model.

use std::collections::{BTreeMap, HashMap};

use goal::{Action, Wait};

use super::part::Part;
use crate::error::ImportError;
use crate::event::{Access, Amount, Collective, Operation, Root, WindowCall};
use crate::windows::{Arrival, Arrivals, Incoming, Origin, Passive};

/// One rank's view of a window.
struct Window<'a> {
    origin: Origin,
    incoming: Option<&'a Incoming>,
    /// For each target, the operations that complete the pending accesses.
    pending: BTreeMap<u32, Vec<u32>>,
    /// Operations that receive the accesses until the next fence, the accesses by locks, and those until the next wait.
    by_fence: Vec<u32>,
    by_lock: Vec<u32>,
    by_post: Vec<u32>,
    /// Origins of the exposure epoch, each with its number of earlier posts.
    posted: Vec<(u32, u32)>,
    posts: HashMap<u32, u32>,
}

/// Kind of a message between two ranks of a window; a part of its tag.
#[derive(Clone, Copy)]
enum Kind {
    Access,
    Answer,
    Acknowledgement,
    Post,
    Complete,
}

/// Returns the tag of a message. Messages of each kind are numbered for each pair of ranks, so that tags are unique.
fn tag(number: u32, kind: Kind) -> u32 {
    number % (1 << 28) * 8 + kind as u32
}

/// Size of a message without data, in bytes.
const SIGNAL: u64 = 1;

/// Windows of a rank.
pub struct Windows<'a> {
    arrivals: &'a Arrivals,
    /// Windows, by their indices among the communicators.
    known: HashMap<u32, Window<'a>>,
}

impl<'a> Windows<'a> {
    /// Creates the state. `arrivals` are the one-sided accesses of all ranks.
    pub fn new(arrivals: &'a Arrivals) -> Windows<'a> {
        Windows { arrivals, known: HashMap::new() }
    }

    /// Adds the operations of a call on a window.
    pub fn call(&mut self, part: &mut Part, place: u32, window: u32, call: &WindowCall) -> Result<(), ImportError> {
        if *call == WindowCall::Create {
            part.barrier(place, window)?;
            let incoming = self.arrivals.to(part.comms[window as usize].group, part.rank);
            let mut made = Window {
                origin: Origin::new(part.rank),
                incoming,
                pending: BTreeMap::new(),
                by_fence: part.expect(window, incoming.and_then(|incoming| incoming.fences.get(&0)))?,
                by_lock: Vec::new(),
                by_post: Vec::new(),
                posted: Vec::new(),
                posts: HashMap::new(),
            };
            if let Some(incoming) = incoming {
                made.by_lock = part.expect_passive(window, &incoming.passive)?;
            }
            self.known.insert(window, made);
            return Ok(());
        }
        // The window is removed while the schedule is extended, and reinserted afterwards.
        let Some(mut known) = self.known.remove(&window) else {
            return Err(part.no_window());
        };
        match call {
            WindowCall::Create => {}
            WindowCall::Free => {
                part.after(known.end_of_accesses(None));
                part.barrier(place, window)?;
                part.after(known.by_fence);
                part.after(known.by_lock);
                return Ok(());
            }
            WindowCall::Fence => {
                part.after(known.end_of_accesses(None));
                part.barrier(place, window)?;
                part.after(std::mem::take(&mut known.by_fence));
                known.origin.call(call);
                let next = known.incoming.and_then(|incoming| incoming.fences.get(&known.origin.fences()));
                known.by_fence = part.expect(window, next)?;
            }
            WindowCall::Post(origins) => part.post(window, &mut known, origins)?,
            WindowCall::Start(_) => {
                known.origin.call(call);
                let posts: Vec<_> = known.origin.started();
                part.signals(window, &posts, Kind::Post)?;
            }
            WindowCall::Complete => {
                let targets = known.origin.started();
                for &(target, _) in &targets {
                    part.after(known.end_of_accesses(Some(target)));
                }
                for (target, times) in targets {
                    let action = part.message_to(window, target, SIGNAL, tag(times, Kind::Complete));
                    part.step(action, Wait::Done)?;
                }
                known.origin.call(call);
            }
            WindowCall::Wait => {
                let posted = std::mem::take(&mut known.posted);
                part.signals(window, &posted, Kind::Complete)?;
                part.after(std::mem::take(&mut known.by_post));
            }
            WindowCall::Lock(_) => drop(known.origin.call(call)),
            WindowCall::Unlock(target) | WindowCall::Flush(target) => {
                part.after(known.end_of_accesses(*target));
                let acknowledged = known.origin.call(call);
                part.signals(window, &acknowledged, Kind::Acknowledgement)?;
            }
            WindowCall::FlushLocal(target) => part.after(known.end_of_accesses(*target)),
        }
        self.known.insert(window, known);
        Ok(())
    }

    /// Adds the operations of an access on the origin.
    pub fn access(&mut self, part: &mut Part, place: u32, access: &Access) -> Result<(), ImportError> {
        let Access { window, target, .. } = *access;
        let Some(known) = self.known.get_mut(&window) else { return Err(part.no_window()) };
        let Some((_, number)) = known.origin.access(access) else { return Ok(()) };
        let action = part.message_to(window, target, access.bytes.max(SIGNAL), tag(number, Kind::Access));
        let mut end = part.step(action, Wait::Started)?;
        if let Some(bytes) = access.back {
            end = part.step(part.message_from(window, target, bytes, tag(number, Kind::Answer)), Wait::Started)?;
        }
        if let Some(known) = self.known.get_mut(&window) {
            known.pending.entry(target).or_default().push(end);
        }
        part.started.insert(place, vec![end]);
        Ok(())
    }
}

/// Operations that only windows need.
impl Part<'_> {
    fn no_window(&self) -> ImportError {
        ImportError::Calls { rank: self.rank, problem: "it uses a window that was not made or is gone".into() }
    }

    fn message_to(&self, window: u32, to: u32, bytes: u64, tag: u32) -> Action<'static> {
        Action::Send { bytes, to: to + self.offset, tag, space: self.comms[window as usize].space() }
    }

    fn message_from(&self, window: u32, from: u32, bytes: u64, tag: u32) -> Action<'static> {
        let (from, space) = (Some(from + self.offset), self.comms[window as usize].space());
        Action::Recv { bytes, from, tag: Some(tag), space }
    }

    fn barrier(&mut self, place: u32, window: u32) -> Result<(), ImportError> {
        let (root, amount) = (Root::Nowhere, Amount::Same(1));
        self.collective(
            place,
            &Collective { comm: window, operation: Operation::Barrier, root, amount, blocking: true },
        )
    }

    /// Adds an operation that depends on all before it, and that later ones do not depend on.
    fn beside(&mut self, action: Action) -> Result<u32, ImportError> {
        let op = self.builder.add(action, 0, 0)?;
        for &(earlier, wait) in &self.frontier {
            self.builder.depend(op, earlier, wait);
        }
        Ok(op)
    }

    /// Adds receives of a signal from each of these ranks.
    fn signals(&mut self, window: u32, from: &[(u32, u32)], kind: Kind) -> Result<(), ImportError> {
        if from.is_empty() {
            return Ok(());
        }
        self.join()?;
        let mut ops = Vec::with_capacity(from.len());
        for &(rank, number) in from {
            ops.push(self.beside(self.message_from(window, rank, SIGNAL, tag(number, kind)))?);
        }
        self.frontier = ops.into_iter().map(|op| (op, Wait::Done)).collect();
        Ok(())
    }

    /// Opens an exposure epoch for these origins and signals them.
    fn post(&mut self, window: u32, known: &mut Window, origins: &[u32]) -> Result<(), ImportError> {
        let mut others: Vec<u32> = origins.iter().copied().filter(|&origin| origin != self.rank).collect();
        others.sort_unstable();
        for origin in others {
            let times = known.posts.entry(origin).or_default();
            known.posted.push((origin, *times));
            *times += 1;
        }
        for post in &known.posted {
            let coming = known.incoming.and_then(|incoming| incoming.posts.get(post));
            known.by_post.extend(self.expect(window, coming)?);
        }
        for &(origin, times) in &known.posted {
            let action = self.message_to(window, origin, SIGNAL, tag(times, Kind::Post));
            self.step(action, Wait::Done)?;
        }
        Ok(())
    }

    /// Adds the target's operations for accesses. Returns those that complete them.
    fn expect(&mut self, window: u32, coming: Option<&Vec<Arrival>>) -> Result<Vec<u32>, ImportError> {
        let coming = coming.map_or(&[][..], |coming| coming);
        if !coming.is_empty() {
            self.join()?;
        }
        coming.iter().map(|arrival| Ok(self.take(window, arrival)?.1)).collect()
    }

    /// Adds the target's operations for accesses by locks, some of them acknowledged.
    fn expect_passive(&mut self, window: u32, coming: &[Passive]) -> Result<Vec<u32>, ImportError> {
        if !coming.is_empty() {
            self.join()?;
        }
        let mut ends = Vec::new();
        let mut unacknowledged: HashMap<u32, Vec<u32>> = HashMap::new();
        for item in coming {
            match *item {
                Passive::Access(arrival) => {
                    let (taken, end) = self.take(window, &arrival)?;
                    if arrival.access.back.is_none() {
                        unacknowledged.entry(arrival.from).or_default().push(taken);
                    }
                    ends.push(end);
                }
                Passive::Acknowledge { from, number } => {
                    let action = self.message_to(window, from, SIGNAL, tag(number, Kind::Acknowledgement));
                    let op = self.builder.add(action, 0, 0)?;
                    for earlier in unacknowledged.remove(&from).unwrap_or_default() {
                        self.builder.depend(op, earlier, Wait::Done);
                    }
                    ends.push(op);
                }
            }
        }
        Ok(ends)
    }

    /// Adds the receive of an access, and its answer. Returns the first and the last operation.
    fn take(&mut self, window: u32, arrival: &Arrival) -> Result<(u32, u32), ImportError> {
        let Arrival { from, number, access } = *arrival;
        let taken =
            self.beside(self.message_from(window, from, access.bytes.max(SIGNAL), tag(number, Kind::Access)))?;
        let Some(bytes) = access.back else { return Ok((taken, taken)) };
        let answer = self.builder.add(self.message_to(window, from, bytes, tag(number, Kind::Answer)), 0, 0)?;
        self.builder.depend(answer, taken, Wait::Done);
        Ok((taken, answer))
    }
}

impl Window<'_> {
    /// Returns the operations that complete the pending accesses, to one target or to all.
    fn end_of_accesses(&mut self, target: Option<u32>) -> Vec<u32> {
        match target {
            Some(target) => self.pending.remove(&target).unwrap_or_default(),
            None => std::mem::take(&mut self.pending).into_values().flatten().collect(),
        }
    }
}
