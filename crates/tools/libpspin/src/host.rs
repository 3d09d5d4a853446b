// SPDX-License-Identifier: Apache-2.0
//! Host memory as accessed by the card: writes are stored, and reported to the driver.

use pspin_nic::host::{Host, HostMemory};
use pspin_unit::{By, Cycle, HostFault};
use sim::Clock;

use crate::callbacks;
use crate::diagnostics::warn;
use crate::statistics::Traffic;

/// Host of a driver.
pub struct DriverHost {
    clock: Clock,
    memory: HostMemory,
    /// Set to restrict the card to host memory of execution contexts.
    is_strict: bool,
    has_warned: bool,
    pub writes: Traffic,
    pub reads: Traffic,
}

impl DriverHost {
    /// Creates a host without registered memory.
    pub fn new(clock: Clock, is_strict: bool) -> DriverHost {
        let (writes, reads) = (Traffic::default(), Traffic::default());
        DriverHost { clock, memory: HostMemory::default(), is_strict, has_warned: false, writes, reads }
    }

    /// Registers host memory of a tenant's execution context.
    pub fn register(&mut self, tenant: u32, address: u64, size: u64) {
        self.memory.register(tenant, address, size);
    }

    /// Handles an access beyond the host memory of its context. Published programs do that.
    fn beyond(&mut self, address: u64, size: usize) -> Result<(), HostFault> {
        if self.is_strict {
            return Err(HostFault);
        }
        if !self.has_warned {
            self.has_warned = true;
            warn(&format!(
                "a handler reaches {size} B at host address {address:#x}, which are not in the host memory of its \
                 execution context; SPINKIT_PSPIN_IOMMU=on makes this a failure"
            ));
        }
        Ok(())
    }

    fn count(&mut self, at: Cycle, address: u64, size: usize, is_write: bool) {
        callbacks::set_now_ps(self.clock.time(at.0).as_ps());
        let beats = callbacks::beats(address, size).count() as u64;
        let traffic = if is_write { &mut self.writes } else { &mut self.reads };
        traffic.add(at, beats, size as u64);
    }
}

impl Host for DriverHost {
    fn card_writes(&mut self, at: Cycle, by: By<'_>, address: u64, data: &[u8]) -> Result<(), HostFault> {
        if self.memory.card_writes(at, by, address, data).is_err() {
            self.beyond(address, data.len())?;
            self.memory.poke(address, data);
        }
        self.count(at, address, data.len(), true);
        callbacks::host_write(address, data);
        Ok(())
    }

    fn card_reads(&mut self, at: Cycle, by: By<'_>, address: u64, data: &mut [u8]) -> Result<(), HostFault> {
        if self.memory.card_reads(at, by, address, data).is_err() {
            self.beyond(address, data.len())?;
            self.memory.peek(address, data);
        }
        self.count(at, address, data.len(), false);
        callbacks::host_read(address, data);
        Ok(())
    }
}
