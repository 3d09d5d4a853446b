// SPDX-License-Identifier: Apache-2.0
//! Counts, and the text at the end in the format of the published simulation, which scripts parse.

use pspin_nic::report::DonePackets;
use pspin_unit::Cycle;
use sim::Clock;

/// Data passing a point.
#[derive(Clone, Copy, Debug, Default)]
pub struct Traffic {
    /// Number of transfers.
    pub times: u64,
    pub beats: u64,
    pub bytes: u64,
    /// Cycles of the first and the last transfer.
    first: Option<Cycle>,
    last: Cycle,
    /// Bytes of the first transfer.
    first_bytes: u64,
}

impl Traffic {
    /// Adds a transfer in cycle `at`.
    pub fn add(&mut self, at: Cycle, beats: u64, bytes: u64) {
        if self.first.is_none() {
            (self.first, self.first_bytes) = (Some(at), bytes);
        }
        self.last = at;
        self.times += 1;
        self.beats += beats;
        self.bytes += bytes;
    }

    /// Returns the mean time between transfers in ns; 0 with fewer than two.
    fn period_ns(&self, clock: Clock) -> f64 {
        let Some(first) = self.first.filter(|_| self.times > 1) else { return 0.0 };
        clock.time(self.last - first).as_ns_f64() / (self.times - 1) as f64
    }

    /// Returns the mean bytes of a transfer.
    fn mean(&self) -> f64 {
        if self.times == 0 { 0.0 } else { self.bytes as f64 / self.times as f64 }
    }

    /// Returns the throughput in Gbit/s between the first and the last transfer, without the first; 0 with fewer than
    /// two.
    fn gbit_per_s(&self, clock: Clock) -> f64 {
        let cycles = self.first.map_or(0, |first| self.last - first);
        if cycles == 0 { 0.0 } else { 8.0 * (self.bytes - self.first_bytes) as f64 / clock.time(cycles).as_ns_f64() }
    }
}

/// Latencies of packets in picoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Latency {
    pub sum: u64,
    pub min: u64,
    pub max: u64,
}

/// All counts of the text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Statistics {
    /// Packets fed back, and their rate.
    pub done: Traffic,
    rate: DonePackets,
    /// Time from their arrival at the NIC to the feedback.
    pub latency: Latency,
    pub stalls: u64,
    pub send_commands: u64,
    pub sent: Traffic,
    pub host_writes: Traffic,
    pub host_reads: Traffic,
    pub card_written: u64,
    pub card_read: u64,
}

impl Statistics {
    /// Adds a finished packet.
    pub fn packet_done(&mut self, at: Cycle, come: Cycle, bytes: u64, latency_ps: u64) {
        let Latency { sum, min, max } = &mut self.latency;
        *sum += latency_ps;
        *min = if self.done.times == 0 { latency_ps } else { latency_ps.min(*min) };
        *max = latency_ps.max(*max);
        self.done.add(at, 1, bytes);
        self.rate.add(come.0, at.0, bytes);
    }

    /// Returns the text.
    pub fn text(&self, clock: Clock) -> String {
        let Statistics { done, latency, sent, host_writes, host_reads, .. } = self;
        let ns = |ps: u64| ps as f64 / 1_000.0;
        let cycle_ns = clock.time(1_000_000).as_ns_f64() / 1e6;
        let mean = if done.times == 0 { 0.0 } else { ns(latency.sum) / done.times as f64 };
        let line = "----------------------------------";
        let host = |name, traffic: &Traffic| {
            let (beats, bytes, throughput) = (traffic.beats, traffic.bytes, traffic.gbit_per_s(clock));
            format!("\t{name}: beats: {beats}; bytes: {bytes}; avg throughput: {throughput:.3} Gbit/s")
        };
        [
            "###### Statistics ######".to_owned(),
            "NIC inbound engine:".to_owned(),
            format!("\tPackets: {}; Bytes: {}", done.times, done.bytes),
            format!("\tAvg packet length: {:.3} B", done.mean()),
            format!(
                "\tFeedback throughput: {:.3} Gbit/s (feedback arrival time: {:.3} ns)",
                self.rate.steady().gbit_s(cycle_ns),
                done.period_ns(clock)
            ),
            format!("\tPacket latency: avg: {mean:.3} ns; min: {} ns; max: {} ns", ns(latency.min), ns(latency.max)),
            format!("\tHER stalls: {}", self.stalls),
            line.to_owned(),
            "NIC outbound engine:".to_owned(),
            format!("\tCommands: {}; Packets: {}; Bytes: {}", self.send_commands, sent.times, sent.bytes),
            format!("\tAvg packet length: {:.3} B", sent.mean()),
            format!(
                "\tPacket throughput: {:.3} Gbit/s (pkt departure time: {:.3} ns)",
                sent.gbit_per_s(clock),
                sent.period_ns(clock)
            ),
            line.to_owned(),
            "PCIe Slave:".to_owned(),
            host("Writes", host_writes),
            host("Reads", host_reads),
            line.to_owned(),
            "PCIe Master:".to_owned(),
            format!("\tBytes written: {}; Bytes read: {}", self.card_written, self.card_read),
            line.to_owned(),
            String::new(),
        ]
        .join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_the_published_form() {
        let mut statistics = Statistics::default();
        // 1,024 B every 16 cycles are 512 Gbit/s.
        for (at, latency) in [(100, 90_000), (116, 100_000), (132, 110_500)] {
            statistics.packet_done(Cycle(at), Cycle(at - 60), 1_024, latency);
        }
        let text = statistics.text(Clock::from_khz(1_000_000));
        let expected = "\
###### Statistics ######
NIC inbound engine:
\tPackets: 3; Bytes: 3072
\tAvg packet length: 1024.000 B
\tFeedback throughput: 512.000 Gbit/s (feedback arrival time: 16.000 ns)
\tPacket latency: avg: 100.167 ns; min: 90 ns; max: 110.5 ns
\tHER stalls: 0
----------------------------------
NIC outbound engine:
\tCommands: 0; Packets: 0; Bytes: 0
\tAvg packet length: 0.000 B
\tPacket throughput: 0.000 Gbit/s (pkt departure time: 0.000 ns)
----------------------------------
PCIe Slave:
\tWrites: beats: 0; bytes: 0; avg throughput: 0.000 Gbit/s
\tReads: beats: 0; bytes: 0; avg throughput: 0.000 Gbit/s
----------------------------------
PCIe Master:
\tBytes written: 0; Bytes read: 0
----------------------------------
";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_burst_of_feedback_is_not_faster_than_the_network() {
        let mut statistics = Statistics::default();
        for (at, come) in [(100, 20), (101, 36), (102, 52)] {
            statistics.packet_done(Cycle(at), Cycle(come), 1_024, 0);
        }
        let text = statistics.text(Clock::from_khz(1_000_000));
        assert!(text.contains("Feedback throughput: 512.000 Gbit/s (feedback arrival time: 1.000 ns)"), "{text}");
    }
}
