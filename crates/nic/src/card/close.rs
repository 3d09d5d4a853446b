//! What becomes of messages under way when their interface is closed (Portals 4.3 §3.5.3).
//!
//! Messages that its entries are receiving are dropped: none of their data goes to host memory any more, and their
//! initiators are told (`PTL_NI_DROPPED`). Answers to its own operations bring no data and tell nobody. What the host has
//! already handed over for sending leaves the card.

use abi::portals::NiFail;

use super::{Card, Completion};
use crate::drops::{self, DropReason, Part};
use crate::message::MessageId;
use crate::ports::Ports;
use crate::rx::{Channel, RxMessage, Sink};

impl Card {
    /// Closes an interface, if it is open.
    pub(crate) fn close_interface(&mut self, index: u8, ports: &mut impl Ports) {
        if !self.portals.close(index) {
            return;
        }
        self.drop_completions(index);
        let receives = |rx: &RxMessage| rx.header.interface == index && matches!(rx.sink, Sink::Entry(_));
        let is_lost = |channel: &Channel| matches!(channel, Channel::Open(rx) if receives(rx));
        let lost = self.channels.iter().filter(|(_, channel)| is_lost(channel));
        let mut lost: Vec<MessageId> = lost.map(|(id, _)| *id).collect();
        lost.sort_unstable();
        let mtu = u64::from(self.machine.network.mtu);
        for id in &lost {
            let Some(rx) = self.rx(*id) else { continue };
            let header = rx.header.clone();
            if rx.fail == NiFail::Ok {
                rx.fail = NiFail::Dropped;
            }
            if let Sink::Entry(delivery) = std::mem::replace(&mut rx.sink, Sink::Nowhere)
                && let Some(message) = delivery.spin
            {
                self.spin.drop_waiting(*message);
            }
            let bytes = header.data_length();
            let whole = Part { is_first: true, packets: bytes.div_ceil(mtu).max(1), bytes };
            drops::count(&mut self.stats.drops, DropReason::Closed, &header, whole, ports.now());
        }
        self.end_handlers(&lost, ports);
        self.spin.free_all(index);
        for id in lost {
            self.finish_if_done(id, ports);
        }
    }

    /// Forgets what an rdma card has left to the CPU for an interface. The initiators of messages have been answered.
    fn drop_completions(&mut self, index: u8) {
        for completion in std::mem::take(&mut self.completions) {
            match completion {
                Completion::Arrived(ref arrived) if arrived.0.header.interface == index => {}
                Completion::Triggered(interface, _) if interface == index => {}
                Completion::Operation(token, answer) if !self.portals.operations.is_open(token) => {
                    self.portals.note_operation(token, answer.is_some());
                }
                other => self.completions.push_back(other),
            }
        }
    }
}
