// SPDX-License-Identifier: Apache-2.0
//! Nodes of the ranks: one for each rank, unless ranks share nodes.

use abi::mailbox::env;
use abi::placement;

/// Nodes of the job's ranks.
#[derive(Debug, Default)]
pub struct Nodes {
    /// Node of each rank; `None` if each rank has the node of its number.
    shared: Option<Vec<u32>>,
}

impl Nodes {
    /// Returns the nodes of a job with `size` ranks.
    pub fn of_job(size: u32) -> Nodes {
        Nodes::of_text(&std::env::var(env::NODES).unwrap_or_default(), size)
    }

    fn of_text(text: &str, size: u32) -> Nodes {
        let processes = placement::processes(text, size as usize);
        Nodes { shared: processes.map(|processes| processes.iter().map(|process| process.nid).collect()) }
    }

    /// Returns true if ranks share nodes.
    pub fn are_shared(&self) -> bool {
        self.shared.is_some()
    }

    /// Returns the node of a rank.
    pub fn node(&self, rank: u32) -> u32 {
        self.shared.as_ref().and_then(|nodes| nodes.get(rank as usize)).copied().unwrap_or(rank)
    }

    /// Returns the number of nodes of a job with `size` ranks.
    pub fn count(&self, size: u32) -> u32 {
        self.shared.as_ref().map_or(size, |nodes| nodes.iter().max().map_or(0, |last| last + 1))
    }

    /// Returns the ranks on the node of a rank.
    pub fn local(&self, rank: u32) -> Vec<u32> {
        let Some(nodes) = &self.shared else { return vec![rank] };
        let node = self.node(rank);
        (0..).zip(nodes).filter(|(_, other)| **other == node).map(|(rank, _)| rank).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_know_those_of_their_nodes() {
        let nodes = Nodes::of_text("0,2,2;2,1,1", 5);
        assert_eq!((nodes.count(5), nodes.node(3), nodes.local(3), nodes.local(4)), (3, 1, vec![2, 3], vec![4]));
        assert!(nodes.are_shared());
        let nodes = Nodes::of_text("", 5);
        assert_eq!((nodes.count(5), nodes.node(3), nodes.local(3)), (5, 3, vec![3]));
        assert!(!nodes.are_shared());
    }
}
