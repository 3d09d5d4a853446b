mod windows;

use std::collections::HashMap;
use std::sync::Arc;

use goal::generate::{Pattern, Place, Sizes, Spec, emit};
use goal::{Action, Builder, MAX_CALC_NS, MAX_SPACE, Schedule, Wait};

use crate::Options;
use crate::error::ImportError;
use crate::event::{Amount, Collective, Group, Operation, RankTrace, Root, What};
use crate::windows::Arrivals;
use windows::Window;

/// The segment size of segmented broadcasts in bytes.
const SEGMENT: u64 = 64 * 1024;
/// The number of communicators with matching spaces of their own. Each has two: for messages and for collectives.
const SPACES: u32 = (MAX_SPACE as u32).div_ceil(2);

/// Converts traces of ranks to a schedule.
pub struct Converter<'a> {
    options: &'a Options,
    /// The number of ranks of the trace.
    ranks: u32,
    builder: Builder,
    /// The number of each communicator, which is the same on all of its ranks.
    numbers: HashMap<Group, u32>,
}

/// A communicator as one rank sees it.
struct Comm<'a> {
    group: &'a Group,
    number: u32,
    me: u32,
    /// Whether it has all ranks of the trace.
    is_whole: bool,
    collectives: u32,
}

impl Comm<'_> {
    fn space(&self) -> u16 {
        (self.number % SPACES * 2) as u16
    }

    /// Returns the matching space and the tag of the next collective.
    fn next_collective(&mut self) -> (u16, u32) {
        // Some patterns use two tags.
        let tag = self.collectives % (1 << 30) * 2;
        self.collectives += 1;
        (self.space() + 1, tag)
    }
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
            arrivals,
            windows: HashMap::new(),
            frontier: Vec::new(),
            started: HashMap::new(),
        };
        for (place, event) in trace.events.iter().enumerate() {
            part.compute(event.gap_ns)?;
            part.event(place as u32, &event.what)?;
        }
        part.compute(trace.tail_ns)?;
        Ok(self.builder.end_rank()?)
    }

    fn comm<'g>(&mut self, rank: u32, group: &'g Arc<Group>) -> Result<Comm<'g>, ImportError> {
        // Both sides of an intercommunicator know it under one number.
        let key = match &group.remote {
            Some(remote) if remote < &group.local => {
                Group { local: remote.clone(), remote: Some(group.local.clone()), ordinal: group.ordinal }
            }
            _ => Group::clone(group),
        };
        let next = self.numbers.len() as u32;
        let number = *self.numbers.entry(key).or_insert(next);
        let is_here = |me: usize| group.local.get(me) == Some(&rank);
        let me = Some(rank as usize).filter(|&me| is_here(me));
        let me = me.or_else(|| group.local.iter().position(|&other| other == rank));
        let Some(me) = me else {
            return Err(ImportError::Calls { rank, problem: "it uses a communicator that it is not in".into() });
        };
        let is_whole = group.remote.is_none() && group.local.len() == self.ranks as usize;
        Ok(Comm { group, number, me: me as u32, is_whole, collectives: 0 })
    }

    /// Returns the schedule, and the number of communicators if it exceeds [`SPACES`].
    pub fn finish(self) -> Result<(Schedule, Option<u32>), ImportError> {
        let comms = self.numbers.len() as u32;
        Ok((self.builder.finish()?, (comms > SPACES).then_some(comms)))
    }
}

/// A rank of a copy that is being converted.
struct Part<'a> {
    options: &'a Options,
    builder: &'a mut Builder,
    ranks: u32,
    rank: u32,
    /// The number of rank 0 of this copy.
    offset: u32,
    comms: Vec<Comm<'a>>,
    arrivals: &'a Arrivals,
    /// The windows, by their indices among the communicators.
    windows: HashMap<u32, Window<'a>>,
    /// The operations that the next one depends on.
    frontier: Vec<(u32, Wait)>,
    /// The operations that complete an event, by the event's index.
    started: HashMap<u32, Vec<u32>>,
}

impl Part<'_> {
    fn compute(&mut self, ns: u64) -> Result<(), ImportError> {
        let scaled = match self.options.calc_scale {
            1.0 => ns,
            scale => (ns as f64 * scale).round() as u64,
        };
        if scaled > 0 {
            self.step(Action::Calc(scaled.min(MAX_CALC_NS)), Wait::Done)?;
        }
        Ok(())
    }

    /// Adds an operation that depends on all before it. The following ones depend on it.
    fn step(&mut self, action: Action, wait: Wait) -> Result<u32, ImportError> {
        let op = self.builder.add(action, 0, 0)?;
        for &(earlier, wait) in &self.frontier {
            self.builder.depend(op, earlier, wait);
        }
        self.frontier.clear();
        self.frontier.push((op, wait));
        Ok(op)
    }

    /// Adds an empty operation if there are several dependencies, so that each of several following operations has only
    /// one.
    fn join(&mut self) -> Result<(), ImportError> {
        if self.frontier.len() > 1 {
            self.step(Action::Calc(0), Wait::Done)?;
        }
        Ok(())
    }

    fn event(&mut self, place: u32, what: &What) -> Result<(), ImportError> {
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
            What::Access(ref access) => self.access(place, access)?,
            What::Window(window, ref call) => self.window(place, window, call)?,
        }
        Ok(())
    }

    /// Makes the following operations depend on the completion of these too.
    fn after(&mut self, mut ends: Vec<u32>) {
        ends.sort_unstable();
        self.frontier.retain(|(other, _)| ends.binary_search(other).is_err());
        self.frontier.extend(ends.into_iter().map(|op| (op, Wait::Done)));
    }

    fn message(&mut self, place: u32, action: Action, blocking: bool) -> Result<(), ImportError> {
        let op = self.step(action, if blocking { Wait::Done } else { Wait::Started })?;
        if !blocking {
            self.started.insert(place, vec![op]);
        }
        Ok(())
    }

    fn collective(&mut self, place: u32, call: &Collective) -> Result<(), ImportError> {
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
        let circle = circle(comm, self.rank, call.root);
        let copies = if comm.is_whole { self.options.extrapolate } else { 1 };
        let (offset, world, count) = (self.offset, self.ranks, circle.members.len() as u32);
        let copy = offset / world;
        let members = |number: u32| match comm.is_whole {
            true => circle.members[(number % count) as usize] + number / count * world,
            false => circle.members[number as usize] + offset,
        };
        let me = if comm.is_whole { circle.me + copy * count } else { circle.me };
        let own;
        let (bytes, send, recv) = match &call.amount {
            Amount::Each { own, send, recv } => (*own, circle.expand(send), circle.expand(recv)),
            &Amount::Same(bytes) => {
                // The vector of a reduce-scatter is that of all its blocks.
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
            root: circle.root,
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

/// The ranks that take part in a collective.
struct Circle {
    members: Vec<u32>,
    me: u32,
    root: u32,
    /// The range of the other side of an intercommunicator, to which sizes refer.
    remote: Option<(usize, usize)>,
}

fn circle(comm: &Comm, rank: u32, root: Root) -> Circle {
    let local = &comm.group.local;
    let Some(remote) = &comm.group.remote else {
        let root = if let Root::At(root) = root { root } else { 0 };
        return Circle { members: local.clone(), me: comm.me, root, remote: None };
    };
    let chain = |first: &[u32], then: &[u32]| [first, then].concat();
    match root {
        Root::Here => {
            let members = chain(&[rank], remote);
            Circle { remote: Some((1, members.len())), members, me: 0, root: 0 }
        }
        Root::At(root) => {
            let members = chain(&[remote[root as usize]], local);
            Circle { members, me: comm.me + 1, root: 0, remote: Some((0, 1)) }
        }
        Root::Nowhere | Root::Beside if local < remote => {
            let members = chain(local, remote);
            Circle { remote: Some((local.len(), members.len())), members, me: comm.me, root: 0 }
        }
        Root::Nowhere | Root::Beside => {
            let members = chain(remote, local);
            Circle { members, me: comm.me + remote.len() as u32, root: 0, remote: Some((0, remote.len())) }
        }
    }
}

impl Circle {
    /// Returns the sizes for all members. In an intercommunicator, members of the own side exchange nothing.
    fn expand(&self, sizes: &[u64]) -> Vec<u64> {
        let Some((start, end)) = self.remote.filter(|_| !sizes.is_empty()) else { return sizes.to_vec() };
        let mut all = vec![0; self.members.len()];
        for (size, &given) in all[start..end].iter_mut().zip(sizes) {
            *size = given;
        }
        all
    }
}
