// SPDX-License-Identifier: Apache-2.0
//! Errors of building a network.

use thiserror::Error;

/// Errors of building a network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetError {
    /// A topology file of htsim has a mistake.
    #[error("{line}: {problem}")]
    Topo {
        /// Line, from 1.
        line: usize,
        /// Problem.
        problem: String,
    },
    /// A network needs a node.
    #[error("a network needs at least one node")]
    NoNodes,
    /// Switches with an odd number of ports, or none, cannot form a fat tree.
    #[error("a fat tree needs switches with an even number of ports, at least 2; network.radix is {radix}")]
    Radix {
        /// Ports of a switch.
        radix: u32,
    },
    /// Switches with 2 ports cannot branch.
    #[error("a fat tree of 2-port switches has at most 2 nodes, not {nodes}; raise network.radix")]
    TooManyNodes {
        /// Requested number.
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
    /// The links do not suffice to connect every two groups.
    #[error(
        "a dragonfly with {routers} routers per group (a) and {global} global links each (h) has at most {} groups, not {groups}",
        u64::from(*.routers) * u64::from(*.global) + 1
    )]
    DragonflyGroups {
        /// Routers of a group.
        routers: u32,
        /// Global links of a router.
        global: u32,
        /// Requested number.
        groups: u32,
    },
    /// A torus has one to five dimensions, none of length zero.
    #[error("a torus has 1 to 5 dimensions, each at least 1 long, and at least one host per switch")]
    TorusSides,
    /// The run needs more nodes than the topology has.
    #[error("{topology} has {hosts} hosts, the run needs {nodes}")]
    TooFewHosts {
        /// Description of the topology.
        topology: String,
        /// Number of hosts of the topology.
        hosts: u32,
        /// Number of nodes of the run.
        nodes: usize,
    },
    /// The number of hosts, switches or links exceeds 30 bits.
    #[error("a network of more than 2^30 links is too large")]
    TooLarge,
    /// A DOT file has a syntax error.
    #[error("{line}:{column}: {what}")]
    Dot {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// Mistake.
        what: String,
    },
    /// A DOT file does not describe a network.
    #[error("{0}")]
    Graph(String),
    /// A network file cannot be read.
    #[error("cannot read {path}: {why}")]
    Unreadable {
        /// Path.
        path: String,
        /// System's message.
        why: String,
    },
    /// A file does not describe a network.
    #[error("{path}:{what}")]
    File {
        /// Path.
        path: String,
        /// Mistake, after a blank or the location in the file.
        what: String,
    },
    /// This topology requires a fabric, as the latencies of its paths depend on routing.
    #[error("the topology {topology} needs the network model \"fabric\"")]
    NoLatency {
        /// Name of the topology.
        topology: String,
    },
    /// The node of a packet loss does not exist.
    #[error("there is no node {node}; the last of {nodes} is {}", nodes - 1)]
    NoNode {
        /// Node.
        node: u32,
        /// Number of nodes.
        nodes: usize,
    },
    /// The link of a packet loss does not exist.
    #[error("the network has no link from \"{from}\" to \"{to}\"; one of its links is from \"{}\" to \"{}\"", .example.0, .example.1)]
    NoLink {
        /// Name of the start vertex.
        from: String,
        /// Name of the end vertex.
        to: String,
        /// Start and end vertex of an existing link.
        example: (String, String),
    },
    /// A switch with handlers does not exist.
    #[error("network.switch.handlers: the network has no switch \"{name}\"; one of its switches is \"{example}\"")]
    NoSwitch {
        /// Name, or pattern of names.
        name: String,
        /// Name of an existing switch.
        example: String,
    },
    /// The network model has no links.
    #[error("the link from \"{from}\" to \"{to}\" needs a network with links: --set network.model=fabric")]
    NoLinks {
        /// Name of the start vertex.
        from: String,
        /// Name of the end vertex.
        to: String,
    },
    /// A parameter is out of range.
    #[error("{parameter} {what}")]
    Parameter {
        /// Name on the command line.
        parameter: &'static str,
        /// Description of the error.
        what: String,
    },
}
