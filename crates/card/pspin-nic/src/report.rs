//! What a run has shown: the numbers that commands print and that experiments read as JSON.

use hpu::Program;
use pspin_unit::her::{Failure, TaskOutcome};
use serde::{Deserialize, Serialize};

/// Times of packets, in cycles.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    cycles: Vec<u64>,
}

/// Least, mean and greatest time, and that which 99 % of the packets do not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// The least.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// The 99th percentile, by the nearest rank.
    pub p99: f64,
    /// The greatest.
    pub max: f64,
}

impl Latencies {
    /// Adds the time of a packet.
    pub fn add(&mut self, cycles: u64) {
        self.cycles.push(cycles);
    }

    /// The summary in units of which a cycle has this number; `None` without packets.
    pub fn summary(&self, per_cycle: f64) -> Option<Summary> {
        let mut sorted = self.cycles.clone();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let sum: u128 = sorted.iter().map(|cycles| u128::from(*cycles)).sum();
        let rank = (count * 99).div_ceil(100);
        let scaled = |cycles: u64| cycles as f64 * per_cycle;
        let mean = sum as f64 / count as f64 * per_cycle;
        Some(Summary { min: scaled(min), mean, p99: scaled(sorted[rank - 1]), max: scaled(max) })
    }
}

/// Number, least, mean and greatest of some cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// How many there are.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The greatest.
    pub max: u64,
}

/// Counts cycles without keeping them.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Tally {
    /// Adds cycles.
    pub fn add(&mut self, cycles: u64) {
        self.min = if self.count == 0 { cycles } else { self.min.min(cycles) };
        self.max = self.max.max(cycles);
        self.count += 1;
        self.sum += cycles;
    }

    /// The sum of all.
    pub fn sum(&self) -> u64 {
        self.sum
    }

    /// The spread; `None` of nothing.
    pub fn spread(&self) -> Option<Spread> {
        let Tally { count, sum, min, max } = *self;
        (count > 0).then(|| Spread { count, min, mean: sum as f64 / count as f64, max })
    }
}

/// Bytes that pass somewhere, one after the other, from the first time to the last.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flow {
    /// Number of times that something has passed.
    pub times: u64,
    /// All bytes.
    pub bytes: u64,
    /// Bytes of the first time.
    first_bytes: u64,
    /// The cycles of the first and of the last time.
    span: (u64, u64),
}

impl Flow {
    /// Bytes have passed in a cycle.
    pub fn pass(&mut self, at: u64, bytes: u64) {
        if self.times == 0 {
            (self.first_bytes, self.span.0) = (bytes, at);
        }
        self.span.1 = at;
        self.times += 1;
        self.bytes += bytes;
    }

    /// The cycle of the last time.
    pub fn last(&self) -> u64 {
        self.span.1
    }

    /// The rate over a run of this many cycles.
    pub fn over(&self, cycles: u64) -> Passed {
        Passed { bytes: self.bytes, times: self.times, cycles }
    }

    /// The rate between the first and the last time; what passed the first time is not counted.
    pub fn steady(&self) -> Passed {
        let times = self.times.saturating_sub(1);
        Passed { bytes: self.bytes - self.first_bytes, times, cycles: self.span.1 - self.span.0 }
    }
}

/// Packets that are done. They come in at one place and are fed back at another, where more may pass at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct DonePackets {
    count: u64,
    bytes: u64,
    /// When the first and the last packet were fed back, and when the first and the last of them had come in.
    fed_back: (u64, u64),
    come: (u64, u64),
    /// Bytes of the packet that came in first.
    first_bytes: u64,
}

impl DonePackets {
    /// A packet whose last byte came in in one cycle was fed back in another.
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

    /// The rate over a run of this many cycles.
    pub fn over(&self, cycles: u64) -> Passed {
        Passed { bytes: self.bytes, times: self.count, cycles }
    }

    /// The rate from the first packet to the last: over the time between their feedbacks, or that in which they came in if it is
    /// longer, so that a burst of feedback is not faster than the network.
    pub fn steady(&self) -> Passed {
        let cycles = (self.fed_back.1 - self.fed_back.0).max(self.come.1 - self.come.0);
        Passed { bytes: self.bytes - self.first_bytes, times: self.count.saturating_sub(1), cycles }
    }
}

/// Bytes and times that something passes in a number of cycles.
#[derive(Clone, Copy, Debug)]
pub struct Passed {
    bytes: u64,
    times: u64,
    cycles: u64,
}

impl Passed {
    /// Gbit/s, when a cycle has this number of nanoseconds; 0 without time.
    pub fn gbit_s(self, ns: f64) -> f64 {
        if self.cycles == 0 { 0.0 } else { self.bytes as f64 / (self.cycles as f64 * ns) * 8.0 }
    }

    /// Times in a microsecond, when a cycle has this number of nanoseconds; 0 without time.
    pub fn per_us(self, ns: f64) -> f64 {
        if self.cycles == 0 { 0.0 } else { self.times as f64 / (self.cycles as f64 * ns) * 1e3 }
    }
}

/// What a run has shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// The machine.
    pub machine: String,
    /// Cycles from the arrival of the first packet to the last feedback.
    pub cycles: u64,
    /// What became of the packets.
    pub packets: Packets,
    /// Nanoseconds from the first byte of a packet to its feedback.
    pub latency_ns: Option<Summary>,
    /// Nanoseconds from the request of a packet to its feedback.
    pub request_ns: Option<Summary>,
    /// Cycles of the stages of packets that payload handlers process.
    pub stage_cycles: Stages,
    /// Cycles of handlers, from the load of the function pointer to the doorbell.
    pub handler_cycles: Handlers,
    /// Rates over the run: from the first byte of the first packet to the last feedback, or the last data if that is later.
    #[serde(default)]
    pub run_throughput: Throughput,
    /// Rates between the first time that something passed and the last: those of a steady stream.
    pub throughput: Throughput,
    /// How the HPUs were used.
    pub hpus: HpuUse,
    /// Instructions that HPUs have executed between the first arrival and the last feedback, with those of the runtime.
    pub instructions: u64,
    /// Instructions in a cycle of a handler, with those of the runtime.
    pub ipc: f64,
    /// Accesses of HPUs to their own L1.
    pub l1_accesses: u64,
    /// Cycles for which HPUs waited for a bank of their L1.
    pub l1_conflicts: u64,
    /// Accesses of HPUs to other memories.
    pub remote_accesses: u64,
    /// Lines that were fetched into instruction caches.
    pub icache_misses: u64,
    /// Commands of handlers.
    pub commands: Commands,
    /// Handlers that failed.
    pub faults: u64,
    /// Handlers that the watchdog killed.
    pub watchdog: u64,
    /// Messages that were given up because no packet came.
    pub idle_resets: u64,
    /// The most bytes of the packet buffer in L2 that were in use at a time.
    pub l2_peak_bytes: u32,
}

/// What became of the packets: `arrived` is the sum of those that were fed back (the next five), those for the host, and those that
/// were dropped.
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
    /// Packets that were dropped.
    pub dropped: Dropped,
    /// Packets that had to wait for room.
    pub waited: u64,
    /// Packets that were marked because they had to wait (`accelerator.overload = "ecn"`).
    pub marked: u64,
}

/// Why packets were dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// L2 had no room.
    pub l2: u64,
    /// The message queues had no room.
    pub queues: u64,
    /// Too many messages were in progress.
    pub messages: u64,
    /// They were empty or longer than the unit takes.
    pub size: u64,
    /// Their headers could not be read.
    pub malformed: u64,
    /// A rule discards them.
    pub rule: u64,
    /// They came before the header packet of their message when no more packets could wait for theirs.
    pub overtook: u64,
}

impl Dropped {
    /// All packets that were dropped.
    pub fn all(&self) -> u64 {
        let Dropped { l2, queues, messages, size, malformed, rule, overtook } = self;
        l2 + queues + messages + size + malformed + rule + overtook
    }
}

/// Cycles of each stage of a packet; none without packets that passed it.
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

/// Cycles of handlers by the part that they play; none without such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Handlers {
    /// Header handlers.
    pub header: Option<Spread>,
    /// Payload handlers.
    pub payload: Option<Spread>,
    /// Completion handlers.
    pub completion: Option<Spread>,
}

/// Rates of what passes the ports of the card.
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
    /// Packets that are done in a microsecond.
    pub packets_per_us: f64,
}

/// How HPUs were used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HpuUse {
    /// How many there are.
    pub total: u32,
    /// How many have run a handler.
    pub used: u32,
    /// How many were running a handler on average, between the first arrival and the last feedback.
    pub mean_busy: f64,
    /// The most that were running a handler at a time.
    pub peak_busy: u32,
}

/// Commands of handlers, and the bytes that they moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Commands {
    /// Packets that were sent.
    pub send: u64,
    /// Copies to host memory.
    pub to_host: u64,
    /// Copies from host memory.
    pub from_host: u64,
    /// Accesses to host memory with data in the command itself.
    pub host_direct: u64,
    /// Bytes of packets that were sent.
    pub sent_bytes: u64,
    /// Bytes that were written to host memory.
    pub host_write_bytes: u64,
    /// Bytes that were read from host memory.
    pub host_read_bytes: u64,
}

/// The end of a handler in words, with function and line where it failed, or was when the watchdog killed it.
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

/// The end of a handler in words.
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
