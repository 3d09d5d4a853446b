// SPDX-License-Identifier: Apache-2.0
//! Pool of buffers shared by many lists.

/// Maximum capacity, in entries, that an empty list keeps.
const KEPT: usize = 256;
/// Maximum number of larger buffers kept for later bursts. Reallocating them would dominate the cost of a burst.
const LARGE_BUFFERS: usize = 4;

/// A pool of buffers for many lists, such as the slots of a queue. Only a few lists are long at any time.
#[derive(Clone, Debug)]
pub struct Pool<T> {
    /// Buffers, by ascending capacity.
    buffers: Vec<Vec<T>>,
}

impl<T> Default for Pool<T> {
    /// Creates an empty pool.
    fn default() -> Pool<T> {
        Pool { buffers: Vec::new() }
    }
}

impl<T> Pool<T> {
    /// Moves a full list to a larger buffer of the pool, if available. Call it before a list grows.
    #[inline(always)]
    pub fn widen(&mut self, list: &mut Vec<T>) {
        if list.len() == list.capacity() && list.len() >= KEPT {
            self.exchange(list);
        }
    }

    #[cold]
    fn exchange(&mut self, list: &mut Vec<T>) {
        if let Some(mut buffer) = self.buffers.pop_if(|buffer| buffer.capacity() > list.capacity()) {
            buffer.append(list);
            *list = buffer;
        }
    }

    /// Returns the buffer that an emptied list keeps; the pool takes a large one.
    #[inline]
    pub fn keep(&mut self, buffer: Vec<T>) -> Vec<T> {
        if buffer.capacity() <= KEPT {
            return buffer;
        }
        let place = self.buffers.partition_point(|other| other.capacity() < buffer.capacity());
        self.buffers.insert(place, buffer);
        if self.buffers.len() > LARGE_BUFFERS {
            self.buffers.remove(0);
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_buffers_go_to_other_lists() {
        let mut pool = Pool::default();
        assert_eq!(pool.keep(Vec::<u8>::with_capacity(KEPT)).capacity(), KEPT);
        for size in [5000, 1000, 4000, 2000, 3000] {
            assert_eq!(pool.keep(Vec::with_capacity(size)).capacity(), 0);
        }
        let mut list = Vec::with_capacity(KEPT);
        list.resize(KEPT, 7);
        pool.widen(&mut list);
        assert_eq!((list.capacity(), &list[..]), (5000, &[7; KEPT][..]));
        // First the list is not full, then it has more capacity than the pool's buffers.
        pool.widen(&mut list);
        list.resize(5000, 7);
        pool.widen(&mut list);
        assert_eq!(list.capacity(), 5000);
        // The pool freed the smallest of five buffers.
        assert_eq!(pool.buffers.iter().map(Vec::capacity).collect::<Vec<_>>(), [2000, 3000, 4000]);
    }
}
