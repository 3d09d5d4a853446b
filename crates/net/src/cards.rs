use sim::{Pipe, Time};
use slab::Slab;

use crate::fabric::{Arrival, Edge, Event, Fabric, Kind, Left, NewPacket};
use crate::injection::{Departure, Injection, Outlet};

/// A fabric between cards: it knows the packets that are under way.
#[derive(Debug)]
pub(crate) struct CardFabric<P> {
    pub fabric: Fabric,
    packets: Slab<UnderWay<P>>,
}

/// A packet under way.
#[derive(Debug)]
struct UnderWay<P> {
    injection: Injection,
    /// Whether its card knows when it leaves, or has left, for the first time.
    has_left: bool,
    /// The packet, once the card has handed it over.
    packet: Option<P>,
    /// When its first byte arrives, once that is known.
    arrival: Option<Time>,
}

/// The sending ports, the packets and the world, as the fabric sees them.
struct Edges<'a, P, O> {
    ports: &'a mut [Pipe],
    packets: &'a mut Slab<UnderWay<P>>,
    outlet: &'a mut O,
    now: Time,
    /// The packet that is being injected, and when it leaves.
    injected: Option<usize>,
    departure: Option<Departure>,
}

impl<P, O: Outlet<P>> Edge for Edges<'_, P, O> {
    fn schedule(&mut self, at: Time, event: Event) {
        self.outlet.schedule(at, event);
    }

    /// The sending port says when: it keeps the fractions of picoseconds, and the gap between messages.
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

    fn left(&mut self, _: Left) {}

    fn arrives(&mut self, Arrival { token, first, .. }: Arrival) {
        let under_way = &mut self.packets[token as usize];
        match under_way.packet.take() {
            Some(packet) => {
                self.outlet.arrives(first, under_way.injection.to, packet);
                self.packets.remove(token as usize);
            }
            None => under_way.arrival = Some(first),
        }
    }
}

impl<P> CardFabric<P> {
    pub fn new(fabric: Fabric) -> CardFabric<P> {
        CardFabric { fabric, packets: Slab::new() }
    }

    /// Asks for a packet to leave for another node; `None` when it is blocked.
    pub fn inject(
        &mut self,
        now: Time,
        injection: Injection,
        ports: &mut [Pipe],
        outlet: &mut impl Outlet<P>,
    ) -> Option<Departure> {
        let Injection { from, to, bytes, .. } = injection;
        let token = self.packets.insert(UnderWay { injection, has_left: false, packet: None, arrival: None });
        let packet = self.fabric.packet(NewPacket { from, to, bytes: bytes as u32, token: token as u32 });
        let packets = &mut self.packets;
        let mut edges = Edges { ports, packets, outlet, now, injected: Some(token), departure: None };
        self.fabric.inject(now, packet, &mut edges);
        edges.departure
    }

    /// Takes over a packet that leaves.
    pub fn transmit(&mut self, ticket: u32, packet: P, outlet: &mut impl Outlet<P>) {
        let under_way = &mut self.packets[ticket as usize];
        match under_way.arrival {
            Some(at) => {
                outlet.arrives(at, under_way.injection.to, packet);
                self.packets.remove(ticket as usize);
            }
            None => under_way.packet = Some(packet),
        }
    }

    /// Handles an event that is due at `now`.
    pub fn handle(&mut self, now: Time, event: Event, ports: &mut [Pipe], outlet: &mut impl Outlet<P>) {
        let packets = &mut self.packets;
        let mut edges = Edges { ports, packets, outlet, now, injected: None, departure: None };
        if let Some(lost) = self.fabric.handle(now, event, &mut edges) {
            self.fabric.inject(now, lost, &mut edges);
        }
    }
}
