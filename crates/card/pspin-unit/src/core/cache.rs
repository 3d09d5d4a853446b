// SPDX-License-Identifier: Apache-2.0
//! Instruction cache of a cluster (§III-C).

use hpu::Lines;
use machine::Pspin;

/// The instruction cache that the cores of a cluster share. Replacement is FIFO within a set, so hits change no state.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Lines that hit.
    pub lines: Lines,
    /// Lines of each set, oldest first.
    sets: Vec<Vec<u32>>,
    ways: usize,
    /// Lines in flight, each with the cycle from which it is in the cache.
    filling: Vec<(u32, u64)>,
}

impl Cache {
    /// Creates an empty cache for a program of `lines` lines.
    pub fn new(unit: &Pspin, lines: u32) -> Cache {
        let (line, ways) = (unit.icache.line, unit.icache.ways.max(1));
        let sets = (unit.icache.bytes / line / ways).max(1);
        Cache {
            lines: Lines::none(lines),
            sets: vec![Vec::new(); sets as usize],
            ways: ways as usize,
            filling: Vec::new(),
        }
    }

    /// Returns the cycle from which a line in flight will be in the cache.
    pub fn coming(&self, line: u32) -> Option<u64> {
        self.filling.iter().find(|(filling, _)| *filling == line).map(|(_, at)| *at)
    }

    /// Records a line in flight that arrives in cycle `at`.
    pub fn expect(&mut self, line: u32, at: u64) {
        self.filling.push((line, at));
    }

    /// Inserts the lines that have arrived by cycle `now`.
    pub fn fill(&mut self, now: u64) {
        while let Some(place) = self.filling.iter().position(|(_, at)| *at <= now) {
            let (line, _) = self.filling.remove(place);
            let index = line as usize % self.sets.len();
            let set = &mut self.sets[index];
            if set.len() == self.ways {
                self.lines.remove(set.remove(0));
            }
            set.push(line);
            self.lines.insert(line);
        }
    }
}
