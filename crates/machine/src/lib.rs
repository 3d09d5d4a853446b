//! A machine as data: every parameter of the network, the cards and the hosts, read from one TOML file.
//!
//! A key carries its unit (`switch_ns`); decimals become exact integers. A file may start from another machine
//! (`base = "sc17-int"`) and state only what differs, and `--set key=value` comes on top. Nothing has a default: a key
//! that is unknown, missing, out of range or contradicts another is a [`MachineError`] that names file and key.

mod check;
mod keys;
mod load;
mod value;

pub use load::MachineError;

use sim::{Clock, Rate, Time};

/// A whole machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// Short name, as in `--machine NAME`: the file's name without `.toml`.
    pub name: String,
    /// `description`: one line for people
    pub description: String,
    /// `[network]`
    pub network: Network,
    /// `[host]`
    pub host: Host,
    /// `[nic]`
    pub nic: Nic,
    /// `[dma]`
    pub dma: Dma,
    /// `[hpu]`
    pub hpu: Hpu,
}

/// The network between the cards.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// `topology`: "fat-tree" or "single-switch"
    pub topology: Topology,
    /// `radix`: ports of a switch
    pub radix: u32,
    /// `switch_ns`: time through a switch
    pub switch: Time,
    /// `wire_ns`: time along a wire
    pub wire: Time,
    /// `G_ps_per_byte`: inverse bandwidth of a link
    pub gap_per_byte: Rate,
    /// `g_ns`: least time between the starts of two messages at a port
    pub gap: Time,
    /// `mtu_bytes`: largest payload of a packet
    pub mtu: u32,
}

/// How switches are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// "fat-tree": folded Clos of switches of one radix, full bisection
    FatTree,
    /// "single-switch": one switch with as many ports as there are nodes
    SingleSwitch,
}

/// The host's CPU and memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// `cores`
    pub cores: u32,
    /// `clock_ghz`
    pub clock: Clock,
    /// `o_ns`: CPU time to hand an operation to the card (LogGP's o)
    pub overhead: Time,
    /// `poll_ns`: CPU time from the appearance of a completion in memory until the polling program has it
    pub poll: Time,
    /// `match_ns`: CPU time to match one arrived message in software (rdma cards)
    pub matching: Time,
    /// `dram_latency_ns`
    pub dram_latency: Time,
    /// `dram_G_ps_per_byte`: inverse memory bandwidth
    pub dram_gap_per_byte: Rate,
    /// `core_lines`: cache lines that one core fetches from DRAM at once
    pub core_lines: u32,
}

impl Host {
    /// Bytes of a cache line.
    const LINE: u64 = 64;

    /// The time in which one core reads and writes so many bytes of DRAM, rounded up to a picosecond: what it reads is
    /// limited by the lines that it can wait for at once (Little's law), all together by the memory's bandwidth. Writes
    /// drain in the background.
    pub fn memory_time(&self, read: u64, written: u64) -> Time {
        let bytes = read.saturating_add(written);
        if bytes == 0 {
            return Time::ZERO;
        }
        let at_once = u128::from(self.core_lines) * u128::from(Self::LINE);
        let fetched = (u128::from(self.dram_latency.as_ps()) * u128::from(read)).div_ceil(at_once);
        let fetched = Time::from_ps(fetched.try_into().unwrap_or(u64::MAX));
        self.dram_latency.saturating_add(fetched.max(self.dram_gap_per_byte.time(bytes)))
    }
}

/// What a card does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NicKind {
    /// "rdma": moves data; the CPU matches and acts.
    Rdma,
    /// "portals4": matching and triggered operations on the card.
    Portals4,
    /// "spin": as portals4, and handlers.
    Spin,
}

/// The card.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// `kind`
    pub kind: NicKind,
    /// `match_header_ns`: full search for the first packet of a message
    pub match_header: Time,
    /// `match_cam_ns`: look-up of the channel for each later packet
    pub match_cam: Time,
}

/// The card's way to host memory, a LogGP system with o = g = 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Dma {
    /// `L_ns`
    pub latency: Time,
    /// `G_ps_per_byte`
    pub gap_per_byte: Rate,
}

/// How HPUs are timed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimingKind {
    /// "inorder": the 4-stage core of PsPIN
    InOrder,
    /// "ooo-a15": out-of-order, as a Cortex-A15
    OooA15,
}

/// The handler processing units.
#[derive(Clone, Debug, PartialEq)]
pub struct Hpu {
    /// `kind`: instruction set, a folder of `sdk/device/` ("rv32imac", "rv32imafdc")
    pub kind: String,
    /// `timing`
    pub timing: TimingKind,
    /// `count`
    pub count: u32,
    /// `contexts`: handlers that may be resident (running or waiting) at once; at least `count`, at most 64
    pub contexts: u32,
    /// `clock_ghz`
    pub clock: Clock,
    /// `scratchpad_cycles`: load-to-use latency of the card's memories
    pub scratchpad_cycles: u32,
    /// `memory_bytes`: HPU memory that programs can allocate
    pub memory: u32,
    /// `program_bytes`: code and constants of handlers
    pub program: u32,
    /// `data_bytes`: static data of handlers
    pub data: u32,
    /// `stack_bytes`: stack of a context; at most 15 KiB
    pub stack: u32,
    /// `packet_buffer_bytes`: packets that wait for, or are being processed by, handlers
    pub packet_buffer: u32,
    /// `max_initial_state_bytes` (App. B.2.1)
    pub max_initial_state: u32,
    /// `max_user_hdr_bytes` (App. B.2.1)
    pub max_user_hdr: u32,
    /// `watchdog_cycles`: a handler that runs longer is killed
    pub watchdog_cycles: u64,
    /// `put_blocks`: whether `PtlHandlerPutFromDevice` holds the HPU until the packet has left
    pub put_blocks: bool,
}

impl Hpu {
    /// Bytes of card addresses that a packet buffer takes: a packet of `mtu` bytes, and room to align what follows a
    /// user header.
    pub fn slot_bytes(mtu: u32) -> u32 {
        mtu.next_multiple_of(64) + 64
    }

    /// Number of packet buffers: as many full packets as `packet_buffer` holds, the padding not counted.
    pub fn slots(&self, mtu: u32) -> u32 {
        self.packet_buffer / mtu
    }
}
