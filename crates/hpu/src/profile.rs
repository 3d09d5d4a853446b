use std::collections::BTreeMap;

/// How often each block ran, by handler.
#[derive(Default)]
pub(crate) struct Profile {
    /// First instructions of the handlers, in the order in which they first ran.
    entries: Vec<u32>,
    /// Runs of each block, by handler.
    runs: Vec<Vec<u64>>,
    /// Instructions of blocks that a fault cut short, by handler and address.
    partial: BTreeMap<(u32, u32), u64>,
}

impl Profile {
    /// Lends out the counts of a handler while it runs; [`Profile::give_back`] takes them again.
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

    pub fn give_back(&mut self, entry: u32, counts: Vec<u64>) {
        if let Some(index) = self.entries.iter().position(|known| *known == entry) {
            self.runs[index] = counts;
        }
    }

    /// Counts an instruction that ran although its block did not come to its end.
    pub fn add_partial(&mut self, entry: u32, pc: u32) {
        *self.partial.entry((entry, pc)).or_default() += 1;
    }

    /// Runs of each instruction by handler; `addresses` gives those of each block.
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
