// SPDX-License-Identifier: Apache-2.0
//! Handlers that are resident on HPUs, and their memory.

use std::rc::Rc;

use abi::device::map;
use hpu::{Stop, Thread, Window};
use sim::Time;

use crate::command::CommandId;
use crate::convention::{Call, HandlerMemory};
use crate::fault::{Purpose, Span};
use crate::memory::{HpuMemory, Memories};
use crate::task::Task;

/// Sequence number of a handler, which distinguishes successive handlers of a context.
pub type Run = u32;

/// Reason for which a resident handler waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not waiting.
    Nothing,
    /// Waiting for the second reply to the command with this number.
    Reply(u32),
    /// Waiting for the completion of a command that has a handle.
    Handle,
    /// Waiting for an event that it scheduled.
    Time,
}

/// A handler that is resident on an HPU.
pub struct Context {
    /// Sequence number among the handlers of the unit.
    pub run: Run,
    /// Task of the handler.
    pub task: Task,
    /// Registers and counters.
    pub thread: Box<Thread>,
    /// Memory that it may access.
    pub windows: Vec<Window>,
    /// Keeps the HPU memory of its windows allocated.
    pub _state: Option<Rc<HpuMemory>>,
    /// Memory layout for which the windows' offsets are valid.
    pub layout: Option<u32>,
    /// Reason for which the thread stops at the end of its current run.
    pub stop: Option<Stop>,
    /// Call that awaits its first reply, and the identity of its command.
    pub call: Option<(Call, CommandId)>,
    /// Reason and source location of its latest refused command.
    pub refused: Option<String>,
    /// Number of commands that it issued.
    pub commands: u32,
    /// Time of its first instruction.
    pub started: Time,
    /// Time since which it occupies the HPU.
    pub stay: Time,
    /// Reason for which it waits.
    pub waits: Wait,
    /// Start and timeline label of the current wait on its HPU, if any.
    pub waiting: Option<(Time, &'static str)>,
}

impl Context {
    /// Returns the index of the memories of the handler's process.
    pub fn space(&self) -> usize {
        self.task.process as usize
    }

    /// Returns true if all bytes of the range are in one window of the handler. An empty range always is.
    pub fn owns(&self, address: u32, length: u32, write: bool) -> bool {
        owns(&self.windows, address, length, write)
    }
}

fn owns(windows: &[Window], address: u32, length: u32, write: bool) -> bool {
    let inside = |w: &Window| u64::from(address.wrapping_sub(w.base)) + u64::from(length) <= u64::from(w.len);
    length == 0 || windows.iter().any(|window| inside(window) && (window.write || !write))
}

/// Returns the use of a window by its handler.
pub fn span(window: &Window) -> Span {
    let purpose = match window.base {
        map::PROGRAM.. => Purpose::Program,
        map::PACKETS.. => Purpose::Packet,
        map::DATA.. => Purpose::Data,
        base @ map::CONTEXTS.. if base.is_multiple_of(map::CONTEXT_STRIDE) => Purpose::Arguments,
        map::CONTEXTS.. => Purpose::Stack,
        _ => Purpose::State,
    };
    Span { start: window.base, length: window.len, purpose }
}

/// Memory of a resident handler.
pub struct OwnMemory<'a> {
    /// All memories of the unit.
    pub memories: &'a mut Memories,
    /// Memory that the handler may access.
    pub windows: &'a [Window],
}

impl HandlerMemory for OwnMemory<'_> {
    fn read(&mut self, address: u32, length: u32) -> Option<Vec<u8>> {
        let bytes = owns(self.windows, address, length, false).then(|| self.memories.slice(address, length))?;
        bytes.ok().map(|bytes| bytes.to_vec())
    }

    fn write(&mut self, address: u32, bytes: &[u8]) {
        if owns(self.windows, address, bytes.len() as u32, true)
            && let Ok(memory) = self.memories.slice(address, bytes.len() as u32)
        {
            memory.copy_from_slice(bytes);
        }
    }
}
