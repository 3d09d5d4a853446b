// SPDX-License-Identifier: Apache-2.0
//! Interconnect by which HPUs access memories other than their own L1, a word at a time (§III-C).
//!
//! In each cycle, a cluster's port accepts one word from the requesting HPUs, round robin, into one FIFO. A word
//! reaches its memory after half of the latency, in FIFO order, one per cycle. A memory serves one access per cycle,
//! from the clusters round robin, if its bank is free. Answers return over the other half of the latency, in the order
//! of the accesses, one per cycle to each cluster.

use std::collections::VecDeque;

use machine::Pspin;

use crate::arbiter::RoundRobin;
use crate::cycle::Cycle;
use crate::her::HpuId;
use crate::memory::Place;

/// An access to one word. An HPU cannot cancel it.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Memory to access.
    pub place: Place,
    /// Offset of the first byte in the memory.
    pub offset: u32,
    /// Number of bytes.
    pub bytes: u32,
    /// Set for a read-modify-write.
    pub is_atomic: bool,
}

/// An access in flight.
#[derive(Clone, Copy)]
struct Flying {
    /// Cycle in which the cluster's port accepted it.
    taken: Cycle,
    /// First cycle in which it can reach its memory.
    at: Cycle,
    hpu: u16,
    /// Index of the memory.
    memory: usize,
    remote: Remote,
}

/// Port of a cluster.
struct Port {
    /// Set of requesting HPUs, and their accesses.
    asking: u64,
    asked: Vec<Option<Remote>>,
    arbiter: RoundRobin,
    /// The port accepts no word before this cycle.
    free: Cycle,
    /// Accesses that have not reached their memories, in order, and the first cycle in which the next one can.
    waiting: VecDeque<Flying>,
    from: Cycle,
    /// Cycles of the answers to the others, in order.
    answers: VecDeque<Cycle>,
}

impl Port {
    /// Returns the first cycle in which its next access can happen.
    fn wake(&self) -> Cycle {
        self.waiting.front().map_or(Cycle::NEVER, |flying| flying.at.max(self.from))
    }
}

/// Port of a memory.
struct Memory {
    arbiter: RoundRobin,
    /// The next access happens in this cycle or later.
    free: Cycle,
    /// Cycles from the request to the memory, and from the memory to the answer.
    latency: (u64, u64),
}

impl Memory {
    fn new(cycles: u32) -> Memory {
        let (all, half) = (u64::from(cycles), u64::from(cycles / 2));
        Memory { arbiter: RoundRobin::default(), free: Cycle::ZERO, latency: (half, all - half) }
    }
}

/// Ports of the clusters and of the memories.
pub struct PeInterconnect {
    clusters: Vec<Port>,
    /// L2 handler memory, L2 packet buffer, program memory, and then the L1 of each cluster.
    memories: Vec<Memory>,
    /// Set of clusters with a requesting HPU.
    asking: u64,
    /// No access happens before this cycle.
    from: Cycle,
    port_bytes: u32,
    in_flight: usize,
    atomic_cycles: u64,
}

impl PeInterconnect {
    /// Creates an idle interconnect.
    pub fn new(unit: &Pspin) -> PeInterconnect {
        let (clusters, hpus) = (unit.units.clusters as usize, unit.units.hpus as usize);
        let port = |_| Port {
            asking: 0,
            asked: vec![None; hpus],
            arbiter: RoundRobin::default(),
            free: Cycle::ZERO,
            waiting: VecDeque::new(),
            from: Cycle::ZERO,
            answers: VecDeque::new(),
        };
        let latency = |memory: usize| if memory < 3 { unit.pe.l2_cycles } else { unit.pe.remote_l1_cycles };
        PeInterconnect {
            clusters: (0..clusters).map(port).collect(),
            memories: (0..3 + clusters).map(|memory| Memory::new(latency(memory))).collect(),
            asking: 0,
            from: Cycle::NEVER,
            port_bytes: unit.pe.width_bits / 8,
            in_flight: unit.pe.in_flight as usize,
            atomic_cycles: u64::from(unit.l1.atomic_bank_cycles),
        }
    }

    /// Returns the next active cycle; `now` if an HPU waits for its cluster's port.
    #[inline]
    pub fn wake(&self, now: Cycle) -> Cycle {
        if self.asking != 0 { now } else { self.from }
    }

    /// Requests an access; the request persists until the cluster's port accepts it.
    pub fn ask(&mut self, hpu: HpuId, remote: Remote) {
        let port = &mut self.clusters[usize::from(hpu.cluster)];
        port.asked[usize::from(hpu.hpu)] = Some(remote);
        port.asking |= 1 << hpu.hpu;
        self.asking |= 1 << hpu.cluster;
    }

    /// Accepts requests of HPUs at the clusters' ports in cycle `now`.
    #[inline]
    pub fn take(&mut self, now: Cycle) {
        let mut asking = self.asking;
        while asking != 0 {
            let cluster = asking.trailing_zeros() as usize;
            asking &= asking - 1;
            self.take_of(cluster, now);
        }
    }

    fn take_of(&mut self, cluster: usize, now: Cycle) {
        let port = &mut self.clusters[cluster];
        while port.answers.front().is_some_and(|answer| *answer <= now) {
            port.answers.pop_front();
        }
        if port.free > now || port.waiting.len() + port.answers.len() >= self.in_flight {
            return;
        }
        let Some(hpu) = port.arbiter.choice(port.asking) else { return };
        port.arbiter.grant(hpu);
        port.asking &= !(1 << hpu);
        if port.asking == 0 {
            self.asking &= !(1 << cluster);
        }
        let Some(remote) = port.asked[hpu as usize].take() else { return };
        port.free = now + remote.bytes.div_ceil(self.port_bytes).max(1);
        let memory = match remote.place {
            Place::Handler => 0,
            Place::Packet => 1,
            Place::Program => 2,
            Place::L1(other) => 3 + usize::from(other),
        };
        let at = now + self.memories[memory].latency.0;
        port.waiting.push_back(Flying { taken: now, at, hpu: hpu as u16, memory, remote });
        self.from = self.from.min(port.wake());
    }

    /// Performs the accesses of cycle `now` whose bank is free according to `is_free`. `reach` receives the HPU, the
    /// cycle in which the port accepted the access, and the cycle of the answer.
    pub fn access(
        &mut self,
        now: Cycle,
        mut is_free: impl FnMut(Remote) -> bool,
        mut reach: impl FnMut(HpuId, Cycle, Cycle),
    ) {
        if self.from > now {
            return;
        }
        for (index, memory) in self.memories.iter_mut().enumerate() {
            let asks = |port: &Port| port.wake() <= now && port.waiting[0].memory == index;
            let requests = self.clusters.iter().rev().fold(0, |requests, port| requests << 1 | u64::from(asks(port)));
            if memory.free <= now
                && let Some(cluster) = memory.arbiter.choice(requests)
                && let port = &mut self.clusters[cluster as usize]
                && let Some(Flying { taken, hpu, remote, .. }) = port.waiting.front().copied()
                && is_free(remote)
            {
                memory.arbiter.grant(cluster);
                memory.free = now + if remote.is_atomic { self.atomic_cycles } else { 1 };
                port.waiting.pop_front();
                port.from = now + 1_u64;
                let after = port.answers.back().map_or(Cycle::ZERO, |latest| *latest + 1_u64);
                let answer = after.max(now + memory.latency.1);
                port.answers.push_back(answer);
                reach(HpuId { cluster: cluster as u16, hpu }, taken, answer);
            }
        }
        let next = self.clusters.iter().map(Port::wake).min().unwrap_or(Cycle::NEVER);
        self.from = next.max(now + 1_u64);
    }
}

/// Port of the program memory, which refills the instruction caches (§III-C: single port, half duplex). It serves the
/// clusters round robin, and within a cluster the HPUs.
pub struct ProgramPort {
    /// Set of clusters with a request; in each, the set of HPUs and their lines.
    asking: u64,
    clusters: Vec<(u64, RoundRobin)>,
    asked: Vec<Vec<u32>>,
    arbiter: RoundRobin,
    free: Cycle,
    /// First cycle of each read of a line.
    reads: VecDeque<Cycle>,
    port_bytes: u32,
    line: u32,
    miss_cycles: u64,
}

/// Cycles from the last word of a line at the port to the line in the cache.
const BACK: u64 = 2;

/// A line in flight to the cache of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refill {
    /// HPU that requested it.
    pub hpu: HpuId,
    /// Line number.
    pub line: u32,
    /// Cycle from which the line is in the cache.
    pub there: Cycle,
}

impl ProgramPort {
    /// Creates an idle port.
    pub fn new(unit: &Pspin) -> ProgramPort {
        let (clusters, hpus) = (unit.units.clusters as usize, unit.units.hpus as usize);
        ProgramPort {
            asking: 0,
            clusters: vec![(0, RoundRobin::default()); clusters],
            asked: vec![vec![0; hpus]; clusters],
            arbiter: RoundRobin::default(),
            free: Cycle::ZERO,
            reads: VecDeque::new(),
            port_bytes: unit.program.port_bits / 8,
            line: unit.icache.line,
            miss_cycles: u64::from(unit.icache.miss_cycles),
        }
    }

    /// Returns the next cycle in which the port starts reading a line.
    #[inline]
    pub fn wake(&self) -> Cycle {
        if self.asking == 0 { Cycle::NEVER } else { self.free }
    }

    /// Requests a line that is neither in the cluster's cache nor in flight.
    pub fn ask(&mut self, hpu: HpuId, line: u32) {
        self.asking |= 1 << hpu.cluster;
        self.clusters[usize::from(hpu.cluster)].0 |= 1 << hpu.hpu;
        self.asked[usize::from(hpu.cluster)][usize::from(hpu.hpu)] = line;
    }

    /// Returns true if a line is being read in cycle `now`, which stalls the words of HPUs.
    pub fn is_reading(&mut self, now: Cycle) -> bool {
        let words = self.line.div_ceil(self.port_bytes);
        while self.reads.front().is_some_and(|first| *first + words <= now) {
            self.reads.pop_front();
        }
        self.reads.front().is_some_and(|first| *first <= now)
    }

    /// Starts the read of a line in cycle `now`. This serves all HPUs of the cluster that requested the same line.
    pub fn fetch(&mut self, now: Cycle) -> Option<Refill> {
        if self.free > now {
            return None;
        }
        let cluster = self.arbiter.choice(self.asking)?;
        let ((hpus, arbiter), asked) = (&mut self.clusters[cluster as usize], &self.asked[cluster as usize]);
        let hpu = arbiter.choice(*hpus)?;
        let line = asked[hpu as usize];
        arbiter.grant(hpu);
        self.arbiter.grant(cluster);
        for (index, _) in asked.iter().enumerate().filter(|(_, other)| **other == line) {
            *hpus &= !(1 << index);
        }
        if *hpus == 0 {
            self.asking &= !(1 << cluster);
        }
        let words = u64::from(self.line.div_ceil(self.port_bytes));
        self.free = now + words;
        self.reads.push_back(now + self.miss_cycles.saturating_sub(words + BACK));
        Some(Refill { hpu: HpuId { cluster: cluster as u16, hpu: hpu as u16 }, line, there: now + self.miss_cycles })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unit;

    /// Cycle, cluster, HPU and memory of an access request.
    type Ask = (u64, u16, u16, Place);

    /// Returns the cycles of each access and its answer. Banks are free in cycles for which `is_free` is true.
    fn run(asks: &[Ask], is_free: impl Fn(u64) -> bool) -> Vec<(u64, u64)> {
        let mut pe = PeInterconnect::new(&unit());
        let mut found = vec![(0, 0); asks.len()];
        for now in 0..200 {
            pe.access(
                Cycle(now),
                |_| is_free(now),
                |hpu, _, answer| {
                    let index =
                        asks.iter().position(|(_, cluster, index, _)| (*cluster, *index) == (hpu.cluster, hpu.hpu));
                    found[index.unwrap()] = (now, answer.0);
                },
            );
            for (_, cluster, hpu, place) in asks.iter().filter(|(at, ..)| *at == now) {
                let remote = Remote { place: *place, offset: 0, bytes: 4, is_atomic: false };
                pe.ask(HpuId { cluster: *cluster, hpu: *hpu }, remote);
            }
            pe.take(Cycle(now));
        }
        assert_eq!(pe.wake(Cycle(200)), Cycle::NEVER);
        found
    }

    /// An access takes 16 cycles to another L1 and 18 to L2, and reaches the memory halfway.
    #[test]
    fn an_access_takes_its_latency() {
        assert_eq!(run(&[(100, 0, 0, Place::L1(1))], |_| true), [(108, 116)]);
        assert_eq!(run(&[(100, 0, 0, Place::Packet)], |_| true), [(109, 118)]);
        assert_eq!(run(&[(100, 0, 0, Place::Handler)], |now| now != 109), [(110, 119)], "the bank is taken");
    }

    /// A cluster's port accepts one word per cycle and a memory serves one access per cycle, both round robin.
    #[test]
    fn requesters_take_turns() {
        let l2 = Place::Handler;
        let found = run(&[(100, 0, 0, l2), (100, 0, 1, l2), (100, 0, 2, Place::L1(1)), (101, 0, 7, l2)], |_| true);
        // HPU 7 follows HPU 2 in round-robin order. The word for L1 stays behind the earlier words of its port.
        assert_eq!(found, [(109, 118), (110, 119), (111, 120), (112, 121)]);
        let clusters = run(&[(100, 3, 0, l2), (100, 1, 0, l2), (100, 0, 0, l2), (101, 0, 1, l2)], |_| true);
        assert_eq!(clusters, [(111, 120), (110, 119), (109, 118), (112, 121)]);
    }

    /// A cluster's port is one FIFO: a bank conflict also stalls later words for other memories.
    #[test]
    fn words_stay_in_order() {
        let asks = [(100, 0, 0, Place::Handler), (100, 0, 1, Place::L1(1)), (100, 2, 0, Place::L1(1))];
        let found = run(&asks, |now| !(109..112).contains(&now));
        assert_eq!(found, [(112, 121), (113, 122), (108, 116)]);
    }

    /// The ninth access waits for the first answer.
    #[test]
    fn a_cluster_has_eight_accesses_in_flight() {
        let unit = unit();
        let mut pe =
            PeInterconnect::new(&machine::Pspin { units: machine::pspin::Units { hpus: 10, ..unit.units }, ..unit });
        let mut answers = Vec::new();
        for hpu in 0..10 {
            pe.ask(HpuId { cluster: 3, hpu }, Remote { place: Place::Packet, offset: 0, bytes: 4, is_atomic: false });
        }
        for now in 0..100 {
            pe.access(Cycle(now), |_| true, |_, _, answer| answers.push(answer.0));
            pe.take(Cycle(now));
        }
        assert_eq!(answers, [18, 19, 20, 21, 22, 23, 24, 25, 36, 37]);
    }

    /// A 32 B line occupies the port for four cycles.
    #[test]
    fn lines_come_one_after_the_other() {
        let mut port = ProgramPort::new(&unit());
        let hpu = |cluster, hpu| HpuId { cluster, hpu };
        for (id, line) in [(hpu(2, 0), 9), (hpu(1, 3), 5), (hpu(1, 4), 5), (hpu(1, 5), 6)] {
            port.ask(id, line);
        }
        let found: Vec<Refill> = (5..30).filter_map(|now| port.fetch(Cycle(now))).collect();
        let refill = |hpu, line, there| Refill { hpu, line, there: Cycle(there) };
        assert_eq!(found, [refill(hpu(1, 3), 5, 17), refill(hpu(2, 0), 9, 21), refill(hpu(1, 5), 6, 25)]);
        assert_eq!(port.wake(), Cycle::NEVER);
    }
}
