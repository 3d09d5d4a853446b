// SPDX-License-Identifier: Apache-2.0
//! Table routes of arbitrary networks.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;

use sim::memory::prefetch;

use super::wiring::{Link, NextHops, too_large};
use crate::NetError;

/// Hosts reached through a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Route {
    /// The file does not list hosts.
    Unsaid,
    All,
    /// Listed hosts, in order.
    Hosts(Rc<[u32]>),
}

impl Route {
    fn has(&self, host: u32) -> bool {
        match self {
            Route::Unsaid => false,
            Route::All => true,
            Route::Hosts(listed) => listed.binary_search(&host).is_ok(),
        }
    }
}

/// Maximum number of virtual channels of a link.
const MOST_VCS: u32 = 64;

/// Routes of an arbitrary network: a table of ports for each switch and host.
///
/// Most hosts of a switch have the same routes at all other switches, and most sets of ports occur often. So hosts are
/// grouped, and each set is stored once.
///
/// If links cannot wait for each other cyclically, all packets share a virtual channel; otherwise a packet changes to
/// the next channel with each hop (Günther, 1981), so that it waits only for packets that are further along their
/// paths.
#[derive(Clone, Debug)]
pub(super) struct TableRoutes {
    names: Vec<String>,
    homes: Vec<Home>,
    groups: u32,
    /// Set of ports for each switch and each group.
    sets: Vec<u32>,
    /// Start of each set in `ports`, and end of the last.
    starts: Vec<u32>,
    ports: Vec<u32>,
    /// Maximum number of links between switches on a path.
    hops: u32,
    vcs: u32,
}

/// Attachment of a host.
#[derive(Clone, Copy, Debug)]
struct Home {
    /// Switch with the link to it.
    switch: u32,
    /// Number of the set of ports there.
    set: u32,
    /// Group of hosts at that switch that have the same ports at all other switches.
    group: u32,
}

impl TableRoutes {
    #[inline]
    fn place(&self, switch: u32, group: u32) -> usize {
        switch as usize * self.groups as usize + group as usize
    }

    #[inline]
    fn ports(&self, switch: u32, to: u32) -> &[u32] {
        let home = self.homes[to as usize];
        let set = if home.switch == switch { home.set } else { self.sets[self.place(switch, home.group)] } as usize;
        &self.ports[self.starts[set] as usize..self.starts[set + 1] as usize]
    }

    #[inline]
    pub fn next_hops(&self, switch: u32, to: u32, hops: u8) -> NextHops<'_> {
        // Behind the last of the longest paths is a host, which never waits.
        let vc = hops.min(self.vcs as u8 - 1);
        NextHops { ports: self.ports(switch, to), vc, is_pair: false }
    }

    #[inline]
    pub fn prefetch(&self, switch: u32, to: u32) {
        prefetch(&raw const self.sets[self.place(switch, self.homes[to as usize].group)]);
    }

    pub fn vcs(&self) -> u32 {
        self.vcs
    }

    pub fn longest_path(&self) -> u32 {
        self.hops + 2
    }

    pub fn name(&self, vertex: u32) -> &str {
        &self.names[vertex as usize]
    }
}

/// Builds the routes. `links` are in the order of their start vertices; each host has one outgoing and one incoming
/// link.
pub(super) fn build(names: Vec<String>, hosts: u32, links: &[Link], routes: &[Route]) -> Result<TableRoutes, NetError> {
    let switches = names.len() - hosts as usize;
    let ranges: Vec<Range<usize>> = (hosts..names.len() as u32)
        .map(|switch| {
            links.partition_point(|link| link.from < switch)..links.partition_point(|link| link.from <= switch)
        })
        .collect();
    let has_routes: Vec<bool> =
        ranges.iter().map(|range| routes[range.clone()].iter().any(|route| *route != Route::Unsaid)).collect();
    let mut sets = Sets::default();
    let mut homes = homes(hosts, links);
    let members = group(&mut homes, links, routes);
    too_large(switches as u64 * members.len() as u64)?;
    for (host, home) in (0..).zip(&mut homes) {
        let range = &ranges[home.switch as usize];
        let leads = |link: &usize| {
            if has_routes[home.switch as usize] { routes[*link].has(host) } else { links[*link].to == host }
        };
        home.set = sets.number(range.clone().filter(leads).map(|link| (link - range.start) as u32));
    }
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); names.len()];
    for link in links.iter().filter(|link| link.from >= hosts) {
        into[link.to as usize].push(link.from);
    }
    let mut table = vec![0; switches * members.len()];
    let mut distances = Distances { into, of: Vec::new(), queue: Vec::new() };
    for (group, &host) in members.iter().enumerate() {
        let distance = distances.to(host);
        for (switch, range) in ranges.iter().enumerate() {
            let leads = |index: &usize| {
                if has_routes[switch] {
                    return routes[*index].has(host);
                }
                let link = links[*index];
                let (here, there) = (distance[link.from as usize], distance[link.to as usize]);
                here != u32::MAX && there < here
            };
            table[switch * members.len() + group] =
                sets.number(range.clone().filter(leads).map(|link| (link - range.start) as u32));
        }
    }
    let groups = members.len() as u32;
    let Sets { starts, ports, .. } = sets;
    let mut ways = TableRoutes { names, homes, groups, sets: table, starts, ports, hops: 0, vcs: 1 };
    ways.hops = ways.check(links, &ranges)?;
    if ways.can_wait_for_itself(&members, links, &ranges) {
        ways.vcs = ways.hops;
        if ways.vcs > MOST_VCS {
            let what = format!(
                "ways of {} switches, which would need as many virtual channels; at most {MOST_VCS}",
                ways.hops + 1
            );
            return Err(NetError::Graph(what));
        }
    }
    Ok(ways)
}

/// Returns the hosts, with their switches.
fn homes(hosts: u32, links: &[Link]) -> Vec<Home> {
    let mut homes = vec![Home { switch: 0, set: 0, group: 0 }; hosts as usize];
    for link in links.iter().filter(|link| link.to < hosts) {
        homes[link.to as usize].switch = link.from - hosts;
    }
    homes
}

/// Assigns hosts to groups; returns the first host of each.
fn group(homes: &mut [Home], links: &[Link], routes: &[Route]) -> Vec<u32> {
    // Hosts of a switch differ if different links list them, apart from their own links.
    let mut listed = vec![Vec::new(); homes.len()];
    for (index, (link, route)) in links.iter().zip(routes).enumerate() {
        let Route::Hosts(hosts) = route else { continue };
        for &host in hosts.iter().filter(|host| **host != link.to) {
            listed[host as usize].push(index);
        }
    }
    let (mut numbers, mut members) = (HashMap::new(), Vec::new());
    for ((host, home), listed) in (0..).zip(homes).zip(listed) {
        home.group = *numbers.entry((home.switch, listed)).or_insert_with(|| {
            members.push(host);
            members.len() as u32 - 1
        });
    }
    members
}

/// Sets of ports, each stored once.
#[derive(Debug)]
struct Sets {
    numbers: HashMap<Box<[u32]>, u32>,
    starts: Vec<u32>,
    ports: Vec<u32>,
}

impl Default for Sets {
    fn default() -> Sets {
        Sets { numbers: HashMap::new(), starts: vec![0], ports: Vec::new() }
    }
}

impl Sets {
    /// Returns the number of a set.
    fn number(&mut self, ports: impl Iterator<Item = u32>) -> u32 {
        // The set is appended to all ports, and stays there if it is new.
        let start = self.ports.len();
        self.ports.extend(ports);
        let set = &self.ports[start..];
        if let Some(&number) = self.numbers.get(set) {
            self.ports.truncate(start);
            return number;
        }
        let number = self.numbers.len() as u32;
        self.numbers.insert(set.into(), number);
        self.starts.push(self.ports.len() as u32);
        number
    }
}

/// Distances of vertices, found breadth first.
struct Distances {
    /// Switches with links to each vertex.
    into: Vec<Vec<u32>>,
    of: Vec<u32>,
    queue: Vec<u32>,
}

impl Distances {
    /// Returns the distances of all vertices to a host, in links; [`u32::MAX`] without a path.
    fn to(&mut self, host: u32) -> &[u32] {
        self.of.clear();
        self.of.resize(self.into.len(), u32::MAX);
        self.of[host as usize] = 0;
        self.queue.clear();
        self.queue.push(host);
        let mut next = 0;
        while let Some(&vertex) = self.queue.get(next) {
            next += 1;
            for &from in &self.into[vertex as usize] {
                if self.of[from as usize] == u32::MAX {
                    self.of[from as usize] = self.of[vertex as usize] + 1;
                    self.queue.push(from);
                }
            }
        }
        &self.of
    }
}

impl TableRoutes {
    /// Checks that every host can be reached from every other, without cycles. Returns the maximum number of links
    /// between switches.
    fn check(&self, links: &[Link], ranges: &[Range<usize>]) -> Result<u32, NetError> {
        const UNKNOWN: u32 = u32::MAX;
        const ON_THE_WAY: u32 = u32::MAX - 1;
        let mut most = 0;
        let mut depths = vec![UNKNOWN; ranges.len()];
        // Each host has one link, and these come first.
        let hosts = self.homes.len() as u32;
        let of_hosts = &links[..hosts as usize];
        let mut checked = vec![0; self.groups as usize];
        for to in 0..hosts {
            let home = self.homes[to as usize];
            let checked = &mut checked[home.group as usize];
            if *checked == 2 && !self.ports(home.switch, to).is_empty() {
                // The check of one host of a group is valid for all, up to their own switch; a second host is checked
                // with packets from the first.
                continue;
            }
            *checked = 2.min(*checked + 1);
            depths.fill(UNKNOWN);
            for link in of_hosts.iter().filter(|link| link.from != to) {
                let first = link.to - hosts;
                // Depth-first search: a switch is entered, and pushed again with the index of its next port.
                let mut stack = vec![(first, 0)];
                while let Some((switch, port)) = stack.pop() {
                    let ports = self.ports(switch, to);
                    if port == 0 {
                        if depths[switch as usize] < ON_THE_WAY {
                            continue;
                        }
                        if ports.is_empty() {
                            let (here, there) = (self.name(hosts + switch), self.name(to));
                            let start = self.name(link.from);
                            let what = format!("host {there} cannot be reached from {start}: {here} has no way to it");
                            return Err(NetError::Graph(what));
                        }
                        depths[switch as usize] = ON_THE_WAY;
                    }
                    let Some(&next) = ports.get(port) else {
                        let below = ports.iter().filter_map(|&port| {
                            let next = links[ranges[switch as usize].start + port as usize].to;
                            next.checked_sub(hosts).map(|next| depths[next as usize] + 1)
                        });
                        depths[switch as usize] = below.max().unwrap_or(0);
                        continue;
                    };
                    stack.push((switch, port + 1));
                    let next = links[ranges[switch as usize].start + next as usize].to;
                    if next == to {
                        continue;
                    }
                    let place = next.checked_sub(hosts).filter(|&next| depths[next as usize] != ON_THE_WAY);
                    let Some(next) = place else {
                        let (here, there) = (self.name(hosts + switch), self.name(to));
                        let next = self.name(next);
                        let what =
                            format!("the routes send packets for host {there} from {here} to {next} and never on");
                        return Err(NetError::Graph(what));
                    };
                    stack.push((next, 0));
                }
                most = most.max(depths[first as usize]);
            }
        }
        Ok(most)
    }

    /// Returns true if the links between switches, each waiting for those that packets take next, form a cycle (Dally
    /// and Seitz). `members` has one of each group of hosts.
    fn can_wait_for_itself(&self, members: &[u32], links: &[Link], ranges: &[Range<usize>]) -> bool {
        let hosts = self.homes.len() as u32;
        // For each link, true for each port of the switch at its end that may follow.
        let mut next: Vec<Vec<bool>> = vec![Vec::new(); links.len()];
        for (switch, range) in ranges.iter().enumerate() {
            for &to in members {
                for &port in self.ports(switch as u32, to) {
                    let link = range.start + port as usize;
                    let Some(there) = links[link].to.checked_sub(hosts) else { continue };
                    next[link].resize(ranges[there as usize].len(), false);
                    for &port in self.ports(there, to) {
                        next[link][port as usize] = true;
                    }
                }
            }
        }
        let next_of = |link: usize| {
            let first = links[link].to.checked_sub(hosts).map_or(0, |there| ranges[there as usize].start);
            (first..).zip(&next[link]).filter(|(_, comes)| **comes).map(|(link, _)| link)
        };
        let mut waited_for = vec![0u32; links.len()];
        for link in (0..links.len()).flat_map(next_of) {
            waited_for[link] += 1;
        }
        // Links that no other link waits for are removed repeatedly. The remaining ones are on a cycle or behind one.
        let mut free: Vec<usize> = (0..links.len()).filter(|&link| waited_for[link] == 0).collect();
        let mut taken = 0;
        while let Some(link) = free.pop() {
            taken += 1;
            for link in next_of(link) {
                waited_for[link] -= 1;
                if waited_for[link] == 0 {
                    free.push(link);
                }
            }
        }
        taken < links.len()
    }
}
