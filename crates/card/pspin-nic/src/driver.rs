//! The driver of the NIC (§III-E): it divides the memories of the unit among execution contexts. No two contexts share memory, so
//! no tenant reaches that of another.

use machine::Pspin;
use pspin_unit::her::{Convention, ExecutionContext, HostRange, Range};
use pspin_unit::memory::{Arena, Place};
use thiserror::Error;

/// What a tenant wants.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The tenant.
    pub tenant: u32,
    /// First instruction and size of the header, payload and completion handler; address 0 means that there is none.
    pub handlers: [Range; 3],
    /// The code that its handlers may run.
    pub code: Vec<Range>,
    /// Bytes of L2 handler memory.
    pub handler_memory: u32,
    /// Bytes of the L1 of each cluster.
    pub scratchpad: u32,
    /// Bytes of host memory, besides the descriptor.
    pub host: u64,
    /// The threshold of the watchdog in cycles; without, that of the machine.
    pub watchdog_cycles: Option<u64>,
    /// The threshold of idle messages in cycles; without, that of the machine.
    pub idle_cycles: Option<u64>,
    /// The cluster on which all of its handlers run, with `accelerator.dispatch.policy = "pinned"`.
    pub pin: Option<u16>,
}

/// The error of a request that the driver refuses.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DriverError {
    /// A memory has no room left.
    #[error("tenant {tenant} wants {wanted} bytes of {memory}, of which {left} are left")]
    NoRoom {
        /// The tenant.
        tenant: u32,
        /// What it wants.
        wanted: u64,
        /// Where.
        memory: &'static str,
        /// What is left.
        left: u64,
    },
    /// The unit holds no more contexts.
    #[error("tenant {tenant} wants a context, and the unit holds {contexts}")]
    NoContext {
        /// The tenant.
        tenant: u32,
        /// How many the unit holds.
        contexts: u32,
    },
    /// A context is to be pinned to a cluster that does not exist.
    #[error("tenant {tenant} wants to be pinned to cluster {cluster}; the unit has {clusters}, from 0")]
    NoCluster {
        /// The tenant.
        tenant: u32,
        /// The cluster.
        cluster: u16,
        /// How many there are.
        clusters: u32,
    },
}

/// Memory that is given away in one piece after the other.
#[derive(Clone, Debug)]
struct Pool {
    name: &'static str,
    next: u64,
    end: u64,
}

impl Pool {
    /// A piece whose address is a multiple of 64.
    fn take(&mut self, tenant: u32, wanted: u64) -> Result<u64, DriverError> {
        let start = self.next.next_multiple_of(64).min(self.end);
        if wanted > self.end - start {
            return Err(DriverError::NoRoom { tenant, wanted, memory: self.name, left: self.end - start });
        }
        self.next = start + wanted;
        Ok(start)
    }
}

/// The driver.
#[derive(Clone, Debug)]
pub struct Driver {
    clusters: u16,
    /// How many contexts the unit holds, and how many there are.
    contexts: u32,
    used: u32,
    watchdog_cycles: u64,
    idle_cycles: u64,
    handler_memory: Pool,
    /// Offsets in the L1 of every cluster.
    scratchpads: Pool,
    host: Pool,
}

/// Where the host memory of contexts begins: PCIe addresses of the published interface.
const HOST_START: u64 = 1 << 60;
/// Host memory that contexts can have together.
const HOST_BYTES: u64 = 1 << 40;
/// Bytes of a descriptor.
const DESCRIPTOR_BYTES: u64 = 64;

impl Driver {
    /// A driver of a unit on which a program with this much static data is loaded.
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

    /// Makes an execution context with memories of its own. The descriptor lies in front of its host memory.
    ///
    /// # Errors
    /// [`DriverError`] when a memory has no room; nothing is allocated then.
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
            convention: Convention::Pspin,
            pin: request.pin,
        })
    }
}
