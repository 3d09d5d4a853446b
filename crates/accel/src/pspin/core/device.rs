//! The registers by which an HPU talks with its driver (§III-B2), at the addresses of the published interface.

use crate::pspin::command::{Command, Send};
use crate::pspin::her::{Range, Task};

/// The registers of the HPU driver; each HPU sees its own.
const DRIVER: u32 = 0x1B20_5000;
/// The function pointer: a load waits until there is a task.
const FUNCTION: u32 = DRIVER;
const FUNCTION_SIZE: u32 = DRIVER + 4;
const TASK_BYTES: u32 = 4 * TASK_WORDS as u32;
/// The doorbell: any access says that the handler has ended.
const DOORBELL: u32 = DRIVER + 0x50;
/// A load issues the command that the words below say, and returns its number.
const ISSUE: u32 = DRIVER + 0x80;
/// A store of a command's number returns when the command is done.
const WAIT: u32 = DRIVER + 0x84;
/// A store of a command's number, and then a load, says whether the command is done.
const TEST: u32 = DRIVER + 0x88;
/// What kind of command it is, and its words.
const COMMAND: u32 = DRIVER + 0x8C;
/// A store of a code says that the task has failed; the doorbell ends it.
const ERROR: u32 = DRIVER + 0x54;
/// The words of a transfer by the DMA engine of the cluster, 8 bytes apart: where it begins to read, where it begins to write,
/// and how many bytes.
const TRANSFER: u32 = DRIVER + 0x100;
/// A load launches the transfer and returns its number: those of an HPU increase from 1.
const LAUNCH: u32 = TRANSFER + 0x18;
/// A load returns the number of a transfer that is done, as all before it are.
const LANDED: u32 = TRANSFER + 0x20;
/// A store ends the run, because something has gone wrong.
const TERMINATE: u32 = 0x1B20_0000;
/// Number of words of a command, with its kind.
pub const COMMAND_WORDS: usize = 8;
/// Number of words of a transfer.
pub const TRANSFER_WORDS: usize = 3;
/// A store of a character writes it to the output.
const OUTPUT: u32 = 0x1A10_4000;
/// Number of words of a task.
const TASK_WORDS: usize = 18;

/// A register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Register {
    /// The function pointer.
    Function,
    /// The size of the handler, or a byte of the task; the offset from [`FUNCTION_SIZE`].
    Task(u32),
    /// The doorbell.
    Doorbell,
    /// The issue of a command.
    Issue,
    /// The wait for a command.
    Wait,
    /// The test of a command.
    Test,
    /// A word of a command.
    Command(u8),
    /// The code of an error.
    Error,
    /// A word of a transfer.
    Transfer(u8),
    /// The launch of a transfer.
    Launch,
    /// The transfers that are done.
    Landed,
    /// The end of the run.
    Terminate,
    /// The output of `printf`.
    Output,
}

/// The register that has `size` bytes at an address.
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
        () if within(TERMINATE, 4) => Some(Register::Terminate),
        () if within(OUTPUT, 4) => Some(Register::Output),
        () => None,
    }
}

/// The words behind the function pointer: its size, and the task in the order of the published `task_t`. Programs see the
/// scratchpads of four clusters.
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

/// The bytes of a task from an offset on, as an HPU reads them; any width can be read.
pub fn read(task: &Task, packet: Range, clusters: u32, offset: u32) -> [u8; 8] {
    let words = words(task, packet, clusters);
    std::array::from_fn(|byte| {
        let at = offset as usize + byte;
        words.get(at / 4).map_or(0, |word| word.to_le_bytes()[at % 4])
    })
}

/// The command that its words say: the kind (bit 0: an event, from bit 1 on: 0 host DMA, 1 NIC, 2 host direct), then words
/// whose meaning depends on it. A command has at most `most_direct` bytes of data in itself;
/// `common` gives the address that everybody has for one that the HPU uses. `None` for a command that does not exist.
pub fn command(words: [u32; COMMAND_WORDS], most_direct: u32, common: impl Fn(u32) -> u32) -> Option<Command> {
    let [kind, a, b, c, d, e, user, _] = words;
    let host = u64::from(b) << 32 | u64::from(a);
    let event = (kind & 1 != 0).then_some(user);
    match kind >> 1 {
        0 => {
            let data = Range { address: common(c), size: d };
            Some(if e != 0 { Command::ToHost { host, data, event } } else { Command::FromHost { host, data, event } })
        }
        // Destination, flow, low and high half of the address, size.
        1 => Some(Command::Send { data: Range { address: common(c), size: e }, send: Send { node: a, flow: b, user } }),
        // The size is above the direction.
        2 => {
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
