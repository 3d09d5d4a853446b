use abi::portals::Iovec;

use crate::ports::{MemoryFault, Ports};

/// Host memory described by an MD or ME: one range, or the concatenation of the ranges of an iovec.
#[derive(Clone, Debug)]
pub struct Region {
    start: u64,
    length: u64,
    segments: Option<Box<[Iovec]>>,
}

impl Region {
    /// A range. `start = 0, length = u64::MAX` is the whole address space.
    pub fn range(start: u64, length: u64) -> Region {
        Region { start, length, segments: None }
    }

    /// The concatenation of ranges.
    pub fn iovec(segments: Vec<Iovec>) -> Region {
        let length = segments.iter().fold(0u64, |sum, segment| sum.saturating_add(segment.len));
        Region { start: segments.first().map_or(0, |first| first.base), length, segments: Some(segments.into()) }
    }

    /// Bytes described.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Whether it is the whole address space.
    pub fn is_everything(&self) -> bool {
        self.start == 0 && self.length == u64::MAX
    }

    /// Whether a byte of `length` bytes at `address` is in it.
    pub fn overlaps(&self, address: u64, length: u64) -> bool {
        let within =
            |start: u64, bytes: u64| start < address.saturating_add(length) && address < start.saturating_add(bytes);
        match &self.segments {
            None => within(self.start, self.length),
            Some(segments) => segments.iter().any(|segment| within(segment.base, segment.len)),
        }
    }

    /// The address of the byte at `offset`.
    pub fn address(&self, mut offset: u64) -> u64 {
        let Some(segments) = &self.segments else { return self.start.wrapping_add(offset) };
        for segment in segments {
            if offset < segment.len {
                return segment.base.wrapping_add(offset);
            }
            offset -= segment.len;
        }
        segments.last().map_or(0, |last| last.base.wrapping_add(last.len).wrapping_add(offset))
    }

    /// Copies `out.len()` bytes from `offset` on out of host memory.
    pub fn read(&self, ports: &mut impl Ports, offset: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        self.pieces(offset, out.len() as u64, |addr, len| {
            let piece = &mut out[done..done + len as usize];
            done += len as usize;
            ports.read_host(addr, piece)
        })
    }

    /// Copies `bytes` to host memory from `offset` on.
    pub fn write(&self, ports: &mut impl Ports, offset: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        let mut done = 0;
        self.pieces(offset, bytes.len() as u64, |addr, len| {
            let piece = &bytes[done..done + len as usize];
            done += len as usize;
            ports.write_host(addr, piece)
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
        let Some(segments) = &self.segments else { return each(self.start.wrapping_add(offset), len) };
        for segment in segments {
            if offset >= segment.len {
                offset -= segment.len;
                continue;
            }
            let piece = len.min(segment.len - offset);
            each(segment.base.wrapping_add(offset), piece)?;
            len -= piece;
            offset = 0;
            if len == 0 {
                return Ok(());
            }
        }
        Err(MemoryFault { addr: self.address(self.length), len })
    }
}
