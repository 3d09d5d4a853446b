// SPDX-License-Identifier: Apache-2.0
//! Completion of a message that an entry took, as the program sees it.

use abi::portals::{self as ptl, EventKind, List, NiFail, me};

use super::effect::InternalError;
use super::entry::Placement;
use super::lists::{FAILURE, success};
use super::matching::Delivery;
use super::process::{Portals, plain_event};
use crate::message::{MessageId, Request};

/// Result of a message.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// Offset and length of the message in its entry.
    pub placement: Placement,
    /// First failure.
    pub fail: NiFail,
    /// True if a handler keeps the entry waiting for another message (App. B.1: `_PENDING`).
    pub pending: bool,
    /// True if handlers dropped the whole message.
    pub dropped: bool,
    /// First error of a handler, for the message's event: its code, and its detail for `start`.
    pub error: Option<(NiFail, u64)>,
}

impl Portals {
    /// Returns true if the program can notice the completion of a message: a plain RDMA write or read costs the CPU
    /// nothing.
    pub(crate) fn is_visible(&mut self, index: u8, delivery: &Delivery) -> bool {
        // The interface, and the entry with it, may have been closed since the match.
        let Some(interface) = self.interface(index) else { return false };
        let Ok(entry) = interface.entries.get(delivery.entry) else { return false };
        let counted = entry.ct != ptl::CT_NONE && entry.has(me::EVENT_CT_COMM);
        let queued = interface.portals[entry.pt_index as usize].as_ref().is_some_and(|p| p.eq != ptl::EQ_NONE)
            && !entry.has(me::EVENT_COMM_DISABLE | me::EVENT_SUCCESS_DISABLE);
        counted || queued || delivery.unlinked || entry.list == List::Overflow
    }

    /// Returns the room of a dropped message to its entry.
    pub(crate) fn give_back(&mut self, index: u8, delivery: &Delivery) {
        match self.used_entry(index, delivery.entry) {
            Ok(entry) => entry.give_back(delivery.placement),
            Err(error) => self.check(Err(error)),
        }
    }

    /// Notifies the program of a message that an entry took (Portals 4.3 §3.13: events; §3.14: counters). All
    /// processing of the message has ended, so its memory belongs to the program. A handler error replaces the
    /// message's event.
    pub(crate) fn finish_delivery(
        &mut self,
        message: MessageId,
        index: u8,
        request: &Request,
        delivery: &Delivery,
        ending: Ending,
    ) {
        let finished = self.finish(message, index, request, delivery, ending);
        self.check(finished);
    }

    fn finish(
        &mut self,
        message: MessageId,
        index: u8,
        request: &Request,
        delivery: &Delivery,
        ending: Ending,
    ) -> Result<(), InternalError> {
        let Ending { placement, fail, pending, dropped, error } = ending;
        let entry = self.used_entry(index, delivery.entry)?;
        let mut event = entry.event(request, placement);
        event.ni_fail_type = fail as u8;
        let told = event;
        if let Some((fail, detail)) = error {
            event.kind = EventKind::HandlerError as u8;
            event.ni_fail_type = fail as u8;
            event.start = detail;
        }
        entry.in_flight -= 1;
        let ok = fail == NiFail::Ok;
        let silent = entry.has(me::EVENT_COMM_DISABLE) || ok && entry.has(me::EVENT_SUCCESS_DISABLE);
        let bytes = entry.has(me::EVENT_CT_BYTES);
        let counts = entry.has(me::EVENT_CT_COMM);
        let ct = entry.ct;
        let (pt_index, user_ptr) = (entry.pt_index, entry.user_ptr);
        // App. B.1: a PENDING message does not complete the entry, which waits for another message. A message that
        // returned its room does not use up the entry either.
        let waits_on = delivery.unlinked && (pending || !entry.used_up());
        entry.linked |= waits_on;
        let tell_unlink = delivery.unlinked && !entry.has(me::EVENT_UNLINK_DISABLE) && !waits_on;
        let portal = self.used_portal(index, pt_index)?;
        portal.in_flight -= 1;
        if waits_on {
            portal.list_mut(delivery.list).push_front(delivery.entry);
        }
        let eq = portal.eq;
        if let Ok(queue) = self.used_interface(index)?.queues.get_mut(eq) {
            queue.promised -= delivery.promised;
        }
        if error.is_some() || !silent && !pending {
            self.post(index, eq, event);
        }
        if !pending && !counts && ct != ptl::CT_NONE {
            if let Ok(counter) = self.used_interface(index)?.counters.get_mut(ct) {
                counter.uncounted += 1;
            }
        } else if !pending {
            let amount = if bytes { placement.mlength } else { 1 };
            self.count(index, ct, if ok { success(amount) } else { FAILURE });
        }
        let claim = self.claims.as_mut().and_then(|claims| claims.remove(&message));
        match claim {
            Some(claim) => self.report_overflow(index, told, claim),
            None => self.unexpected_complete(index, message, told, dropped)?,
        }
        if tell_unlink {
            self.post(index, eq, plain_event(EventKind::AutoUnlink, pt_index, user_ptr));
        }
        self.release_entry(index, delivery.entry)?;
        if let Some(claim) = claim {
            self.report_claim_unlink(index, pt_index, claim);
        }
        self.portal_drained(index, pt_index)
    }
}
