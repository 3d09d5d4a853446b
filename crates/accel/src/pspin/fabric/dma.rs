//! The DMA engines of the clusters and the interconnect that they share (§III-C): one beat a cycle from L2, in turn.

use std::collections::VecDeque;

use machine::Pspin;

use crate::pspin::cycle::Cycle;
use crate::pspin::her::Range;
use crate::pspin::schedule::RoundRobin;

/// A packet that is to be copied from L2 to L1.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// The place of the task in its cluster.
    pub place: u8,
    /// The packet in L2.
    pub from: Range,
    /// Where it goes in L1.
    pub to: u32,
}

/// A transfer whose last beat has been read.
#[derive(Clone, Copy, Debug)]
pub struct Landed {
    /// The cluster.
    pub cluster: u16,
    /// The transfer.
    pub transfer: Transfer,
    /// When all of it is in L1.
    pub at: Cycle,
}

struct Engine {
    transfers: VecDeque<Transfer>,
    /// The address of the next beat of the first one, and the number of beats that are left.
    next: u32,
    left: u32,
    /// Beats that its latency counts in addition, because it has fewer than `least_beats`.
    padding: u32,
}

/// The engines of all clusters.
pub struct DmaInterconnect {
    engines: Vec<Engine>,
    /// The engines that have beats to read.
    active: u64,
    arbiter: RoundRobin,
    beat: u32,
    latency: u64,
    least_beats: u32,
    /// The next beat is not read before this cycle.
    from: Cycle,
}

impl DmaInterconnect {
    /// Engines without transfers.
    pub fn new(unit: &Pspin) -> DmaInterconnect {
        let engine = |_| Engine { transfers: VecDeque::new(), next: 0, left: 0, padding: 0 };
        DmaInterconnect {
            engines: (0..unit.units.clusters).map(engine).collect(),
            active: 0,
            arbiter: RoundRobin::default(),
            beat: unit.dma.width_bits / 8,
            latency: u64::from(unit.dma.latency_cycles),
            least_beats: unit.dma.least_beats,
            from: Cycle::ZERO,
        }
    }

    /// The next cycle in which a beat can be read.
    #[inline]
    pub fn wake(&self) -> Cycle {
        if self.active == 0 { Cycle::NEVER } else { self.from }
    }

    /// The number of beats of a range: the words that it touches.
    pub fn beats(&self, range: Range) -> u32 {
        let first = range.address / self.beat;
        let last = (range.address + range.size.max(1) - 1) / self.beat;
        last - first + 1
    }

    /// Starts a transfer of at least one byte, behind those of the same cluster. Its first beat is read in the next cycle.
    pub fn start(&mut self, cluster: u16, now: Cycle, transfer: Transfer) {
        let is_first = self.engines[usize::from(cluster)].transfers.is_empty();
        self.engines[usize::from(cluster)].transfers.push_back(transfer);
        if is_first {
            self.begin(cluster);
            self.from = self.from.max(now + 1_u64);
        }
    }

    fn begin(&mut self, cluster: u16) {
        let Some(transfer) = self.engines[usize::from(cluster)].transfers.front() else {
            self.active &= !(1 << cluster);
            return;
        };
        let (next, left) = (transfer.from.address - transfer.from.address % self.beat, self.beats(transfer.from));
        let engine = &mut self.engines[usize::from(cluster)];
        (engine.next, engine.left) = (next, left);
        engine.padding = self.least_beats.saturating_sub(left);
        self.active |= 1 << cluster;
    }

    /// Reads a beat in cycle `now`, unless its bank is taken by another port. Returns the transfer that it ends, if any.
    pub fn step(&mut self, now: Cycle, is_taken: impl Fn(u32) -> bool) -> Option<Landed> {
        let free = |cluster: &u32| !is_taken(self.engines[*cluster as usize].next);
        let cluster = self.arbiter.choice(self.active).filter(free)?;
        self.arbiter.grant(cluster);
        self.from = now + 1_u64;
        let engine = &mut self.engines[cluster as usize];
        engine.next += self.beat;
        engine.left -= 1;
        if engine.left > 0 {
            return None;
        }
        let at = now + self.latency + engine.padding;
        let transfer = engine.transfers.pop_front()?;
        self.begin(cluster as u16);
        Some(Landed { cluster: cluster as u16, transfer, at })
    }
}
