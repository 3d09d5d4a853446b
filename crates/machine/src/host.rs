//! The host: its CPU, its memory, and the card's path to that memory.

use sim::{Time, TimePerByte};

/// `[host]`: the CPU and its memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Host {
    /// `cores`: number of cores.
    pub cores: u32,
    /// `o_ns`: CPU time to pass an operation to the card (LogGP's o).
    pub overhead: Time,
    /// `poll_ns`: CPU time from the appearance of a completion in memory until the polling program has it.
    pub poll: Time,
    /// `match_ns`: CPU time to match one arrived message in software (rdma cards).
    pub matching: Time,
    /// `dram_latency_ns`: time of one access to memory.
    pub dram_latency: Time,
    /// `dram_G_ps_per_byte`: inverse memory bandwidth.
    pub dram_gap_per_byte: TimePerByte,
    /// `core_lines`: number of cache lines that one core fetches from memory at the same time.
    pub core_lines: u32,
}

impl Host {
    /// Bytes of a cache line.
    const LINE: u64 = 64;

    /// The time in which one core reads `read` and writes `written` bytes of memory, rounded up to a picosecond. The
    /// number of lines that a core fetches at the same time limits reads (Little's law), the memory's bandwidth limits
    /// reads and writes together. Writes drain in the background.
    pub fn memory_time(&self, read: u64, written: u64) -> Time {
        let bytes = read.saturating_add(written);
        if bytes == 0 {
            return Time::ZERO;
        }
        let at_once = u128::from(self.core_lines) * u128::from(Self::LINE);
        let fetched = (u128::from(self.dram_latency.as_ps()) * u128::from(read)).div_ceil(at_once);
        let fetched = Time::from_ps(fetched.try_into().unwrap_or(u64::MAX));
        self.dram_latency.saturating_add(fetched.max(self.dram_gap_per_byte.time(bytes)))
    }
}

/// `[dma]`: the card's path to host memory, a LogGP system with o = g = 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Dma {
    /// `L_ns`: latency of a transfer.
    pub latency: Time,
    /// `G_ps_per_byte`: inverse bandwidth.
    pub gap_per_byte: TimePerByte,
}
