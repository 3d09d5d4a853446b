// SPDX-License-Identifier: Apache-2.0
//! Placement of programs' HPU memory: in the clusters' scratchpads, or in L2 handler memory (PsPIN §III-B2, III-C).

use std::rc::Rc;

use abi::device::map;
use machine::Pspin;

use crate::memory::{Arena, Place};
use accel::memory::{AllocationError, Allocator, HpuMemory};

/// Minimum stack of a P4sPIN handler in bytes, guaranteed to programs for all cards (docs/handler-guide.md).
const STACK: u32 = 8_192;

/// Returns the size of an HPU's stack in bytes. P4sPIN stacks are larger than the paper's and lie at the end of L1, not
/// in the runtime's data.
pub fn stack_bytes(unit: &Pspin) -> u32 {
    unit.units.stack.max(STACK)
}

/// Configuration of a unit whose L1 memories hold the stacks and arguments of its HPUs.
#[derive(Clone)]
pub struct Layout {
    config: Rc<Pspin>,
    scratchpad: u32,
}

impl Layout {
    /// Lays out the L1 memories of a unit; `None` if stacks and arguments do not fit.
    pub fn new(config: &Pspin) -> Option<Layout> {
        Some(Layout { scratchpad: scratchpad(config)?, config: Rc::new(config.clone()) })
    }

    /// Returns the configuration of the unit.
    pub fn config(&self) -> &Rc<Pspin> {
        &self.config
    }
}

/// Returns the bytes of a cluster's L1 left for programs' HPU memory; `None` if stacks and arguments do not fit.
fn scratchpad(unit: &Pspin) -> Option<u32> {
    unit.scratchpad().checked_sub(unit.units.hpus.checked_mul(stack_bytes(unit) + map::ARGS_BYTES)?)
}

/// Returns the bytes of L2 handler memory that follow `data` bytes of static data.
fn room(unit: &Pspin, data: u32) -> u32 {
    unit.l2_handler.bytes.saturating_sub(data.next_multiple_of(64))
}

/// Returns the maximum size of an HPU memory allocation for a program with `data` bytes of static data.
pub fn most_memory(unit: &Pspin, data: u32) -> u32 {
    room(unit, data).max(scratchpad(unit).unwrap_or_default())
}

/// Allocators of a card's HPU memory.
pub struct Places {
    scratchpads: Vec<Allocator>,
    /// L2 handler memory after the program's static data.
    handler: Option<Allocator>,
    /// Peak number of allocated bytes.
    peak: u64,
}

impl Places {
    /// Creates allocators for the scratchpads of all clusters, which follow the runtime's data and the packet buffer.
    pub fn new(layout: &Layout) -> Places {
        let unit = &layout.config;
        let first = unit.cluster.runtime + unit.cluster.packet_buffer;
        let scratchpad = |cluster| Allocator::new(Arena::start(Place::L1(cluster)) + first, layout.scratchpad);
        Places { scratchpads: (0..unit.units.clusters as u16).map(scratchpad).collect(), handler: None, peak: 0 }
    }

    /// Makes L2 handler memory after a program's `data` bytes of static data available.
    pub fn load(&mut self, unit: &Pspin, data: u32) {
        let room = room(unit, data);
        let start = Arena::start(Place::Handler) + unit.l2_handler.bytes - room;
        self.handler = Some(Allocator::new(start, room));
    }

    /// Allocates memory in the scratchpad with the fewest bytes in use, or else in L2.
    ///
    /// # Errors
    /// If the length is 0, or no memory has room.
    pub fn allocate(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError> {
        let piece = self.find(length)?;
        let used = self.scratchpads.iter().chain(&self.handler).map(|allocator| u64::from(allocator.used()));
        self.peak = self.peak.max(used.sum());
        Ok(piece)
    }

    fn find(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError> {
        let mut order: Vec<&mut Allocator> = self.scratchpads.iter_mut().collect();
        order.sort_by_key(|scratchpad| scratchpad.used());
        let mut refusal = AllocationError::Full(length);
        for allocator in order.into_iter().chain(&mut self.handler) {
            match allocator.allocate(length) {
                Err(error) => refusal = error,
                piece => return piece,
            }
        }
        Err(refusal)
    }
}

impl Places {
    /// Forgets all pieces.
    pub fn clear(&mut self, layout: &Layout) {
        *self = Places { peak: self.peak, ..Places::new(layout) };
    }

    /// Returns the peak number of allocated bytes.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Returns true if an address is in memory that programs share: HPU memory or static data.
    pub fn has(&self, address: u32) -> bool {
        let in_l2 = (Arena::start(Place::Handler)..Arena::start(Place::Packet)).contains(&address);
        in_l2 || self.scratchpads.iter().any(|scratchpad| scratchpad.has(address))
    }
}

/// Returns the cluster whose L1 contains an address.
pub fn cluster_of(address: u32) -> Option<u16> {
    let offset = address.checked_sub(Pspin::L1_START)?;
    let cluster = offset / Pspin::L1_SPAN;
    (cluster < Pspin::MAX_CLUSTERS).then_some(cluster as u16)
}
