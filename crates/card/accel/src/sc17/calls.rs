// SPDX-License-Identifier: Apache-2.0
//! Commands of handlers, and the card's replies.

use abi::device::err;
use hpu::Stop;

use super::context::{OwnMemory, Wait};
use super::paper_unit::Unit;
use crate::accelerator::{Env, Event, InternalError, Printed};
use crate::command::{Command, CommandId, Issued, Reply, Transfer};
use crate::convention::{Answer, Call, Refusal, Request};
use crate::handles::{DmaHandle, Look, Progress};
use crate::outcome::Outcome;
use crate::task::Task;

/// Timeline label of the wait until the data of a DMA write leaves the card.
const DMA_WRITE: &str = "wait for DMA write";
/// Timeline label of the wait for a DMA read or an atomic operation on host memory.
const DMA_READ: &str = "wait for DMA read";
/// Timeline label of the wait until the card sends a message.
const MESSAGE: &str = "wait for message";

impl Unit {
    /// Handles the event at which a handler stops or its wait ends.
    pub(super) fn stopped(&mut self, event: Event, env: &mut dyn Env) -> Result<(), InternalError> {
        let context = event.unit as u16;
        let resident = self.contexts.get_mut(event.unit as usize).and_then(Option::as_deref_mut);
        // The handler may have been withdrawn.
        let Some(resident) = resident.filter(|resident| resident.run == event.token) else { return Ok(()) };
        if resident.waits == Wait::Time {
            resident.waits = Wait::Nothing;
            return self.wake(context, env);
        }
        let stop = resident.stop.take().ok_or(InternalError::NotRunning(context))?;
        let over = resident.thread.cycles() >= self.config.watchdog_cycles;
        match stop {
            Stop::Return(value) => self.returned(context, value, env),
            Stop::Fault(fault) => self.faulted(context, fault, env),
            Stop::Call { .. } | Stop::Sync | Stop::Limit | Stop::Break if over => self.timed_out(context, env),
            Stop::Sync | Stop::Limit | Stop::Break => self.run(context, env),
            Stop::Call { number, argument } => self.call(context, Call { number, argument }, env),
        }
    }

    fn call(&mut self, context: u16, call: Call, env: &mut dyn Env) -> Result<(), InternalError> {
        let resident = self.contexts[usize::from(context)].as_deref_mut().ok_or(InternalError::NoHandler(context))?;
        if !self.convention.only_looks(call.number) {
            resident.thread.note_work();
        }
        let memories = &mut self.spaces[resident.space()].memories;
        let mut memory = OwnMemory { memories, windows: &resident.windows };
        match self.convention.request(call, &mut memory) {
            Ok(Request::Call(command)) => self.issue(context, call, None, command, env),
            Ok(Request::Start(command)) => {
                let handle = self.handles.take(context);
                self.issue(context, call, Some(handle), command, env)
            }
            Ok(Request::Test(handle)) => match self.handles.look(handle, context, env.now()) {
                None => self.go_on(context, abi::device::err::INVALID, env),
                Some(Look::Done(0)) => self.go_on(context, 1, env),
                Some(Look::Done(result)) => self.go_on(context, result, env),
                Some(Look::At(_) | Look::UnderWay) => self.go_on(context, 0, env),
            },
            Ok(Request::Wait(handle)) => match self.handles.look(handle, context, env.now()) {
                None => self.go_on(context, abi::device::err::INVALID, env),
                Some(Look::Done(result)) => self.go_on(context, result, env),
                Some(Look::At(gone)) => {
                    self.handles.free(handle);
                    self.block_until(context, gone, DMA_WRITE, env)
                }
                Some(Look::UnderWay) => {
                    self.handles.await_end(handle);
                    self.block(context, Wait::Handle, DMA_READ, env)
                }
            },
            Ok(Request::CompareAndSwap { address, compare, swap }) => {
                let Some(before) =
                    self.atomic(context, address, true, |value| if value == compare { swap } else { value })?
                else {
                    return self.atomic_fault(context, address, env);
                };
                self.answer(context, call, Answer::Before(before))?;
                self.go_on(context, i32::from(before == compare), env)
            }
            Ok(Request::FetchAndAdd { address, increment }) => {
                let add = |value: u64| value.wrapping_add(increment);
                let Some(before) = self.atomic(context, address, increment != 0, add)? else {
                    return self.atomic_fault(context, address, env);
                };
                self.answer(context, call, Answer::Before(before))?;
                self.go_on(context, 0, env)
            }
            Ok(Request::MyHpu) => self.go_on(context, self.hpus.of(context) as i32, env),
            Ok(Request::HpuCount) => self.go_on(context, self.hpus.count() as i32, env),
            Ok(Request::Yield) => self.yield_hpu(context, env),
            Ok(Request::Print(text)) => {
                let (hpu, at) = (self.hpus.of(context), env.now());
                let resident = self.resident(context)?;
                let (process, handler) = (resident.task.process, resident.task.handler.name.clone());
                env.print(Printed { process, hpu, handler, at, text });
                resident.thread.set_result(0);
                self.run_after(context, self.print_cycles, env)
            }
            Ok(Request::Abort(error)) => self.end(context, Outcome::Failed(error), env),
            Err(Refusal::Result(result)) => self.go_on(context, result, env),
            Err(Refusal::Fault { what, detail }) => self.command_fault(context, &what, detail, env),
        }
    }

    /// Issues a command to the card.
    fn issue(
        &mut self,
        context: u16,
        call: Call,
        slot: Option<DmaHandle>,
        command: Command,
        env: &mut dyn Env,
    ) -> Result<(), InternalError> {
        let resident = self.resident(context)?;
        resident.commands += 1;
        let id = CommandId { thread: u32::from(context), run: resident.run, number: resident.commands, slot };
        resident.call = Some((call, id));
        let Task { process, message, handler, .. } = &resident.task;
        env.issue(Issued { id, process: *process, message: *message, handler: handler.name.clone(), command });
        Ok(())
    }

    /// Handles the card's reply to a command.
    pub(super) fn replied(&mut self, id: CommandId, reply: Reply, env: &mut dyn Env) -> Result<(), InternalError> {
        let context = id.thread as u16;
        let resident = self.contexts.get_mut(id.thread as usize).and_then(Option::as_deref_mut);
        let call = resident.and_then(|resident| resident.call.take_if(|(_, issued)| *issued == id));
        let Some((call, _)) = call else { return self.replied_again(id, reply, env) };
        if let Some(handle) = id.slot {
            match reply {
                Reply::Started(Transfer::Posted(gone)) => self.handles.start(handle, Progress::Posted(gone)),
                Reply::Started(Transfer::UnderWay) => self.handles.start(handle, Progress::Pending { awaited: false }),
                _ => self.handles.free(handle),
            }
        }
        match (reply, id.slot) {
            (Reply::Done(result), _) => self.go_on(context, result, env),
            (Reply::Refused(why), _) => {
                self.note_refusal(context, &why)?;
                self.go_on(context, err::INVALID, env)
            }
            (Reply::Started(_), Some(handle)) => {
                self.answer(context, call, Answer::Handle(handle))?;
                self.go_on(context, 0, env)
            }
            (Reply::Counter(value), None) => {
                self.answer(context, call, Answer::Counter(value))?;
                self.go_on(context, 0, env)
            }
            (Reply::Leaves(time), None) if self.config.put_blocks => self.block_until(context, time, MESSAGE, env),
            (Reply::Queued, None) if self.config.put_blocks => {
                self.block(context, Wait::Reply(id.number), MESSAGE, env)
            }
            (Reply::Leaves(_) | Reply::Queued, None) => self.go_on(context, 0, env),
            (Reply::Blocked, None) => self.block(context, Wait::Reply(id.number), MESSAGE, env),
            (Reply::Fault { what, address }, _) => self.command_fault(context, &what, address, env),
            _ => Err(InternalError::UnexpectedReply(id.thread)),
        }
    }

    /// Handles the second reply, which completes a command that a handler waits for or may test.
    fn replied_again(&mut self, id: CommandId, reply: Reply, env: &mut dyn Env) -> Result<(), InternalError> {
        let unexpected = InternalError::UnexpectedReply(id.thread);
        let Reply::Done(result) = reply else { return Err(unexpected) };
        let blocked = match id.slot {
            Some(handle) => self.handles.complete(handle, result).ok_or(unexpected)?,
            // The handler may have been withdrawn, or may not wait for its message to leave.
            None => {
                let issuer = self.issuer(id).filter(|resident| resident.waits == Wait::Reply(id.number));
                issuer.map(|_| id.thread as u16)
            }
        };
        let Some(context) = blocked else { return Ok(()) };
        let resident = self.resident(context)?;
        resident.waits = Wait::Nothing;
        resident.thread.set_result(result as u32);
        self.wake(context, env)
    }

    /// Resumes a handler with the result of its call.
    fn go_on(&mut self, context: u16, result: i32, env: &mut dyn Env) -> Result<(), InternalError> {
        self.resident(context)?.thread.set_result(result as u32);
        self.run(context, env)
    }

    /// Blocks a handler. Its call returns 0 unless a reply sets another result.
    fn block(&mut self, context: u16, waits: Wait, name: &'static str, env: &mut dyn Env) -> Result<(), InternalError> {
        let resident = self.resident(context)?;
        resident.thread.set_result(0);
        resident.waits = waits;
        resident.waiting = Some((env.now(), name));
        self.deschedule(context, env)
    }

    /// Blocks a handler until a given time.
    fn block_until(
        &mut self,
        context: u16,
        time: sim::Time,
        name: &'static str,
        env: &mut dyn Env,
    ) -> Result<(), InternalError> {
        let event = Event { unit: u32::from(context), token: self.resident(context)?.run };
        env.schedule(time, event);
        self.block(context, Wait::Time, name, env)
    }

    fn yield_hpu(&mut self, context: u16, env: &mut dyn Env) -> Result<(), InternalError> {
        if self.hpus.get(context).ready.is_empty() {
            return self.go_on(context, 0, env);
        }
        self.resident(context)?.thread.set_result(0);
        self.deschedule(context, env)?;
        self.wake(context, env)
    }

    fn answer(&mut self, context: u16, call: Call, answer: Answer) -> Result<(), InternalError> {
        let resident = self.contexts[usize::from(context)].as_deref_mut().ok_or(InternalError::NoHandler(context))?;
        let memories = &mut self.spaces[resident.space()].memories;
        let mut memory = OwnMemory { memories, windows: &resident.windows };
        self.convention.answer(call, answer, &mut memory);
        Ok(())
    }

    /// Executes an atomic operation on 64 aligned bits of card memory and returns the previous value; `None` if the
    /// handler has no write permission.
    fn atomic(
        &mut self,
        context: u16,
        address: u32,
        write: bool,
        change: impl FnOnce(u64) -> u64,
    ) -> Result<Option<u64>, InternalError> {
        let resident = self.resident(context)?;
        if !resident.owns(address, 8, write) || !address.is_multiple_of(8) {
            return Ok(None);
        }
        let number = resident.space();
        let space = &mut self.spaces[number];
        if let Some(sanitizer) = &mut space.sanitizer {
            sanitizer.switch(u32::from(context));
            sanitizer.access(address, 4, write, true);
            sanitizer.written(address, 8);
        }
        let bytes = space.memories.slice(address, 8)?;
        let mut before = [0; 8];
        before.copy_from_slice(bytes);
        let before = u64::from_le_bytes(before);
        bytes.copy_from_slice(&change(before).to_le_bytes());
        Ok(Some(before))
    }

    fn atomic_fault(&mut self, context: u16, address: u32, env: &mut dyn Env) -> Result<(), InternalError> {
        self.command_fault(context, &format!("asked for an atomic operation at {address:#x}"), address, env)
    }
}
