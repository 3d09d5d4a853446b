// SPDX-License-Identifier: Apache-2.0
//! Event numbers of the unit's observers (`rtl/observe`).

use hpu::{Fault, Program};
use pspin_unit::command::{Command, Send};
use pspin_unit::her::{Failure, HpuId, Range, Role, TaskOutcome};

use crate::simulation::Event;

/// A task arrived at a cluster: slot, role, whether its end is the end of the packet, NIC number, and queue.
pub const TASK_SENT: u16 = 16;
/// The packet of a task is in L1: slot.
pub const DMA_DONE: u16 = 17;
/// A task was assigned to an HPU: slot.
pub const ASSIGNED: u16 = 18;
/// The HPU has the function pointer.
pub const START: u16 = 19;
/// Its task ended, or the program failed without one: kind and cause of the outcome and whether a task exists, bytes of
/// a wrong command, the address of the instruction, and that of the access.
pub const END: u16 = 20;
/// The command unit accepted a command: slot, kind, event and size of immediate data; data; host address.
pub const COMMAND: u16 = 21;
/// Precedes a command: node, flow, user and immediate data.
pub const COMMAND_WORDS: u16 = 22;
/// A response reached its HPU: slot.
pub const RESPONSE: u16 = 23;
/// Notice to the driver on the host: kind, cause and role, context, message, user.
pub const NOTICE: u16 = 24;
/// Precedes a notice: the address of the instruction, and that of the access.
pub const NOTICE_WORDS: u16 = 25;
/// An HPU printed a character.
pub const CONSOLE: u16 = 26;
/// A program requested the end of the run.
pub const TERMINATE: u16 = 27;
/// HPUs of a cluster waited a cycle for banks: number of HPUs.
pub const CONFLICTS: u16 = 28;
/// A cluster fetches a line into its instruction cache.
pub const MISS: u16 = 29;

/// Flag of [`END`]: a task exists.
pub const HAS_TASK: u32 = 1 << 16;
/// Kind of an outcome that is a failure.
pub const FAULTED: u32 = 2;

/// Returns the HPU of an event.
pub fn hpu(event: &Event) -> HpuId {
    HpuId { cluster: event.unit >> 5, hpu: event.unit & 31 }
}

/// Returns the role of a handler by its number.
pub fn role(number: u32) -> Role {
    match number {
        0 => Role::Header,
        1 => Role::Payload,
        _ => Role::Completion,
    }
}

/// Returns the end of a task from its kind, the cause of a failure, the address of the instruction, and that of the
/// access. The hardware reports neither the instruction nor the size of its access; `program` supplies both. A wrong
/// command names `size` bytes.
pub fn outcome(program: &Program, kind: u32, cause: u32, pc: u32, address: u64, size: u32) -> TaskOutcome {
    let low = address as u32;
    let (word, len) = program.encoding(pc).unwrap_or_default();
    let failure = match cause {
        1 => Failure::Fault(Fault::Load { pc, addr: low, len }),
        2 => Failure::Fault(Fault::Store { pc, addr: low, len }),
        3 => Failure::Fault(Fault::Misaligned { pc, addr: low }),
        4 => Failure::Fault(Fault::Fetch { pc }),
        5 => Failure::Fault(Fault::Illegal { pc, word }),
        6 => Failure::Fault(Fault::Breakpoint { pc }),
        7 => Failure::Command { address: low, size },
        8 => Failure::Host { address },
        _ => Failure::Reported { code: low },
    };
    match kind {
        0 => TaskOutcome::Done,
        1 => TaskOutcome::Skipped,
        FAULTED => TaskOutcome::Faulted(failure),
        3 => TaskOutcome::TimedOut,
        _ => TaskOutcome::MessageReset,
    }
}

/// Returns a command and its slot.
pub fn command(words: [u32; 5], event: &Event) -> (u8, Command) {
    let [node, flow, user, low, high] = words;
    let [kinds, address, size, host_low, host_high] = event.values;
    let host = u64::from(host_high) << 32 | u64::from(host_low);
    let data = Range { address, size };
    let told = (kinds >> 16 & 1 != 0).then_some(user);
    let immediate_size = (kinds >> 23) as u8 & 0x7F;
    let command = match kinds >> 8 & 0xFF {
        0 => Command::Send { data, send: Send { node, flow, user } },
        1 => Command::ToHost { host, data, event: told },
        2 => Command::FromHost { host, data, event: told },
        3 => {
            let mut data = [0; 64];
            data[..4].copy_from_slice(&low.to_le_bytes());
            data[4..8].copy_from_slice(&high.to_le_bytes());
            Command::HostDirect { host, data, size: immediate_size }
        }
        _ => Command::HostDirectRead { host, size: immediate_size },
    };
    (kinds as u8, command)
}
