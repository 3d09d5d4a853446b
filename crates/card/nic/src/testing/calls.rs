// SPDX-License-Identifier: Apache-2.0
//! Shortcuts for library calls of tests.

use std::rc::Rc;

use abi::portals::{self as ptl, AckReq, CtEvent, Event, Handle, Le, List, Md, Me, Process, ReturnCode, me, ni};

use super::bench::{Bench, Surroundings};
use crate::api::{DEFAULT_PID, NewEntry};
use crate::portals::{RmaOp, Target};
use crate::ports::Ports;

/// Creates an entry of portal table entry 0 that accepts puts and gets from every process, with match bits 0.
pub fn any_entry(start: u64, length: u64, options: u32) -> NewEntry {
    let options = me::OP_PUT | me::OP_GET | options;
    let le = Le { start, length, ct_handle: ptl::CT_NONE, uid: ptl::ID_ANY, options, pad: 0 };
    let match_id = Process { nid: ptl::ID_ANY, pid: ptl::ID_ANY };
    NewEntry {
        me: Me { le, match_id, hpu_memory: ptl::INVALID_HANDLE, ..Me::default() },
        matching: true,
        pt_index: 0,
        user_ptr: 0,
    }
}

/// Library calls that must succeed.
impl<S: Surroundings> Bench<S> {
    /// Opens the logical matching interface of a node, with all nodes as ranks.
    ///
    /// # Panics
    /// Panics if the card refuses.
    pub fn open(&mut self, node: usize) -> Handle {
        let map: Rc<[Process]> = (0..self.cards.len() as u32).map(|nid| Process { nid, pid: DEFAULT_PID }).collect();
        let card = &mut self.cards[node];
        let opened = card.pipeline.portals.ni_init(ptl::IFACE_DEFAULT, ni::MATCHING | ni::LOGICAL, ptl::ID_ANY, None);
        let (ni, _) = opened.expect("an interface");
        card.pipeline.portals.set_map(ni, map).expect("a map with this process");
        ni
    }

    /// Allocates portal table entry `index`.
    ///
    /// # Panics
    /// Panics if the card refuses.
    pub fn portal(&mut self, node: usize, ni: Handle, index: u32, options: u32, eq: Handle) {
        assert_eq!(
            self.cards[node].pipeline.portals.pt_alloc(ni, options, eq, index),
            Ok(index),
            "a portal table entry"
        );
    }

    /// Appends an entry with the handlers of its description.
    ///
    /// # Errors
    /// Returns the error codes of `PtlMEAppend`.
    pub fn try_append(&mut self, node: usize, ni: Handle, list: List, new: NewEntry) -> Result<Handle, ReturnCode> {
        self.act(node, |card, ports| {
            let handlers = card.handlers(ni, &new.me, ports)?;
            card.append(ni, new, list as u64, handlers, ports)
        })
    }

    /// Calls [`try_append`](Bench::try_append), which must succeed.
    ///
    /// # Panics
    /// Panics if the card refuses.
    pub fn append(&mut self, node: usize, ni: Handle, list: List, new: NewEntry) -> Handle {
        self.try_append(node, ni, list, new).expect("an entry")
    }

    /// Binds a memory descriptor.
    ///
    /// # Panics
    /// Panics if the card refuses.
    pub fn bind(&mut self, node: usize, ni: Handle, md: Md) -> Handle {
        self.act(node, |card, ports| card.md_bind(ni, md, ports)).expect("a memory descriptor")
    }

    /// Puts the first `length` bytes of a memory descriptor.
    ///
    /// # Panics
    /// Panics if the card refuses.
    pub fn put(&mut self, node: usize, md: Handle, length: u64, ack: AckReq, target: Target) {
        let transfer = self.cards[node].pipeline.portals.put(md, 0, length, ack as u64, target).expect("a put");
        self.start(node, transfer);
    }

    /// Gets to the start of a memory descriptor.
    ///
    /// # Panics
    /// Panics if the card refuses.
    pub fn get(&mut self, node: usize, md: Handle, length: u64, target: Target) {
        let transfer = self.cards[node].pipeline.portals.get(md, 0, length, target).expect("a get");
        self.start(node, transfer);
    }

    /// Starts an operation now.
    pub fn start(&mut self, node: usize, transfer: RmaOp) {
        self.act(node, |card, ports| card.start(transfer, ports.now(), ports));
    }

    /// Takes all events of a queue.
    ///
    /// # Panics
    /// Panics if the queue does not exist, or if events were lost.
    pub fn events(&mut self, node: usize, eq: Handle) -> Vec<Event> {
        let take = || self.cards[node].pipeline.portals.eq_take(eq).expect("an event queue");
        let keep = |(event, lost): (Event, bool)| {
            assert!(!lost, "events have been lost before {event:?}");
            event
        };
        std::iter::from_fn(take).map(keep).collect()
    }

    /// Allocates a counter.
    ///
    /// # Panics
    /// Panics if the card refuses.
    pub fn counter(&mut self, node: usize, ni: Handle) -> Handle {
        self.cards[node].pipeline.portals.ct_alloc(ni).expect("a counter")
    }

    /// Returns successes and failures of a counter.
    ///
    /// # Panics
    /// Panics if the counter does not exist.
    pub fn count(&mut self, node: usize, ct: Handle) -> (u64, u64) {
        let CtEvent { success, failure } = self.cards[node].pipeline.portals.ct_value(ct).expect("a counter");
        (success, failure)
    }
}
