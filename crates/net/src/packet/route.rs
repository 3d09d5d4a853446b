use sim::Time;

use super::{Packet, PacketNetwork, Routing, Wire};
use crate::topology::Trail;

/// How a packet leaves a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Way {
    pub link: u32,
    pub lane: u8,
    pub class: u8,
}

/// What a packet's choices depend on besides queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hash(u32);

impl Hash {
    pub const NONE: Hash = Hash(0);

    /// Of a pair of hosts and the number of a packet.
    pub fn new(seed: u64, from: u32, to: u32, packet: u64) -> Hash {
        Hash((mix(mix(seed ^ packet) ^ (u64::from(from) << 32 | u64::from(to))) >> 32) as u32)
    }

    /// One of `count`, as this switch sees it: without the switch, packets that met would choose alike ever after.
    #[inline]
    fn pick(self, switch: u32, count: usize) -> usize {
        let mixed = mix(u64::from(switch) << 32 | u64::from(self.0)) >> 32;
        ((mixed * count as u64) >> 32) as usize
    }
}

/// Scatters the bits (the finalizer of MurmurHash3 behind an odd constant).
#[inline]
fn mix(bits: u64) -> u64 {
    let bits = bits.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let bits = (bits ^ bits >> 33).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let bits = (bits ^ bits >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ bits >> 33
}

impl Wire {
    /// How long a new packet would wait.
    #[inline]
    pub(super) fn queue(&self, now: Time) -> Time {
        self.free.saturating_sub(now) + self.held
    }
}

impl PacketNetwork {
    #[inline]
    pub(super) fn is_adaptive(&self) -> bool {
        self.parameters.routing == Routing::Adaptive
    }

    /// How a packet leaves a switch, whatever the queues are.
    #[inline]
    pub(super) fn fixed_way(&self, vertex: u32, packet: &Packet) -> Way {
        let (switch, trail) = (vertex - self.hosts, packet.trail);
        let ways = self.topology.ways(switch, packet.to, trail);
        let place = if ways.ports.len() == 1 { 0 } else { packet.hash.pick(switch, ways.ports.len()) };
        let link = self.topology.first(vertex) + ways.ports[place];
        Way { link, lane: ways.lane(place), class: trail.class }
    }

    /// How a packet leaves a switch when it may choose the shortest queue.
    pub(super) fn choose(&self, now: Time, packet: &Packet) -> Way {
        let (vertex, trail) = (packet.at, packet.trail);
        if self.classes > 1 && trail.hops == 0 {
            return self.choose_class(now, packet);
        }
        let (switch, first) = (vertex - self.hosts, self.topology.first(vertex));
        let ways = self.topology.ways(switch, packet.to, trail);
        let place = match ways.ports.len() {
            1 => 0,
            count => self.shortest(now, first, ways.ports, packet.hash.pick(switch, count)),
        };
        Way { link: first + ways.ports[place], lane: ways.lane(place), class: trail.class }
    }

    /// At its first switch a packet may choose among classes too.
    fn choose_class(&self, now: Time, packet: &Packet) -> Way {
        let (switch, first) = (packet.at - self.hosts, self.topology.first(packet.at));
        let start = packet.hash.pick(switch, usize::from(self.classes)) as u8;
        let ways = (0..self.classes).map(|offset| {
            let class = (start + offset) % self.classes;
            let ways = self.topology.ways(switch, packet.to, Trail { class, ..packet.trail });
            let place = self.shortest(now, first, ways.ports, packet.hash.pick(switch, ways.ports.len()));
            Way { link: first + ways.ports[place], lane: ways.lane(place), class }
        });
        ways.min_by_key(|way| self.wires[way.link as usize].queue(now)).expect("there is a class")
    }

    /// The place of the port with the shortest queue; of equal ones, the first from `start` on.
    #[inline]
    fn shortest(&self, now: Time, first: u32, ports: &[u32], start: usize) -> usize {
        let queue = |place: usize| self.wires[(first + ports[place]) as usize].queue(now);
        (start..ports.len()).chain(0..start).min_by_key(|&place| queue(place)).expect("a host can be reached")
    }
}
