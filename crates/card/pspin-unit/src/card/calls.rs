// SPDX-License-Identifier: Apache-2.0
//! Commands of handlers, and the card's replies.

use abi::device::err;

use super::hpus::{Act, Flying, Hpus};
use super::own::OwnMemory;
use crate::command::{self as pspin, Through};
use crate::cores::ClusterSide;
use crate::cycle::Cycle;
use crate::her::{self, HpuId, TaskOutcome};
use crate::memory::{Arena, Place as MemoryPlace};
use crate::observe::Observer;
use accel::convention::{Answer, Call, Refusal, Request};
use accel::handles::{DmaHandle, Look, Progress};
use accel::{Command, CommandId, Direction, Dma, Message, Place, Reply, Transfer};
use accel::{Failure, HandlerError, Outcome};
use accel::{InternalError, Printed};

/// Cycles of a call that the HPU driver answers: a load.
const REGISTER: u64 = 2;
/// Cycles of a 64-bit atomic operation beyond its two atomic accesses: lock the pair of words, compare or add, and
/// unlock.
const WIDE_ATOMIC: u64 = 6;

impl Hpus {
    /// Executes a call of an HPU in cycle `now`.
    pub(super) fn call(&mut self, id: HpuId, now: Cycle, call: Call, memory: &mut Arena) {
        let request = {
            let Some(hpu) = self.get(id) else { return };
            let mut own = OwnMemory { memory, spans: &hpu.spans, cluster: id.cluster };
            self.environment.convention.request(call, &mut own)
        };
        let register = now + REGISTER;
        match request {
            Ok(Request::Call(command)) => self.issue((id, now), call, (command, false), memory),
            Ok(Request::Start(command)) => self.issue((id, now), call, (command, true), memory),
            Ok(Request::Test(handle)) => {
                let result = match self.look(handle, id, now) {
                    None => err::INVALID,
                    Some(Look::Done(0)) => 1,
                    Some(Look::Done(result)) => result,
                    Some(Look::At(_) | Look::UnderWay) => 0,
                };
                self.answer(id, register, result);
            }
            Ok(Request::Wait(handle)) => match self.look(handle, id, now) {
                None => self.answer(id, register, err::INVALID),
                Some(Look::Done(result)) => self.answer(id, register, result),
                Some(Look::At(gone)) => {
                    self.environment.handles.free(handle);
                    let gone = self.cycle_of(gone);
                    self.answer(id, register.max(gone), 0);
                }
                Some(Look::UnderWay) => {
                    self.environment.handles.await_end(handle);
                    self.acts(id, Cycle::NEVER, Act::Handle);
                }
            },
            Ok(Request::CompareAndSwap { address, compare, swap }) => {
                let change = |value| if value == compare { swap } else { value };
                self.atomic((id, now, call), memory, (address, true), change, |before| i32::from(before == compare));
            }
            Ok(Request::FetchAndAdd { address, increment }) => {
                let change = |value: u64| value.wrapping_add(increment);
                self.atomic((id, now, call), memory, (address, increment != 0), change, |_| 0);
            }
            Ok(Request::MyHpu) => self.answer(id, register, self.gid(id) as i32),
            Ok(Request::HpuCount) => self.answer(id, register, self.config.hpus() as i32),
            // An HPU holds only one task, so no other can run.
            Ok(Request::Yield) => self.answer(id, register, 0),
            Ok(Request::Print(text)) => {
                let hpu = self.gid(id);
                let task = self.hpu(id).own.task;
                if let Some(entry) = task.and_then(|task| self.environment.tasks.get(task)) {
                    let (process, handler) = (entry.task.process, entry.task.handler.name.clone());
                    let at = self.environment.clock.time(now.0);
                    self.environment.printed.push((now, Printed { process, hpu, handler, at, text }));
                }
                self.answer(id, register + self.environment.print_cycles, 0);
            }
            Ok(Request::Abort(error)) => self.end(id, register, Outcome::Failed(error), TaskOutcome::Done),
            Err(Refusal::Result(result)) => self.answer(id, register, result),
            Err(Refusal::Fault { what, detail }) => self.command_fault((id, now), &what, detail, memory),
        }
    }

    fn look(&mut self, handle: DmaHandle, id: HpuId, now: Cycle) -> Option<Look> {
        let (owner, now) = (self.gid(id) as u16, self.environment.clock.time(now.0));
        self.environment.handles.look(handle, owner, now)
    }

    /// Returns the first cycle that begins at or after `time`.
    pub(super) fn cycle_of(&self, time: sim::Time) -> Cycle {
        let cycle = self.environment.clock.cycles(time);
        Cycle(cycle + u64::from(self.environment.clock.time(cycle) < time))
    }

    /// Starts issuing a command to the card.
    fn issue(
        &mut self,
        (id, now): (HpuId, Cycle),
        call: Call,
        (command, has_handle): (Command, bool),
        memory: &mut Arena,
    ) {
        if let Command::HostAtomic(_) = command {
            let what = "issued an atomic operation on host memory, which PsPIN cards do not have; cards with \
                        accelerator.kind = \"sc17\" do, such as --machine sc17-int";
            return self.command_fault((id, now), what, call.number, memory);
        }
        self.hpu(id).own.issues = Some((call, command, has_handle));
        self.acts(id, now + self.config.commands.issue_cycles, Act::Issue);
    }

    /// Passes the command of an HPU to its driver, or waits for a free slot.
    pub(super) fn give<O: Observer>(&mut self, id: HpuId, side: &mut ClusterSide<'_, O>) {
        let own = &mut self.hpu(id).own;
        let (Some((call, command, has_handle)), Some(task), run) = (own.issues.take(), own.task, own.run) else {
            return;
        };
        let number = self.environment.commands;
        let (through, data) = self.takes_along(id, &command, side.memory);
        if side.issue(id.hpu, pspin::Command::Card { through, data, number }).is_none() {
            self.hpu(id).own.issues = Some((call, command, has_handle));
            return self.acts(id, Cycle::NEVER, Act::Issue);
        }
        let gid = self.gid(id);
        self.environment.commands = number.wrapping_add(1);
        let slot = has_handle.then(|| self.environment.handles.take(gid as u16));
        let command_id = CommandId { thread: gid, run, number, slot };
        let flying = Flying { id: command_id, task, command: Some(command), issued: None };
        self.environment.flying.insert(number, flying);
        self.hpu(id).own.call = Some((call, command_id));
        self.acts(id, Cycle::NEVER, Act::Reply(number));
    }

    /// Returns the engine through which a command leaves the unit, and the range of handler memory that this engine
    /// reads. The outbound engine reads a packet's data before the call returns, so the handler may modify the data
    /// afterwards.
    fn takes_along(&mut self, id: HpuId, command: &Command, memory: &Arena) -> (Through, Option<her::Range>) {
        let (through, address, length) = match command {
            Command::Put(Message { place: Place::Device(address), length, .. })
            | Command::Atomic(Message { place: Place::Device(address), length, .. }, ..)
            | Command::FetchAtomic(Message { place: Place::Device(address), length, .. }, ..) => {
                (Through::Outbound, *address as u32, *length)
            }
            Command::Dma(Dma { direction: Direction::ToHost, local, length, .. }) => {
                (Through::OffCluster, *local, u64::from(*length))
            }
            Command::Dma(_) => return (Through::OffCluster, None),
            Command::Put(_)
            | Command::Atomic(..)
            | Command::FetchAtomic(..)
            | Command::Get(_)
            | Command::Counter(_)
            | Command::HostAtomic(_) => {
                return (Through::Outbound, None);
            }
        };
        // The card refuses foreign memory and oversized packets.
        let data =
            her::Range { address: memory.common(id.cluster, address), size: length.try_into().unwrap_or(u32::MAX) };
        let reads = (1..=self.config.l2_packet.bytes).contains(&data.size) && self.hpu(id).may_use(data, false, memory);
        (through, reads.then_some(data))
    }

    /// Processes the card's reply to a command in cycle `now`.
    pub(super) fn reply(
        &mut self,
        command: CommandId,
        reply: Reply,
        now: Cycle,
        memory: &mut Arena,
    ) -> Result<(), InternalError> {
        let id = self.by_gid(command.thread);
        let is_first =
            self.issuer(command).is_some() && self.hpu(id).own.call.is_some_and(|(_, other)| other == command);
        if !is_first {
            return self.reply_again(command, reply, now);
        }
        let Some((call, _)) = self.hpu(id).own.call.take() else { return Ok(()) };
        let at = now + self.config.commands.response_cycles;
        let free_from = match reply {
            Reply::Leaves(time) | Reply::Started(Transfer::Posted(time)) => Some(self.cycle_of(time).max(now)),
            Reply::Queued | Reply::Blocked | Reply::Started(Transfer::UnderWay) => None,
            Reply::Done(_) | Reply::Refused(_) | Reply::Counter(_) | Reply::Fault { .. } => Some(now),
        };
        if let Some(from) = free_from {
            self.free(command.number, from);
        }
        if let Some(handle) = command.slot {
            match reply {
                Reply::Started(Transfer::Posted(gone)) => {
                    self.environment.handles.start(handle, Progress::Posted(gone))
                }
                Reply::Started(Transfer::UnderWay) => {
                    self.environment.handles.start(handle, Progress::Pending { awaited: false })
                }
                _ => self.environment.handles.free(handle),
            }
        }
        match (reply, command.slot) {
            (Reply::Done(result), _) => self.answer(id, at, result),
            (Reply::Refused(why), _) => {
                let pc = self.hpu(id).thread.command_pc();
                let told = format!("{why}{}", self.place(id, pc, memory));
                self.hpu(id).own.refused = Some(told);
                self.answer(id, at, err::INVALID);
            }
            (Reply::Started(_), Some(handle)) => {
                self.return_value(id, call, Answer::Handle(handle), memory);
                self.answer(id, at, 0);
            }
            (Reply::Counter(value), None) => {
                self.return_value(id, call, Answer::Counter(value), memory);
                self.answer(id, at, 0);
            }
            (Reply::Leaves(_), None) => self.answer(id, at, 0),
            // The network exerts back-pressure: the command stays in the outbound engine, and its handler waits.
            (Reply::Queued | Reply::Blocked, None) => {}
            (Reply::Fault { what, address }, _) => self.command_fault((id, now), &what, address, memory),
            _ => return Err(InternalError::UnexpectedReply(command.thread)),
        }
        Ok(())
    }

    /// Completes a command that a handler waits for or may test.
    fn reply_again(&mut self, command: CommandId, reply: Reply, now: Cycle) -> Result<(), InternalError> {
        let unexpected = InternalError::UnexpectedReply(command.thread);
        let Reply::Done(result) = reply else { return Err(unexpected) };
        let id = self.by_gid(command.thread);
        let at = now + self.config.commands.response_cycles;
        if self.environment.program.is_none() {
            // The program is unloaded in the meantime.
            if let Some(handle) = command.slot {
                self.environment.handles.complete(handle, result);
            }
            return Ok(());
        }
        self.free(command.number, now);
        let is_awaited = match command.slot {
            Some(handle) => {
                let owner = self.environment.handles.complete(handle, result).ok_or(unexpected)?;
                owner.is_some() && self.doing(id) == Some(Act::Handle)
            }
            None => self.issuer(command).is_some() && self.doing(id) == Some(Act::Reply(command.number)),
        };
        if is_awaited {
            self.answer(id, at, result);
        }
        Ok(())
    }

    /// Stores the values that a call returns through pointers in the handler's memory.
    fn return_value(&mut self, id: HpuId, call: Call, answer: Answer, memory: &mut Arena) {
        let Some(hpu) = self.get(id) else { return };
        let mut own = OwnMemory { memory, spans: &hpu.spans, cluster: id.cluster };
        self.environment.convention.answer(call, answer, &mut own);
    }

    /// Modifies 64 aligned bits of card memory atomically. RV32A is limited to 32 bits, so the bank locks a pair of
    /// words.
    fn atomic(
        &mut self,
        (id, now, call): (HpuId, Cycle, Call),
        memory: &mut Arena,
        (address, write): (u32, bool),
        change: impl FnOnce(u64) -> u64,
        result: impl FnOnce(u64) -> i32,
    ) {
        let common = memory.common(id.cluster, address);
        let may = self.hpu(id).spans.has(common, 8, write) && common.is_multiple_of(8);
        let place = memory.locate(common, 8).map(|(place, _)| place);
        let (Some(place), Some(bytes)) = (place.filter(|_| may), memory.write(common, 8)) else {
            let what = format!("asked for an atomic operation at {address:#x}");
            return self.command_fault((id, now), &what, address, memory);
        };
        let mut before = [0; 8];
        before.copy_from_slice(bytes);
        let before = u64::from_le_bytes(before);
        bytes.copy_from_slice(&change(before).to_le_bytes());
        let access = match place {
            MemoryPlace::L1(cluster) if cluster == id.cluster => self.config.l1.atomic_bank_cycles,
            MemoryPlace::L1(_) => self.config.pe.remote_l1_cycles,
            _ => self.config.pe.l2_cycles,
        };
        self.return_value(id, call, Answer::Before(before), memory);
        self.answer(id, now + WIDE_ATOMIC + u64::from(2 * access), result(before));
    }

    /// Fails a handler whose command addresses foreign or absent memory.
    pub(super) fn command_fault(&mut self, (id, now): (HpuId, Cycle), what: &str, detail: u32, memory: &mut Arena) {
        let pc = self.hpu(id).thread.command_pc();
        let message = format!("{what}{}", self.place(id, pc, memory));
        let error = HandlerError { failure: Failure::Segv, message, detail: u64::from(detail) };
        let failure = her::Failure::Command { address: detail, size: 0 };
        self.end_badly(id, now, error, TaskOutcome::Faulted(failure));
    }
}
