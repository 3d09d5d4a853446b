//! Where HPU memory of programs is: in the scratchpads of the clusters, or in L2 handler memory (PsPIN §III-B2, III-C).

use std::rc::Rc;

use abi::device::map;
use machine::Pspin;

use crate::memory::{Arena, Place};
use accel::memory::{AllocationError, Allocator, HpuMemory};

/// The least stack of a handler of P4sPIN, as programs for all cards expect it (docs/handler-guide.md).
const STACK: u32 = 8_192;

/// Bytes of the stack of an HPU. Those of handlers of P4sPIN are larger than those of the paper, and so not among the runtime's
/// data but at the end of L1.
pub fn stack_bytes(unit: &Pspin) -> u32 {
    unit.units.stack.max(STACK)
}

/// Bytes of a cluster's L1 that are left for HPU memory of programs; `None` when stacks and arguments take more than there is.
pub fn scratchpad(unit: &Pspin) -> Option<u32> {
    unit.scratchpad().checked_sub(unit.units.hpus.checked_mul(stack_bytes(unit) + map::ARGS_BYTES)?)
}

/// Bytes of L2 handler memory that are left behind `data` bytes of static data.
fn room(unit: &Pspin, data: u32) -> u32 {
    unit.l2_handler.bytes.saturating_sub(data.next_multiple_of(64))
}

/// Bytes of the largest piece of HPU memory that a program with `data` bytes of static data can have.
pub fn most_memory(unit: &Pspin, data: u32) -> u32 {
    room(unit, data).max(scratchpad(unit).unwrap_or_default())
}

/// The HPU memory of a card.
pub struct Places {
    scratchpads: Vec<Allocator>,
    /// L2 handler memory behind the static data of the program.
    handler: Option<Allocator>,
}

impl Places {
    /// The scratchpads of all clusters, which lie behind the runtime's data and the packet buffer.
    pub fn new(unit: &Pspin) -> Places {
        let first = unit.cluster.runtime + unit.cluster.packet_buffer;
        let room = scratchpad(unit).unwrap_or_default();
        let scratchpad = |cluster| Allocator::new(Arena::start(Place::L1(cluster)) + first, room);
        Places { scratchpads: (0..unit.units.clusters as u16).map(scratchpad).collect(), handler: None }
    }

    /// A program with this many bytes of static data is loaded: programs may have the rest of L2 handler memory.
    pub fn load(&mut self, unit: &Pspin, data: u32) {
        let room = room(unit, data);
        let start = Arena::start(Place::Handler) + unit.l2_handler.bytes - room;
        self.handler = Some(Allocator::new(start, room));
    }

    /// Allocates memory in the scratchpad of which the fewest bytes are in use, or else in L2.
    ///
    /// # Errors
    /// When the length is 0, or when no memory has room.
    pub fn allocate(&mut self, length: u64) -> Result<Rc<HpuMemory>, AllocationError> {
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
    /// Whether an address is in memory that programs share: HPU memory, or static data.
    pub fn has(&self, address: u32) -> bool {
        let in_l2 = (Arena::start(Place::Handler)..Arena::start(Place::Packet)).contains(&address);
        in_l2 || self.scratchpads.iter().any(|scratchpad| scratchpad.has(address))
    }
}

/// The cluster whose L1 has the byte at an address.
pub fn cluster_of(address: u32) -> Option<u16> {
    let offset = address.checked_sub(Pspin::L1_START)?;
    let cluster = offset / Pspin::L1_SPAN;
    (cluster < Pspin::MAX_CLUSTERS).then_some(cluster as u16)
}
