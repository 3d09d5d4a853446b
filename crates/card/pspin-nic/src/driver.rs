// SPDX-License-Identifier: Apache-2.0
//! Driver of the NIC (§III-E): divides the memories of the unit among execution contexts. Contexts share no memory, so
//! tenants are isolated from each other.

use machine::Pspin;
use pspin_unit::her::{Convention, ExecutionContext, HostRange, Range, Share};
use pspin_unit::memory::{Arena, Place};
use thiserror::Error;

/// A tenant's request for an execution context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// Tenant number.
    pub tenant: u32,
    /// Address and size of the header, payload and completion handler; address 0 means no handler.
    pub handlers: [Range; 3],
    /// Code ranges that its handlers may execute.
    pub code: Vec<Range>,
    /// Bytes of L2 handler memory.
    pub handler_memory: u32,
    /// Bytes of L1 in each cluster.
    pub scratchpad: u32,
    /// Bytes of host memory, not counting the descriptor.
    pub host: u64,
    /// Watchdog threshold in cycles; `None` uses that of the machine.
    pub watchdog_cycles: Option<u64>,
    /// Idle-message threshold in cycles; `None` uses that of the machine.
    pub idle_cycles: Option<u64>,
    /// Cluster that runs all of its handlers under `accelerator.dispatch.policy = "pinned"`.
    pub pin: Option<u16>,
    /// Entitlement of the tenant.
    pub share: Share,
}

/// Error of a request that the driver refuses.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DriverError {
    /// A memory is exhausted.
    #[error("tenant {tenant} wants {wanted} bytes of {memory}, of which {left} are left")]
    NoRoom {
        /// Tenant number.
        tenant: u32,
        /// Requested bytes.
        wanted: u64,
        /// Name of the memory.
        memory: &'static str,
        /// Free bytes.
        left: u64,
    },
    /// All contexts of the unit are taken.
    #[error("tenant {tenant} wants a context, and the unit holds {contexts}")]
    NoContext {
        /// Tenant number.
        tenant: u32,
        /// Contexts that the unit holds.
        contexts: u32,
    },
    /// The request pins its context to a cluster that does not exist.
    #[error("tenant {tenant} wants to be pinned to cluster {cluster}; the unit has {clusters}, from 0")]
    NoCluster {
        /// Tenant number.
        tenant: u32,
        /// Requested cluster.
        cluster: u16,
        /// Number of clusters.
        clusters: u32,
    },
}

/// Bump allocator: hands out memory in ascending order and never frees it.
#[derive(Clone, Debug)]
struct Pool {
    name: &'static str,
    next: u64,
    end: u64,
}

impl Pool {
    /// Returns the address of a new piece, a multiple of 64.
    fn take(&mut self, tenant: u32, wanted: u64) -> Result<u64, DriverError> {
        let start = self.next.next_multiple_of(64).min(self.end);
        if wanted > self.end - start {
            return Err(DriverError::NoRoom { tenant, wanted, memory: self.name, left: self.end - start });
        }
        self.next = start + wanted;
        Ok(start)
    }
}

/// Driver of one unit.
#[derive(Clone, Debug)]
pub struct Driver {
    clusters: u16,
    /// Capacity of the unit in contexts, and contexts in use.
    contexts: u32,
    used: u32,
    watchdog_cycles: u64,
    idle_cycles: u64,
    handler_memory: Pool,
    /// Offsets in the L1 of every cluster.
    scratchpads: Pool,
    host: Pool,
}

/// PCIe address of the first host memory of contexts, as in the published interface.
const HOST_START: u64 = 1 << 60;
/// Host memory shared out among all contexts, in bytes.
const HOST_BYTES: u64 = 1 << 40;
/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u64 = 64;

impl Driver {
    /// Creates the driver of a unit whose loaded program has `static_data` bytes.
    pub fn new(unit: &Pspin, static_data: u32) -> Driver {
        let handler = u64::from(Arena::start(Place::Handler));
        let first = u64::from(unit.l1.bytes - unit.scratchpad());
        let pool = |name, start: u64, next: u64, bytes: u64| Pool { name, next: start + next, end: start + bytes };
        Driver {
            clusters: unit.units.clusters as u16,
            contexts: unit.limits.contexts,
            used: 0,
            watchdog_cycles: unit.units.watchdog_cycles,
            idle_cycles: unit.mpq.idle_cycles,
            handler_memory: pool("L2 handler memory", handler, static_data.into(), unit.l2_handler.bytes.into()),
            scratchpads: pool("L1 of each cluster", 0, first, unit.l1.bytes.into()),
            host: pool("host memory", HOST_START, 0, HOST_BYTES),
        }
    }

    /// Creates an execution context with its own memories. Its descriptor precedes its host memory.
    ///
    /// # Errors
    /// [`DriverError`] when a memory is exhausted; nothing is allocated then.
    pub fn context(&mut self, request: &Request) -> Result<ExecutionContext, DriverError> {
        let tenant = request.tenant;
        if let Some(cluster) = request.pin.filter(|cluster| *cluster >= self.clusters) {
            return Err(DriverError::NoCluster { tenant, cluster, clusters: self.clusters.into() });
        }
        if self.used == self.contexts {
            return Err(DriverError::NoContext { tenant, contexts: self.contexts });
        }
        let mut after = self.clone();
        after.used += 1;
        let handler_memory = after.handler_memory.take(tenant, request.handler_memory.into())? as u32;
        let offset = after.scratchpads.take(tenant, request.scratchpad.into())? as u32;
        let descriptor = after.host.take(tenant, DESCRIPTOR_BYTES.saturating_add(request.host))?;
        *self = after;
        let scratchpad =
            |cluster| Range { address: Arena::start(Place::L1(cluster)) + offset, size: request.scratchpad };
        Ok(ExecutionContext {
            handler_memory: Range { address: handler_memory, size: request.handler_memory },
            host: HostRange { address: descriptor + DESCRIPTOR_BYTES, size: request.host },
            handlers: request.handlers,
            scratchpads: (0..self.clusters).map(scratchpad).collect(),
            code: request.code.clone(),
            watchdog_cycles: request.watchdog_cycles.unwrap_or(self.watchdog_cycles),
            idle_cycles: request.idle_cycles.unwrap_or(self.idle_cycles),
            descriptor,
            tenant,
            share: request.share,
            convention: Convention::Pspin,
            pin: request.pin,
        })
    }
}
