//! An HPU: a thread, and for what it waits.

use std::collections::VecDeque;

use hpu::{Access, Thread};

use super::device::{COMMAND_WORDS, Register, TRANSFER_WORDS};
use super::protect::Spans;
use crate::pspin::cores::ClusterSide;
use crate::pspin::cycle::Cycle;
use crate::pspin::fabric::TransferId;
use crate::pspin::her::{Range, TaskOutcome};
use crate::pspin::memory::{Arena, Place};
use crate::pspin::observe::Observer;

/// What an HPU does in the cycle for which it waits.
#[derive(Clone, Copy, Debug)]
pub enum Doing {
    /// It runs instructions without accesses.
    Running,
    /// It asks for a bank of its own L1, at this offset.
    Local(u32),
    /// It asks the interconnect for this memory.
    Remote(Place),
    /// Its access reaches the memory; the answer comes in this cycle.
    Arriving(u64),
    /// Its access reaches a register.
    Device(Register),
    /// It waits for the driver, which has the access to this register; no cycle is known.
    Held(Register),
    /// It waits for a command after the store that said so.
    Waiting,
    /// It asks for a line of code.
    Fetch(u32),
    /// The line that it asked for in this cycle is there.
    Filled(u64),
    /// It has recovered from a handler that failed or was killed.
    Recovered(TaskOutcome),
}

/// An HPU.
pub struct Hpu {
    pub thread: Thread,
    pub doing: Doing,
    /// The access for which it waits.
    pub access: Access,
    /// Words of the access that have no grant yet.
    pub words: u32,
    /// Where the first byte of the access is among the bytes of all memories.
    pub position: usize,
    /// The memory that it may use.
    pub spans: Spans,
    /// The cycle from which a load of the function pointer returns, when there is a task.
    pub task_from: Option<u64>,
    /// The words of the next command, and whether the command of the latest test was done.
    pub command: [u32; COMMAND_WORDS],
    pub is_done: bool,
    /// The words of the next transfer.
    pub transfer: [u32; TRANSFER_WORDS],
    /// Number of transfers that were launched, and those of them that were not done when the HPU looked last.
    pub launched: u32,
    pub transfers: VecDeque<TransferId>,
    /// The characters of a line that has no end yet.
    pub line: Vec<u8>,
}

impl Hpu {
    /// Whether the handler may use a range with commands and transfers, which it writes or reads.
    pub fn may_use(&mut self, range: Range, write: bool, memory: &Arena) -> bool {
        self.spans.allows(range.address, range.size, write) && memory.locate(range.address, range.size).is_some()
    }

    /// Whether all transfers are done that the HPU has launched. A handler ends after them: a later one may have its memory.
    pub fn has_landed<O: Observer>(&mut self, now: Cycle, side: &ClusterSide<'_, O>) -> bool {
        while self.transfers.front().is_some_and(|transfer| side.is_copied(now, *transfer)) {
            self.transfers.pop_front();
        }
        self.transfers.is_empty()
    }
}
