// SPDX-License-Identifier: Apache-2.0
//! Trace files of `libspintrace.so`, in the format of `sdk/tracer/format.h`.

mod numbers;
mod reader;
mod window;

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Damage;
use crate::event::{Amount, Collective, Group, Operation, RankTrace, Root, What, index_of};
use numbers::Numbers;
use reader::{
    COMM, END, FIRST_COLLECTIVE, FREE, IRECV, ISEND, ISENDRECV, NONBLOCKING, OTHER, RECV, RMA, RMA_REQUEST, Reader,
    SEND, SENDRECV, START, WAIT, WIN_FLUSH_LOCAL,
};
pub use reader::{MAGIC, Start};

/// Reads the first record.
///
/// # Errors
/// [`Damage`] if the file is damaged.
pub fn start(bytes: &[u8]) -> Result<Start, Damage> {
    let (payload, _) = joined(bytes)?;
    let mut numbers = Numbers::new(&payload);
    read_start(&mut numbers)
}

fn read_start(numbers: &mut Numbers) -> Result<Start, Damage> {
    match numbers.byte() {
        Ok(START) => {
            let (rank, ranks) = (numbers.rank()?, numbers.rank()?);
            if rank >= ranks {
                return Err(numbers.damage(format!("rank {rank} of {ranks} ranks")));
            }
            Ok(Start { rank, ranks, library: numbers.text()? })
        }
        _ => Err(Damage::at_byte(MAGIC.len() as u64, "it does not begin with a start record: nothing was recorded")),
    }
}

/// Returns the payloads of all complete blocks, and true if the file ends with a complete one.
fn joined(bytes: &[u8]) -> Result<(Vec<u8>, bool), Damage> {
    let mut rest = bytes.strip_prefix(MAGIC).ok_or_else(|| Damage::at_byte(0, "no trace file of libspintrace.so"))?;
    let mut payload = Vec::with_capacity(rest.len());
    while let Some((header, after)) = rest.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*header) as usize;
        let Some(block) = after.get(..length) else { return Ok((payload, false)) };
        payload.extend_from_slice(block);
        rest = &after[length..];
    }
    Ok((payload, rest.is_empty()))
}

/// Reads a file. With `resolve`, the wildcards of receives are replaced by the source and tag of the received message.
///
/// # Errors
/// [`Damage`] if the file is damaged.
pub fn read(bytes: &[u8], resolve: bool) -> Result<RankTrace, Damage> {
    let (payload, _) = joined(bytes)?;
    let mut numbers = Numbers::new(&payload);
    let start = read_start(&mut numbers)?;
    let mut reader =
        Reader { numbers, start, resolve, trace: RankTrace::default(), open: HashMap::new(), seen: HashMap::new() };
    reader.trace.truncated = true;
    while !reader.numbers.is_empty() && reader.trace.truncated {
        reader.record()?;
    }
    if !reader.numbers.is_empty() {
        return Err(reader.numbers.damage("records after the end".into()));
    }
    Ok(reader.trace)
}

impl Reader<'_> {
    fn record(&mut self) -> Result<(), Damage> {
        let kind = self.numbers.byte()?;
        match kind {
            END => {
                self.trace.tail_ns = self.numbers.number()?;
                self.trace.total_ns = self.numbers.number()?;
                self.numbers.number()?;
                self.trace.truncated = false;
                return Ok(());
            }
            COMM => return self.comm(),
            OTHER => {
                let name = self.numbers.text()?;
                self.trace.others.push(name);
                return Ok(());
            }
            _ => {}
        }
        let (gap_ns, wall_ns) = (self.numbers.number()?, self.numbers.number()?.saturating_mul(1000));
        self.trace.calls += 1;
        let first = self.trace.events.len();
        match kind {
            SEND | ISEND => {
                let comm = self.comm_place()?;
                self.send(comm, kind == SEND)?;
                if kind == ISEND {
                    self.request(first)?;
                }
            }
            RECV | IRECV => {
                let comm = self.comm_place()?;
                self.recv(comm, kind == RECV)?;
                if kind == IRECV {
                    self.request(first)?;
                } else {
                    self.actual(first)?;
                }
            }
            SENDRECV => {
                let comm = self.comm_place()?;
                self.send(comm, false)?;
                self.recv(comm, false)?;
                self.actual(first + 1)?;
                for started in [first, first + 1] {
                    self.push(What::Wait(index_of(started)));
                }
            }
            ISENDRECV => {
                let comm = self.comm_place()?;
                self.send(comm, false)?;
                self.recv(comm, false)?;
                self.request(first)?;
            }
            WAIT => self.wait()?,
            FREE => {
                let request = self.numbers.number()?;
                self.open.remove(&request);
                self.push(What::Nothing);
            }
            RMA..=WIN_FLUSH_LOCAL | RMA_REQUEST => self.window(kind)?,
            _ => self.collective(kind)?,
        }
        if let Some(event) = self.trace.events.get_mut(first) {
            (event.gap_ns, event.wall_ns) = (gap_ns, wall_ns);
        }
        Ok(())
    }

    fn comm(&mut self) -> Result<(), Damage> {
        let number = self.numbers.number()?;
        if number != self.trace.comms.len() as u64 {
            return Err(self.numbers.damage(format!("communicator {number} is out of order")));
        }
        let is_inter = self.numbers.number()? != 0;
        let local = self.numbers.group(self.start.ranks)?;
        let remote = if is_inter { Some(self.numbers.group(self.start.ranks)?) } else { None };
        let times = self.seen.entry((local.clone(), remote.clone())).or_default();
        let ordinal = *times;
        *times += 1;
        self.trace.comms.push(Arc::new(Group { local, remote, ordinal }));
        Ok(())
    }

    fn send(&mut self, comm: u32, blocking: bool) -> Result<(), Damage> {
        let (Some(to), Some(tag)) = (self.peer()?, self.tag()?) else {
            return Err(self.numbers.damage("a send to any".into()));
        };
        let bytes = self.numbers.bytes()?;
        self.push(What::Send { comm, to, tag, bytes, blocking });
        Ok(())
    }

    fn recv(&mut self, comm: u32, blocking: bool) -> Result<(), Damage> {
        let (from, tag, bytes) = (self.peer()?, self.tag()?, self.numbers.bytes()?);
        self.push(What::Recv { comm, from, tag, bytes, blocking });
        Ok(())
    }

    /// Reads the source and tag of the message received by a wildcard receive.
    fn actual(&mut self, event: usize) -> Result<(), Damage> {
        if matches!(self.trace.events[event].what, What::Recv { from: None, .. } | What::Recv { tag: None, .. }) {
            let (actual_from, actual_tag) = (self.peer()?, self.tag()?);
            if let What::Recv { from, tag, .. } = &mut self.trace.events[event].what
                && self.resolve
            {
                *from = from.or(actual_from);
                *tag = tag.or(actual_tag);
            }
        }
        Ok(())
    }

    fn wait(&mut self) -> Result<(), Damage> {
        let count = self.numbers.count(1)?;
        for _ in 0..count {
            let number = self.numbers.number()?;
            let (request, cancelled, has_actual) = (number / 4, number & 1 != 0, number & 2 != 0);
            let Some(events) = self.open.remove(&request) else {
                return Err(self.numbers.damage(format!("request {request} is not open")));
            };
            if has_actual {
                self.actual(events.end - 1)?;
            }
            for event in events {
                if cancelled {
                    self.trace.events[event].what = What::Nothing;
                    self.push(What::Nothing);
                } else {
                    self.push(What::Wait(index_of(event)));
                }
            }
        }
        Ok(())
    }

    fn collective(&mut self, kind: u8) -> Result<(), Damage> {
        let blocking = kind & NONBLOCKING == 0;
        let number = (kind & !NONBLOCKING).checked_sub(FIRST_COLLECTIVE);
        let Some(&operation) = number.and_then(|number| Operation::ALL.get(usize::from(number))) else {
            return Err(self.numbers.damage(format!("a record of unknown kind {kind}")));
        };
        let comm = self.comm_place()?;
        let request = if blocking { None } else { Some(self.numbers.number()?) };
        use Operation::*;
        let root = match operation {
            Bcast | Reduce | Gather | Scatter | Gatherv | Scatterv => match self.numbers.number()? {
                0 => Root::Here,
                root => {
                    let group = &self.trace.comms[comm as usize];
                    let peers = group.peers().len() as u64;
                    match u32::try_from(root - 1) {
                        Ok(rank) if root <= peers => Root::At(rank),
                        _ if root == peers + 1 && group.remote.is_some() => Root::Beside,
                        _ => return Err(self.numbers.damage(format!("root {} of {peers} ranks", root - 1))),
                    }
                }
            },
            _ => Root::Nowhere,
        };
        let amount = match operation {
            Barrier => Amount::Same(1),
            Allgatherv | ReduceScatter => Amount::Each { own: 0, send: Vec::new(), recv: self.sizes(comm, true)? },
            Gatherv => Amount::Each { own: self.numbers.bytes()?, send: Vec::new(), recv: self.sizes(comm, false)? },
            Scatterv => Amount::Each { own: self.numbers.bytes()?, send: self.sizes(comm, false)?, recv: Vec::new() },
            Alltoallv => Amount::Each { own: 0, send: self.sizes(comm, true)?, recv: self.sizes(comm, true)? },
            Neighbor => Amount::Neighbors { send: self.neighbors()?, recv: self.neighbors()? },
            _ => Amount::Same(self.numbers.bytes()?),
        };
        self.push(What::Collective(Box::new(Collective { comm, operation, root, amount, blocking })));
        match request {
            Some(request) => self.opened(request, self.trace.events.len() - 1),
            None => Ok(()),
        }
    }

    /// Reads one size for each rank of the communicator, or none unless `all` is set.
    fn sizes(&mut self, comm: u32, all: bool) -> Result<Vec<u64>, Damage> {
        let count = self.numbers.count(1)?;
        let group = &self.trace.comms[comm as usize];
        if count != group.peers().len() && count != group.local.len() && (all || count != 0) {
            return Err(self.numbers.damage(format!("{count} sizes for {} ranks", group.peers().len())));
        }
        (0..count).map(|_| self.numbers.bytes()).collect()
    }

    fn neighbors(&mut self) -> Result<Vec<(u32, u64)>, Damage> {
        let count = self.numbers.count(2)?;
        let mut all = Vec::with_capacity(count);
        for _ in 0..count {
            let Some(peer) = self.peer()? else { return Err(self.numbers.damage("no neighbour".into())) };
            all.push((peer, self.numbers.bytes()?));
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests;
