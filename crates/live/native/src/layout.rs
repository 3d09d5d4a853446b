// SPDX-License-Identifier: Apache-2.0
//! Memory shared with the process of the handlers: the structures of `sdk/pspin/rt/native/card.h`. Both sides assert
//! the sizes. That process may write anything there, so each field is read once and checked.

use std::sync::atomic::{AtomicU32, AtomicU64};

/// Addresses in the handlers' process, and sizes.
pub const CONTROL: u32 = 0x3000_0000;
/// Host memory of the context.
pub const HOST: u32 = 0x4000_0000;
/// Largest host memory: the addresses up to the last GiB.
pub const MOST_HOST: u64 = 0xc000_0000 - HOST as u64;
/// Handler memory of the context, and its largest size.
pub const HANDLER_MEMORY: u32 = 0x1c30_0000;
/// Largest handler memory.
pub const MOST_HANDLER_MEMORY: u32 = 0x10_0000;
/// Largest packet that an HPU copies.
pub const MOST_PACKET: u32 = 0x4000;
/// Places of tasks in the queue.
pub const RING: u32 = 512;
/// Bytes of output that an HPU keeps for the card.
pub const OUTPUT: u32 = 4096;
/// Places behind the control structure.
pub const AT_RING: usize = 4096;
/// Slots.
pub const AT_SLOTS: usize = 8192;
/// HPUs.
pub const AT_HPUS: usize = 0x2_0000;
/// Most HPUs: their windows end before the control structure.
pub const MOST_HPUS: u32 = 128;

/// Files of the process.
pub const FILE_CONTEXT: i32 = 3;
/// The port.
pub const FILE_PORT: i32 = 4;
/// The card's bell.
pub const FILE_BELL: i32 = 5;
/// Static data.
pub const FILE_DATA: i32 = 6;

/// `struct native_region`
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Region {
    /// Address in the handlers' process.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// Place in the file.
    pub offset: u64,
    /// The file.
    pub file: u64,
}

/// `struct native_control`
#[repr(C)]
pub struct Control {
    /// Number of tasks that the card has queued.
    pub tail: AtomicU32,
    _pad0: [u32; 15],
    /// Number of tasks that HPUs have taken.
    pub head: AtomicU32,
    _pad1: [u32; 15],
    /// Word on which HPUs sleep.
    pub wake: AtomicU32,
    /// Number of sleeping HPUs.
    pub sleepers: AtomicU32,
    /// Set while the card wants the bell at the end of a task.
    pub wants_bell: AtomicU32,
    /// Number of HPUs that have started; one more once the process is confined.
    pub ready: AtomicU32,
    /// HPU that has requested the end of the run, from 1.
    pub terminated: AtomicU32,
    _pad2: [u32; 11],
    /// Bytes of this region.
    pub bytes: u32,
    /// Number of HPUs.
    pub hpus: u32,
    /// HPUs of a cluster.
    pub hpus_per_cluster: u32,
    /// Ticks for which an idle HPU looks for work.
    pub spin: u32,
    /// Unused by the runtime.
    pub init: u32,
    /// Handler memory.
    pub handler_memory: u32,
    /// Its size.
    pub handler_memory_bytes: u32,
    /// Scratchpad of each cluster.
    pub scratchpads: [u32; 4],
    /// Their sizes.
    pub scratchpad_bytes: [u32; 4],
    /// Static data.
    pub data: u32,
    /// Its size.
    pub data_bytes: u32,
    /// PCIe address of the host memory.
    pub host: u64,
    /// Its size.
    pub host_bytes: u64,
    /// Number of regions.
    pub regions_count: u32,
    _pad3: u32,
    /// Memory that the process maps.
    pub regions: [Region; 16],
}

/// `struct native_result`
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// `enum native_outcome`
    pub outcome: u32,
    /// Instruction of the failure; 0 if unknown.
    pub pc: u32,
    /// Signal, system call, or the program's error.
    pub code: u32,
    /// Bytes of a command.
    pub bytes: u32,
    /// Address of an access or of a command.
    pub address: u64,
    /// Time-stamp counter at the start.
    pub start: u64,
    /// Time-stamp counter at the end.
    pub end: u64,
}

/// `struct native_slot`
#[repr(C)]
pub struct Slot {
    /// Address of the packet.
    pub packet: u32,
    /// Its size.
    pub size: u32,
    /// Bytes copied for handlers.
    pub transfer: u32,
    /// Number of the message.
    pub flow: u32,
    /// Functions to run: header, payload and completion handler; 0 for none.
    pub handlers: [u32; 3],
    /// Home cluster of the message.
    pub home: u32,
    /// Set when all have ended.
    pub is_done: AtomicU32,
    /// HPU that ran them.
    pub hpu: u32,
    /// Results of the handlers that ran.
    pub results: [Outcome; 3],
    _pad: [u32; 8],
}

/// `struct native_shared`
#[repr(C)]
pub struct Shared {
    /// Thread in the handlers' process.
    pub thread: AtomicU32,
    /// Number of handlers started so far.
    pub sequence: AtomicU32,
    /// `sequence` of the handler that the watchdog kills.
    pub killed: AtomicU32,
    /// Lines lost, because the card was slow.
    pub lost: AtomicU32,
    /// Time-stamp counter at the start of the running handler; 0 if none.
    pub since: AtomicU64,
    /// Packets sent.
    pub sent: AtomicU64,
    /// Their bytes.
    pub sent_bytes: AtomicU64,
    /// Packets that the port did not take.
    pub unsent: AtomicU64,
    /// RDMA puts.
    pub puts: AtomicU64,
    /// Copies to the host.
    pub to_host: AtomicU64,
    /// Their bytes.
    pub to_host_bytes: AtomicU64,
    /// Copies from the host.
    pub from_host: AtomicU64,
    /// Their bytes.
    pub from_host_bytes: AtomicU64,
    /// Host-direct accesses.
    pub host_direct: AtomicU64,
    /// Bytes of output so far.
    pub written: AtomicU32,
    /// Bytes of output that the card has taken.
    pub read: AtomicU32,
    _pad: [u8; 4096 - 104],
    /// The output, as a ring.
    pub output: [u8; OUTPUT as usize],
}

const _: () = assert!(size_of::<Control>() == 800);
const _: () = assert!(size_of::<Slot>() == 192);
const _: () = assert!(size_of::<Shared>() == 8192);
const _: () = assert!(AT_SLOTS + RING as usize * size_of::<Slot>() <= AT_HPUS);
