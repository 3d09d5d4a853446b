use sim::memory::prefetch;

use super::dragonfly::{self, Dragonfly, DragonflyRoutes};
use super::fat_tree::{self, TreeRoutes};
use super::read;
use super::table::TableRoutes;
use super::torus::{self, TorusRoutes};
use super::wiring::{Link, NextHops, RouteState, Wiring, too_large};
use crate::NetError;

/// Hosts, switches, the links between them, and the links that lead from a switch to a host.
///
/// Vertices are numbered: hosts first, then switches. Each host has one link to a switch and one from a switch. A
/// *port* of a switch is the place of a link among those that leave it.
#[derive(Clone, Debug)]
pub struct Topology {
    description: String,
    hosts: u32,
    /// The place of the first link of each vertex, and the number of links.
    first: Vec<u32>,
    links: Vec<Link>,
    plan: Plan,
}

/// How packets find their way.
#[derive(Clone, Debug)]
enum Plan {
    Tree(TreeRoutes),
    Dragonfly(DragonflyRoutes),
    Torus(TorusRoutes),
    Table(TableRoutes),
}

impl Topology {
    /// A fat tree of switches with `radix` ports and as few levels as `hosts` need; hosts fill it from the left. Each
    /// leaf switch has `taper` hosts for each of its uplinks; 1 is full bisection.
    ///
    /// # Errors
    /// When such switches cannot connect this number of hosts.
    pub fn fat_tree(radix: u32, taper: u32, hosts: usize) -> Result<Topology, NetError> {
        let (wiring, routes) = fat_tree::build(radix, taper, hosts)?;
        Topology::new(wiring, Plan::Tree(routes))
    }

    /// One switch with a port for each host.
    ///
    /// # Errors
    /// When there are no hosts, or too many.
    pub fn single_switch(hosts: usize) -> Result<Topology, NetError> {
        let (wiring, routes) = fat_tree::single(hosts)?;
        Topology::new(wiring, Plan::Tree(routes))
    }

    /// A dragonfly (Kim et al., ISCA'08).
    ///
    /// # Errors
    /// When its groups cannot be connected.
    pub fn dragonfly(shape: Dragonfly) -> Result<Topology, NetError> {
        let (wiring, routes) = dragonfly::build(shape)?;
        Topology::new(wiring, Plan::Dragonfly(routes))
    }

    /// A torus with these sides, and `hosts` hosts for each of its switches. A side of length 2 is a single link.
    ///
    /// # Errors
    /// When the sides are invalid.
    pub fn torus(sides: &[u32], hosts: u32) -> Result<Topology, NetError> {
        let (wiring, routes) = torus::build(sides, hosts)?;
        Topology::new(wiring, Plan::Torus(routes))
    }

    /// A network from DOT text, as LogGOPSim reads it: nodes whose names start with `H` or `h`, or are numbers, are
    /// hosts, in the order in which they are named; all others are switches. A link may have `capacity` (Gbit/s) and
    /// `latency` (ns); its `comment` lists the hosts that are reached through it, `*` for all. A switch without such
    /// lists sends packets on shortest paths.
    ///
    /// # Errors
    /// When the text has a mistake, with its place; or when it does not describe a network, with the names of its
    /// parts.
    pub fn from_dot(text: &str) -> Result<Topology, NetError> {
        let read::Network { hosts, vertices, links, routes } = read::read(text)?;
        Topology::from_links("network from a file".into(), hosts, vertices, links, Plan::Table(routes))
    }

    fn new(Wiring { description, hosts, neighbours }: Wiring, plan: Plan) -> Result<Topology, NetError> {
        let link = |from: usize, to: u32| Link { from: from as u32, to, gap_per_byte: None, latency: None };
        let links = neighbours.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |&to| link(from, to)));
        Topology::from_links(description, hosts, neighbours.len(), links.collect(), plan)
    }

    /// A topology from links in the order of the vertices where they start.
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
        Ok(Topology { description, hosts, first, links, plan })
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.first.len() as u32 - 1 - self.hosts
    }

    /// A readable description: `fat tree of 16-port switches, 3 levels`.
    pub fn description(&self) -> &str {
        &self.description
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// The first link of a vertex.
    #[inline]
    pub(crate) fn first(&self, vertex: u32) -> u32 {
        self.first[vertex as usize]
    }

    /// The next hops from a switch (numbered from 0) to a host.
    #[inline]
    pub(crate) fn next_hops(&self, switch: u32, to: u32, state: RouteState) -> NextHops<'_> {
        match &self.plan {
            Plan::Tree(plan) => plan.next_hops(switch, to),
            Plan::Dragonfly(plan) => plan.next_hops(switch, to),
            Plan::Torus(plan) => plan.next_hops(switch, to, state.class),
            Plan::Table(plan) => plan.next_hops(switch, to, state.hops),
        }
    }

    /// Makes the processor prefetch the data that decides how a packet leaves a switch.
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

    /// Number of classes of paths: a packet chooses one at its first switch and stays with it.
    pub(crate) fn classes(&self) -> u8 {
        if matches!(self.plan, Plan::Torus(_)) { TorusRoutes::CLASSES } else { 1 }
    }

    /// Number of virtual channels of a link that packets of `classes` classes need.
    pub(crate) fn vcs(&self, classes: u8) -> u32 {
        match &self.plan {
            Plan::Tree(_) => 1,
            Plan::Dragonfly(_) => DragonflyRoutes::VCS,
            Plan::Torus(_) => TorusRoutes::VCS * u32::from(classes),
            Plan::Table(plan) => plan.vcs(),
        }
    }

    /// The maximum number of links that a packet passes.
    pub(crate) fn longest_path(&self) -> u32 {
        match &self.plan {
            Plan::Tree(plan) => plan.longest_path(),
            Plan::Dragonfly(_) => DragonflyRoutes::LONGEST_PATH,
            Plan::Torus(plan) => plan.longest_path(),
            Plan::Table(plan) => plan.longest_path(),
        }
    }

    /// Name of a vertex.
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
