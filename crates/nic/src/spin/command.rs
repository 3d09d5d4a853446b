//! What handlers ask of the card (sPIN App. B.6; numbers and structures: `abi::device`).

use std::rc::Rc;

use abi::device::{DmaCmd, PutCmd, cmd, err};
use abi::portals::{AckReq, CtEvent, NiFail, Plain, Process, md};
use hpu::Window;

use super::{SpinUnit, Wait};
use crate::atomic::MAX_OPERAND;
use crate::card::{Card, CardEvent, Operation, OperationKind, Outgoing, Sent, Source};
use crate::interface::MemoryDescriptor;
use crate::message::{Body, Header, MessageId, Packet, Request, RequestKind};
use crate::ports::Ports;
use crate::region::Region;

/// A DMA transfer of a handler, ready to be carried out.
#[derive(Debug)]
pub struct HandlerDma {
    transfer: u32,
    region: Rc<Region>,
    offset: u64,
    direction: Direction,
}

#[derive(Debug)]
enum Direction {
    ToHost(Vec<u8>),
    /// To the arena, at this place.
    FromHost(usize, u32),
}

/// A DMA transfer that is under way, or done and not asked for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transfer {
    message: MessageId,
    done: bool,
    waiter: Option<u16>,
}

/// `PTL_ME_HOST_MEM`, an option of a DMA.
const ME_HOST_MEM: u32 = 0;
/// `PTL_HANDLER_HOST_MEM`, likewise.
const HANDLER_HOST_MEM: u32 = 1;

/// What a command does to its handler.
enum Outcome {
    /// It goes on with this result.
    Continue(i32),
    /// It goes on when an event of its own comes.
    Until(sim::Time),
    /// It goes on when a transfer is done.
    For(u32),
    /// It gave memory that is not its own.
    Fault(String, u32),
}

impl Card {
    pub(super) fn command(&mut self, context: u16, number: u32, argument: u32, ports: &mut impl Ports) {
        let outcome = match number {
            cmd::PUT_FROM_DEVICE => self.put_from_device(context, argument, ports),
            cmd::PUT_FROM_HOST => self.put_from_host(context, argument, ports),
            cmd::DMA_TO_HOST | cmd::DMA_FROM_HOST => {
                self.start_dma(context, number == cmd::DMA_TO_HOST, argument, ports)
            }
            cmd::DMA_TEST | cmd::DMA_WAIT => self.await_dma(number == cmd::DMA_WAIT, argument),
            cmd::CT_INC | cmd::CT_GET | cmd::CT_SET => self.counter_command(context, number, argument, ports),
            cmd::MY_HPU => Outcome::Continue((usize::from(context) % self.spin.hpus.len()) as i32),
            cmd::NUM_HPUS => Outcome::Continue(self.spin.hpus.len() as i32),
            cmd::YIELD => return self.yield_hpu(context, ports),
            cmd::ABORT => return self.abort_handler(context, ports),
            other => Outcome::Fault(format!("issued command {other}, which this card does not have"), other),
        };
        let Some(resident) = self.spin.contexts[usize::from(context)].as_mut() else { return };
        match outcome {
            Outcome::Continue(result) => {
                resident.thread.set_result(result as u32);
                self.run_on(context, ports);
            }
            Outcome::Until(time) => {
                resident.thread.set_result(0);
                resident.waits = Wait::Time;
                ports.schedule(time, CardEvent::Hpu(context));
                self.deschedule(context, ports);
            }
            Outcome::For(transfer) => {
                resident.thread.set_result(0);
                resident.waits = Wait::Transfer(transfer);
                if let Some(Some(transfer)) = self.spin.transfers.get_mut(transfer as usize) {
                    transfer.waiter = Some(context);
                }
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

    /// A single-packet put from device memory.
    fn put_from_device(&mut self, context: u16, argument: u32, ports: &mut impl Ports) -> Outcome {
        let command: PutCmd = match self.spin.argument(context, argument) {
            Ok(command) => command,
            Err(fault) => return fault,
        };
        if command.len > u64::from(self.spin.mtu) {
            return Outcome::Continue(err::INVALID);
        }
        let Some(data) = self.spin.bytes_of(context, command.local as u32, command.len as u32) else {
            let (addr, len) = (command.local as u32, command.len);
            return Outcome::Fault(format!("put {len} bytes from {addr:#x}, which are not its own"), addr);
        };
        let Some((header, sent, _)) = self.handler_put(context, &command) else {
            return Outcome::Continue(err::INVALID);
        };
        if header.target >= self.nodes {
            return Outcome::Continue(err::INVALID);
        }
        self.stats.messages_sent += 1;
        let left = self.inject(Packet { header, offset: 0, data }, sent, ports);
        if self.machine.hpu.put_blocks { Outcome::Until(left) } else { Outcome::Continue(0) }
    }

    /// A put from the ME's host memory, as if the host had posted it.
    fn put_from_host(&mut self, context: u16, argument: u32, ports: &mut impl Ports) -> Outcome {
        let command: PutCmd = match self.spin.argument(context, argument) {
            Ok(command) => command,
            Err(fault) => return fault,
        };
        let Some((header, sent, region)) = self.handler_put(context, &command) else {
            return Outcome::Continue(err::INVALID);
        };
        let inside = command.local.checked_add(command.len).is_some_and(|end| end <= region.length());
        if !inside || header.target >= self.nodes {
            return Outcome::Continue(err::INVALID);
        }
        self.send(Outgoing { header, source: Source::Host(region, command.local), sent }, ports);
        Outcome::Continue(0)
    }

    /// The header of a handler's put; what the call does not say is inherited from the ME (App. B.6).
    fn handler_put(&mut self, context: u16, command: &PutCmd) -> Option<(Rc<Header>, Sent, Rc<Region>)> {
        let ack = AckReq::from_raw(u64::from(command.ack_req))?;
        let id = self.spin.contexts[usize::from(context)].as_ref()?.task.message;
        let handler = self.spin.contexts[usize::from(context)].as_ref()?.task.handler.name.to_string();
        let entry = self.delivery(id)?.entry;
        let index = self.inbound(id)?.header.interface;
        let interface = self.interfaces[usize::from(index)].as_deref()?;
        let entry = interface.entries.get(entry).ok()?;
        let portal = interface.portals.get(entry.pt_index as usize)?.as_ref()?;
        let place: Process = interface.locate(command.target_id)?;
        let (pt_index, initiator, region) = (entry.pt_index, self.identity(interface), entry.region.clone());
        let counts = if command.ct != 0 { md::EVENT_CT_SEND | md::EVENT_CT_ACK } else { 0 };
        let descriptor = Rc::new(MemoryDescriptor {
            region: region.clone(),
            options: md::EVENT_SEND_DISABLE | counts,
            eq: portal.eq,
            ct: entry.ct,
        });
        let answered = ack == AckReq::None;
        let token = (command.ct != 0 || !answered).then(|| {
            self.operations.insert(Operation {
                interface: index,
                send_md: descriptor.clone(),
                md: descriptor,
                local_offset: command.local,
                length: command.len,
                user_ptr: u64::from(command.user_ptr),
                kind: OperationKind::Put(ack),
                sent: false,
                answered,
                fail: NiFail::Ok,
            })
        });
        self.stats.handlers.entry(handler).or_default().puts += 1;
        let request = Request {
            kind: RequestKind::Put,
            pt_index,
            match_bits: command.match_bits,
            remote_offset: command.remote_offset,
            length: command.len,
            hdr_data: command.hdr_data,
            ack,
            initiator,
            target: command.target_id,
            uid: self.uid,
            op: token.filter(|_| !answered),
            operand: [0; MAX_OPERAND],
        };
        let id = self.next_message_id();
        let body = Body::Request(request);
        let header = Header { id, source: self.node, target: place.nid, interface: index, body };
        Some((Rc::new(header), token.map_or(Sent::Nothing, Sent::Operation), region))
    }

    fn start_dma(&mut self, context: u16, to_host: bool, argument: u32, ports: &mut impl Ports) -> Outcome {
        let mut command: DmaCmd = match self.spin.argument(context, argument) {
            Ok(command) => command,
            Err(fault) => return fault,
        };
        let Some(resident) = self.spin.contexts[usize::from(context)].as_ref() else {
            return Outcome::Continue(err::INVALID);
        };
        let (message, handler) = (resident.task.message, resident.task.handler.name.to_string());
        let Some(region) = self.dma_region(message, command.options) else { return Outcome::Continue(err::INVALID) };
        let (addr, len) = (command.local, command.len);
        let window = self.spin.window_of(context, addr, len, !to_host);
        let Some(window) = window else {
            return Outcome::Fault(format!("moved {len} bytes at {addr:#x} by DMA, which are not its own"), addr);
        };
        if command.offset.checked_add(u64::from(len)).is_none_or(|end| end > region.length()) {
            let what =
                format!("moved {len} bytes at offset {} of {} bytes of host memory", command.offset, region.length());
            return Outcome::Fault(what, addr);
        }
        let start = window.offset + (addr - window.base) as usize;
        let (direction, done) = if to_host {
            let data = self.spin.memory.arena()[start..start + len as usize].to_vec();
            (Direction::ToHost(data), self.dma_write(u64::from(len), "to host", Some(message), ports))
        } else {
            (Direction::FromHost(start, len), self.dma_read(u64::from(len), "from host", Some(message), ports))
        };
        self.stats.handlers.entry(handler).or_default().dmas += 1;
        if let Some(message) = self.spin_message(message) {
            message.transfers += 1;
        }
        let transfer = self.spin.add_transfer(Transfer { message, done: false, waiter: None });
        command.handle = transfer;
        self.spin.answer(context, argument, command.as_bytes());
        let dma = HandlerDma { transfer, region, offset: command.offset, direction };
        ports.schedule(done, CardEvent::HandlerDma(Box::new(dma)));
        Outcome::Continue(0)
    }

    fn dma_region(&mut self, message: MessageId, options: u32) -> Option<Rc<Region>> {
        match options {
            HANDLER_HOST_MEM => return Some(self.spin_message(message)?.handlers.host_memory.clone()),
            ME_HOST_MEM => {}
            _ => return None,
        }
        let interface = self.inbound(message)?.header.interface;
        let entry = self.delivery(message)?.entry;
        Some(self.interface(interface)?.entries.get(entry).ok()?.region.clone())
    }

    fn await_dma(&mut self, wait: bool, handle: u32) -> Outcome {
        match self.spin.transfers.get(handle as usize).copied().flatten() {
            None => Outcome::Continue(err::INVALID),
            Some(transfer) if transfer.done => {
                self.spin.transfers[handle as usize] = None;
                Outcome::Continue(i32::from(!wait))
            }
            Some(_) if wait => Outcome::For(handle),
            Some(_) => Outcome::Continue(0),
        }
    }

    /// A handler's transfer reaches host memory, or comes back from there.
    pub(crate) fn handler_dma_done(&mut self, dma: HandlerDma, ports: &mut impl Ports) {
        let Some(Some(transfer)) = self.spin.transfers.get(dma.transfer as usize).copied() else { return };
        let result = match dma.direction {
            Direction::ToHost(data) => dma.region.write(ports, dma.offset, &data),
            Direction::FromHost(start, len) => {
                let mut data = vec![0; len as usize];
                let result = dma.region.read(ports, dma.offset, &mut data);
                self.spin.memory.arena()[start..start + data.len()].copy_from_slice(&data);
                result
            }
        };
        if let Err(fault) = result {
            ports.warn(format!("node {}: DMA of a handler: {fault}", self.node));
            if let Some(inbound) = self.inbound(transfer.message) {
                inbound.fail = NiFail::Segv;
            }
        }
        if let Some(message) = self.spin_message(transfer.message) {
            message.transfers -= 1;
        }
        match transfer.waiter {
            Some(context) => {
                self.spin.transfers[dma.transfer as usize] = None;
                if let Some(resident) = self.spin.contexts[usize::from(context)].as_mut() {
                    resident.waits = Wait::No;
                }
                self.wake(context, ports);
            }
            None => self.spin.transfers[dma.transfer as usize] = Some(Transfer { done: true, ..transfer }),
        }
        self.finish_if_done(transfer.message, ports);
    }

    fn counter_command(&mut self, context: u16, number: u32, argument: u32, ports: &mut impl Ports) -> Outcome {
        let value: CtEvent = match self.spin.argument(context, argument) {
            Ok(value) => value,
            Err(fault) => return fault,
        };
        let Some(message) = self.spin.contexts[usize::from(context)].as_ref().map(|c| c.task.message) else {
            return Outcome::Continue(err::INVALID);
        };
        let (Some(index), Some(entry)) =
            (self.inbound(message).map(|i| i.header.interface), self.delivery(message).map(|d| d.entry))
        else {
            return Outcome::Continue(err::INVALID);
        };
        let Some(interface) = self.interface(index) else { return Outcome::Continue(err::INVALID) };
        let Ok(ct) = interface.entries.get(entry).map(|entry| entry.ct) else { return Outcome::Continue(err::INVALID) };
        let Ok(counter) = interface.counters.get(ct) else { return Outcome::Continue(err::INVALID) };
        match number {
            cmd::CT_GET => {
                let value = counter.value;
                self.spin.answer(context, argument, value.as_bytes());
            }
            cmd::CT_INC => self.count(index, ct, value, ports),
            _ => self.set_counter(index, ct, value, ports),
        }
        Outcome::Continue(0)
    }
}

impl SpinUnit {
    /// The window of a context that holds `len` bytes at `addr`.
    fn window_of(&self, context: u16, addr: u32, len: u32, write: bool) -> Option<Window> {
        let resident = self.contexts[usize::from(context)].as_ref()?;
        let inside = |w: &&Window| u64::from(addr.wrapping_sub(w.base)) + u64::from(len) <= u64::from(w.len);
        resident.windows.iter().filter(inside).find(|window| window.write || !write).copied()
    }

    fn bytes_of(&mut self, context: u16, addr: u32, len: u32) -> Option<Vec<u8>> {
        if len == 0 {
            return Some(Vec::new());
        }
        let window = self.window_of(context, addr, len, false)?;
        let start = window.offset + (addr - window.base) as usize;
        Some(self.memory.arena()[start..start + len as usize].to_vec())
    }

    /// A command's structure, out of the handler's memory.
    fn argument<T: Plain>(&mut self, context: u16, addr: u32) -> Result<T, Outcome> {
        self.bytes_of(context, addr, size_of::<T>() as u32)
            .and_then(|bytes| T::from_bytes(&bytes))
            .ok_or_else(|| Outcome::Fault(format!("issued a command at {addr:#x}, which is not its own"), addr))
    }

    /// Writes a command's structure back, where the handler may write.
    fn answer(&mut self, context: u16, addr: u32, bytes: &[u8]) {
        if let Some(window) = self.window_of(context, addr, bytes.len() as u32, true) {
            let start = window.offset + (addr - window.base) as usize;
            self.memory.arena()[start..start + bytes.len()].copy_from_slice(bytes);
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
