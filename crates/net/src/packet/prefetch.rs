use sim::memory::prefetch;

use super::{Event, Flow, PacketNetwork};
use crate::topology::Trail;

/// Networks of many hosts are larger than the processor's cache, and nearly every event is about another part of them than
/// the one before. Who takes events from the queue has what they need fetched while others are handled, in steps: each step
/// reads what the one before has fetched. All are only hints.
impl PacketNetwork {
    /// The first step: what the event names.
    #[inline]
    pub fn prefetch(&self, event: Event) {
        match event {
            Event::Hop(packet) | Event::Again(packet) => self.packets.prefetch(packet),
            Event::Card(host) => {
                prefetch(&raw const self.cards[host as usize]);
                self.prefetch_link(self.topology.first(host), 0);
            }
            Event::Credit(channel) => self.prefetch_link(channel / self.lanes, (channel % self.lanes) as u8),
            Event::Sent(transfer) | Event::Arrived(transfer) => self.transfers.prefetch(transfer),
        }
    }

    /// The second step: where packets go.
    #[inline]
    pub fn prefetch_next(&self, event: Event) {
        match event {
            Event::Hop(id) => {
                let packet = &self.packets[id];
                if self.parameters.flow == Flow::Credits {
                    self.credits.prefetch(packet.channel);
                }
                if self.is_adaptive() {
                    self.prefetch_ways(packet.at, packet.to, packet.trail);
                } else {
                    self.prefetch_link(packet.way.link, packet.way.lane);
                }
            }
            Event::Card(host) => {
                if let Some(first) = self.cards[host as usize].first() {
                    self.transfers.prefetch(first);
                }
            }
            Event::Credit(channel) => {
                if let Some(first) = self.credits[channel].first() {
                    self.packets.prefetch(first);
                }
            }
            _ => {}
        }
    }

    /// The third step: where packets go next, or the message of one on its last link. Returns the token of a message that has arrived.
    #[inline]
    pub fn prefetch_last(&self, event: Event) -> Option<u32> {
        match event {
            Event::Hop(id) => {
                let packet = &self.packets[id];
                if self.is_adaptive() {
                    self.transfers.prefetch(packet.transfer);
                    return None;
                }
                match self.wires[packet.way.link as usize].to {
                    to if to < self.hosts => self.transfers.prefetch(packet.transfer),
                    vertex => self.topology.prefetch(vertex, packet.to),
                }
                None
            }
            Event::Credit(channel) => {
                if let Some(first) = self.credits[channel].first() {
                    self.credits.prefetch(self.packets[first].channel);
                }
                None
            }
            Event::Arrived(transfer) | Event::Sent(transfer) => Some(self.transfers[transfer].token),
            _ => None,
        }
    }

    #[inline]
    fn prefetch_link(&self, link: u32, lane: u8) {
        prefetch(self.wires.as_ptr().wrapping_add(link as usize));
        self.credits.prefetch(link * self.lanes + u32::from(lane));
    }

    fn prefetch_ways(&self, vertex: u32, to: u32, trail: Trail) {
        let first = self.topology.first(vertex);
        let ways = self.topology.ways(vertex - self.hosts, to, trail);
        for (place, port) in ways.ports.iter().enumerate() {
            prefetch(self.wires.as_ptr().wrapping_add((first + port) as usize));
            if ways.ports.len() == 1 {
                self.credits.prefetch((first + port) * self.lanes + u32::from(ways.lane(place)));
            }
        }
    }
}
