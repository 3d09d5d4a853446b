/// The lines of the program that an instruction cache holds. Line 0 begins at the program's first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    words: Vec<u64>,
    /// How many lines were taken out.
    removed: u64,
}

impl Lines {
    /// An empty cache for a program with this number of lines.
    pub fn none(lines: u32) -> Lines {
        Lines { words: vec![0; lines.div_ceil(u64::BITS) as usize], removed: 0 }
    }

    /// A cache that holds every line of a program with this number of lines.
    pub fn all(lines: u32) -> Lines {
        Lines { words: vec![u64::MAX; lines.div_ceil(u64::BITS) as usize], removed: 0 }
    }

    /// Whether the cache holds a line.
    #[inline(always)]
    pub fn contains(&self, line: u32) -> bool {
        self.words.get((line / u64::BITS) as usize).is_some_and(|word| word >> (line % u64::BITS) & 1 != 0)
    }

    /// Puts a line into the cache. A line that the program does not have is ignored.
    pub fn insert(&mut self, line: u32) {
        if let Some(word) = self.words.get_mut((line / u64::BITS) as usize) {
            *word |= 1 << (line % u64::BITS);
        }
    }

    /// The number of lines that were taken out so far: as long as it is the same, the lines that the cache holds stay there.
    pub(crate) fn removed(&self) -> u64 {
        self.removed
    }

    /// Takes a line out of the cache.
    pub fn remove(&mut self, line: u32) {
        self.removed += 1;
        if let Some(word) = self.words.get_mut((line / u64::BITS) as usize) {
            *word &= !(1 << (line % u64::BITS));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_and_go() {
        let mut lines = Lines::none(100);
        for line in [0, 63, 64, 99] {
            assert!(!lines.contains(line) && Lines::all(100).contains(line));
            lines.insert(line);
            assert!(lines.contains(line) && !lines.contains(line + 1));
        }
        lines.remove(64);
        assert!(!lines.contains(64) && lines.contains(63));
        // A line behind the program is in no cache.
        lines.insert(1000);
        lines.remove(1000);
        assert!(!lines.contains(1000) && !Lines::all(100).contains(1000));
    }
}
