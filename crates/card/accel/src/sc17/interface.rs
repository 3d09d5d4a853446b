// SPDX-License-Identifier: Apache-2.0
//! The sc17 unit as an `Accelerator`.

use std::rc::Rc;

use sim::Time;
use sim::memory::push_back_frugally;

use super::paper_unit::{Unit, is_shared};
use crate::accelerator::{Accelerator, Env, Event, InternalError};
use crate::command::{CommandId, Reply};
use crate::memory::{AllocationError, HpuMemory};
use crate::profile::Profile;
use crate::program::{CardProgram, ImageError};
use crate::task::{MessageId, Packet, Task};

impl Accelerator for Unit {
    fn serve(&mut self, process: u32) {
        self.served = process as usize;
    }

    fn load(&mut self, program: Rc<CardProgram>) -> Result<(), ImageError> {
        self.load_program(program)
    }

    fn program(&self) -> Option<&Rc<CardProgram>> {
        self.space().program.as_ref().map(|loaded| &loaded.program)
    }

    fn unload(&mut self) {
        self.unload_program();
    }

    fn allocate(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError> {
        let space = self.space_mut();
        let memory = space.allocator.allocate(length)?;
        space.memory_peak = space.memory_peak.max(u64::from(space.allocator.used()));
        space.memories.clear(memory.address, memory.length)?;
        if let Some(sanitizer) = &mut space.sanitizer {
            sanitizer.allocated(memory.address, memory.length);
        }
        Ok(memory)
    }

    fn initialise(&mut self, memory: &HpuMemory, state: &[u8]) -> Result<(), InternalError> {
        let space = self.space_mut();
        if let Some(sanitizer) = &mut space.sanitizer {
            sanitizer.written(memory.address, state.len() as u32);
        }
        Ok(space.memories.write(memory.address, state)?)
    }

    fn trim(&mut self) {
        self.trim_memories();
    }

    fn store(
        &mut self,
        offset: u64,
        data: &[u8],
        user_header: u32,
        _: &mut dyn Env,
    ) -> Result<Option<Packet>, InternalError> {
        self.store_packet(offset, data, user_header)
    }

    fn packet_buffers(&self) -> u32 {
        self.config.slots(self.mtu)
    }

    fn packet_buffer_peak(&self) -> u64 {
        self.buffers.peak()
    }

    fn take(&mut self, packet: Packet) -> Result<Vec<u8>, InternalError> {
        self.take_packet(packet)
    }

    fn free(&mut self, packet: Packet) {
        self.free_packet(packet);
    }

    fn offer(&mut self, task: Task, env: &mut dyn Env) -> Result<(), InternalError> {
        if let Some(shares) = &mut self.shares {
            shares.accept(self.clock.cycles(env.now()), task.tenant, task.share, 0);
        }
        push_back_frugally(&mut self.tasks, task);
        self.dispatch(env)
    }

    fn handle(&mut self, event: Event, env: &mut dyn Env) -> Result<(), InternalError> {
        self.stopped(event, env)
    }

    fn complete(&mut self, id: CommandId, reply: Reply, env: &mut dyn Env) -> Result<(), InternalError> {
        self.replied(id, reply, env)
    }

    fn resume(&mut self, env: &mut dyn Env) -> Result<(), InternalError> {
        self.dispatch(env)
    }

    /// Contexts belong to tasks; only the sanitizer tracks messages.
    fn message_ended(&mut self, message: MessageId, _: &mut dyn Env) -> Result<(), InternalError> {
        if let Some(sanitizer) = &mut self.space_mut().sanitizer {
            sanitizer.forget(message);
        }
        Ok(())
    }

    fn withdraw(&mut self, messages: &[MessageId], env: &mut dyn Env) -> Result<Vec<Task>, InternalError> {
        self.withdraw_tasks(messages, env)
    }

    fn read(&mut self, id: CommandId, address: u32, length: u32) -> Result<Option<Vec<u8>>, InternalError> {
        if !self.issuer(id).is_some_and(|resident| resident.owns(address, length, false)) {
            return Ok(None);
        }
        Ok(Some(self.space_mut().memories.slice(address, length)?.to_vec()))
    }

    fn may_write(&self, id: CommandId, address: u32, length: u32) -> bool {
        self.issuer(id).is_some_and(|resident| resident.owns(address, length, true))
    }

    fn deliver(&mut self, id: CommandId, address: u32, data: &[u8]) -> Result<(), InternalError> {
        let orphan = match id.slot {
            Some(handle) => self.handles.is_orphan(handle),
            None => self.issuer(id).is_none(),
        };
        if !orphan || is_shared(address) {
            let space = self.space_mut();
            space.memories.write(address, data)?;
            if let Some(sanitizer) = &mut space.sanitizer {
                sanitizer.written(address, data.len() as u32);
            }
        }
        Ok(())
    }

    fn memory_peak(&self, process: u32) -> u64 {
        self.spaces[process as usize].memory_peak
    }

    fn profile(&self, process: u32) -> Profile {
        self.spaces[process as usize].profile()
    }

    fn busy(&self, process: u32) -> Time {
        self.spaces[process as usize].busy
    }
}
