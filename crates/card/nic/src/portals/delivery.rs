//! The end of a message that an entry has taken, as the program sees it.

use abi::portals::{self as ptl, EventKind, List, NiFail, me};

use super::effect::InternalError;
use super::entry::Placement;
use super::lists::{FAILURE, success};
use super::matching::Delivery;
use super::state::{Portals, plain_event};
use crate::message::{MessageId, Request};

/// How a message ended.
#[derive(Clone, Copy, Debug)]
pub struct Ending {
    /// Where the message went, and how much of it.
    pub placement: Placement,
    /// What went wrong first.
    pub fail: NiFail,
    /// Whether a handler keeps the entry waiting for another message (App. B.1: `_PENDING`).
    pub pending: bool,
    /// Whether handlers have dropped the message as a whole.
    pub dropped: bool,
    /// The first error of a handler, which becomes the message's event: its code, and its detail for `start`.
    pub error: Option<(NiFail, u64)>,
}

impl Portals {
    /// Whether the program can notice the end of a message: a plain RDMA write or read costs the CPU nothing.
    pub(crate) fn is_visible(&mut self, index: u8, delivery: &Delivery) -> bool {
        // The interface may have been closed, and the entry with it, since the message was matched.
        let Some(interface) = self.interface(index) else { return false };
        let Ok(entry) = interface.entries.get(delivery.entry) else { return false };
        let counted = entry.ct != ptl::CT_NONE && entry.has(me::EVENT_CT_COMM);
        let queued = interface.portals[entry.pt_index as usize].as_ref().is_some_and(|p| p.eq != ptl::EQ_NONE)
            && !entry.has(me::EVENT_COMM_DISABLE | me::EVENT_SUCCESS_DISABLE);
        counted || queued || delivery.unlinked || entry.list == List::Overflow
    }

    /// Gives the room of a dropped message back to its entry.
    pub(crate) fn give_back(&mut self, index: u8, delivery: &Delivery) {
        match self.used_entry(index, delivery.entry) {
            Ok(entry) => entry.give_back(delivery.placement),
            Err(error) => self.check(Err(error)),
        }
    }

    /// Tells the program about a message that an entry has taken (Portals 4.3 §3.13: events; §3.14: counters). Nothing
    /// works for the message any more, so its memory is the program's. An error of a handler is told here, too, in place
    /// of the message's own event.
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
        // App. B.1: a PENDING message does not complete the entry, which waits for another message. Nor does a message
        // use it up that has given its room back.
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
