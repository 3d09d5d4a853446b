//! Trace files of liballprof: one call a line, `NAME:start:argument:…:end`, times in microseconds.

mod arguments;
mod calls;
mod comms;
mod line;

use std::collections::HashMap;

use crate::error::Damage;
use crate::event::{Amount, Collective, Event, Operation, RankTrace, Root, What};
use arguments::{Arguments, CommUse, parse};
use calls::Call;
use comms::Sights;
pub use comms::{Known, resolve, survey};
use line::Line;

/// The number of MPI_COMM_WORLD in MPICH, which has other numbers than Open MPI for the wildcards.
const MPICH_WORLD: i64 = 0x4400_0000;

/// Reads a trace, its communicators known.
pub fn read(mut rest: &[u8], known: &Known) -> Result<RankTrace, Damage> {
    let mut line = Line::new();
    let mut arguments = Arguments::default();
    let mut reader = Reader::new(known);
    reader.trace.truncated = true;
    while line.next(&mut rest)? {
        match parse(&line, &mut arguments)? {
            Ok(call) => reader.call(&line, call, &arguments)?,
            Err(name) => reader.unknown(&line, name)?,
        }
    }
    reader.end();
    Ok(reader.trace)
}

/// What a persistent request does when started.
#[derive(Clone, Copy)]
struct Prepared {
    sends: bool,
    comm: u32,
    peer: i64,
    tag: i64,
    bytes: u64,
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
    open: HashMap<u64, u32>,
    prepared: HashMap<u64, Prepared>,
    /// The last test of each request that is under way
    tested: HashMap<u64, u32>,
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
            last_end: None,
            first_end: None,
        }
    }

    fn unknown(&mut self, line: &Line, name: &str) -> Result<(), Damage> {
        self.time(line)?;
        if !self.trace.others.iter().any(|other| other == name) {
            self.trace.others.push(name.into());
        }
        Ok(())
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
        if call == Call::Local {
            return Ok(());
        }
        let comm = arguments.comm.map_or(0, |used| self.comm(used));
        match call {
            Call::Send { blocking } => {
                let bytes = self.bytes(line, arguments, 0)?;
                let sent = self.send(line, comm, arguments.ranks[0], arguments.tags[0], bytes, blocking)?;
                self.under_way(arguments.request, sent);
            }
            Call::Recv { blocking } => {
                let bytes = self.bytes(line, arguments, 0)?;
                let posted = self.recv(line, comm, arguments.ranks[0], arguments.tags[0], bytes, blocking)?;
                self.under_way(arguments.request, posted);
            }
            Call::SendRecv | Call::SendRecvReplace => {
                let received = if call == Call::SendRecv { 1 } else { 0 };
                let (out, into) = (self.bytes(line, arguments, 0)?, self.bytes(line, arguments, received)?);
                let sent = self.send(line, comm, arguments.ranks[0], arguments.tags[0], out, false)?;
                let posted = self.recv(line, comm, arguments.ranks[1], arguments.tags[1], into, false)?;
                for started in sent.into_iter().chain(posted) {
                    self.push(What::Wait(started));
                }
            }
            Call::Prepare { sends } => {
                let bytes = self.bytes(line, arguments, 0)?;
                let (peer, tag) = (arguments.ranks[0], arguments.tags[0]);
                if let Some(request) = arguments.request {
                    self.prepared.insert(request, Prepared { sends, comm, peer, tag, bytes });
                }
            }
            Call::Start => {
                for request in self.requests(arguments, |reader, address| reader.prepared.contains_key(&address)) {
                    let Prepared { sends, comm, peer, tag, bytes } = self.prepared[&request];
                    let started = match sends {
                        true => self.send(line, comm, peer, tag, bytes, false)?,
                        false => self.recv(line, comm, peer, tag, bytes, false)?,
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
                if let Some(first) = requests.into_iter().min_by_key(|request| self.open[request]) {
                    self.complete(first);
                }
            }
            // Whether they were complete is not in the trace either: see `outdated`.
            Call::Test => {
                for request in self.open_requests(arguments) {
                    self.push(What::Nothing);
                    self.tested.insert(request, self.trace.events.len() as u32 - 1);
                }
            }
            Call::Free => {
                if let Some(request) = arguments.request {
                    self.outdated(request);
                    self.prepared.remove(&request);
                }
            }
            Call::Collective { operation, blocking } => {
                self.collective(line, operation, blocking, comm, arguments)?;
            }
            Call::Dup | Call::Split | Call::OtherComm => {
                let (root, amount) = (Root::Nowhere, Amount::Same(1));
                let operation = Operation::Barrier;
                self.push(What::Collective(Box::new(Collective { comm, operation, root, amount, blocking: true })));
            }
            Call::CommFree => self.sights.freed(),
            Call::Finalize => self.trace.truncated = false,
            Call::Local => {}
        }
        Ok(())
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
        let bytes = (arguments.counts[which] as u64).checked_mul(arguments.types[which] as u64);
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
    fn send(
        &mut self,
        line: &Line,
        comm: u32,
        to: i64,
        tag: i64,
        bytes: u64,
        blocking: bool,
    ) -> Result<Option<u32>, Damage> {
        let Some(to) = self.rank(line, comm, to)? else { return Ok(None) };
        let tag = Self::tag(line, tag)?;
        self.push(What::Send { comm, to, tag, bytes, blocking });
        Ok(Some(self.trace.events.len() as u32 - 1))
    }

    fn recv(
        &mut self,
        line: &Line,
        comm: u32,
        from: i64,
        tag: i64,
        bytes: u64,
        blocking: bool,
    ) -> Result<Option<u32>, Damage> {
        let sender = self.rank(line, comm, from)?;
        if sender.is_none() && from != self.any_source {
            return Ok(None);
        }
        let tag = if tag < 0 { None } else { Some(Self::tag(line, tag)?) };
        self.push(What::Recv { comm, from: sender, tag, bytes, blocking });
        Ok(Some(self.trace.events.len() as u32 - 1))
    }

    /// Requests of an array that satisfy `is`. Their addresses are 8 bytes apart (Open MPI) or 4 (MPICH, Fortran):
    /// whichever finds more.
    fn requests(&self, arguments: &Arguments, is: impl Fn(&Self, u64) -> bool) -> Vec<u64> {
        let Some(first) = arguments.request else { return Vec::new() };
        let count = arguments.counts.first().map_or(1, |&count| count as u64);
        let apart = |bytes: u64| -> Vec<u64> {
            (0..count).map(|index| first.wrapping_add(index * bytes)).filter(|&address| is(self, address)).collect()
        };
        let (wide, narrow) = (apart(8), apart(4));
        if narrow.len() > wide.len() { narrow } else { wide }
    }

    fn open_requests(&self, arguments: &Arguments) -> Vec<u64> {
        self.requests(arguments, |reader, address| reader.open.contains_key(&address))
    }

    fn under_way(&mut self, request: Option<u64>, event: Option<u32>) {
        if let Some(request) = request {
            self.outdated(request);
            if let Some(event) = event {
                self.open.insert(request, event);
            }
        }
    }

    fn complete(&mut self, request: u64) {
        self.tested.remove(&request);
        if let Some(event) = self.open.remove(&request) {
            self.push(What::Wait(event));
        }
    }

    /// A request that is used anew without a wait was completed by the last test of it.
    fn outdated(&mut self, request: u64) {
        let (event, test) = (self.open.remove(&request), self.tested.remove(&request));
        if let (Some(event), Some(test)) = (event, test) {
            self.trace.events[test as usize].what = What::Wait(event);
        }
    }

    fn end(&mut self) {
        let open: Vec<u64> = self.open.keys().copied().collect();
        open.into_iter().for_each(|request| self.outdated(request));
        self.trace.total_ns = self.last_end.zip(self.first_end).map_or(0, |(last, first)| last.saturating_sub(first));
    }

    fn collective(
        &mut self,
        line: &Line,
        operation: Operation,
        blocking: bool,
        comm: u32,
        arguments: &Arguments,
    ) -> Result<(), Damage> {
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
            // Has no line of its own.
            Neighbor => return Ok(()),
        };
        self.push(What::Collective(Box::new(Collective { comm, operation, root, amount, blocking })));
        let event = self.trace.events.len() as u32 - 1;
        self.under_way(arguments.request, Some(event));
        Ok(())
    }
}
