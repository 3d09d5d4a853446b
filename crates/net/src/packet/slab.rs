use std::ops::{Index, IndexMut};

use sim::memory::{Large, prefetch};

/// Things with numbers; the number of one that was removed is given again.
#[derive(Debug)]
pub(super) struct Slab<T> {
    all: Large<T>,
    /// Numbers that were ever given.
    given: u32,
    unused: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    /// With nothing; `blank` is what memory is filled with.
    pub fn new(blank: T) -> Slab<T> {
        Slab { all: Large::filled(blank, 64), given: 0, unused: Vec::new() }
    }

    #[inline]
    pub fn insert(&mut self, thing: T) -> u32 {
        let number = self.unused.pop().unwrap_or_else(|| self.fresh(thing));
        self.all[number as usize] = thing;
        number
    }

    fn fresh(&mut self, blank: T) -> u32 {
        if self.given as usize == self.all.len() {
            self.all = self.all.grown(blank, 2 * self.all.len());
        }
        self.given += 1;
        self.given - 1
    }

    #[inline]
    pub fn remove(&mut self, number: u32) -> T {
        self.unused.push(number);
        self.all[number as usize]
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.given as usize - self.unused.len()
    }

    #[inline]
    pub fn prefetch(&self, number: u32) {
        prefetch(&raw const self.all[number as usize]);
    }
}

impl<T> Index<u32> for Slab<T> {
    type Output = T;

    #[inline]
    fn index(&self, number: u32) -> &T {
        &self.all[number as usize]
    }
}

impl<T> IndexMut<u32> for Slab<T> {
    #[inline]
    fn index_mut(&mut self, number: u32) -> &mut T {
        &mut self.all[number as usize]
    }
}
