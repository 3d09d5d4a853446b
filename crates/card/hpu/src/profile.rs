// SPDX-License-Identifier: Apache-2.0
//! Execution counts of blocks and instructions.

use std::collections::BTreeMap;

/// Execution counts of blocks, by handler.
#[derive(Default)]
pub(crate) struct Profile {
    /// Addresses of the handlers' first instructions, in the order of their first runs.
    entries: Vec<u32>,
    /// Executions of each block, by handler.
    runs: Vec<Vec<u64>>,
    /// Index of the running handler.
    running: usize,
    /// Executions of instructions in blocks that a fault ended early, by handler and address.
    partial: BTreeMap<(u32, u32), u64>,
}

impl Profile {
    /// Switches to the handler at `entry`.
    pub fn begin(&mut self, entry: u32) {
        let known = self.entries.iter().position(|known| *known == entry);
        self.running = known.unwrap_or_else(|| {
            self.entries.push(entry);
            self.runs.push(Vec::new());
            self.entries.len() - 1
        });
    }

    /// Counts a run of block `number` by the running handler.
    pub fn add(&mut self, number: u32) {
        let (Some(counts), number) = (self.runs.get_mut(self.running), number as usize) else { return };
        if number >= counts.len() {
            counts.resize(number + 1, 0);
        }
        counts[number] += 1;
    }

    /// Counts an instruction in a block that ended early.
    pub fn add_partial(&mut self, entry: u32, pc: u32) {
        *self.partial.entry((entry, pc)).or_default() += 1;
    }

    /// Returns the executions of each instruction, by handler. `addresses` lists the instructions of each block.
    pub fn instructions(&self, addresses: &[Vec<u32>]) -> BTreeMap<u32, BTreeMap<u32, u64>> {
        let mut all: BTreeMap<u32, BTreeMap<u32, u64>> = BTreeMap::new();
        let mut add = |entry, pc, runs| *all.entry(entry).or_default().entry(pc).or_default() += runs;
        for (entry, counts) in self.entries.iter().zip(&self.runs) {
            for (block, runs) in addresses.iter().zip(counts).filter(|(_, runs)| **runs > 0) {
                block.iter().for_each(|pc| add(*entry, *pc, *runs));
            }
        }
        self.partial.iter().for_each(|((entry, pc), runs)| add(*entry, *pc, *runs));
        all
    }
}
