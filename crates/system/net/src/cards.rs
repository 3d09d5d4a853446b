// SPDX-License-Identifier: Apache-2.0
//! Connection of a fabric to the cards.

use sim::{SerialResource, Time};
use slab::Slab;

use crate::NetError;
use crate::fabric::{Arrival, Edge, Event, Fabric, Flow, Kind, Left, NewPacket, RateControl, Signal};
use crate::injection::{Departure, Injection, Outlet};
use crate::losses::PathLosses;

/// A fabric between cards, with the packets in flight.
#[derive(Debug)]
pub(crate) struct CardFabric<P> {
    pub fabric: Fabric,
    packets: Slab<UnderWay<P>>,
    places: Places,
}

/// Mapping between nodes and the hosts of the fabric.
#[derive(Clone, Copy, Debug)]
struct Places {
    /// Number of nodes with a host; the nodes after them are switches.
    nodes: u32,
    /// Number of the first switch among the hosts of the fabric.
    first_switch: u32,
}

impl Places {
    /// Returns the fabric's host number of a node.
    fn host_of(self, node: u32) -> u32 {
        if node < self.nodes { node } else { node - self.nodes + self.first_switch }
    }

    /// Returns the node of a host of the fabric.
    fn node_of(self, host: u32) -> u32 {
        if host < self.nodes { host } else { host - self.first_switch + self.nodes }
    }
}

/// A packet in flight.
#[derive(Debug)]
struct UnderWay<P> {
    injection: Injection,
    /// True after its card was notified of the (first) departure.
    has_left: bool,
    /// Packet, once the card has passed it on.
    packet: Option<P>,
    /// Fate, once determined.
    fate: Option<Fate>,
}

/// Fate of a packet, with its time: the arrival of the first byte, or the loss.
#[derive(Clone, Copy, Debug)]
enum Fate {
    Arrives(Time),
    Lost(Time),
}

/// Sending ports, packets and outlet, as the fabric's [`Edge`](crate::fabric::Edge).
struct Edges<'a, P, O> {
    ports: &'a mut [SerialResource],
    packets: &'a mut Slab<UnderWay<P>>,
    losses: &'a mut PathLosses,
    places: Places,
    outlet: &'a mut O,
    now: Time,
    /// Packet being injected, and its departure.
    injected: Option<usize>,
    departure: Option<Departure>,
}

impl<P, O: Outlet<P>> Edge for Edges<'_, P, O> {
    fn schedule(&mut self, at: Time, _: u64, event: Event) {
        self.outlet.schedule(at, event);
    }

    /// The sending port determines the time: it keeps the fractions of picoseconds, and the gap between messages.
    fn leaves(&mut self, token: u32, now: Time, _: Time, kind: Kind) -> Time {
        let packet = &mut self.packets[token as usize];
        let Injection { from, bytes, gap, .. } = packet.injection;
        let is_first = !std::mem::replace(&mut packet.has_left, true);
        let gap = if is_first { gap } else { Time::ZERO };
        let (start, end) = self.ports[from as usize].reserve(now, bytes, kind.gap_per_byte, gap);
        let departure = Departure { ticket: token, start, end };
        if self.injected == Some(token as usize) {
            self.departure = Some(departure);
        } else if is_first {
            self.outlet.departs(self.now, from, departure);
        }
        start
    }

    /// Control packets of an end use the port of its card between the card's packets.
    fn answers(&mut self, host: u32, now: Time, _: Time, bytes: u32, kind: Kind) -> Time {
        self.ports[self.places.node_of(host) as usize].reserve(now, u64::from(bytes), kind.gap_per_byte, Time::ZERO).0
    }

    fn left(&mut self, _: Left) {}

    fn arrives(&mut self, Arrival { token, first, .. }: Arrival) {
        let Injection { from, to, .. } = self.packets[token as usize].injection;
        let fate = if self.losses.loses(from, to) { Fate::Lost(first) } else { Fate::Arrives(first) };
        self.packets[token as usize].fate = Some(fate);
        end_if_known(self.packets, token, self.outlet);
    }

    fn lost(&mut self, token: u32, at: Time) {
        self.packets[token as usize].fate = Some(Fate::Lost(at));
        end_if_known(self.packets, token, self.outlet);
    }
}

/// Delivers or loses a packet once the card has passed it on and its fate is determined.
fn end_if_known<P>(packets: &mut Slab<UnderWay<P>>, token: u32, outlet: &mut impl Outlet<P>) {
    let under_way = &mut packets[token as usize];
    let Some(fate) = under_way.fate else { return };
    let Some(packet) = under_way.packet.take() else { return };
    let Injection { from, to, .. } = under_way.injection;
    match fate {
        Fate::Arrives(at) => outlet.arrives(at, to, packet),
        Fate::Lost(at) => outlet.lost(at, from, packet),
    }
    packets.remove(token as usize);
}

impl<P> CardFabric<P> {
    /// Creates a fabric between `nodes` nodes and switches with handlers; `first_switch` is the fabric's number of the
    /// first of these.
    ///
    /// # Errors
    /// If senders would need a queue for each receiver, which cards do not have.
    pub fn new(fabric: Fabric, nodes: u32, first_switch: u32) -> Result<CardFabric<P>, NetError> {
        let needs_queues = |parameter, value| {
            let what = format!(
                "\"{value}\" is for `spinkit goal run packet` only: it takes a queue for each receiver, and a card sends its \
                 packets in one order"
            );
            Err(NetError::Parameter { parameter, what })
        };
        if fabric.parameters().flow == Flow::Trim {
            return needs_queues("network.fabric.flow", Flow::Trim.name());
        }
        if fabric.parameters().transport.rate_control == RateControl::Dcqcn {
            return needs_queues("network.fabric.rate_control", RateControl::Dcqcn.name());
        }
        Ok(CardFabric { fabric, packets: Slab::new(), places: Places { nodes, first_switch } })
    }

    /// Returns the number of links of the shortest path between two nodes.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        self.fabric.topology().distance(self.places.host_of(from), self.places.host_of(to))
    }

    /// Injects a packet for another node. Returns its departure, or `None` if it is blocked.
    pub fn inject(
        &mut self,
        now: Time,
        injection: Injection,
        ports: &mut [SerialResource],
        losses: &mut PathLosses,
        outlet: &mut impl Outlet<P>,
    ) -> Option<Departure> {
        let Injection { from, to, bytes, .. } = injection;
        let token = self.packets.insert(UnderWay { injection, has_left: false, packet: None, fate: None });
        let packet = self.fabric.packet(NewPacket {
            from: self.places.host_of(from),
            to: self.places.host_of(to),
            bytes: bytes as u32,
            token: token as u32,
        });
        let (packets, places) = (&mut self.packets, self.places);
        let mut edges = Edges { ports, packets, losses, places, outlet, now, injected: Some(token), departure: None };
        self.fabric.inject(now, packet, &mut edges);
        edges.departure
    }

    /// Accepts a departing packet from its card.
    pub fn transmit(&mut self, ticket: u32, packet: P, outlet: &mut impl Outlet<P>) {
        self.packets[ticket as usize].packet = Some(packet);
        end_if_known(&mut self.packets, ticket, outlet);
    }

    /// Handles an event at `now`.
    pub fn handle(
        &mut self,
        now: Time,
        event: Event,
        ports: &mut [SerialResource],
        losses: &mut PathLosses,
        outlet: &mut impl Outlet<P>,
    ) {
        let (packets, places) = (&mut self.packets, self.places);
        let mut edges = Edges { ports, packets, losses, places, outlet, now, injected: None, departure: None };
        // The other signals concern rates and pulls, which cards do not support.
        if let Some(Signal::Resend(lost)) = self.fabric.handle(now, event, &mut edges) {
            self.fabric.inject(now, lost, &mut edges);
        }
    }
}
