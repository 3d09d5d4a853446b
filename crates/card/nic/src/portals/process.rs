// SPDX-License-Identifier: Apache-2.0
//! Portals objects of a process.

use std::rc::Rc;

use abi::placement::FIRST_PID as DEFAULT_PID;
use abi::portals::{Event, EventKind, Handle, NiLimits, Process, ReturnCode, StatusRegister};
use accel::Share;
use accel::sc17::Quota;
use rustc_hash::FxHashMap;

use super::effect::{Effect, InternalError, Notice};
use super::entry::Entry;
use super::interface::{Interface, Portal};
use super::operation::Operations;
use super::partition::{Member, Partition};
use super::slab::{self, Kind};
use super::unexpected::Claim;
use crate::message::MessageId;

/// Portals objects of a node's process.
///
/// Calls and messages change them, and queue the resulting work for the card as [`Effect`]s.
#[repr(C)] // see `Nic`
pub struct Portals {
    /// Peak number of waiting triggered operations.
    pub(crate) triggered_peak: u64,
    pub(crate) interfaces: [Option<Box<Interface>>; 4],
    /// Effects for the card; the list holds no memory between events.
    pub(crate) effects: Vec<Effect>,
    /// Claims of entries on the unexpected headers of messages in flight, if any.
    pub(crate) claims: Option<Box<FxHashMap<MessageId, Claim>>>,
    pub(crate) operations: Operations,
    /// Limits that the card offers, shared by most cards.
    pub(crate) offered: Rc<NiLimits>,
    /// Number of the process in the network: that of its node, unless nodes have several.
    pub node: u32,
    /// Number of processes and switches in the network.
    pub nodes: u32,
    /// Pid of the process.
    pub pid: u32,
    /// User id of the process.
    pub uid: u32,
    /// True if due triggered operations are left to the CPU.
    pub(crate) leaves_to_cpu: bool,
    /// Number of stops of portal table entries by flow control.
    pub(crate) flow_control: u64,
    /// Place in the partition, if the network has several jobs, or its nodes several processes.
    pub(super) member: Option<Rc<Member>>,
    /// Latest closed interfaces, if any: handles of new ones continue from theirs.
    pub(crate) closed: Option<Box<[Option<Box<Interface>>; 4]>>,
}

impl Portals {
    /// Creates an empty set of objects for a process. `leaves_to_cpu`: due triggered operations are left to the CPU.
    pub fn new(node: u32, nodes: u32, uid: u32, offered: Rc<NiLimits>, leaves_to_cpu: bool) -> Portals {
        Portals {
            node,
            nodes,
            pid: DEFAULT_PID,
            uid,
            interfaces: [const { None }; 4],
            member: None,
            closed: None,
            operations: Operations::default(),
            claims: None,
            leaves_to_cpu,
            flow_control: 0,
            triggered_peak: 0,
            offered,
            effects: Vec::new(),
        }
    }

    /// Returns one of the four interfaces, if it is open.
    pub(crate) fn interface(&mut self, index: u8) -> Option<&mut Interface> {
        self.interfaces[usize::from(index & 3)].as_deref_mut()
    }

    /// Returns the interface with this handle.
    pub(crate) fn ni(&mut self, ni: Handle) -> Result<&mut Interface, ReturnCode> {
        let index = slab::interface_of(Kind::Interface, ni).ok_or(ReturnCode::ArgInvalid)?;
        self.interface(index).filter(|interface| interface.handle() == ni).ok_or(ReturnCode::ArgInvalid)
    }

    /// Returns the interface of an object of this kind.
    pub(crate) fn owner(&mut self, kind: Kind, object: Handle) -> Result<&mut Interface, ReturnCode> {
        let index = slab::interface_of(kind, object).ok_or(ReturnCode::ArgInvalid)?;
        self.interface(index).ok_or(ReturnCode::ArgInvalid)
    }

    /// Returns this process as its peers on an interface name it.
    pub(crate) fn identity(&self, interface: &Interface) -> Process {
        match interface.logical() {
            true => Process { nid: interface.rank, pid: 0 },
            false => Process { nid: self.nid(), pid: self.pid },
        }
    }

    /// Returns an interface with a message in flight to it.
    pub(super) fn used_interface(&mut self, index: u8) -> Result<&mut Interface, InternalError> {
        self.interface(index).ok_or(InternalError::NoInterface(index))
    }

    /// Returns a referenced entry.
    pub(super) fn used_entry(&mut self, index: u8, handle: Handle) -> Result<&mut Entry, InternalError> {
        let entry = self.used_interface(index)?.entries.get_mut(handle);
        entry.map(Box::as_mut).map_err(|_| InternalError::NoEntry(handle))
    }

    /// Returns a referenced portal table entry.
    pub(super) fn used_portal(&mut self, index: u8, pt_index: u32) -> Result<&mut Portal, InternalError> {
        self.used_interface(index)?.portal(pt_index).map_err(|_| InternalError::NoPortal(pt_index))
    }

    /// Adds an event to a queue. The event is dropped if the queue is `PTL_EQ_NONE` or freed.
    pub(crate) fn post(&mut self, index: u8, eq: Handle, event: Event) {
        if let Some(Ok(queue)) = self.interface(index).map(|interface| interface.queues.get_mut(eq)) {
            queue.post(event);
            self.effects.push(Effect::Notify(Notice::Queue(eq)));
        }
    }

    /// Queues an error of the simulator, if there is one, for the card to report.
    pub(super) fn check(&mut self, result: Result<(), InternalError>) {
        if let Err(error) = result {
            self.effects.push(Effect::Internal(error));
        }
    }
}

/// Creates an event with only a kind, a portal table index and a user pointer.
pub(super) fn plain_event(kind: EventKind, pt_index: u32, user_ptr: u64) -> Event {
    Event { kind: kind as u8, pt_index, user_ptr, ..Event::default() }
}

impl Portals {
    /// Restricts the process, which belongs to this user, to a partition.
    pub fn join(&mut self, member: Member, uid: u32) {
        self.pid = member.partition.pid(member.nid, self.node).unwrap_or(DEFAULT_PID);
        if member.quota != Quota::ALL {
            let most = u32::try_from(self.offered.max_handler_mem).unwrap_or(u32::MAX);
            Rc::make_mut(&mut self.offered).max_handler_mem = member.quota.memory(most).into();
        }
        self.member = Some(Rc::new(member));
        self.uid = uid;
    }

    /// Returns the index of the process among those that share the card.
    pub fn index(&self) -> u32 {
        self.member.as_ref().map_or(0, |member| member.index)
    }

    /// Returns the part of the card's HPU memory that the process may use.
    pub fn quota(&self) -> Quota {
        self.member.as_ref().map_or(Quota::ALL, |member| member.quota)
    }

    /// Returns tenant and entitlement of the messages of a portal table entry: those of the process on a shared card.
    /// Otherwise all entries weigh the same, and a strict scheduler prefers lower ones.
    pub(crate) fn tenant(&self, pt_index: u32) -> (u32, Share) {
        let of_entry = || (pt_index, Share { weight: 1, priority: u8::MAX - pt_index.min(u8::MAX.into()) as u8 });
        self.member.as_ref().and_then(|member| member.tenant).unwrap_or_else(of_entry)
    }

    /// Returns the partition of the process, if the network has several.
    pub fn partition(&self) -> Option<&Partition> {
        self.member.as_deref().map(|member| &*member.partition)
    }

    /// Returns the number by which processes name this node.
    pub fn nid(&self) -> u32 {
        self.member.as_ref().map_or(self.node, |member| member.nid)
    }

    /// Returns the number of nodes that processes of this node can name.
    pub fn reachable(&self) -> u32 {
        self.partition().map_or(self.nodes, |partition| partition.nodes().len() as u32)
    }

    /// Returns the number of a process in the network, or a number that is no process: [`FOREIGN`](super::FOREIGN) if only
    /// other jobs have a node of its number.
    pub(crate) fn find(&self, process: Process) -> u32 {
        self.partition().map_or(process.nid, |partition| partition.find(process, self.nodes))
    }

    /// Counts a message from outside of the partition on the status register of an interface.
    pub(crate) fn note_violation(&mut self, index: u8) {
        if let Some(interface) = self.interface(index) {
            interface.status[StatusRegister::PermissionViolations as usize] += 1;
        }
    }

    /// Returns true if messages from this process of the network may reach this one.
    pub(crate) fn accepts(&self, source: u32) -> bool {
        self.partition().is_none_or(|partition| partition.has(source))
    }
}
