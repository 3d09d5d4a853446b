// SPDX-License-Identifier: Apache-2.0
//! Topology: vertices, links and their names.

use std::collections::VecDeque;
use std::ops::Range;

use sim::memory::prefetch;
use sim::{Time, TimePerByte};

use super::dragonfly::{self, Dragonfly, DragonflyRoutes};
use super::fat_tree::{self, TreeRoutes};
use super::read;
use super::table::{self, Route, TableRoutes};
use super::tiers;
use super::torus::{self, TorusRoutes};
use super::wiring::{Link, NextHops, RouteState, Wiring, too_large};
use crate::NetError;

/// Hosts, switches, the links between them, and next hops.
///
/// Vertices are numbered: hosts first, then switches. Each host has one link to a switch and one from a switch. A
/// *port* of a switch is the index of a link among its outgoing links.
#[derive(Clone, Debug)]
pub struct Topology {
    description: String,
    hosts: u32,
    /// Number of hosts that are accelerators of switches; they are the last ones.
    cards: u32,
    /// Index of the first link of each vertex, followed by the number of links.
    first: Vec<u32>,
    links: Vec<Link>,
    plan: Plan,
}

/// Routes of packets.
#[derive(Clone, Debug)]
enum Plan {
    Tree(TreeRoutes),
    Dragonfly(DragonflyRoutes),
    Torus(TorusRoutes),
    Table(TableRoutes),
}

impl Topology {
    /// Builds a fat tree of switches with `radix` ports and as few levels as `hosts` need; hosts fill it from the left.
    /// Each leaf switch has `taper` hosts for each of its uplinks; 1 is full bisection.
    ///
    /// # Errors
    /// If such switches cannot connect this number of hosts.
    pub fn fat_tree(radix: u32, taper: u32, hosts: usize) -> Result<Topology, NetError> {
        let (wiring, routes) = fat_tree::build(radix, taper, hosts)?;
        Topology::new(wiring, Plan::Tree(routes))
    }

    /// Builds one switch with a port for each host.
    ///
    /// # Errors
    /// If the number of hosts is zero or too large.
    pub fn single_switch(hosts: usize) -> Result<Topology, NetError> {
        let (wiring, routes) = fat_tree::single(hosts)?;
        Topology::new(wiring, Plan::Tree(routes))
    }

    /// Builds a dragonfly (Kim et al., ISCA'08).
    ///
    /// # Errors
    /// If its groups cannot be connected.
    pub fn dragonfly(shape: Dragonfly) -> Result<Topology, NetError> {
        let (wiring, routes) = dragonfly::build(shape)?;
        Topology::new(wiring, Plan::Dragonfly(routes))
    }

    /// Builds a torus with these sides, and `hosts` hosts for each of its switches. A side of length 2 is a single
    /// link.
    ///
    /// # Errors
    /// If the sides are invalid.
    pub fn torus(sides: &[u32], hosts: u32) -> Result<Topology, NetError> {
        let (wiring, routes) = torus::build(sides, hosts)?;
        Topology::new(wiring, Plan::Torus(routes))
    }

    /// Builds a network from DOT text, as LogGOPSim reads it: nodes whose names start with `H` or `h`, or are numbers,
    /// are hosts, in the order of their names' appearance; all others are switches. A link may have `capacity` (Gbit/s)
    /// and `latency` (ns); its `comment` lists the hosts reached through it, `*` for all. A switch without such lists
    /// sends packets on shortest paths.
    ///
    /// # Errors
    /// If the text has a mistake, with its position; or if it does not describe a network, with the names of its parts.
    pub fn from_dot(text: &str) -> Result<Topology, NetError> {
        let read::Network { hosts, vertices, links, routes } = read::read(text)?;
        Topology::from_links("network from a file".into(), hosts, vertices, links, Plan::Table(routes))
    }

    /// Builds a fat tree from a topology file of htsim (`.topo`). The latency of a link includes that of the switch
    /// above it.
    ///
    /// # Errors
    /// If the text has a mistake, with its line.
    pub fn from_topo(text: &str) -> Result<Topology, NetError> {
        Topology::from_dot(&tiers::to_dot(text)?)
    }

    fn new(Wiring { description, hosts, neighbours }: Wiring, plan: Plan) -> Result<Topology, NetError> {
        let link = |from: usize, to: u32| Link { from: from as u32, to, gap_per_byte: None, latency: None };
        let mut links = Vec::with_capacity(neighbours.iter().map(Vec::len).sum());
        for (from, all) in neighbours.iter().enumerate() {
            links.extend(all.iter().map(|&to| link(from, to)));
        }
        Topology::from_links(description, hosts, neighbours.len(), links, plan)
    }

    /// Builds a topology from links in the order of their start vertices.
    fn from_links(
        description: String,
        hosts: u32,
        vertices: usize,
        links: Vec<Link>,
        plan: Plan,
    ) -> Result<Topology, NetError> {
        too_large(links.len() as u64)?;
        let mut first = vec![0; vertices + 1];
        for link in &links {
            first[link.from as usize + 1] += 1;
        }
        for vertex in 0..vertices {
            first[vertex + 1] += first[vertex];
        }
        Ok(Topology { description, hosts, cards: 0, first, links, plan })
    }

    /// Gives switches accelerators: each becomes a further host, with a link of latency zero and this inverse bandwidth
    /// to its switch and one back. `names` are names of switches; `*` matches any characters.
    ///
    /// Packets then follow tables of shortest paths, which are the same paths as before in fat trees.
    ///
    /// # Errors
    /// If no switch has one of the names, or if routes would need too many virtual channels.
    pub fn with_cards(self, names: &[String], gap_per_byte: TimePerByte) -> Result<Topology, NetError> {
        let switches: Vec<u32> = (self.hosts..self.hosts + self.switches()).collect();
        let is_named = |vertex: u32, name: &str| matches(name.as_bytes(), self.name(vertex).as_bytes());
        if let Some(name) = names.iter().find(|name| !switches.iter().any(|vertex| is_named(*vertex, name))) {
            return Err(NetError::NoSwitch { name: name.clone(), example: self.name(self.hosts) });
        }
        let chosen: Vec<u32> =
            switches.iter().copied().filter(|vertex| names.iter().any(|name| is_named(*vertex, name))).collect();
        let cards = chosen.len() as u32;
        let moved = |vertex: u32| if vertex < self.hosts { vertex } else { vertex + cards };
        let mut links: Vec<Link> =
            self.links.iter().map(|link| Link { from: moved(link.from), to: moved(link.to), ..*link }).collect();
        for (card, switch) in (self.hosts..).zip(&chosen) {
            let way = |from, to| Link { from, to, gap_per_byte: Some(gap_per_byte), latency: Some(Time::ZERO) };
            links.extend([way(card, moved(*switch)), way(moved(*switch), card)]);
        }
        // The port of an accelerator is the last of its switch.
        links.sort_by_key(|link| link.from);
        let of_cards = chosen.iter().map(|switch| format!("accelerator of {}", self.name(*switch)));
        let names = (0..self.hosts).map(|host| self.name(host)).chain(of_cards);
        let names: Vec<String> = names.chain(switches.iter().map(|switch| self.name(*switch))).collect();
        let (hosts, vertices) = (self.hosts + cards, names.len());
        let routes = vec![Route::Unsaid; links.len()];
        let plan = Plan::Table(table::build(names, hosts, &links, &routes)?);
        let description = format!("{}, {cards} of its switches with handlers", self.description);
        Ok(Topology { cards, ..Topology::from_links(description, hosts, vertices, links, plan)? })
    }

    /// Returns the number of accelerators of switches, which are the last hosts.
    pub fn cards(&self) -> u32 {
        self.cards
    }

    /// Returns the name of a host's switch.
    pub(crate) fn switch_of(&self, host: u32) -> String {
        self.name(self.links[self.first(host) as usize].to)
    }

    /// Returns the number of links of the shortest path from host `from` to host `to`.
    pub fn distance(&self, from: u32, to: u32) -> u32 {
        let mut distances = vec![u32::MAX; self.first.len() - 1];
        let mut queue = VecDeque::from([from]);
        distances[from as usize] = 0;
        while let Some(vertex) = queue.pop_front() {
            for link in &self.links[self.first[vertex as usize] as usize..self.first[vertex as usize + 1] as usize] {
                if distances[link.to as usize] == u32::MAX {
                    distances[link.to as usize] = distances[vertex as usize] + 1;
                    queue.push_back(link.to);
                }
            }
        }
        distances[to as usize]
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of switches.
    pub fn switches(&self) -> u32 {
        self.first.len() as u32 - 1 - self.hosts
    }

    /// Returns a readable description: `fat tree of 16-port switches, 3 levels`.
    pub fn description(&self) -> &str {
        &self.description
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the first link of a vertex.
    #[inline]
    pub(crate) fn first(&self, vertex: u32) -> u32 {
        self.first[vertex as usize]
    }

    /// Returns the ranges of links that start at ranges of vertices.
    pub(crate) fn links_of(&self, vertices: &[Range<usize>]) -> Vec<Range<usize>> {
        vertices.iter().map(|range| self.first[range.start] as usize..self.first[range.end] as usize).collect()
    }

    /// Returns the next hops from a switch (numbered from 0) to a host.
    #[inline]
    pub(crate) fn next_hops(&self, switch: u32, to: u32, state: RouteState) -> NextHops<'_> {
        match &self.plan {
            Plan::Tree(plan) => plan.next_hops(switch, to),
            Plan::Dragonfly(plan) => plan.next_hops(switch, to),
            Plan::Torus(plan) => plan.next_hops(switch, to, state.class),
            Plan::Table(plan) => plan.next_hops(switch, to, state.hops),
        }
    }

    /// Prefetches the data that determines a packet's way out of a switch.
    #[inline]
    pub(crate) fn prefetch(&self, vertex: u32, to: u32) {
        prefetch(&raw const self.first[vertex as usize]);
        let switch = vertex - self.hosts;
        match &self.plan {
            Plan::Tree(plan) => plan.prefetch(switch),
            Plan::Dragonfly(_) => {}
            Plan::Torus(plan) => plan.prefetch(switch),
            Plan::Table(plan) => plan.prefetch(switch, to),
        }
    }

    /// Returns the number of path classes: a packet chooses one at its first switch and keeps it.
    pub(crate) fn classes(&self) -> u8 {
        if matches!(self.plan, Plan::Torus(_)) { TorusRoutes::CLASSES } else { 1 }
    }

    /// Returns the number of virtual channels of a link for packets of `classes` classes.
    pub(crate) fn vcs(&self, classes: u8) -> u32 {
        match &self.plan {
            Plan::Tree(_) => 1,
            Plan::Dragonfly(_) => DragonflyRoutes::VCS,
            Plan::Torus(_) => TorusRoutes::VCS * u32::from(classes),
            Plan::Table(plan) => plan.vcs(),
        }
    }

    /// Returns the maximum number of links that a packet crosses.
    pub(crate) fn longest_path(&self) -> u32 {
        match &self.plan {
            Plan::Tree(plan) => plan.longest_path(),
            Plan::Dragonfly(_) => DragonflyRoutes::LONGEST_PATH,
            Plan::Torus(plan) => plan.longest_path(),
            Plan::Table(plan) => plan.longest_path(),
        }
    }

    /// Returns the name of a vertex.
    pub(crate) fn name(&self, vertex: u32) -> String {
        if let Plan::Table(plan) = &self.plan {
            return plan.name(vertex).to_owned();
        }
        let Some(switch) = vertex.checked_sub(self.hosts) else { return format!("host {vertex}") };
        match &self.plan {
            Plan::Tree(plan) => plan.name(switch),
            Plan::Dragonfly(plan) => plan.name(switch),
            Plan::Torus(plan) => plan.name(switch),
            Plan::Table(_) => unreachable!("its vertices have names"),
        }
    }
}

/// Returns true if a text matches a pattern; `*` matches any characters.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    match pattern.split_first() {
        None => text.is_empty(),
        Some((b'*', rest)) => (0..=text.len()).any(|skipped| matches(rest, &text[skipped..])),
        Some((first, rest)) => text.first() == Some(first) && matches(rest, &text[1..]),
    }
}
