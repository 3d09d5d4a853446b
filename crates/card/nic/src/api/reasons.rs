// SPDX-License-Identifier: Apache-2.0
//! Diagnostics of failed library calls: the invalid argument, and the reason.
//!
//! A call returns only its return code, so accepted calls cost nothing. After a failure, [`Examination`] repeats the
//! call's checks on the unchanged objects, argument by argument, and keeps the first failed check.

use std::fmt;

use abi::portals::{self as ptl, AckReq, AtomicOp, CtEvent, Datatype, Handle, List, Me, Process, SearchOp, me};

use crate::atomic::{self, AtomicSpec};
use crate::card::Nic;
use crate::portals::slab::{self, Kind};
use crate::portals::{MemoryDescriptor, index_of_options};

/// Maximum number of events of a queue.
const MOST_EVENTS: u64 = (1 << 24) - 1;

/// Reason for a failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Name of the argument in the header; empty if the reason is not an argument.
    pub argument: String,
    /// Value of the argument, and the violated bound.
    pub why: String,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.argument.is_empty() { f.write_str(&self.why) } else { write!(f, "{}: {}", self.argument, self.why) }
    }
}

/// Examination of a failed call. Each method checks one argument, given by name.
pub struct Examination<'a> {
    card: &'a mut Nic,
    found: Option<Reason>,
}

/// Kinds of objects that arguments name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Object {
    /// `ptl_handle_md_t`
    Md,
    /// `ptl_handle_le_t`, `ptl_handle_me_t`
    Entry,
    /// `ptl_handle_eq_t`
    Eq,
    /// `ptl_handle_ct_t`
    Ct,
    /// `ptl_hpu_md_h`
    Hpu,
}

impl Object {
    fn kind(self) -> Kind {
        match self {
            Object::Md => Kind::Md,
            Object::Entry => Kind::Entry,
            Object::Eq => Kind::Eq,
            Object::Ct => Kind::Ct,
            Object::Hpu => Kind::Hpu,
        }
    }
}

/// Returns the name of the object kind in the bits of a handle.
fn name_of(handle: Handle) -> &'static str {
    match handle >> 28 {
        1 => "an interface",
        3 => "a memory descriptor",
        4 => "a list entry",
        5 => "an event queue",
        6 => "a counter",
        7 => "a piece of HPU memory",
        _ => "nothing",
    }
}

/// Formats a number of bytes, in larger units if exact.
fn bytes(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 && bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes >= 1 << 10 && bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} B"),
    }
}

/// Formats a count with its noun: "1 entry is", "2 entries are".
fn counted(number: usize, [one, many]: [&str; 2]) -> String {
    if number == 1 { format!("1 {one} is") } else { format!("{number} {many} are") }
}

/// Entries of lists, for [`counted`].
const ENTRIES: [&str; 2] = ["entry", "entries"];
/// Messages, for [`counted`].
const MESSAGES: [&str; 2] = ["message", "messages"];

impl<'a> Examination<'a> {
    /// Starts the examination of a call to this card.
    pub fn of(card: &'a mut Nic) -> Examination<'a> {
        Examination { card, found: None }
    }

    /// Returns the first invalid argument.
    pub fn found(self) -> Option<Reason> {
        self.found
    }

    /// Returns true if all checks so far passed.
    pub fn is_right(&self) -> bool {
        self.found.is_none()
    }

    /// Records an invalid argument, unless one is already recorded.
    pub fn wrong(&mut self, argument: &str, why: impl Into<String>) {
        if self.is_right() {
            self.found = Some(Reason { argument: argument.to_owned(), why: why.into() });
        }
    }

    /// Records an invalid argument if `is_wrong` is true.
    pub fn refuse_if(&mut self, is_wrong: bool, argument: &str, why: impl FnOnce() -> String) {
        if is_wrong && self.is_right() {
            self.wrong(argument, why());
        }
    }

    /// Checks for an open interface.
    pub fn ni(&mut self, argument: &str, ni: Handle) {
        if self.card.pipeline.portals.ni(ni).is_err() {
            let why = match ni >> 28 {
                _ if ni == ptl::INVALID_HANDLE => "is PTL_INVALID_HANDLE".to_owned(),
                1 => format!("{ni:#x} is no open interface: PtlNIFini has closed it, or PtlNIInit was not called"),
                _ => format!("{ni:#x} is {}, no interface", name_of(ni)),
            };
            self.wrong(argument, why);
        }
    }

    /// Checks for a live object of this kind.
    pub fn object(&mut self, argument: &str, object: Object, handle: Handle) {
        let (kind, portals) = (object.kind(), &mut self.card.pipeline.portals);
        let interface = slab::interface_of(kind, handle).and_then(|index| portals.interface(index));
        let (lives, was_made) = match (object, interface) {
            (_, None) => (false, false),
            (Object::Md, Some(ni)) => (ni.mds.get(handle).is_ok(), ni.mds.has_made(handle)),
            (Object::Entry, Some(ni)) => (ni.entries.get(handle).is_ok(), ni.entries.has_made(handle)),
            (Object::Eq, Some(ni)) => (ni.queues.get(handle).is_ok(), ni.queues.has_made(handle)),
            (Object::Ct, Some(ni)) => (ni.counters.get(handle).is_ok(), ni.counters.has_made(handle)),
            (Object::Hpu, Some(_)) => (self.card.spin.memory_range(handle).is_ok(), true),
        };
        if lives {
            return;
        }
        let expected = name_of((kind as u32) << 28);
        let noun = expected.split_once(' ').map_or(expected, |(_, noun)| noun);
        let why = match handle {
            ptl::INVALID_HANDLE => "is PTL_INVALID_HANDLE".to_owned(),
            ptl::EQ_NONE => "is PTL_EQ_NONE".to_owned(),
            ptl::CT_NONE => "is PTL_CT_NONE".to_owned(),
            _ if handle >> 28 != kind as u32 => format!("{handle:#x} is {}, not {expected}", name_of(handle)),
            _ if was_made => format!("there is no {noun} {handle:#x} any more: it was freed or unlinked"),
            _ => format!("there is no {noun} {handle:#x}: its interface is closed, or it was never made"),
        };
        self.wrong(argument, why);
    }

    /// Checks for an object of an open interface, or `none`.
    fn object_of(&mut self, ni: Handle, argument: &str, object: Object, handle: Handle, none: Handle) {
        if handle == none {
            return;
        }
        self.object(argument, object, handle);
        let index = self.card.pipeline.portals.ni(ni).map(|ni| ni.index).ok();
        let is_elsewhere = slab::interface_of(object.kind(), handle) != index;
        self.refuse_if(is_elsewhere, argument, || format!("{handle:#x} is {} of another interface", name_of(handle)));
    }

    /// Checks for an event queue of an interface, or `PTL_EQ_NONE`.
    pub fn eq_of(&mut self, ni: Handle, argument: &str, eq: Handle) {
        self.object_of(ni, argument, Object::Eq, eq, ptl::EQ_NONE);
    }

    /// Checks for a counter of an interface, or `PTL_CT_NONE`.
    pub fn ct_of(&mut self, ni: Handle, argument: &str, ct: Handle) {
        self.object_of(ni, argument, Object::Ct, ct, ptl::CT_NONE);
    }

    /// Checks options against the `known` ones.
    pub fn options(&mut self, argument: &str, options: u32, known: u32) {
        let unknown = options & !known;
        self.refuse_if(unknown != 0, argument, || format!("{options:#x} has unknown options: {unknown:#x}"));
    }

    /// Checks for an allocated portal table entry.
    pub fn portal(&mut self, ni: Handle, argument: &str, index: u32) {
        let Ok(interface) = self.card.pipeline.portals.ni(ni) else { return };
        if interface.portal(index).is_err() {
            self.wrong(argument, format!("portal table entry {index} is not allocated (PtlPTAlloc)"));
        }
    }

    /// `PtlNIInit`
    pub fn ni_init(&mut self, iface: u32, options: u32, pid: u32) {
        let own = self.card.pipeline.portals.pid;
        self.refuse_if(iface != ptl::IFACE_DEFAULT, "iface", || {
            format!("{iface} is not PTL_IFACE_DEFAULT, the only one")
        });
        self.options("options", options, ptl::ni::MASK);
        self.refuse_if(index_of_options(options).is_none(), "options", || {
            format!(
                "{options:#x} must have exactly one of PTL_NI_MATCHING and PTL_NI_NO_MATCHING, and one of PTL_NI_LOGICAL and \
                 PTL_NI_PHYSICAL"
            )
        });
        self.refuse_if(pid > ptl::PID_MAX && pid != ptl::ID_ANY, "pid", || {
            format!("{pid} is above PTL_PID_MAX, {}", ptl::PID_MAX)
        });
        let is_taken = self.card.pipeline.portals.is_pid_of_another(pid);
        self.refuse_if(is_taken, "pid", || format!("{pid} is that of another process of this node"));
        self.refuse_if(pid != ptl::ID_ANY && pid != own, "pid", || {
            format!("{pid}, but the process has pid {own} on its other interfaces")
        });
    }

    /// `PtlSetMap`. `mapping` is `None` if it cannot be read; `most` is the maximum number of processes of a job.
    pub fn set_map(&mut self, ni: Handle, size: u64, most: u64, mapping: Option<&[Process]>) {
        self.logical(ni);
        self.refuse_if(size > most, "map_size", || format!("{size} processes, at most {most} in this job"));
        self.refuse_if(mapping.is_none(), "mapping", || "its memory cannot be read".to_owned());
        let portals = &mut self.card.pipeline.portals;
        let own = Process { nid: portals.nid(), pid: portals.pid };
        let has_map = portals.ni(ni).is_ok_and(|interface| interface.map.is_some());
        let lacks_own = mapping.is_some_and(|mapping| !mapping.contains(&own));
        self.refuse_if(lacks_own, "mapping", || format!("lacks this process (nid {}, pid {})", own.nid, own.pid));
        self.refuse_if(has_map, "ni_handle", || "the interface has a map already, which stays".to_owned());
    }

    /// Checks for a logically addressed interface.
    pub fn logical(&mut self, ni: Handle) {
        self.ni("ni_handle", ni);
        let is_physical = self.card.pipeline.portals.ni(ni).is_ok_and(|interface| !interface.logical());
        self.refuse_if(is_physical, "ni_handle", || "the interface is PTL_NI_PHYSICAL and has no map".to_owned());
    }

    /// Checks that a logically addressed interface has a map.
    pub fn mapped(&mut self, argument: &str, ni: Handle) {
        self.ni(argument, ni);
        let lacks = self.card.pipeline.portals.ni(ni).is_ok_and(|ni| ni.logical() && ni.map.is_none());
        self.refuse_if(lacks, argument, || NO_MAP.to_owned());
    }

    /// `PtlPTAlloc`
    pub fn pt_alloc(&mut self, ni: Handle, options: u32, eq: Handle, wanted: u32) {
        self.ni("ni_handle", ni);
        self.options("options", options, ptl::pt::MASK);
        self.eq_of(ni, "eq_handle", eq);
        self.refuse_if(options & ptl::pt::FLOWCTRL != 0 && eq == ptl::EQ_NONE, "eq_handle", || {
            "is PTL_EQ_NONE, and PTL_PT_FLOWCTRL needs a queue".to_owned()
        });
        let Ok(interface) = self.card.pipeline.portals.ni(ni) else { return };
        let last = interface.limits.max_pt_index;
        let is_taken = wanted != ptl::PT_ANY && interface.portal(wanted).is_ok();
        let full = wanted == ptl::PT_ANY && interface.portals.iter().flatten().count() as i64 > i64::from(last);
        self.refuse_if(full, "pt_index_req", || format!("all {} entries of the portal table are in use", last + 1));
        self.pt_index("pt_index_req", ni, wanted);
        self.refuse_if(is_taken, "pt_index_req", || format!("portal table entry {wanted} is in use"));
    }

    /// Checks for a valid index of a portal table.
    fn pt_index(&mut self, argument: &str, ni: Handle, index: u32) {
        let Ok(interface) = self.card.pipeline.portals.ni(ni) else { return };
        let last = interface.limits.max_pt_index;
        self.refuse_if(index != ptl::PT_ANY && i64::from(index) > i64::from(last), argument, || {
            format!("{index} is above max_pt_index, {last}")
        });
    }

    /// `PtlPTFree`
    pub fn pt_free(&mut self, ni: Handle, index: u32) {
        self.ni("ni_handle", ni);
        self.portal(ni, "pt_index", index);
        let Ok(portal) = self.card.pipeline.portals.ni(ni).and_then(|interface| interface.portal(index)) else {
            return;
        };
        let (linked, under_way) = (portal.priority.len() + portal.overflow.len(), portal.in_flight);
        self.refuse_if(linked > 0, "pt_index", || {
            format!("{} in the lists of portal table entry {index}", counted(linked, ENTRIES))
        });
        self.refuse_if(under_way > 0, "pt_index", || {
            format!("{} under way to portal table entry {index}", counted(under_way as usize, MESSAGES))
        });
    }

    /// `PtlMDBind`
    pub fn md_bind(&mut self, ni: Handle, md: ptl::Md) {
        self.ni("ni_handle", ni);
        self.options("md->options", md.options, ptl::md::MASK);
        self.eq_of(ni, "md->eq_handle", md.eq_handle);
        self.ct_of(ni, "md->ct_handle", md.ct_handle);
        self.iovec(ni, "md->length", md.length, md.options & ptl::md::IOVEC != 0);
        let room = |ni: &crate::portals::Interface| (ni.mds.len(), ni.limits.max_mds);
        self.room(ni, "memory descriptors", "max_mds", room);
    }

    /// Checks the length of an array of `ptl_iovec_t`.
    fn iovec(&mut self, ni: Handle, argument: &str, length: u64, is_array: bool) {
        let Ok(interface) = self.card.pipeline.portals.ni(ni) else { return };
        let most = interface.limits.max_iovecs;
        self.refuse_if(is_array && length > most as u64, argument, || {
            format!("{length} elements of PTL_IOVEC, at most {most} (max_iovecs)")
        });
    }

    /// Checks for room for another object of an interface.
    fn room(
        &mut self,
        ni: Handle,
        objects: &str,
        limit: &str,
        of: impl FnOnce(&crate::portals::Interface) -> (usize, i32),
    ) {
        let Ok(interface) = self.card.pipeline.portals.ni(ni) else { return };
        let (there, most) = of(interface);
        self.refuse_if(there >= usize::try_from(most).unwrap_or(0), "", || {
            format!("all {most} {objects} of the interface are in use ({limit})")
        });
    }

    /// `PtlEQAlloc`
    pub fn eq_alloc(&mut self, ni: Handle, count: u64) {
        self.ni("ni_handle", ni);
        self.refuse_if(count > MOST_EVENTS, "count", || format!("{count} events, at most {MOST_EVENTS}"));
        self.room(ni, "event queues", "max_eqs", |ni| (ni.queues.len(), ni.limits.max_eqs));
    }

    /// `PtlCTAlloc`
    pub fn ct_alloc(&mut self, ni: Handle) {
        self.ni("ni_handle", ni);
        self.room(ni, "counters", "max_cts", |ni| (ni.counters.len(), ni.limits.max_cts));
    }

    /// Checks an increment, in which only one field may be set.
    pub fn increment(&mut self, CtEvent { success, failure }: CtEvent) {
        self.refuse_if(success != 0 && failure != 0, "increment", || {
            format!("success is {success} and failure {failure}: one of them must be 0")
        });
    }

    /// Checks the counter of a triggered operation on an object of interface `index`.
    pub fn trigger(&mut self, ct: Handle, of: Option<u8>) {
        self.object("trig_ct_handle", Object::Ct, ct);
        let index = slab::interface_of(Kind::Ct, ct);
        self.refuse_if(of.is_some() && index != of, "trig_ct_handle", || {
            format!("{ct:#x} is a counter of another interface than the operation")
        });
        let Some(interface) = index.and_then(|index| self.card.pipeline.portals.interface(index)) else { return };
        let (waiting, most) = (interface.triggered, interface.limits.max_triggered_ops);
        self.refuse_if(waiting >= most as usize, "", || {
            format!("{waiting} triggered operations wait already, at most {most} (max_triggered_ops)")
        });
    }

    /// Checks an entry for one of the lists: an ME, or an LE in an ME. `list` is `None` for a search.
    pub fn entry(&mut self, ni: Handle, index: u32, me: &Me, is_me: bool, list: Option<u64>) {
        let (ni_name, name) = ("ni_handle", if is_me { "me" } else { "le" });
        let field = |field: &str| format!("{name}->{field}");
        self.ni(ni_name, ni);
        let is_matching = self.card.pipeline.portals.ni(ni).is_ok_and(|interface| interface.matching());
        self.refuse_if(is_matching != is_me, ni_name, || match is_me {
            true => "the interface is PTL_NI_NO_MATCHING: its entries are LEs".to_owned(),
            false => "the interface is PTL_NI_MATCHING: its entries are MEs".to_owned(),
        });
        self.refuse_if(list.is_some_and(|list| List::from_raw(list).is_none()), "ptl_list", || {
            format!("{} is neither PTL_PRIORITY_LIST nor PTL_OVERFLOW_LIST", list.unwrap_or(0))
        });
        let known = if is_me { me::MASK } else { ptl::LE_OPTIONS_MASK };
        self.options(&field("options"), me.le.options, known);
        self.portal(ni, "pt_index", index);
        self.ct_of(ni, &field("ct_handle"), me.le.ct_handle);
        self.iovec(ni, &field("length"), me.le.length, me.le.options & me::IOVEC != 0);
        let (Some(list), Ok(interface)) = (list.and_then(List::from_raw), self.card.pipeline.portals.ni(ni)) else {
            return;
        };
        let most = interface.limits.max_list_size;
        let length = interface.portal(index).map_or(0, |portal| portal.list_mut(list).len());
        self.refuse_if(length >= most as usize, "ptl_list", || {
            format!("the list has {length} entries, at most {most} (max_list_size)")
        });
        self.room(ni, "entries", "max_entries", |ni| (ni.entries.len(), ni.limits.max_entries));
    }

    /// Checks the mode of a search.
    pub fn search(&mut self, op: u64) {
        self.refuse_if(SearchOp::from_raw(op).is_none(), "ptl_search_op", || {
            format!("{op} is neither PTL_SEARCH_ONLY nor PTL_SEARCH_DELETE")
        });
    }

    /// Checks for an entry that can be unlinked.
    pub fn unlink(&mut self, argument: &str, handle: Handle) {
        self.object(argument, Object::Entry, handle);
        let Ok(interface) = self.card.pipeline.portals.owner(Kind::Entry, handle) else { return };
        let Ok(entry) = interface.entries.get(handle) else { return };
        let (linked, under_way, headers) = (entry.linked, entry.in_flight, entry.unexpected);
        self.refuse_if(!linked, argument, || {
            format!("entry {handle:#x} is in no list: it was unlinked by a message, or waits for its trigger")
        });
        self.refuse_if(under_way > 0, argument, || {
            format!("{} under way to entry {handle:#x}", counted(under_way as usize, MESSAGES))
        });
        self.refuse_if(headers > 0, argument, || {
            format!(
                "{} still on the unexpected list, with entry {handle:#x}",
                counted(headers as usize, ["header", "headers"])
            )
        });
    }

    /// Checks descriptor memory and target of a transfer.
    pub fn transfer(&mut self, md: (&str, Handle), offset: (&str, u64), length: u64, target: Process, pt_index: u32) {
        self.object(md.0, Object::Md, md.1);
        let Ok(interface) = self.card.pipeline.portals.owner(Kind::Md, md.1) else { return };
        let (ni, most) = (interface.handle(), interface.limits.max_msg_size);
        let room = interface.mds.get(md.1).map_or(0, |md| md.region.length());
        let fits = offset.1.checked_add(length).is_some_and(|end| end <= room);
        self.refuse_if(!fits, "length", || {
            format!("{} {} + {length} B exceeds the descriptor's {room} B", offset.0, offset.1)
        });
        self.process(ni, target);
        self.refuse_if(length > most, "length", || format!("{length} B, at most {most} (max_msg_size)"));
        self.refuse_if(pt_index == ptl::PT_ANY, "pt_index", || "is PTL_PT_ANY".to_owned());
        self.pt_index("pt_index", ni, pt_index);
    }

    /// Checks for a process that an interface can address.
    fn process(&mut self, ni: Handle, target: Process) {
        let Ok(interface) = self.card.pipeline.portals.ni(ni) else { return };
        if interface.locate(target).is_some() {
            return;
        }
        let why = match (interface.logical(), &interface.map) {
            (true, None) => NO_MAP.to_owned(),
            (true, Some(_)) if target.nid == ptl::ID_ANY => "is PTL_RANK_ANY".to_owned(),
            (true, Some(map)) => format!("rank {} of {}", target.nid, map.len()),
            (false, _) => "PTL_NID_ANY and PTL_PID_ANY name no process".to_owned(),
        };
        self.wrong("target_id", why);
    }

    /// Checks an acknowledgement request, and that the descriptor has a destination for it.
    pub fn ack(&mut self, md: Handle, ack: u64) {
        let Some(request) = AckReq::from_raw(ack) else {
            return self.wrong("ack_req", format!("{ack} is no ptl_ack_req_t"));
        };
        let found = self.card.pipeline.portals.owner(Kind::Md, md).and_then(|interface| interface.mds.get(md).cloned());
        let Ok(descriptor) = found else { return };
        let MemoryDescriptor { eq, ct, .. } = &*descriptor;
        self.refuse_if(request == AckReq::Ack && *eq == ptl::EQ_NONE, "ack_req", || {
            "PTL_ACK_REQ needs an event queue, and the descriptor has none".to_owned()
        });
        self.refuse_if(matches!(request, AckReq::Ct | AckReq::Oc) && *ct == ptl::CT_NONE, "ack_req", || {
            format!("{} needs a counter, and the descriptor has none", request.c_name())
        });
    }

    /// Checks the operation of an atomic: `fetches` for operations that return data, `swaps` for `PtlSwap`.
    pub fn atomic(&mut self, md: Handle, length: u64, (op, datatype): (u64, u64), fetches: bool, swaps: bool) {
        let Some(operation) = AtomicOp::from_raw(op) else {
            return self.wrong("operation", format!("{op} is no ptl_op_t"));
        };
        let Some(kind) = Datatype::from_raw(datatype) else {
            return self.wrong("datatype", format!("{datatype} is no ptl_datatype_t"));
        };
        let spec = AtomicSpec { op: operation, datatype: kind };
        let item = atomic::size(kind) as u64;
        self.refuse_if(spec.is_plain() == swaps, "operation", || match swaps {
            true => format!("{} is not for PtlSwap, but for PtlAtomic and PtlFetchAtomic", operation.c_name()),
            false => format!("{} is for PtlSwap only", operation.c_name()),
        });
        self.refuse_if(!spec.is_defined(), "datatype", || {
            format!("{} is not defined for {}", operation.c_name(), kind.c_name())
        });
        self.refuse_if(spec.is_conditional() && length != item, "length", || {
            format!("{length} B: {} takes one item of {item} B", operation.c_name())
        });
        let Ok(interface) = self.card.pipeline.portals.owner(Kind::Md, md) else { return };
        let (most, name) = match fetches {
            true => (interface.limits.max_fetch_atomic_size, "max_fetch_atomic_size"),
            false => (interface.limits.max_atomic_size, "max_atomic_size"),
        };
        self.refuse_if(length > most, "length", || format!("{length} B, at most {most} ({name})"));
    }

    /// Checks for two objects of the same interface.
    pub fn same_interface(&mut self, argument: &str, object: Object, one: Handle, other: Handle) {
        let of = |handle| slab::interface_of(object.kind(), handle);
        self.refuse_if(of(one) != of(other), argument, || {
            format!("{other:#x} is {} of another interface than {one:#x}", name_of(other))
        });
    }

    /// `PtlNIHandle`: checks for any live object.
    pub fn any(&mut self, argument: &str, handle: Handle) {
        match handle >> 28 {
            1 => self.ni(argument, handle),
            3 => self.object(argument, Object::Md, handle),
            4 => self.object(argument, Object::Entry, handle),
            5 => self.object(argument, Object::Eq, handle),
            6 => self.object(argument, Object::Ct, handle),
            7 => self.object(argument, Object::Hpu, handle),
            _ if handle == ptl::INVALID_HANDLE => self.wrong(argument, "is PTL_INVALID_HANDLE"),
            _ => self.wrong(argument, format!("{handle:#x} names no object")),
        }
    }

    /// Checks for a card with HPUs.
    pub fn hpus(&mut self) {
        let kind = self.card.pipeline.machine.nic.kind;
        self.refuse_if(!self.card.pipeline.machine.nic.runs_handlers(), "", || {
            format!("this card has no HPUs (nic.kind is {}; --nic spin has)", kind.name())
        });
    }

    /// `PtlHPUAllocMem`
    pub fn hpu_alloc(&mut self, ni_argument: &str, ni: Handle, length: u64) {
        self.ni(ni_argument, ni);
        self.hpus();
        self.refuse_if(length == 0, "length", || "is 0".to_owned());
        let most = crate::accelerator::most_memory(&self.card.pipeline.machine.accelerator, 0);
        let most = u64::from(self.card.pipeline.portals.quota().memory(most));
        self.refuse_if(length > most, "length", || {
            format!("HPU memory: {} asked, {} on this card", bytes(length), bytes(most))
        });
        let used: u64 = self.card.spin.allocated();
        self.refuse_if(true, "length", || {
            format!(
                "HPU memory: {} asked, and no free piece is as long: {} of {} are in use beside the program's data",
                bytes(length),
                bytes(used),
                bytes(most)
            )
        });
    }

    /// `PtlHPUFreeMem` of live memory.
    pub fn hpu_free(&mut self, memory: Handle) {
        self.object("hpu_mem", Object::Hpu, memory);
        self.refuse_if(true, "hpu_mem", || {
            format!("{memory:#x} is the memory of an entry's handlers: unlink that first")
        });
    }

    /// Checks the handlers of an ME and their parameters.
    pub fn handlers(&mut self, ni: Handle, me: &Me) {
        self.ni("ni_handle", ni);
        self.hpus();
        let accelerator = &self.card.pipeline.machine.accelerator;
        let (most_state, most_header) =
            (u64::from(accelerator.max_initial_state()), u64::from(accelerator.max_user_hdr()));
        let Some(program) = self.card.spin.accelerator.program().cloned() else {
            return self.wrong(
                "",
                "the program has no device code for this card: spincc has not linked it, or has found no __handler function",
            );
        };
        for (name, address) in [
            ("me->header_handler", me.header_handler),
            ("me->payload_handler", me.payload_handler),
            ("me->completion_handler", me.completion_handler),
        ] {
            let is_unknown = address != 0 && program.device().handler(address).is_none();
            self.refuse_if(is_unknown, name, || format!("no __handler function of this program is at {address:#x}"));
        }
        let length = if me.hpu_initial_state == 0 { 0 } else { me.hpu_initial_state_length };
        self.refuse_if(length > most_state, "me->hpu_initial_state_length", || {
            format!("{length} B, at most {most_state} (max_initial_state)")
        });
        self.refuse_if(me.user_hdr_size > most_header, "me->user_hdr_size", || {
            format!("{} B, at most {most_header} (max_user_hdr_size)", me.user_hdr_size)
        });
        let has_memory = !matches!(me.hpu_memory, 0 | ptl::INVALID_HANDLE);
        if has_memory {
            self.object("me->hpu_memory", Object::Hpu, me.hpu_memory);
        }
        let room = self.card.spin.memory_range(me.hpu_memory).map_or(0, |memory| u64::from(memory.length));
        self.refuse_if(length > room, "me->hpu_initial_state_length", || match has_memory {
            true => format!("{length} B do not fit into the {room} B of me->hpu_memory"),
            false => format!("{length} B, and there is no me->hpu_memory for them (PtlHPUAllocMem)"),
        });
        let is_array = me.le.options & ptl::ME_HANDLER_IOVEC != 0;
        self.iovec(ni, "me->handler_host_mem_length", me.handler_host_mem_length, is_array);
    }
}

impl Nic {
    /// Returns the reason for which a counter does not count, if an entry or descriptor names it without counting
    /// options.
    pub fn silence(&mut self, ct: Handle) -> Option<String> {
        const COUNTED: u32 = ptl::md::EVENT_CT_SEND | ptl::md::EVENT_CT_REPLY | ptl::md::EVENT_CT_ACK;
        let interface = self.pipeline.portals.owner(Kind::Ct, ct).ok()?;
        let uncounted = interface.counters.get(ct).ok()?.uncounted;
        if uncounted > 0 {
            let (messages, have) = if uncounted == 1 { ("message", "has") } else { ("messages", "have") };
            return Some(format!(
                "it has not counted {uncounted} {messages} that {have} ended on entries with this counter, which lack \
                 PTL_ME_EVENT_CT_COMM"
            ));
        }
        let is_silent = |md: &MemoryDescriptor| md.ct == ct && !md.has(COUNTED);
        interface.mds.iter().find(|(_, md)| is_silent(md)).map(|(handle, _)| {
            format!(
                "memory descriptor {handle:#x} has this counter, but none of PTL_MD_EVENT_CT_SEND, PTL_MD_EVENT_CT_REPLY and \
                 PTL_MD_EVENT_CT_ACK"
            )
        })
    }
}

/// Reason for which no process has a rank.
const NO_MAP: &str = "no map: spin_set_map (PtlSetMap) was not called";
