// SPDX-License-Identifier: Apache-2.0
//! Results of a run: the numbers that commands print and that experiments read as JSON.

use crate::energy::Energy;
use hpu::Program;
use pspin_unit::her::{Failure, TaskOutcome};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Packet latencies in cycles.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    /// Number of packets of each latency: a live card has no limit of packets.
    counts: FxHashMap<u64, u64>,
}

/// Minimum, mean, maximum and 99th percentile.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// Minimum.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// The 99th percentile, by the nearest rank.
    pub p99: f64,
    /// Maximum.
    pub max: f64,
}

impl Latencies {
    /// Adds the latency of a packet.
    pub fn add(&mut self, cycles: u64) {
        *self.counts.entry(cycles).or_default() += 1;
    }

    /// Returns percentiles in a unit of which a cycle has `per_cycle`; `None` without packets.
    pub fn percentiles(&self, per_cycle: f64) -> Option<Percentiles> {
        let mut sorted: Vec<(u64, u64)> = self.counts.iter().map(|(cycles, count)| (*cycles, *count)).collect();
        sorted.sort_unstable();
        let count: u64 = sorted.iter().map(|(_, count)| count).sum();
        let at = |permille: u64| {
            let (rank, mut seen) = ((count * permille).div_ceil(1_000), 0);
            let found = sorted.iter().find(|(_, count)| {
                seen += count;
                seen >= rank
            });
            found.map(|(cycles, _)| *cycles as f64 * per_cycle)
        };
        Some(Percentiles { min: at(0)?, p50: at(500)?, p99: at(990)?, p999: at(999)?, max: at(1_000)? })
    }

    /// Returns the summary in a unit of which a cycle has `per_cycle`; `None` without packets.
    pub fn summary(&self, per_cycle: f64) -> Option<Summary> {
        let mut sorted: Vec<(u64, u64)> = self.counts.iter().map(|(cycles, count)| (*cycles, *count)).collect();
        sorted.sort_unstable();
        let (min, max) = (sorted.first()?.0, sorted.last()?.0);
        let count: u64 = sorted.iter().map(|(_, count)| count).sum();
        let sum: u128 = sorted.iter().map(|(cycles, count)| u128::from(*cycles) * u128::from(*count)).sum();
        let rank = (count * 99).div_ceil(100);
        let mut seen = 0;
        let p99 = sorted.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        let scaled = |cycles: u64| cycles as f64 * per_cycle;
        let mean = sum as f64 / count as f64 * per_cycle;
        Some(Summary { min: scaled(min), mean, p99: scaled(p99?.0), max: scaled(max) })
    }
}

/// Number, minimum, mean and maximum of a set of cycle counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Number of samples.
    pub count: u64,
    /// Minimum.
    pub min: u64,
    /// Mean.
    pub mean: f64,
    /// Maximum.
    pub max: u64,
}

/// Accumulator of cycle counts that keeps no samples.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Tally {
    /// Adds a sample.
    pub fn add(&mut self, cycles: u64) {
        self.min = if self.count == 0 { cycles } else { self.min.min(cycles) };
        self.max = self.max.max(cycles);
        self.count += 1;
        self.sum += cycles;
    }

    /// Returns the sum of all samples.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// Returns the spread; `None` without samples.
    pub fn spread(&self) -> Option<Spread> {
        let Tally { count, sum, min, max } = *self;
        (count > 0).then(|| Spread { count, min, mean: sum as f64 / count as f64, max })
    }
}

/// Bytes that pass a point, with the first and the last time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Number of transfers.
    pub times: u64,
    /// Bytes of all transfers.
    pub bytes: u64,
    /// Bytes of the first transfer.
    first_bytes: u64,
    /// Cycles of the first and of the last transfer.
    span: (u64, u64),
}

impl Flow {
    /// Adds a transfer of `bytes` in cycle `at`.
    pub fn pass(&mut self, at: u64, bytes: u64) {
        if self.times == 0 {
            (self.first_bytes, self.span.0) = (bytes, at);
        }
        self.span.1 = at;
        self.times += 1;
        self.bytes += bytes;
    }

    /// Returns the cycle of the last transfer.
    pub fn last(&self) -> u64 {
        self.span.1
    }

    /// Returns the rate over a run of `cycles` cycles.
    pub fn over(&self, cycles: u64) -> Passed {
        Passed { bytes: self.bytes, times: self.times, cycles }
    }

    /// Returns the rate between the first and the last transfer, without the first.
    pub fn steady(&self) -> Passed {
        let times = self.times.saturating_sub(1);
        Passed { bytes: self.bytes - self.first_bytes, times, cycles: self.span.1 - self.span.0 }
    }
}

/// Finished packets. They enter and are fed back at different points, which may have different rates.
#[derive(Clone, Copy, Debug, Default)]
pub struct DonePackets {
    count: u64,
    bytes: u64,
    /// Cycles of the first and last feedback, and arrival cycles of the first and last packet.
    fed_back: (u64, u64),
    come: (u64, u64),
    /// Bytes of the packet that arrived first.
    first_bytes: u64,
}

impl DonePackets {
    /// Adds a packet by the cycles of its last byte's arrival and of its feedback.
    pub fn add(&mut self, come: u64, fed_back: u64, bytes: u64) {
        if self.count == 0 {
            self.fed_back.0 = fed_back;
            self.come = (come, come);
        }
        if self.count == 0 || come < self.come.0 {
            (self.come.0, self.first_bytes) = (come, bytes);
        }
        self.come.1 = self.come.1.max(come);
        self.fed_back.1 = fed_back;
        self.count += 1;
        self.bytes += bytes;
    }

    /// Returns the rate over a run of `cycles` cycles.
    pub fn over(&self, cycles: u64) -> Passed {
        Passed { bytes: self.bytes, times: self.count, cycles }
    }

    /// Returns the rate from the first packet to the last, over the longer of feedback and arrival span: a burst of
    /// feedback is not faster than the network.
    pub fn steady(&self) -> Passed {
        let cycles = (self.fed_back.1 - self.fed_back.0).max(self.come.1 - self.come.0);
        Passed { bytes: self.bytes - self.first_bytes, times: self.count.saturating_sub(1), cycles }
    }
}

/// Bytes and transfers in a number of cycles.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    bytes: u64,
    times: u64,
    cycles: u64,
}

impl Passed {
    /// Returns Gbit/s at `ns` nanoseconds per cycle; 0 without time.
    pub fn gbit_s(self, ns: f64) -> f64 {
        if self.cycles == 0 { 0.0 } else { self.bytes as f64 / (self.cycles as f64 * ns) * 8.0 }
    }

    /// Returns transfers per microsecond at `ns` nanoseconds per cycle; 0 without time.
    pub fn per_us(self, ns: f64) -> f64 {
        if self.cycles == 0 { 0.0 } else { self.times as f64 / (self.cycles as f64 * ns) * 1e3 }
    }
}

/// Results of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Name of the machine.
    pub machine: String,
    /// Engine of a live card: `native`, `model` or `rtl`; empty for a simulation.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub engine: String,
    /// Cycles from the arrival of the first packet to the last feedback.
    pub cycles: u64,
    /// Packet counts by outcome.
    pub packets: Packets,
    /// Nanoseconds from the first byte of a packet to its feedback.
    pub latency_ns: Option<Summary>,
    /// Nanoseconds from the request of a packet to its feedback.
    pub request_ns: Option<Summary>,
    /// Cycles of the stages of packets that payload handlers process.
    pub stage_cycles: Stages,
    /// Cycles of handlers, from the load of the function pointer to the doorbell.
    pub handler_cycles: Handlers,
    /// Rates over the run: from the first byte of the first packet to the last feedback, or to the last data if later.
    #[serde(default)]
    pub run_throughput: Throughput,
    /// Rates between the first and the last transfer: those of a steady stream.
    pub throughput: Throughput,
    /// Utilization of the HPUs.
    pub hpus: HpuUse,
    /// Instructions executed between the first arrival and the last feedback, including those of the runtime.
    pub instructions: u64,
    /// Instructions per cycle of a handler, including those of the runtime.
    pub ipc: f64,
    /// Accesses of HPUs to their own L1.
    pub l1_accesses: u64,
    /// Cycles in which HPUs waited for a bank of their L1.
    pub l1_conflicts: u64,
    /// Accesses of HPUs to other memories.
    pub remote_accesses: u64,
    /// Lines fetched into instruction caches.
    pub icache_misses: u64,
    /// Commands of handlers.
    pub commands: Commands,
    /// Modelled energy of the unit over the run.
    #[serde(default)]
    pub energy: Energy,
    /// Handlers that failed.
    pub faults: u64,
    /// Handlers that the watchdog killed.
    pub watchdog: u64,
    /// Messages given up because no packet arrived.
    pub idle_resets: u64,
    /// Peak bytes of the L2 packet buffer in use.
    pub l2_peak_bytes: u32,
    /// Resources of each tenant, if several had packets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tenants: Vec<Tenant>,
    /// Jain's index of the tenants' HPU cycles until the first had all its packets done, over their weights.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jain: Option<f64>,
}

/// Percentiles of a tenant's packet latencies in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// Minimum.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// The 99th percentile, by the nearest rank.
    pub p99: f64,
    /// The percentile 99.9.
    pub p999: f64,
    /// Maximum.
    pub max: f64,
}

/// Resources of one tenant over a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Tenant {
    /// Number of the tenant, in the order of the execution contexts.
    pub tenant: u32,
    /// Weight of its context.
    pub weight: u32,
    /// Packets that were fed back.
    pub packets: u64,
    /// Bytes of its packets.
    pub bytes: u64,
    /// Nanoseconds from the first byte of a packet to its feedback.
    pub latency_ns: Option<Percentiles>,
    /// Nanoseconds from the first byte of its first packet to its last feedback.
    pub completion_ns: f64,
    /// Cycles of its handlers, from the load of the function pointer to the doorbell.
    pub hpu_cycles: u64,
    /// Cycles of its handlers until the first tenant had all its packets done, for the fairness.
    pub shared_cycles: u64,
    /// Bytes copied to the L1 memories for its handlers.
    pub l1_copy_bytes: u64,
    /// Bytes of its handlers' copies to and from host memory.
    pub host_bytes: u64,
    /// Bytes of packets that its handlers sent.
    pub sent_bytes: u64,
    /// Peak bytes of its packets with requests in the L2 packet buffer.
    pub l2_peak_bytes: u64,
    /// Bytes of L2 handler memory of its context.
    pub handler_memory_bytes: u64,
    /// Bytes of scratchpads of its context, in all clusters.
    pub scratchpad_bytes: u64,
    /// Handlers that failed, and that the watchdog killed.
    pub failed: u64,
}

/// Packet counts: `arrived` is the sum of the packets fed back (the next five), those for the host, and those dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packets {
    /// Packets whose first byte has arrived.
    pub arrived: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets whose last handler returned.
    pub done: u64,
    /// Packets without a handler.
    pub skipped: u64,
    /// Packets whose last handler failed.
    pub faulted: u64,
    /// Packets whose last handler was killed by the watchdog.
    pub timed_out: u64,
    /// Packets of messages that were given up.
    pub reset: u64,
    /// Packets for the host, which the unit does not see.
    pub to_host: u64,
    /// Dropped packets.
    pub dropped: Dropped,
    /// Packets that had to wait for room.
    pub waited: u64,
    /// Packets marked because they had to wait (`accelerator.overload = "ecn"`).
    pub marked: u64,
}

/// Dropped packets by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// L2 was full.
    pub l2: u64,
    /// The message queues were full.
    pub queues: u64,
    /// Too many messages were in progress.
    pub messages: u64,
    /// Empty, or longer than the unit's packet size.
    pub size: u64,
    /// Unreadable headers.
    pub malformed: u64,
    /// Discarded by a rule.
    pub rule: u64,
    /// Arrived before the header packet of their message while the hold buffer was full.
    pub overtook: u64,
}

impl Dropped {
    /// Returns the number of dropped packets.
    pub fn all(&self) -> u64 {
        let Dropped { l2, queues, messages, size, malformed, rule, overtook } = self;
        l2 + queues + messages + size + malformed + rule + overtook
    }
}

/// Cycles of each stage of a packet; `None` if no packet passed it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// From the request to the cluster scheduler.
    pub schedule: Option<Spread>,
    /// From there until the packet is in L1.
    pub copy: Option<Spread>,
    /// From there to the assignment to an HPU.
    pub assign: Option<Spread>,
    /// From there to the function pointer.
    pub pointer: Option<Spread>,
    /// From there to the doorbell.
    pub handler: Option<Spread>,
    /// From there to the feedback.
    pub feedback: Option<Spread>,
}

/// Cycles of handlers by role; `None` if none ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handlers {
    /// Header handlers.
    pub header: Option<Spread>,
    /// Payload handlers.
    pub payload: Option<Spread>,
    /// Completion handlers.
    pub completion: Option<Spread>,
}

/// Rates at the ports of the card.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    /// Packets whose last handler returned, in Gbit/s.
    pub in_gbit_s: f64,
    /// Packets that handlers sent, in Gbit/s.
    pub out_gbit_s: f64,
    /// Data that handlers wrote to host memory, in Gbit/s.
    pub host_write_gbit_s: f64,
    /// Data that handlers read from host memory, in Gbit/s.
    pub host_read_gbit_s: f64,
    /// Packets finished per microsecond.
    pub packets_per_us: f64,
}

/// Utilization of the HPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HpuUse {
    /// Number of HPUs.
    pub total: u32,
    /// Number of HPUs that ran a handler.
    pub used: u32,
    /// Mean number of HPUs running a handler between the first arrival and the last feedback.
    pub mean_busy: f64,
    /// Peak number of HPUs running a handler.
    pub peak_busy: u32,
}

/// Commands of handlers, and the bytes that they transferred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Packets sent.
    pub send: u64,
    /// Copies to host memory.
    pub to_host: u64,
    /// Copies from host memory.
    pub from_host: u64,
    /// Host-direct accesses, with data in the command itself.
    pub host_direct: u64,
    /// Bytes of packets sent.
    pub sent_bytes: u64,
    /// Bytes written to host memory.
    pub host_write_bytes: u64,
    /// Bytes read from host memory.
    pub host_read_bytes: u64,
}

/// Describes the end of a handler, with the function and line of the failure or of the watchdog's kill.
pub fn ending(outcome: TaskOutcome, killed_at: u32, program: &Program) -> String {
    let pc = match outcome {
        TaskOutcome::Faulted(Failure::Fault(fault)) => Some(fault.pc()),
        TaskOutcome::TimedOut => Some(killed_at),
        _ => None,
    };
    let mut text = self::outcome(outcome);
    if let Some(function) = pc.and_then(|pc| program.function(pc)) {
        text += &format!(" in {function}");
    }
    if let Some(place) = pc.and_then(|pc| program.line(pc)) {
        text += &format!(" ({}:{})", place.file, place.line);
    }
    text
}

/// Describes the end of a handler.
pub fn outcome(outcome: TaskOutcome) -> String {
    match outcome {
        TaskOutcome::Done => "done".to_owned(),
        TaskOutcome::Skipped => "skipped".to_owned(),
        TaskOutcome::Faulted(Failure::Fault(fault)) => format!("failed: {fault}"),
        TaskOutcome::Faulted(Failure::Command { address, size }) => {
            format!("failed: a command uses {size} bytes at {address:#x}, which are not the handler's")
        }
        TaskOutcome::Faulted(Failure::Host { address }) => {
            format!("failed: a command uses host memory at {address:#x}, which the IOMMU refuses")
        }
        TaskOutcome::Faulted(Failure::Reported { code }) => format!("failed: it has reported error {code}"),
        TaskOutcome::TimedOut => "killed by the watchdog".to_owned(),
        TaskOutcome::MessageReset => "its message was given up".to_owned(),
    }
}
