// SPDX-License-Identifier: Apache-2.0
//! Contents of the instruction cache.

/// Program lines in the instruction cache. Line 0 begins at the program's first byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    words: Vec<u64>,
    /// Number of evictions.
    removed: u64,
}

impl Lines {
    /// Creates an empty cache for a program of `lines` lines.
    pub fn none(lines: u32) -> Lines {
        Lines { words: vec![0; lines.div_ceil(u64::BITS) as usize], removed: 0 }
    }

    /// Creates a cache that holds all `lines` lines of a program.
    pub fn all(lines: u32) -> Lines {
        Lines { words: vec![u64::MAX; lines.div_ceil(u64::BITS) as usize], removed: 0 }
    }

    /// Returns true if the cache holds the line.
    #[inline(always)]
    pub fn contains(&self, line: u32) -> bool {
        self.words.get((line / u64::BITS) as usize).is_some_and(|word| word >> (line % u64::BITS) & 1 != 0)
    }

    /// Inserts a line. Lines outside the program are ignored.
    pub fn insert(&mut self, line: u32) {
        if let Some(word) = self.words.get_mut((line / u64::BITS) as usize) {
            *word |= 1 << (line % u64::BITS);
        }
    }

    /// Returns the number of evictions. While it is unchanged, all cached lines stay cached.
    pub(crate) fn removed(&self) -> u64 {
        self.removed
    }

    /// Evicts a line.
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
        // Lines after the program are never cached.
        lines.insert(1000);
        lines.remove(1000);
        assert!(!lines.contains(1000) && !Lines::all(100).contains(1000));
    }
}
