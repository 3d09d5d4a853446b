use std::alloc::{Layout, handle_alloc_error};
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::MmapMut;

/// Bytes; what is smaller would waste most of one.
const HUGE_PAGE: usize = 1 << 21;

/// A large table in huge pages where the system has them: with a thousand ranks, each at another place
/// of every table, small pages would be looked up at every step.
#[derive(Debug)]
pub(crate) struct Large<T> {
    map: MmapMut,
    len: usize,
    of: PhantomData<T>,
}

impl<T: Pod> Large<T> {
    pub fn zeroed(len: usize) -> Large<T> {
        // SAFETY: a fresh map is zero, and any bytes are a valid `T`.
        unsafe { Large::map(len) }
    }
}

impl<T: Copy> Large<T> {
    pub fn filled(value: T, len: usize) -> Large<T> {
        // SAFETY: all is written before it is read.
        let mut table: Large<T> = unsafe { Large::map(len) };
        let first: *mut T = table.map.as_mut_ptr().cast();
        for index in 0..len {
            // SAFETY: the map has room for `len` values, and is aligned to pages.
            unsafe { first.add(index).write(value) };
        }
        table
    }
}

impl<T> Large<T> {
    /// Of zero bytes.
    ///
    /// # Safety
    /// They are either valid or overwritten before they are used.
    unsafe fn map(len: usize) -> Large<T> {
        let layout = Layout::array::<T>(len).expect("a table of fewer bytes than there are addresses");
        let Ok(map) = MmapMut::map_anon(layout.size().max(1)) else { handle_alloc_error(layout) };
        // Only a hint: not all systems have it.
        #[cfg(target_os = "linux")]
        if layout.size() >= HUGE_PAGE {
            let _ = map.advise(memmap2::Advice::HugePage);
        }
        Large { map, len, of: PhantomData }
    }
}

impl<T> Deref for Large<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: the map is aligned to pages and has room for `len` valid values.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.len) }
    }
}

impl<T> DerefMut for Large<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as above, and the map is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.map.as_mut_ptr().cast(), self.len) }
    }
}
