// SPDX-License-Identifier: Apache-2.0
//! Flow control (Portals 4.3 §3.6.1): a portal table entry stops, and its event follows the messages in flight.

use abi::portals::{EventKind, NiFail};

use super::effect::{Effect, InternalError, Notice};
use super::interface::Portal;
use super::process::{Portals, plain_event};

impl Portals {
    /// Stops a portal table entry. Notifies the program unless `tell` is false.
    pub(crate) fn disable_portal(&mut self, index: u8, pt_index: u32, tell: bool) {
        // The interface may be closed, or the portal table entry freed, while packets of a message were in flight.
        let Some(Ok(portal)) = self.interface(index).map(|interface| interface.portal(pt_index)) else { return };
        if !portal.enabled {
            return;
        }
        portal.enabled = false;
        portal.disable_event_due = tell;
        self.flow_control += 1;
        let drained = self.portal_drained(index, pt_index);
        self.check(drained);
    }

    /// Stops a portal table entry whose event queue is full, and all other flow-controlled ones with that queue.
    pub(super) fn disable_portals_of_queue(&mut self, index: u8, pt_index: u32, tell: bool) {
        match self.portals_of_queue(index, pt_index) {
            Ok(all) => all.into_iter().for_each(|other| self.disable_portal(index, other, tell || other != pt_index)),
            Err(error) => self.check(Err(error)),
        }
    }

    /// Returns the flow-controlled portal table entries with the same event queue as this one.
    fn portals_of_queue(&mut self, index: u8, pt_index: u32) -> Result<Vec<u32>, InternalError> {
        let eq = self.used_portal(index, pt_index)?.eq;
        let shares = |portal: &Portal| portal.flow_controlled() && portal.eq == eq;
        let portals = self.used_interface(index)?.portals.iter().zip(0..);
        Ok(portals.filter(|(p, _)| p.as_ref().is_some_and(shares)).map(|(_, index)| index).collect())
    }

    /// Notifies the host once no message to a portal table entry is in flight.
    pub(super) fn portal_drained(&mut self, index: u8, pt_index: u32) -> Result<(), InternalError> {
        let ni = self.used_interface(index)?.handle();
        let portal = self.used_portal(index, pt_index)?;
        if portal.in_flight > 0 {
            return Ok(());
        }
        let (due, eq) = (std::mem::take(&mut portal.disable_event_due), portal.eq);
        self.effects.push(Effect::Notify(Notice::Portal(ni, pt_index)));
        if due {
            let mut event = plain_event(EventKind::PtDisabled, pt_index, 0);
            event.ni_fail_type = NiFail::PtDisabled as u8;
            self.post(index, eq, event);
        }
        Ok(())
    }
}
