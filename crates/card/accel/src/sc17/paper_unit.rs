// SPDX-License-Identifier: Apache-2.0
//! Structure and resources of the sc17 unit.

use std::collections::VecDeque;
use std::rc::Rc;

use abi::device::map;
use machine::Sc17;
use sim::Clock;

use super::context::{Context, Run};
use super::hpus::Hpus;
use super::space::{Quota, Space};
use crate::accelerator::InternalError;
use crate::command::CommandId;
use crate::convention::Convention;
use crate::debug::Debugger;
use crate::handles::Handles;
use crate::memory::Buffers;
use crate::observation::Observation;
use crate::program::{CardProgram, ImageError};
use crate::shares::{Shared, Shares};
use crate::task::{Packet, Task};

/// A unit as in the sPIN paper.
pub struct Unit {
    pub(super) config: Sc17,
    pub(super) clock: Clock,
    pub(super) mtu: u32,
    pub(super) convention: Box<dyn Convention>,
    /// Programs and memories of the processes that share the unit, and the one that the card serves.
    pub(super) spaces: Vec<Space>,
    pub(super) served: usize,
    pub(super) buffers: Buffers,
    pub(super) contexts: Vec<Option<Box<Context>>>,
    pub(super) hpus: Hpus,
    /// Tasks that wait for a context.
    pub(super) tasks: VecDeque<Task>,
    /// Accounts of tenants, if the scheduler separates them; and the tenant that got a context last.
    pub(super) shares: Option<Box<Shares>>,
    pub(super) latest: u32,
    pub(super) handles: Handles,
    /// Number of handlers that received a context.
    pub(super) runs: Run,
    pub(super) debugger: Option<Box<dyn Debugger>>,
    /// Cycles of a print by a handler.
    pub(super) print_cycles: u64,
    /// Counts the executions of each instruction.
    has_profile: bool,
}

impl Unit {
    /// Creates a unit without a program, for packets of up to `mtu` bytes, whose handlers are observed.
    pub fn new(
        config: &Sc17,
        clock: Clock,
        mtu: u32,
        convention: Box<dyn Convention>,
        observation: Observation,
        debugger: Option<Box<dyn Debugger>>,
    ) -> Unit {
        Unit {
            config: config.clone(),
            clock,
            mtu,
            convention,
            spaces: vec![Space::new(config, mtu, Quota::ALL, observation.sanitize)],
            served: 0,
            buffers: Buffers::new(config.slots(mtu)),
            contexts: (0..config.contexts).map(|_| None).collect(),
            hpus: Hpus::new(config.hpus),
            tasks: VecDeque::new(),
            shares: shares(config),
            latest: 0,
            handles: Handles::default(),
            runs: 0,
            debugger,
            print_cycles: observation.print_cycles(),
            has_profile: observation.profile,
        }
    }

    /// Divides the unit among processes with these quotas.
    #[must_use]
    pub fn divided(mut self, quotas: &[Quota]) -> Unit {
        let sanitizes = self.space().sanitizer.is_some();
        self.spaces = quotas.iter().map(|quota| Space::new(&self.config, self.mtu, *quota, sanitizes)).collect();
        self
    }

    /// Returns program and memories of the process that the card serves.
    pub(super) fn space(&self) -> &Space {
        &self.spaces[self.served]
    }

    /// Returns program and memories of the process that the card serves.
    pub(super) fn space_mut(&mut self) -> &mut Space {
        &mut self.spaces[self.served]
    }

    pub(super) fn load_program(&mut self, program: Rc<CardProgram>) -> Result<(), ImageError> {
        let profiles = self.has_profile;
        self.space_mut().load(program, profiles)
    }

    pub(super) fn unload_program(&mut self) {
        if self.space().program.is_none() {
            return;
        }
        self.spaces[self.served].unload(&self.config, self.mtu);
        if self.spaces.len() > 1 {
            return; // the tasks of other processes continue
        }
        for (context, resident) in (0..).zip(&mut self.contexts) {
            *resident = None;
            self.handles.abandon(context);
        }
        self.hpus.clear();
        self.tasks.clear();
        self.shares = shares(&self.config);
        self.buffers.clear();
        self.spaces[self.served].packets = 0;
    }

    /// Releases the memory of code, stacks, packet buffers and waiting tasks if no handler runs and no packet waits.
    /// The next handler restores the code.
    pub(super) fn trim_memories(&mut self) {
        if self.buffers.all_free() && self.contexts.iter().all(Option::is_none) && self.tasks.is_empty() {
            self.spaces.iter_mut().for_each(|space| space.memories.trim());
            self.tasks = VecDeque::new();
        }
    }

    pub(super) fn store_packet(
        &mut self,
        offset: u64,
        data: &[u8],
        user_header: u32,
    ) -> Result<Option<Packet>, InternalError> {
        let space = &mut self.spaces[self.served];
        if space.packets == space.most_packets {
            return Ok(None);
        }
        let Some(buffer) = self.buffers.take(data.len() as u32) else { return Ok(None) };
        space.packets += 1;
        let pad = user_header.next_multiple_of(crate::FRAGMENT) - user_header;
        let start = map::PACKETS + buffer * Sc17::slot_bytes(self.mtu) + pad;
        space.memories.write(start, data)?;
        Ok(Some(Packet { buffer, start, offset, length: data.len() as u32, user_header }))
    }

    pub(super) fn take_packet(&mut self, packet: Packet) -> Result<Vec<u8>, InternalError> {
        self.free_packet(packet);
        Ok(self.space_mut().memories.slice(packet.start, packet.length)?.to_vec())
    }

    pub(super) fn free_packet(&mut self, packet: Packet) {
        self.buffers.free(packet.buffer, packet.length);
        self.space_mut().packets -= 1;
    }

    /// Returns the handler in an occupied context.
    pub(super) fn resident(&mut self, context: u16) -> Result<&mut Context, InternalError> {
        self.contexts[usize::from(context)].as_deref_mut().ok_or(InternalError::NoHandler(context))
    }

    /// Returns the context of the handler that issued a command; `None` if the handler has ended.
    pub(super) fn issuer(&self, id: CommandId) -> Option<&Context> {
        let resident = self.contexts.get(id.thread as usize)?.as_deref();
        resident.filter(|resident| resident.run == id.run)
    }
}

/// Creates the accounts of tenants, if the scheduler separates them. A handler has its context from its start to its end.
fn shares(config: &Sc17) -> Option<Box<Shares>> {
    let contexts = config.contexts;
    Shares::new(&config.sharing, Shared { hpus: contexts, places: contexts, cells: u32::MAX }).map(Box::new)
}

/// Returns true if handlers share the memory at an address; other memory belongs to one running handler.
pub(super) fn is_shared(address: u32) -> bool {
    (map::HPU_MEMORY..map::CONTEXTS).contains(&address) || (map::DATA..map::PACKETS).contains(&address)
}
