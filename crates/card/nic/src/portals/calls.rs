// SPDX-License-Identifier: Apache-2.0
//! Library calls of the host on Portals objects, with checked arguments (Portals 4.3 §3). A call either succeeds, or
//! returns the documented code and changes nothing.

use std::collections::VecDeque;
use std::rc::Rc;

use abi::portals::{self as ptl, CtEvent, Event, Handle, List, NiLimits, Process, ReturnCode, SearchOp, md, me};

use super::descriptor::MemoryDescriptor;
use super::entry::Entry;
use super::events::{Counter, EventRing};
use super::interface::{Interface, Portal, clip_limits, index_of_options};
use super::process::Portals;
use super::slab::{self, Kind};
use super::triggered::TriggeredOp;
use crate::handlers::Handlers;
use crate::region::Region;

type Result<T> = std::result::Result<T, ReturnCode>;

/// Description of a new entry by the program.
#[derive(Clone, Copy, Debug)]
pub struct NewEntry {
    /// Description; an LE fills only `me.le`.
    pub me: ptl::Me,
    /// True for an ME.
    pub matching: bool,
    /// Portal table index.
    pub pt_index: u32,
    /// `user_ptr`
    pub user_ptr: u64,
}

impl Portals {
    /// `PtlNIInit`. Returns the interface's handle and its limits: `desired`, clipped to those of the card. An open
    /// interface gets another reference.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if options, interface or pid are out of range; [`ReturnCode::PidInUse`] if the
    /// process has another pid, or another process of the node has this one.
    pub fn ni_init(
        &mut self,
        iface: u32,
        options: u32,
        pid: u32,
        desired: Option<NiLimits>,
    ) -> Result<(Handle, NiLimits)> {
        let index = index_of_options(options).ok_or(ReturnCode::ArgInvalid)?;
        if iface != ptl::IFACE_DEFAULT || pid > ptl::PID_MAX && pid != ptl::ID_ANY {
            return Err(ReturnCode::ArgInvalid);
        }
        if let Some(interface) = self.interface(index) {
            interface.references += 1;
            return Ok((interface.handle(), *interface.limits));
        }
        let first = self.interfaces.iter().all(Option::is_none);
        if first && pid != ptl::ID_ANY {
            self.claim_pid(pid)?;
        } else if pid != ptl::ID_ANY && pid != self.pid {
            return Err(ReturnCode::PidInUse);
        }
        let limits = match desired {
            Some(desired) => Rc::new(clip_limits(&self.offered, &desired)),
            None => self.offered.clone(),
        };
        let in_force = *limits;
        let before = self.closed.as_mut().and_then(|closed| closed[usize::from(index)].take());
        let interface = Interface::new(index, limits, before.map(|before| *before));
        let handle = interface.handle();
        self.interfaces[usize::from(index)] = Some(Box::new(interface));
        Ok((handle, in_force))
    }

    /// Changes the pid of the process, unless another process of the node has it.
    fn claim_pid(&mut self, pid: u32) -> Result<()> {
        if self.is_pid_of_another(pid) {
            return Err(ReturnCode::PidInUse);
        }
        if let Some(member) = &self.member {
            member.partition.set_pid(member.nid, self.node, pid);
        }
        self.pid = pid;
        Ok(())
    }

    /// Returns true if another process of the node has this pid.
    pub(crate) fn is_pid_of_another(&self, pid: u32) -> bool {
        let member = self.member.as_ref();
        member.is_some_and(|member| member.partition.is_pid_of_another(member.nid, self.node, pid))
    }

    /// `PtlNIFini`: drops a reference. Returns the index of the interface if that was the last one.
    pub(crate) fn ni_release(&mut self, ni: Handle) -> Result<Option<u8>> {
        let interface = self.ni(ni)?;
        interface.references -= 1;
        Ok((interface.references == 0).then_some(interface.index))
    }

    /// Closes an interface. Returns true if it was open.
    pub(crate) fn close(&mut self, index: u8) -> bool {
        let Some(mut interface) = self.interfaces[usize::from(index)].take() else { return false };
        interface.clear();
        self.closed.get_or_insert_default()[usize::from(index)] = Some(interface);
        self.operations.close(index);
        if let Some(claims) = &mut self.claims {
            claims.retain(|_, claim| claim.interface != index);
        }
        true
    }

    /// `PtlNIStatus`: returns the value of a status register.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface or the register does not exist.
    pub fn ni_status(&mut self, ni: Handle, register: u64) -> Result<i32> {
        let register = ptl::StatusRegister::from_raw(register).ok_or(ReturnCode::ArgInvalid)?;
        Ok(self.ni(ni)?.status[register as usize])
    }

    /// `PtlNIHandle`: returns the interface of any object except HPU memory.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the handle names no object.
    pub fn ni_handle(&mut self, object: Handle) -> Result<Handle> {
        let index = slab::owner_of_any(object).ok_or(ReturnCode::ArgInvalid)?;
        let interface = self.interfaces[usize::from(index)].as_deref().ok_or(ReturnCode::ArgInvalid)?;
        match object >> 28 {
            1 if object == interface.handle() => {}
            3 => drop(interface.mds.get(object)?),
            4 => interface.entries.get(object).map(|_| ())?,
            5 => interface.queues.get(object).map(|_| ())?,
            6 => interface.counters.get(object).map(|_| ())?,
            _ => return Err(ReturnCode::ArgInvalid),
        }
        Ok(interface.handle())
    }

    /// `PtlSetMap`: sets the processes by rank; they include this one.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open or not logically addressed, or if this process is not in
    /// the map; [`ReturnCode::Ignored`] if the interface already has a map.
    pub fn set_map(&mut self, ni: Handle, map: Rc<[Process]>) -> Result<()> {
        let own = Process { nid: self.nid(), pid: self.pid };
        // In most maps a node's only process has the node's number as its rank.
        let rank = match map.get(own.nid as usize) {
            Some(process) if *process == own => Some(own.nid as usize),
            _ => map.iter().position(|process| *process == own),
        };
        let interface = self.ni(ni)?;
        let rank = rank.filter(|_| interface.logical()).ok_or(ReturnCode::ArgInvalid)?;
        if interface.map.is_some() {
            return Err(ReturnCode::Ignored);
        }
        (interface.map, interface.rank) = (Some(map), rank as u32);
        Ok(())
    }

    /// `PtlGetMap`: returns the processes by rank.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open or not logically addressed; [`ReturnCode::NoSpace`] if
    /// it has no map.
    pub fn map(&mut self, ni: Handle) -> Result<Rc<[Process]>> {
        let interface = self.ni(ni)?;
        if !interface.logical() {
            return Err(ReturnCode::ArgInvalid);
        }
        interface.map.clone().ok_or(ReturnCode::NoSpace)
    }

    /// `PtlStartBundle` and `PtlEndBundle`: a hint that the card ignores.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open.
    pub fn bundle(&mut self, ni: Handle) -> Result<()> {
        self.ni(ni).map(|_| ())
    }

    /// `PtlGetUid`: returns the user id of the process.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open.
    pub fn uid(&mut self, ni: Handle) -> Result<u32> {
        self.ni(ni)?;
        Ok(self.uid)
    }

    /// `PtlGetId`: returns the process as its peers on this interface name it.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open, or is logically addressed without a map.
    pub fn id(&mut self, ni: Handle) -> Result<Process> {
        let index = usize::from(self.ni(ni)?.index);
        let interface = self.interfaces[index].as_deref().ok_or(ReturnCode::ArgInvalid)?;
        let id = self.identity(interface);
        if id.nid == ptl::ID_ANY { Err(ReturnCode::ArgInvalid) } else { Ok(id) }
    }

    /// `PtlGetPhysId`: returns node and pid of the process.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open.
    pub fn physical_id(&mut self, ni: Handle) -> Result<Process> {
        self.ni(ni)?;
        Ok(Process { nid: self.nid(), pid: self.pid })
    }

    /// `PtlPTAlloc`. Returns the index of the portal table entry.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if an argument is out of range; [`ReturnCode::PtEqNeeded`] if flow control is
    /// requested without an event queue; [`ReturnCode::PtFull`] if no entry is free; [`ReturnCode::PtInUse`] if the
    /// wanted entry is not free.
    pub fn pt_alloc(&mut self, ni: Handle, options: u32, eq: Handle, wanted: u32) -> Result<u32> {
        let interface = self.ni(ni)?;
        if options & !ptl::pt::MASK != 0 {
            return Err(ReturnCode::ArgInvalid);
        }
        interface.check_eq(eq)?;
        let controlled = options & ptl::pt::FLOWCTRL != 0;
        if controlled && eq == ptl::EQ_NONE {
            return Err(ReturnCode::PtEqNeeded);
        }
        let index = match wanted {
            ptl::PT_ANY => interface.portals.iter().position(Option::is_none).unwrap_or(interface.portals.len()),
            wanted => wanted as usize,
        };
        if i64::try_from(index).is_ok_and(|index| index > i64::from(interface.limits.max_pt_index)) {
            return Err(if wanted == ptl::PT_ANY { ReturnCode::PtFull } else { ReturnCode::ArgInvalid });
        }
        if index >= interface.portals.len() {
            interface.portals.reserve_exact(index + 1 - interface.portals.len());
            interface.portals.resize_with(index + 1, || None);
        }
        let slot = interface.portals.get_mut(index).ok_or(ReturnCode::ArgInvalid)?;
        if slot.is_some() {
            return Err(ReturnCode::PtInUse);
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
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the portal table entry does not exist; [`ReturnCode::PtInUse`] if entries are
    /// linked to it or messages to it are in flight.
    pub fn pt_free(&mut self, ni: Handle, index: u32) -> Result<()> {
        let interface = self.ni(ni)?;
        let portal = interface.portal(index)?;
        if !portal.priority.is_empty() || !portal.overflow.is_empty() || portal.in_flight > 0 {
            return Err(ReturnCode::PtInUse);
        }
        let (eq, controlled) = (portal.eq, portal.flow_controlled());
        // Only the unexpected headers, which go now, still refer to unlinked overflow entries.
        let held: Vec<Handle> = portal.unexpected.drain(..).map(|header| header.entry).collect();
        interface.unexpected_headers -= held.len();
        held.into_iter().for_each(|entry| drop(interface.entries.remove(entry)));
        interface.portals[index as usize] = None;
        if controlled && let Ok(queue) = interface.queues.get_mut(eq) {
            queue.reserved -= 1;
        }
        Ok(())
    }

    /// `PtlPTDisable`; the library call returns once [`pt_idle`](Portals::pt_idle) is true.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the portal table entry does not exist.
    pub fn pt_disable(&mut self, ni: Handle, index: u32) -> Result<()> {
        self.ni(ni)?.portal(index)?.enabled = false;
        Ok(())
    }

    /// Returns true if no message to a portal table entry is in flight.
    pub fn pt_idle(&mut self, ni: Handle, index: u32) -> bool {
        self.ni(ni).and_then(|interface| interface.portal(index)).map_or(true, |portal| portal.in_flight == 0)
    }

    /// `PtlPTEnable`.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the portal table entry does not exist.
    pub fn pt_enable(&mut self, ni: Handle, index: u32) -> Result<()> {
        self.ni(ni)?.portal(index)?.enabled = true;
        Ok(())
    }

    /// `PtlMDBind`; `region` is the described memory.
    pub(crate) fn md_bind(&mut self, ni: Handle, description: ptl::Md, region: Region) -> Result<Handle> {
        let interface = self.ni(ni)?;
        if description.options & !md::MASK != 0 {
            return Err(ReturnCode::ArgInvalid);
        }
        interface.check_eq(description.eq_handle)?;
        interface.check_ct(description.ct_handle)?;
        let descriptor = MemoryDescriptor {
            region,
            options: description.options,
            eq: description.eq_handle,
            ct: description.ct_handle,
        };
        interface.mds.insert(interface.limits.max_mds, Rc::new(descriptor))
    }

    /// `PtlMDRelease`. Operations in flight keep their data of the descriptor.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the memory descriptor does not exist.
    pub fn md_release(&mut self, md: Handle) -> Result<()> {
        self.owner(Kind::Md, md)?.mds.remove(md).map(|_| ())
    }

    /// `PtlLEAppend`, `PtlMEAppend` and `PtlMEAppendHandlers`; `region` is the described memory.
    pub(crate) fn append(
        &mut self,
        ni: Handle,
        new: NewEntry,
        list: u64,
        region: Region,
        handlers: Option<Handlers>,
    ) -> Result<Handle> {
        let list = List::from_raw(list).ok_or(ReturnCode::ArgInvalid)?;
        let mut entry = self.entry(ni, new, region)?;
        entry.handlers = handlers.map(Rc::new);
        let interface = self.ni(ni)?;
        let (index, limits) = (interface.index, &*interface.limits);
        let (most_in_list, most_entries) = (limits.max_list_size as usize, limits.max_entries);
        let portal = interface.portal(new.pt_index)?;
        if portal.list_mut(list).len() >= most_in_list {
            return Err(ReturnCode::ListTooLong);
        }
        if interface.entries.len() >= most_entries as usize {
            return Err(ReturnCode::NoSpace);
        }
        entry.list = list;
        let handle = interface.entries.insert(most_entries, Box::new(entry))?;
        self.link(index, handle, list);
        Ok(handle)
    }

    /// `PtlTriggeredMEAppend`: creates the entry, which joins its list once the counter reaches the threshold.
    pub(crate) fn append_triggered(
        &mut self,
        ni: Handle,
        new: NewEntry,
        list: u64,
        region: Region,
        handlers: Option<Handlers>,
        trigger: (Handle, u64),
    ) -> Result<Handle> {
        let list = List::from_raw(list).ok_or(ReturnCode::ArgInvalid)?;
        let mut entry = self.entry(ni, new, region)?;
        (entry.list, entry.handlers) = (list, handlers.map(Rc::new));
        let interface = self.ni(ni)?;
        let (index, limit) = (interface.index, interface.limits.max_entries);
        let handle = interface.entries.insert(limit, Box::new(entry))?;
        if let Err(code) = self.trigger(index, trigger.0, trigger.1, TriggeredOp::Append(handle, list)) {
            self.ni(ni)?.entries.remove(handle)?;
            return Err(code);
        }
        Ok(handle)
    }

    /// Returns the interface of a live list entry.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the entry does not exist.
    pub fn entry_interface(&mut self, entry: Handle) -> Result<u8> {
        let interface = self.owner(Kind::Entry, entry)?;
        interface.entries.get(entry)?;
        Ok(interface.index)
    }

    /// `PtlLESearch` and `PtlMESearch`.
    pub(crate) fn search(&mut self, ni: Handle, new: NewEntry, op: u64, region: Region) -> Result<()> {
        let op = SearchOp::from_raw(op).ok_or(ReturnCode::ArgInvalid)?;
        let entry = self.entry(ni, new, region)?;
        let index = self.ni(ni)?.index;
        self.search_unexpected(index, &entry, op)
    }

    /// Returns true if a search would find nothing; false if it would be refused.
    pub(crate) fn finds_nothing(&mut self, ni: Handle, new: NewEntry, region: Region) -> bool {
        let entry = self.entry(ni, new, region);
        let index = self.ni(ni).map(|interface| interface.index);
        match (index, entry) {
            (Ok(index), Ok(entry)) => self.find_unexpected(index, &entry, 0).is_none(),
            _ => false,
        }
    }

    fn entry(&mut self, ni: Handle, new: NewEntry, region: Region) -> Result<Entry> {
        let NewEntry { me: description, matching, pt_index, user_ptr } = new;
        let interface = self.ni(ni)?;
        let le = description.le;
        let mask = if matching { me::MASK } else { ptl::LE_OPTIONS_MASK };
        if interface.matching() != matching || le.options & !mask != 0 {
            return Err(ReturnCode::ArgInvalid);
        }
        interface.portal(pt_index)?;
        interface.check_ct(le.ct_handle)?;
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
            region,
            local_offset: 0,
            holes: None,
            linked: false,
            in_flight: 0,
            unexpected: 0,
            handlers: None,
        })
    }

    /// Returns the interface of a live counting event.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the counter does not exist.
    pub fn ct_interface(&mut self, ct: Handle) -> Result<u8> {
        let interface = self.owner(Kind::Ct, ct)?;
        interface.counters.get(ct)?;
        Ok(interface.index)
    }

    /// `PtlEQAlloc`: allocates a queue for `count` events.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open; [`ReturnCode::NoSpace`] if it has its maximum of
    /// queues, or if `count` is too large.
    pub fn eq_alloc(&mut self, ni: Handle, count: u64) -> Result<Handle> {
        let interface = self.ni(ni)?;
        let count = usize::try_from(count).ok().filter(|count| *count < 1 << 24).ok_or(ReturnCode::NoSpace)?;
        interface.queues.insert(interface.limits.max_eqs, EventRing::new(count))
    }

    /// `PtlEQFree`.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the queue does not exist.
    pub fn eq_free(&mut self, eq: Handle) -> Result<()> {
        self.owner(Kind::Eq, eq)?.queues.remove(eq).map(|_| ())
    }

    /// `PtlEQGet`: takes the oldest event, and returns it with true if earlier events were lost. `None` if the queue is
    /// empty.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the queue does not exist.
    pub fn eq_take(&mut self, eq: Handle) -> Result<Option<(Event, bool)>> {
        Ok(self.owner(Kind::Eq, eq)?.queues.get_mut(eq)?.take())
    }

    /// Returns events that [`Portals::eq_take`] takes next, oldest first, unless the queue overflows or is freed. May
    /// omit later events.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the queue does not exist.
    pub fn eq_known(&mut self, eq: Handle) -> Result<impl Iterator<Item = &Event>> {
        Ok(self.owner(Kind::Eq, eq)?.queues.get_mut(eq)?.known())
    }

    /// Returns the interface of a live event queue.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the queue does not exist.
    pub fn eq_interface(&mut self, eq: Handle) -> Result<u8> {
        let interface = self.owner(Kind::Eq, eq)?;
        interface.queues.get(eq)?;
        Ok(interface.index)
    }

    /// `PtlCTAlloc`.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the interface is not open; [`ReturnCode::NoSpace`] if it has its maximum of
    /// counters.
    pub fn ct_alloc(&mut self, ni: Handle) -> Result<Handle> {
        let interface = self.ni(ni)?;
        interface.counters.insert(interface.limits.max_cts, Counter::default())
    }

    /// `PtlCTFree`. Discards the triggered operations that wait for the counter.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the counter does not exist.
    pub fn ct_free(&mut self, ct: Handle) -> Result<()> {
        let interface = self.owner(Kind::Ct, ct)?;
        let counter = interface.counters.remove(ct)?;
        interface.triggered -= counter.waiting();
        Ok(())
    }

    /// `PtlCTCancelTriggered`.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the counter does not exist.
    pub fn ct_cancel(&mut self, ct: Handle) -> Result<()> {
        let interface = self.owner(Kind::Ct, ct)?;
        let cancelled = interface.counters.get_mut(ct)?.cancel();
        interface.triggered -= cancelled;
        Ok(())
    }

    /// `PtlCTGet`.
    ///
    /// # Errors
    /// [`ReturnCode::ArgInvalid`] if the counter does not exist.
    pub fn ct_value(&mut self, ct: Handle) -> Result<CtEvent> {
        Ok(self.owner(Kind::Ct, ct)?.counters.get(ct)?.value)
    }

    /// `PtlCTSet`.
    pub(crate) fn ct_set(&mut self, ct: Handle, value: CtEvent) -> Result<()> {
        let index = self.ct_interface(ct)?;
        self.set_counter(index, ct, value);
        Ok(())
    }

    /// `PtlCTInc`.
    pub(crate) fn ct_inc(&mut self, ct: Handle, amount: CtEvent) -> Result<()> {
        let index = self.ct_interface(ct)?;
        check_increment(amount)?;
        self.count(index, ct, amount);
        Ok(())
    }
}

/// Checks an increment, in which only one field may be set (Portals 4.3 §3.14.7).
///
/// # Errors
/// [`ReturnCode::ArgInvalid`] if both are set.
pub fn check_increment(amount: CtEvent) -> Result<()> {
    if amount.success != 0 && amount.failure != 0 { Err(ReturnCode::ArgInvalid) } else { Ok(()) }
}
