// SPDX-License-Identifier: Apache-2.0
//! Detects handlers that wait in loops of plain loads, by their repeated reads. From then on, accesses to these words
//! of shared memory execute at their exact time.

use crate::window::Window;

/// Size of a word in bytes; watched words are aligned to it.
const WORD: u32 = 4;
/// Maximum number of words that a waiting loop reads.
const WORDS: usize = 4;
/// Number of reads of a word after which an otherwise idle handler counts as waiting.
const READS: u8 = 8;

/// Words of a card's shared memory on which handlers waited.
#[derive(Clone, Debug, Default)]
pub struct Watched {
    /// Card addresses in ascending order.
    words: Vec<u32>,
}

impl Watched {
    /// Returns true if no word is watched.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    fn insert(&mut self, word: u32) {
        if let Err(place) = self.words.binary_search(&word) {
            self.words.insert(place, word);
        }
    }

    /// Returns the index of the first watched word that ends after `address`.
    #[inline]
    fn first_behind(&self, address: u32) -> usize {
        self.words.partition_point(|word| word + (WORD - 1) < address)
    }

    /// Returns true if any of the `len` bytes at `address` is in a watched word.
    #[inline]
    pub(crate) fn touches(&self, address: u32, len: u32) -> bool {
        !self.words.is_empty()
            && self
                .words
                .get(self.first_behind(address))
                .is_some_and(|word| u64::from(*word) < u64::from(address) + u64::from(len))
    }

    /// Returns the largest part of `window` that contains `address` and no watched word; `address` is in no watched
    /// word.
    #[inline]
    pub(crate) fn free_part(&self, window: &Window, address: u32) -> Window {
        if self.words.is_empty() {
            return *window;
        }
        let next = self.first_behind(address);
        let inside = |word: &&u32| window.base <= **word && **word - window.base < window.len;
        let base = match next.checked_sub(1).map(|last| &self.words[last]).filter(inside) {
            Some(word) => word + WORD,
            None => window.base,
        };
        let skipped = base - window.base;
        let end = self.words.get(next).filter(inside).map_or(window.len, |word| word - window.base);
        Window { base, len: end - skipped, offset: window.offset + skipped as usize, ..*window }
    }
}

/// Words that a handler read from shared memory since its last other activity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WaitDetector {
    /// Words; the first `known` are valid.
    words: [u32; WORDS],
    /// Number of reads of each word.
    reads: [u8; WORDS],
    known: u8,
    /// True if the handler did something else, so it does not wait.
    off: bool,
    /// True if observation is suspended until the stop after the next.
    rests: bool,
}

impl WaitDetector {
    /// Initial state, for a handler that just started.
    pub const NEW: WaitDetector =
        WaitDetector { words: [0; WORDS], reads: [0; WORDS], known: 0, off: false, rests: false };

    /// Starts observing a handler that did not wait, unless the card just executed a command for it.
    #[inline]
    pub fn resume(&mut self) {
        if self.off && !std::mem::take(&mut self.rests) {
            (self.known, self.off) = (0, false);
        }
    }

    /// Records that the card executed a command, so the handler does not wait in a loop of loads before its next stop.
    pub fn rest(&mut self) {
        (self.off, self.rests) = (true, true);
    }

    /// Records an activity that does not occur in a waiting loop.
    #[inline]
    pub fn distract(&mut self) {
        self.off = true;
    }

    /// Returns true if the handler may be waiting.
    #[inline]
    pub fn is_on(&self) -> bool {
        !self.off
    }

    /// Records a load. Returns true if the handler waits; the words of its loop then [become
    /// watched](WaitDetector::watch).
    #[inline(always)]
    pub fn load(&mut self, address: u32, len: u32) -> bool {
        let last = address.wrapping_add(len - 1) & !(WORD - 1);
        let mut word = address & !(WORD - 1);
        let mut waits = self.read(word);
        while word != last && self.is_on() {
            word = word.wrapping_add(WORD);
            waits |= self.read(word);
        }
        waits && self.is_on()
    }

    /// Counts a read of a word. Returns true if it is read often.
    #[inline(always)]
    fn read(&mut self, word: u32) -> bool {
        for (at, (known, reads)) in self.words.iter_mut().zip(&mut self.reads).enumerate() {
            if at == usize::from(self.known) {
                (*known, *reads) = (word, 0);
                self.known += 1;
            }
            if *known == word {
                *reads += 1;
                return *reads >= READS;
            }
        }
        self.distract();
        false
    }

    /// Adds the words that a waiting handler reads repeatedly to the watched words.
    pub fn watch(&mut self, watched: &mut Watched) {
        // Observation may begin anywhere in the loop, so the counts of its words may differ by one or two.
        let read = self.words.iter().zip(self.reads).take(self.known.into());
        read.filter(|(_, reads)| *reads > READS / 2).for_each(|(word, _)| watched.insert(*word));
        *self = WaitDetector::NEW;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::Sharing;

    #[test]
    fn the_free_part_of_a_window_ends_at_watched_words() {
        let window = Window { base: 0x100, len: 0x40, offset: 7, write: true, sharing: Sharing::Shared };
        let mut watched = Watched::default();
        assert_eq!(watched.free_part(&window, 0x120), window);
        for word in [0xfc, 0x110, 0x120, 0x13c, 0x140] {
            watched.insert(word);
        }
        let part = |address| {
            let part = watched.free_part(&window, address);
            (part.base, part.len, part.offset)
        };
        assert_eq!(part(0x100), (0x100, 0x10, 7));
        assert_eq!(part(0x10f), (0x100, 0x10, 7));
        assert_eq!(part(0x114), (0x114, 0xc, 0x1b));
        assert_eq!(part(0x13b), (0x124, 0x18, 0x2b));
        for (address, len, touches) in
            [(0x10c, 4, false), (0x10c, 5, true), (0x113, 1, true), (0x114, 8, false), (0x11c, 8, true)]
        {
            assert_eq!(watched.touches(address, len), touches, "{address:#x}");
        }
    }

    #[test]
    fn words_that_are_read_again_and_again_are_watched() {
        let (mut wait_detector, mut watched) = (WaitDetector::NEW, Watched::default());
        assert!(!wait_detector.load(0x200, 4));
        for round in 0..8 {
            assert!(watched.words.is_empty(), "{round}");
            // One byte, and the eight bytes after its word.
            for (address, len) in [(0x102, 1), (0x104, 8)] {
                if wait_detector.load(address, len) {
                    assert_eq!(round, 7);
                    wait_detector.watch(&mut watched);
                }
            }
        }
        assert_eq!(watched.words, [0x100, 0x104, 0x108]);
        // A loop over a table is not a waiting loop.
        for word in 0..5 {
            assert!(!wait_detector.load(0x300 + 4 * word, 4));
        }
        assert!(!wait_detector.is_on());
    }
}
