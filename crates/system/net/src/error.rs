use thiserror::Error;

/// Errors of building a network.
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
        /// The requested number.
        nodes: usize,
    },
    /// No port is left for an uplink.
    #[error("switches with {radix} ports cannot be tapered {taper}:1: that takes at least {} ports", u64::from(*.taper) + 1)]
    Taper {
        /// Ports of a switch.
        radix: u32,
        /// Nodes of a leaf switch for each of its uplinks.
        taper: u32,
    },
    /// A dragonfly with a part of size zero.
    #[error("a dragonfly needs at least one host per router (p), one router per group (a) and one group (g)")]
    DragonflyEmpty,
    /// There are too few links to connect every two groups.
    #[error(
        "a dragonfly with {routers} routers per group (a) and {global} global links each (h) has at most {} groups, not {groups}",
        u64::from(*.routers) * u64::from(*.global) + 1
    )]
    DragonflyGroups {
        /// Routers of a group.
        routers: u32,
        /// Global links of a router.
        global: u32,
        /// The requested number.
        groups: u32,
    },
    /// A torus has one to five dimensions, none of length zero.
    #[error("a torus has 1 to 5 dimensions, each at least 1 long, and at least one host per switch")]
    TorusSides,
    /// The run needs more nodes than the topology has.
    #[error("{topology} has {hosts} hosts, the run needs {nodes}")]
    TooFewHosts {
        /// Its description.
        topology: String,
        /// The number of its hosts.
        hosts: u32,
        /// The number of nodes of the run.
        nodes: usize,
    },
    /// The number of hosts, switches or links exceeds 30 bits.
    #[error("a network of more than 2^30 links is too large")]
    TooLarge,
    /// A DOT file has a syntax error.
    #[error("{line}:{column}: {what}")]
    Dot {
        /// From 1.
        line: usize,
        /// In characters, from 1.
        column: usize,
        /// The mistake.
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
        /// The system's message.
        why: String,
    },
    /// A file is no network.
    #[error("{path}:{what}")]
    File {
        /// Its path.
        path: String,
        /// The mistake, after a blank or the place in the file.
        what: String,
    },
    /// This topology needs a fabric, as the latencies of its paths depend on routing.
    #[error("the topology {topology} needs the network model \"fabric\"")]
    NoLatency {
        /// Its name.
        topology: String,
    },
    /// A packet cannot be lost on the way from or to a node that does not exist.
    #[error("there is no node {node}; the last of {nodes} is {}", nodes - 1)]
    NoNode {
        /// The node.
        node: u32,
        /// Number of nodes.
        nodes: usize,
    },
    /// A packet cannot be lost on a link that does not exist.
    #[error("the network has no link from \"{from}\" to \"{to}\"; one of its links is from \"{}\" to \"{}\"", .example.0, .example.1)]
    NoLink {
        /// The name of the vertex where it starts.
        from: String,
        /// The name of the vertex where it ends.
        to: String,
        /// The names of those of another link.
        example: (String, String),
    },
    /// A switch that is to run handlers does not exist.
    #[error("network.switch.handlers: the network has no switch \"{name}\"; one of its switches is \"{example}\"")]
    NoSwitch {
        /// The name, or the pattern of names.
        name: String,
        /// The name of another switch.
        example: String,
    },
    /// The network is a model without links.
    #[error("the link from \"{from}\" to \"{to}\" needs a network with links: --set network.model=fabric")]
    NoLinks {
        /// The name of the vertex where it starts.
        from: String,
        /// The name of the vertex where it ends.
        to: String,
    },
    /// A parameter is out of range.
    #[error("{parameter} {what}")]
    Parameter {
        /// Its name on the command line.
        parameter: &'static str,
        /// What is wrong.
        what: String,
    },
}
