// SPDX-License-Identifier: Apache-2.0
//! Adapter from the interconnect to the event queue.

use net::fabric;
use nic::{NicEvent, Packet};
use sim::{EventQueue, Time};

use crate::event::Event;

/// The interconnect's view of the event queue.
pub(crate) struct Outlet<'a, E>(pub &'a mut EventQueue<Event<E>>);

impl<E> net::Outlet<Box<Packet>> for Outlet<'_, E> {
    fn schedule(&mut self, at: Time, event: fabric::Event) {
        self.0.push(at, Event::Network(event));
    }

    fn departs(&mut self, at: Time, node: u32, departure: net::Departure) {
        self.0.push(at, Event::Card(node, NicEvent::Departs(Box::new(for_card(departure)))));
    }

    fn arrives(&mut self, at: Time, node: u32, packet: Box<Packet>) {
        self.0.push(at, Event::Card(node, NicEvent::Arrive(packet)));
    }

    fn lost(&mut self, at: Time, from: u32, packet: Box<Packet>) {
        self.0.push(at, Event::Card(from, NicEvent::Lost(packet)));
    }
}

/// Converts a departure to the cards' type.
pub(crate) fn for_card(net::Departure { ticket, start, end }: net::Departure) -> nic::Departure {
    nic::Departure { ticket, start, end }
}
