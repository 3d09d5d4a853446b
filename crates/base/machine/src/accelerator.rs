// SPDX-License-Identifier: Apache-2.0
//! Parameters of the cores that run handlers, and of their accelerator.

use sim::Clock;

use crate::pspin::Pspin;
use crate::sharing::Sharing;

/// `[hpu]`: the core of a handler processing unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Hpu {
    /// `kind`: instruction set, a folder of `sdk/device/` ("rv32imac", "rv32imafdc").
    pub kind: String,
    /// `timing`: timing model of the cores.
    pub timing: TimingKind,
    /// `clock_ghz`: clock of the cores.
    pub clock: Clock,
}

/// Timing model of the HPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingKind {
    /// "inorder": the 4-stage core of PsPIN.
    InOrder,
    /// "ooo-a15": an out-of-order core like the Cortex-A15.
    OooA15,
}

/// `[accelerator]`: the unit that runs handlers. Its `kind` determines the other keys of the table; keys of another
/// kind are refused.
///
/// The addresses of its memories are not parameters: device code is linked for `abi::device::map`, so that a program
/// runs on every card.
#[derive(Clone, Debug, PartialEq)]
pub enum Accelerator {
    /// "sc17": the accelerator of the sPIN paper.
    Sc17(Sc17),
    /// "pspin": the unit of the PsPIN paper.
    Pspin(Box<Pspin>),
}

impl Accelerator {
    /// Returns the number of HPUs.
    pub fn hpus(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.hpus,
            Accelerator::Pspin(unit) => unit.hpus(),
        }
    }

    /// Returns the capacity for code and constants of a device program, in bytes.
    pub fn program(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.program,
            Accelerator::Pspin(unit) => unit.program.bytes,
        }
    }

    /// Returns the capacity for static data of a device program, in bytes.
    pub fn data(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.data,
            Accelerator::Pspin(unit) => unit.l2_handler.bytes,
        }
    }

    /// Returns the size of the packet buffer, in bytes.
    pub fn packet_buffer(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.packet_buffer,
            Accelerator::Pspin(unit) => unit.l2_packet.bytes,
        }
    }

    /// Returns the maximum size of an entry's initial state, in bytes (App. B.2.1).
    pub fn max_initial_state(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.max_initial_state,
            Accelerator::Pspin(unit) => unit.units.max_initial_state,
        }
    }

    /// Returns the maximum size of a user header, in bytes (App. B.2.1).
    pub fn max_user_hdr(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.max_user_hdr,
            Accelerator::Pspin(unit) => unit.units.max_user_hdr,
        }
    }

    /// Returns the division among tenants.
    pub fn sharing(&self) -> &Sharing {
        match self {
            Accelerator::Sc17(unit) => &unit.sharing,
            Accelerator::Pspin(unit) => &unit.sharing,
        }
    }

    /// Returns true if the watchdog disables the portal table entry of a killed handler (flow control).
    pub fn watchdog_flow_control(&self) -> bool {
        matches!(self, Accelerator::Sc17(unit) if unit.watchdog_flow_control)
    }

    /// Returns the number of cycles after which the watchdog kills a handler.
    pub fn watchdog_cycles(&self) -> u64 {
        match self {
            Accelerator::Sc17(unit) => unit.watchdog_cycles,
            Accelerator::Pspin(unit) => unit.units.watchdog_cycles,
        }
    }
}

/// The accelerator of the sPIN paper (SC'17, §4.1–4.2): HPUs that share all memories.
#[derive(Clone, Debug, PartialEq)]
pub struct Sc17 {
    /// `hpus`: number of HPUs.
    pub hpus: u32,
    /// `contexts`: maximum number of resident handlers (running or waiting); at least `hpus`, at most 64. A file or
    /// option that changes only `hpus` also sets this to the same value.
    pub contexts: u32,
    /// `scratchpad_cycles`: latency of a load from any of the memories, in HPU cycles.
    pub scratchpad_cycles: u32,
    /// `memory_bytes`: HPU memory that programs can allocate.
    pub memory: u32,
    /// `program_bytes`: memory for code and constants of handlers.
    pub program: u32,
    /// `data_bytes`: memory for static data of handlers.
    pub data: u32,
    /// `stack_bytes`: stack of each context; at most 15 KiB.
    pub stack: u32,
    /// `packet_buffer_bytes`: memory for packets that wait for handlers or are in processing.
    pub packet_buffer: u32,
    /// `max_initial_state_bytes`: maximum size of an entry's initial state (App. B.2.1).
    pub max_initial_state: u32,
    /// `max_user_hdr_bytes`: maximum size of a user header (App. B.2.1).
    pub max_user_hdr: u32,
    /// `watchdog_cycles`: cycles after which a handler is killed.
    pub watchdog_cycles: u64,
    /// `watchdog_flow_control`: true if the watchdog also disables the portal table entry, as a full packet buffer
    /// does; otherwise only the handler's message fails.
    pub watchdog_flow_control: bool,
    /// `put_blocks`: true if `PtlHandlerPutFromDevice` blocks the HPU until the packet has left.
    pub put_blocks: bool,
    /// `[accelerator.sharing]`
    pub sharing: Sharing,
}

impl Sc17 {
    /// Returns the bytes that one packet occupies in the packet buffer: `mtu` bytes, and padding that aligns the data
    /// after a user header.
    pub fn slot_bytes(mtu: u32) -> u32 {
        mtu.next_multiple_of(64) + 64
    }

    /// Returns the capacity of the packet buffer in packets of `mtu` bytes, without padding.
    pub fn slots(&self, mtu: u32) -> u32 {
        self.packet_buffer / mtu
    }
}
