// SPDX-License-Identifier: Apache-2.0
//! Partition of a network for a parallel simulation.

use std::ops::Range;

use sim::Time;

use crate::Topology;
use crate::fabric::{Flow, Parameters};

/// Parts of a network: contiguous ranges of hosts with their switches, and the switches above them. Results do not depend
/// on the partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// First host of each part, followed by the number of hosts.
    bounds: Vec<u32>,
    /// Part of each host and switch.
    of_vertex: Vec<u8>,
    /// Part of each link's start.
    of_link: Vec<u8>,
}

impl Partition {
    /// Maximum number of parts.
    pub const MOST: usize = 255;

    /// Divides a network into at most `parts` parts whose hosts have about the same sum of `weights`. `group` consecutive
    /// hosts are always in one part, and so are all hosts of a switch.
    pub fn new(topology: &Topology, weights: impl Fn(u32) -> u64, group: u32, parts: usize) -> Partition {
        let bounds = bounds(&cuts(topology, group), topology.hosts(), weights, parts.clamp(1, Self::MOST));
        let of_vertex = of_vertices(topology, &bounds);
        let of_link = topology.links().iter().map(|link| of_vertex[link.from as usize]).collect();
        Partition { bounds, of_vertex, of_link }
    }

    /// Returns the number of parts.
    pub fn parts(&self) -> usize {
        self.bounds.len() - 1
    }

    /// Returns the hosts of a part.
    pub fn hosts(&self, part: usize) -> Range<u32> {
        self.bounds[part]..self.bounds[part + 1]
    }

    #[inline(always)]
    pub(crate) fn of_vertex(&self, vertex: u32) -> u8 {
        self.of_vertex[vertex as usize]
    }

    #[inline(always)]
    pub(crate) fn of_link(&self, link: u32) -> u8 {
        self.of_link[link as usize]
    }

    /// Returns the minimum time from an event of a part to its first effect on another part: the latency of a link
    /// between them, or of any link if losses are detected by hosts.
    pub fn lookahead(&self, topology: &Topology, parameters: &Parameters) -> Time {
        let crosses = |from: u32, to: u32| self.of_vertex(from) != self.of_vertex(to);
        let links = topology.links().iter();
        let counts = links.filter(|link| parameters.flow == Flow::Drop || crosses(link.from, link.to));
        counts.map(|link| link.latency.unwrap_or(parameters.wire)).min().unwrap_or(Time::MAX)
    }
}

/// Returns for each host if a part may start with it.
fn cuts(topology: &Topology, group: u32) -> Vec<bool> {
    let hosts = topology.hosts();
    // First and last host of each switch.
    let mut spans = vec![(u32::MAX, 0); topology.switches() as usize];
    for link in topology.links() {
        let (host, vertex) = (link.from.min(link.to), link.from.max(link.to));
        if host < hosts && vertex >= hosts {
            let (first, last) = &mut spans[(vertex - hosts) as usize];
            (*first, *last) = ((*first).min(host), (*last).max(host));
        }
    }
    let mut change = vec![0i64; hosts as usize + 1];
    for (first, last) in spans.into_iter().filter(|(first, last)| first < last) {
        change[first as usize + 1] += 1;
        change[last as usize + 1] -= 1;
    }
    let mut inside = 0;
    (0..hosts)
        .map(|host| {
            inside += change[host as usize];
            inside == 0 && host.is_multiple_of(group)
        })
        .collect()
}

/// Returns the first host of each part, followed by the number of hosts.
fn bounds(cuts: &[bool], hosts: u32, weights: impl Fn(u32) -> u64, parts: usize) -> Vec<u32> {
    let mut sums = vec![0u64];
    sums.extend((0..hosts).scan(0, |sum, host| {
        *sum += weights(host);
        Some(*sum)
    }));
    let all = sums.last().copied().unwrap_or(0);
    let mut bounds = vec![0];
    for part in 1..parts {
        let wanted = (u128::from(all) * part as u128 / parts as u128) as u64;
        let ideal = sums.partition_point(|&sum| sum < wanted);
        let is_cut = |&host: &usize| host < cuts.len() && cuts[host];
        let (before, after) = ((0..=ideal).rev().find(is_cut), (ideal..cuts.len()).find(is_cut));
        let nearest = before.into_iter().chain(after).min_by_key(|&host| sums[host].abs_diff(wanted));
        if let Some(host) = nearest.filter(|&host| bounds.last().is_some_and(|last| *last < host as u32)) {
            bounds.push(host as u32);
        }
    }
    bounds.push(hosts);
    bounds
}

/// Returns the part of each host and switch. A switch without hosts joins the part with most of its neighbours, and among
/// several the one with the fewest links.
fn of_vertices(topology: &Topology, bounds: &[u32]) -> Vec<u8> {
    const NONE: u8 = u8::MAX;
    let (hosts, parts) = (topology.hosts(), bounds.len() - 1);
    let vertices = hosts + topology.switches();
    let mut of_vertex = vec![NONE; vertices as usize];
    for part in 0..parts {
        of_vertex[bounds[part] as usize..bounds[part + 1] as usize].fill(part as u8);
    }
    for link in topology.links() {
        let (host, vertex) = (link.from.min(link.to), link.from.max(link.to));
        if host < hosts {
            of_vertex[vertex as usize] = of_vertex[host as usize];
        }
    }
    let mut load = vec![0u64; parts];
    let links_of = |vertex: u32| topology.first(vertex) as usize..topology.first(vertex + 1) as usize;
    for vertex in (0..vertices).filter(|vertex| of_vertex[*vertex as usize] != NONE) {
        load[usize::from(of_vertex[vertex as usize])] += links_of(vertex).len() as u64;
    }
    let mut left: Vec<u32> = (hosts..vertices).filter(|vertex| of_vertex[*vertex as usize] == NONE).collect();
    while !left.is_empty() {
        // Level by level, from the hosts.
        let mut found = Vec::new();
        left.retain(|&vertex| {
            let mut neighbours = vec![0u32; parts];
            for link in &topology.links()[links_of(vertex)] {
                if let Some(count) = neighbours.get_mut(usize::from(of_vertex[link.to as usize])) {
                    *count += 1;
                }
            }
            let most = neighbours.iter().copied().max().unwrap_or(0);
            if most == 0 {
                return true;
            }
            let among = (0..parts).filter(|&part| neighbours[part] == most);
            if let Some(part) = among.min_by_key(|&part| load[part]) {
                load[part] += links_of(vertex).len() as u64;
                found.push((vertex, part as u8));
            }
            false
        });
        if found.is_empty() {
            // Nothing reaches the others.
            left.iter().for_each(|&vertex| of_vertex[vertex as usize] = 0);
            break;
        }
        for (vertex, part) in found {
            of_vertex[vertex as usize] = part;
        }
    }
    of_vertex
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Dragonfly;

    #[test]
    fn parts_have_whole_switches_and_the_same_weight() {
        let topologies = [
            Topology::fat_tree(8, 1, 128),
            Topology::fat_tree(8, 3, 100),
            Topology::torus(&[4, 4, 4], 2),
            Topology::dragonfly(Dragonfly { hosts: 2, routers: 4, global: 2, groups: 9 }),
        ];
        for topology in topologies.map(Result::unwrap) {
            for parts in [1, 2, 3, 8] {
                let partition = Partition::new(&topology, |_| 1, 1, parts);
                assert_eq!(partition.parts(), parts, "{}", topology.description());
                let (hosts, switches) = (topology.hosts(), topology.switches());
                let mut count = vec![0; parts];
                for link in topology.links().iter().filter(|link| link.from < hosts || link.to < hosts) {
                    assert_eq!(partition.of_vertex(link.from), partition.of_vertex(link.to));
                }
                for switch in hosts..hosts + switches {
                    count[usize::from(partition.of_vertex(switch))] += 1;
                }
                for part in 0..parts {
                    let share = hosts as usize / parts;
                    assert!(partition.hosts(part).len().abs_diff(share) <= 12, "{part} of {parts}");
                    let share = switches as usize / parts;
                    assert!(count[part] * 2 >= share && count[part] <= share * 2 + 2, "{count:?}");
                }
            }
        }
    }

    #[test]
    fn weights_and_groups_move_the_bounds() {
        let topology = Topology::torus(&[16], 1).unwrap();
        let heavy = Partition::new(&topology, |host| if host < 4 { 3 } else { 1 }, 1, 2);
        assert_eq!((heavy.hosts(0), heavy.hosts(1)), (0..4, 4..16));
        let pairs = Partition::new(&topology, |_| 1, 3, 4);
        assert_eq!((0..pairs.parts()).map(|part| pairs.hosts(part)).collect::<Vec<_>>(), [0..3, 3..9, 9..12, 12..16]);
        // The hosts of one switch stay together.
        assert_eq!(Partition::new(&Topology::single_switch(9).unwrap(), |_| 1, 1, 4).parts(), 1);
        let mixed = Topology::from_dot("graph { h0 -- a h1 -- b h2 -- a h3 -- b a -- b }").unwrap();
        assert_eq!(Partition::new(&mixed, |_| 1, 1, 2).parts(), 1);
    }

    #[test]
    fn the_lookahead_is_the_shortest_link_between_parts() {
        let text = "graph { edge [latency=9] h0 -- a [latency=1] h1 -- b a -- b [latency=5] }";
        let topology = Topology::from_dot(text).unwrap();
        let partition = Partition::new(&topology, |_| 1, 1, 2);
        let mut parameters = Parameters::of_machine(&machine::Network {
            wire: Time::from_ns(9),
            ..machine::Machine::load(
                "sc17-int",
                &[concat!(env!("CARGO_MANIFEST_DIR"), "/../../../machines").into()],
                &[],
            )
            .unwrap()
            .network
        });
        assert_eq!(partition.lookahead(&topology, &parameters), Time::from_ns(5));
        parameters.flow = Flow::Drop;
        assert_eq!(partition.lookahead(&topology, &parameters), Time::from_ns(1));
        let alone = Partition::new(&topology, |_| 1, 1, 1);
        parameters.flow = Flow::Credits;
        assert_eq!(alone.lookahead(&topology, &parameters), Time::MAX);
    }
}
