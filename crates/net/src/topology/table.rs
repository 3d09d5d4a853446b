use std::collections::VecDeque;

use sim::memory::prefetch;

use super::{Link, Ways, too_large};
use crate::NetError;

/// Hosts for which a link is to be taken, in order, where the file says so.
pub(super) type Route = Option<Vec<u32>>;

/// Most lanes of a link.
const MOST_LANES: u32 = 64;

/// Any network: the ports for each switch and host are listed.
///
/// If no link can come to wait for itself, all packets share a lane; otherwise a packet changes to the next lane with each
/// hop (Günther, 1981), so that it waits only for packets that are further on their way.
#[derive(Clone, Debug)]
pub(super) struct TableWays {
    names: Vec<String>,
    hosts: u32,
    /// Switch by switch and for each host, where its ports are in `ports`.
    starts: Vec<u32>,
    ports: Vec<u32>,
    /// Most links between switches on a way.
    hops: u32,
    lanes: u32,
}

impl TableWays {
    #[inline]
    fn ports(&self, switch: u32, to: u32) -> &[u32] {
        let place = switch as usize * self.hosts as usize + to as usize;
        &self.ports[self.starts[place] as usize..self.starts[place + 1] as usize]
    }

    #[inline]
    pub fn ways(&self, switch: u32, to: u32, hops: u8) -> Ways<'_> {
        let lane = if self.lanes == 1 { 0 } else { hops };
        Ways { ports: self.ports(switch, to), lane, is_pair: false }
    }

    #[inline]
    pub fn prefetch(&self, switch: u32, to: u32) {
        prefetch(&raw const self.starts[switch as usize * self.hosts as usize + to as usize]);
    }

    pub fn lanes(&self) -> u32 {
        self.lanes
    }

    pub fn longest_path(&self) -> u32 {
        self.hops + 2
    }

    pub fn name(&self, vertex: u32) -> &str {
        &self.names[vertex as usize]
    }
}

/// `links` are in the order of the vertices where they start.
pub(super) fn build(names: Vec<String>, hosts: u32, links: &[Link], routes: &[Route]) -> Result<TableWays, NetError> {
    let switches = names.len() - hosts as usize;
    too_large(switches as u64 * u64::from(hosts))?;
    let ranges: Vec<std::ops::Range<usize>> = (hosts..names.len() as u32)
        .map(|switch| {
            links.partition_point(|link| link.from < switch)..links.partition_point(|link| link.from <= switch)
        })
        .collect();
    let mut ways = TableWays { names, hosts, starts: vec![0], ports: Vec::new(), hops: 0, lanes: 1 };
    let mut into: Vec<Vec<u32>> = vec![Vec::new(); ways.names.len()];
    for link in links.iter().filter(|link| link.from >= hosts) {
        into[link.to as usize].push(link.from);
    }
    let by_host: Vec<_> = (0..hosts).map(|host| ports_to(host, &into, links, routes, &ranges)).collect();
    for switch in 0..switches {
        for ports in &by_host {
            ways.ports.extend(&ports[switch]);
            ways.starts.push(ways.ports.len() as u32);
        }
    }
    ways.hops = ways.check(links, &ranges)?;
    if ways.can_wait_for_itself(links, &ranges) {
        ways.lanes = ways.hops;
        if ways.lanes > MOST_LANES {
            let what =
                format!("ways of {} switches, which would need as many lanes; at most {MOST_LANES}", ways.hops + 1);
            return Err(NetError::Graph(what));
        }
    }
    Ok(ways)
}

/// For each switch, the ports on the way to a host; `into` has the switches with links to each vertex.
fn ports_to(
    host: u32,
    into: &[Vec<u32>],
    links: &[Link],
    routes: &[Route],
    ranges: &[std::ops::Range<usize>],
) -> Vec<Vec<u32>> {
    let mut distance = vec![u32::MAX; into.len()];
    distance[host as usize] = 0;
    let mut queue = VecDeque::from([host]);
    while let Some(vertex) = queue.pop_front() {
        for &from in &into[vertex as usize] {
            if distance[from as usize] == u32::MAX {
                distance[from as usize] = distance[vertex as usize] + 1;
                queue.push_back(from);
            }
        }
    }
    ranges
        .iter()
        .map(|range| {
            let has_routes = routes[range.clone()].iter().any(Option::is_some);
            let leads = |&port: &usize| {
                let link = links[range.start + port];
                if has_routes {
                    routes[range.start + port].as_ref().is_some_and(|listed| listed.binary_search(&host).is_ok())
                } else {
                    let (here, there) = (distance[link.from as usize], distance[link.to as usize]);
                    here != u32::MAX && there < here
                }
            };
            (0..range.len()).filter(leads).map(|port| port as u32).collect()
        })
        .collect()
}

impl TableWays {
    /// That every host can be reached from every other, without circles. Returns the most links between switches.
    fn check(&self, links: &[Link], ranges: &[std::ops::Range<usize>]) -> Result<u32, NetError> {
        const UNKNOWN: u32 = u32::MAX;
        const ON_THE_WAY: u32 = u32::MAX - 1;
        let mut most = 0;
        let mut depths = vec![UNKNOWN; ranges.len()];
        // Each host has one, and they come first.
        let of_hosts = &links[..self.hosts as usize];
        for to in 0..self.hosts {
            depths.fill(UNKNOWN);
            for link in of_hosts.iter().filter(|link| link.from != to) {
                let first = link.to - self.hosts;
                // Depth first; a switch is entered, then comes back with the place of the next of its ports.
                let mut stack = vec![(first, 0)];
                while let Some((switch, port)) = stack.pop() {
                    let ports = self.ports(switch, to);
                    if port == 0 {
                        if depths[switch as usize] < ON_THE_WAY {
                            continue;
                        }
                        if ports.is_empty() {
                            let (here, there) = (self.name(self.hosts + switch), self.name(to));
                            let start = self.name(link.from);
                            let what = format!("host {there} cannot be reached from {start}: {here} has no way to it");
                            return Err(NetError::Graph(what));
                        }
                        depths[switch as usize] = ON_THE_WAY;
                    }
                    let Some(&next) = ports.get(port) else {
                        let below = ports.iter().filter_map(|&port| {
                            let next = links[ranges[switch as usize].start + port as usize].to;
                            next.checked_sub(self.hosts).map(|next| depths[next as usize] + 1)
                        });
                        depths[switch as usize] = below.max().unwrap_or(0);
                        continue;
                    };
                    stack.push((switch, port + 1));
                    let next = links[ranges[switch as usize].start + next as usize].to;
                    if next == to {
                        continue;
                    }
                    let place = next.checked_sub(self.hosts).filter(|&next| depths[next as usize] != ON_THE_WAY);
                    let Some(next) = place else {
                        let (here, there) = (self.name(self.hosts + switch), self.name(to));
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

    /// Whether the links between switches, each waiting for those that packets take next, form a circle (Dally and Seitz).
    fn can_wait_for_itself(&self, links: &[Link], ranges: &[std::ops::Range<usize>]) -> bool {
        // By link, whether each port of the switch at its end comes next.
        let mut next: Vec<Vec<bool>> = vec![Vec::new(); links.len()];
        for (switch, range) in ranges.iter().enumerate() {
            for to in 0..self.hosts {
                for &port in self.ports(switch as u32, to) {
                    let link = range.start + port as usize;
                    let Some(there) = links[link].to.checked_sub(self.hosts) else { continue };
                    next[link].resize(ranges[there as usize].len(), false);
                    for &port in self.ports(there, to) {
                        next[link][port as usize] = true;
                    }
                }
            }
        }
        let next_of = |link: usize| {
            let first = links[link].to.checked_sub(self.hosts).map_or(0, |there| ranges[there as usize].start);
            (first..).zip(&next[link]).filter(|(_, comes)| **comes).map(|(link, _)| link)
        };
        let mut waited_for = vec![0u32; links.len()];
        for link in (0..links.len()).flat_map(next_of) {
            waited_for[link] += 1;
        }
        // What is left when those that nobody waits for are taken away, again and again, is on a circle or behind one.
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
