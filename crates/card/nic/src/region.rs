// SPDX-License-Identifier: Apache-2.0
//! Host memory ranges, contiguous or from an iovec.

use std::rc::Rc;

use abi::portals::Iovec;

/// An inaccessible host address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("host address {addr:#x}+{len} is not accessible")]
pub struct MemoryFault {
    /// First byte of the access.
    pub addr: u64,
    /// Length of the access in bytes.
    pub len: u64,
}

/// Memory of a host, as a card sees it.
pub trait HostMemory {
    /// Reads bytes.
    ///
    /// # Errors
    /// Returns an error if some of them are unreadable.
    fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault>;

    /// Writes bytes.
    ///
    /// # Errors
    /// Returns an error if some of them are not writable.
    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault>;
}

/// Host memory described by an MD or ME: one range, or the concatenation of the ranges of an iovec. Memory ends at the
/// last address: offsets do not wrap around.
#[derive(Clone, Debug)]
pub struct Region {
    start: u64,
    length: u64,
    /// Shared, because a region has many users.
    segments: Option<Rc<Vec<Iovec>>>,
}

impl Region {
    /// Creates a range, clipped to the address space. `start = 0, length = u64::MAX` is the whole address space.
    pub fn range(start: u64, length: u64) -> Region {
        let addresses = if start == 0 { u64::MAX } else { start.wrapping_neg() };
        Region { start, length: length.min(addresses), segments: None }
    }

    /// Creates a concatenation of ranges.
    pub fn iovec(segments: Vec<Iovec>) -> Region {
        let length = segments.iter().fold(0u64, |sum, segment| sum.saturating_add(segment.len));
        Region { start: segments.first().map_or(0, |first| first.base), length, segments: Some(Rc::new(segments)) }
    }

    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns true if it is the whole address space.
    pub fn is_everything(&self) -> bool {
        self.start == 0 && self.length == u64::MAX
    }

    /// Returns true if it contains any of the `length` bytes at `address`.
    pub fn overlaps(&self, address: u64, length: u64) -> bool {
        let end = |start: u64, bytes: u64| u128::from(start) + u128::from(bytes);
        let within = |start: u64, bytes: u64| {
            u128::from(start) < end(address, length) && u128::from(address) < end(start, bytes)
        };
        match &self.segments {
            None => within(self.start, self.length),
            Some(segments) => segments.iter().any(|segment| within(segment.base, segment.len)),
        }
    }

    /// Returns the address of the byte at `offset`.
    pub fn address(&self, mut offset: u64) -> u64 {
        let Some(segments) = &self.segments else { return self.start.wrapping_add(offset) };
        for segment in &**segments {
            if offset < segment.len {
                return segment.base.wrapping_add(offset);
            }
            offset -= segment.len;
        }
        segments.last().map_or(0, |last| last.base.wrapping_add(last.len).wrapping_add(offset))
    }

    /// Reads `out.len()` bytes of host memory, starting at `offset`.
    ///
    /// # Errors
    /// Returns an error if some of them are outside the region or unreadable.
    pub fn read(&self, memory: &mut impl HostMemory, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        self.pieces(offset, out.len() as u64, |addr, len| {
            let piece = &mut out[done..done + len as usize];
            done += len as usize;
            memory.read(addr, piece)
        })
    }

    /// Writes `bytes` to host memory, starting at `offset`.
    ///
    /// # Errors
    /// Returns an error if some of them are outside the region or not writable.
    pub fn write(&self, memory: &mut impl HostMemory, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        self.pieces(offset, bytes.len() as u64, |addr, len| {
            let piece = &bytes[done..done + len as usize];
            done += len as usize;
            memory.write(addr, piece)
        })
    }

    fn pieces(
        &self,
        mut offset: u64,
        mut len: u64,
        mut each: impl FnMut(u64, u64) -> Result<(), MemoryFault>,
    ) -> Result<(), MemoryFault> {
        if len == 0 {
            return Ok(());
        }
        if offset.checked_add(len).is_none_or(|end| end > self.length) {
            return Err(MemoryFault { addr: self.address(offset), len });
        }
        let Some(segments) = &self.segments else { return each(self.start + offset, len) };
        for segment in &**segments {
            if offset >= segment.len {
                offset -= segment.len;
                continue;
            }
            let piece = len.min(segment.len - offset);
            let addr = segment.base.wrapping_add(offset);
            let last = segment.base.checked_add(offset).and_then(|first| first.checked_add(piece - 1));
            last.ok_or(MemoryFault { addr, len: piece })?;
            each(addr, piece)?;
            len -= piece;
            offset = 0;
            if len == 0 {
                return Ok(());
            }
        }
        Err(MemoryFault { addr: self.address(self.length), len })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Records addresses and values of writes.
    #[derive(Default)]
    struct Writes(Vec<(u128, u8)>);

    impl HostMemory for Writes {
        fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
            self.0.extend((u128::from(addr)..).zip(bytes.iter().copied()));
            Ok(())
        }

        fn read(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
            out.iter_mut().zip(0..).for_each(|(byte, at)| *byte = addr.wrapping_add(at) as u8);
            Ok(())
        }
    }

    const END: u128 = 1 << 64;

    /// Generates numbers near both ends of the 64-bit range, and small ones.
    fn edge() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..40, (0u64..40).prop_map(|below| u64::MAX - below), (0u64..40).prop_map(|off| (1 << 63) + off)]
    }

    /// Returns the address of the byte at `offset`, if it exists, in plain arithmetic.
    fn plain(segments: &[Iovec], mut offset: u128) -> Option<u128> {
        for segment in segments {
            if offset < u128::from(segment.len) {
                return Some(u128::from(segment.base) + offset).filter(|address| *address < END);
            }
            offset -= u128::from(segment.len);
        }
        None
    }

    proptest! {
        #[test]
        fn no_access_leaves_the_memory(
            segments in prop::collection::vec((edge(), edge()), 1..4),
            iovec in any::<bool>(),
            offset in edge(),
            length in 0usize..50,
        ) {
            let segments: Vec<Iovec> = segments.into_iter().map(|(base, len)| Iovec { base, len }).collect();
            let segments = if iovec { segments } else { segments[..1].to_vec() };
            let region = match iovec {
                true => Region::iovec(segments.clone()),
                false => Region::range(segments[0].base, segments[0].len),
            };
            let data: Vec<u8> = (0..length).map(|byte| byte as u8).collect();
            // Offsets have 64 bits, so later bytes are out of reach.
            let places: Option<Vec<u128>> = (0..length as u128)
                .map(|byte| u128::from(offset) + byte)
                .map(|at| if at < END - 1 { plain(&segments, at) } else { None })
                .collect();
            let mut writes = Writes::default();
            let written = region.write(&mut writes, offset, &data);
            prop_assert_eq!(written.is_ok(), places.is_some());
            let expected: Vec<(u128, u8)> = (u128::from(offset)..)
                .map_while(|at| plain(&segments, at))
                .zip(data.iter().copied())
                .take(writes.0.len())
                .collect();
            prop_assert_eq!(&writes.0, &expected);
            let mut out = vec![0; length];
            prop_assert_eq!(region.read(&mut writes, offset, &mut out).is_ok(), places.is_some());
            if let Some(places) = places {
                prop_assert_eq!(writes.0.len(), length);
                prop_assert_eq!(out, places.iter().map(|address| *address as u8).collect::<Vec<_>>());
                for address in places {
                    prop_assert!(region.overlaps(address as u64, 1));
                }
            }
            let total: u128 = segments.iter().map(|segment| u128::from(segment.len)).sum();
            let room = END - u128::from(segments[0].base);
            let total = if iovec { total } else { total.min(room) };
            prop_assert_eq!(u128::from(region.length()), total.min(END - 1));
        }
    }
}
