// SPDX-License-Identifier: Apache-2.0
//! Free list of the packet buffers.

/// Packet buffers of a unit, by number.
#[derive(Clone, Debug)]
pub struct Buffers {
    count: u32,
    /// Free buffers that were used before, as a stack (the latest freed is reused first).
    free: Vec<u32>,
    /// Lowest buffer that was never used; all later ones are unused too.
    fresh: u32,
    /// Current and peak bytes of packets in buffers.
    bytes: u64,
    peak: u64,
}

impl Buffers {
    /// Creates `count` free buffers.
    pub fn new(count: u32) -> Buffers {
        Buffers { count, free: Vec::new(), fresh: 0, bytes: 0, peak: 0 }
    }

    /// Allocates a buffer for a packet of `bytes`; `None` if all are in use.
    pub fn take(&mut self, bytes: u32) -> Option<u32> {
        let buffer = match self.free.pop() {
            Some(buffer) => buffer,
            None if self.fresh == self.count => return None,
            None => {
                self.fresh += 1;
                self.fresh - 1
            }
        };
        self.bytes += u64::from(bytes);
        self.peak = self.peak.max(self.bytes);
        Some(buffer)
    }

    /// Frees the buffer of a packet of `bytes`.
    pub fn free(&mut self, buffer: u32, bytes: u32) {
        self.free.push(buffer);
        self.bytes -= u64::from(bytes);
    }

    /// Frees all buffers.
    pub fn clear(&mut self) {
        *self = Buffers { peak: self.peak, ..Buffers::new(self.count) };
    }

    /// Returns the peak number of packet bytes in buffers.
    pub fn peak(&self) -> u64 {
        self.peak
    }

    /// Returns true if no buffer is in use.
    pub fn all_free(&self) -> bool {
        self.free.len() == self.fresh as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_used_again_before_fresh_ones() {
        let mut buffers = Buffers::new(2);
        assert!(buffers.all_free());
        assert_eq!((buffers.take(8), buffers.take(8), buffers.take(8)), (Some(0), Some(1), None));
        buffers.free(0, 8);
        assert!(!buffers.all_free());
        assert_eq!((buffers.take(8), buffers.take(8)), (Some(0), None));
        buffers.free(1, 8);
        buffers.free(0, 8);
        assert!(buffers.all_free());
    }

    #[test]
    fn the_peak_is_the_most_bytes_at_once() {
        let mut buffers = Buffers::new(2);
        buffers.take(4096);
        buffers.free(0, 4096);
        assert_eq!((buffers.take(100), buffers.take(24)), (Some(0), Some(1)));
        assert_eq!((buffers.bytes, buffers.peak()), (124, 4096));
        assert_eq!(buffers.take(5000), None);
        buffers.clear();
        assert_eq!((buffers.bytes, buffers.peak(), buffers.take(8000)), (0, 4096, Some(0)));
        assert_eq!(buffers.peak(), 8000);
    }
}
