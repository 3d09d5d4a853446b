//! What a thread does by heart: the ways between two accesses that it goes again and again.

use crate::op::Class;
use crate::state::State;
use crate::timing::{Position, Wait};

/// What a way depends on besides registers and program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The block whose access is the first of the way.
    pub block: u32,
    pub pipeline: Position,
    pub waits: Wait,
    /// What the device answers.
    pub answer: [u8; 8],
    /// Lines that had left the instruction cache before.
    pub removed: u64,
}

/// What is different at the end of a way; the cycles begin when the device has answered.
#[derive(Clone, Copy, Debug)]
pub struct End {
    pub block: u32,
    pub pipeline: Position,
    pub pc: u32,
    pub cycles: u64,
    pub instructions: u64,
    /// The address, the size and the kind of the access that comes then.
    pub access: (u32, u32, Class),
}

/// The latest ways of a thread from an access to the next that have left its registers as they were. What a thread does is a
/// function of its registers, its pipeline and what it reads, so it goes the same way again.
#[derive(Clone, Debug, Default)]
pub struct Ways {
    known: Vec<(Start, End)>,
}

/// Ways that are known at a time: two accesses in a loop, each with and without waiting.
const MOST: usize = 4;

impl Ways {
    /// The end of the way with this start, if it is known.
    #[inline]
    pub fn find(&self, start: &Start) -> Option<&End> {
        self.known.iter().find(|(known, _)| known == start).map(|(_, end)| end)
    }

    /// The registers have changed, or may have: no way is known any more.
    #[inline]
    pub fn forget(&mut self) {
        self.known.clear();
    }

    /// Adds a way after which the registers are as they were.
    pub fn add(&mut self, start: Start, end: End) {
        if self.known.len() == MOST {
            self.known.remove(0);
        }
        self.known.push((start, end));
    }
}

/// The registers of a thread, to be compared later.
pub struct Registers(State);

impl Registers {
    pub fn of(state: &State) -> Registers {
        Registers(state.clone())
    }

    /// Whether nothing has changed that an instruction can read, but for pc and counters; none reads the register `sink`.
    pub fn are_those_of(&self, state: &State, sink: Option<u8>) -> bool {
        self.0.has_registers_of(state, sink)
    }
}
