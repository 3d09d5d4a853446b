// SPDX-License-Identifier: Apache-2.0
//! Tables larger than the processor's cache, and prefetching from them.

use std::alloc::{Layout, handle_alloc_error};
use std::collections::VecDeque;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};

use bytemuck::Zeroable;
use memmap2::MmapMut;

/// Size of a huge page in bytes. Smaller tables would waste most of a page.
const HUGE_PAGE: usize = 1 << 21;

/// A large table in huge pages, if the system supports them. The simulator accesses such tables randomly, so that 4 KiB
/// pages would miss the TLB on almost every access.
#[derive(Debug)]
pub struct HugePageSlice<T> {
    map: MmapMut,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Zeroable> HugePageSlice<T> {
    /// Creates a table of `len` zeroed values.
    pub fn zeroed(len: usize) -> HugePageSlice<T> {
        // SAFETY: a fresh map is zero, a valid `T`.
        unsafe { HugePageSlice::map(len) }
    }
}

impl<T: Copy> HugePageSlice<T> {
    /// Creates a table of `len` copies of `value`.
    pub fn filled(value: T, len: usize) -> HugePageSlice<T> {
        // SAFETY: every value is written before it is read.
        let mut table: HugePageSlice<T> = unsafe { HugePageSlice::map(len) };
        let first: *mut T = table.map.as_mut_ptr().cast();
        for index in 0..len {
            // SAFETY: the map has room for `len` values, and is aligned to pages.
            unsafe { first.add(index).write(value) };
        }
        table
    }

    /// Creates a table of `len` values of which these ranges are copies of `value`, and the others zero bytes. Pages
    /// without any of the ranges take no memory until they are written.
    ///
    /// # Safety
    /// Values of zero bytes must be valid.
    pub unsafe fn partly_filled(value: T, len: usize, ranges: &[Range<usize>]) -> HugePageSlice<T> {
        // SAFETY: the caller's.
        let mut table: HugePageSlice<T> = unsafe { HugePageSlice::map(len) };
        for range in ranges {
            table[range.clone()].fill(value);
        }
        table
    }

    /// Returns a copy of this table, extended to length `len` with copies of `value`.
    pub fn grown(&self, value: T, len: usize) -> HugePageSlice<T> {
        let mut table = HugePageSlice::filled(value, len.max(self.len));
        table[..self.len].copy_from_slice(self);
        table
    }
}

impl<T> HugePageSlice<T> {
    /// Makes the system allocate the memory of this part of the table now. Otherwise a page that is first read and then
    /// written causes two page faults, and the second one interrupts all threads of the process.
    pub fn populate(&self, part: Range<usize>) {
        // A hint that not all systems support.
        #[cfg(target_os = "linux")]
        if !part.is_empty() {
            let size = size_of::<T>();
            let _ = self.map.advise_range(memmap2::Advice::PopulateWrite, part.start * size, part.len() * size);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = part;
    }

    /// Maps memory for `len` values, filled with zero bytes.
    ///
    /// # Safety
    /// Values of zero bytes must be valid, or be overwritten before they are read.
    unsafe fn map(len: usize) -> HugePageSlice<T> {
        let layout = Layout::array::<T>(len).expect("a table of fewer bytes than there are addresses");
        let Ok(map) = MmapMut::map_anon(layout.size().max(1)) else { handle_alloc_error(layout) };
        // A hint that not all systems support.
        #[cfg(target_os = "linux")]
        if layout.size() >= HUGE_PAGE {
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        HugePageSlice { map, len, of: PhantomData }
    }
}

impl<T> Deref for HugePageSlice<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the map is aligned to pages and has room for `len` valid values.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for HugePageSlice<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the map is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}

/// Prefetches a value into the processor's cache.
#[inline(always)]
pub fn prefetch<T>(place: *const T) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint without visible effect; any address is allowed.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(place.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = place;
}

/// Prefetches all bytes of a value.
#[inline]
pub fn prefetch_all<T: ?Sized>(value: &T) {
    let start = std::ptr::from_ref(value).cast::<u8>();
    for line in (0..size_of_val(value)).step_by(64) {
        prefetch(start.wrapping_add(line));
    }
}

/// Minimum capacity of a list in bytes, the smallest allocation.
const LEAST_ROOM: usize = 16;

/// Returns the capacity increment of a full list of length `len`.
#[inline]
fn growth<T>(len: usize) -> usize {
    (len / 2).max(LEAST_ROOM / size_of::<T>().max(1)).max(1)
}

/// Appends a value to one of many lists. The capacity starts at one value, or 16 bytes, and grows by half;
/// [`Vec::push`] starts at four values and doubles.
#[inline]
pub fn push_frugally<T>(list: &mut Vec<T>, value: T) {
    if list.len() == list.capacity() {
        list.reserve_exact(growth::<T>(list.len()));
    }
    list.push(value);
}

/// Appends a value to one of many queues, which grow as with [`push_frugally`].
#[inline]
pub fn push_back_frugally<T>(queue: &mut VecDeque<T>, value: T) {
    if queue.len() == queue.capacity() {
        queue.reserve_exact(growth::<T>(queue.len()));
    }
    queue.push_back(value);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_have_their_values() {
        let mut table = HugePageSlice::filled(7u16, 3);
        table[1] = 8;
        let more = table.grown(9, 5);
        assert_eq!((&*table, &*more), (&[7, 8, 7][..], &[7, 8, 7, 9, 9][..]));
        assert_eq!(*table.grown(9, 0), *table);
        // A table of several huge pages, and an empty table.
        assert!(HugePageSlice::<u64>::zeroed(1 << 20).iter().all(|&word| word == 0));
        assert!(HugePageSlice::<u64>::zeroed(0).is_empty());
        prefetch(&raw const more[4]);
        prefetch_all(&*more);
    }

    #[test]
    fn a_list_has_little_room_that_it_does_not_use() {
        let mut list = Vec::new();
        let mut rooms = Vec::new();
        for value in 0..8u64 {
            push_frugally(&mut list, [value; 2]);
            rooms.push(list.capacity());
        }
        assert_eq!((list, rooms), ((0..8).map(|value| [value; 2]).collect(), vec![1, 2, 3, 4, 6, 6, 9, 9]));
        let mut small = Vec::new();
        let rooms: Vec<usize> = (0..9u32)
            .map(|value| {
                push_frugally(&mut small, value);
                small.capacity()
            })
            .collect();
        assert_eq!(rooms, [4, 4, 4, 4, 8, 8, 8, 8, 12]);
    }

    #[test]
    fn a_queue_has_little_room_that_it_does_not_use() {
        let mut queue = VecDeque::new();
        let mut rooms = Vec::new();
        for value in 0..6u128 {
            push_back_frugally(&mut queue, value);
            rooms.push(queue.capacity());
        }
        assert_eq!(rooms, [1, 2, 3, 4, 6, 6]);
        assert_eq!(queue.pop_front(), Some(0));
        push_back_frugally(&mut queue, 6);
        assert_eq!((queue.capacity(), queue), (6, (1..7).collect()));
    }
}
