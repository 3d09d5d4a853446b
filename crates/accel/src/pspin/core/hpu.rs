//! An HPU: a thread, and for what it waits.

use hpu::{Access, Thread};

use super::device::{COMMAND_WORDS, Register};
use super::protect::Spans;
use crate::pspin::her::TaskOutcome;
use crate::pspin::memory::Place;

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
    /// The characters of a line that has no end yet.
    pub line: Vec<u8>,
}
