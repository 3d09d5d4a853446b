// SPDX-License-Identifier: Apache-2.0
//! Tables with numbered members, for simulations with millions of them.
//!
//! The crate `slab` stores a tag with each member, so a 64-byte member would occupy two cache lines, and it does not
//! support huge pages; packet payloads, which need neither, use it.

use std::ops::{Index, IndexMut};

use sim::memory::{HugePageSlice, prefetch};

/// Prefetch distance of a new member's slot in insertions, if no member is removed meanwhile. In a burst of insertions
/// after a burst of removals, most slots are no longer in the processor's cache.
const AHEAD: usize = 8;

/// Numbered members; the numbers of removed members are reused.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    all: HugePageSlice<T>,
    /// Number of members ever used.
    given: u32,
    unused: Vec<u32>,
}

impl<T: Copy> Slab<T> {
    /// Creates an empty slab, filled with `blank`.
    pub fn new(blank: T) -> Slab<T> {
        Slab { all: HugePageSlice::filled(blank, 64), given: 0, unused: Vec::new() }
    }

    #[inline]
    pub fn insert(&mut self, member: T) -> u32 {
        let number = self.unused.pop().unwrap_or_else(|| self.fresh(member));
        if let Some(&later) = self.unused.len().checked_sub(AHEAD).and_then(|place| self.unused.get(place)) {
            self.prefetch(later);
        }
        self.all[number as usize] = member;
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

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.given as usize - self.unused.len()
    }

    /// Prefetches a member. Any number is allowed.
    #[inline]
    pub fn prefetch(&self, number: u32) {
        prefetch(self.all.as_ptr().wrapping_add(number as usize));
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

/// A slab member that can be in a [`List`]: it stores the number of the next one.
pub(crate) trait Linked {
    fn next(&mut self) -> &mut u32;
}

/// A linked list of members of a slab.
#[derive(Clone, Copy, Debug)]
pub(crate) struct List {
    first: u32,
    last: u32,
}

/// A number of no member.
pub(crate) const NOBODY: u32 = u32::MAX;

impl List {
    pub const EMPTY: List = List { first: NOBODY, last: NOBODY };

    #[inline]
    pub fn first(self) -> Option<u32> {
        (self.first != NOBODY).then_some(self.first)
    }

    /// Returns the member added most recently, if it is still there.
    #[inline]
    pub fn newest(self) -> Option<u32> {
        self.first().map(|_| self.last)
    }

    #[inline]
    pub fn push<T: Linked>(&mut self, number: u32, all: &mut Slab<T>) {
        if self.first == NOBODY {
            self.first = number;
        } else {
            *all[self.last].next() = number;
        }
        self.last = number;
    }

    #[inline]
    pub fn pop<T: Linked>(&mut self, all: &mut Slab<T>) -> Option<u32> {
        let first = self.first()?;
        self.first = if first == self.last { NOBODY } else { *all[first].next() };
        Some(first)
    }

    /// Removes a member that follows the member `before` or, for `None`, is the first.
    pub fn remove<T: Linked>(&mut self, before: Option<u32>, number: u32, all: &mut Slab<T>) {
        let next = if number == self.last { NOBODY } else { *all[number].next() };
        match before {
            None => self.first = next,
            Some(before) => *all[before].next() = next,
        }
        if number == self.last {
            self.last = before.unwrap_or(NOBODY);
        }
    }

    /// Returns the member after this one.
    #[inline]
    pub fn after<T: Linked + Copy>(self, number: u32, all: &Slab<T>) -> Option<u32> {
        let mut member = all[number];
        (number != self.last).then(|| *member.next())
    }

    /// Returns the last member, and the one before it.
    pub fn last<T: Linked + Copy>(self, all: &Slab<T>) -> Option<(Option<u32>, u32)> {
        let (mut before, mut number) = (None, self.first()?);
        while let Some(next) = self.after(number, all) {
            (before, number) = (Some(number), next);
        }
        Some((before, number))
    }
}
