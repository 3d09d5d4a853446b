// SPDX-License-Identifier: Apache-2.0
//! The host: its CPU, its memory, and the card's path to that memory.

use sim::{Time, TimePerByte};

/// `[host]`: the CPU and its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// `cores`: number of cores.
    pub cores: u32,
    /// `o_ns`: CPU time to pass an operation to the card (LogGP's o).
    pub overhead: Time,
    /// `poll_ns`: CPU time from the appearance of a completion in memory until the polling program sees it.
    pub poll: Time,
    /// `match_ns`: CPU time to match one arriving message in software (rdma cards).
    pub matching: Time,
    /// `dram_latency_ns`: time of one memory access.
    pub dram_latency: Time,
    /// `dram_G_ps_per_byte`: inverse memory bandwidth.
    pub dram_gap_per_byte: TimePerByte,
    /// `core_lines`: cache lines that one core fetches in parallel while it computes with the data or gathers it with a
    /// stride.
    pub core_lines: u32,
    /// `copy_lines`: cache lines that one core fetches in parallel while it copies a contiguous block with hardware
    /// prefetching.
    pub copy_lines: u32,
    /// `shared_memory`: true if CPU and card share the memory bandwidth.
    pub shared_memory: bool,
}

impl Host {
    /// Bytes of a cache line.
    const LINE: u64 = 64;

    /// Returns the time in which one core reads `read` and writes `written` bytes of memory while it computes or
    /// strides, rounded up to a picosecond. The number of parallel line fetches limits reads (Little's law); memory
    /// bandwidth limits reads and writes together. Writes drain in the background.
    pub fn memory_time(&self, read: u64, written: u64) -> Time {
        self.time_of(self.core_lines, read, written)
    }

    /// Returns the time in which one core copies `bytes` contiguous bytes, by the same law.
    pub fn copy_time(&self, bytes: u64) -> Time {
        self.time_of(self.copy_lines, bytes, bytes)
    }

    fn time_of(&self, lines: u32, read: u64, written: u64) -> Time {
        let bytes = read.saturating_add(written);
        if bytes == 0 {
            return Time::ZERO;
        }
        let at_once = u128::from(lines) * u128::from(Self::LINE);
        let fetched = (u128::from(self.dram_latency.as_ps()) * u128::from(read)).div_ceil(at_once);
        let fetched = Time::from_ps(fetched.try_into().unwrap_or(u64::MAX));
        self.dram_latency.saturating_add(fetched.max(self.dram_gap_per_byte.time(bytes)))
    }
}

/// `[dma]`: the card's path to host memory, a LogGP system with o = g = 0 (sPIN §4.3).
#[derive(Clone, Debug, PartialEq)]
pub struct Dma {
    /// `L_ns`: latency of a transfer.
    pub latency: Time,
    /// `G_ps_per_byte`: inverse bandwidth.
    pub gap_per_byte: TimePerByte,
    /// `engines`: sharing between reads and writes.
    pub engines: DmaEngines,
    /// `messages`: DMA cost of message data.
    pub messages: DmaMessages,
    /// `handlers`: DMA cost of handler transfers.
    pub handlers: DmaHandlers,
    /// `news`: completion time of a message whose handlers write to host memory.
    pub news: DmaNews,
}

/// Sharing of the DMA engine between transfers to and from host memory. §4.3 of the sPIN paper has "a simple LogGP
/// system".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaEngines {
    /// "shared": one engine performs one transfer at a time, in either direction, in order.
    Shared,
    /// "per-direction": reads and writes have separate engines. A read is requested behind all earlier writes, so that
    /// it sees their data, but never delays a write.
    PerDirection,
}

/// DMA cost of fetching message data from host memory and depositing it there. §4.3 of the sPIN paper adds DMA time
/// "when the NIC delivers data into host memory", for PutFromHost and for DMA calls of handlers; it does not list
/// messages that the host posts, whose data "is loaded from main memory" all the same (§4.4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaMessages {
    /// "transfers": each byte crosses the DMA engine. A fetch of s bytes takes 2 L + s G, a deposit L + s G for each
    /// packet.
    Transfers,
    /// "latency": as in LogGOPSim2, only latencies count, and transfers do not occupy the engine. A message that the
    /// host posts, directly or by a trigger, leaves after L, PutFromHost of a handler after 2 L, the reply to a get at
    /// once. A message is in host memory L after the match of its last packet, or after its last handler.
    Latency,
}

/// DMA cost of handler transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaHandlers {
    /// "transfers": reads and writes of s bytes occupy the engine for s G. A write resumes its handler when its data
    /// has left the card (App. C.3.2: it "blocks HPUs to initiate the write request"); the message waits until the data
    /// is in host memory.
    Transfers,
    /// "requests": as in LogGOPSim2. A read of s bytes takes 2 L + (s − 1) G and never delays another transfer. A write
    /// occupies the engine for (s − 1) G, and its handler resumes when the engine starts it. In LogGOPSim2, which moves
    /// no data, the message completes then, too; here it completes when the data is in host memory, up to (s − 1) G
    /// later.
    Requests,
}

/// Time at which the card reports the completion of a message whose handlers write to host memory. The report itself
/// takes L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DmaNews {
    /// "after-writes": when the data is confirmed in host memory, L after it left.
    AfterWrites,
    /// "behind-writes": when the last handler ends, on the same path, so that the report arrives behind the data.
    BehindWrites,
}
