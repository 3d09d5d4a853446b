use std::ops::{Index, IndexMut};

/// Things with numbers; the number of one that was removed is given again.
#[derive(Debug)]
pub(super) struct Slab<T> {
    all: Vec<T>,
    unused: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { all: Vec::new(), unused: Vec::new() }
    }
}

impl<T: Copy> Slab<T> {
    #[inline]
    pub fn insert(&mut self, thing: T) -> u32 {
        if let Some(number) = self.unused.pop() {
            self.all[number as usize] = thing;
            return number;
        }
        self.all.push(thing);
        self.all.len() as u32 - 1
    }

    #[inline]
    pub fn remove(&mut self, number: u32) -> T {
        self.unused.push(number);
        self.all[number as usize]
    }
}

impl<T> Slab<T> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len() - self.unused.len()
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
