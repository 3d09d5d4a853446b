// SPDX-License-Identifier: Apache-2.0
//! Lists of entries and unexpected headers (Portals 4.3 §3.11, §3.12.3), counters and their triggered operations
//! (§3.14, §3.17).
//!
//! They form one module because they depend on each other: a counter that reaches a threshold appends an entry, which
//! takes an unexpected header, which changes a counter.

use std::collections::VecDeque;

use abi::portals::{self as ptl, CtEvent, Event, EventKind, Handle, List, NiFail, ReturnCode, SearchOp, me};

use super::effect::{Effect, InternalError, Notice};
use super::entry::Entry;
use super::process::{Portals, plain_event};
use super::slab::Kind;
use super::triggered::TriggeredOp;
use super::unexpected::{Claim, Offered};
use crate::atomic::MAX_OPERAND;
use crate::message::{MessageId, Request, RequestKind};

impl Portals {
    /// Offers a new priority entry to the unexpected headers, oldest first.
    fn offer_to_unexpected(&mut self, index: u8, entry: &mut Entry) -> Offered {
        let counts_up = entry.options & (me::MANAGE_LOCAL | me::LOCAL_INC_UH_RLENGTH)
            == me::MANAGE_LOCAL | me::LOCAL_INC_UH_RLENGTH;
        while let Some((position, length)) = self.find_unexpected(index, entry, 0) {
            if counts_up {
                entry.local_offset = entry.local_offset.saturating_add(length);
            }
            // Without LOCAL_INC_UH_RLENGTH a header takes no room: min_free applies to later messages.
            let used_up = entry.has(me::USE_ONCE) || counts_up && entry.used_up();
            self.claim(index, entry.pt_index, position, Claim::of(index, entry, used_up));
            if used_up {
                return Offered::UsedUp;
            }
        }
        Offered::Link
    }

    /// `PtlMESearch` and `PtlLESearch`.
    pub(crate) fn search_unexpected(&mut self, index: u8, entry: &Entry, op: SearchOp) -> Result<(), ReturnCode> {
        let once = entry.has(me::USE_ONCE);
        let (mut from, mut found) = (0, false);
        while let Some((position, _)) = self.find_unexpected(index, entry, from) {
            found = true;
            match op {
                SearchOp::Delete => self.claim(index, entry.pt_index, position, Claim::of(index, entry, false)),
                SearchOp::Only => {
                    from = position + 1;
                    self.report_search(index, entry, position);
                }
            }
            if once {
                return Ok(());
            }
        }
        if !found {
            let eq = self.interface(index).ok_or(ReturnCode::ArgInvalid)?.portal(entry.pt_index)?.eq;
            let mut event = plain_event(EventKind::Search, entry.pt_index, entry.user_ptr);
            event.ni_fail_type = NiFail::NoMatch as u8;
            self.post(index, eq, event);
        }
        if entry.has(me::EVENT_CT_OVERFLOW) {
            self.count(index, entry.ct, FAILURE);
        }
        Ok(())
    }

    fn report_search(&mut self, index: u8, entry: &Entry, position: usize) {
        let portal = match self.used_portal(index, entry.pt_index) {
            Ok(portal) => portal,
            Err(error) => return self.check(Err(error)),
        };
        let mut event = portal.unexpected[position].event;
        let (eq, amount) = (portal.eq, if entry.has(me::EVENT_CT_BYTES) { event.mlength } else { 1 });
        event.kind = EventKind::Search as u8;
        event.user_ptr = entry.user_ptr;
        self.post(index, eq, event);
        if entry.has(me::EVENT_CT_OVERFLOW) {
            self.count(index, entry.ct, success(amount));
        }
    }

    /// Returns position and requested length of the first unexpected header from index `from` that `entry` matches.
    pub(super) fn find_unexpected(&mut self, index: u8, entry: &Entry, from: usize) -> Option<(usize, u64)> {
        let interface = self.interface(index)?;
        let (matching, logical) = (interface.matching(), interface.logical());
        let portal = interface.portal(entry.pt_index).ok()?;
        portal.unexpected.iter().enumerate().skip(from).find_map(|(position, header)| {
            entry.matches(&request_of(&header.event), matching, logical).then_some((position, header.event.rlength))
        })
    }

    /// Removes a header from the list for an entry; its event waits for all of the data.
    fn claim(&mut self, index: u8, pt_index: u32, position: usize, claim: Claim) {
        let found = self.interface(index).and_then(|interface| interface.portal(pt_index).ok());
        let Some(header) = found.and_then(|portal| portal.unexpected.remove(position)) else {
            return self.check(Err(InternalError::NoPortal(pt_index)));
        };
        if header.complete {
            self.report_overflow(index, header.event, claim);
        } else {
            self.claims.get_or_insert_default().insert(header.message, claim);
        }
        let dropped = self.drop_header(index, header.entry);
        self.check(dropped);
        if header.complete {
            self.report_claim_unlink(index, pt_index, claim);
        }
    }

    /// Releases the overflow entry of a header that was removed from the list.
    fn drop_header(&mut self, index: u8, entry: Handle) -> Result<(), InternalError> {
        self.used_interface(index)?.unexpected_headers -= 1;
        self.used_entry(index, entry)?.unexpected -= 1;
        self.release_entry(index, entry)
    }

    /// Completes a message of the overflow list that no entry has taken. Its header stays on the unexpected list with
    /// `event`, unless handlers dropped the message.
    pub(super) fn unexpected_complete(
        &mut self,
        index: u8,
        message: MessageId,
        event: Event,
        dropped: bool,
    ) -> Result<(), InternalError> {
        let unexpected = &mut self.used_portal(index, event.pt_index)?.unexpected;
        // Most messages are in a priority entry and have no header here.
        let Some(position) = unexpected.iter().position(|header| header.message == message) else { return Ok(()) };
        if !dropped {
            (unexpected[position].event, unexpected[position].complete) = (event, true);
            return Ok(());
        }
        let entry = unexpected[position].entry;
        unexpected.remove(position);
        self.drop_header(index, entry)
    }

    /// Reports a header that an appended entry or a search took, once its message is complete.
    pub(super) fn report_overflow(&mut self, index: u8, mut event: Event, claim: Claim) {
        let portal = match self.used_portal(index, event.pt_index) {
            Ok(portal) => portal,
            Err(error) => return self.check(Err(error)),
        };
        let eq = portal.eq;
        event.kind += 1; // the overflow twin follows each communication event
        event.user_ptr = claim.user_ptr;
        if claim.options & me::EVENT_OVER_DISABLE == 0 {
            self.post(index, eq, event);
        }
        if claim.options & me::EVENT_CT_OVERFLOW != 0 {
            let amount = if claim.options & me::EVENT_CT_BYTES != 0 { event.mlength } else { 1 };
            let ok = event.ni_fail_type == NiFail::Ok as u8;
            self.count(index, claim.ct, if ok { success(amount) } else { FAILURE });
        }
    }

    /// Posts AUTO_UNLINK for an appended entry that a header used up. It follows the AUTO_FREE of the header's overflow
    /// entry, as in the reference implementation.
    pub(super) fn report_claim_unlink(&mut self, index: u8, pt_index: u32, claim: Claim) {
        if claim.unlink && claim.options & me::EVENT_UNLINK_DISABLE == 0 {
            let eq = self.interface(index).and_then(|ni| ni.portal(pt_index).ok()).map_or(ptl::EQ_NONE, |pt| pt.eq);
            self.post(index, eq, plain_event(EventKind::AutoUnlink, pt_index, claim.user_ptr));
        }
    }

    /// Frees an unreferenced entry. For an overflow entry, the program gets an AUTO_FREE.
    pub(super) fn release_entry(&mut self, index: u8, handle: Handle) -> Result<(), InternalError> {
        let entries = &mut self.used_interface(index)?.entries;
        // A triggered unlink may have removed the entry when its message counted.
        if !entries.get(handle).is_ok_and(|entry| entry.is_free()) {
            return Ok(());
        }
        let entry = entries.remove(handle).map_err(|_| InternalError::NoEntry(handle))?;
        if entry.list == List::Overflow && !entry.has(me::EVENT_UNLINK_DISABLE) {
            let eq = self.used_portal(index, entry.pt_index)?.eq;
            self.post(index, eq, plain_event(EventKind::AutoFree, entry.pt_index, entry.user_ptr));
        }
        Ok(())
    }

    /// Adds an entry to its list, unless unexpected messages use it up. The append returns a handle in either case.
    pub(crate) fn link(&mut self, index: u8, handle: Handle, list: List) {
        let Some(interface) = self.interface(index) else { return };
        // A triggered append may find its entry unlinked.
        let Ok(entry) = interface.entries.get(handle) else { return };
        let pt_index = entry.pt_index;
        let has_headers = interface.portal(pt_index).is_ok_and(|portal| !portal.unexpected.is_empty());
        let used_up = list == List::Priority && has_headers && self.offer_headers(index, handle) == Offered::UsedUp;
        let linked = if used_up { self.forget_entry(index, handle) } else { self.insert(index, handle) };
        self.check(linked);
    }

    /// Offers an existing entry to the unexpected headers.
    fn offer_headers(&mut self, index: u8, handle: Handle) -> Offered {
        let found = self.interface(index).map(|interface| interface.entries.get(handle).cloned());
        let Some(Ok(mut entry)) = found else { return Offered::Link };
        let offered = self.offer_to_unexpected(index, &mut entry);
        if let (Offered::Link, Ok(there)) = (&offered, self.used_entry(index, handle)) {
            *there = *entry;
        }
        offered
    }

    fn forget_entry(&mut self, index: u8, handle: Handle) -> Result<(), InternalError> {
        let removed = self.used_interface(index)?.entries.remove(handle);
        removed.map(drop).map_err(|_| InternalError::NoEntry(handle))
    }

    fn insert(&mut self, index: u8, handle: Handle) -> Result<(), InternalError> {
        let entry = self.used_entry(index, handle)?;
        entry.linked = true;
        let (pt_index, user_ptr, silent) = (entry.pt_index, entry.user_ptr, entry.has(me::EVENT_LINK_DISABLE));
        let list = entry.list;
        let portal = self.used_portal(index, pt_index)?;
        portal.list_mut(list).push_back(handle);
        let eq = portal.eq;
        if !silent {
            self.post(index, eq, plain_event(EventKind::Link, pt_index, user_ptr));
        }
        Ok(())
    }

    /// `PtlLEUnlink` and `PtlMEUnlink`.
    ///
    /// # Errors
    /// `PTL_ARG_INVALID` for an unlinked entry, `PTL_IN_USE` for one that messages or headers refer to.
    pub fn unlink(&mut self, handle: Handle) -> Result<(), ReturnCode> {
        let interface = self.owner(Kind::Entry, handle)?;
        let entry = interface.entries.get_mut(handle)?;
        if !entry.linked {
            return Err(ReturnCode::ArgInvalid);
        }
        if entry.in_flight > 0 || entry.unexpected > 0 {
            return Err(ReturnCode::InUse);
        }
        let (pt_index, list) = (entry.pt_index, entry.list);
        interface.portal(pt_index)?.list_mut(list).retain(|other| *other != handle);
        interface.entries.remove(handle).map(drop)
    }

    /// Adds to a counter and fires the operations that are due.
    pub(crate) fn count(&mut self, index: u8, ct: Handle, amount: CtEvent) {
        self.change_counters(index, VecDeque::from([(ct, Change::Add(amount))]));
    }

    /// Sets a counter and fires the operations that are due.
    pub(crate) fn set_counter(&mut self, index: u8, ct: Handle, value: CtEvent) {
        self.change_counters(index, VecDeque::from([(ct, Change::Set(value))]));
    }

    /// Applies changes of counters, and those that they trigger; iterative, because chains may be long.
    fn change_counters(&mut self, index: u8, mut changes: VecDeque<(Handle, Change)>) {
        while let Some((ct, change)) = changes.pop_front() {
            // An operation may count on a counter that was freed, or on an interface that was closed.
            let Some(interface) = self.interfaces[usize::from(index & 3)].as_deref_mut() else { return };
            let Ok(counter) = interface.counters.get_mut(ct) else { continue };
            match change {
                Change::Add(amount) => {
                    counter.value.success = counter.value.success.wrapping_add(amount.success);
                    counter.value.failure = counter.value.failure.wrapping_add(amount.failure);
                }
                Change::Set(value) => counter.value = value,
            }
            self.effects.push(Effect::Notify(Notice::Counter(ct)));
            let mut due = Vec::new();
            while let Some(op) = counter.take_due() {
                due.push(op);
            }
            interface.triggered -= due.len();
            for op in due {
                match op {
                    op if self.leaves_to_cpu => self.effects.push(Effect::Due(index, Box::new(op))),
                    TriggeredOp::CtInc(ct, amount) => changes.push_back((ct, Change::Add(amount))),
                    TriggeredOp::CtSet(ct, value) => changes.push_back((ct, Change::Set(value))),
                    op => self.fire(index, op),
                }
            }
        }
    }

    /// Executes a triggered operation whose counter reached its threshold.
    pub(crate) fn fire(&mut self, index: u8, op: TriggeredOp) {
        match op {
            TriggeredOp::Transfer(transfer) => self.effects.push(Effect::Start(Box::new(transfer))),
            TriggeredOp::CtInc(ct, amount) => self.count(index, ct, amount),
            TriggeredOp::CtSet(ct, value) => self.set_counter(index, ct, value),
            TriggeredOp::Append(entry, list) => self.link(index, entry, list),
            // An entry in use stays: a triggered unlink has no caller to notify.
            TriggeredOp::Unlink(entry) => drop(self.unlink(entry)),
        }
    }
}

/// A change of a counter.
enum Change {
    Add(CtEvent),
    Set(CtEvent),
}

/// One failed event, which counts 1 even if successes count bytes (Portals 4.3 §3.14).
pub(super) const FAILURE: CtEvent = CtEvent { success: 0, failure: 1 };

/// Returns an increment by `amount` successes or bytes.
pub(super) fn success(amount: u64) -> CtEvent {
    CtEvent { success: amount, failure: 0 }
}

/// Reconstructs the request of an unexpected header from its event, as far as matching needs it.
fn request_of(event: &Event) -> Request {
    Request {
        kind: RequestKind::Put, // all kinds match alike
        pt_index: event.pt_index,
        match_bits: event.match_bits,
        remote_offset: event.remote_offset,
        length: event.rlength,
        hdr_data: event.hdr_data,
        ack: ptl::AckReq::None,
        initiator: event.initiator,
        target: ptl::Process::default(),
        uid: event.uid,
        op: None,
        operand: [0; MAX_OPERAND],
        fail: NiFail::Ok,
        may_be_lost: false,
    }
}

const _: () = assert!(List::Overflow as u8 == 1 && EventKind::PutOverflow as u8 == EventKind::Put as u8 + 1);
