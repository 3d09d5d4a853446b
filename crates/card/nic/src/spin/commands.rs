// SPDX-License-Identifier: Apache-2.0
//! Execution of handler commands on the card (sPIN App. B.6).
//!
//! * `handler_messages`: puts, gets and atomics
//! * `transfers`: DMA to and from host memory
//! * `reply`: replies to handlers

mod handler_messages;
mod reply;
mod transfers;

use abi::portals::{CtEvent, Handle};
use accel::{Command, Counter, Issued, Place, Reply};

use self::reply::{Executed, Issuer, Refusal};
use super::handler_state::Spin;
use crate::atomic::AtomicSpec;
use crate::pipeline::{Pipeline, RxMessage};
use crate::portals::InternalError;
use crate::ports::Ports;

impl Spin {
    /// Executes a command of a message's handler, and replies to it.
    ///
    /// # Errors
    /// Returns an error if the message or the accelerator is in an impossible state.
    pub fn execute(
        &mut self,
        issued: Issued,
        rx: &mut RxMessage,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let Issued { id, handler, command, .. } = issued;
        let issuer = Issuer { id, handler };
        let executed = match command {
            command if !pipeline.has_host && needs_host(&command) => {
                let (node, handler) = (pipeline.portals.node, &issuer.handler);
                ports.warn(format!(
                    "node {node}: handler '{handler}' uses host memory or a counter of the host, and a switch has no host: the \
                     call returns SPIN_ERR_INVALID"
                ));
                Err(reply::refused("a switch has no host".to_owned()))
            }
            Command::Put(message) => self.put(&issuer, rx, &message, pipeline, ports),
            Command::Get(message) => self.get(&issuer, rx, &message, pipeline, ports),
            Command::Atomic(message, op, datatype) => {
                self.atomic(&issuer, rx, &message, AtomicSpec { op, datatype }, pipeline, ports)
            }
            Command::FetchAtomic(message, fetch) => self.fetch_atomic(&issuer, rx, &message, &fetch, pipeline, ports),
            Command::Dma(dma) => self.start_dma(&issuer, rx, dma, pipeline, ports),
            Command::HostAtomic(atomic) => self.start_host_atomic(&issuer, rx, atomic, pipeline, ports),
            Command::Counter(counter) => count(rx, counter, pipeline, ports),
        };
        let reply = match executed {
            Ok(reply) | Err(Refusal::Reply(reply)) => reply,
            Err(Refusal::Internal(error)) => return Err(error),
        };
        self.reply(id, reply, ports)
    }
}

/// Returns true if a command accesses the host: its memory or its counters.
fn needs_host(command: &Command) -> bool {
    match command {
        Command::Put(message)
        | Command::Get(message)
        | Command::Atomic(message, ..)
        | Command::FetchAtomic(message, ..) => matches!(message.place, Place::Host(_)) || message.counted,
        Command::Dma(_) | Command::HostAtomic(_) | Command::Counter(_) => true,
    }
}

/// Reads or changes the counter of the handler's entry.
fn count(rx: &RxMessage, counter: Counter, pipeline: &mut Pipeline, ports: &mut impl Ports) -> Executed {
    let (index, entry) = (rx.header.interface, rx.request()?.1.taken.entry);
    let none = || reply::refused("counter: the handler's entry has none".to_owned());
    let (ct, value) = counter_of(pipeline, index, entry).ok_or_else(none)?;
    match counter {
        Counter::Get => return Ok(Reply::Counter(value)),
        Counter::Add(value) => pipeline.portals.count(index, ct, value),
        Counter::Set(value) => pipeline.portals.set_counter(index, ct, value),
    }
    pipeline.apply(ports)?;
    Ok(Reply::Done(0))
}

/// Returns the counter of an entry, and its value; `None` if the entry has no counter, or if it no longer exists.
fn counter_of(pipeline: &mut Pipeline, index: u8, entry: Handle) -> Option<(Handle, CtEvent)> {
    let interface = pipeline.portals.interface(index)?;
    let ct = interface.entries.get(entry).ok()?.ct;
    Some((ct, interface.counters.get(ct).ok()?.value))
}
