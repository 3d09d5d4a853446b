// SPDX-License-Identifier: Apache-2.0
//! Matching of messages to entries (Portals 4.3 §3.12.2).

use std::collections::VecDeque;
use std::rc::Rc;

use abi::portals::{self as ptl, Handle, List, NiFail, StatusRegister, me};

use super::entry::Placement;
use super::interface::Unexpected;
use super::process::Portals;
use crate::drops::DropReason;
use crate::handlers::Handlers;
use crate::message::{MessageId, Request};
use crate::region::Region;

/// Reason for a refused request: status for its initiator, and drop reason for reports.
pub type Refusal = (NiFail, DropReason);

/// A request that an entry took, until [`Portals::finish_delivery`].
#[derive(Clone, Debug)]
pub struct Delivery {
    /// Entry.
    pub entry: Handle,
    /// List of the entry.
    pub list: List,
    /// Placement of the data in the entry.
    pub placement: Placement,
    /// Memory of the entry.
    pub region: Region,
    /// Handlers of the entry.
    pub handlers: Option<Rc<Handlers>>,
    /// True if the match used up the entry.
    pub unlinked: bool,
    /// Number of promised event queue slots.
    pub promised: usize,
}

impl Portals {
    /// Searches for a matching entry: portal table entry, priority list, overflow list.
    ///
    /// # Errors
    /// Returns the reason if no entry takes the request.
    pub(crate) fn match_request(&mut self, id: MessageId, index: u8, request: &Request) -> Result<Delivery, Refusal> {
        let pid = self.pid;
        let Some(interface) = self.interface(index) else {
            return Err((NiFail::Dropped, DropReason::NoInterface));
        };
        let (matching, logical) = (interface.matching(), interface.logical());
        if !logical && request.target.pid != pid {
            return Err((NiFail::Undeliverable, DropReason::NoProcess));
        }
        let headers_left = interface.unexpected_headers < interface.limits.max_unexpected_headers as usize;
        let Some(portal) = interface.portals.get_mut(request.pt_index as usize).and_then(Option::as_mut) else {
            interface.status[StatusRegister::DropCount as usize] += 1;
            return Err((NiFail::Dropped, DropReason::NoPortal));
        };
        if !portal.enabled {
            interface.status[StatusRegister::DropCount as usize] += 1;
            return Err((NiFail::PtDisabled, DropReason::Disabled));
        }
        let controlled = portal.flow_controlled();
        let find = |list: &VecDeque<Handle>| {
            list.iter()
                .copied()
                .find(|handle| interface.entries.get(*handle).is_ok_and(|e| e.matches(request, matching, logical)))
        };
        let found = match find(&portal.priority) {
            Some(handle) => Some((handle, List::Priority)),
            None => find(&portal.overflow).map(|handle| (handle, List::Overflow)),
        };
        let found = found.and_then(|(handle, list)| Some((handle, list, interface.entries.get_mut(handle).ok()?)));
        let Some((handle, list, entry)) = found else {
            interface.status[StatusRegister::DropCount as usize] += 1;
            if !controlled {
                return Err((NiFail::Dropped, DropReason::NoEntry));
            }
            self.disable_portal(index, request.pt_index, true);
            return Err((NiFail::PtDisabled, DropReason::NoEntry));
        };
        if entry.uid != ptl::ID_ANY && entry.uid != request.uid {
            interface.status[StatusRegister::PermissionViolations as usize] += 1;
            return Err((NiFail::PermViolation, DropReason::Permission));
        }
        if !entry.permits_operation(request) {
            interface.status[StatusRegister::OperationViolations as usize] += 1;
            return Err((NiFail::OpViolation, DropReason::Operation));
        }
        let unexpected = list == List::Overflow && !entry.has(me::UNEXPECTED_HDR_DISABLE);
        let tell = !entry.has(me::EVENT_FLOWCTRL_DISABLE);
        if unexpected && !headers_left {
            interface.status[StatusRegister::DropCount as usize] += 1;
            if controlled {
                self.disable_portal(index, request.pt_index, tell);
                return Err((NiFail::PtDisabled, DropReason::NoHeader));
            }
            return Err((NiFail::Dropped, DropReason::NoHeader));
        }
        let before = entry.local_offset;
        let placement = entry.place(request);
        let unlinked = entry.used_up();
        // A communication event, and possibly an AUTO_UNLINK.
        let comm = portal.eq != ptl::EQ_NONE && !entry.has(me::EVENT_COMM_DISABLE | me::EVENT_SUCCESS_DISABLE);
        let promised = usize::from(comm) + usize::from(unlinked && !entry.has(me::EVENT_UNLINK_DISABLE));
        let promised = if controlled { promised } else { 0 };
        if promised > 0 && interface.queues.get(portal.eq).is_ok_and(|queue| !queue.has_room(promised)) {
            entry.local_offset = before;
            interface.status[StatusRegister::DropCount as usize] += 1;
            self.disable_portals_of_queue(index, request.pt_index, tell);
            return Err((NiFail::PtDisabled, DropReason::QueueFull));
        }
        entry.in_flight += 1;
        if unlinked {
            entry.linked = false;
            portal.list_mut(list).retain(|other| *other != handle);
        }
        if unexpected {
            entry.unexpected += 1;
            interface.unexpected_headers += 1;
            let event = entry.event(request, placement);
            portal.unexpected.push_back(Unexpected { message: id, entry: handle, event, complete: false });
        }
        let (region, handlers) = (entry.region.clone(), entry.handlers.clone());
        portal.in_flight += 1;
        let eq = portal.eq;
        if let Ok(queue) = interface.queues.get_mut(eq) {
            queue.promised += promised;
        }
        Ok(Delivery { entry: handle, list, placement, region, handlers, unlinked, promised })
    }
}
