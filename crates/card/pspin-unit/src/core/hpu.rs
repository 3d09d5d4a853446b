//! An HPU: a thread, and for what it waits.

use hpu::isa::Class;
use hpu::{Access, Thread};

use super::protect::Spans;
use crate::her::Range;
use crate::memory::{Arena, Place};

/// What an HPU does in the cycle for which it waits.
#[derive(Clone, Copy, Debug)]
pub enum Doing<A> {
    /// It runs instructions without accesses.
    Running,
    /// It asks for a bank of its own L1, at this offset.
    Local(u32),
    /// It asks the interconnect for this memory, at this offset.
    Remote(Place, u32),
    /// It waits until its access to this word happens, which it has asked for.
    Asked {
        /// The memory and the offset.
        at: (Place, u32),
        /// Its handler has been killed: the access happens nevertheless.
        is_killed: bool,
    },
    /// Its access to this word happens.
    Reaches {
        /// The memory and the offset.
        at: (Place, u32),
        /// When the port of the cluster has taken it, and when the HPU has the answer.
        taken: u64,
        answer: u64,
        /// Its handler has been killed.
        is_killed: bool,
    },
    /// It needs a line of code.
    Fetch(u32),
    /// It waits for a line of code, which it has asked for.
    Missing(u32),
    /// The line for which it has waited is there.
    Filled,
    /// It does something that has to do with its environment.
    Act(A),
}

/// An HPU.
pub struct Hpu<A, O> {
    pub thread: Thread,
    pub doing: Doing<A>,
    /// The access for which it waits.
    pub access: Access,
    /// Words of the access that have no grant yet, or no answer when they are in another memory.
    pub words: u32,
    /// Where the first byte of the access is among the bytes of all memories.
    pub position: usize,
    /// The cycle of the answer to its latest access to another memory.
    pub answer: u64,
    /// The memory that it may use.
    pub spans: Spans,
    /// What it has for its environment.
    pub own: O,
}

impl<A, O> Hpu<A, O> {
    /// An HPU whose thread has not begun.
    pub fn new(thread: Thread, doing: Doing<A>, spans: Spans, own: O) -> Hpu<A, O> {
        let access = Access { at: 0, address: 0, bytes: 0, class: Class::Load };
        Hpu { thread, doing, access, words: 0, position: 0, answer: 0, spans, own }
    }

    /// Whether its handler may use a range with commands and transfers, which it writes or reads.
    pub fn may_use(&mut self, range: Range, write: bool, memory: &Arena) -> bool {
        self.spans.allows(range.address, range.size, write) && memory.locate(range.address, range.size).is_some()
    }
}
