// SPDX-License-Identifier: Apache-2.0
//! Shared helpers of the tests: benches with a first interface, and short calls.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use abi::portals::{self as ptl, Handle, List, Md, Process, md};
use machine::Machine;
use nic::testing::{Bench, Recorder, any_entry};
use nic::{CardModel, NewEntry, Target};
use sim::Time;

pub type Rig = Bench<Recorder>;

/// Handle of every card's first interface, logical and matching.
pub const NI: Handle = 1 << 28;

/// Returns the machine `sc17-int` with these settings; a thread parses each once.
pub fn machine(settings: &[&str]) -> Rc<CardModel> {
    thread_local! {
        static MACHINES: RefCell<HashMap<String, Rc<CardModel>>> = RefCell::default();
    }
    let load = || {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../machines");
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        Rc::new(CardModel::new(Machine::load("sc17-int", &[folder], &settings).unwrap()).unwrap())
    };
    MACHINES.with_borrow_mut(|machines| machines.entry(settings.join(" ")).or_insert_with(load).clone())
}

/// Creates cards with one interface each, in these surroundings.
pub fn cards(nodes: u32, settings: &[&str], around: Recorder) -> Rig {
    let mut rig = Bench::new(&machine(settings), nodes, 0, around);
    for node in 0..nodes as usize {
        assert_eq!(rig.open(node), NI);
    }
    rig
}

/// Creates cards 100 ns apart, each with an interface and portal table entry 0, which has no queue.
pub fn network(nodes: u32, settings: &[&str]) -> Rig {
    let mut rig = cards(nodes, settings, Recorder::connected(Time::from_ns(100)));
    (0..nodes as usize).for_each(|node| rig.portal(node, NI, 0, 0, ptl::EQ_NONE));
    rig
}

/// Creates an entry that accepts all messages and has a counter.
pub fn counted(start: u64, length: u64, options: u32, ct: Handle) -> NewEntry {
    let mut new = any_entry(start, length, options);
    new.me.le.ct_handle = ct;
    new
}

/// Appends a [`counted`] entry to the priority list.
pub fn append(rig: &mut Rig, node: usize, ni: Handle, start: u64, length: u64, options: u32, ct: Handle) -> Handle {
    rig.append(node, ni, List::Priority, counted(start, length, options, ct))
}

/// Binds a memory descriptor that counts acknowledgements and replies.
pub fn bind(rig: &mut Rig, node: usize, start: u64, length: u64, ct: Handle) -> Handle {
    let options = md::EVENT_CT_ACK | md::EVENT_CT_REPLY;
    rig.bind(node, NI, Md { start, length, options, eq_handle: ptl::EQ_NONE, ct_handle: ct, pad: 0 })
}

/// Returns portal table entry 0 of a rank.
pub fn target(nid: u32, remote_offset: u64) -> Target {
    let process = Process { nid, pid: 0 };
    Target { process, pt_index: 0, match_bits: 0, remote_offset, user_ptr: 0, hdr_data: 0 }
}
