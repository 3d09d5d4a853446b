// SPDX-License-Identifier: Apache-2.0
//! Routing decision of a packet at a switch.

use sim::Time;

use super::link::LinkState;
use super::packet::{Packet, Way};
use crate::Topology;
use crate::topology::RouteState;

/// Returns the way out of switch `vertex` that does not depend on queues.
#[inline(always)]
pub(crate) fn fixed(topology: &Topology, vertex: u32, packet: &Packet) -> Way {
    let (switch, state) = (vertex - topology.hosts(), packet.state);
    let hops = topology.next_hops(switch, packet.to, state);
    let place = if hops.ports.len() == 1 { 0 } else { packet.hash.pick(switch, hops.ports.len()) };
    Way { link: topology.first(vertex) + hops.ports[place], vc: hops.vc(place), class: state.class }
}

/// Returns the way out of the current switch with the shortest queue, among paths of `classes` classes.
pub(crate) fn adaptive(topology: &Topology, classes: u8, links: &[LinkState], now: Time, packet: &Packet) -> Way {
    let (vertex, state) = (packet.at, packet.state);
    let (switch, first) = (vertex - topology.hosts(), topology.first(vertex));
    if classes > 1 && state.hops == 0 {
        // At its first switch a packet may also choose among classes.
        let start = packet.hash.pick(switch, usize::from(classes)) as u8;
        let ways = (0..classes).map(|offset| {
            let class = (start + offset) % classes;
            let hops = topology.next_hops(switch, packet.to, RouteState { class, ..state });
            let place = shortest(links, now, first, hops.ports, packet.hash.pick(switch, hops.ports.len()));
            Way { link: first + hops.ports[place], vc: hops.vc(place), class }
        });
        return ways.min_by_key(|way| links[way.link as usize].queue(now)).expect("there is a class");
    }
    let hops = topology.next_hops(switch, packet.to, state);
    let place = match hops.ports.len() {
        1 => 0,
        count => shortest(links, now, first, hops.ports, packet.hash.pick(switch, count)),
    };
    Way { link: first + hops.ports[place], vc: hops.vc(place), class: state.class }
}

/// Returns the index of the port with the shortest queue; among equal ones, the first from `start` on.
#[inline]
fn shortest(links: &[LinkState], now: Time, first: u32, ports: &[u32], start: usize) -> usize {
    let queue = |place: usize| links[(first + ports[place]) as usize].queue(now);
    (start..ports.len()).chain(0..start).min_by_key(|&place| queue(place)).expect("a host can be reached")
}
