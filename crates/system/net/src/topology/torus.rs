// SPDX-License-Identifier: Apache-2.0
//! Torus: wiring and routes.

use sim::memory::prefetch;

use super::wiring::{NextHops, Wiring, too_large};
use crate::NetError;

/// Maximum number of dimensions.
const MOST: usize = 5;

/// Routes of a torus. Packets go dimension by dimension, in the shorter direction around each ring, in either direction
/// if both are equal.
///
/// A ring could deadlock; so packets that must still cross its end use virtual channel 0 and all others use channel 1
/// (Dally and Seitz, 1987). Packets of class 0 cross the dimensions from first to last, those of class 1 from last to
/// first, in separate channels.
#[derive(Clone, Debug)]
pub(super) struct TorusRoutes {
    sides: [u16; MOST],
    hosts: u32,
    /// Coordinates of each switch.
    places: Vec<[u16; MOST]>,
    /// First port of each dimension.
    first: [u32; MOST],
    /// Numbers from 0 on; a set of ports is a range of them.
    ports: Vec<u32>,
}

impl TorusRoutes {
    pub const CLASSES: u8 = 2;
    /// Number of virtual channels of a class.
    pub const VCS: u32 = 2;

    #[inline]
    pub fn next_hops(&self, switch: u32, to: u32, class: u8) -> NextHops<'_> {
        let goal = to / self.hosts;
        let (here, there) = (&self.places[switch as usize], &self.places[goal as usize]);
        let mut dimensions = 0..MOST;
        let differs = |&dimension: &usize| here[dimension] != there[dimension];
        let next = if class == 0 { dimensions.find(differs) } else { dimensions.rev().find(differs) };
        let Some(dimension) = next else {
            let port = (to - goal * self.hosts) as usize;
            return NextHops { ports: &self.ports[port..=port], vc: 0, is_pair: false };
        };
        let (here, there, side) = (here[dimension], there[dimension], self.sides[dimension]);
        let up = if there > here { there - here } else { there + side - here };
        let (first, base) = (self.first[dimension] as usize, 2 * class);
        // Upwards, packets beyond their destination must still cross the end of the ring; downwards, packets before it.
        let (up_vc, down_vc) = (u8::from(there > here), u8::from(there < here));
        let (ports, vc, is_pair) = match up.cmp(&(side - up)) {
            _ if side == 2 => (first..first + 1, up_vc, false),
            std::cmp::Ordering::Less => (first..first + 1, up_vc, false),
            std::cmp::Ordering::Greater => (first + 1..first + 2, down_vc, false),
            std::cmp::Ordering::Equal => (first..first + 2, up_vc, true),
        };
        NextHops { ports: &self.ports[ports], vc: base + vc, is_pair }
    }

    #[inline]
    pub fn prefetch(&self, switch: u32) {
        prefetch(&raw const self.places[switch as usize]);
    }

    pub fn longest_path(&self) -> u32 {
        2 + self.sides.iter().map(|&side| u32::from(side / 2)).sum::<u32>()
    }

    pub fn name(&self, switch: u32) -> String {
        let dimensions = self.sides.iter().rposition(|&side| side > 1).map_or(1, |last| last + 1);
        let place: Vec<String> = self.places[switch as usize][..dimensions].iter().map(u16::to_string).collect();
        format!("switch ({})", place.join(","))
    }
}

pub(super) fn build(sides: &[u32], hosts: u32) -> Result<(Wiring, TorusRoutes), NetError> {
    if sides.is_empty() || sides.len() > MOST || sides.contains(&0) || hosts == 0 {
        return Err(NetError::TorusSides);
    }
    let switches = sides.iter().fold(1u64, |all, &side| all.saturating_mul(u64::from(side)));
    too_large(switches.saturating_mul(u64::from(hosts) + 2 * sides.len() as u64))?;
    let mut all_sides = [1u16; MOST];
    for (side, &given) in all_sides.iter_mut().zip(sides) {
        // Limit of a ring's length, beyond any real network.
        *side = u16::try_from(given).ok().filter(|&side| side <= 1 << 14).ok_or(NetError::TooLarge)?;
    }
    let switches = switches as u32;
    let all = switches * hosts;
    let mut first = [0; MOST];
    let mut ports = hosts;
    for (first, &side) in first.iter_mut().zip(&all_sides) {
        *first = ports;
        ports += u32::from(side.min(3) - 1);
    }
    let mut neighbours: Vec<Vec<u32>> = (0..all).map(|host| vec![all + host / hosts]).collect();
    let mut places = Vec::with_capacity(switches as usize);
    for switch in 0..switches {
        let mut own: Vec<u32> = (switch * hosts..(switch + 1) * hosts).collect();
        let (mut place, mut stride) = ([0; MOST], 1);
        for (place, &side) in place.iter_mut().zip(&all_sides) {
            let side = u32::from(side);
            let at = switch / stride % side;
            *place = at as u16;
            let beside = |step: u32| all + switch - at * stride + (at + step) % side * stride;
            match side {
                1 => {}
                2 => own.push(beside(1)),
                _ => own.extend([beside(1), beside(side - 1)]),
            }
            stride *= side;
        }
        places.push(place);
        neighbours.push(own);
    }
    let names: Vec<String> = sides.iter().map(u32::to_string).collect();
    let description = format!("torus of {} switches", names.join("x"));
    let routes = TorusRoutes { sides: all_sides, hosts, places, first, ports: (0..ports).collect() };
    Ok((Wiring { description, hosts: all, neighbours }, routes))
}
