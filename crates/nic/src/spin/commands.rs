//! The commands that handlers issue (sPIN App. B.6), as the card executes them.
//!
//! * `messages`: puts, gets and atomics
//! * `transfers`: DMA to and from host memory

mod messages;
mod transfers;

use std::rc::Rc;

use abi::device::err;
use abi::portals::Handle;
use accel::{Command, CommandId, Counter, Issued, Reply};

use crate::card::Card;
use crate::message::MessageId;
use crate::ports::Ports;
use crate::region::Region;

/// The handler that has issued a command.
#[derive(Debug)]
struct Issuer {
    /// The command.
    id: CommandId,
    /// The message that the handler works for.
    message: MessageId,
    /// The handler's name.
    handler: Rc<str>,
}

/// The reply to a command, or the one to a command that is not carried out.
type Executed = Result<Reply, Reply>;

/// An argument of the command is out of range.
const INVALID: Reply = Reply::Done(err::INVALID);

/// Whether these bytes lie in the host memory that a command means.
fn inside(region: &Region, offset: u64, len: u64) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= region.length())
}

impl Card {
    /// Executes a command and replies to it.
    pub(super) fn execute(&mut self, issued: Issued, ports: &mut impl Ports) {
        let Issued { id, message, handler, command } = issued;
        let issuer = Issuer { id, message, handler };
        let executed = match command {
            Command::Put(message) => self.put_by_handler(&issuer, &message, ports),
            Command::Get(message) => self.get_by_handler(&issuer, &message, ports),
            Command::Atomic(message, op, datatype) => self.atomic_by_handler(&issuer, &message, op, datatype, ports),
            Command::Dma(dma) => self.start_dma(&issuer, dma, ports),
            Command::HostAtomic(atomic) => self.start_host_atomic(&issuer, atomic, ports),
            Command::Counter(counter) => self.counter_by_handler(&issuer, counter, ports),
        };
        let reply = executed.unwrap_or_else(|refusal| refusal);
        self.accelerate(ports, |accelerator, env| accelerator.complete(id, reply, env));
    }

    fn counter_by_handler(&mut self, issuer: &Issuer, counter: Counter, ports: &mut impl Ports) -> Executed {
        let (index, ct) = self.counter_of(issuer.message).ok_or(INVALID)?;
        match counter {
            Counter::Get => {
                let interface = self.interface(index).ok_or(INVALID)?;
                return Ok(Reply::Counter(interface.counters.get(ct).map_err(|_| INVALID)?.value));
            }
            Counter::Add(value) => self.portals.count(index, ct, value),
            Counter::Set(value) => self.portals.set_counter(index, ct, value),
        }
        self.apply(ports);
        Ok(Reply::Done(0))
    }

    /// Interface and counter of the entry that has taken a message.
    fn counter_of(&mut self, message: MessageId) -> Option<(u8, Handle)> {
        let index = self.rx(message)?.header.interface;
        let entry = self.delivery(message)?.taken.entry;
        let interface = self.interface(index)?;
        let ct = interface.entries.get(entry).ok()?.ct;
        interface.counters.get(ct).ok().map(|_| (index, ct))
    }
}
