// SPDX-License-Identifier: Apache-2.0
//! Fat tree: wiring and routes.

use sim::memory::prefetch;

use super::wiring::{NextHops, Wiring, too_large};
use crate::NetError;

/// Routes of a fat tree. Packets go up to the lowest switch above the host, over any of the uplinks, and down again. No
/// packet on its way down waits for one on its way up, so one virtual channel suffices.
#[derive(Clone, Debug)]
pub(super) struct TreeRoutes {
    levels: u32,
    switches: Vec<Switch>,
    /// Numbers from 0 on; a set of ports is a range of them.
    ports: Vec<u32>,
}

#[derive(Clone, Debug)]
struct Switch {
    /// First host below it.
    low: u32,
    hosts: u32,
    /// Number of hosts below each of its ports except the last.
    each: u32,
    /// Number of downward ports, which come first.
    down: u32,
    up: u32,
    level: u32,
    /// Number on that level.
    number: u32,
}

impl TreeRoutes {
    #[inline]
    pub fn next_hops(&self, switch: u32, to: u32) -> NextHops<'_> {
        let switch = &self.switches[switch as usize];
        let place = to.wrapping_sub(switch.low);
        let (first, count) = if place < switch.hosts { (place / switch.each, 1) } else { (switch.down, switch.up) };
        NextHops { ports: &self.ports[first as usize..(first + count) as usize], vc: 0, is_pair: false }
    }

    #[inline]
    pub fn prefetch(&self, switch: u32) {
        prefetch(&raw const self.switches[switch as usize]);
    }

    pub fn longest_path(&self) -> u32 {
        2 * self.levels
    }

    pub fn name(&self, switch: u32) -> String {
        let Switch { level, number, .. } = self.switches[switch as usize];
        if self.levels == 1 { "switch".into() } else { format!("switch {number} of level {level}") }
    }
}

pub(super) fn single(hosts: usize) -> Result<(Wiring, TreeRoutes), NetError> {
    if hosts == 0 {
        return Err(NetError::NoNodes);
    }
    too_large(2 * hosts as u64)?;
    let hosts = hosts as u32;
    let switch = Switch { low: 0, hosts, each: 1, down: hosts, up: 0, level: 1, number: 0 };
    let mut neighbours = vec![vec![hosts]; hosts as usize];
    neighbours.push((0..hosts).collect());
    let routes = TreeRoutes { levels: 1, switches: vec![switch], ports: (0..hosts).collect() };
    Ok((Wiring { description: "single switch".into(), hosts, neighbours }, routes))
}

/// Builds a fat tree. A *subtree* of level i is a switch of that level and all vertices below it. It has as many top
/// switches as a subtree of the level below has uplinks, and each of these links leads to a different one of them.
pub(super) fn build(radix: u32, taper: u32, hosts: usize) -> Result<(Wiring, TreeRoutes), NetError> {
    if hosts == 0 {
        return Err(NetError::NoNodes);
    }
    if radix == 0 || !radix.is_multiple_of(2) {
        return Err(NetError::Radix { radix });
    }
    let wrong_taper = NetError::Taper { radix, taper };
    let up_of_leaf = taper.checked_add(1).map_or(0, |ports| radix / ports);
    if taper == 0 || up_of_leaf == 0 {
        return Err(wrong_taper);
    }
    too_large(hosts as u64)?;
    let half = radix / 2;
    let levels = levels(radix, taper * up_of_leaf, hosts)?;
    if levels == 1 {
        let (wiring, routes) = single(hosts)?;
        return Ok((Wiring { description: format!("fat tree of one {radix}-port switch"), ..wiring }, routes));
    }
    let hosts = hosts as u32;
    let mut neighbours: Vec<Vec<u32>> = vec![Vec::new(); hosts as usize];
    let mut switches: Vec<Switch> = Vec::new();
    // State of the level below: hosts of a subtree, its top switches, the uplinks of each, and the first switch.
    let (mut each, mut tops, mut ways, mut below) = (1u64, 1u32, 1u32, 0u32);
    for level in 1..=levels {
        let (down, up) = if level == levels {
            (radix, 0)
        } else if level == 1 {
            (taper * up_of_leaf, up_of_leaf)
        } else {
            (half, half)
        };
        let size = each * u64::from(down);
        let subtrees = u64::from(hosts).div_ceil(size);
        let children = u64::from(hosts).div_ceil(each);
        let (top, base) = (tops * ways, neighbours.len() as u32);
        too_large(subtrees * u64::from(top) * u64::from(radix))?;
        for subtree in 0..subtrees {
            let low = (subtree * size) as u32;
            let first_child = (subtree * u64::from(down)) as u32;
            let own = (children - u64::from(first_child)).min(u64::from(down)) as u32;
            for index in 0..top {
                let vertex = neighbours.len() as u32;
                let child = |number: u32| below + (first_child + number) * tops + index / ways;
                neighbours.push((0..own).map(child).collect());
                for number in 0..own {
                    neighbours[child(number) as usize].push(vertex);
                }
                let hosts = size.min(u64::from(hosts - low)) as u32;
                let (each, number) = (each as u32, vertex - base);
                switches.push(Switch { low, hosts, each, down: own, up, level, number });
            }
        }
        (each, tops, ways, below) = (size, top, up, base);
    }
    let tapered = if taper > 1 { format!(" tapered {taper}:1") } else { String::new() };
    let description = format!("fat tree of {radix}-port switches, {levels} levels{tapered}");
    let routes = TreeRoutes { levels, switches, ports: (0..radix).collect() };
    Ok((Wiring { description, hosts, neighbours }, routes))
}

/// Returns the minimum number of levels with room for the hosts.
fn levels(radix: u32, leaf: u32, hosts: usize) -> Result<u32, NetError> {
    let (mut levels, mut room, hosts_needed) = (1, u64::from(radix), hosts as u64);
    while room < hosts_needed {
        room = if levels == 1 { u64::from(leaf) * u64::from(radix) } else { room * u64::from(radix / 2) };
        levels += 1;
        if radix == 2 {
            return Err(NetError::TooManyNodes { nodes: hosts });
        }
    }
    Ok(levels)
}
