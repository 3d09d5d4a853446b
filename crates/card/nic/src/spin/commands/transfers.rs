// SPDX-License-Identifier: Apache-2.0
//! DMA between handlers and host memory.

use abi::device::err;
use abi::portals::{AtomicOp, Datatype, NiFail};
use accel::{Direction, Dma, HostAtomic, HostMemory, HostOperation, Reply, Transfer};
use sim::Time;

use super::reply::{Executed, Issuer, fault, inside, outside, refused};
use crate::atomic::{self, AtomicSpec};
use crate::event::NicEvent;
use crate::pipeline::{HandlerWrite, Pipeline, RxMessage};
use crate::portals::InternalError;
use crate::ports::{MemoryFault, Ports};
use crate::region::Region;
use crate::spin::handler_state::Spin;
use crate::spin::transfer::{Action, HostTransfer};

/// A new transfer.
struct NewTransfer {
    region: Region,
    offset: u64,
    action: Action,
    transfer: Transfer,
    done: Time,
    is_awaited: bool,
}

impl Spin {
    /// Moves data between device and host memory.
    pub(super) fn start_dma(
        &mut self,
        issuer: &Issuer,
        rx: &mut RxMessage,
        dma: Dma,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Executed {
        let Dma { direction, host, offset, local, length } = dma;
        let region = host_memory(rx, host)?;
        let bytes = u64::from(length);
        if !inside(&region, offset, bytes) {
            let command = match direction {
                Direction::ToHost => "DMA to host",
                Direction::FromHost => "DMA from host",
            };
            return Err(outside(command, offset, bytes, host, &region));
        }
        let foreign = || fault(format!("moved {length} bytes at {local:#x} by DMA, which are not its own"), local);
        let (action, done, transfer) = match direction {
            Direction::ToHost => {
                let data = self.accelerator.read(issuer.id, local, length)?.ok_or_else(foreign)?;
                let HandlerWrite { posted, done } = pipeline.dma.handler_write(bytes, ports);
                (Action::Write(data), done, Transfer::Posted(posted))
            }
            Direction::FromHost => {
                if !self.accelerator.may_write(issuer.id, local, length) {
                    return Err(foreign());
                }
                let done = pipeline.dma.handler_read(bytes, "from host", ports);
                (Action::Read { address: local, length }, done, Transfer::UnderWay)
            }
        };
        let is_awaited = transfer == Transfer::UnderWay || pipeline.dma.news_waits_for_writes();
        self.begin_transfer(issuer, rx, NewTransfer { region, offset, action, transfer, done, is_awaited }, ports)
    }

    /// Starts an atomic on host memory, which executes there: one round trip over the host's interconnect.
    pub(super) fn start_host_atomic(
        &mut self,
        issuer: &Issuer,
        rx: &mut RxMessage,
        atomic: HostAtomic,
        pipeline: &mut Pipeline,
        ports: &mut impl Ports,
    ) -> Executed {
        let HostAtomic { host, offset, operation, result } = atomic;
        let datatype = match operation {
            HostOperation::CompareAndSwap { .. } => Datatype::Uint64,
            HostOperation::FetchAndAdd { datatype, .. } => datatype,
        };
        let size = atomic::size(datatype) as u64;
        let region = host_memory(rx, host)?;
        let command = "atomic operation on host memory";
        if size > 8 {
            return Err(refused(format!("{command}: a {datatype:?} has {size} B, more than 8")));
        }
        if !inside(&region, offset, size) {
            return Err(outside(command, offset, size, host, &region));
        }
        let address = region.address(offset);
        if !address.is_multiple_of(size) {
            return Err(refused(format!("{command}: {address:#x} is no multiple of {size}")));
        }
        if !self.accelerator.may_write(issuer.id, result, 8) {
            return Err(fault(format!("gave {result:#x} for a result, which is not its own"), result));
        }
        let action = match operation {
            HostOperation::CompareAndSwap { compare, swap } => Action::CompareAndSwap { compare, swap, result },
            HostOperation::FetchAndAdd { datatype, increment } => Action::FetchAndAdd { datatype, increment, result },
        };
        let done = pipeline.dma.handler_read(size, "atomic", ports);
        let transfer = Transfer::UnderWay;
        self.begin_transfer(issuer, rx, NewTransfer { region, offset, action, transfer, done, is_awaited: true }, ports)
    }

    fn begin_transfer(
        &mut self,
        issuer: &Issuer,
        rx: &mut RxMessage,
        moved: NewTransfer,
        ports: &mut impl Ports,
    ) -> Executed {
        self.stats_of(&issuer.handler).dmas += 1;
        let message = rx.spin()?;
        let NewTransfer { region, offset, action, transfer, done, is_awaited } = moved;
        message.transfers += u32::from(is_awaited);
        let command = (transfer == Transfer::UnderWay).then_some(issuer.id);
        let _handlers = message.handlers.set.clone();
        let dma = HostTransfer { message: rx.header.id, command, is_awaited, _handlers, region, offset, action };
        ports.schedule(done, NicEvent::HostTransferDone(Box::new(dma)));
        Ok(Reply::Started(transfer))
    }

    /// Completes a handler's transfer to or from host memory. `None` as message means that its interface is closed, and
    /// its handler has ended.
    ///
    /// # Errors
    /// Returns an error if the accelerator is in an impossible state.
    pub fn transfer_done(
        &mut self,
        rx: Option<&mut RxMessage>,
        transfer: &HostTransfer,
        node: u32,
        ports: &mut impl Ports,
    ) -> Result<(), InternalError> {
        let mut result = 0;
        if let Some(rx) = rx
            && let Some(message) = rx.handlers()
        {
            message.transfers -= u32::from(transfer.is_awaited);
            match carry_out(transfer, ports) {
                Ok(brought) => {
                    if let (Some(command), Some((address, data))) = (transfer.command, brought) {
                        self.accelerator.deliver(command, address, &data)?;
                    }
                }
                Err(fault) => {
                    result = err::FAILED;
                    rx.fail = NiFail::Segv;
                    let node = ports.name_of(node);
                    ports.warn(format!("{node}: DMA of a handler: {fault}"));
                }
            }
        }
        match transfer.command {
            Some(command) => self.reply(command, Reply::Done(result), ports),
            None => Ok(()),
        }
    }
}

/// Returns the host memory that a message's handler selected.
fn host_memory(rx: &mut RxMessage, host: HostMemory) -> Result<Region, InternalError> {
    match host {
        HostMemory::Handlers => Ok(rx.spin()?.handlers.host_memory.clone()),
        HostMemory::Entry => Ok(rx.request()?.1.taken.region.clone()),
    }
}

/// Executes the host-memory part of a transfer. Returns the data for the card, and its card address.
fn carry_out(
    HostTransfer { region, offset, action, .. }: &HostTransfer,
    ports: &mut impl Ports,
) -> Result<Option<(u32, Vec<u8>)>, MemoryFault> {
    let mut old = [0; 8];
    match action {
        Action::Write(data) => {
            region.write(ports, *offset, data)?;
            Ok(None)
        }
        Action::Read { address, length } => {
            let mut data = vec![0; *length as usize];
            region.read(ports, *offset, &mut data)?;
            Ok(Some((*address, data)))
        }
        Action::CompareAndSwap { compare, swap, result } => {
            region.read(ports, *offset, &mut old)?;
            if u64::from_ne_bytes(old) == *compare {
                region.write(ports, *offset, &swap.to_ne_bytes())?;
                return Ok(None);
            }
            Ok(Some((*result, old.to_vec())))
        }
        Action::FetchAndAdd { datatype, increment, result } => {
            let size = atomic::size(*datatype);
            region.read(ports, *offset, &mut old[..size])?;
            let mut new = old;
            let spec = AtomicSpec { op: AtomicOp::Sum, datatype: *datatype };
            spec.apply(&mut new[..size], &increment.to_le_bytes()[..size], &[]);
            region.write(ports, *offset, &new[..size])?;
            Ok(Some((*result, old.to_vec())))
        }
    }
}
