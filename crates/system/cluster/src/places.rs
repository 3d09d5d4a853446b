// SPDX-License-Identifier: Apache-2.0
//! Places of the ranks on the nodes of a cluster.
//!
//! A node has one card. The processes of a node share its engines: the card's state of a rank ([`nic::Nic`]) has the
//! engines, with all their reservations, while the rank uses them.

use std::collections::VecDeque;

/// Nodes of the ranks.
#[derive(Debug, Default)]
pub struct Places {
    ranks: usize,
    nodes: usize,
    /// Node of each rank; empty if each rank has the node of its number.
    of: Vec<u32>,
    /// State of each node; empty if no ranks share a node.
    shared: Vec<Node>,
}

/// A node whose card several ranks may share.
#[derive(Debug, Default)]
struct Node {
    /// Its ranks; their order is that of the processes on the card.
    ranks: Vec<u32>,
    /// Rank that has the card's engines.
    holder: u32,
    /// Ranks of the packets that the network blocks, in the order of their departures.
    blocked: VecDeque<u32>,
}

impl Places {
    /// Returns the places of `ranks` ranks with a node each.
    pub fn alone(ranks: usize) -> Places {
        Places { ranks, nodes: ranks, of: Vec::new(), shared: Vec::new() }
    }

    /// Returns the places of ranks on these nodes, given by rank.
    pub fn new(nodes: &[usize]) -> Places {
        if nodes.iter().enumerate().all(|(rank, node)| rank == *node) {
            return Places::alone(nodes.len());
        }
        let count = nodes.iter().max().map_or(0, |last| last + 1);
        let mut shared: Vec<Node> = std::iter::repeat_with(Node::default).take(count).collect();
        for (rank, node) in nodes.iter().enumerate() {
            shared[*node].ranks.push(rank as u32);
        }
        shared.iter_mut().for_each(|node| node.holder = node.ranks.first().copied().unwrap_or_default());
        let of = nodes.iter().map(|node| *node as u32).collect();
        Places { ranks: nodes.len(), nodes: count, of, shared }
    }

    /// Returns the number of ranks.
    pub fn ranks(&self) -> usize {
        self.ranks
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns true if ranks share cards.
    pub fn are_shared(&self) -> bool {
        !self.shared.is_empty()
    }

    /// Returns the node of a rank, or that of a switch, given by the index of its card.
    pub fn node(&self, rank: usize) -> usize {
        match self.of.get(rank) {
            Some(node) => *node as usize,
            None => rank + self.nodes - self.ranks,
        }
    }

    /// Returns the ranks on the node of a rank; none if the rank has it alone.
    pub fn beside(&self, rank: usize) -> &[u32] {
        let ranks = self.shared_node(rank).map_or(&[][..], |node| &node.ranks);
        if ranks.len() > 1 { ranks } else { &[] }
    }

    /// Returns the rank that has the engines of a rank's card.
    pub fn holder(&self, rank: usize) -> usize {
        self.shared_node(rank).map_or(rank, |node| node.holder as usize)
    }

    /// Records that a rank has the engines of its card.
    pub(crate) fn hold(&mut self, rank: usize) {
        let node = self.node(rank);
        if let Some(node) = self.shared.get_mut(node) {
            node.holder = rank as u32;
        }
    }

    /// Records that the network blocks a packet of a rank.
    pub(crate) fn block(&mut self, rank: u32) {
        let node = self.node(rank as usize);
        if let Some(node) = self.shared.get_mut(node) {
            node.blocked.push_back(rank);
        }
    }

    /// Returns the rank of a node's first blocked packet, which departs.
    pub(crate) fn unblock(&mut self, node: u32) -> u32 {
        let blocked = self.shared.get_mut(node as usize).and_then(|node| node.blocked.pop_front());
        blocked.unwrap_or(node)
    }

    /// Returns the first rank of a node, or the index of a switch's card.
    pub(crate) fn first_rank(&self, node: usize) -> usize {
        let first = self.shared.get(node).and_then(|node| node.ranks.first());
        first.map_or(node + self.ranks - self.nodes, |rank| *rank as usize)
    }

    fn shared_node(&self, rank: usize) -> Option<&Node> {
        self.shared.get(*self.of.get(rank)? as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_with_nodes_of_their_own_share_nothing() {
        let places = Places::new(&[0, 1, 2]);
        assert!(!places.are_shared());
        assert_eq!((places.node(1), places.node(3), places.holder(2)), (1, 3, 2));
        assert!(places.beside(1).is_empty());
    }

    #[test]
    fn ranks_of_a_node_pass_its_engines_on() {
        // Rank 3 is beside rank 1; node 2 has rank 2 alone. The card with index 4 is that of a switch.
        let mut places = Places::new(&[0, 1, 2, 1]);
        assert!(places.are_shared());
        assert_eq!((places.ranks(), places.nodes(), places.node(3), places.node(4)), (4, 3, 1, 3));
        assert_eq!((places.beside(3), places.beside(2)), (&[1, 3][..], &[][..]));
        assert_eq!(places.holder(3), 1);
        places.hold(3);
        assert_eq!((places.holder(1), places.holder(2)), (3, 2));
        for rank in [3, 1, 3] {
            places.block(rank);
        }
        assert_eq!([1, 1, 1].map(|node| places.unblock(node)), [3, 1, 3]);
    }
}
