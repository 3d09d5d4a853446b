//! DMA between handlers and host memory.

use std::rc::Rc;

use abi::device::err;
use abi::portals::{AtomicOp, Datatype, NiFail};
use accel::{Direction, Dma, HostAtomic, HostMemory, HostOperation, Reply, Transfer};
use sim::Time;

use super::super::transfer::{Action, HostTransfer};
use super::{Executed, INVALID, Issuer, inside};
use crate::atomic::{self, AtomicSpec};
use crate::card::Card;
use crate::event::CardEvent;
use crate::message::MessageId;
use crate::ports::{MemoryFault, Ports};
use crate::region::Region;

impl Card {
    /// Moves data between device and host memory.
    pub(super) fn start_dma(&mut self, issuer: &Issuer, dma: Dma, ports: &mut impl Ports) -> Executed {
        let Dma { direction, host, offset, local, length } = dma;
        let region = self.host_memory(issuer.message, host).ok_or(INVALID)?;
        let bytes = u64::from(length);
        if !inside(&region, offset, bytes) {
            return Err(INVALID);
        }
        let fault = || Reply::Fault {
            what: format!("moved {length} bytes at {local:#x} by DMA, which are not its own"),
            address: local,
        };
        let (action, done, transfer) = match direction {
            Direction::ToHost => {
                let data = self.spin.accelerator.read(issuer.id, local, length);
                let data = self.report(data, ports).flatten().ok_or_else(fault)?;
                let done = self.dma_write(bytes, "to host", None, ports);
                (Action::Write(data), done, Transfer::Posted(done - self.machine.dma.latency))
            }
            Direction::FromHost => {
                if !self.spin.accelerator.may_write(issuer.id, local, length) {
                    return Err(fault());
                }
                let done = self.dma_read(bytes, "from host", None, ports);
                (Action::Read { address: local, length }, done, Transfer::UnderWay)
            }
        };
        self.begin_transfer(issuer, (region, offset), action, transfer, done, ports)
    }

    /// An atomic on host memory: carried out there, one round trip over the host's interconnect.
    pub(super) fn start_host_atomic(
        &mut self,
        issuer: &Issuer,
        atomic: HostAtomic,
        ports: &mut impl Ports,
    ) -> Executed {
        let HostAtomic { host, offset, operation, result } = atomic;
        let datatype = match operation {
            HostOperation::CompareAndSwap { .. } => Datatype::Uint64,
            HostOperation::FetchAndAdd { datatype, .. } => datatype,
        };
        let size = atomic::size(datatype) as u64;
        let region = self.host_memory(issuer.message, host).ok_or(INVALID)?;
        let aligned = region.address(offset).is_multiple_of(size);
        if size > 8 || !inside(&region, offset, size) || !aligned {
            return Err(INVALID);
        }
        if !self.spin.accelerator.may_write(issuer.id, result, 8) {
            let what = format!("gave {result:#x} for a result, which is not its own");
            return Err(Reply::Fault { what, address: result });
        }
        let action = match operation {
            HostOperation::CompareAndSwap { compare, swap } => Action::CompareAndSwap { compare, swap, result },
            HostOperation::FetchAndAdd { datatype, increment } => Action::FetchAndAdd { datatype, increment, result },
        };
        let done = self.dma_read(size, "atomic", None, ports);
        self.begin_transfer(issuer, (region, offset), action, Transfer::UnderWay, done, ports)
    }

    fn begin_transfer(
        &mut self,
        issuer: &Issuer,
        (region, offset): (Rc<Region>, u64),
        action: Action,
        transfer: Transfer,
        done: Time,
        ports: &mut impl Ports,
    ) -> Executed {
        self.handler_stats(&issuer.handler).dmas += 1;
        let message = self.spin_message(issuer.message).ok_or(INVALID)?;
        message.transfers += 1;
        let command = (transfer == Transfer::UnderWay).then_some(issuer.id);
        let _handlers = message.handlers.set.clone();
        let dma = HostTransfer { message: issuer.message, command, _handlers, region, offset, action };
        ports.schedule(done, CardEvent::HostTransferDone(Box::new(dma)));
        Ok(Reply::Started(transfer))
    }

    /// The host memory that a handler of a message means.
    fn host_memory(&mut self, message: MessageId, host: HostMemory) -> Option<Rc<Region>> {
        if host == HostMemory::Handlers {
            return Some(self.spin_message(message)?.handlers.host_memory.clone());
        }
        Some(self.delivery(message)?.taken.region.clone())
    }

    /// A handler's transfer reaches host memory, or comes back from there.
    pub(crate) fn host_transfer_done(&mut self, transfer: HostTransfer, ports: &mut impl Ports) {
        let mut result = 0;
        // Without the message its interface has been closed meanwhile, and its handler has ended.
        let is_wanted = self.spin_message(transfer.message).is_some();
        if is_wanted && let Err(fault) = self.carry_out(&transfer, ports) {
            result = err::FAILED;
            ports.warn(format!("node {}: DMA of a handler: {fault}", self.node));
            if let Some(rx) = self.rx(transfer.message) {
                rx.fail = NiFail::Segv;
            }
        }
        if let Some(message) = self.spin_message(transfer.message) {
            message.transfers -= 1;
        }
        if let Some(command) = transfer.command {
            self.command_done(command, result, ports);
        }
        if is_wanted {
            self.finish_if_done(transfer.message, ports);
        }
    }

    /// Does in host memory what a transfer is for, and brings what it has read to the card.
    fn carry_out(&mut self, transfer: &HostTransfer, ports: &mut impl Ports) -> Result<(), MemoryFault> {
        let HostTransfer { region, offset, command, .. } = transfer;
        let (address, data) = match &transfer.action {
            Action::Write(data) => return region.write(ports, *offset, data),
            Action::Read { address, length } => {
                let mut data = vec![0; *length as usize];
                region.read(ports, *offset, &mut data)?;
                (*address, data)
            }
            Action::CompareAndSwap { compare, swap, result } => {
                let mut old = [0; 8];
                region.read(ports, *offset, &mut old)?;
                if u64::from_ne_bytes(old) == *compare {
                    return region.write(ports, *offset, &swap.to_ne_bytes());
                }
                (*result, old.to_vec())
            }
            Action::FetchAndAdd { datatype, increment, result } => {
                let size = atomic::size(*datatype);
                let mut old = [0; 8];
                region.read(ports, *offset, &mut old[..size])?;
                let mut new = old;
                let spec = AtomicSpec { op: AtomicOp::Sum, datatype: *datatype };
                spec.apply(&mut new[..size], &increment.to_le_bytes()[..size], &[]);
                region.write(ports, *offset, &new[..size])?;
                (*result, old.to_vec())
            }
        };
        if let Some(command) = command {
            self.deliver(*command, address, &data, ports);
        }
        Ok(())
    }
}
