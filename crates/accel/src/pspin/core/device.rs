//! The registers by which an HPU talks with its driver (§III-B2), at the addresses of the published interface.

use crate::pspin::her::{Range, Task};

/// The registers of the HPU driver; each HPU sees its own.
const DRIVER: u32 = 0x1B20_5000;
/// The function pointer: a load waits until there is a task.
const FUNCTION: u32 = DRIVER;
const FUNCTION_SIZE: u32 = DRIVER + 4;
const TASK_BYTES: u32 = 4 * TASK_WORDS as u32;
/// The doorbell: any access says that the handler has ended.
const DOORBELL: u32 = DRIVER + 0x50;
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
