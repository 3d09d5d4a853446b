//! What a run has shown.

use serde::Serialize;

/// Times of packets, in cycles.
#[derive(Clone, Debug, Default)]
pub struct Latencies {
    cycles: Vec<u64>,
}

/// Least, mean and greatest time, and that which 99 % of the packets do not exceed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Summary {
    /// The least.
    pub min: u64,
    /// The mean.
    pub mean: f64,
    /// The 99th percentile, by the nearest rank.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
}

impl Latencies {
    /// Adds the time of a packet.
    pub fn add(&mut self, cycles: u64) {
        self.cycles.push(cycles);
    }

    /// The summary; `None` without packets.
    pub fn summary(&self) -> Option<Summary> {
        let mut sorted = self.cycles.clone();
        sorted.sort_unstable();
        let (min, max) = (*sorted.first()?, *sorted.last()?);
        let count = sorted.len();
        let sum: u128 = sorted.iter().map(|cycles| u128::from(*cycles)).sum();
        let rank = (count * 99).div_ceil(100);
        Some(Summary { min, mean: sum as f64 / count as f64, p99: sorted[rank - 1], max })
    }
}
