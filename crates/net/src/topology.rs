//! Networks link by link.

mod dot;
mod dragonfly;
mod fat_tree;
mod read;
mod table;
mod torus;

pub use dragonfly::Dragonfly;

use sim::memory::prefetch;
use sim::{Rate, Time};

use crate::NetError;
use dragonfly::DragonflyWays;
use fat_tree::TreeWays;
use table::TableWays;
use torus::TorusWays;

/// Hosts, switches, the links between them, and which links lead from a switch to a host.
///
/// Vertices are numbered: hosts first, then switches. Each host has one link to a switch and one from a switch. A switch's
/// *port* is the place of a link among those that leave it.
#[derive(Clone, Debug)]
pub struct Topology {
    description: String,
    hosts: u32,
    /// Where the links of each vertex start, and the number of links.
    first: Vec<u32>,
    links: Vec<Link>,
    plan: Plan,
}

/// A link in one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    pub from: u32,
    pub to: u32,
    /// Where it differs from the others of the network.
    pub gap_per_byte: Option<Rate>,
    pub latency: Option<Time>,
}

/// How packets find their way.
#[derive(Clone, Debug)]
enum Plan {
    Tree(TreeWays),
    Dragonfly(DragonflyWays),
    Torus(TorusWays),
    Table(TableWays),
}

/// The ports of a switch that lead on a shortest path to a host. A packet that takes one of them goes in this *lane*: lanes
/// of a link have buffers of their own, so that no packet waits, over however many others, for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ways<'a> {
    pub ports: &'a [u32],
    lane: u8,
    /// The second port has the other lane of the pair.
    is_pair: bool,
}

impl Ways<'_> {
    /// The lane of the port at `place` of the list.
    #[inline]
    pub fn lane(&self, place: usize) -> u8 {
        self.lane ^ u8::from(self.is_pair && place == 1)
    }
}

/// What a packet remembers of its way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trail {
    /// Links between switches so far.
    pub hops: u8,
    /// Which of the [classes](Topology::classes) it goes by.
    pub class: u8,
}

impl Topology {
    /// A fat tree of switches with `radix` ports and as few levels as `hosts` need; hosts fill it from the left. Each leaf
    /// switch has `taper` hosts for each of its ways up; 1 is full bisection.
    ///
    /// # Errors
    /// When such switches cannot connect so many hosts.
    pub fn fat_tree(radix: u32, taper: u32, hosts: usize) -> Result<Topology, NetError> {
        fat_tree::build(radix, taper, hosts)
    }

    /// One switch with a port for each host.
    ///
    /// # Errors
    /// When there are no hosts, or too many.
    pub fn single_switch(hosts: usize) -> Result<Topology, NetError> {
        fat_tree::single(hosts)
    }

    /// A dragonfly (Kim et al., ISCA'08).
    ///
    /// # Errors
    /// When its groups cannot be connected.
    pub fn dragonfly(shape: Dragonfly) -> Result<Topology, NetError> {
        dragonfly::build(shape)
    }

    /// A torus with these sides, and `hosts` hosts on each of its switches. A side of length 2 is a single link.
    ///
    /// # Errors
    /// When there are no such sides.
    pub fn torus(sides: &[u32], hosts: u32) -> Result<Topology, NetError> {
        torus::build(sides, hosts)
    }

    /// A network from DOT text, as LogGOPSim reads it: nodes whose names start with `H` or `h`, or are numbers, are hosts,
    /// in the order in which they are named; all others are switches. A link may have `capacity` (Gbit/s) and `latency`
    /// (ns); its `comment` lists the hosts that are reached through it, `*` for all. A switch without such lists sends
    /// packets on shortest paths.
    ///
    /// # Errors
    /// When the text is wrong, with its place; or when it is no network, with the names of its parts.
    pub fn from_dot(text: &str) -> Result<Topology, NetError> {
        read::read(text)
    }

    /// From the vertices that each vertex has a link to, in the order of its ports.
    fn new(description: String, hosts: u32, neighbours: &[Vec<u32>], plan: Plan) -> Result<Topology, NetError> {
        let link = |from: usize, to: u32| Link { from: from as u32, to, gap_per_byte: None, latency: None };
        let links = neighbours.iter().enumerate().flat_map(|(from, all)| all.iter().map(move |&to| link(from, to)));
        Topology::from_links(description, hosts, neighbours.len(), links.collect(), plan)
    }

    /// From links in the order of the vertices where they start.
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

    /// For people: `fat tree of 16-port switches, 3 levels`.
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

    /// Ways from a switch (numbered from 0) to a host.
    #[inline]
    pub(crate) fn ways(&self, switch: u32, to: u32, trail: Trail) -> Ways<'_> {
        match &self.plan {
            Plan::Tree(plan) => plan.ways(switch, to),
            Plan::Dragonfly(plan) => plan.ways(switch, to),
            Plan::Torus(plan) => plan.ways(switch, to, trail.class),
            Plan::Table(plan) => plan.ways(switch, to, trail.hops),
        }
    }

    /// Has the processor fetch what says how a packet leaves a switch.
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

    /// How many kinds of path a packet may choose from at its first switch, to stay with it.
    pub(crate) fn classes(&self) -> u8 {
        if matches!(self.plan, Plan::Torus(_)) { TorusWays::CLASSES } else { 1 }
    }

    /// Lanes of a link that packets of so many classes need.
    pub(crate) fn lanes(&self, classes: u8) -> u32 {
        match &self.plan {
            Plan::Tree(_) => 1,
            Plan::Dragonfly(_) => DragonflyWays::LANES,
            Plan::Torus(_) => TorusWays::LANES * u32::from(classes),
            Plan::Table(plan) => plan.lanes(),
        }
    }

    /// The most links that a packet passes.
    pub(crate) fn longest_path(&self) -> u32 {
        match &self.plan {
            Plan::Tree(plan) => plan.longest_path(),
            Plan::Dragonfly(_) => DragonflyWays::LONGEST_PATH,
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

/// Vertices and links are counted in 30 bits.
fn too_large(count: u64) -> Result<(), NetError> {
    if count > 1 << 30 { Err(NetError::TooLarge) } else { Ok(()) }
}

#[cfg(test)]
mod tests;
