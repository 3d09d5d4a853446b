// SPDX-License-Identifier: Apache-2.0
//! Adapter from the interconnect to the event queue.

use net::fabric;
use nic::{NicEvent, Packet};
use sim::{EventQueue, Time};

use crate::event::Event;
use crate::places::Places;

/// The interconnect's view of the event queue, and of the ranks on the nodes.
pub(crate) struct Outlet<'a, E>(pub &'a mut EventQueue<Event<E>>, pub &'a mut Places);

impl<E> net::Outlet<Box<Packet>> for Outlet<'_, E> {
    fn schedule(&mut self, at: Time, event: fabric::Event) {
        self.0.push(at, Event::Network(event));
    }

    fn departs(&mut self, at: Time, node: u32, departure: net::Departure) {
        let rank = self.1.unblock(node);
        self.0.push(at, Event::Card(rank, NicEvent::Departs(Box::new(for_card(departure)))));
    }

    fn arrives(&mut self, at: Time, _: u32, packet: Box<Packet>) {
        self.0.push(at, Event::Card(packet.header.target, NicEvent::Arrive(packet)));
    }

    fn lost(&mut self, at: Time, _: u32, packet: Box<Packet>) {
        self.0.push(at, Event::Card(packet.header.source, NicEvent::Lost(packet)));
    }
}

/// Converts a departure to the cards' type.
pub(crate) fn for_card(net::Departure { ticket, start, end }: net::Departure) -> nic::Departure {
    nic::Departure { ticket, start, end }
}
