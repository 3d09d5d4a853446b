// SPDX-License-Identifier: Apache-2.0
//! Trace files of liballprof. Each line is a call, `NAME:start:argument:…:end`, with times in microseconds.

mod arguments;
mod calls;
mod comms;
mod line;
mod reader;
mod windows;

use crate::error::Damage;
use crate::event::{Amount, Collective, Operation, RankTrace, Root, What, index_of};
use arguments::{Arguments, parse};
use calls::Call;
pub use comms::{Known, resolve, survey};
use line::Line;
use reader::{Envelope, Prepared, Reader, requests};
use windows::Windows;

/// Reads a trace with already determined communicators.
pub fn read(mut rest: &[u8], known: &Known) -> Result<RankTrace, Damage> {
    let mut line = Line::new();
    let mut arguments = Arguments::default();
    let (mut reader, mut windows) = (Reader::new(known), Windows::default());
    reader.trace.truncated = true;
    while line.next(&mut rest)? {
        let call = parse(&line, &mut arguments)?;
        reader.call(&mut windows, &line, call, &arguments)?;
    }
    reader.end();
    Ok(reader.trace)
}

impl Reader<'_> {
    /// Adds the events of a call.
    fn call(&mut self, windows: &mut Windows, line: &Line, call: Call, arguments: &Arguments) -> Result<(), Damage> {
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
                // A partitioned message has two counts: its parts, and the elements of each.
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
            // The trace does not record which request completed. The oldest one is taken.
            Call::WaitAny => {
                let requests = self.open_requests(arguments);
                if let Some(first) = requests.into_iter().min_by_key(|request| self.open[request].start) {
                    self.complete(first);
                }
            }
            // The trace does not record if the requests were complete: see `outdated`.
            Call::Test => {
                for request in self.open_requests(arguments) {
                    self.tested.insert(request, index_of(self.trace.events.len()));
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
            | Call::Access(_) => windows.call(self, line, call, comm, arguments)?,
            Call::GroupComm | Call::Local | Call::Other | Call::Untold(_) => {}
        }
        Ok(())
    }
}
