use thiserror::Error;

/// Why there is no such network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetError {
    /// A network needs a node.
    #[error("a network needs at least one node")]
    NoNodes,
    /// Switches with an odd number of ports, or none, make no fat tree.
    #[error("a fat tree needs switches with an even number of ports, at least 2; network.radix is {radix}")]
    Radix {
        /// Ports of a switch.
        radix: u32,
    },
    /// Switches with 2 ports cannot branch.
    #[error("a fat tree of 2-port switches has at most 2 nodes, not {nodes}; raise network.radix")]
    TooManyNodes {
        /// Asked for.
        nodes: usize,
    },
    /// No port is left for the way up.
    #[error("switches with {radix} ports cannot be tapered {taper}:1: that takes at least {} ports", u64::from(*.taper) + 1)]
    Taper {
        /// Ports of a switch.
        radix: u32,
        /// Nodes of a leaf switch for each of its ways up.
        taper: u32,
    },
    /// A dragonfly with a part of size zero.
    #[error("a dragonfly needs at least one host a router (p), router a group (a) and group (g)")]
    DragonflyEmpty,
    /// The groups cannot all be neighbours.
    #[error(
        "a dragonfly with {routers} routers a group (a) and {global} global links each (h) has at most {} groups, not {groups}",
        u64::from(*.routers) * u64::from(*.global) + 1
    )]
    DragonflyGroups {
        /// Routers of a group.
        routers: u32,
        /// Global links of a router.
        global: u32,
        /// Asked for.
        groups: u32,
    },
    /// A torus has one to five dimensions, none of length zero.
    #[error("a torus has 1 to 5 dimensions, each at least 1 long, and at least one host a switch")]
    TorusSides,
    /// More nodes than the topology has room for.
    #[error("{topology} has {hosts} hosts, the run needs {nodes}")]
    TooFewHosts {
        /// Its description.
        topology: String,
        /// How many it has.
        hosts: u32,
        /// How many are needed.
        nodes: usize,
    },
    /// Hosts, switches or links beyond what 30 bits count.
    #[error("a network of more than 2^30 links is too large")]
    TooLarge,
    /// A DOT file is not as the language wants it.
    #[error("{line}:{column}: {what}")]
    Dot {
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// What is wrong there.
        what: String,
    },
    /// A DOT file is no network.
    #[error("{0}")]
    Graph(String),
    /// A file with a network cannot be read.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// Its path.
        path: String,
        /// What the system says.
        why: String,
    },
    /// A file is no network.
    #[error("{path}:{what}")]
    File {
        /// Its path.
        path: String,
        /// What is wrong, after the blank or the place that follows the path.
        what: String,
    },
    /// The latencies of this topology's paths are not known in advance.
    #[error("the topology {topology} needs the network model \"fabric\"")]
    NoLatency {
        /// Its name.
        topology: String,
    },
    /// A parameter that no network can have.
    #[error("{parameter} {what}")]
    Parameter {
        /// As the command line calls it.
        parameter: &'static str,
        /// What is wrong.
        what: String,
    },
}
