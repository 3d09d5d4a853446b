// SPDX-License-Identifier: Apache-2.0
//! List entries and match list entries, and matching of requests (Portals 4.3 §3.11–3.12).

use std::collections::BTreeMap;
use std::rc::Rc;

use abi::portals::{self as ptl, EventKind, Handle, List, Process, me};

use crate::handlers::Handlers;
use crate::message::{Request, RequestKind};
use crate::region::Region;

/// An entry of a portal table entry's priority or overflow list.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Portal table index.
    pub pt_index: u32,
    /// Priority or overflow list.
    pub list: List,
    /// `user_ptr` of the append.
    pub user_ptr: u64,
    /// `PTL_ME_*`
    pub options: u32,
    /// Counter, or `PTL_CT_NONE`.
    pub ct: Handle,
    /// User who may access it, or `PTL_UID_ANY`.
    pub uid: u32,
    /// Matching initiator, with wildcards.
    pub match_id: Process,
    /// `match_bits`
    pub match_bits: u64,
    /// `ignore_bits`
    pub ignore_bits: u64,
    /// `min_free`, 0 unless the offset is managed locally.
    pub min_free: u64,
    /// Memory.
    pub region: Region,
    /// Next offset with `PTL_ME_MANAGE_LOCAL`.
    pub local_offset: u64,
    /// Room below `local_offset` returned by dropped messages; few entries have any.
    pub holes: Option<Box<Holes>>,
    /// True if it is in its list.
    pub linked: bool,
    /// Number of messages that matched it and are not complete.
    pub in_flight: u32,
    /// Number of unexpected headers that refer to it.
    pub unexpected: u32,
    /// sPIN handlers.
    pub handlers: Option<Rc<Handlers>>,
}

/// Free pieces of an entry's memory: end and start of each.
#[derive(Clone, Debug, Default)]
pub struct Holes(BTreeMap<u64, u64>);

/// Placement of a message in an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placement {
    /// Offset in the entry's memory.
    pub offset: u64,
    /// Number of moved bytes.
    pub mlength: u64,
}

impl Entry {
    /// Returns true if an option is set.
    pub fn has(&self, option: u32) -> bool {
        self.options & option != 0
    }

    /// Returns true if the entry matches `request`; `matching` and `logical` are properties of the interface.
    pub fn matches(&self, request: &Request, matching: bool, logical: bool) -> bool {
        if !matching {
            return true;
        }
        let same = |wanted: u32, actual: u32| wanted == ptl::ID_ANY || wanted == actual;
        (request.match_bits ^ self.match_bits) & !self.ignore_bits == 0
            && same(self.match_id.nid, request.initiator.nid)
            && (logical || same(self.match_id.pid, request.initiator.pid))
            && (!self.has(me::NO_TRUNCATE) || self.room_at(self.offset_for(request)) >= request.length)
    }

    /// Returns true if the entry permits the requested operation.
    pub fn permits_operation(&self, request: &Request) -> bool {
        match request.kind {
            RequestKind::Put | RequestKind::Atomic(_) => self.has(me::OP_PUT),
            RequestKind::Get => self.has(me::OP_GET),
            RequestKind::FetchAtomic(_) => self.has(me::OP_PUT) && self.has(me::OP_GET),
        }
    }

    /// Returns the communication event of a request with this placement.
    pub fn event(&self, request: &Request, placement: Placement) -> ptl::Event {
        let (kind, atomic) = match request.kind {
            RequestKind::Put => (EventKind::Put, None),
            RequestKind::Get => (EventKind::Get, None),
            RequestKind::Atomic(spec) => (EventKind::Atomic, Some(spec)),
            RequestKind::FetchAtomic(spec) => (EventKind::FetchAtomic, Some(spec)),
        };
        ptl::Event {
            start: self.region.address(placement.offset),
            user_ptr: self.user_ptr,
            hdr_data: request.hdr_data,
            match_bits: request.match_bits,
            rlength: request.length,
            mlength: placement.mlength,
            remote_offset: request.remote_offset,
            initiator: request.initiator,
            uid: request.uid,
            pt_index: self.pt_index,
            kind: kind as u8,
            ptl_list: self.list as u8,
            atomic_operation: atomic.map_or(0, |spec| spec.op as u8),
            atomic_type: atomic.map_or(0, |spec| spec.datatype as u8),
            ..ptl::Event::default()
        }
    }

    fn offset_for(&self, request: &Request) -> u64 {
        if self.has(me::MANAGE_LOCAL) { self.local_offset } else { request.remote_offset }
    }

    fn room_at(&self, offset: u64) -> u64 {
        self.region.length().saturating_sub(offset)
    }

    /// Places a request that the entry took, and advances a locally managed offset.
    pub fn place(&mut self, request: &Request) -> Placement {
        let offset = self.offset_for(request);
        let mlength = request.length.min(self.room_at(offset));
        if self.has(me::MANAGE_LOCAL) {
            self.local_offset += mlength;
        }
        Placement { offset, mlength }
    }

    /// Frees the room of a dropped request. The next request gets it, unless another request's data follows it.
    pub fn give_back(&mut self, placement: Placement) {
        if !self.has(me::MANAGE_LOCAL) || placement.mlength == 0 {
            return;
        }
        let Holes(holes) = &mut **self.holes.get_or_insert_default();
        holes.insert(placement.offset + placement.mlength, placement.offset);
        while let Some(start) = holes.remove(&self.local_offset) {
            self.local_offset = start;
        }
    }

    /// Returns true if the latest match used up the entry.
    pub fn used_up(&self) -> bool {
        self.has(me::USE_ONCE)
            || self.has(me::MANAGE_LOCAL) && self.min_free != 0 && self.room_at(self.local_offset) < self.min_free
    }

    /// Returns true if nothing refers to the entry.
    pub fn is_free(&self) -> bool {
        !self.linked && self.in_flight == 0 && self.unexpected == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi::portals::{AckReq, NiFail};

    fn entry(options: u32, length: u64) -> Entry {
        Entry {
            pt_index: 0,
            list: List::Priority,
            user_ptr: 0,
            options,
            ct: ptl::CT_NONE,
            uid: ptl::ID_ANY,
            match_id: Process { nid: ptl::ID_ANY, pid: ptl::ID_ANY },
            match_bits: 0xff00,
            ignore_bits: 0x000f,
            min_free: 0,
            region: Region::range(0x1000, length),
            local_offset: 0,
            holes: None,
            linked: true,
            in_flight: 0,
            unexpected: 0,
            handlers: None,
        }
    }

    /// Returns the number of free pieces of an entry's memory.
    fn holes(entry: &Entry) -> usize {
        entry.holes.as_ref().map_or(0, |holes| holes.0.len())
    }

    fn put(match_bits: u64, remote_offset: u64, length: u64) -> Request {
        Request {
            kind: RequestKind::Put,
            pt_index: 0,
            match_bits,
            remote_offset,
            length,
            hdr_data: 0,
            ack: AckReq::None,
            initiator: Process { nid: 3, pid: 1 },
            target: Process { nid: 0, pid: 1 },
            uid: 0,
            op: None,
            operand: [0; 32],
            fail: NiFail::Ok,
            may_be_lost: false,
        }
    }

    #[test]
    fn ignored_bits_and_ids() {
        let mut e = entry(me::OP_PUT, 64);
        assert!(e.matches(&put(0xff07, 0, 8), true, true));
        assert!(!e.matches(&put(0xff17, 0, 8), true, true));
        e.match_id = Process { nid: 3, pid: 9 };
        assert!(e.matches(&put(0xff00, 0, 8), true, true), "a rank has no pid");
        assert!(!e.matches(&put(0xff00, 0, 8), true, false));
        assert!(e.matches(&put(0, 0, 8), false, false), "non-matching interfaces take everything");
    }

    #[test]
    fn truncation_and_locally_managed_offsets() {
        let mut e = entry(me::OP_PUT, 64);
        assert_eq!(e.place(&put(0, 60, 8)), Placement { offset: 60, mlength: 4 });
        assert_eq!(e.place(&put(0, 99, 8)), Placement { offset: 99, mlength: 0 });
        let mut e = entry(me::OP_PUT | me::MANAGE_LOCAL | me::NO_TRUNCATE, 20);
        e.min_free = 8;
        assert_eq!(e.place(&put(0, 99, 8)), Placement { offset: 0, mlength: 8 });
        assert!(!e.used_up());
        assert!(!e.matches(&put(0xff00, 0, 13), true, true));
        assert_eq!(e.place(&put(0, 99, 8)), Placement { offset: 8, mlength: 8 });
        assert!(e.used_up());
    }

    #[test]
    fn room_of_dropped_messages_is_given_back_from_the_end() {
        let mut e = entry(me::OP_PUT | me::MANAGE_LOCAL, 100);
        e.min_free = 20;
        let [first, second, third, last] = [10, 20, 30, 25].map(|length| e.place(&put(0, 0, length)));
        assert!(e.used_up());
        e.give_back(second);
        assert_eq!(e.local_offset, 85, "the third lies behind it");
        e.give_back(last);
        assert_eq!((e.local_offset, e.used_up()), (60, false));
        e.give_back(third);
        assert_eq!((e.local_offset, holes(&e)), (10, 0), "the second's room is free now, too");
        assert_eq!(e.place(&put(0, 0, 5)), Placement { offset: 10, mlength: 5 });
        e.give_back(first);
        assert_eq!(e.local_offset, 15);
        // A message without data returns no room, nor does one whose initiator chose the offset.
        e.give_back(Placement { offset: 15, mlength: 0 });
        assert_eq!((e.local_offset, holes(&e)), (15, 1));
        let mut e = entry(me::OP_PUT, 100);
        let placement = e.place(&put(0, 0, 10));
        e.give_back(placement);
        assert_eq!((e.local_offset, holes(&e)), (0, 0));
    }
}
