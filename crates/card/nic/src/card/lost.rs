// SPDX-License-Identifier: Apache-2.0
//! Packet loss and dead cards (`spinrun --drop`, `--kill-card`).
//!
//! A card retransmits a lost packet after `network.retransmit_ns`. After `network.retries` retries it abandons the
//! message; after the same time ([`machine::Network::patience`]) the waiting peer abandons it too. Both then report
//! `PTL_NI_UNDELIVERABLE` for the affected operations and messages. A lost packet is never mistaken for an arrived one,
//! so no packet arrives twice. Module `order` keeps the packets behind a lost one in order.

use std::rc::Rc;

use abi::portals::{List, NiFail};

use super::nic::Nic;
use crate::drops::{DropReason, Part};
use crate::event::{NicEvent, Sent};
use crate::message::{Body, Header, MessageId, OpToken, Packet, Response};
use crate::portals::InternalError;
use crate::ports::Ports;

type Result = std::result::Result<(), InternalError>;

impl Nic {
    /// Handles the loss of a packet of this card, which the card detects by the missing acknowledgement.
    pub(super) fn lost(&mut self, mut packet: Box<Packet>, ports: &mut impl Ports) {
        self.pipeline.stats.packets_lost += 1;
        packet.losses += 1;
        ports.schedule(ports.now() + self.pipeline.machine.network.retransmit, NicEvent::Resend(packet));
    }

    /// Retransmits a lost packet, or abandons its message.
    pub(super) fn resend(&mut self, packet: Box<Packet>, ports: &mut impl Ports) -> Result {
        if self.pipeline.losses.as_ref().is_some_and(|losses| losses.given_up.contains(&packet.header.id)) {
            if packet.place > 0 {
                ports.give_up(packet.header, packet.place); // those behind it wait for this one, too
            }
            return Ok(());
        }
        if packet.losses <= self.pipeline.machine.network.retries {
            self.pipeline.stats.packets_resent += 1;
            self.pipeline.inject(packet, Sent::Nothing, ports);
            return Ok(());
        }
        let (header, place) = (packet.header, packet.place);
        self.pipeline.losses.get_or_insert_default().given_up.insert(header.id);
        self.pipeline.stats.undeliverable += 1;
        self.pipeline.count_dropped(DropReason::Unreachable, &header, ports);
        ports.give_up(header.clone(), place);
        match header.body {
            Body::Request(request) => self.operation_fails(request.op, header.id, ports),
            Body::Response(_) => Ok(()),
        }
    }

    /// Abandons a message that its sender abandoned at the packet with sequence number `place`. Packets that have not
    /// arrived are lost.
    pub(super) fn given_up(&mut self, header: &Rc<Header>, place: u64, ports: &mut impl Ports) -> Result {
        match header.body {
            // No packet of the answer has arrived, so the operation does not end with it.
            Body::Response(response) if self.messages.live(header.id).is_err() => {
                self.operation_fails(Some(response.op), response.to, ports)?;
            }
            Body::Response(_) | Body::Request(_) => {}
        }
        self.abandon(header.id, ports)?;
        self.orders.pass_over(header.source, place);
        self.take_in_order(header.source, ports)
    }

    /// Handles a peer that did not answer for so long that it counts as dead.
    pub(super) fn peer_is_dead(&mut self, node: u32, ports: &mut impl Ports) -> Result {
        self.orders.end(node).try_for_each(|packet| self.take(packet, ports))?;
        let answered = self.messages.being_answered();
        for (token, message) in self.pipeline.portals.operations.unanswered_by(node) {
            if !answered.contains(&token) {
                self.operation_fails(Some(token), message, ports)?;
            }
        }
        self.messages.incomplete_from(node).into_iter().try_for_each(|id| self.abandon(id, ports))
    }

    /// Fails an operation of this node that will not be answered, unless it already failed.
    fn operation_fails(&mut self, token: Option<OpToken>, message: MessageId, ports: &mut impl Ports) -> Result {
        let Some(token) = token else { return Ok(()) };
        let Some(operation) = self.pipeline.portals.operations.get_mut(token) else { return Ok(()) };
        if operation.message != message || operation.answered {
            return Ok(());
        }
        operation.message = 0;
        let fail = NiFail::Undeliverable;
        operation.fail = fail;
        let answer =
            Response { op: token, to: message, mlength: 0, remote_offset: 0, fail, list: List::Priority, length: 0 };
        self.operation_progress(token, Some(answer), ports)
    }

    /// Ends a message with missing packets that will not arrive.
    fn abandon(&mut self, id: MessageId, ports: &mut impl Ports) -> Result {
        let mtu = u64::from(self.pipeline.machine.network.mtu);
        let Some(rx) = self.messages.abandon(id) else { return Ok(()) };
        let bytes = std::mem::take(&mut rx.remaining);
        rx.fails(NiFail::Undeliverable);
        rx.answered = true;
        if bytes > 0 {
            let part = Part { is_first: true, packets: bytes.div_ceil(mtu), bytes };
            self.pipeline.count_part(DropReason::Unreachable, &rx.header, part, ports);
            if rx.handlers().is_some() {
                let from = rx.header.data_length() - bytes;
                self.pipeline.drop_data(rx, None, from, bytes, ports)?;
            }
        }
        self.finish_if_done(id, ports)
    }
}
