// SPDX-License-Identifier: Apache-2.0
//! Energy model: activity counts times the power of each component (PsPIN §IV-A, Table III, 22 nm).
//!
//! The table assumes that all logic toggles and each memory macro is accessed in every cycle at 1 GHz. The power of a
//! component, divided by the number of its operations in such a cycle, is therefore an upper bound of the energy of an
//! operation. Idle components are assumed to be clock-gated. The energy of an operation does not depend on the size of
//! the unit: a unit with other memories or more clusters has the same cells.

use machine::Pspin as Config;
use pspin_unit::core::CoreCounters;
use pspin_unit::her::Range;
use serde::{Deserialize, Serialize};

/// Power of the paper's unit in W, with 0.2 % of static power ("99.8 % of which is dynamic power").
const TOTAL_W: f64 = 6.08;
const STATIC_W: f64 = 0.002 * TOTAL_W;
const DYNAMIC: f64 = 0.998;
/// Numbers of the paper's unit: clusters, HPUs of a cluster, 32-bit banks of an L1, and 512-bit ports of the DMA and the
/// NIC–host interconnect: read and write ports of four clusters, of the NIC, and of the host (§III-C).
const CLUSTERS: f64 = 4.0;
const HPUS: f64 = 8.0;
const BANKS: f64 = 64.0;
const PORTS: f64 = 12.0;
/// Bits that the L2 macros read or write in a cycle: 32 banks of 512 bits, 32 of 64 bits, and the program memory's 64.
const L2_BITS: f64 = 32.0 * 512.0 + 32.0 * 64.0 + 64.0;
/// Power of each component in W; those of clusters for one cluster.
const L2_W: f64 = 1.10;
const INTERCONNECT_W: f64 = 0.71;
const L1_W: f64 = 0.52;
const CORES_W: f64 = 0.14;
const ICACHE_W: f64 = 0.14;
const CLUSTER_INTERCONNECT_W: f64 = 0.11;
/// Remainder of the total: the inter-cluster scheduler, "ca. 0.5 W", and parts of clusters without a row, such as their
/// schedulers. In a cycle of full activity they pass one task on.
const SCHEDULERS_W: f64 =
    TOTAL_W - L2_W - INTERCONNECT_W - CLUSTERS * (L1_W + CORES_W + ICACHE_W + CLUSTER_INTERCONNECT_W);

/// Bits of a beat of the wide interconnects, and of a word of L1.
const BEAT: u64 = 512;
const WORD: u64 = 32;

/// Operations of each component during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Activity {
    /// Cycles in which HPUs run handlers, of all HPUs together.
    pub busy_cycles: u64,
    /// Instructions that HPUs fetch.
    pub instructions: u64,
    /// Words that HPUs and wide accesses read or write in L1.
    pub l1_words: u64,
    /// Bits read or written in L2.
    pub l2_bits: u64,
    /// Bits that pass a port of the wide interconnects, or of the interconnect of the HPUs.
    pub interconnect_bits: u64,
    /// Tasks that the schedulers pass on.
    pub tasks: u64,
}

impl Activity {
    /// Counts a packet that the NIC writes to L2, and its copy of `copied` bytes to L1.
    pub fn packet(&mut self, bytes: u32, copied: u32) {
        self.wide(bytes, false);
        if copied > 0 {
            self.wide(copied, false);
            self.wide(copied, true);
        }
    }

    /// Counts a command that reads or writes `data`.
    pub fn command(&mut self, data: Range) {
        self.wide(data.size, data.address >= Config::L1_START);
    }

    /// Counts the HPUs' accesses to their own L1 and to other memories, mostly to the handler memory with its words of
    /// 64 bits, and the lines of `line` bytes that their instruction caches read from the program memory.
    pub fn hpus(&mut self, cores: &CoreCounters, line: u32) {
        self.l1_words += cores.local;
        self.l2_bits += cores.remote * 64 + cores.misses * u64::from(line) * 8;
        self.interconnect_bits += cores.remote * WORD;
    }

    /// Counts the beats of a transfer to or from L1 or L2.
    fn wide(&mut self, bytes: u32, is_l1: bool) {
        let bits = (u64::from(bytes) * 8).next_multiple_of(BEAT);
        self.interconnect_bits += bits;
        if is_l1 {
            self.l1_words += bits / WORD;
        } else {
            self.l2_bits += bits;
        }
    }

    /// Returns the energy of this activity in a run of `ns` nanoseconds with `packets` packets.
    pub fn energy(&self, ns: f64, packets: u64) -> Energy {
        // 1 W at 1 GHz is 1 nJ for each cycle.
        let nj = |count: u64, watts: f64, operations: f64| count as f64 * watts * DYNAMIC / operations;
        let parts = EnergyParts {
            l2: nj(self.l2_bits, L2_W, L2_BITS),
            interconnect: nj(self.interconnect_bits, INTERCONNECT_W, PORTS * BEAT as f64),
            schedulers: nj(self.tasks, SCHEDULERS_W, 1.0),
            l1: nj(self.l1_words, L1_W, BANKS),
            cores: nj(self.busy_cycles, CORES_W, HPUS),
            icache: nj(self.instructions, ICACHE_W, HPUS),
            cluster_interconnect: nj(self.l1_words, CLUSTER_INTERCONNECT_W, BANKS),
            leakage: STATIC_W * ns,
        };
        let total = parts.sum();
        let over = |divisor: f64| if divisor > 0.0 { total / divisor } else { 0.0 };
        Energy { nj: total, nj_per_packet: over(packets as f64), mean_w: over(ns), parts_nj: parts }
    }
}

/// Modelled energy of a run, an upper bound for the paper's process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Energy {
    /// Energy of the run in nJ.
    pub nj: f64,
    /// Energy divided by the number of arrived packets.
    pub nj_per_packet: f64,
    /// Mean power over the run in W.
    pub mean_w: f64,
    /// Energy of each component in nJ.
    pub parts_nj: EnergyParts,
}

/// Energy of each component in nJ, with the names of Table III; those of clusters for all clusters together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EnergyParts {
    /// L2 memories: packet buffer, handler memory, program memory.
    pub l2: f64,
    /// Interconnects between clusters, L2, NIC and host.
    pub interconnect: f64,
    /// Inter-cluster scheduler, and the parts of clusters that the table omits.
    pub schedulers: f64,
    /// L1 memories.
    pub l1: f64,
    /// HPUs.
    pub cores: f64,
    /// Instruction caches.
    pub icache: f64,
    /// Interconnects between HPUs and the banks of L1.
    pub cluster_interconnect: f64,
    /// Static power.
    pub leakage: f64,
}

impl EnergyParts {
    fn sum(&self) -> f64 {
        let EnergyParts { l2, interconnect, schedulers, l1, cores, icache, cluster_interconnect, leakage } = self;
        l2 + interconnect + schedulers + l1 + cores + icache + cluster_interconnect + leakage
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_activity_takes_the_power_of_table_iii() {
        let cycles = 1000;
        let full = Activity {
            busy_cycles: 32 * cycles,
            instructions: 32 * cycles,
            l1_words: 4 * 64 * cycles,
            l2_bits: (32 * 512 + 32 * 64 + 64) * cycles,
            interconnect_bits: 12 * 512 * cycles,
            tasks: cycles,
        };
        let energy = full.energy(cycles as f64, cycles);
        assert!((energy.mean_w - 6.08).abs() < 1e-9, "{energy:?}");
        assert!((energy.nj_per_packet - 6.08).abs() < 1e-9, "{energy:?}");
        // §IV-A: the clusters take 62 %, L2 18 %, and the scheduler 8 % with the parts of clusters that have no row.
        let share = |part: f64| 100.0 * part / energy.nj;
        let parts = energy.parts_nj;
        let clusters = parts.l1 + parts.cores + parts.icache + parts.cluster_interconnect;
        assert!((share(clusters) - 60.0).abs() < 1.0, "{energy:?}");
        assert!((share(parts.l2) - 18.1).abs() < 0.1, "{energy:?}");
        assert!((share(parts.schedulers) - 10.0).abs() < 0.5, "{energy:?}");
    }

    #[test]
    fn a_packet_is_written_read_and_copied_in_whole_beats() {
        let mut activity = Activity::default();
        activity.packet(65, 64);
        // 2 beats into L2, one from there, one into L1.
        assert_eq!((activity.l2_bits, activity.l1_words, activity.interconnect_bits), (3 * 512, 16, 4 * 512));
        activity.packet(64, 0);
        assert_eq!((activity.l2_bits, activity.l1_words, activity.interconnect_bits), (4 * 512, 16, 5 * 512));
        activity.command(Range { address: Config::L1_START, size: 128 });
        assert_eq!((activity.l2_bits, activity.l1_words, activity.interconnect_bits), (4 * 512, 48, 7 * 512));
        activity.hpus(&CoreCounters { local: 5, remote: 2, misses: 1, ..CoreCounters::default() }, 32);
        assert_eq!(activity.l2_bits, 4 * 512 + 128 + 256);
        assert_eq!((activity.l1_words, activity.interconnect_bits), (53, 7 * 512 + 64));
        assert_eq!(Activity::default().energy(0.0, 0).nj_per_packet, 0.0);
    }
}
