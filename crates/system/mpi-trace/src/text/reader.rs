// SPDX-License-Identifier: Apache-2.0
//! State of a trace reader.

use std::collections::HashMap;
use std::ops::Range;

use super::arguments::{Arguments, CommUse};
use super::comms::{Known, Sights};
use super::line::Line;
use crate::error::Damage;
use crate::event::{Amount, Collective, Event, Operation, RankTrace, Root, What, index_of};

/// Handle of MPI_COMM_WORLD in MPICH, whose wildcards differ from those of Open MPI.
const MPICH_WORLD: i64 = 0x4400_0000;

/// Action of a persistent request when started.
#[derive(Clone)]
pub enum Prepared {
    Send(Envelope, u64),
    Recv(Envelope, u64),
    Collective(Collective),
}

/// Message envelope in calls.
#[derive(Clone, Copy)]
pub struct Envelope {
    pub comm: u32,
    pub peer: i64,
    pub tag: i64,
}

pub struct Reader<'a> {
    known: &'a Known,
    pub trace: RankTrace,
    pub sights: Sights,
    /// Index of each communicator, by its number in the trace.
    comms: HashMap<i64, u32>,
    seen: usize,
    any_source: i64,
    /// Events of each incomplete request, by the address of the request.
    pub open: HashMap<u64, Range<u32>>,
    pub prepared: HashMap<u64, Prepared>,
    /// For each incomplete request, the first of the empty events added by its last test.
    pub tested: HashMap<u64, u32>,
    /// Matched messages, by address.
    pub matched: HashMap<u64, Envelope>,
    last_end: Option<u64>,
    first_end: Option<u64>,
}

impl<'a> Reader<'a> {
    pub fn new(known: &'a Known) -> Reader<'a> {
        let trace = RankTrace { comms: known.comms.clone(), ..RankTrace::default() };
        Reader {
            known,
            trace,
            sights: Sights::default(),
            comms: HashMap::new(),
            seen: 0,
            any_source: -1,
            open: HashMap::new(),
            prepared: HashMap::new(),
            tested: HashMap::new(),
            matched: HashMap::new(),
            last_end: None,
            first_end: None,
        }
    }

    /// Records the times of a call: the computation before it, and its duration.
    pub fn time(&mut self, line: &Line) -> Result<(), Damage> {
        let (start, end) = (line.time(0)?, line.time(line.fields() - 1)?);
        let gap = start.zip(self.last_end).map_or(0, |(start, last)| start.saturating_sub(last));
        let wall = start.zip(end).map_or(0, |(start, end)| end.saturating_sub(start));
        self.trace.events.push(Event::new(gap, wall, What::Nothing));
        self.trace.calls += 1;
        self.last_end = end.or(start).or(self.last_end);
        self.first_end = self.first_end.or(end);
        Ok(())
    }

    pub fn prepare(&mut self, arguments: &Arguments, what: Prepared) {
        if let Some(request) = arguments.request {
            self.prepared.insert(request, what);
        }
    }

    /// Adds an event. Returns its index as a range.
    pub fn push_one(&mut self, what: What) -> Range<u32> {
        self.push(what);
        let end = index_of(self.trace.events.len());
        end - 1..end
    }

    pub fn push(&mut self, what: What) {
        self.trace.events.push(Event::at_once(what));
    }

    pub fn comm(&mut self, used: CommUse) -> u32 {
        if self.sights.is_new(used.handle) {
            // The survey has processed the same lines.
            self.comms.insert(used.handle, self.known.sights[self.seen]);
            self.seen += 1;
            if used.handle == MPICH_WORLD {
                self.any_source = -2;
            }
        }
        self.comms[&used.handle]
    }

    pub fn bytes(&self, line: &Line, arguments: &Arguments, which: usize) -> Result<u64, Damage> {
        self.bytes_of(line, arguments.counts[which], arguments.types[which])
    }

    pub fn bytes_of(&self, line: &Line, elements: i64, size: i64) -> Result<u64, Damage> {
        let bytes = (elements as u64).checked_mul(size as u64);
        bytes.filter(|&bytes| bytes <= 1 << 62).ok_or_else(|| line.damage_in(Some(2), "a message too large".into()))
    }

    pub fn rank(&self, line: &Line, comm: u32, peer: i64) -> Result<Option<u32>, Damage> {
        if peer < 0 {
            return Ok(None);
        }
        let peers = self.trace.comms[comm as usize].peers();
        match usize::try_from(peer).ok().and_then(|peer| peers.get(peer)) {
            Some(&rank) => Ok(Some(rank)),
            None => Err(line.damage_in(None, format!("rank {peer} of a communicator of {} ranks", peers.len()))),
        }
    }

    fn tag(line: &Line, tag: i64) -> Result<u32, Damage> {
        u32::try_from(tag).ok().filter(|&tag| tag < u32::MAX).ok_or_else(|| line.damage_in(None, format!("tag {tag}")))
    }

    /// Adds a send. Returns its event; an empty range with MPI_PROC_NULL.
    pub fn send(&mut self, line: &Line, message: Envelope, bytes: u64, blocking: bool) -> Result<Range<u32>, Damage> {
        let Envelope { comm, peer, tag } = message;
        let Some(to) = self.rank(line, comm, peer)? else { return Ok(self.none()) };
        let tag = Self::tag(line, tag)?;
        Ok(self.push_one(What::Send { comm, to, tag, bytes, blocking }))
    }

    pub fn recv(&mut self, line: &Line, message: Envelope, bytes: u64, blocking: bool) -> Result<Range<u32>, Damage> {
        let Envelope { comm, peer, tag } = message;
        let from = self.rank(line, comm, peer)?;
        if from.is_none() && peer != self.any_source {
            return Ok(self.none());
        }
        let tag = if tag < 0 { None } else { Some(Self::tag(line, tag)?) };
        Ok(self.push_one(What::Recv { comm, from, tag, bytes, blocking }))
    }

    /// Returns an empty range of events.
    fn none(&self) -> Range<u32> {
        let end = index_of(self.trace.events.len());
        end..end
    }

    pub fn open_requests(&self, arguments: &Arguments) -> Vec<u64> {
        requests(arguments, &self.open)
    }

    pub fn under_way(&mut self, request: Option<u64>, events: Range<u32>) {
        if let Some(request) = request {
            self.outdated(request);
            if !events.is_empty() {
                self.open.insert(request, events);
            }
        }
    }

    pub fn complete(&mut self, request: u64) {
        self.tested.remove(&request);
        for event in self.open.remove(&request).into_iter().flatten() {
            self.push(What::Wait(event));
        }
    }

    /// Completes a request that is reused without a wait: its last test has completed it.
    pub fn outdated(&mut self, request: u64) {
        let (events, test) = (self.open.remove(&request), self.tested.remove(&request));
        if let (Some(events), Some(test)) = (events, test) {
            for (event, place) in events.zip(test..) {
                self.trace.events[place as usize].what = What::Wait(event);
            }
        }
    }

    pub fn end(&mut self) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|request| self.outdated(request));
        self.trace.total_ns = self.last_end.zip(self.first_end).map_or(0, |(last, first)| last.saturating_sub(first));
    }

    pub fn collective(
        &self,
        line: &Line,
        operation: Operation,
        blocking: bool,
        comm: u32,
        arguments: &Arguments,
    ) -> Result<Collective, Damage> {
        use Operation::*;
        let group = &self.trace.comms[comm as usize];
        let me = arguments.comm.map_or(0, |used| used.rank);
        let size = group.local.len();
        let root = match operation {
            Bcast | Reduce | Gather | Scatter | Gatherv | Scatterv => match u32::try_from(arguments.ranks[0]) {
                Ok(root) if (root as usize) < size => Root::At(root),
                _ => return Err(line.damage_in(None, format!("root {} of {size} ranks", arguments.ranks[0]))),
            },
            _ => Root::Nowhere,
        };
        let is_root = root == Root::At(me);
        let list = |which: usize, type_of: usize| -> Result<Vec<u64>, Damage> {
            let counts = &arguments.lists[which];
            if counts.len() != size {
                let what = format!("{} counts for {size} ranks: who exchanges how much is not known", counts.len());
                return Err(line.damage_in(None, what));
            }
            Ok(counts.iter().map(|&count| (count as u64).saturating_mul(arguments.types[type_of] as u64)).collect())
        };
        let amount = match operation {
            Barrier => Amount::Same(1),
            Bcast | Reduce | Allreduce | Scan | Exscan | ReduceScatterBlock => {
                Amount::Same(self.bytes(line, arguments, 0)?)
            }
            // The received data is decisive, as the sent data may be MPI_IN_PLACE.
            Allgather | Alltoall => Amount::Same(self.bytes(line, arguments, 1)?),
            Gather => Amount::Same(self.bytes(line, arguments, usize::from(is_root))?),
            Scatter => Amount::Same(self.bytes(line, arguments, usize::from(!is_root))?),
            ReduceScatter => Amount::Each { own: 0, send: Vec::new(), recv: list(0, 0)? },
            Allgatherv => Amount::Each { own: 0, send: Vec::new(), recv: list(0, 1)? },
            Alltoallv => Amount::Each { own: 0, send: list(0, 0)?, recv: list(1, 1)? },
            Gatherv => {
                let recv = if is_root { list(0, 1)? } else { Vec::new() };
                Amount::Each { own: self.bytes(line, arguments, 0)?, send: Vec::new(), recv }
            }
            Scatterv => {
                let send = if is_root { list(0, 0)? } else { Vec::new() };
                let bytes = (arguments.counts[0] as u64).saturating_mul(arguments.types[1] as u64);
                Amount::Each { own: bytes, send, recv: Vec::new() }
            }
            // Neighbour collectives were refused earlier.
            Neighbor => Amount::Neighbors { send: Vec::new(), recv: Vec::new() },
        };
        Ok(Collective { comm, operation, root, amount, blocking })
    }
}

/// Returns the known requests of an array, in array order. The addresses are 8 bytes apart (Open MPI) or 4 (MPICH,
/// Fortran): the distance that finds more requests is taken.
pub fn requests<T>(arguments: &Arguments, known: &HashMap<u64, T>) -> Vec<u64> {
    let Some(first) = arguments.request else { return Vec::new() };
    let count = arguments.counts.first().map_or(1, |&count| count as u64);
    let apart = |bytes: u64| -> Vec<u64> {
        if count <= known.len() as u64 {
            let addresses = (0..count).map(|index| first.wrapping_add(index * bytes));
            return addresses.filter(|address| known.contains_key(address)).collect();
        }
        // A damaged trace may have any count, so the search iterates over the known requests.
        let index = |address: u64| address.wrapping_sub(first) / bytes;
        let is_one = |address: u64| address.wrapping_sub(first).is_multiple_of(bytes) && index(address) < count;
        let mut found: Vec<u64> = known.keys().copied().filter(|&address| is_one(address)).collect();
        found.sort_unstable_by_key(|&address| index(address));
        found
    };
    let (wide, narrow) = (apart(8), apart(4));
    if narrow.len() > wide.len() { narrow } else { wide }
}
