// SPDX-License-Identifier: Apache-2.0
//! Host memory as the card accesses it: the IOMMU admits only ranges that the driver registered (§III-E).

use rustc_hash::FxHashMap;

use pspin_unit::{By, Cycle, HostFault};

/// Host side of the card's accesses.
pub trait Host {
    /// Writes data of the card, in cycle `at`: a handler's data on behalf of its context, or a report of the unit
    /// itself.
    ///
    /// # Errors
    /// [`HostFault`] when the IOMMU denies the context access to an address; nothing is written then.
    fn card_writes(&mut self, at: Cycle, by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault>;

    /// Reads, in cycle `at`, for a handler of a context.
    ///
    /// # Errors
    /// [`HostFault`] when the IOMMU denies the context access to an address.
    fn card_reads(&mut self, at: Cycle, by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault>;
}

const PAGE: usize = 4_096;

/// Sparse host memory: stores only written pages; the rest reads as zero.
#[derive(Clone, Debug, Default)]
pub struct HostMemory {
    pages: FxHashMap<u64, Box<[u8; PAGE]>>,
    /// Registered ranges of each tenant.
    domains: FxHashMap<u32, Domain>,
}

/// First and last address of each registered range, sorted. They neither overlap nor touch.
#[derive(Clone, Debug, Default)]
struct Domain(Vec<(u64, u64)>);

impl Domain {
    fn register(&mut self, mut first: u64, mut last: u64) {
        self.0.retain(|range| {
            let touches = range.0 <= last.saturating_add(1) && first <= range.1.saturating_add(1);
            if touches {
                (first, last) = (first.min(range.0), last.max(range.1));
            }
            !touches
        });
        let place = self.0.partition_point(|range| range.0 < first);
        self.0.insert(place, (first, last));
    }

    fn has(&self, first: u64, last: u64) -> bool {
        let place = self.0.partition_point(|range| range.0 <= first);
        place.checked_sub(1).is_some_and(|place| last <= self.0[place].1)
    }
}

impl HostMemory {
    /// Registers a range of a tenant with the IOMMU, for the tenant's handlers and the unit itself. An empty range
    /// registers nothing; a range beyond the last address is cut there.
    pub fn register(&mut self, tenant: u32, address: u64, size: u64) {
        if size > 0 {
            self.domains.entry(tenant).or_default().register(address, address.saturating_add(size - 1));
        }
    }

    fn check(&self, by: By<'_>, address: u64, size: usize) -> Result<(), HostFault> {
        let Some(more) = (size as u64).checked_sub(1) else { return Ok(()) };
        let last = address.checked_add(more).ok_or(HostFault)?;
        let has = |domain: &Domain| domain.has(address, last);
        let may = match by {
            Some(context) => self.domains.get(&context.tenant).is_some_and(has),
            None => self.domains.values().any(has),
        };
        if may { Ok(()) } else { Err(HostFault) }
    }

    /// Writes as the host's own program, past the IOMMU.
    pub fn poke(&mut self, address: u64, data: &[u8]) {
        for (page, offset, part) in parts(address, data.len()) {
            let bytes = self.pages.entry(page).or_insert_with(|| Box::new([0; PAGE]));
            bytes[offset..offset + part.len()].copy_from_slice(&data[part]);
        }
    }

    /// Reads as the host's own program, past the IOMMU.
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
    fn card_writes(&mut self, _at: Cycle, by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault> {
        self.check(by, address, data.len())?;
        self.poke(address, data);
        Ok(())
    }

    fn card_reads(&mut self, _at: Cycle, by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        self.check(by, address, data.len())?;
        self.peek(address, data);
        Ok(())
    }
}

/// Splits a range at page boundaries: page number, offset in the page, and part of the range. Addresses wrap.
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
