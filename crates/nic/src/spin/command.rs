//! What handlers ask of the card (sPIN App. B.6; numbers and structures: `abi::device`).
//!
//! * `transfer`: DMA to and from host memory
//! * `message`: puts, gets and atomics

mod message;
mod transfer;

use abi::device::{CasCmd, FetchAddCmd, cmd, err};
use abi::portals::{CtEvent, Plain};
use hpu::Window;

use super::{SpinUnit, Wait};
use crate::card::{Card, CardEvent};
use crate::ports::Ports;
use crate::region::Region;
pub use transfer::HandlerDma;
pub(super) use transfer::{Transfer, TransferState};

/// What a command does to its handler.
enum Outcome {
    /// It goes on with this result.
    Continue(i32),
    /// It goes on when an event of its own comes.
    Until(sim::Time),
    /// It goes on when the packet that it has sent, and that is blocked, has left.
    ForDeparture,
    /// It goes on when something that it has asked for is there, and wakes it.
    ForEvent,
    /// It gave memory that is not its own.
    Fault(String, u32),
}

/// The outcome, or an early one.
type Commanded = Result<Outcome, Outcome>;

/// Whether these bytes lie in the host memory that a command means.
fn inside(region: &Region, offset: u64, len: u64) -> bool {
    offset.checked_add(len).is_some_and(|end| end <= region.length())
}

/// An argument is out of range.
const INVALID: Outcome = Outcome::Continue(err::INVALID);

/// Commands by which a handler only looks whether something has come.
const LOOKS: [u32; 5] = [cmd::DMA_TEST, cmd::CT_GET, cmd::MY_HPU, cmd::NUM_HPUS, cmd::YIELD];

impl Card {
    pub(super) fn command(&mut self, context: u16, number: u32, argument: u32, ports: &mut impl Ports) {
        if !LOOKS.contains(&number)
            && let Some(resident) = self.spin.contexts[usize::from(context)].as_mut()
        {
            resident.thread.note_work();
        }
        let outcome = match number {
            cmd::PUT_FROM_DEVICE => self.put_from_device(context, argument, ports),
            cmd::PUT_FROM_HOST => self.put_from_host(context, argument, ports),
            cmd::GET_TO_HOST | cmd::GET_TO_DEVICE => {
                self.get_by_handler(context, number == cmd::GET_TO_HOST, argument, ports)
            }
            cmd::ATOMIC_FROM_DEVICE | cmd::ATOMIC_FROM_HOST => {
                self.atomic_by_handler(context, number == cmd::ATOMIC_FROM_HOST, argument, ports)
            }
            cmd::DMA_TO_HOST | cmd::DMA_FROM_HOST => {
                self.start_dma(context, number == cmd::DMA_TO_HOST, argument, ports)
            }
            cmd::DMA_CAS | cmd::DMA_FETCH_ADD => {
                self.start_dma_atomic(context, number == cmd::DMA_CAS, argument, ports)
            }
            cmd::DMA_TEST | cmd::DMA_WAIT => self.await_dma(context, number == cmd::DMA_WAIT, argument, ports),
            cmd::CAS => self.compare_and_swap(context, argument),
            cmd::FETCH_ADD => self.fetch_and_add(context, argument),
            cmd::CT_INC | cmd::CT_GET | cmd::CT_SET => self.counter_command(context, number, argument, ports),
            cmd::MY_HPU => Ok(Outcome::Continue((usize::from(context) % self.spin.hpus.len()) as i32)),
            cmd::NUM_HPUS => Ok(Outcome::Continue(self.spin.hpus.len() as i32)),
            cmd::YIELD => return self.yield_hpu(context, ports),
            cmd::ABORT => return self.abort_handler(context, ports),
            other => Err(Outcome::Fault(format!("issued command {other}, which this card does not have"), other)),
        };
        let Some(resident) = self.spin.contexts[usize::from(context)].as_mut() else { return };
        match outcome.unwrap_or_else(|early| early) {
            Outcome::Continue(result) => {
                resident.thread.set_result(result as u32);
                self.run_on(context, ports);
            }
            Outcome::Until(time) => {
                resident.thread.set_result(0);
                resident.waits = Wait::Time;
                let run = resident.run;
                ports.schedule(time, CardEvent::Hpu(context, run));
                self.deschedule(context, ports);
            }
            Outcome::ForDeparture => {
                resident.thread.set_result(0);
                resident.waits = Wait::Time;
                let run = resident.run;
                self.when_departed(CardEvent::Hpu(context, run));
                self.deschedule(context, ports);
            }
            Outcome::ForEvent => {
                resident.thread.set_result(0);
                resident.waits = Wait::Event;
                self.deschedule(context, ports);
            }
            Outcome::Fault(what, addr) => self.command_fault(context, what, addr, ports),
        }
    }

    fn yield_hpu(&mut self, context: u16, ports: &mut impl Ports) {
        if let Some(resident) = self.spin.contexts[usize::from(context)].as_mut() {
            resident.thread.set_result(0);
        }
        if self.spin.core(context).ready.is_empty() {
            self.run_on(context, ports);
        } else {
            self.deschedule(context, ports);
            self.wake(context, ports);
        }
    }

    /// An atomic compare-and-swap on 64 bits of card memory; the handler learns what was there.
    fn compare_and_swap(&mut self, context: u16, argument: u32) -> Commanded {
        let mut command: CasCmd = self.spin.argument(context, argument)?;
        let value = self.spin.word(context, command.address, true)?;
        let before = u64::from_le_bytes(*value);
        let equal = before == command.compare;
        if equal {
            *value = command.swap.to_le_bytes();
        }
        command.compare = before;
        self.spin.answer(context, argument, command.as_bytes());
        Ok(Outcome::Continue(i32::from(equal)))
    }

    /// An atomic fetch-and-add on 64 bits of card memory; to add nothing is to read.
    fn fetch_and_add(&mut self, context: u16, argument: u32) -> Commanded {
        let mut command: FetchAddCmd = self.spin.argument(context, argument)?;
        let value = self.spin.word(context, command.address, command.increment != 0)?;
        command.before = u64::from_le_bytes(*value);
        *value = command.before.wrapping_add(command.increment).to_le_bytes();
        self.spin.answer(context, argument, command.as_bytes());
        Ok(Outcome::Continue(0))
    }

    fn counter_command(&mut self, context: u16, number: u32, argument: u32, ports: &mut impl Ports) -> Commanded {
        let value: CtEvent = self.spin.argument(context, argument)?;
        let (index, ct) = self.counter_of(context).ok_or(INVALID)?;
        match number {
            cmd::CT_GET => {
                let interface = self.interface(index).ok_or(INVALID)?;
                let value = interface.counters.get(ct).map_err(|_| INVALID)?.value;
                self.spin.answer(context, argument, value.as_bytes());
            }
            cmd::CT_INC => self.count(index, ct, value, ports),
            _ => self.set_counter(index, ct, value, ports),
        }
        Ok(Outcome::Continue(0))
    }

    /// Interface and counter of the entry that a handler works for.
    fn counter_of(&mut self, context: u16) -> Option<(u8, abi::portals::Handle)> {
        let message = self.spin.contexts[usize::from(context)].as_ref()?.task.message;
        let index = self.inbound(message)?.header.interface;
        let entry = self.delivery(message)?.entry;
        let interface = self.interface(index)?;
        let ct = interface.entries.get(entry).ok()?.ct;
        interface.counters.get(ct).ok().map(|_| (index, ct))
    }
}

impl SpinUnit {
    /// Whether bytes are a handler's own; nothing is anybody's.
    fn owns(&self, context: u16, addr: u32, len: u32, write: bool) -> bool {
        let Some(resident) = self.contexts[usize::from(context)].as_ref() else { return false };
        let inside = |w: &Window| u64::from(addr.wrapping_sub(w.base)) + u64::from(len) <= u64::from(w.len);
        len == 0 || resident.windows.iter().any(|window| inside(window) && (window.write || !write))
    }

    fn bytes_of(&mut self, context: u16, addr: u32, len: u32) -> Option<Vec<u8>> {
        self.owns(context, addr, len, false).then(|| self.memory.slice(addr, len).to_vec())
    }

    /// 64 aligned bits that the handler may read, and `write` if asked for.
    fn word(&mut self, context: u16, addr: u32, write: bool) -> Result<&mut [u8; 8], Outcome> {
        let fault = || Outcome::Fault(format!("asked for an atomic operation at {addr:#x}"), addr);
        if !self.owns(context, addr, 8, write) || !addr.is_multiple_of(8) {
            return Err(fault());
        }
        self.memory.slice(addr, 8).first_chunk_mut().ok_or_else(fault)
    }

    /// A command's structure, out of the handler's memory.
    fn argument<T: Plain>(&mut self, context: u16, addr: u32) -> Result<T, Outcome> {
        self.bytes_of(context, addr, size_of::<T>() as u32)
            .and_then(|bytes| T::from_bytes(&bytes))
            .ok_or_else(|| Outcome::Fault(format!("issued a command at {addr:#x}, which is not its own"), addr))
    }

    /// Writes a command's structure back, where the handler may write.
    fn answer(&mut self, context: u16, addr: u32, bytes: &[u8]) {
        if self.owns(context, addr, bytes.len() as u32, true) {
            self.memory.write(addr, bytes);
        }
    }

    /// Forgets the transfers of a handler that has ended. Those that are under way go on, but no longer write to what was
    /// its own: that may be another handler's when they end.
    pub(super) fn drop_transfers(&mut self, context: u16) {
        for slot in &mut self.transfers {
            match slot {
                Some(transfer) if transfer.owner != context => {}
                Some(Transfer { state: state @ TransferState::Pending(_), .. }) => *state = TransferState::Orphan,
                Some(Transfer { state: TransferState::Orphan, .. }) | None => {}
                _ => *slot = None,
            }
        }
    }

    fn add_transfer(&mut self, transfer: Transfer) -> u32 {
        match self.transfers.iter().position(Option::is_none) {
            Some(free) => {
                self.transfers[free] = Some(transfer);
                free as u32
            }
            None => {
                self.transfers.push(Some(transfer));
                (self.transfers.len() - 1) as u32
            }
        }
    }
}
