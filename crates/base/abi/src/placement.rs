// SPDX-License-Identifier: Apache-2.0
//! Nodes of the ranks of a job whose ranks share nodes, as the ranks and process managers learn them.

use std::fmt::Write;

use crate::portals::Process;

/// Pid of the first rank on a node, unless it requests another one; the next ranks follow.
pub const FIRST_PID: u32 = 1;

/// Consecutive nodes with equal numbers of consecutive ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    /// First node.
    pub first: u32,
    /// Number of nodes.
    pub nodes: u32,
    /// Number of ranks on each node.
    pub ranks: u32,
}

/// Returns the blocks of a job, given the node of each rank.
pub fn blocks(nodes: &[u32]) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    for run in nodes.chunk_by(|one, other| one == other) {
        match blocks.last_mut() {
            Some(last) if last.ranks as usize == run.len() && last.first + last.nodes == run[0] => last.nodes += 1,
            _ => blocks.push(Block { first: run[0], nodes: 1, ranks: run.len() as u32 }),
        }
    }
    blocks
}

/// Returns the value of [`env::NODES`](crate::mailbox::env::NODES) for these blocks.
pub fn to_text(blocks: &[Block]) -> String {
    let mut text = String::new();
    for Block { first, nodes, ranks } in blocks {
        let separator = if text.is_empty() { "" } else { ";" };
        let _ = write!(text, "{separator}{first},{nodes},{ranks}"); // writing to a string does not fail
    }
    text
}

/// Returns nid and pid of each of the `size` ranks of a job from a value of [`env::NODES`](crate::mailbox::env::NODES);
/// `None` if it is none for a job of that size.
pub fn processes(text: &str, size: usize) -> Option<Vec<Process>> {
    let mut processes = Vec::new();
    let mut residents: Vec<u32> = Vec::new();
    for block in text.split(';') {
        let mut numbers = block.split(',').map(|number| number.parse::<u32>().ok());
        let (first, nodes, ranks) = (numbers.next()??, numbers.next()??, numbers.next()??);
        for nid in first..first.checked_add(nodes)? {
            // A job has at most as many nodes as ranks.
            if nid as usize >= size || ranks as usize > size - processes.len() {
                return None;
            }
            if residents.len() <= nid as usize {
                residents.resize(nid as usize + 1, 0);
            }
            for _ in 0..ranks {
                processes.push(Process { nid, pid: FIRST_PID + residents[nid as usize] });
                residents[nid as usize] += 1;
            }
        }
    }
    (processes.len() == size).then_some(processes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_of_ranks_survive_their_text() {
        for (nodes, text) in
            [(vec![0, 0, 1, 1, 2], "0,2,2;2,1,1"), (vec![0, 1, 2], "0,3,1"), (vec![0, 1, 0, 0], "0,2,1;0,1,2")]
        {
            let blocks = blocks(&nodes);
            assert_eq!(to_text(&blocks), text);
            let processes = processes(text, nodes.len()).unwrap();
            assert_eq!(processes.iter().map(|process| process.nid).collect::<Vec<_>>(), nodes);
        }
        let pids: Vec<u32> = processes("0,2,1;0,1,2", 4).unwrap().iter().map(|process| process.pid).collect();
        assert_eq!(pids, [1, 1, 2, 3]);
    }

    #[test]
    fn other_texts_name_no_processes() {
        for text in ["", "0", "0,1", "0,2,2", "0,1,x", "0,4294967295,1", "7,1,3", "0,1,3;"] {
            assert_eq!(processes(text, 3), None, "{text}");
        }
    }
}
