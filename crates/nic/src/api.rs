//! The host's library calls, with their arguments checked (Portals 4.3 §3). Each either does what it says or returns
//! the documented code and changes nothing. The time that a call costs the CPU is the caller's business.

mod programs;
mod transfers;

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use abi::portals::{self as ptl, CtEvent, Event, Handle, Iovec, List, NiLimits, Process, Rc as Code, SearchOp};
use abi::portals::{Plain, md, me};

use crate::card::Card;
use crate::entry::Entry;
use crate::events::{Counter, EventRing};
use crate::handlers::Handlers;
use crate::interface::{Interface, MemoryDescriptor, Portal, clip_limits, index_of_options};
use crate::ports::Ports;
use crate::region::Region;
use crate::slab::{self, Kind};
use crate::triggered::TriggeredOp;
use crate::unexpected::Offered;

/// The pid of a process that did not ask for one. There is one process a node.
pub const DEFAULT_PID: u32 = 1;

type Result<T> = std::result::Result<T, Code>;

/// A new entry, as the program describes it.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry {
    /// Its description; an LE fills only `me.le`.
    pub me: ptl::Me,
    /// Whether it came as an ME.
    pub matching: bool,
    /// Portal table index.
    pub pt_index: u32,
    /// `user_ptr`
    pub user_ptr: u64,
}

impl Card {
    /// Forgets the process: its interfaces and its device program. Messages to it are dropped from now on.
    pub fn reset(&mut self, ports: &mut impl Ports) {
        (0..4).for_each(|interface| self.close_interface(interface, ports));
        self.spin.unload();
    }

    /// `PtlNIInit`: the interface's handle and limits.
    pub fn ni_init(
        &mut self,
        iface: u32,
        options: u32,
        pid: u32,
        desired: Option<NiLimits>,
    ) -> Result<(Handle, NiLimits)> {
        let index = index_of_options(options).ok_or(Code::ArgInvalid)?;
        if iface != ptl::IFACE_DEFAULT || pid > ptl::PID_MAX && pid != ptl::ID_ANY {
            return Err(Code::ArgInvalid);
        }
        if let Some(interface) = self.interface(index) {
            interface.references += 1;
            return Ok((interface.handle(), interface.limits));
        }
        let first = self.interfaces.iter().all(Option::is_none);
        if first && pid != ptl::ID_ANY {
            self.pid = pid;
        } else if pid != ptl::ID_ANY && pid != self.pid {
            return Err(Code::PidInUse);
        }
        let offered = self.offered_limits();
        let limits = desired.map_or(offered, |desired| clip_limits(&offered, &desired));
        let before = self.closed[usize::from(index)].take();
        let interface = Interface::new(index, limits, before.map(|before| *before));
        let handle = interface.handle();
        self.interfaces[usize::from(index)] = Some(Box::new(interface));
        Ok((handle, limits))
    }

    /// `PtlNIFini`.
    pub fn ni_fini(&mut self, ni: Handle, ports: &mut impl Ports) -> Result<()> {
        let interface = self.ni(ni)?;
        interface.references -= 1;
        if interface.references == 0 {
            let index = interface.index;
            self.close_interface(index, ports);
        }
        Ok(())
    }

    /// `PtlNIStatus`.
    pub fn ni_status(&mut self, ni: Handle, register: u64) -> Result<i32> {
        let register = ptl::StatusRegister::from_raw(register).ok_or(Code::ArgInvalid)?;
        Ok(self.ni(ni)?.status[register as usize])
    }

    /// `PtlNIHandle`: the interface of any object.
    pub fn ni_handle(&mut self, object: Handle) -> Result<Handle> {
        let index = slab::owner_of_any(object).ok_or(Code::ArgInvalid)?;
        let spin = &self.spin;
        let interface = self.interfaces[usize::from(index)].as_deref().ok_or(Code::ArgInvalid)?;
        match object >> 28 {
            1 if object == interface.handle() => {}
            3 => drop(interface.mds.get(object)?),
            4 => interface.entries.get(object).map(|_| ())?,
            5 => interface.queues.get(object).map(|_| ())?,
            6 => interface.counters.get(object).map(|_| ())?,
            7 => spin.memory_range(object).map(|_| ())?,
            _ => return Err(Code::ArgInvalid),
        }
        Ok(interface.handle())
    }

    /// `PtlSetMap`.
    pub fn set_map(&mut self, ni: Handle, map: Rc<[Process]>) -> Result<()> {
        let own = Process { nid: self.node, pid: self.pid };
        // Most maps give a node's only process the node's number.
        let rank = match map.get(own.nid as usize) {
            Some(process) if *process == own => Some(own.nid as usize),
            _ => map.iter().position(|process| *process == own),
        };
        let interface = self.ni(ni)?;
        let rank = rank.filter(|_| interface.logical()).ok_or(Code::ArgInvalid)?;
        if interface.map.is_some() {
            return Err(Code::Ignored);
        }
        (interface.map, interface.rank) = (Some(map), rank as u32);
        Ok(())
    }

    /// `PtlGetMap`.
    pub fn map(&mut self, ni: Handle) -> Result<Rc<[Process]>> {
        let interface = self.ni(ni)?;
        if !interface.logical() {
            return Err(Code::ArgInvalid);
        }
        interface.map.clone().ok_or(Code::NoSpace)
    }

    /// `PtlStartBundle` and `PtlEndBundle`, a hint that the card does without.
    pub fn bundle(&mut self, ni: Handle) -> Result<()> {
        self.ni(ni).map(|_| ())
    }

    /// `PtlGetUid`.
    pub fn uid(&mut self, ni: Handle) -> Result<u32> {
        self.ni(ni)?;
        Ok(self.uid)
    }

    /// `PtlGetId`.
    pub fn id(&mut self, ni: Handle) -> Result<Process> {
        let index = usize::from(self.ni(ni)?.index);
        let interface = self.interfaces[index].as_deref().ok_or(Code::ArgInvalid)?;
        let id = self.identity(interface);
        if id.nid == ptl::ID_ANY { Err(Code::ArgInvalid) } else { Ok(id) }
    }

    /// `PtlGetPhysId`.
    pub fn physical_id(&mut self, ni: Handle) -> Result<Process> {
        self.ni(ni)?;
        Ok(Process { nid: self.node, pid: self.pid })
    }

    /// `PtlPTAlloc`: the index.
    pub fn pt_alloc(&mut self, ni: Handle, options: u32, eq: Handle, wanted: u32) -> Result<u32> {
        let interface = self.ni(ni)?;
        if options & !ptl::pt::MASK != 0 {
            return Err(Code::ArgInvalid);
        }
        interface.check_eq(eq)?;
        let controlled = options & ptl::pt::FLOWCTRL != 0;
        if controlled && eq == ptl::EQ_NONE {
            return Err(Code::PtEqNeeded);
        }
        let index = match wanted {
            ptl::PT_ANY => interface.portals.iter().position(Option::is_none).unwrap_or(interface.portals.len()),
            wanted => wanted as usize,
        };
        if i64::try_from(index).is_ok_and(|index| index > i64::from(interface.limits.max_pt_index)) {
            return Err(if wanted == ptl::PT_ANY { Code::PtFull } else { Code::ArgInvalid });
        }
        if index >= interface.portals.len() {
            interface.portals.resize_with(index + 1, || None);
        }
        let slot = interface.portals.get_mut(index).ok_or(Code::ArgInvalid)?;
        if slot.is_some() {
            return Err(Code::PtInUse);
        }
        *slot = Some(Portal {
            options,
            eq,
            enabled: options & ptl::pt::ALLOC_DISABLED == 0,
            in_flight: 0,
            disable_event_due: false,
            priority: VecDeque::new(),
            overflow: VecDeque::new(),
            unexpected: VecDeque::new(),
        });
        if controlled && let Ok(queue) = interface.queues.get_mut(eq) {
            queue.reserved += 1;
        }
        Ok(index as u32)
    }

    /// `PtlPTFree`.
    pub fn pt_free(&mut self, ni: Handle, index: u32) -> Result<()> {
        let interface = self.ni(ni)?;
        let portal = interface.portal(index)?;
        if !portal.priority.is_empty() || !portal.overflow.is_empty() || portal.in_flight > 0 {
            return Err(Code::PtInUse);
        }
        let (eq, controlled) = (portal.eq, portal.flow_controlled());
        // Overflow entries that are unlinked already live on only in unexpected headers, which go now.
        let held: Vec<Handle> = portal.unexpected.drain(..).map(|header| header.entry).collect();
        interface.unexpected_headers -= held.len();
        held.into_iter().for_each(|entry| drop(interface.entries.remove(entry)));
        interface.portals[index as usize] = None;
        if controlled && let Ok(queue) = interface.queues.get_mut(eq) {
            queue.reserved -= 1;
        }
        Ok(())
    }

    /// `PtlPTDisable`, which returns to its caller once [`pt_idle`](Card::pt_idle).
    pub fn pt_disable(&mut self, ni: Handle, index: u32) -> Result<()> {
        self.ni(ni)?.portal(index)?.enabled = false;
        Ok(())
    }

    /// Whether no message is under way to a portal table entry.
    pub fn pt_idle(&mut self, ni: Handle, index: u32) -> bool {
        self.ni(ni).and_then(|interface| interface.portal(index)).map_or(true, |portal| portal.in_flight == 0)
    }

    /// `PtlPTEnable`.
    pub fn pt_enable(&mut self, ni: Handle, index: u32) -> Result<()> {
        self.ni(ni)?.portal(index)?.enabled = true;
        Ok(())
    }

    /// `PtlMDBind`.
    pub fn md_bind(&mut self, ni: Handle, description: ptl::Md, ports: &mut impl Ports) -> Result<Handle> {
        let interface = self.ni(ni)?;
        if description.options & !md::MASK != 0 {
            return Err(Code::ArgInvalid);
        }
        interface.check_eq(description.eq_handle)?;
        interface.check_ct(description.ct_handle)?;
        let iovec = description.options & md::IOVEC != 0;
        let region = region(description.start, description.length, iovec, interface.limits.max_iovecs, ports)?;
        let descriptor = MemoryDescriptor {
            region: Rc::new(region),
            options: description.options,
            eq: description.eq_handle,
            ct: description.ct_handle,
        };
        interface.mds.insert(interface.limits.max_mds, Rc::new(descriptor))
    }

    /// `PtlMDRelease`. Operations under way keep what they need of it.
    pub fn md_release(&mut self, md: Handle) -> Result<()> {
        self.owner(Kind::Md, md)?.mds.remove(md).map(|_| ())
    }

    /// `PtlLEAppend`, `PtlMEAppend` and `PtlMEAppendHandlers`.
    pub fn append(
        &mut self,
        ni: Handle,
        new: NewEntry,
        list: u64,
        handlers: Option<Handlers>,
        ports: &mut impl Ports,
    ) -> Result<Handle> {
        let list = List::from_raw(list).ok_or(Code::ArgInvalid)?;
        let mut entry = self.entry(ni, new, ports)?;
        entry.handlers = handlers.map(Rc::new);
        let interface = self.ni(ni)?;
        let (index, limits) = (interface.index, interface.limits);
        let portal = interface.portal(new.pt_index)?;
        if portal.list_mut(list).len() >= limits.max_list_size as usize {
            return Err(Code::ListTooLong);
        }
        if interface.entries.len() >= limits.max_entries as usize {
            return Err(Code::NoSpace);
        }
        entry.list = list;
        let handle = interface.entries.insert(limits.max_entries, entry)?;
        self.link(index, handle, list, ports);
        Ok(handle)
    }

    /// Puts an entry into its list, unless unexpected messages use it up: its handle is given even then.
    pub(crate) fn link(&mut self, index: u8, handle: Handle, list: List, ports: &mut impl Ports) {
        let Some(Ok(mut entry)) = self.interface(index).map(|interface| interface.entries.get(handle).cloned()) else {
            return;
        };
        let used_up = list == List::Priority && self.offer_to_unexpected(index, &mut entry, ports) == Offered::UsedUp;
        let Some(interface) = self.interface(index) else { return };
        if used_up {
            drop(interface.entries.remove(handle));
            return;
        }
        entry.linked = true;
        let (pt_index, user_ptr, silent) = (entry.pt_index, entry.user_ptr, entry.has(me::EVENT_LINK_DISABLE));
        if let Ok(slot) = interface.entries.get_mut(handle) {
            *slot = entry;
        }
        let Ok(portal) = interface.portal(pt_index) else { return };
        portal.list_mut(list).push_back(handle);
        let eq = portal.eq;
        if !silent {
            self.post(index, eq, crate::complete::plain_event(ptl::EventKind::Link, pt_index, user_ptr), ports);
        }
    }

    /// `PtlTriggeredMEAppend`: makes the entry, which joins its list when the counter is there.
    pub fn append_triggered(
        &mut self,
        ni: Handle,
        new: NewEntry,
        list: u64,
        handlers: Option<Handlers>,
        trigger: (Handle, u64),
        ports: &mut impl Ports,
    ) -> Result<Handle> {
        let list = List::from_raw(list).ok_or(Code::ArgInvalid)?;
        let mut entry = self.entry(ni, new, ports)?;
        (entry.list, entry.handlers) = (list, handlers.map(Rc::new));
        let interface = self.ni(ni)?;
        let (index, limit) = (interface.index, interface.limits.max_entries);
        let handle = interface.entries.insert(limit, entry)?;
        if let Err(code) = self.trigger(index, trigger.0, trigger.1, TriggeredOp::Append(handle, list), ports) {
            self.ni(ni)?.entries.remove(handle)?;
            return Err(code);
        }
        Ok(handle)
    }

    /// The interface of a live entry.
    pub fn entry_interface(&mut self, entry: Handle) -> Result<u8> {
        let interface = self.owner(Kind::Entry, entry)?;
        interface.entries.get(entry)?;
        Ok(interface.index)
    }

    /// `PtlLEUnlink` and `PtlMEUnlink`.
    pub fn unlink(&mut self, handle: Handle) -> Result<()> {
        let interface = self.owner(Kind::Entry, handle)?;
        let entry = interface.entries.get_mut(handle)?;
        if !entry.linked {
            return Err(Code::ArgInvalid);
        }
        if entry.in_flight > 0 || entry.unexpected > 0 {
            return Err(Code::InUse);
        }
        let (pt_index, list) = (entry.pt_index, entry.list);
        interface.portal(pt_index)?.list_mut(list).retain(|other| *other != handle);
        interface.entries.remove(handle).map(|_| ())
    }

    /// `PtlLESearch` and `PtlMESearch`.
    pub fn search(&mut self, ni: Handle, new: NewEntry, op: u64, ports: &mut impl Ports) -> Result<()> {
        let op = SearchOp::from_raw(op).ok_or(Code::ArgInvalid)?;
        let entry = self.entry(ni, new, ports)?;
        let index = self.ni(ni)?.index;
        self.search_unexpected(index, &entry, op, ports)
    }

    fn entry(&mut self, ni: Handle, new: NewEntry, ports: &mut impl Ports) -> Result<Entry> {
        let NewEntry { me: description, matching, pt_index, user_ptr } = new;
        let interface = self.ni(ni)?;
        let le = description.le;
        let mask = if matching { me::MASK } else { ptl::LE_OPTIONS_MASK };
        if interface.matching() != matching || le.options & !mask != 0 {
            return Err(Code::ArgInvalid);
        }
        interface.portal(pt_index)?;
        interface.check_ct(le.ct_handle)?;
        let limit = interface.limits.max_iovecs;
        let region = region(le.start, le.length, le.options & me::IOVEC != 0, limit, ports)?;
        Ok(Entry {
            pt_index,
            list: List::Priority,
            user_ptr,
            options: le.options,
            ct: le.ct_handle,
            uid: le.uid,
            match_id: description.match_id,
            match_bits: description.match_bits,
            ignore_bits: description.ignore_bits,
            min_free: if le.options & me::MANAGE_LOCAL != 0 { description.min_free } else { 0 },
            region: Rc::new(region),
            local_offset: 0,
            holes: BTreeMap::new(),
            linked: false,
            in_flight: 0,
            unexpected: 0,
            handlers: None,
        })
    }

    /// The interface of a live counter.
    pub fn ct_interface(&mut self, ct: Handle) -> Result<u8> {
        let interface = self.owner(Kind::Ct, ct)?;
        interface.counters.get(ct)?;
        Ok(interface.index)
    }

    /// `PtlEQAlloc`.
    pub fn eq_alloc(&mut self, ni: Handle, count: u64) -> Result<Handle> {
        let interface = self.ni(ni)?;
        let count = usize::try_from(count).ok().filter(|count| *count < 1 << 24).ok_or(Code::NoSpace)?;
        interface.queues.insert(interface.limits.max_eqs, EventRing::new(count))
    }

    /// `PtlEQFree`.
    pub fn eq_free(&mut self, eq: Handle) -> Result<()> {
        self.owner(Kind::Eq, eq)?.queues.remove(eq).map(|_| ())
    }

    /// `PtlEQGet`: the oldest event, and whether others were lost before it.
    pub fn eq_take(&mut self, eq: Handle) -> Result<Option<(Event, bool)>> {
        Ok(self.owner(Kind::Eq, eq)?.queues.get_mut(eq)?.take())
    }

    /// The interface of a live event queue.
    pub fn eq_interface(&mut self, eq: Handle) -> Result<u8> {
        let interface = self.owner(Kind::Eq, eq)?;
        interface.queues.get(eq)?;
        Ok(interface.index)
    }

    /// `PtlCTAlloc`.
    pub fn ct_alloc(&mut self, ni: Handle) -> Result<Handle> {
        let interface = self.ni(ni)?;
        interface.counters.insert(interface.limits.max_cts, Counter::default())
    }

    /// `PtlCTFree`.
    pub fn ct_free(&mut self, ct: Handle) -> Result<()> {
        let interface = self.owner(Kind::Ct, ct)?;
        let counter = interface.counters.remove(ct)?;
        interface.triggered -= counter.waiting();
        Ok(())
    }

    /// `PtlCTCancelTriggered`.
    pub fn ct_cancel(&mut self, ct: Handle) -> Result<()> {
        let interface = self.owner(Kind::Ct, ct)?;
        let cancelled = interface.counters.get_mut(ct)?.cancel();
        interface.triggered -= cancelled;
        Ok(())
    }

    /// `PtlCTGet`.
    pub fn ct_value(&mut self, ct: Handle) -> Result<CtEvent> {
        Ok(self.owner(Kind::Ct, ct)?.counters.get(ct)?.value)
    }

    /// `PtlCTSet`.
    pub fn ct_set(&mut self, ct: Handle, value: CtEvent, ports: &mut impl Ports) -> Result<()> {
        let index = self.ct_interface(ct)?;
        self.set_counter(index, ct, value, ports);
        Ok(())
    }

    /// `PtlCTInc`.
    pub fn ct_inc(&mut self, ct: Handle, amount: CtEvent, ports: &mut impl Ports) -> Result<()> {
        let index = self.ct_interface(ct)?;
        check_increment(amount)?;
        self.count(index, ct, amount, ports);
        Ok(())
    }

    fn ni(&mut self, ni: Handle) -> Result<&mut Interface> {
        let index = slab::interface_of(Kind::Interface, ni).ok_or(Code::ArgInvalid)?;
        self.interface(index).filter(|interface| interface.handle() == ni).ok_or(Code::ArgInvalid)
    }

    fn owner(&mut self, kind: Kind, object: Handle) -> Result<&mut Interface> {
        let index = slab::interface_of(kind, object).ok_or(Code::ArgInvalid)?;
        self.interface(index).ok_or(Code::ArgInvalid)
    }
}

/// Only one of the two fields of an increment may be set (Portals 4.3 §3.14.7).
pub fn check_increment(amount: CtEvent) -> Result<()> {
    if amount.success != 0 && amount.failure != 0 { Err(Code::ArgInvalid) } else { Ok(()) }
}

fn region(start: u64, length: u64, iovec: bool, limit: i32, ports: &mut impl Ports) -> Result<Region> {
    if !iovec {
        return Ok(Region::range(start, length));
    }
    if length > limit as u64 {
        return Err(Code::ArgInvalid);
    }
    let mut bytes = vec![0; length as usize * size_of::<Iovec>()];
    ports.read_host(start, &mut bytes).map_err(|_| Code::ArgInvalid)?;
    Ok(Region::iovec(bytes.chunks_exact(size_of::<Iovec>()).filter_map(Iovec::from_bytes).collect()))
}
