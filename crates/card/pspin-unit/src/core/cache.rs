//! The instruction cache of a cluster (§III-C).

use hpu::Lines;
use machine::Pspin;

/// The lines that the cores of a cluster share. A new line takes the place of the one of its set that has been there for
/// longest, so a hit changes nothing.
#[derive(Clone, Debug)]
pub struct Cache {
    /// The lines that can be fetched.
    pub lines: Lines,
    /// The lines of each set; the first is the oldest.
    sets: Vec<Vec<u32>>,
    ways: usize,
    /// The lines that are on their way, with the cycle in which they are there.
    filling: Vec<(u32, u64)>,
}

impl Cache {
    /// An empty cache for a program with this number of lines.
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

    /// The cycle in which a line will be there that is on its way.
    pub fn coming(&self, line: u32) -> Option<u64> {
        self.filling.iter().find(|(filling, _)| *filling == line).map(|(_, at)| *at)
    }

    /// A line is fetched, and will be there in cycle `at`.
    pub fn expect(&mut self, line: u32, at: u64) {
        self.filling.push((line, at));
    }

    /// Puts the lines into the cache that have come up to cycle `now`.
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
