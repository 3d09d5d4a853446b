// SPDX-License-Identifier: Apache-2.0
//! Structure, memories and device program of the sc17 unit.

use std::collections::VecDeque;
use std::rc::Rc;

use abi::device::map;
use hpu::{Predictor, Watched};
use machine::Sc17;
use sim::Clock;

use super::context::{Context, Run};
use super::hpus::Hpus;
use super::told::Told;
use crate::accelerator::InternalError;
use crate::command::CommandId;
use crate::convention::Convention;
use crate::debug::Debugger;
use crate::handles::Handles;
use crate::memory::{Allocator, Buffers, Memories, Pieces, Region};
use crate::observation::Observation;
use crate::profile::Profile;
use crate::program::{CardProgram, ImageError};
use crate::sanitize::Sanitizer;
use crate::shares::{Shared, Shares};
use crate::task::{Packet, Task};

/// Granularity of memory protection in bytes: the runtime's `memcpy` reads whole aligned words.
const WORD: u32 = 8;

/// A unit as in the sPIN paper.
pub struct Unit {
    pub(super) config: Sc17,
    pub(super) clock: Clock,
    pub(super) mtu: u32,
    pub(super) convention: Box<dyn Convention>,
    pub(super) memories: Memories,
    pub(super) allocator: Allocator,
    /// Memory words on which handlers waited.
    pub(super) watched: Watched,
    pub(super) program: Option<Loaded>,
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
    pub(super) sanitizer: Option<Box<Sanitizer>>,
    /// Findings that were reported to the user.
    pub(super) told: Vec<Told>,
    pub(super) debugger: Option<Box<dyn Debugger>>,
    /// Cycles of a print by a handler.
    pub(super) print_cycles: u64,
    /// Counts the executions of each instruction.
    has_profile: bool,
    /// Execution counts of unloaded programs.
    profile: Profile,
}

/// A device program, and the unit's state for it.
pub(super) struct Loaded {
    pub program: Rc<CardProgram>,
    pub predictor: Predictor,
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
            memories: memories(config, mtu),
            allocator: Allocator::new(map::HPU_MEMORY, config.memory),
            watched: Watched::default(),
            program: None,
            buffers: Buffers::new(config.slots(mtu)),
            contexts: (0..config.contexts).map(|_| None).collect(),
            hpus: Hpus::new(config.hpus),
            tasks: VecDeque::new(),
            shares: shares(config),
            latest: 0,
            handles: Handles::default(),
            runs: 0,
            sanitizer: observation.sanitize.then(Box::default),
            told: Vec::new(),
            debugger,
            print_cycles: observation.print_cycles(),
            has_profile: observation.profile,
            profile: Profile::new(),
        }
    }

    pub(super) fn load_program(&mut self, program: Rc<CardProgram>) -> Result<(), ImageError> {
        let device = &program.device().program;
        self.memories.replace(map::PROGRAM, device.program_segment())?;
        self.memories.write(map::DATA, device.data_segment())?;
        if self.has_profile {
            program.engine().set_profiling();
        }
        self.program = Some(Loaded { program, predictor: Predictor::default() });
        Ok(())
    }

    pub(super) fn unload_program(&mut self) {
        if self.program.is_none() {
            return;
        }
        self.profile = self.profile();
        self.program = None;
        for (context, resident) in (0..).zip(&mut self.contexts) {
            *resident = None;
            self.handles.abandon(context);
        }
        self.hpus.clear();
        self.tasks.clear();
        self.shares = shares(&self.config);
        self.buffers.clear();
        self.memories = memories(&self.config, self.mtu);
        self.allocator = Allocator::new(map::HPU_MEMORY, self.config.memory);
        self.watched = Watched::default();
    }

    /// Releases the memory of code, stacks, packet buffers and waiting tasks if no handler runs and no packet waits.
    /// The next handler restores the code.
    pub(super) fn trim_memories(&mut self) {
        if self.buffers.all_free() && self.contexts.iter().all(Option::is_none) && self.tasks.is_empty() {
            self.memories.trim();
            self.tasks = VecDeque::new();
        }
    }

    pub(super) fn profile(&self) -> Profile {
        let mut profile = self.profile.clone();
        if let Some(loaded) = &self.program {
            loaded.program.add_profile(&mut profile);
        }
        profile
    }

    pub(super) fn store_packet(
        &mut self,
        offset: u64,
        data: &[u8],
        user_header: u32,
    ) -> Result<Option<Packet>, InternalError> {
        let Some(buffer) = self.buffers.take(data.len() as u32) else { return Ok(None) };
        let pad = user_header.next_multiple_of(crate::FRAGMENT) - user_header;
        let start = map::PACKETS + buffer * Sc17::slot_bytes(self.mtu) + pad;
        self.memories.write(start, data)?;
        Ok(Some(Packet { buffer, start, offset, length: data.len() as u32, user_header }))
    }

    pub(super) fn take_packet(&mut self, packet: Packet) -> Result<Vec<u8>, InternalError> {
        self.free_packet(packet);
        Ok(self.memories.slice(packet.start, packet.length)?.to_vec())
    }

    pub(super) fn free_packet(&mut self, packet: Packet) {
        self.buffers.free(packet.buffer, packet.length);
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

/// Rounds a number of bytes up to whole words.
pub(super) fn words(bytes: u32) -> u32 {
    bytes.next_multiple_of(WORD)
}

/// Returns true if handlers share the memory at an address; other memory belongs to one running handler.
pub(super) fn is_shared(address: u32) -> bool {
    (map::HPU_MEMORY..map::CONTEXTS).contains(&address) || (map::DATA..map::PACKETS).contains(&address)
}

/// Creates the memories of a unit: program, static data, HPU memory, contexts and packet buffers.
fn memories(config: &Sc17, mtu: u32) -> Memories {
    let region = |base, size, transient| Region { base, size: words(size), pieces: None, transient };
    // A context has its argument block at the start and its stack at the end of its address range.
    let pieces = Pieces { stride: map::CONTEXT_STRIDE, head: map::ARGS_BYTES, tail: config.stack };
    Memories::new(vec![
        region(map::DATA, config.data, false),
        region(map::HPU_MEMORY, config.memory, false),
        // In the order of first use, so that growth moves few bytes.
        region(map::PACKETS, config.slots(mtu) * Sc17::slot_bytes(mtu), true),
        region(map::PROGRAM, config.program, true),
        Region { pieces: Some(pieces), ..region(map::CONTEXTS, config.contexts * map::CONTEXT_STRIDE, true) },
    ])
}
