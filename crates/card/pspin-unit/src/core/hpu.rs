// SPDX-License-Identifier: Apache-2.0
//! An HPU: a thread and its pending action.

use hpu::isa::Class;
use hpu::{Access, Thread};

use super::protect::Spans;
use crate::her::Range;
use crate::memory::{Arena, Place};

/// Action of an HPU in its next active cycle.
#[derive(Clone, Copy, Debug)]
pub enum Doing<A> {
    /// Runs instructions without memory accesses.
    Running,
    /// Requests a bank of the L1 of this HPU's cluster, at this offset.
    Local(u32),
    /// Requests an access to this memory, at this offset, from the interconnect.
    Remote(Place, u32),
    /// Waits for the interconnect to perform its access to a word.
    Asked {
        /// Memory and offset.
        at: (Place, u32),
        /// Set when the handler is killed; the access still happens.
        is_killed: bool,
    },
    /// Performs its access to a word.
    Reaches {
        /// Memory and offset.
        at: (Place, u32),
        /// Cycle in which the cluster's port accepted the access, and cycle in which the HPU has the answer.
        taken: u64,
        answer: u64,
        /// Set when the handler is killed.
        is_killed: bool,
    },
    /// Needs a line of code.
    Fetch(u32),
    /// Waits for a requested line of code.
    Missing(u32),
    /// Continues after its line of code has arrived.
    Filled,
    /// Performs an action of its environment.
    Act(A),
}

/// A handler processing unit.
pub struct Hpu<A, O> {
    pub thread: Thread,
    pub doing: Doing<A>,
    /// Access in progress.
    pub access: Access,
    /// Words of the access without a grant, or without an answer from a remote memory.
    pub words: u32,
    /// Position of the access's first byte in [`Arena::bytes`].
    pub position: usize,
    /// Cycle of the answer to its latest remote access.
    pub answer: u64,
    /// Memory that its handler may use.
    pub spans: Spans,
    /// State of the environment.
    pub own: O,
}

impl<A, O> Hpu<A, O> {
    /// Creates an HPU whose thread has not begun.
    pub fn new(thread: Thread, doing: Doing<A>, spans: Spans, own: O) -> Hpu<A, O> {
        let access = Access { at: 0, address: 0, bytes: 0, class: Class::Load };
        Hpu { thread, doing, access, words: 0, position: 0, answer: 0, spans, own }
    }

    /// Returns true if its handler may use a range in commands and transfers, to write it if `write` is set, else to
    /// read it.
    pub fn may_use(&mut self, range: Range, write: bool, memory: &Arena) -> bool {
        self.spans.allows(range.address, range.size, write) && memory.locate(range.address, range.size).is_some()
    }
}
