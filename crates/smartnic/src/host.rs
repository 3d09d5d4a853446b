//! Host memory, as the card sees it: the IOMMU lets it reach what the driver has registered, and nothing else (§III-E).

use rustc_hash::FxHashMap;

use accel::pspin::{Cycle, HostFault};

/// The host, as the card reaches it.
pub trait Host {
    /// Data of the card arrives in this cycle.
    ///
    /// # Errors
    /// [`HostFault`] when the IOMMU does not know an address; nothing is written then.
    fn card_writes(&mut self, at: Cycle, address: u64, data: &[u8]) -> Result<(), HostFault>;

    /// The card reads in this cycle.
    ///
    /// # Errors
    /// [`HostFault`] when the IOMMU does not know an address.
    fn card_reads(&mut self, at: Cycle, address: u64, data: &mut [u8]) -> Result<(), HostFault>;
}

const PAGE: usize = 4_096;

/// Memory of the host of which only what is written exists; the rest is zero.
#[derive(Clone, Debug, Default)]
pub struct HostMemory {
    pages: FxHashMap<u64, Box<[u8; PAGE]>>,
    /// First and last address of each registered range, sorted. They neither overlap nor touch.
    registered: Vec<(u64, u64)>,
}

impl HostMemory {
    /// Registers a range with the IOMMU. An empty one registers nothing; one that reaches beyond the last address ends there.
    pub fn register(&mut self, address: u64, size: u64) {
        if size == 0 {
            return;
        }
        let (mut first, mut last) = (address, address.saturating_add(size - 1));
        self.registered.retain(|range| {
            let touches = range.0 <= last.saturating_add(1) && first <= range.1.saturating_add(1);
            if touches {
                (first, last) = (first.min(range.0), last.max(range.1));
            }
            !touches
        });
        let place = self.registered.partition_point(|range| range.0 < first);
        self.registered.insert(place, (first, last));
    }

    fn check(&self, address: u64, size: usize) -> Result<(), HostFault> {
        let Some(more) = (size as u64).checked_sub(1) else { return Ok(()) };
        let last = address.checked_add(more).ok_or(HostFault)?;
        let place = self.registered.partition_point(|range| range.0 <= address);
        match place.checked_sub(1).map(|place| self.registered[place]) {
            Some((_, end)) if last <= end => Ok(()),
            _ => Err(HostFault),
        }
    }

    /// The card writes.
    ///
    /// # Errors
    /// [`HostFault`] when a byte is not registered; nothing is written then.
    pub fn write(&mut self, address: u64, data: &[u8]) -> Result<(), HostFault> {
        self.check(address, data.len())?;
        self.poke(address, data);
        Ok(())
    }

    /// The card reads.
    ///
    /// # Errors
    /// [`HostFault`] when a byte is not registered.
    pub fn read(&self, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        self.check(address, data.len())?;
        self.peek(address, data);
        Ok(())
    }

    /// The host's own program writes, which the IOMMU does not see.
    pub fn poke(&mut self, address: u64, data: &[u8]) {
        for (page, offset, part) in parts(address, data.len()) {
            let bytes = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE]));
            bytes[offset..offset + part.len()].copy_from_slice(&data[part]);
        }
    }

    /// The host's own program reads, which the IOMMU does not see.
    pub fn peek(&self, address: u64, data: &mut [u8]) {
        for (page, offset, part) in parts(address, data.len()) {
            let length = part.len();
            match self.pages.get(&page) {
                Some(bytes) => data[part].copy_from_slice(&bytes[offset..offset + length]),
                None => data[part].fill(0),
            }
        }
    }
}

impl Host for HostMemory {
    fn card_writes(&mut self, _at: Cycle, address: u64, data: &[u8]) -> Result<(), HostFault> {
        self.write(address, data)
    }

    fn card_reads(&mut self, _at: Cycle, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        self.read(address, data)
    }
}

/// Cuts a range at the ends of pages: the number of each page, the offset in it, and the part of the range. Addresses wrap.
fn parts(address: u64, size: usize) -> impl Iterator<Item = (u64, usize, std::ops::Range<usize>)> {
    let mut done = 0;
    std::iter::from_fn(move || {
        let at = address.wrapping_add(done as u64);
        let offset = (at % PAGE as u64) as usize;
        let part = done..size.min(done + PAGE - offset);
        done = part.end;
        (!part.is_empty()).then_some((at / PAGE as u64, offset, part))
    })
}
