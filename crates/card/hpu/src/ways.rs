// SPDX-License-Identifier: Apache-2.0
//! Memo of a thread's repeated paths between two accesses.

use crate::architectural_state::State;
use crate::op::Class;
use crate::timing::{Position, Wait};

/// Inputs of a path besides registers and program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Block whose access starts the path.
    pub block: u32,
    pub pipeline: Position,
    pub waits: Wait,
    /// Answer of the device.
    pub answer: [u8; 8],
    /// Number of evictions from the instruction cache before the path.
    pub removed: u64,
}

/// Changes of state at the end of a path; its cycles count from the device's answer.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub block: u32,
    pub pipeline: Position,
    pub pc: u32,
    pub cycles: u64,
    pub instructions: u64,
    /// Address, size and class of the access at the end.
    pub access: (u32, u32, Class),
}

/// Latest paths of a thread from one access to the next that left its registers unchanged. Execution is a function of
/// registers, pipeline and loaded data, so the thread takes the same path again.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    known: Vec<(Start, End)>,
}

/// Maximum number of memoised paths: two accesses in a loop, each with and without waiting.
const MOST: usize = 4;

impl Ways {
    /// Returns the end of the path with this start, if it is memoised.
    #[inline]
    pub fn find(&self, start: &Start) -> Option<&End> {
        self.known.iter().find(|(known, _)| known == start).map(|(_, end)| end)
    }

    /// Discards all paths, because the registers may have changed.
    #[inline]
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Adds a path that leaves the registers unchanged.
    pub fn add(&mut self, start: Start, end: End) {
        if self.known.len() == MOST {
            self.known.remove(0);
        }
        self.known.push((start, end));
    }
}

/// Snapshot of a thread's registers for comparison.
pub struct Registers(State);

impl Registers {
    pub fn of(state: &State) -> Registers {
        Registers(state.clone())
    }

    /// Returns true if the state is unchanged except for pc and counters, as far as instructions can read it; no
    /// instruction reads the register `sink`.
    pub fn are_those_of(&self, state: &State, sink: Option<u8>) -> bool {
        self.0.has_registers_of(state, sink)
    }
}
