//! DMA between handlers and host memory.

use std::rc::Rc;

use abi::device::{DmaAtomicCmd, DmaCmd, err};
use abi::portals::{AtomicOp, Datatype, NiFail, Plain};

use super::super::Wait;
use super::super::memory::CardMemory;
use super::{Commanded, INVALID, Outcome, inside};
use crate::atomic::{self, AtomicSpec};
use crate::card::{Card, CardEvent};
use crate::handlers::HpuMemory;
use crate::message::MessageId;
use crate::ports::{MemoryFault, Ports};
use crate::region::Region;
use sim::Time;

/// A DMA transfer of a handler, ready to be carried out.
#[derive(Debug)]
pub struct HandlerDma {
    message: MessageId,
    /// The transfer that its completion ends; a posted write has ended already.
    transfer: Option<u32>,
    /// The HPU memory of its handler, which stays reserved.
    _state: Option<Rc<HpuMemory>>,
    region: Rc<Region>,
    offset: u64,
    work: Work,
}

#[derive(Debug)]
enum Work {
    ToHost(Vec<u8>),
    /// To this card address.
    FromHost {
        start: u32,
        len: u32,
    },
    /// Compare and swap; the value before goes to this card address when it fails.
    CompareAndSwap {
        compare: u64,
        swap: u64,
        result: u32,
    },
    /// Fetch and add; the value before goes to this card address.
    FetchAndAdd {
        datatype: Datatype,
        increment: u64,
        result: u32,
    },
}

/// A DMA transfer that its handler has not yet seen complete.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Transfer {
    /// Context of the handler.
    pub(in super::super) owner: u16,
    pub(in super::super) state: TransferState,
}

#[derive(Clone, Copy, Debug)]
pub(in super::super) enum TransferState {
    /// A write to the host: its data has left the card at this time, and that completes it (sPIN App. C.3.2: a write
    /// "blocks HPUs to initiate the write request").
    Posted(Time),
    /// A read that is under way, and whether its handler waits for it.
    Pending(bool),
    /// A read whose data is there (0), or will not come (negative).
    Done(i32),
    /// A read whose handler has ended.
    Orphan,
}

/// `PTL_ME_HOST_MEM`, an option of a DMA.
const ME_HOST_MEM: u32 = 0;
/// `PTL_HANDLER_HOST_MEM`, likewise.
const HANDLER_HOST_MEM: u32 = 1;

/// Host memory that a transfer of a handler reads or writes, and the message that the handler works for.
struct HostPlace {
    message: MessageId,
    region: Rc<Region>,
    offset: u64,
}

impl Card {
    pub(super) fn start_dma(
        &mut self,
        context: u16,
        to_host: bool,
        argument: u32,
        ports: &mut impl Ports,
    ) -> Commanded {
        let mut command: DmaCmd = self.spin.argument(context, argument)?;
        let (message, region) = self.dma_region(context, command.options).ok_or(INVALID)?;
        let (addr, len) = (command.local, command.len);
        let fault = || Outcome::Fault(format!("moved {len} bytes at {addr:#x} by DMA, which are not its own"), addr);
        if !inside(&region, command.offset, u64::from(len)) {
            return Err(INVALID);
        }
        if !self.spin.owns(context, addr, len, !to_host) {
            return Err(fault());
        }
        let (work, done, transfer) = if to_host {
            let data = self.spin.memory.slice(addr, len).to_vec();
            let done = self.dma_write(u64::from(len), "to host", None, ports);
            (Work::ToHost(data), done, TransferState::Posted(done - self.machine.dma.latency))
        } else {
            let done = self.dma_read(u64::from(len), "from host", None, ports);
            (Work::FromHost { start: addr, len }, done, TransferState::Pending(false))
        };
        let place = HostPlace { message, region, offset: command.offset };
        command.handle = self.begin_transfer(context, place, work, transfer, done, ports);
        self.spin.answer(context, argument, command.as_bytes());
        Ok(Outcome::Continue(0))
    }

    /// An atomic on host memory: carried out there, one round trip over the host's interconnect.
    pub(super) fn start_dma_atomic(
        &mut self,
        context: u16,
        swap: bool,
        argument: u32,
        ports: &mut impl Ports,
    ) -> Commanded {
        let mut command: DmaAtomicCmd = self.spin.argument(context, argument)?;
        let datatype = match swap {
            true => Datatype::Uint64,
            false => Datatype::from_raw(u64::from(command.datatype)).ok_or(INVALID)?,
        };
        let size = atomic::size(datatype) as u64;
        let (message, region) = self.dma_region(context, command.options).ok_or(INVALID)?;
        let aligned = region.address(command.offset).is_multiple_of(size);
        if size > 8 || !inside(&region, command.offset, size) || !aligned {
            return Err(INVALID);
        }
        let result = command.result;
        if !self.spin.owns(context, result, 8, true) {
            let what = format!("gave {result:#x} for a result, which is not its own");
            return Err(Outcome::Fault(what, result));
        }
        let work = match swap {
            true => Work::CompareAndSwap { compare: command.value, swap: command.swap, result },
            false => Work::FetchAndAdd { datatype, increment: command.value, result },
        };
        let done = self.dma_read(size, "atomic", None, ports);
        let (place, pending) = (HostPlace { message, region, offset: command.offset }, TransferState::Pending(false));
        command.handle = self.begin_transfer(context, place, work, pending, done, ports);
        self.spin.answer(context, argument, command.as_bytes());
        Ok(Outcome::Continue(0))
    }

    fn begin_transfer(
        &mut self,
        context: u16,
        HostPlace { message, region, offset }: HostPlace,
        work: Work,
        state: TransferState,
        done: Time,
        ports: &mut impl Ports,
    ) -> u32 {
        let mut hpu_memory = None;
        if let Some(resident) = self.spin.contexts[usize::from(context)].as_ref() {
            hpu_memory = resident.state.clone();
            let handler = resident.task.handler.name.clone();
            self.handler_stats(&handler).dmas += 1;
        }
        if let Some(message) = self.spin_message(message) {
            message.transfers += 1;
        }
        let handle = self.spin.add_transfer(Transfer { owner: context, state });
        let transfer = matches!(state, TransferState::Pending(_)).then_some(handle);
        let dma = HandlerDma { message, transfer, _state: hpu_memory, region, offset, work };
        ports.schedule(done, CardEvent::HandlerDma(Box::new(dma)));
        handle
    }

    /// The message that a handler works for, and the host memory that it means.
    fn dma_region(&mut self, context: u16, options: u32) -> Option<(MessageId, Rc<Region>)> {
        let message = self.spin.contexts[usize::from(context)].as_ref()?.task.message;
        match options {
            HANDLER_HOST_MEM => return Some((message, self.spin_message(message)?.handlers.host_memory.clone())),
            ME_HOST_MEM => {}
            _ => return None,
        }
        let interface = self.inbound(message)?.header.interface;
        let entry = self.delivery(message)?.entry;
        Some((message, self.interface(interface)?.entries.get(entry).ok()?.region.clone()))
    }

    pub(super) fn await_dma(&mut self, context: u16, wait: bool, handle: u32, ports: &mut impl Ports) -> Commanded {
        let slot = self.spin.transfers.get_mut(handle as usize).ok_or(INVALID)?;
        let transfer =
            slot.as_mut().filter(|t| t.owner == context && !matches!(t.state, TransferState::Orphan)).ok_or(INVALID)?;
        match (&mut transfer.state, wait) {
            (TransferState::Posted(gone), true) if *gone > ports.now() => {
                let gone = *gone;
                *slot = None;
                Ok(Outcome::Until(gone))
            }
            (TransferState::Posted(gone), false) if *gone > ports.now() => Ok(Outcome::Continue(0)),
            (TransferState::Pending(waits), true) => {
                *waits = true;
                Ok(Outcome::ForEvent)
            }
            (TransferState::Pending(_), false) => Ok(Outcome::Continue(0)),
            (TransferState::Done(result), _) if *result != 0 => {
                let result = *result;
                *slot = None;
                Ok(Outcome::Continue(result))
            }
            (_, wait) => {
                *slot = None;
                Ok(Outcome::Continue(i32::from(!wait)))
            }
        }
    }

    /// A handler's transfer reaches host memory, or comes back from there.
    pub(crate) fn handler_dma_done(&mut self, dma: HandlerDma, ports: &mut impl Ports) {
        if self.spin_message(dma.message).is_none() {
            // Its interface has been closed meanwhile, and its handler has ended.
            if let Some(slot) = dma.transfer.and_then(|transfer| self.spin.transfers.get_mut(transfer as usize)) {
                *slot = None;
            }
            return;
        }
        let mut result = 0;
        if let Err(fault) = self.carry_out(&dma, ports) {
            result = err::FAILED;
            ports.warn(format!("node {}: DMA of a handler: {fault}", self.node));
            if let Some(inbound) = self.inbound(dma.message) {
                inbound.fail = NiFail::Segv;
            }
        }
        if let Some(message) = self.spin_message(dma.message) {
            message.transfers -= 1;
        }
        if let Some(slot) = dma.transfer.and_then(|transfer| self.spin.transfers.get_mut(transfer as usize))
            && let Some(Transfer { owner, state }) = *slot
        {
            match state {
                TransferState::Pending(true) => {
                    *slot = None;
                    self.resume_waiting(owner, result, ports);
                }
                TransferState::Orphan => *slot = None,
                _ => *slot = Some(Transfer { owner, state: TransferState::Done(result) }),
            }
        }
        self.finish_if_done(dma.message, ports);
    }

    /// What a handler has waited for is over, with this result.
    pub(crate) fn resume_waiting(&mut self, context: u16, result: i32, ports: &mut impl Ports) {
        // The process may have let go of its card meanwhile.
        if let Some(resident) = self.spin.contexts[usize::from(context)].as_mut() {
            resident.waits = Wait::No;
            resident.thread.set_result(result as u32);
            self.wake(context, ports);
        }
    }

    /// Writes what a transfer has brought to the card, unless that was memory of a handler that has ended.
    fn bring(&mut self, dma: &HandlerDma, address: u32, data: &[u8]) {
        let slot = dma.transfer.and_then(|transfer| self.spin.transfers.get(transfer as usize)?.as_ref());
        let orphan = slot.is_none_or(|transfer| matches!(transfer.state, TransferState::Orphan));
        if !orphan || CardMemory::is_shared(address) {
            self.spin.memory.write(address, data);
        }
    }

    fn carry_out(&mut self, dma: &HandlerDma, ports: &mut impl Ports) -> Result<(), MemoryFault> {
        let (region, offset) = (&dma.region, dma.offset);
        match &dma.work {
            Work::ToHost(data) => region.write(ports, offset, data),
            Work::FromHost { start, len } => {
                let mut data = vec![0; *len as usize];
                region.read(ports, offset, &mut data)?;
                self.bring(dma, *start, &data);
                Ok(())
            }
            Work::CompareAndSwap { compare, swap, result } => {
                let mut old = [0; 8];
                region.read(ports, offset, &mut old)?;
                if u64::from_ne_bytes(old) == *compare {
                    return region.write(ports, offset, &swap.to_ne_bytes());
                }
                self.bring(dma, *result, &old);
                Ok(())
            }
            Work::FetchAndAdd { datatype, increment, result } => {
                let size = atomic::size(*datatype);
                let mut old = [0; 8];
                region.read(ports, offset, &mut old[..size])?;
                let mut new = old;
                let spec = AtomicSpec { op: AtomicOp::Sum, datatype: *datatype };
                spec.apply(&mut new[..size], &increment.to_le_bytes()[..size], &[]);
                region.write(ports, offset, &new[..size])?;
                self.bring(dma, *result, &old);
                Ok(())
            }
        }
    }
}
