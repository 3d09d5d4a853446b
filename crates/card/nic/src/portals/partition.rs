// SPDX-License-Identifier: Apache-2.0
//! Partition of a network: the nodes of one job, which reach each other and no others.
//!
//! Processes name a node of their partition by its index there, so a job cannot even name the nodes of another one.
//! The card of the initiator translates names, and that of the target refuses messages from nodes outside.

use std::rc::Rc;

/// Target of a message to a node of the network outside of the initiator's partition. It is no node.
pub const FOREIGN: u32 = u32::MAX;

/// Nodes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partition {
    /// Nodes of the network, by their index in the partition.
    nodes: Vec<u32>,
    /// True for each node of the network that is in the partition.
    is_inside: Vec<bool>,
    /// Share of the job, relative to those of other jobs.
    pub weight: u32,
}

/// Place of a node in its partition.
#[derive(Clone, Debug)]
pub struct Member {
    /// Index of the node.
    pub nid: u32,
    /// Its partition.
    pub partition: Rc<Partition>,
}

impl Partition {
    /// Creates the partition of a job of this weight with these nodes.
    pub fn new(nodes: Vec<u32>, weight: u32) -> Partition {
        let last = nodes.iter().max().map_or(0, |node| *node as usize);
        let mut is_inside = vec![false; last + 1];
        nodes.iter().for_each(|node| is_inside[*node as usize] = true);
        Partition { nodes, is_inside, weight }
    }

    /// Returns the nodes of the network, by their index in the partition.
    pub fn nodes(&self) -> &[u32] {
        &self.nodes
    }

    /// Returns true if a node of the network is in the partition.
    pub fn has(&self, node: u32) -> bool {
        self.is_inside.get(node as usize).copied().unwrap_or(false)
    }
}
