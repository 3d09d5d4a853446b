// SPDX-License-Identifier: Apache-2.0
//! HPU driver registers (§III-B2), at the addresses of the published interface.

use abi::pspin::{driver, kind, map};

use crate::command::{Command, Send};
use crate::her::{Range, Task};

const FUNCTION: u32 = map::DRIVER + driver::FUNCTION;
const FUNCTION_SIZE: u32 = map::DRIVER + driver::FUNCTION_SIZE;
const TASK_BYTES: u32 = 4 * abi::pspin::TASK_WORDS;
const DOORBELL: u32 = map::DRIVER + driver::DOORBELL;
const ISSUE: u32 = map::DRIVER + driver::ISSUE;
const WAIT: u32 = map::DRIVER + driver::WAIT;
const TEST: u32 = map::DRIVER + driver::TEST;
/// Kind of a command, followed by its other words.
const COMMAND: u32 = map::DRIVER + driver::COMMAND;
const ERROR: u32 = map::DRIVER + driver::ERROR;
/// First word of a transfer; its words are 8 bytes apart.
const TRANSFER: u32 = map::DRIVER + driver::SOURCE;
const LAUNCH: u32 = map::DRIVER + driver::LAUNCH;
const LANDED: u32 = map::DRIVER + driver::LANDED;
/// Number of words of a command, including its kind.
pub const COMMAND_WORDS: usize = abi::pspin::COMMAND_WORDS as usize;
/// Number of words of a transfer.
pub const TRANSFER_WORDS: usize = 3;
/// Number of words of a task.
const TASK_WORDS: usize = abi::pspin::TASK_WORDS as usize;

/// A device register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// Function pointer.
    Function,
    /// Size of the handler, or a byte of the task; the offset from [`FUNCTION_SIZE`].
    Task(u32),
    /// Doorbell.
    Doorbell,
    /// Issues a command.
    Issue,
    /// Waits for a command.
    Wait,
    /// Tests a command.
    Test,
    /// Word of a command.
    Command(u8),
    /// Error code.
    Error,
    /// Word of a transfer.
    Transfer(u8),
    /// Launches a transfer.
    Launch,
    /// Number of completed transfers.
    Landed,
    /// Ends the run.
    Terminate,
    /// Output of `printf`.
    Output,
}

/// Returns the register that contains the `size` bytes at an address.
pub fn register(address: u32, size: u32) -> Option<Register> {
    let within = |start: u32, bytes: u32| Range { address: start, size: bytes }.holds(address, size);
    match () {
        () if within(FUNCTION, 4) => Some(Register::Function),
        () if within(FUNCTION_SIZE, 4 + TASK_BYTES) => Some(Register::Task(address - FUNCTION_SIZE)),
        () if within(DOORBELL, 4) => Some(Register::Doorbell),
        () if within(ISSUE, 4) => Some(Register::Issue),
        () if within(WAIT, 4) => Some(Register::Wait),
        () if within(TEST, 4) => Some(Register::Test),
        () if size == 4 && within(COMMAND, 4 * COMMAND_WORDS as u32) && address.is_multiple_of(4) => {
            Some(Register::Command(((address - COMMAND) / 4) as u8))
        }
        () if within(ERROR, 4) => Some(Register::Error),
        () if size == 4 && within(TRANSFER, 8 * TRANSFER_WORDS as u32) && address.is_multiple_of(8) => {
            Some(Register::Transfer(((address - TRANSFER) / 8) as u8))
        }
        () if within(LAUNCH, 4) => Some(Register::Launch),
        () if within(LANDED, 4) => Some(Register::Landed),
        () if within(map::TERMINATE, 4) => Some(Register::Terminate),
        () if within(map::OUTPUT, 4) => Some(Register::Output),
        () => None,
    }
}

/// Returns the words after the function pointer: the handler's size, and the task in the order of the published
/// `task_t`. Programs see the scratchpads of four clusters.
fn words(task: &Task, packet: Range, clusters: u32) -> [u32; 1 + TASK_WORDS] {
    let context = &task.her.context;
    let size = context.handlers[task.role as usize].size;
    let scratchpad = |cluster: usize| context.scratchpads.get(cluster).copied().unwrap_or_default();
    let [a, b, c, d] = [0, 1, 2, 3].map(scratchpad);
    [
        size,
        context.handler_memory.address,
        context.handler_memory.size,
        packet.address,
        packet.size,
        a.address,
        b.address,
        c.address,
        d.address,
        a.size,
        b.size,
        c.size,
        d.size,
        (context.host.address >> 32) as u32,
        context.host.address as u32,
        u32::try_from(context.host.size).unwrap_or(u32::MAX),
        task.her.packet.address,
        task.her.message % clusters.max(1),
        task.her.flow,
    ]
}

/// Returns the bytes of a task from `offset` on, for loads of any width.
pub fn read(task: &Task, packet: Range, clusters: u32, offset: u32) -> [u8; 8] {
    let words = words(task, packet, clusters);
    std::array::from_fn(|byte| {
        let at = offset as usize + byte;
        words.get(at / 4).map_or(0, |word| word.to_le_bytes()[at % 4])
    })
}

/// Decodes a command from its words: the kind, then words whose meaning depends on it. A host-direct command moves at
/// most `most_direct` bytes. `common` translates an address of the HPU to the common address space. Returns `None` for
/// an unknown or oversized command.
pub fn command(words: [u32; COMMAND_WORDS], most_direct: u32, common: impl Fn(u32) -> u32) -> Option<Command> {
    let [what, a, b, c, d, e, user, _] = words;
    let host = u64::from(b) << 32 | u64::from(a);
    let event = (what & kind::EVENT != 0).then_some(user);
    match what & !kind::EVENT {
        kind::HOST_DMA => {
            let data = Range { address: common(c), size: d };
            Some(if e != 0 { Command::ToHost { host, data, event } } else { Command::FromHost { host, data, event } })
        }
        // Words: destination, flow, low and high half of the address, size.
        kind::SEND => {
            Some(Command::Send { data: Range { address: common(c), size: e }, send: Send { node: a, flow: b, user } })
        }
        // The word holds the size above the direction bit.
        kind::HOST_DIRECT => {
            let size = u8::try_from(c >> 1).ok().filter(|size| u32::from(*size) <= most_direct.min(64))?;
            let mut data = [0; 64];
            data[..4].copy_from_slice(&d.to_le_bytes());
            data[4..8].copy_from_slice(&e.to_le_bytes());
            Some(if c & 1 != 0 {
                Command::HostDirect { host, data, size: size.min(8) }
            } else {
                Command::HostDirectRead { host, size }
            })
        }
        _ => None,
    }
}
