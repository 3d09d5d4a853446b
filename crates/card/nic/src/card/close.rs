// SPDX-License-Identifier: Apache-2.0
//! Messages in flight at the close of their interface (Portals 4.3 §3.5.3).
//!
//! Messages to its entries are dropped: none of their remaining data goes to host memory, and their initiators get
//! `PTL_NI_DROPPED`. Answers to its own operations bring no data and cause no event. Messages already handed over for
//! sending leave the card.

use abi::portals::NiFail;

use super::nic::Nic;
use crate::drops::DropReason;
use crate::pipeline::Sink;
use crate::portals::InternalError;
use crate::ports::Ports;

impl Nic {
    /// Closes an interface if it is open.
    pub(crate) fn close_interface(&mut self, index: u8, ports: &mut impl Ports) {
        if self.pipeline.portals.close(index) {
            let dropped = self.drop_messages(index, ports).and_then(|()| self.work(ports));
            self.check(dropped, ports);
        }
    }

    fn drop_messages(&mut self, index: u8, ports: &mut impl Ports) -> Result<(), InternalError> {
        self.pipeline.drop_completions(index);
        let lost = self.messages.received_by(index);
        for id in &lost {
            let rx = self.messages.live(*id)?;
            rx.fails(NiFail::Dropped);
            if let Some(right) = &rx.reply {
                right.revoke();
            }
            if let Sink::Entry(delivery) = std::mem::replace(&mut rx.sink, Sink::Nowhere)
                && let Some(message) = delivery.spin
            {
                self.spin.drop_waiting(*message);
            }
            self.pipeline.count_dropped(DropReason::Closed, &rx.header, ports);
        }
        self.spin.end_handlers(&lost, ports)?;
        self.spin.free_all(index);
        lost.into_iter().try_for_each(|id| self.finish_if_done(id, ports))
    }
}
