//! A Portals network interface: its objects and its limits.

use std::collections::VecDeque;
use std::rc::Rc;

use abi::portals::{self as ptl, Handle, List, NiLimits, Process, ReturnCode};

use super::descriptor::MemoryDescriptor;
use super::entry::Entry;
use super::events::{Counter, EventRing};
use super::slab::{self, Kind, Slab};
use crate::message::MessageId;

/// The largest message that a CPU hands to its card with the descriptor, in bytes (`max_volatile_size`).
pub const MAX_VOLATILE_SIZE: u64 = 64;

/// A header on the unexpected list: a message that landed in an overflow entry.
#[derive(Clone, Debug)]
pub struct Unexpected {
    /// The message.
    pub message: MessageId,
    /// The overflow entry that holds the data.
    pub entry: Handle,
    /// Its event, as it will be reported.
    pub event: ptl::Event,
    /// Whether all its data has landed.
    pub complete: bool,
}

/// A portal table entry (Portals 4.3 §3.6).
#[derive(Debug)]
pub struct Portal {
    /// `PTL_PT_*`
    pub options: u32,
    /// Queue for full events, or `PTL_EQ_NONE`.
    pub eq: Handle,
    /// Whether messages are accepted.
    pub enabled: bool,
    /// Messages accepted and not yet completed.
    pub in_flight: u32,
    /// Whether a `PTL_EVENT_PT_DISABLED` is due once the messages under way have completed.
    pub disable_event_due: bool,
    /// Entries in order of search.
    pub priority: VecDeque<Handle>,
    /// Entries in order of search, after the priority list.
    pub overflow: VecDeque<Handle>,
    /// Headers of messages in overflow entries, oldest first.
    pub unexpected: VecDeque<Unexpected>,
}

impl Portal {
    /// The list of entries.
    pub fn list_mut(&mut self, list: List) -> &mut VecDeque<Handle> {
        match list {
            List::Priority => &mut self.priority,
            List::Overflow => &mut self.overflow,
        }
    }

    /// Whether flow control was asked for.
    pub fn flow_controlled(&self) -> bool {
        self.options & ptl::pt::FLOWCTRL != 0
    }
}

/// A network interface: matching or not, logical or physical.
#[derive(Debug)]
pub struct Interface {
    /// Its index, 0 to 3, which stands for its kind.
    pub index: u8,
    /// Number of interfaces of this kind that were closed before, which is part of the handle.
    pub generation: u16,
    /// `PtlNIInit`s not yet matched by a `PtlNIFini`.
    pub references: u32,
    /// Limits in force, which most interfaces have in common.
    pub limits: Rc<NiLimits>,
    /// Rank to nid and pid.
    pub map: Option<Rc<[Process]>>,
    /// This process in the map; `PTL_RANK_ANY` before there is one.
    pub rank: u32,
    /// The portal table up to the highest index that was ever allocated.
    pub portals: Vec<Option<Portal>>,
    /// Headers on all its unexpected lists.
    pub unexpected_headers: usize,
    /// Memory descriptors.
    pub mds: Slab<Rc<MemoryDescriptor>>,
    /// List entries and match list entries. They are boxed, so that the slab grows without moving them, and keeps no memory for those
    /// that are gone.
    pub entries: Slab<Box<Entry>>,
    /// Counting events.
    pub counters: Slab<Counter>,
    /// Event queues.
    pub queues: Slab<EventRing>,
    /// Status registers.
    pub status: [i32; 3],
    /// Triggered operations that wait.
    pub triggered: usize,
}

/// The index of the interface with these options, if they are a valid choice.
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
    /// A fresh interface; `before` is the one of that kind that was closed last.
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

    /// Empties an interface that is closed. Its handles are invalid from now on, also on the next one of its kind.
    pub fn clear(&mut self) {
        self.generation = slab::next_generation(self.generation);
        self.portals.clear();
        self.mds.clear();
        self.entries.clear();
        self.counters.clear();
        self.queues.clear();
    }

    /// Its handle.
    pub fn handle(&self) -> Handle {
        slab::handle(Kind::Interface, self.index, self.generation, 0)
    }

    /// Whether entries have match bits.
    pub fn matching(&self) -> bool {
        self.index & 2 == 0
    }

    /// Whether processes are named by rank.
    pub fn logical(&self) -> bool {
        self.index & 1 == 0
    }

    /// The portal table entry, or `PTL_ARG_INVALID`.
    pub fn portal(&mut self, index: u32) -> Result<&mut Portal, ReturnCode> {
        self.portals.get_mut(index as usize).and_then(Option::as_mut).ok_or(ReturnCode::ArgInvalid)
    }

    /// Nothing to do for `PTL_EQ_NONE`; `PTL_ARG_INVALID` unless the queue lives here.
    pub fn check_eq(&self, eq: Handle) -> Result<(), ReturnCode> {
        if eq == ptl::EQ_NONE { Ok(()) } else { self.queues.get(eq).map(|_| ()) }
    }

    /// As [`check_eq`](Interface::check_eq), for counters.
    pub fn check_ct(&self, ct: Handle) -> Result<(), ReturnCode> {
        if ct == ptl::CT_NONE { Ok(()) } else { self.counters.get(ct).map(|_| ()) }
    }

    /// The node and pid of a process as programs name it; `None` when there is no such process.
    pub fn locate(&self, process: Process) -> Option<Process> {
        match self.logical() {
            true => self.map.as_ref()?.get(process.nid as usize).copied(),
            false => (process.nid != ptl::ID_ANY && process.pid != ptl::ID_ANY).then_some(process),
        }
    }
}

/// The last index of every portal table, unless the program asks for more.
const MIN_PT_INDEX: i32 = 63;
/// The last index of the largest portal table.
const MAX_PT_INDEX: i32 = 511;

/// The limits that a card offers, which are those of the reference implementation. A program may ask for less.
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
        // The watchdog ends no handler that keeps to this, whatever the size of its packet.
        max_cycles_per_byte: accelerator.watchdog_cycles() / u64::from(mtu),
    }
}

/// The limits in force for `desired`: what is offered, or less where the program asks for less. A value of zero or below
/// asks for what is offered. The program cannot change limits of handlers and features.
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
