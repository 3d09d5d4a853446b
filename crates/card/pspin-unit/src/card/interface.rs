// SPDX-License-Identifier: Apache-2.0
//! The unit as an accelerator of a card.

use std::rc::Rc;

use sim::Time;

use super::queues::Queues;
use super::{Card, Waiting, pad, slot_bytes, unit};
use crate::memory::{Arena, Place};
use accel::Profile;
use accel::memory::{AllocationError, HpuMemory, OutsideMemory};
use accel::{Accelerator, Env, Event, InternalError};
use accel::{CardProgram, ImageError};
use accel::{CommandId, Reply};
use accel::{MessageId, Packet, Task};

impl Accelerator for Card {
    /// A card with this unit has one process (`CardModel::is_divisible` of the crate `nic`).
    fn serve(&mut self, _: u32) {}

    fn load(&mut self, program: Rc<CardProgram>) -> Result<(), ImageError> {
        let device = &program.device().program;
        let (code, data) = (device.program_segment(), device.data_segment());
        self.write(Arena::start(Place::Program), code)?;
        self.write(Arena::start(Place::Handler), data)?;
        self.places.load(self.layout.config(), data.len() as u32);
        self.unit.cores_mut().load_card(program);
        Ok(())
    }

    fn program(&self) -> Option<&Rc<CardProgram>> {
        self.unit.cores().environment.program.as_ref()
    }

    fn unload(&mut self) {
        let print_cycles = self.unit.cores().environment.print_cycles;
        let new = unit(self.layout.config(), self.clock, print_cycles);
        let old = std::mem::replace(&mut self.unit, new);
        self.unit.cores_mut().succeed(old.into_cores());
        self.places.clear(&self.layout);
        self.queues = Queues::new(self.layout.config());
        self.buffers.clear();
        self.stored.clear();
        self.waiting.clear();
        self.parked.clear();
        self.outputs.clear();
    }

    fn allocate(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError> {
        let memory = self.places.allocate(length)?;
        let outside = OutsideMemory { address: memory.address, len: memory.length };
        self.unit.memory().write(memory.address, memory.length).ok_or(outside)?.fill(0);
        Ok(memory)
    }

    fn initialise(&mut self, memory: &HpuMemory, state: &[u8]) -> Result<(), InternalError> {
        Ok(self.write(memory.address, state)?)
    }

    /// Untouched memory uses no host memory; touched memory is needed for the card's lifetime.
    fn trim(&mut self) {}

    fn store(
        &mut self,
        offset: u64,
        data: &[u8],
        user_header: u32,
        env: &mut dyn Env,
    ) -> Result<Option<Packet>, InternalError> {
        let now = self.catch_up(env);
        let length = data.len() as u32;
        let Some(buffer) = self.buffers.take(length) else { return Ok(None) };
        let start = Arena::start(Place::Packet) + buffer * slot_bytes(self.mtu) + pad(user_header);
        let outside = OutsideMemory { address: start, len: length };
        let ready = self.unit.write_packet(now, start, data).ok_or(outside)?;
        self.stored.insert(buffer, ready);
        Ok(Some(Packet { buffer, start, offset, length, user_header }))
    }

    fn packet_buffers(&self) -> u32 {
        self.layout.config().l2_packet.bytes / slot_bytes(self.mtu)
    }

    fn packet_buffer_peak(&self) -> u64 {
        self.buffers.peak()
    }

    fn take(&mut self, packet: Packet) -> Result<Vec<u8>, InternalError> {
        let outside = OutsideMemory { address: packet.start, len: packet.length };
        let data = self.unit.memory().read(packet.start, packet.length).ok_or(outside)?.to_vec();
        self.free(packet);
        Ok(data)
    }

    fn free(&mut self, packet: Packet) {
        if !self.unit.cores_mut().environment.tasks.free_later(packet) {
            self.free_buffer(packet);
        }
    }

    fn offer(&mut self, task: Task, env: &mut dyn Env) -> Result<(), InternalError> {
        let now = self.catch_up(env);
        let stored = task.packet.and_then(|packet| self.stored.get(&packet.buffer));
        let ready = stored.map_or(now, |ready| now.max(*ready));
        self.waiting.push_back(Waiting { task, ready });
        self.submit();
        self.wake(env);
        Ok(())
    }

    fn handle(&mut self, event: Event, env: &mut dyn Env) -> Result<(), InternalError> {
        if event.token != self.token || self.scheduled.is_none() {
            return Ok(()); // the card was called earlier instead
        }
        self.scheduled = None;
        self.proceed(env)
    }

    fn complete(&mut self, id: CommandId, reply: Reply, env: &mut dyn Env) -> Result<(), InternalError> {
        self.catch_up(env);
        let now = self.cycle_of(env.now());
        let (cores, memory) = self.unit.cores_and_memory();
        cores.reply(id, reply, now, memory)?;
        self.complete_commands();
        self.wake(env);
        Ok(())
    }

    fn resume(&mut self, env: &mut dyn Env) -> Result<(), InternalError> {
        self.wake(env);
        Ok(())
    }

    fn message_ended(&mut self, message: MessageId, env: &mut dyn Env) -> Result<(), InternalError> {
        self.catch_up(env);
        if let Some(queue) = self.queues.end(message) {
            self.release(queue);
            self.submit();
            self.wake(env);
        }
        Ok(())
    }

    fn withdraw(&mut self, messages: &[MessageId], env: &mut dyn Env) -> Result<Vec<Task>, InternalError> {
        let now = self.catch_up(env);
        let ends = |task: &Task| messages.binary_search(&task.message).is_ok();
        let mut withdrawn = Vec::new();
        for tasks in [&mut self.waiting, &mut self.parked] {
            let (ended, kept) = tasks.drain(..).partition::<Vec<_>, _>(|waiting| ends(&waiting.task));
            withdrawn.extend(ended.into_iter().map(|waiting| waiting.task));
            tasks.extend(kept);
        }
        let cores = self.unit.cores_mut();
        let mut inside = Vec::new();
        for (number, entry) in cores.environment.tasks.iter_mut() {
            if ends(&entry.task) && !entry.is_withdrawn {
                entry.is_withdrawn = true;
                withdrawn.push(entry.task.clone());
                inside.push(number);
            }
        }
        inside.into_iter().for_each(|number| cores.withdraw(number, now));
        self.complete_commands();
        for message in messages {
            if let Some(queue) = self.queues.end(*message) {
                self.release(queue);
            }
        }
        self.submit();
        self.wake(env);
        Ok(withdrawn)
    }

    fn read(&mut self, id: CommandId, address: u32, length: u32) -> Result<Option<Vec<u8>>, InternalError> {
        if !self.may_access(id, address, length, false) {
            return Ok(None);
        }
        if length == 0 {
            return Ok(Some(Vec::new()));
        }
        let address = self.common(id, address);
        let outside = OutsideMemory { address, len: length };
        Ok(Some(self.unit.memory().read(address, length).ok_or(outside)?.to_vec()))
    }

    fn may_write(&self, id: CommandId, address: u32, length: u32) -> bool {
        self.may_access(id, address, length, true)
    }

    fn deliver(&mut self, id: CommandId, address: u32, data: &[u8]) -> Result<(), InternalError> {
        let cores = self.unit.cores();
        let is_orphan = match id.slot {
            Some(handle) => cores.environment.handles.is_orphan(handle),
            None => cores.issuer(id).is_none(),
        };
        let address = self.common(id, address);
        if !is_orphan || self.places.has(address) {
            self.write(address, data)?;
        }
        Ok(())
    }

    fn memory_peak(&self, _: u32) -> u64 {
        self.places.peak()
    }

    fn profile(&self, _: u32) -> Profile {
        Profile::new()
    }

    fn busy(&self, _: u32) -> Time {
        self.clock.time(self.busy)
    }
}

impl Card {
    fn write(&mut self, address: u32, bytes: &[u8]) -> Result<(), OutsideMemory> {
        if !bytes.is_empty() {
            let outside = OutsideMemory { address, len: bytes.len() as u32 };
            self.unit.memory().write(address, bytes.len() as u32).ok_or(outside)?.copy_from_slice(bytes);
        }
        Ok(())
    }

    /// Translates an address of the command's issuer to the common address space.
    fn common(&self, id: CommandId, address: u32) -> u32 {
        let cluster = self.unit.cores().by_gid(id.thread).cluster;
        self.unit.arena().common(cluster, address)
    }

    fn may_access(&self, id: CommandId, address: u32, length: u32, write: bool) -> bool {
        let address = self.common(id, address);
        self.unit.cores().issuer(id).is_some_and(|hpu| hpu.spans.has(address, length, write))
    }
}
