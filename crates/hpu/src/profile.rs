use std::collections::BTreeMap;

/// How often each block ran, by handler.
#[derive(Default)]
pub(crate) struct Profile {
    /// Addresses of the handlers' first instructions, in the order in which the handlers first ran.
    entries: Vec<u32>,
    /// How often each block ran, by handler.
    runs: Vec<Vec<u64>>,
    /// How often instructions ran in blocks that a fault ended early, by handler and address.
    partial: BTreeMap<(u32, u32), u64>,
}

impl Profile {
    /// Removes the counts of a handler while it runs; [`Profile::give_back`] puts them back.
    pub fn lend(&mut self, entry: u32) -> Vec<u64> {
        match self.entries.iter().position(|known| *known == entry) {
            Some(index) => std::mem::take(&mut self.runs[index]),
            None => {
                self.entries.push(entry);
                self.runs.push(Vec::new());
                Vec::new()
            }
        }
    }

    /// Puts the counts of a handler back.
    pub fn give_back(&mut self, entry: u32, counts: Vec<u64>) {
        if let Some(index) = self.entries.iter().position(|known| *known == entry) {
            self.runs[index] = counts;
        }
    }

    /// Counts an instruction that ran in a block that did not reach its end.
    pub fn add_partial(&mut self, entry: u32, pc: u32) {
        *self.partial.entry((entry, pc)).or_default() += 1;
    }

    /// How often each instruction ran, by handler. `addresses` has the instructions of each block.
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

/// Counts a run of block `number`.
#[inline(always)]
pub(crate) fn count(counts: &mut Vec<u64>, number: u32) {
    match counts.get_mut(number as usize) {
        Some(runs) => *runs += 1,
        None => first_run(counts, number),
    }
}

#[cold]
fn first_run(counts: &mut Vec<u64>, number: u32) {
    counts.resize(number as usize + 1, 0);
    counts[number as usize] = 1;
}
