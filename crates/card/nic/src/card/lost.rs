//! Packets that the network loses, and cards that do not answer any more (`spinrun --drop`, `--kill-card`).
//!
//! A card sends a lost packet again after `network.retransmit_ns`. After `network.retries` retries it gives the message up, and
//! after the same time ([`machine::Network::patience`]) the other card, which has waited for it, gives it up too. Then both
//! report `PTL_NI_UNDELIVERABLE` for what they know of it. A lost packet is never mistaken for one that has arrived, so no
//! packet arrives twice. The module `order` keeps those behind it in order.

use std::rc::Rc;

use abi::portals::{List, NiFail};

use super::state::Nic;
use crate::drops::{DropReason, Part};
use crate::event::{NicEvent, Sent};
use crate::message::{Body, Header, MessageId, OpToken, Packet, Response};
use crate::portals::InternalError;
use crate::ports::Ports;

type Result = std::result::Result<(), InternalError>;

impl Nic {
    /// A packet of this card is lost. The card finds out when no acknowledgement comes.
    pub(super) fn lost(&mut self, mut packet: Box<Packet>, ports: &mut impl Ports) {
        self.pipeline.stats.packets_lost += 1;
        packet.losses += 1;
        ports.schedule(ports.now() + self.pipeline.machine.network.retransmit, NicEvent::Resend(packet));
    }

    /// Sends a lost packet again, or gives its message up.
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

    /// The card that has sent a message has given it up, at the packet with this place. What has not arrived is lost.
    pub(super) fn given_up(&mut self, header: &Rc<Header>, place: u64, ports: &mut impl Ports) -> Result {
        match header.body {
            // Nothing of the answer has come, so the operation does not end with it.
            Body::Response(response) if self.messages.live(header.id).is_err() => {
                self.operation_fails(Some(response.op), response.to, ports)?;
            }
            Body::Response(_) | Body::Request(_) => {}
        }
        self.abandon(header.id, ports)?;
        self.orders.pass_over(header.source, place);
        self.take_in_order(header.source, ports)
    }

    /// Another card has not answered for so long that this one takes it to be dead.
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

    /// Ends an operation of this node that will not be answered, unless that has happened before.
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

    /// Ends a message of which some packets have not arrived and will not.
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
