// SPDX-License-Identifier: Apache-2.0
//! Switches that add the vectors of an all-reduce, as ranks after those of the application.
//!
//! A tree has blocks of consecutive ranks on its lowest level, blocks of these blocks above, and a root. Each block has a
//! switch in each *plane*; planes share the groups among them. A vector travels in chunks: a switch adds the chunks of its
//! children, sends the sum to its parent, and sends the total from there to its children. Switches add at the rate of
//! their ports, so additions take no time, but a switch forwards a chunk only once it is complete.

use std::collections::HashMap;
use std::str::FromStr;

use goal::generate::SpecError;
use goal::{Action, Builder, MAX_SPACE, Wait};

/// Highest number of groups with switches: the upper half of the matching spaces.
const MAX_GROUPS: usize = MAX_SPACE as usize / 2;
/// Highest number of levels below the root.
const MAX_LEVELS: usize = 4;

/// Shape of the trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Ranks of a switch of the lowest level, then switches of each level below one of the next; 0 for unused levels.
    fan_in: [u32; MAX_LEVELS],
    /// Switches of each block, and roots.
    pub planes: u32,
}

impl Default for Shape {
    /// Returns switches of 16 ranks under one root.
    fn default() -> Shape {
        Shape { fan_in: [16, 0, 0, 0], planes: 1 }
    }
}

impl Shape {
    /// Replaces the levels by those of a text such as `8x16`. Returns nothing if it is no list of numbers from 2.
    pub fn with_levels(self, text: &str) -> Option<Shape> {
        let mut fan_in = [0; MAX_LEVELS];
        for (level, number) in text.split('x').enumerate() {
            *fan_in.get_mut(level)? = u32::from_str(number).ok().filter(|count| *count >= 2)?;
        }
        Some(Shape { fan_in, ..self })
    }

    /// Returns the ranks of a block of each level, the root's at the end.
    fn blocks(&self, ranks: u32) -> Vec<u32> {
        let mut sizes = Vec::new();
        let mut size = 1u32;
        for fan_in in self.fan_in.into_iter().take_while(|fan_in| *fan_in > 0) {
            size = size.saturating_mul(fan_in);
            sizes.push(size);
        }
        sizes.retain(|size| *size < ranks);
        sizes.push(ranks);
        sizes
    }

    /// Returns the number of switches for this number of ranks.
    fn switches(&self, ranks: u32) -> u64 {
        let blocks = self.blocks(ranks).into_iter().map(|size| u64::from(ranks.div_ceil(size.max(1))));
        blocks.sum::<u64>() * u64::from(self.planes)
    }

    /// Returns the tree of a group in a plane. A switch with a single child is left out.
    fn tree(&self, ranks: u32, members: &[u32], plane: u32) -> Vec<Switch> {
        // Each entry is a rank or switch, and a rank below it.
        let mut layer: Vec<(u32, u32)> = members.iter().map(|rank| (*rank, *rank)).collect();
        layer.sort_unstable_by_key(|entry| entry.1);
        let (mut tree, mut first) = (Vec::new(), ranks);
        for size in self.blocks(ranks) {
            let mut next: Vec<(u32, u32)> = Vec::new();
            for block in layer.chunk_by(|one, other| one.1 / size == other.1 / size) {
                if let &[only] = block {
                    next.push(only);
                    continue;
                }
                let number = first + block[0].1 / size * self.planes + plane;
                tree.push(Switch { number, children: block.iter().map(|entry| entry.0).collect(), parent: None });
                next.push((number, block[0].1));
            }
            first += ranks.div_ceil(size) * self.planes;
            layer = next;
        }
        let parents: HashMap<u32, u32> =
            tree.iter().flat_map(|switch| switch.children.iter().map(|child| (*child, switch.number))).collect();
        for switch in &mut tree {
            switch.parent = parents.get(&switch.number).copied();
        }
        tree
    }
}

/// A switch of a group's tree.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Switch {
    number: u32,
    children: Vec<u32>,
    parent: Option<u32>,
}

/// A chunk: tag and bytes.
type Chunk = (u32, u64);

/// A group of ranks whose vectors switches add.
struct Group {
    /// Matching space. Messages of several groups may have the same two switches and the same tag.
    space: u16,
    tree: Vec<Switch>,
    /// All chunks of the group, as its first member sent them.
    chunks: Vec<Chunk>,
}

/// Switches of a schedule.
pub struct Switches {
    shape: Shape,
    /// Ranks of the application.
    ranks: u32,
    /// Number of switches.
    count: u64,
    groups: Vec<Group>,
    /// Index of each group by its members and plane.
    numbers: HashMap<(Vec<u32>, u32), usize>,
}

impl Switches {
    /// Creates the switches for `ranks` ranks, of which no group uses any yet; none if they are not used.
    pub fn new(shape: Shape, ranks: u32, are_used: bool) -> Switches {
        let count = if are_used { shape.switches(ranks) } else { 0 };
        Switches { shape, ranks, count, groups: Vec::new(), numbers: HashMap::new() }
    }

    /// Returns the number of ranks of the schedule: those of the application, and the switches.
    pub fn all_ranks(&self) -> u64 {
        u64::from(self.ranks) + self.count
    }

    /// Adds a chunk of a member to the current rank of a schedule. Returns its end.
    ///
    /// # Errors
    /// If there are too many groups or operations.
    pub fn add_member(
        &mut self,
        members: &[u32],
        me: u32,
        plane: u32,
        chunk: Chunk,
        after: &[u32],
        builder: &mut Builder,
    ) -> Result<u32, SpecError> {
        let number = self.group(members, plane % self.shape.planes)?;
        let (group, rank) = (&mut self.groups[number], members[me as usize]);
        if me == 0 {
            group.chunks.push(chunk);
        }
        let switch = group.tree.iter().find(|switch| switch.children.contains(&rank));
        let switch = switch.map_or(rank, |switch| switch.number);
        let ((tag, bytes), space) = (chunk, group.space);
        let send = builder.add(Action::Send { bytes, to: switch, tag, space }, 0, 0)?;
        after.iter().for_each(|earlier| builder.depend(send, *earlier, Wait::Done));
        Ok(builder.add(Action::Recv { bytes, from: Some(switch), tag: Some(tag), space }, 0, 0)?)
    }

    fn group(&mut self, members: &[u32], plane: u32) -> Result<usize, SpecError> {
        if let Some(number) = self.numbers.get(&(members.to_vec(), plane)) {
            return Ok(*number);
        }
        let number = self.groups.len();
        if number == MAX_GROUPS {
            return Err(SpecError::TooLarge("number of groups in planes of switches", MAX_GROUPS as u64));
        }
        let space = MAX_SPACE - u16::try_from(number).unwrap_or(MAX_SPACE);
        let tree = self.shape.tree(self.ranks, members, plane);
        self.groups.push(Group { space, tree, chunks: Vec::new() });
        self.numbers.insert((members.to_vec(), plane), number);
        Ok(number)
    }

    /// Adds the ranks of all switches to a schedule.
    ///
    /// # Errors
    /// If there are too many operations.
    pub fn add(self, builder: &mut Builder) -> Result<(), SpecError> {
        let mut of_switch: HashMap<u32, Vec<(&Group, &Switch)>> = HashMap::new();
        for group in &self.groups {
            for switch in &group.tree {
                of_switch.entry(switch.number).or_default().push((group, switch));
            }
        }
        for number in self.ranks..u32::try_from(self.all_ranks()).unwrap_or(u32::MAX) {
            builder.begin_rank(number);
            for (group, switch) in of_switch.remove(&number).unwrap_or_default() {
                for &chunk in &group.chunks {
                    pass(group.space, switch, chunk, builder)?;
                }
            }
            builder.end_rank()?;
        }
        Ok(())
    }
}

/// Adds a switch's part of a chunk: the sum upwards, and the total downwards.
fn pass(space: u16, switch: &Switch, (tag, bytes): Chunk, builder: &mut Builder) -> Result<(), SpecError> {
    let recv = |from| Action::Recv { bytes, from: Some(from), tag: Some(tag), space };
    let send = |to| Action::Send { bytes, to, tag, space };
    let mut parts = Vec::new();
    for &child in &switch.children {
        parts.push(builder.add(recv(child), 0, 0)?);
    }
    let total = match switch.parent {
        None => builder.add(Action::Calc(0), 0, 0)?,
        Some(parent) => builder.add(send(parent), 0, 0)?,
    };
    parts.iter().for_each(|part| builder.depend(total, *part, Wait::Done));
    let total = match switch.parent {
        None => total,
        Some(parent) => builder.add(recv(parent), 0, 0)?,
    };
    for &child in &switch.children {
        let down = builder.add(send(child), 0, 0)?;
        builder.depend(down, total, Wait::Done);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_has_a_switch_for_each_block_with_several_children() {
        let shape = Shape { planes: 2, ..Shape::default().with_levels("4x2").unwrap() };
        // Blocks of 4, of 8, and the root: 4 + 2 + 1 blocks in two planes, numbered level by level.
        assert_eq!((shape.blocks(16), shape.switches(16)), (vec![4, 8, 16], 14));
        let switch = |number, children: &[u32], parent| Switch { number, children: children.to_vec(), parent };
        // The second block of four has one member, and the second block of eight has one child.
        let tree = shape.tree(16, &[1, 2, 4, 9, 10], 1);
        let expected = [
            switch(17, &[1, 2], Some(25)),
            switch(21, &[9, 10], Some(29)),
            switch(25, &[17, 4], Some(29)),
            switch(29, &[25, 21], None),
        ];
        assert_eq!(tree, expected);
        assert_eq!(shape.tree(16, &[5, 6], 0), [switch(18, &[5, 6], None)]);
        // A level that covers all ranks is the root.
        assert_eq!((shape.blocks(8), shape.switches(8)), (vec![4, 8], 6));
        assert_eq!(shape.with_levels("4x"), None);
        assert_eq!(shape.with_levels("2x2x2x2x2"), None);
    }
}
