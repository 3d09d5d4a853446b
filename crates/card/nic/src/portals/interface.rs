// SPDX-License-Identifier: Apache-2.0
//! A Portals network interface: its objects and its limits.

use std::collections::VecDeque;
use std::rc::Rc;

use abi::portals::{self as ptl, Handle, List, NiLimits, Process, ReturnCode};

use super::descriptor::MemoryDescriptor;
use super::entry::Entry;
use super::events::{Counter, EventRing};
use super::slab::{self, Kind, Slab};
use crate::message::MessageId;

/// Maximum message that a CPU hands to its card with the descriptor, in bytes (`max_volatile_size`).
pub const MAX_VOLATILE_SIZE: u64 = 64;

/// A header on the unexpected list, for a message in an overflow entry.
#[derive(Clone, Debug)]
pub struct Unexpected {
    /// Message.
    pub message: MessageId,
    /// Overflow entry that holds the data.
    pub entry: Handle,
    /// Event to report.
    pub event: ptl::Event,
    /// True if all its data has arrived.
    pub complete: bool,
}

/// A portal table entry (Portals 4.3 §3.6).
#[derive(Debug)]
pub struct Portal {
    /// `PTL_PT_*`
    pub options: u32,
    /// Queue for full events, or `PTL_EQ_NONE`.
    pub eq: Handle,
    /// True if it accepts messages.
    pub enabled: bool,
    /// Number of accepted messages that are not complete.
    pub in_flight: u32,
    /// True if a `PTL_EVENT_PT_DISABLED` is due once the messages in flight complete.
    pub disable_event_due: bool,
    /// Priority list, in search order.
    pub priority: VecDeque<Handle>,
    /// Overflow list, in search order; searched after the priority list.
    pub overflow: VecDeque<Handle>,
    /// Headers of messages in overflow entries, oldest first.
    pub unexpected: VecDeque<Unexpected>,
}

impl Portal {
    /// Returns the list of entries.
    pub fn list_mut(&mut self, list: List) -> &mut VecDeque<Handle> {
        match list {
            List::Priority => &mut self.priority,
            List::Overflow => &mut self.overflow,
        }
    }

    /// Returns true if flow control is enabled.
    pub fn flow_controlled(&self) -> bool {
        self.options & ptl::pt::FLOWCTRL != 0
    }
}

/// A network interface: matching or not, logical or physical.
#[derive(Debug)]
pub struct Interface {
    /// Index, 0 to 3, which encodes its kind.
    pub index: u8,
    /// Number of earlier interfaces of this kind that were closed; part of the handle.
    pub generation: u16,
    /// Number of `PtlNIInit`s without a matching `PtlNIFini`.
    pub references: u32,
    /// Limits in force, shared by most interfaces.
    pub limits: Rc<NiLimits>,
    /// Nid and pid of each rank.
    pub map: Option<Rc<[Process]>>,
    /// Rank of this process; `PTL_RANK_ANY` without a map.
    pub rank: u32,
    /// Portal table up to the highest index ever allocated.
    pub portals: Vec<Option<Portal>>,
    /// Number of headers on all its unexpected lists.
    pub unexpected_headers: usize,
    /// Memory descriptors.
    pub mds: Slab<Rc<MemoryDescriptor>>,
    /// List entries and match list entries, boxed so that the slab grows without moving them and wastes no memory on
    /// freed ones.
    pub entries: Slab<Box<Entry>>,
    /// Counting events.
    pub counters: Slab<Counter>,
    /// Event queues.
    pub queues: Slab<EventRing>,
    /// Status registers.
    pub status: [i32; 3],
    /// Number of waiting triggered operations.
    pub triggered: usize,
}

/// Returns the index of the interface with these options, if they are valid.
pub fn index_of_options(options: u32) -> Option<u8> {
    use ptl::ni::{LOGICAL, MATCHING, NO_MATCHING, PHYSICAL};
    let matching = match options & (MATCHING | NO_MATCHING) {
        MATCHING => 0,
        NO_MATCHING => 2,
        _ => return None,
    };
    let physical = match options & (LOGICAL | PHYSICAL) {
        LOGICAL => 0,
        PHYSICAL => 1,
        _ => return None,
    };
    (options & !ptl::ni::MASK == 0).then_some(matching + physical)
}

impl Interface {
    /// Creates an interface; `before` is the latest closed one of that kind.
    pub fn new(index: u8, limits: Rc<NiLimits>, before: Option<Interface>) -> Interface {
        let fresh = Interface {
            index,
            generation: 0,
            references: 1,
            limits,
            map: None,
            rank: ptl::ID_ANY,
            portals: Vec::new(),
            unexpected_headers: 0,
            mds: Slab::new(Kind::Md, index),
            entries: Slab::new(Kind::Entry, index),
            counters: Slab::new(Kind::Ct, index),
            queues: Slab::new(Kind::Eq, index),
            status: [0; 3],
            triggered: 0,
        };
        let Some(Interface { generation, mds, entries, counters, queues, .. }) = before else { return fresh };
        Interface { generation, mds, entries, counters, queues, ..fresh }
    }

    /// Clears a closed interface. Its handles become invalid, also for the next interface of its kind.
    pub fn clear(&mut self) {
        self.generation = slab::next_generation(self.generation);
        self.portals.clear();
        self.mds.clear();
        self.entries.clear();
        self.counters.clear();
        self.queues.clear();
    }

    /// Returns its handle.
    pub fn handle(&self) -> Handle {
        slab::handle(Kind::Interface, self.index, self.generation, 0)
    }

    /// Returns true if entries have match bits.
    pub fn matching(&self) -> bool {
        self.index & 2 == 0
    }

    /// Returns true if processes are addressed by rank.
    pub fn logical(&self) -> bool {
        self.index & 1 == 0
    }

    /// Returns the portal table entry, or `PTL_ARG_INVALID`.
    pub fn portal(&mut self, index: u32) -> Result<&mut Portal, ReturnCode> {
        self.portals.get_mut(index as usize).and_then(Option::as_mut).ok_or(ReturnCode::ArgInvalid)
    }

    /// Accepts `PTL_EQ_NONE` and queues of this interface; returns `PTL_ARG_INVALID` for others.
    pub fn check_eq(&self, eq: Handle) -> Result<(), ReturnCode> {
        if eq == ptl::EQ_NONE { Ok(()) } else { self.queues.get(eq).map(|_| ()) }
    }

    /// Checks a counter as [`check_eq`](Interface::check_eq) does a queue.
    pub fn check_ct(&self, ct: Handle) -> Result<(), ReturnCode> {
        if ct == ptl::CT_NONE { Ok(()) } else { self.counters.get(ct).map(|_| ()) }
    }

    /// Returns node and pid of a process in the program's addressing; `None` if the process does not exist.
    pub fn locate(&self, process: Process) -> Option<Process> {
        match self.logical() {
            true => self.map.as_ref()?.get(process.nid as usize).copied(),
            false => (process.nid != ptl::ID_ANY && process.pid != ptl::ID_ANY).then_some(process),
        }
    }
}

/// Minimum last index of a portal table.
const MIN_PT_INDEX: i32 = 63;
/// Maximum last index of a portal table.
const MAX_PT_INDEX: i32 = 511;

/// Returns the limits of a card, which are those of the reference implementation. A program may request less.
pub fn default_limits(mtu: u32, accelerator: &machine::Accelerator) -> NiLimits {
    NiLimits {
        max_entries: 16 * 1024,
        max_unexpected_headers: 16 * 1024,
        max_mds: 16 * 1024,
        max_cts: 16 * 1024,
        max_eqs: 1024,
        max_pt_index: MIN_PT_INDEX,
        max_iovecs: 16 * 1024,
        max_list_size: 16 * 1024,
        max_triggered_ops: 16 * 1024,
        pad0: 0,
        max_msg_size: 1 << 32,
        max_atomic_size: u64::from(mtu.min(512)), // one packet
        max_fetch_atomic_size: u64::from(mtu.min(512)),
        max_waw_ordered_size: 64,
        max_war_ordered_size: 8,
        max_volatile_size: MAX_VOLATILE_SIZE,
        features: ptl::feature::TARGET_BIND_INACCESSIBLE
            | ptl::feature::TOTAL_DATA_ORDERING
            | ptl::feature::COHERENT_ATOMICS,
        pad1: 0,
        max_user_hdr_size: u64::from(accelerator.max_user_hdr()),
        max_payload_size: u64::from(mtu),
        max_handler_mem: u64::from(crate::accelerator::most_memory(accelerator, 0)),
        max_initial_state: u64::from(accelerator.max_initial_state()),
        min_fragmentation_limit: u64::from(accel::FRAGMENT),
        // The watchdog ends no handler within this limit, regardless of its packet's size.
        max_cycles_per_byte: accelerator.watchdog_cycles() / u64::from(mtu),
    }
}

/// Returns the limits in force: `desired` clipped to `offered`. A value of zero or below requests the offered one. The
/// program cannot change the limits of handlers and features.
pub fn clip_limits(offered: &NiLimits, desired: &NiLimits) -> NiLimits {
    let mut limits = *offered;
    macro_rules! clip {
        ($($field:ident),+) => { $(
            if (1..offered.$field).contains(&desired.$field) {
                limits.$field = desired.$field;
            }
        )+ };
    }
    clip!(max_entries, max_unexpected_headers, max_mds, max_cts, max_eqs, max_iovecs, max_list_size, max_triggered_ops);
    clip!(max_msg_size, max_atomic_size, max_fetch_atomic_size);
    clip!(max_waw_ordered_size, max_war_ordered_size, max_volatile_size);
    // A portal table has at least 64 entries (Portals 4.3, ptl_ni_limits_t).
    limits.max_pt_index = desired.max_pt_index.clamp(MIN_PT_INDEX, MAX_PT_INDEX);
    limits
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::portals::ni::{LOGICAL, MATCHING, NO_MATCHING, PHYSICAL};

    #[test]
    fn smaller_limits_are_kept_and_nothing_means_the_default() {
        let offered = NiLimits {
            max_entries: 100,
            max_pt_index: 63,
            max_msg_size: 1 << 32,
            max_atomic_size: 512,
            max_fetch_atomic_size: 512,
            max_waw_ordered_size: 64,
            max_war_ordered_size: 8,
            max_volatile_size: 64,
            max_payload_size: 4096,
            ..NiLimits::default()
        };
        let nothing = clip_limits(&offered, &NiLimits::default());
        assert_eq!(nothing, offered);
        let less = NiLimits {
            max_entries: 1,
            max_pt_index: 100,
            max_msg_size: 1,
            max_atomic_size: 4,
            max_fetch_atomic_size: 1,
            max_waw_ordered_size: 7,
            max_war_ordered_size: 2,
            max_volatile_size: 1,
            ..offered
        };
        assert_eq!(clip_limits(&offered, &less), less);
        let more = NiLimits {
            max_entries: i32::MAX,
            max_pt_index: i32::MAX,
            max_msg_size: u64::MAX,
            max_atomic_size: 513,
            max_volatile_size: u64::MAX,
            max_payload_size: 1,
            ..offered
        };
        let most = NiLimits { max_pt_index: 511, ..offered };
        assert_eq!(clip_limits(&offered, &more), most);
        assert_eq!(clip_limits(&offered, &NiLimits { max_entries: -5, ..offered }).max_entries, 100);
    }

    #[test]
    fn exactly_one_bit_of_each_pair() {
        assert_eq!(index_of_options(MATCHING | LOGICAL), Some(0));
        assert_eq!(index_of_options(NO_MATCHING | PHYSICAL), Some(3));
        for bad in [0, MATCHING, LOGICAL, MATCHING | NO_MATCHING | LOGICAL, MATCHING | LOGICAL | 1 << 7] {
            assert_eq!(index_of_options(bad), None, "{bad:#x}");
        }
    }
}
