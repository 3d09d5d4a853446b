// SPDX-License-Identifier: Apache-2.0
//! Dragonfly: shape, wiring and routes.

use super::wiring::{NextHops, Wiring, too_large};
use crate::NetError;

/// Shape of a dragonfly: groups of routers. Each router is connected to all others of its group, and each group to all
/// other groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dragonfly {
    /// p: number of hosts of a router.
    pub hosts: u32,
    /// a: number of routers of a group.
    pub routers: u32,
    /// h: number of links of a router to other groups.
    pub global: u32,
    /// g: number of groups, at most a h + 1.
    pub groups: u32,
}

impl Dragonfly {
    /// Returns the smallest balanced dragonfly (a = 2p = 2h, g = a h + 1) with room for `hosts` hosts.
    pub fn for_hosts(hosts: usize) -> Dragonfly {
        let balanced = |h: u32| Dragonfly { hosts: h, routers: 2 * h, global: h, groups: 2 * h * h + 1 };
        let room = |shape: &Dragonfly| u64::from(shape.hosts) * u64::from(shape.routers) * u64::from(shape.groups);
        (1..200).map(balanced).find(|shape| room(shape) >= hosts as u64).unwrap_or(balanced(200))
    }

    /// Returns the dragonfly of three or four numbers: p, a, h and, if not the maximum, g.
    ///
    /// # Errors
    /// If the list has fewer or more numbers.
    pub fn from_numbers(numbers: &[u32]) -> Result<Dragonfly, NetError> {
        match *numbers {
            [hosts, routers, global] => {
                let groups = routers.saturating_mul(global).saturating_add(1);
                Ok(Dragonfly { hosts, routers, global, groups })
            }
            [hosts, routers, global, groups] => Ok(Dragonfly { hosts, routers, global, groups }),
            _ => Err(NetError::Parameter { parameter: "dragonfly", what: "has three or four numbers".into() }),
        }
    }
}

/// Routes of a dragonfly. Packets to another group go to a router with a link there, over that link, and to the host's
/// router: in virtual channel 0 until they reach the host's group and in channel 1 there, so that no packet in channel
/// 1 waits for one in channel 0 (Kim et al., §4.1).
///
/// A router's ports are first to its hosts, then to the other routers of its group, then to other groups. Global link j
/// of a group belongs to router j / h and leads to the group at distance 1 + j mod (g - 1).
#[derive(Clone, Debug)]
pub(super) struct DragonflyRoutes {
    shape: Dragonfly,
    /// Numbers from 0 on; a set of ports is a range of them.
    ports: Vec<u32>,
    /// For each router of a group and each group distance, the start of its ports in `gates`.
    starts: Vec<u32>,
    /// Ports to that group, or else to the routers with such ports.
    gates: Vec<u32>,
}

impl DragonflyRoutes {
    pub const VCS: u32 = 2;
    /// Maximum number of hops: to a router, within its group, to another group, within that group, and to a host.
    pub const LONGEST_PATH: u32 = 5;

    #[inline]
    pub fn next_hops(&self, switch: u32, to: u32) -> NextHops<'_> {
        let Dragonfly { hosts, routers, groups, .. } = self.shape;
        let goal = to / hosts;
        let (group, goal_group) = (switch / routers, goal / routers);
        if group == goal_group {
            let port =
                if goal == switch { to - goal * hosts } else { self.local(switch - group * routers, goal % routers) };
            return NextHops { ports: &self.ports[port as usize..=port as usize], vc: 1, is_pair: false };
        }
        let distance = if goal_group > group { goal_group - group } else { goal_group + groups - group };
        let place = ((switch - group * routers) * (groups - 1) + distance - 1) as usize;
        let ports = &self.gates[self.starts[place] as usize..self.starts[place + 1] as usize];
        NextHops { ports, vc: 0, is_pair: false }
    }

    /// Returns the port from one router of a group to another.
    #[inline]
    fn local(&self, from: u32, to: u32) -> u32 {
        self.shape.hosts + if to < from { to } else { to - 1 }
    }

    pub fn name(&self, switch: u32) -> String {
        format!("router {} of group {}", switch % self.shape.routers, switch / self.shape.routers)
    }
}

pub(super) fn build(shape: Dragonfly) -> Result<(Wiring, DragonflyRoutes), NetError> {
    let Dragonfly { hosts, routers, global, groups } = shape;
    if hosts == 0 || routers == 0 || groups == 0 {
        return Err(NetError::DragonflyEmpty);
    }
    if u64::from(groups) > u64::from(routers) * u64::from(global) + 1 {
        return Err(NetError::DragonflyGroups { routers, global, groups });
    }
    let radix = u64::from(hosts) + u64::from(routers) + u64::from(global);
    let switches = u64::from(routers) * u64::from(groups);
    too_large(switches.saturating_mul(radix))?;
    let all = (switches * u64::from(hosts)) as u32;
    // Every other group gets the same number of links; the remainder stays unconnected.
    let others = groups - 1;
    let rounds = (routers * global).checked_div(others).unwrap_or(0);
    let mut plan = DragonflyRoutes { shape, ports: (0..hosts + routers).collect(), starts: vec![0], gates: Vec::new() };
    for router in 0..routers {
        for distance in 1..groups {
            let links = || (0..rounds).map(|round| round * others + distance - 1);
            let own = links().filter(|link| link / global == router);
            let start = plan.gates.len();
            plan.gates.extend(own.map(|link| hosts + routers - 1 + link % global));
            if plan.gates.len() == start {
                let gates = links().map(|link| plan.local(router, link / global)).collect::<Vec<_>>();
                plan.gates.extend(gates);
            }
            plan.starts.push(plan.gates.len() as u32);
        }
    }
    let mut neighbours: Vec<Vec<u32>> = (0..all).map(|host| vec![all + host / hosts]).collect();
    for group in 0..groups {
        for router in 0..routers {
            let base = all + group * routers;
            let own = (group * routers + router) * hosts;
            let mut ports: Vec<u32> = (own..own + hosts).collect();
            ports.extend((0..routers).filter(|&other| other != router).map(|other| base + other));
            for link in (router * global..(router + 1) * global).take_while(|&link| link < rounds * others) {
                let (round, distance) = (link / others, link % others + 1);
                let back = round * others + groups - distance - 1;
                ports.push(all + (group + distance) % groups * routers + back / global);
            }
            neighbours.push(ports);
        }
    }
    let description =
        format!("dragonfly of {groups} groups of {routers} routers, {global} global links and {hosts} hosts each");
    Ok((Wiring { description, hosts: all, neighbours }, plan))
}
