//! Trace files of liballprof: one call a line, `NAME:start:argument:…:end`, times in microseconds.

mod arguments;
mod calls;
mod comms;
mod line;
mod windows;

use std::collections::HashMap;
use std::ops::Range;

use crate::error::Damage;
use crate::event::{Amount, Collective, Event, Operation, RankTrace, Root, What};
use arguments::{Arguments, CommUse, parse};
use calls::Call;
use comms::Sights;
pub use comms::{Known, resolve, survey};
use line::Line;
use windows::Windows;

/// The number of MPI_COMM_WORLD in MPICH, which has other numbers than Open MPI for the wildcards.
const MPICH_WORLD: i64 = 0x4400_0000;

/// Reads a trace, its communicators known.
pub fn read(mut rest: &[u8], known: &Known) -> Result<RankTrace, Damage> {
    let mut line = Line::new();
    let mut arguments = Arguments::default();
    let mut reader = Reader::new(known);
    reader.trace.truncated = true;
    while line.next(&mut rest)? {
        let call = parse(&line, &mut arguments)?;
        reader.call(&line, call, &arguments)?;
    }
    reader.end();
    Ok(reader.trace)
}

/// What a persistent request does when started.
#[derive(Clone)]
enum Prepared {
    Send(Envelope, u64),
    Recv(Envelope, u64),
    Collective(Collective),
}

/// A message as calls name it.
#[derive(Clone, Copy)]
struct Envelope {
    comm: u32,
    peer: i64,
    tag: i64,
}

struct Reader<'a> {
    known: &'a Known,
    trace: RankTrace,
    sights: Sights,
    /// Place of each number among the sights
    comms: HashMap<i64, u32>,
    seen: usize,
    any_source: i64,
    /// Events under way by the address of their request
    open: HashMap<u64, Range<u32>>,
    prepared: HashMap<u64, Prepared>,
    /// Where the last test of each request that is under way has room for its ends
    tested: HashMap<u64, u32>,
    /// Matched messages by their addresses
    matched: HashMap<u64, Envelope>,
    windows: Windows,
    last_end: Option<u64>,
    first_end: Option<u64>,
}

impl<'a> Reader<'a> {
    fn new(known: &'a Known) -> Reader<'a> {
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
            windows: Windows::default(),
            last_end: None,
            first_end: None,
        }
    }

    /// Takes the times of a call: computation before it, and how long it took.
    fn time(&mut self, line: &Line) -> Result<(), Damage> {
        let (start, end) = (line.time(0)?, line.time(line.fields() - 1)?);
        let gap = start.zip(self.last_end).map_or(0, |(start, last)| start.saturating_sub(last));
        let wall = start.zip(end).map_or(0, |(start, end)| end.saturating_sub(start));
        self.trace.events.push(Event::new(gap, wall, What::Nothing));
        self.trace.calls += 1;
        self.last_end = end.or(start).or(self.last_end);
        self.first_end = self.first_end.or(end);
        Ok(())
    }

    fn call(&mut self, line: &Line, call: Call, arguments: &Arguments) -> Result<(), Damage> {
        self.time(line)?;
        match call {
            Call::Local => return Ok(()),
            Call::Other => {
                let name = line.name()?;
                if !self.trace.others.iter().any(|other| other == name) {
                    self.trace.others.push(name.into());
                }
                return Ok(());
            }
            _ => {}
        }
        let comm = arguments.comm.map_or(0, |used| self.comm(used));
        let envelope = |which: usize| Envelope { comm, peer: arguments.ranks[which], tag: arguments.tags[which] };
        match call {
            Call::Send { blocking } => {
                let bytes = self.bytes(line, arguments, 0)?;
                let sent = self.send(line, envelope(0), bytes, blocking)?;
                self.under_way(arguments.request, sent);
            }
            Call::Recv { blocking } => {
                let bytes = self.bytes(line, arguments, 0)?;
                let posted = self.recv(line, envelope(0), bytes, blocking)?;
                self.under_way(arguments.request, posted);
            }
            Call::SendRecv { blocking } | Call::SendRecvReplace { blocking } => {
                let received = if matches!(call, Call::SendRecv { .. }) { 1 } else { 0 };
                let (out, into) = (self.bytes(line, arguments, 0)?, self.bytes(line, arguments, received)?);
                let (sent, posted) =
                    (self.send(line, envelope(0), out, false)?, self.recv(line, envelope(1), into, false)?);
                let both = sent.start..posted.end;
                if blocking {
                    both.for_each(|started| self.push(What::Wait(started)));
                } else {
                    self.under_way(arguments.request, both);
                }
            }
            Call::Match => {
                if let Some(message) = arguments.message {
                    self.matched.insert(message, envelope(0));
                }
            }
            Call::RecvMatched { blocking } => {
                let bytes = self.bytes(line, arguments, 0)?;
                let matched = arguments.message.and_then(|message| self.matched.remove(&message));
                let matched = matched.ok_or_else(|| line.damage_in(Some(4), "no message was matched there".into()))?;
                let posted = self.recv(line, matched, bytes, blocking)?;
                self.under_way(arguments.request, posted);
            }
            Call::Prepare { sends } => {
                // Those of a partitioned message: parts, and elements of each.
                let elements = arguments.counts.iter().fold(1i64, |product, count| product.saturating_mul(*count));
                let bytes = self.bytes_of(line, elements, arguments.types[0])?;
                let message = if sends { Prepared::Send } else { Prepared::Recv };
                self.prepare(arguments, message(envelope(0), bytes));
            }
            Call::PrepareCollective(operation) => {
                let collective = self.collective(line, operation, false, comm, arguments)?;
                self.prepare(arguments, Prepared::Collective(collective));
            }
            Call::Start => {
                for request in requests(arguments, &self.prepared) {
                    let started = match self.prepared[&request].clone() {
                        Prepared::Send(to, bytes) => self.send(line, to, bytes, false)?,
                        Prepared::Recv(from, bytes) => self.recv(line, from, bytes, false)?,
                        Prepared::Collective(collective) => self.push_one(What::Collective(Box::new(collective))),
                    };
                    self.under_way(Some(request), started);
                }
            }
            Call::WaitAll => {
                for request in self.open_requests(arguments) {
                    self.complete(request);
                }
            }
            // Which one it was is not in the trace: the one that was begun first.
            Call::WaitAny => {
                let requests = self.open_requests(arguments);
                if let Some(first) = requests.into_iter().min_by_key(|request| self.open[request].start) {
                    self.complete(first);
                }
            }
            // Whether they were complete is not in the trace either: see `outdated`.
            Call::Test => {
                for request in self.open_requests(arguments) {
                    self.tested.insert(request, self.trace.events.len() as u32);
                    let count = self.open[&request].len();
                    (0..count).for_each(|_| self.push(What::Nothing));
                }
            }
            Call::Free => {
                if let Some(request) = arguments.request {
                    self.outdated(request);
                    self.prepared.remove(&request);
                }
            }
            Call::Collective { operation, blocking } => {
                let collective = self.collective(line, operation, blocking, comm, arguments)?;
                let event = self.push_one(What::Collective(Box::new(collective)));
                self.under_way(arguments.request, event);
            }
            Call::Dup | Call::Split | Call::OtherComm => {
                let (root, amount, blocking) = (Root::Nowhere, Amount::Same(1), arguments.request.is_none());
                let barrier = Collective { comm, operation: Operation::Barrier, root, amount, blocking };
                let event = self.push_one(What::Collective(Box::new(barrier)));
                self.under_way(arguments.request, event);
            }
            Call::CommFree => self.sights.freed(),
            Call::Finalize => self.trace.truncated = false,
            Call::WinCreate
            | Call::WinFree
            | Call::Fence
            | Call::Lock
            | Call::Unlock
            | Call::Flush
            | Call::FlushLocal
            | Call::Access(_) => self.one_sided(line, call, comm, arguments)?,
            Call::GroupComm | Call::Local | Call::Other | Call::Untold(_) => {}
        }
        Ok(())
    }

    fn prepare(&mut self, arguments: &Arguments, what: Prepared) {
        if let Some(request) = arguments.request {
            self.prepared.insert(request, what);
        }
    }

    /// The event, as a range.
    fn push_one(&mut self, what: What) -> Range<u32> {
        self.push(what);
        let end = self.trace.events.len() as u32;
        end - 1..end
    }

    fn push(&mut self, what: What) {
        self.trace.events.push(Event::at_once(what));
    }

    fn comm(&mut self, used: CommUse) -> u32 {
        if self.sights.is_new(used.handle) {
            // The survey has seen the same lines.
            self.comms.insert(used.handle, self.known.sights[self.seen]);
            self.seen += 1;
            if used.handle == MPICH_WORLD {
                self.any_source = -2;
            }
        }
        self.comms[&used.handle]
    }

    fn bytes(&self, line: &Line, arguments: &Arguments, which: usize) -> Result<u64, Damage> {
        self.bytes_of(line, arguments.counts[which], arguments.types[which])
    }

    fn bytes_of(&self, line: &Line, elements: i64, size: i64) -> Result<u64, Damage> {
        let bytes = (elements as u64).checked_mul(size as u64);
        bytes.filter(|&bytes| bytes <= 1 << 62).ok_or_else(|| line.damage_in(Some(2), "a message too large".into()))
    }

    fn rank(&self, line: &Line, comm: u32, peer: i64) -> Result<Option<u32>, Damage> {
        if peer < 0 {
            return Ok(None);
        }
        let peers = self.trace.comms[comm as usize].peers();
        match peers.get(peer as usize) {
            Some(&rank) => Ok(Some(rank)),
            None => Err(line.damage_in(None, format!("rank {peer} of a communicator of {} ranks", peers.len()))),
        }
    }

    fn tag(line: &Line, tag: i64) -> Result<u32, Damage> {
        u32::try_from(tag).ok().filter(|&tag| tag < u32::MAX).ok_or_else(|| line.damage_in(None, format!("tag {tag}")))
    }

    /// The event; none with MPI_PROC_NULL.
    fn send(&mut self, line: &Line, message: Envelope, bytes: u64, blocking: bool) -> Result<Range<u32>, Damage> {
        let Envelope { comm, peer, tag } = message;
        let Some(to) = self.rank(line, comm, peer)? else { return Ok(self.none()) };
        let tag = Self::tag(line, tag)?;
        Ok(self.push_one(What::Send { comm, to, tag, bytes, blocking }))
    }

    fn recv(&mut self, line: &Line, message: Envelope, bytes: u64, blocking: bool) -> Result<Range<u32>, Damage> {
        let Envelope { comm, peer, tag } = message;
        let from = self.rank(line, comm, peer)?;
        if from.is_none() && peer != self.any_source {
            return Ok(self.none());
        }
        let tag = if tag < 0 { None } else { Some(Self::tag(line, tag)?) };
        Ok(self.push_one(What::Recv { comm, from, tag, bytes, blocking }))
    }

    /// No events, where the next one would be.
    fn none(&self) -> Range<u32> {
        let end = self.trace.events.len() as u32;
        end..end
    }

    fn open_requests(&self, arguments: &Arguments) -> Vec<u64> {
        requests(arguments, &self.open)
    }

    fn under_way(&mut self, request: Option<u64>, events: Range<u32>) {
        if let Some(request) = request {
            self.outdated(request);
            if !events.is_empty() {
                self.open.insert(request, events);
            }
        }
    }

    fn complete(&mut self, request: u64) {
        self.tested.remove(&request);
        for event in self.open.remove(&request).into_iter().flatten() {
            self.push(What::Wait(event));
        }
    }

    /// A request that is used anew without a wait was completed by the last test of it.
    fn outdated(&mut self, request: u64) {
        let (events, test) = (self.open.remove(&request), self.tested.remove(&request));
        if let (Some(events), Some(test)) = (events, test) {
            for (event, place) in events.zip(test..) {
                self.trace.events[place as usize].what = What::Wait(event);
            }
        }
    }

    fn end(&mut self) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|request| self.outdated(request));
        self.trace.total_ns = self.last_end.zip(self.first_end).map_or(0, |(last, first)| last.saturating_sub(first));
    }

    fn collective(
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
            // What is received counts, where it is: the other may be MPI_IN_PLACE.
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
            // Its calls are refused before.
            Neighbor => Amount::Neighbors { send: Vec::new(), recv: Vec::new() },
        };
        Ok(Collective { comm, operation, root, amount, blocking })
    }
}

/// The requests of an array that are among those that are known, in the order of the array. Their addresses are 8 bytes
/// apart (Open MPI) or 4 (MPICH, Fortran): whichever finds more.
fn requests<T>(arguments: &Arguments, known: &HashMap<u64, T>) -> Vec<u64> {
    let Some(first) = arguments.request else { return Vec::new() };
    let count = arguments.counts.first().map_or(1, |&count| count as u64);
    let apart = |bytes: u64| -> Vec<u64> {
        if count <= known.len() as u64 {
            let addresses = (0..count).map(|index| first.wrapping_add(index * bytes));
            return addresses.filter(|address| known.contains_key(address)).collect();
        }
        // A damaged trace may name any count: the known ones are fewer.
        let index = |address: u64| address.wrapping_sub(first) / bytes;
        let is_one = |address: u64| address.wrapping_sub(first).is_multiple_of(bytes) && index(address) < count;
        let mut found: Vec<u64> = known.keys().copied().filter(|&address| is_one(address)).collect();
        found.sort_unstable_by_key(|&address| index(address));
        found
    };
    let (wide, narrow) = (apart(8), apart(4));
    if narrow.len() > wide.len() { narrow } else { wide }
}
