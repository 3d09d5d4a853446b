// SPDX-License-Identifier: Apache-2.0
//! Program and memories of a process. The processes that share a unit have equal card addresses, and none can address the
//! memories of another ("resources are accounted for on a per-application basis", sPIN §2).

use std::rc::Rc;

use abi::device::map;
use hpu::{Predictor, Watched};
use machine::Sc17;
use sim::Time;

use super::told::Told;
use crate::memory::{Allocator, GRAIN, Memories, Pieces, Region};
use crate::profile::Profile;
use crate::program::{CardProgram, ImageError};
use crate::sanitize::Sanitizer;

/// Granularity of memory protection in bytes: the runtime's `memcpy` reads whole aligned words.
const WORD: u32 = 8;

/// A device program, and the unit's state for it.
pub(super) struct Loaded {
    pub program: Rc<CardProgram>,
    pub predictor: Predictor,
}

/// Part of a shared unit's HPU memory and packet buffers: `share / of`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Numerator.
    pub share: u64,
    /// Denominator.
    pub of: u64,
}

impl Quota {
    /// Quota of a process that shares its unit with no other.
    pub const ALL: Quota = Quota { share: 1, of: 1 };

    /// Returns the part of `all`, rounded down.
    pub fn part(self, all: u32) -> u32 {
        (u64::from(all) * self.share / self.of) as u32
    }

    /// Returns the part of `all` bytes of HPU memory, in whole grains of allocation.
    pub fn memory(self, all: u32) -> u32 {
        if self == Quota::ALL { all } else { self.part(all) / GRAIN * GRAIN }
    }
}

/// Program and memories of a process.
pub(super) struct Space {
    pub memories: Memories,
    pub allocator: Allocator,
    /// Memory words on which handlers waited.
    pub watched: Watched,
    pub program: Option<Loaded>,
    pub sanitizer: Option<Box<Sanitizer>>,
    /// Findings that were reported to the user.
    pub told: Vec<Told>,
    /// Time for which its handlers occupied HPUs.
    pub busy: Time,
    /// Number of its packets in buffers, and its limit.
    pub packets: u32,
    pub most_packets: u32,
    /// Bytes of HPU memory that it may allocate, and the peak of those that it had allocated.
    quota: u32,
    pub memory_peak: u64,
    /// Execution counts of unloaded programs.
    profile: Profile,
}

impl Space {
    /// Creates the memories of a process without a program. A scheduler that separates tenants also divides the packet
    /// buffers.
    pub fn new(config: &Sc17, mtu: u32, quota: Quota, sanitizes: bool) -> Space {
        let memory = quota.memory(config.memory);
        let slots = config.slots(mtu);
        let is_divided = config.sharing.separated().is_some();
        Space {
            memories: memories(config, mtu),
            allocator: Allocator::new(map::HPU_MEMORY, memory),
            watched: Watched::default(),
            program: None,
            sanitizer: sanitizes.then(Box::default),
            told: Vec::new(),
            busy: Time::ZERO,
            packets: 0,
            most_packets: if is_divided { quota.part(slots).max(1) } else { slots },
            quota: memory,
            memory_peak: 0,
            profile: Profile::new(),
        }
    }

    pub fn load(&mut self, program: Rc<CardProgram>, profiles: bool) -> Result<(), ImageError> {
        let device = &program.device().program;
        self.memories.replace(map::PROGRAM, device.program_segment())?;
        self.memories.write(map::DATA, device.data_segment())?;
        if profiles {
            program.engine().set_profiling();
        }
        self.program = Some(Loaded { program, predictor: Predictor::default() });
        Ok(())
    }

    /// Discards the program and all memory.
    pub fn unload(&mut self, config: &Sc17, mtu: u32) {
        self.profile = self.profile();
        self.program = None;
        self.memories = memories(config, mtu);
        self.allocator = Allocator::new(map::HPU_MEMORY, self.quota);
        self.watched = Watched::default();
    }

    pub fn profile(&self) -> Profile {
        let mut profile = self.profile.clone();
        if let Some(loaded) = &self.program {
            loaded.program.add_profile(&mut profile);
        }
        profile
    }
}

/// Rounds a number of bytes up to whole words.
pub(super) fn words(bytes: u32) -> u32 {
    bytes.next_multiple_of(WORD)
}

/// Creates the memories of a process: program, static data, HPU memory, contexts and packet buffers. A context and a
/// packet buffer belong to one process at a time.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotas_are_rounded_down() {
        assert_eq!((Quota::ALL.part(7), Quota { share: 3, of: 4 }.part(7)), (7, 5));
        assert_eq!((Quota::ALL.memory(100), Quota { share: 1, of: 3 }.memory(1000)), (100, 320));
        assert_eq!(Quota { share: 1000, of: 2000 }.part(u32::MAX), u32::MAX / 2);
    }
}
