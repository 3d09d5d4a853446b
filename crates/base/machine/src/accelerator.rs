//! The parameters of what runs handlers: the cores, and the accelerator to which they belong.

use sim::Clock;

use crate::pspin::Pspin;

/// `[hpu]`: the core of a handler processing unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Hpu {
    /// `kind`: instruction set, a folder of `sdk/device/` ("rv32imac", "rv32imafdc").
    pub kind: String,
    /// `timing`: how many cycles instructions take.
    pub timing: TimingKind,
    /// `clock_ghz`: clock of the cores.
    pub clock: Clock,
}

/// The timing model of HPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingKind {
    /// "inorder": the 4-stage core of PsPIN.
    InOrder,
    /// "ooo-a15": an out-of-order core like the Cortex-A15.
    OooA15,
}

/// `[accelerator]`: the unit that runs handlers. Its `kind` decides which other keys the table has; keys of another
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
    /// Number of HPUs.
    pub fn hpus(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.hpus,
            Accelerator::Pspin(unit) => unit.hpus(),
        }
    }

    /// Bytes of code and constants that a device program may have.
    pub fn program(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.program,
            Accelerator::Pspin(unit) => unit.program.bytes,
        }
    }

    /// Bytes of static data that a device program may have.
    pub fn data(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.data,
            Accelerator::Pspin(unit) => unit.l2_handler.bytes,
        }
    }

    /// Bytes of the packet buffer.
    pub fn packet_buffer(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.packet_buffer,
            Accelerator::Pspin(unit) => unit.l2_packet.bytes,
        }
    }

    /// The maximum number of bytes of an entry's initial state (App. B.2.1).
    pub fn max_initial_state(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.max_initial_state,
            Accelerator::Pspin(unit) => unit.units.max_initial_state,
        }
    }

    /// The maximum number of bytes of a user header (App. B.2.1).
    pub fn max_user_hdr(&self) -> u32 {
        match self {
            Accelerator::Sc17(unit) => unit.max_user_hdr,
            Accelerator::Pspin(unit) => unit.units.max_user_hdr,
        }
    }

    /// Whether flow control stops the portal table entry of a handler that was killed.
    pub fn watchdog_flow_control(&self) -> bool {
        matches!(self, Accelerator::Sc17(unit) if unit.watchdog_flow_control)
    }

    /// Cycles after which a handler is killed.
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
    /// `contexts`: number of handlers that may be resident (running or waiting) at once; at least `hpus`, at most 64. A
    /// file or option that changes `hpus` and not this changes both.
    pub contexts: u32,
    /// `scratchpad_cycles`: latency of a load from any of the memories, in cycles of the HPU.
    pub scratchpad_cycles: u32,
    /// `memory_bytes`: HPU memory that programs can allocate.
    pub memory: u32,
    /// `program_bytes`: memory for code and constants of handlers.
    pub program: u32,
    /// `data_bytes`: memory for static data of handlers.
    pub data: u32,
    /// `stack_bytes`: stack of a context; at most 15 KiB.
    pub stack: u32,
    /// `packet_buffer_bytes`: memory for packets that wait for handlers or are being processed by them.
    pub packet_buffer: u32,
    /// `max_initial_state_bytes`: maximum number of bytes of an entry's initial state (App. B.2.1).
    pub max_initial_state: u32,
    /// `max_user_hdr_bytes`: maximum number of bytes of a user header (App. B.2.1).
    pub max_user_hdr: u32,
    /// `watchdog_cycles`: cycles after which a handler is killed.
    pub watchdog_cycles: u64,
    /// `watchdog_flow_control`: whether flow control then stops the portal table entry, as when packets find no room; else
    /// only the handler's message fails.
    pub watchdog_flow_control: bool,
    /// `put_blocks`: whether `PtlHandlerPutFromDevice` blocks the HPU until the packet has left.
    pub put_blocks: bool,
}

impl Sc17 {
    /// Bytes of card addresses that one packet occupies in the packet buffer: a packet of `mtu` bytes, and padding that
    /// aligns the data after a user header.
    pub fn slot_bytes(mtu: u32) -> u32 {
        mtu.next_multiple_of(64) + 64
    }

    /// Number of packets of `mtu` bytes for which the packet buffer has room; padding is not counted.
    pub fn slots(&self, mtu: u32) -> u32 {
        self.packet_buffer / mtu
    }
}
