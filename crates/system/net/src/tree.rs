// SPDX-License-Identifier: Apache-2.0
//! Distances in a fat tree.

use crate::NetError;

/// Switches and wires on a path between two cards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hops {
    /// Number of switches.
    pub switches: u32,
    /// Number of wires, including those at the cards.
    pub wires: u32,
}

/// A folded Clos network of equal switches with full bisection; the nodes fill it from the left.
///
/// Half of the ports of a switch below the top lead down and half up, so a switch of level *i* has `(radix/2)^i` nodes
/// below it. All ports of a top switch lead down: `l` levels have room for `2 (radix/2)^l` nodes. The tree has the
/// minimum number of levels for its nodes.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: usize,
    levels: u32,
    /// Nodes or subtrees below a switch that is not at the top.
    down: usize,
}

impl Tree {
    /// Creates a fat tree of switches with `radix` ports.
    ///
    /// # Errors
    /// If such switches cannot connect this number of nodes.
    pub fn fat_tree(radix: u32, nodes: usize) -> Result<Tree, NetError> {
        if nodes == 0 {
            return Err(NetError::NoNodes);
        }
        if radix == 0 || !radix.is_multiple_of(2) {
            return Err(NetError::Radix { radix });
        }
        let down = (radix / 2) as usize;
        if down == 1 && nodes > 2 {
            return Err(NetError::TooManyNodes { nodes });
        }
        let (mut levels, mut subtree) = (1, down);
        while subtree < nodes.div_ceil(2) {
            levels += 1;
            subtree = subtree.saturating_mul(down);
        }
        Ok(Tree { nodes, levels, down })
    }

    /// Creates one switch with a port for each node.
    ///
    /// # Errors
    /// If the number of nodes is zero.
    pub fn single_switch(nodes: usize) -> Result<Tree, NetError> {
        if nodes == 0 { Err(NetError::NoNodes) } else { Ok(Tree { nodes, levels: 1, down: nodes }) }
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Returns the number of levels of switches.
    pub fn levels(&self) -> u32 {
        self.levels
    }

    /// Returns the shortest path: up to the lowest level above both nodes, and down again. The path from a node to
    /// itself is empty.
    pub fn hops(&self, from: usize, to: usize) -> Hops {
        debug_assert!(from < self.nodes && to < self.nodes, "{from} to {to} of {} nodes", self.nodes);
        if from == to {
            return Hops::default();
        }
        let (mut level, mut from, mut to) = (1, from / self.down, to / self.down);
        while from != to && level < self.levels {
            level += 1;
            (from, to) = (from / self.down, to / self.down);
        }
        Hops { switches: 2 * level - 1, wires: 2 * level }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    /// Returns the neighbours in the full tree: nodes first, then the switches level by level. A subtree of
    /// `down^level` nodes has `down^(level-1)` switches at its top, and its switch `j` is wired to switch `j mod
    /// down^(level-2)` of each of its subtrees.
    fn graph(radix: usize, levels: u32) -> Vec<Vec<usize>> {
        let down = radix / 2;
        let nodes = 2 * down.pow(levels);
        let mut neighbours = vec![Vec::new(); nodes];
        let mut below: Vec<Vec<usize>> = (0..nodes).map(|node| vec![node]).collect();
        for level in 1..=levels {
            let children = if level == levels { 2 * down } else { down };
            let mut tops = Vec::new();
            for group in below.chunks(children) {
                let mut top = Vec::new();
                for j in 0..down.pow(level - 1) {
                    let switch = neighbours.len();
                    top.push(switch);
                    neighbours.push(Vec::new());
                    for subtree in group {
                        let child = subtree[j % subtree.len()];
                        neighbours[switch].push(child);
                        neighbours[child].push(switch);
                    }
                }
                tops.push(top);
            }
            below = tops;
        }
        let ports = |vertex: &Vec<usize>| vertex.len();
        assert!(neighbours[..nodes].iter().all(|node| ports(node) == 1));
        assert!(neighbours[nodes..].iter().all(|switch| ports(switch) == radix));
        neighbours
    }

    fn distances(neighbours: &[Vec<usize>], from: usize) -> Vec<u32> {
        let mut distance = vec![u32::MAX; neighbours.len()];
        distance[from] = 0;
        let mut queue = VecDeque::from([from]);
        while let Some(vertex) = queue.pop_front() {
            for &next in &neighbours[vertex] {
                if distance[next] == u32::MAX {
                    distance[next] = distance[vertex] + 1;
                    queue.push_back(next);
                }
            }
        }
        distance
    }

    #[test]
    fn hops_are_the_shortest_paths_of_the_graph() {
        for (radix, levels) in [(2, 1), (4, 1), (4, 2), (4, 3), (4, 4), (6, 2), (6, 3), (8, 2)] {
            let neighbours = graph(radix, levels);
            let nodes = 2 * (radix / 2).pow(levels);
            let tree = Tree::fat_tree(radix as u32, nodes).unwrap();
            assert_eq!(tree.levels(), levels);
            for from in 0..nodes {
                let distance = distances(&neighbours, from);
                for (to, &wires) in distance[..nodes].iter().enumerate() {
                    let expected = Hops { switches: wires.saturating_sub(1), wires };
                    assert_eq!(tree.hops(from, to), expected, "{from} to {to}, radix {radix}");
                }
            }
        }
    }

    #[test]
    fn levels_are_as_few_as_can_be() {
        let levels = |nodes| Tree::fat_tree(36, nodes).unwrap().levels();
        assert_eq!([1, 36, 37, 648, 649, 11_664, 11_665, 209_952].map(levels), [1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(Tree::fat_tree(4, usize::MAX).unwrap().levels(), usize::BITS - 1);
    }

    #[test]
    fn one_switch_connects_all() {
        let tree = Tree::single_switch(100_000).unwrap();
        assert_eq!(tree.hops(0, 99_999), Hops { switches: 1, wires: 2 });
        assert_eq!(tree.hops(5, 5), Hops::default());
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        assert_eq!(Tree::fat_tree(36, 0).unwrap_err(), NetError::NoNodes);
        assert_eq!(Tree::single_switch(0).unwrap_err(), NetError::NoNodes);
        assert_eq!(Tree::fat_tree(35, 2).unwrap_err(), NetError::Radix { radix: 35 });
        assert_eq!(Tree::fat_tree(0, 2).unwrap_err(), NetError::Radix { radix: 0 });
        assert_eq!(Tree::fat_tree(2, 3).unwrap_err(), NetError::TooManyNodes { nodes: 3 });
        assert_eq!(Tree::fat_tree(2, 2).unwrap().levels(), 1);
    }

    proptest! {
        #[test]
        fn hops_are_symmetric_and_no_longer_than_the_tree_is_high(
            half in 2u32..64, nodes in 1usize..300_000, a in any::<prop::sample::Index>(), b in any::<prop::sample::Index>(),
        ) {
            let tree = Tree::fat_tree(2 * half, nodes).unwrap();
            let (a, b) = (a.index(nodes), b.index(nodes));
            let hops = tree.hops(a, b);
            prop_assert_eq!(hops, tree.hops(b, a));
            prop_assert!(hops.wires <= 2 * tree.levels());
            let half = half as usize;
            let room = 2 * half.pow(tree.levels());
            prop_assert!(nodes <= room && (tree.levels() == 1 || nodes > room / half));
            if a / half == b / half && a != b {
                prop_assert_eq!(hops, Hops { switches: 1, wires: 2 });
            }
        }
    }
}
