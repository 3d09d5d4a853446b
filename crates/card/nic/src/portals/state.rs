use std::rc::Rc;

use abi::portals::{Event, EventKind, Handle, NiLimits, Process, ReturnCode};
use rustc_hash::FxHashMap;

use super::effect::{Effect, InternalError, Notice};
use super::entry::Entry;
use super::interface::{Interface, Portal};
use super::operation::Operations;
use super::slab::{self, Kind};
use super::unexpected::Claim;
use crate::message::MessageId;

/// The pid of a process that did not ask for one. There is one process a node.
pub const DEFAULT_PID: u32 = 1;

/// The Portals objects of a node's process.
///
/// Calls and messages change them; what the card has to do then is left in a list of [`Effect`]s, in its order.
#[repr(C)] // see `Nic`
pub struct Portals {
    /// Most triggered operations that waited for their counters at once.
    pub(crate) triggered_peak: u64,
    pub(crate) interfaces: [Option<Box<Interface>>; 4],
    /// What the card has to do; it keeps no memory for them between events.
    pub(crate) effects: Vec<Effect>,
    /// Entries that have taken the unexpected headers of messages that are still under way, if there are any.
    pub(crate) claims: Option<Box<FxHashMap<MessageId, Claim>>>,
    pub(crate) operations: Operations,
    /// What the card offers to interfaces, as most cards do.
    pub(crate) offered: Rc<NiLimits>,
    /// Number of the node.
    pub node: u32,
    /// Number of nodes in the network.
    pub nodes: u32,
    /// The process's pid.
    pub pid: u32,
    /// The process's user id.
    pub uid: u32,
    /// Whether triggered operations that are due are left to the CPU.
    pub(crate) leaves_to_cpu: bool,
    /// Number of times that flow control has stopped a portal table entry.
    pub(crate) flow_control: u64,
    /// The interfaces that were closed last, if there are any: handles of new ones continue from theirs.
    pub(crate) closed: Option<Box<[Option<Box<Interface>>; 4]>>,
}

impl Portals {
    /// The objects of a process that has none yet. `leaves_to_cpu`: triggered operations that are due are left to the CPU.
    pub fn new(node: u32, nodes: u32, uid: u32, offered: Rc<NiLimits>, leaves_to_cpu: bool) -> Portals {
        Portals {
            node,
            nodes,
            pid: DEFAULT_PID,
            uid,
            interfaces: [const { None }; 4],
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

    /// One of the four interfaces, if it is open.
    pub(crate) fn interface(&mut self, index: u8) -> Option<&mut Interface> {
        self.interfaces[usize::from(index & 3)].as_deref_mut()
    }

    /// The interface with this handle.
    pub(crate) fn ni(&mut self, ni: Handle) -> Result<&mut Interface, ReturnCode> {
        let index = slab::interface_of(Kind::Interface, ni).ok_or(ReturnCode::ArgInvalid)?;
        self.interface(index).filter(|interface| interface.handle() == ni).ok_or(ReturnCode::ArgInvalid)
    }

    /// The interface that an object of this kind belongs to.
    pub(crate) fn owner(&mut self, kind: Kind, object: Handle) -> Result<&mut Interface, ReturnCode> {
        let index = slab::interface_of(kind, object).ok_or(ReturnCode::ArgInvalid)?;
        self.interface(index).ok_or(ReturnCode::ArgInvalid)
    }

    /// This process as its peers on an interface name it.
    pub(crate) fn identity(&self, interface: &Interface) -> Process {
        match interface.logical() {
            true => Process { nid: interface.rank, pid: 0 },
            false => Process { nid: self.node, pid: self.pid },
        }
    }

    /// An interface to which a message is under way.
    pub(super) fn used_interface(&mut self, index: u8) -> Result<&mut Interface, InternalError> {
        self.interface(index).ok_or(InternalError::NoInterface(index))
    }

    /// An entry that something refers to.
    pub(super) fn used_entry(&mut self, index: u8, handle: Handle) -> Result<&mut Entry, InternalError> {
        let entry = self.used_interface(index)?.entries.get_mut(handle);
        entry.map(Box::as_mut).map_err(|_| InternalError::NoEntry(handle))
    }

    /// A portal table entry that something refers to.
    pub(super) fn used_portal(&mut self, index: u8, pt_index: u32) -> Result<&mut Portal, InternalError> {
        self.used_interface(index)?.portal(pt_index).map_err(|_| InternalError::NoPortal(pt_index))
    }

    /// Adds an event to a queue. Without a queue, or when the program has freed it, the event vanishes.
    pub(crate) fn post(&mut self, index: u8, eq: Handle, event: Event) {
        if let Some(Ok(queue)) = self.interface(index).map(|interface| interface.queues.get_mut(eq)) {
            queue.post(event);
            self.effects.push(Effect::Notify(Notice::Queue(eq)));
        }
    }

    /// Has the card report an error of the simulator, if there is one.
    pub(super) fn check(&mut self, result: Result<(), InternalError>) {
        if let Err(error) = result {
            self.effects.push(Effect::Internal(error));
        }
    }
}

/// An event that says no more than where it happened.
pub(super) fn plain_event(kind: EventKind, pt_index: u32, user_ptr: u64) -> Event {
    Event { kind: kind as u8, pt_index, user_ptr, ..Event::default() }
}
