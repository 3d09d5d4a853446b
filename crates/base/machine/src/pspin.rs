// SPDX-License-Identifier: Apache-2.0
//! Parameters of the PsPIN unit: one structure for each table below `[accelerator]`.
//!
//! "§" is a section of the PsPIN paper. All cycles are cycles of `hpu.clock_ghz`, which clocks the whole unit.

use abi::pspin::map;
use sim::TimePerByte;

use crate::sharing::Sharing;

/// The PsPIN unit (§III): clusters of HPUs, the packet scheduler that feeds them, and the memories and interconnects
/// between them.
#[derive(Clone, Debug, PartialEq)]
pub struct Pspin {
    /// `[accelerator]`
    pub units: Units,
    /// `[accelerator.mpq]`
    pub mpq: Mpq,
    /// `[accelerator.dispatch]`
    pub dispatch: Dispatch,
    /// `[accelerator.cluster]`
    pub cluster: HpuCluster,
    /// `[accelerator.l1]`
    pub l1: L1,
    /// `[accelerator.l2_packet]`
    pub l2_packet: L2Packet,
    /// `[accelerator.l2_handler]`
    pub l2_handler: L2Handler,
    /// `[accelerator.program]`
    pub program: ProgramMemory,
    /// `[accelerator.icache]`
    pub icache: Icache,
    /// `[accelerator.dma]`
    pub dma: ClusterDma,
    /// `[accelerator.pe]`
    pub pe: Pe,
    /// `[accelerator.nhi]`
    pub nhi: Nhi,
    /// `[accelerator.commands]`
    pub commands: Commands,
    /// `[accelerator.inbound]`
    pub inbound: Inbound,
    /// `[accelerator.outbound]`
    pub outbound: Outbound,
    /// `[accelerator.off_cluster]`
    pub off_cluster: OffCluster,
    /// `[accelerator.host]`
    pub host: HostPort,
    /// `[accelerator.limits]`
    pub limits: Limits,
    /// `[accelerator.sharing]`
    pub sharing: Sharing,
}

/// `[accelerator]`: number of units, and common parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Units {
    /// `clusters`: number of clusters.
    pub clusters: u32,
    /// `hpus_per_cluster`: number of HPUs of a cluster.
    pub hpus: u32,
    /// `stack_bytes`: stack of each HPU.
    pub stack: u32,
    /// `overload`: handling of a packet that does not fit into the packet buffer or the message queues.
    pub overload: Overload,
    /// `default_watchdog_cycles`: cycles after which a handler is killed, unless its execution context overrides them
    /// (§III-B3).
    pub watchdog_cycles: u64,
    /// `max_initial_state_bytes`: maximum size of an entry's initial state (sPIN App. B.2.1).
    pub max_initial_state: u32,
    /// `max_user_hdr_bytes`: maximum size of a user header (sPIN App. B.2.1).
    pub max_user_hdr: u32,
}

/// Handling of a packet without buffer space in the inbound engine (§III-A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overload {
    /// "block": the sender waits (back-pressure).
    Block,
    /// "drop": the packet is dropped and counted.
    Drop,
    /// "ecn": the sender waits, and the packet is marked and counted.
    Ecn,
}

/// `[accelerator.mpq]`: the engine of the message processing queues (§III-B1).
#[derive(Clone, Debug, PartialEq)]
pub struct Mpq {
    /// `queues`: number of queues, and thus of messages in processing.
    pub queues: u32,
    /// `shared_cells`: number of cells that all queues share, in addition to their private cells.
    pub shared_cells: u32,
    /// `cells_per_queue`: number of private cells of a queue.
    pub cells_per_queue: u32,
    /// `select_cycles`: cycles from a packet's request until the dispatcher is offered its task.
    pub select_cycles: u32,
    /// `idle_cycles`: cycles without a packet after which a message times out, unless its execution context overrides
    /// them (§III-B3).
    pub idle_cycles: u64,
    /// `lru`: search for the queue that is idle the longest.
    pub lru: Lru,
}

/// Search for the least recently used message queue (§III-B3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lru {
    /// "tree": a binary tree of bits that point away from the most recently used queues (pseudo-LRU).
    Tree,
    /// "exact": the queue whose last packet is the oldest.
    Exact,
}

/// `[accelerator.dispatch]`: the task dispatcher (§III-B1).
#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    /// `cycles`: latency from the message queues to a cluster's scheduler.
    pub cycles: u32,
    /// `policy`: choice of a task's cluster.
    pub policy: DispatchPolicy,
}

/// Choice of a task's cluster by the dispatcher.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DispatchPolicy {
    /// "home": the message's home cluster (message number modulo clusters); if it is full, the least loaded one.
    Home,
    /// "least-loaded": the least loaded cluster.
    LeastLoaded,
    /// "pinned": only the cluster that the execution context names; by default the home cluster.
    Pinned,
}

/// `[accelerator.cluster]`: a processing cluster, its scheduler and its HPU drivers (§III-B2).
#[derive(Clone, Debug, PartialEq)]
pub struct HpuCluster {
    /// `tasks`: maximum number of tasks in a cluster, waiting or running.
    pub tasks: u32,
    /// `packet_buffer_bytes`: the part of L1 that holds packets.
    pub packet_buffer: u32,
    /// `runtime_bytes`: the part of L1 that holds stacks and data of the runtime; the rest is scratchpads.
    pub runtime: u32,
    /// `slot_bytes`: allocation unit of the packet buffer.
    pub slot: u32,
    /// `assign_cycles`: cycles from the arrival of a packet in L1 to the driver of an idle HPU.
    pub assign_cycles: u32,
    /// `driver_cycles`: cycles until the load with which the HPU waits for a task returns.
    pub driver_cycles: u32,
    /// `feedback_cycles`: cycles from the doorbell of an HPU to the NIC.
    pub feedback_cycles: u32,
    /// `trap_cycles`: cycles from a fault or a watchdog kill until the HPU can take its next task; at least 16, the
    /// reset time of a core.
    pub trap_cycles: u32,
    /// `commands_in_flight`: maximum number of outstanding commands of one HPU.
    pub commands_in_flight: u32,
    /// `buffered_completions`: maximum number of finished but unreported tasks of an HPU while the next one runs.
    pub buffered_completions: u32,
}

/// `[accelerator.l1]`: the tightly coupled memory of a cluster (§III-B2).
#[derive(Clone, Debug, PartialEq)]
pub struct L1 {
    /// `bytes`: size.
    pub bytes: u32,
    /// `banks`: number of word-interleaved banks.
    pub banks: u32,
    /// `bank_bits`: width of a bank.
    pub bank_bits: u32,
    /// `load_cycles`: latency of a load without contention.
    pub load_cycles: u32,
    /// `dma_wins`: true if a DMA access has priority over the HPUs in a bank conflict; otherwise they alternate.
    pub dma_wins: bool,
    /// `atomic_bank_cycles`: cycles for which an atomic operation occupies its bank.
    pub atomic_bank_cycles: u32,
}

/// `[accelerator.l2_packet]`: the L2 packet buffer (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct L2Packet {
    /// `bytes`: size.
    pub bytes: u32,
    /// `banks`: number of word-interleaved banks.
    pub banks: u32,
    /// `bank_bits`: width of a bank.
    pub bank_bits: u32,
    /// `ports`: 2 if the NIC and the clusters have separate ports, 1 if they share one.
    pub ports: u32,
}

/// `[accelerator.l2_handler]`: the L2 handler memory (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct L2Handler {
    /// `bytes`: size.
    pub bytes: u32,
    /// `banks`: number of word-interleaved banks.
    pub banks: u32,
    /// `bank_bits`: width of a bank.
    pub bank_bits: u32,
    /// `ports`: 2 if the NIC and the clusters have separate ports, 1 if they share one.
    pub ports: u32,
}

/// `[accelerator.program]`: the program memory (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramMemory {
    /// `bytes`: size.
    pub bytes: u32,
    /// `port_bits`: width of the only port.
    pub port_bits: u32,
}

/// `[accelerator.icache]`: the instruction cache that the HPUs of a cluster share (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct Icache {
    /// `bytes`: size.
    pub bytes: u32,
    /// `ways`: associativity.
    pub ways: u32,
    /// `ports`: number of HPUs that can fetch a line in one cycle.
    pub ports: u32,
    /// `line_bytes`: size of a line.
    pub line: u32,
    /// `miss_cycles`: latency of a miss when the program memory is idle.
    pub miss_cycles: u32,
}

/// `[accelerator.dma]`: the DMA engine of a cluster and the DMA interconnect (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct ClusterDma {
    /// `width_bits`: width of both, in bits; a beat is one word of this width.
    pub width_bits: u32,
    /// `latency_cycles`: cycles of a transfer in addition to one for each beat.
    pub latency_cycles: u32,
    /// `least_beats`: minimum number of beats in the latency of a transfer.
    pub least_beats: u32,
    /// `queue`: maximum number of transfers that wait in the engine.
    pub queue: u32,
}

/// `[accelerator.pe]`: the interconnect from HPUs to remote L1 and L2 memories (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct Pe {
    /// `width_bits`: width of a cluster's port.
    pub width_bits: u32,
    /// `remote_l1_cycles`: cycles of a load or store in the L1 of another cluster.
    pub remote_l1_cycles: u32,
    /// `l2_cycles`: cycles of a load or store in an L2 memory.
    pub l2_cycles: u32,
    /// `in_flight`: maximum number of outstanding accesses of a cluster.
    pub in_flight: u32,
}

/// `[accelerator.nhi]`: the NIC–host interconnect (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct Nhi {
    /// `width_bits`: width in each direction.
    pub width_bits: u32,
}

/// `[accelerator.commands]`: the commands of handlers (§III-B1).
#[derive(Clone, Debug, PartialEq)]
pub struct Commands {
    /// `path_cycles`: cycles from the HPU to the engine that executes the command.
    pub path_cycles: u32,
    /// `read_cycles`: cycles until the first beat of the data is read.
    pub read_cycles: u32,
    /// `response_cycles`: cycles of the response back to the HPU.
    pub response_cycles: u32,
    /// `in_flight_per_target`: maximum number of commands that wait in each of the three engines.
    pub in_flight_per_target: u32,
    /// `issue_cycles`: cycles for which an HPU issues a command of sPIN's own interface, which executes no instructions
    /// for it.
    pub issue_cycles: u32,
    /// `host_direct_bytes`: maximum immediate data of a host-direct command.
    pub host_direct_bytes: u32,
}

/// `[accelerator.inbound]`: the NIC's inbound engine (§III-A).
#[derive(Clone, Debug, PartialEq)]
pub struct Inbound {
    /// `write_cycles`: cycles from the first byte of a packet to its request, in addition to one for each beat.
    pub write_cycles: u32,
    /// `G_ps_per_byte`: inverse rate; 0 for no limit.
    pub gap_per_byte: TimePerByte,
    /// `reorder_packets`: maximum number of packets that wait for the header packet of their message (§III-D2).
    pub reorder_packets: u32,
    /// `message_ids`: number of distinct message numbers in requests.
    pub message_ids: u32,
}

/// `[accelerator.outbound]`: the NIC's outbound engine (§III-A).
#[derive(Clone, Debug, PartialEq)]
pub struct Outbound {
    /// `G_ps_per_byte`: inverse rate; 0 for no limit.
    pub gap_per_byte: TimePerByte,
    /// `queue`: maximum number of waiting commands.
    pub queue: u32,
    /// `l1_gap_cycles`: cycles between a packet read from L1 and a packet read from another memory.
    pub l1_gap_cycles: u32,
    /// `l2_gap_cycles`: cycles between a packet read from L2 and a packet read from another memory.
    pub l2_gap_cycles: u32,
}

/// `[accelerator.off_cluster]`: the off-cluster DMA engine (§III-C).
#[derive(Clone, Debug, PartialEq)]
pub struct OffCluster {
    /// `start_cycles`: start-up delay of a copy to the host.
    pub start_cycles: u32,
    /// `l1_gap_cycles`: cycles between a copy from L1 to the host and the next one.
    pub l1_gap_cycles: u32,
    /// `l2_gap_cycles`: cycles between a copy from L2 to the host and the next one.
    pub l2_gap_cycles: u32,
    /// `write_credit_cycles`: cycles from the end of a copy to the host until its credit returns.
    pub write_credit_cycles: u32,
    /// `read_credit_cycles`: cycles from the end of a copy from the host until its credit returns.
    pub read_credit_cycles: u32,
}

/// `[accelerator.host]`: the path to host memory (§IV).
#[derive(Clone, Debug, PartialEq)]
pub struct HostPort {
    /// `write_cycles`: cycles until a write is accepted.
    pub write_cycles: u32,
    /// `read_cycles`: cycles until the first beat of a read arrives.
    pub read_cycles: u32,
    /// `G_ps_per_byte`: inverse rate; 0 for no limit.
    pub gap_per_byte: TimePerByte,
    /// `read_G_ps_per_byte`: inverse rate of data from the host, if slower than the path; 0 for no limit.
    pub read_gap_per_byte: TimePerByte,
    /// `iommu_cycles`: cycles of an address translation.
    pub iommu_cycles: u32,
}

/// `[accelerator.limits]`
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// `max_packet_bytes`: maximum size of a packet.
    pub max_packet: u32,
    /// `contexts`: number of execution contexts of the unit.
    pub contexts: u32,
}

impl Pspin {
    /// Stride of the clusters' L1 memories: the L1 of cluster `i` starts at `L1_START + i * L1_SPAN`.
    pub const L1_SPAN: u32 = map::L1_SPAN;
    /// Address of the L1 of cluster 0.
    pub const L1_START: u32 = map::L1;
    /// Maximum number of clusters: their L1 memories end before the peripherals.
    pub const MAX_CLUSTERS: u32 = (map::L1_END - map::L1) / map::L1_SPAN;

    /// Returns the number of HPUs of all clusters.
    pub fn hpus(&self) -> u32 {
        self.units.clusters * self.units.hpus
    }

    /// Returns the bytes of a cluster's L1 that remain for scratchpads.
    pub fn scratchpad(&self) -> u32 {
        self.l1.bytes - self.cluster.runtime - self.cluster.packet_buffer
    }

    /// Returns the number of requests that can wait in the message queues.
    pub fn cells(&self) -> u32 {
        self.mpq.shared_cells + self.mpq.queues * self.mpq.cells_per_queue
    }
}
