use std::rc::Rc;

use abi::device::map;
use hpu::{Stop, Thread, Window};
use sim::Time;

use crate::command::CommandId;
use crate::convention::{Call, HandlerMemory};
use crate::fault::{Purpose, Span};
use crate::memory::{HpuMemory, Memories};
use crate::task::Task;

/// Distinguishes the handlers that use a context one after the other.
pub type Run = u32;

/// The reason why a resident handler waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It does not wait.
    Nothing,
    /// It waits for the second reply to its command with this number.
    Reply(u32),
    /// It waits for the end of a command that has a handle.
    Handle,
    /// It waits for an event that it has scheduled itself.
    Time,
}

/// A handler that is resident on an HPU.
pub struct Context {
    /// Its number among the handlers of the unit.
    pub run: Run,
    /// The task for which it was started.
    pub task: Task,
    /// Its registers and counts.
    pub thread: Box<Thread>,
    /// The memory that it may access.
    pub windows: Vec<Window>,
    /// Keeps the HPU memory in one of the windows reserved.
    pub _state: Option<Rc<HpuMemory>>,
    /// The layout of the memories to which the windows' places belong.
    pub layout: Option<u32>,
    /// Why the thread stops at the time up to which it has run.
    pub stop: Option<Stop>,
    /// The call to which the card has not yet replied for the first time, and the name of its command.
    pub call: Option<(Call, CommandId)>,
    /// Why the card has refused its latest command that was refused, and the place in the source.
    pub refused: Option<String>,
    /// Number of commands that it has issued.
    pub commands: u32,
    /// When the handler first ran.
    pub started: Time,
    /// The time since which it has occupied the HPU.
    pub stay: Time,
    /// The reason why it waits.
    pub waits: Wait,
    /// The time since which it has occupied the HPU and waited, and the name of this wait in timelines, if it does.
    pub waiting: Option<(Time, &'static str)>,
}

impl Context {
    /// Whether all bytes of a range lie in one window of the handler. A range of no bytes always does.
    pub fn owns(&self, address: u32, length: u32, write: bool) -> bool {
        owns(&self.windows, address, length, write)
    }
}

fn owns(windows: &[Window], address: u32, length: u32, write: bool) -> bool {
    let inside = |w: &Window| u64::from(address.wrapping_sub(w.base)) + u64::from(length) <= u64::from(w.len);
    length == 0 || windows.iter().any(|window| inside(window) && (window.write || !write))
}

/// What a window is to its handler.
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

/// The memory of a resident handler.
pub struct OwnMemory<'a> {
    /// All memories of the unit.
    pub memories: &'a mut Memories,
    /// The memory that the handler may access.
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
