// SPDX-License-Identifier: Apache-2.0
//! DMA engines of the clusters and the interconnect that they share (§III-C).
//!
//! Each engine has one queue for packets and one for handler transfers; it alternates between them and moves a beat per
//! cycle. A beat reads a word of the engine's width at the source and writes one at the destination. If source and
//! destination are aligned differently, one end needs more beats than it has words. Each direction of each L2 memory
//! and of each L1 carries one beat per cycle for all engines together.

use std::collections::VecDeque;

use machine::Pspin;

use crate::arbiter::RoundRobin;
use crate::cycle::Cycle;
use crate::her::Range;
use crate::memory::{Arena, Place};

/// Number of a handler's transfer within its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferId(pub u32);

/// Purpose of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// Copy of a task's packet to L1, with the task's place in its cluster.
    Packet(u8),
    /// Transfer requested by a handler.
    Handler(TransferId),
}

/// A copy between memories.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Purpose.
    pub owner: Owner,
    /// Source.
    pub from: Range,
    /// Destination address.
    pub to: u32,
}

/// A transfer whose last beat is read.
#[derive(Clone, Copy, Debug)]
pub struct Landed {
    /// Cluster index.
    pub cluster: u16,
    /// Finished transfer.
    pub transfer: Transfer,
    /// Cycle in which all of it is at its destination.
    pub at: Cycle,
}

/// Number of L2 channels: packet buffer read and write, then handler memory read and write.
const CHANNELS: usize = 4;

struct Queue {
    transfers: VecDeque<Transfer>,
    /// Addresses of the next source word and the next destination word of the first transfer.
    next: u32,
    to: u32,
    /// Words left to read, beats before the first write, and beats left in all.
    reads: u32,
    lag: u32,
    left: u32,
    /// Beats that pad the latency of transfers shorter than `least_beats`.
    padding: u32,
    /// L2 channels that the first transfer needs, and the sets of L1s that it reads and writes.
    channels: [bool; CHANNELS],
    l1: [u64; 2],
}

/// Channels taken in a cycle: those of L2, and the sets of L1s read and written.
#[derive(Default)]
struct Taken {
    channels: [bool; CHANNELS],
    l1: [u64; 2],
}

impl Taken {
    fn excludes(&self, queue: &Queue) -> bool {
        let in_l2 = queue.channels.iter().zip(self.channels).any(|(needs, taken)| *needs && taken);
        in_l2 || queue.reads > 0 && queue.l1[0] & self.l1[0] != 0 || queue.l1[1] & self.l1[1] != 0
    }

    fn take(&mut self, queue: &Queue) {
        for (taken, needs) in self.channels.iter_mut().zip(queue.channels) {
            *taken |= needs;
        }
        self.l1[0] |= if queue.reads > 0 { queue.l1[0] } else { 0 };
        self.l1[1] |= queue.l1[1];
    }
}

/// One beat of a transfer.
#[derive(Clone, Copy, Debug)]
pub struct Beat {
    /// Address of the word read in the cycle of the beat, if any.
    pub read: Option<u32>,
    /// Address of the word written, if any.
    pub write: Option<u32>,
    /// Cycle of the write.
    pub at: Cycle,
}

struct Engine {
    /// Queue of packets, and queue of handler transfers.
    queues: [Queue; 2],
    turn: usize,
    /// Latest handler transfer that was started, and those that landed while an older one is in flight.
    last: u32,
    landed: Vec<(TransferId, Cycle)>,
    /// All handler transfers before this one have landed.
    first: u32,
    /// Arbiter among HPUs that launch a transfer in the same cycle.
    launches: RoundRobin,
    /// Cycle in which a handler transfer last left its queue.
    left: Cycle,
}

/// DMA engines of all clusters.
pub struct DmaInterconnect {
    engines: Vec<Engine>,
    /// Set of engines with packets, and set of engines with handler transfers.
    packets: u64,
    handlers: u64,
    arbiter: RoundRobin,
    beat: u32,
    latency: u64,
    least_beats: u32,
    queue: usize,
    /// No beat is read before this cycle.
    from: Cycle,
}

impl DmaInterconnect {
    /// Creates idle engines.
    pub fn new(unit: &Pspin) -> DmaInterconnect {
        let queue = || Queue {
            transfers: VecDeque::new(),
            next: 0,
            to: 0,
            reads: 0,
            lag: 0,
            left: 0,
            padding: 0,
            channels: [false; CHANNELS],
            l1: [0; 2],
        };
        let engine = |_| Engine {
            queues: [queue(), queue()],
            turn: 0,
            last: 0,
            landed: Vec::new(),
            first: 1,
            launches: RoundRobin::default(),
            left: Cycle::NEVER,
        };
        DmaInterconnect {
            engines: (0..unit.units.clusters).map(engine).collect(),
            packets: 0,
            handlers: 0,
            arbiter: RoundRobin::default(),
            beat: unit.dma.width_bits / 8,
            latency: u64::from(unit.dma.latency_cycles),
            least_beats: unit.dma.least_beats,
            queue: unit.dma.queue as usize,
            from: Cycle::ZERO,
        }
    }

    /// Returns the size of a beat in bytes.
    #[inline]
    pub fn beat(&self) -> u32 {
        self.beat
    }

    /// Returns the next cycle in which a beat can be read.
    #[inline]
    pub fn wake(&self) -> Cycle {
        if self.packets | self.handlers == 0 { Cycle::NEVER } else { self.from }
    }

    /// Queues the copy of a packet of at least one byte. Its first beat is read in the next cycle at the earliest.
    #[inline]
    pub fn start(&mut self, cluster: u16, now: Cycle, transfer: Transfer) {
        self.push(cluster, now, 0, transfer);
    }

    /// Chooses the HPU in the set `hpus` whose transfer is accepted in cycle `now`; `None` if the queue was full at the
    /// end of the previous cycle.
    pub fn choose_launch(&mut self, cluster: u16, now: Cycle, hpus: u64) -> Option<u32> {
        let engine = &mut self.engines[usize::from(cluster)];
        let queued = engine.queues[1].transfers.len() + usize::from(engine.left == now);
        let chosen = engine.launches.choice(hpus).filter(|_| queued < self.queue)?;
        engine.launches.grant(chosen);
        Some(chosen)
    }

    /// Starts a transfer of at least one byte for a handler on the chosen HPU.
    pub fn copy(&mut self, cluster: u16, now: Cycle, from: Range, to: u32) -> TransferId {
        let engine = &mut self.engines[usize::from(cluster)];
        engine.last = engine.last.wrapping_add(1);
        let id = TransferId(engine.last);
        self.push(cluster, now, 1, Transfer { owner: Owner::Handler(id), from, to });
        id
    }

    /// Returns true if a handler's transfer is done in cycle `now`.
    pub fn is_done(&self, cluster: u16, now: Cycle, id: TransferId) -> bool {
        let engine = &self.engines[usize::from(cluster)];
        id.0 < engine.first || engine.landed.iter().any(|(landed, at)| *landed == id && *at <= now)
    }

    #[inline]
    fn push(&mut self, cluster: u16, now: Cycle, queue: usize, transfer: Transfer) {
        if self.packets | self.handlers == 0 {
            self.from = self.from.max(now + 1_u64);
        }
        let waiting = &mut self.engines[usize::from(cluster)].queues[queue].transfers;
        waiting.push_back(transfer);
        if waiting.len() == 1 {
            self.begin(cluster, queue);
        }
    }

    /// Prepares the first transfer of a queue.
    #[inline]
    fn begin(&mut self, cluster: u16, index: usize) {
        let active = if index == 0 { &mut self.packets } else { &mut self.handlers };
        let queue = &mut self.engines[usize::from(cluster)].queues[index];
        let Some(Transfer { from, to, .. }) = queue.transfers.front().copied() else {
            *active &= !(1 << cluster);
            return;
        };
        *active |= 1 << cluster;
        let (shift, within) = (self.beat.trailing_zeros(), self.beat - 1);
        let words = |address: u32| ((address + (from.size.max(1) - 1)) >> shift) - (address >> shift) + 1;
        (queue.next, queue.to) = (from.address & !within, to & !within);
        queue.reads = words(from.address);
        // If the source offset in a word exceeds the destination's, the first write needs two reads.
        queue.lag = u32::from(from.address & within > to & within);
        queue.left = words(to) + queue.lag;
        queue.padding = self.least_beats.saturating_sub(queue.left);
        if index == 0 {
            (queue.channels, queue.l1) = ([true, false, false, false], [0, 1 << cluster]);
            return;
        }
        let is = |address: u32, place: Place| {
            let start = Arena::start(place);
            address >= start && (place == Place::Packet || address < Arena::start(Place::Packet))
        };
        let l1 = |address: u32| match address.checked_sub(Arena::start(Place::L1(0))) {
            Some(offset) if address < Arena::start(Place::Handler) => 1 << (offset / Pspin::L1_SPAN),
            _ => 0,
        };
        queue.l1 = [l1(from.address), l1(to)];
        queue.channels = [
            is(from.address, Place::Packet),
            is(to, Place::Packet),
            is(from.address, Place::Handler),
            is(to, Place::Handler),
        ];
    }

    /// Moves the beats of cycle `now`. `is_ready` returns true if the source banks of a beat are free; then the beat
    /// moves. Transfers that end are passed to `landed`.
    pub fn step(&mut self, now: Cycle, mut is_ready: impl FnMut(Beat) -> bool, mut landed: impl FnMut(Landed)) {
        self.from = now + 1_u64;
        let (mut taken, mut waiting) = (Taken::default(), self.packets | self.handlers);
        // Packets all need the same channel, so at most one of them moves.
        let only_packets = self.handlers == 0;
        let mut first = None;
        while let Some(cluster) = self.arbiter.choice(waiting) {
            waiting &= !(1 << cluster);
            let index = if only_packets { Some(0) } else { self.choose(cluster as usize, &taken) };
            let Some(index) = index else { continue };
            let queue = &self.engines[cluster as usize].queues[index];
            let read = (queue.reads > 0).then_some(queue.next);
            let write = (queue.lag == 0).then_some(queue.to);
            if !is_ready(Beat { read, write, at: now + (self.latency - 1) }) {
                continue;
            }
            first.get_or_insert(cluster);
            taken.take(queue);
            self.move_beat(cluster, index, now, &mut landed);
            if only_packets {
                break;
            }
        }
        if let Some(first) = first {
            self.arbiter.grant(first);
        }
    }

    /// Moves the next beat of a queue.
    #[inline]
    fn move_beat(&mut self, cluster: u32, index: usize, now: Cycle, landed: &mut impl FnMut(Landed)) {
        let engine = &mut self.engines[cluster as usize];
        engine.turn = 1 - index;
        let queue = &mut engine.queues[index];
        let Some(transfer) = queue.transfers.front().copied() else { return };
        if queue.reads > 0 {
            (queue.reads, queue.next) = (queue.reads - 1, queue.next + self.beat);
        }
        match queue.lag {
            0 => queue.to += self.beat,
            lag => queue.lag = lag - 1,
        }
        queue.left -= 1;
        if queue.left == 0 {
            let at = now + self.latency + queue.padding;
            queue.transfers.pop_front();
            if index == 1 {
                engine.left = now;
            }
            self.begin(cluster as u16, index);
            self.land(cluster as usize, transfer.owner, now, at);
            landed(Landed { cluster: cluster as u16, transfer, at });
        }
    }

    /// Returns the queue from which an engine moves a beat, if it can.
    fn choose(&self, cluster: usize, taken: &Taken) -> Option<usize> {
        let engine = &self.engines[cluster];
        let is_free = |queue: &Queue| !queue.transfers.is_empty() && !taken.excludes(queue);
        let order = [engine.turn, 1 - engine.turn];
        order.into_iter().find(|index| is_free(&engine.queues[*index]))
    }

    /// Records the cycle in which a handler's transfer is done.
    #[inline]
    fn land(&mut self, cluster: usize, owner: Owner, now: Cycle, at: Cycle) {
        let Owner::Handler(id) = owner else { return };
        let engine = &mut self.engines[cluster];
        engine.landed.push((id, at));
        engine.landed.sort_unstable_by_key(|(id, _)| *id);
        while engine.landed.first().is_some_and(|(id, at)| id.0 == engine.first && *at <= now) {
            engine.landed.remove(0);
            engine.first += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::unit;

    const L1: u32 = Pspin::L1_START;
    const HANDLER: u32 = 0x1c00_0000;

    /// Cycle of a beat, and the words that it reads and writes.
    type Moved = (u64, Option<u32>, Option<u32>);

    /// Copies between memories from cycle 0 on, stalling in cycles for which `is_taken` is true. Returns the cycle of
    /// each beat with the words that it reads and writes, and the cycle in which the copy lands.
    fn copy(from: u32, to: u32, size: u32, is_taken: impl Fn(u64) -> bool) -> (Vec<Moved>, u64) {
        let mut dma = DmaInterconnect::new(&unit());
        dma.copy(0, Cycle(0), Range { address: from, size }, to);
        let (mut beats, mut at) = (Vec::new(), 0);
        for now in 1..100 {
            let is_ready = |beat: Beat| {
                let is_ready = !is_taken(now);
                if is_ready {
                    assert_eq!(beat.at, Cycle(now + 9), "a word is written 9 cycles later");
                    beats.push((now, beat.read.map(|read| read - from / 64 * 64), beat.write.map(|to| to - L1)));
                }
                is_ready
            };
            dma.step(Cycle(now), is_ready, |landed| at = landed.at.0);
        }
        (beats, at)
    }

    #[test]
    fn a_beat_reads_a_word_and_writes_one() {
        let never = |_| false;
        // Aligned: as many beats as words.
        let (beats, at) = copy(HANDLER, L1, 192, never);
        assert_eq!(beats, [(1, Some(0), Some(0)), (2, Some(64), Some(64)), (3, Some(128), Some(128))]);
        assert_eq!(at, 3 + 10);
        // 64 B that lie in two words of the destination.
        let (beats, at) = copy(HANDLER, L1 + 32, 64, never);
        assert_eq!((beats, at), (vec![(1, Some(0), Some(0)), (2, None, Some(64))], 2 + 10));
        // 64 B that lie in two words of the source: the first beat reads the first half.
        let (beats, at) = copy(HANDLER + 32, L1, 64, never);
        assert_eq!((beats, at), (vec![(1, Some(0), None), (2, Some(64), Some(0))], 2 + 10));
        // Three words at each end, but the first destination word needs two source words: one beat more.
        let (beats, _) = copy(HANDLER + 48, L1 + 16, 140, never);
        let last = [(3, Some(128), Some(64)), (4, None, Some(128))];
        assert_eq!(beats, [[(1, Some(0), None), (2, Some(64), Some(0))], last].concat());
        // A transfer of one byte has the latency of at least two beats.
        assert_eq!(copy(HANDLER, L1, 1, never), (vec![(1, Some(0), Some(0))], 1 + 10 + 1));
    }

    #[test]
    fn a_beat_waits_for_the_banks_of_its_source() {
        let (beats, at) = copy(L1 + 4096, L1, 128, |now| now == 2 || now == 3);
        assert_eq!((beats, at), (vec![(1, Some(0), Some(0)), (4, Some(64), Some(64))], 4 + 10));
    }

    /// The HPUs of a cluster launch round robin, one per call, and none while the queue is full. A transfer that leaves
    /// the queue frees its entry in the next cycle. Cycles without a grant do not advance the arbiter.
    #[test]
    fn hpus_launch_in_turn() {
        let (unit, from) = (unit(), Range { address: HANDLER, size: 64 });
        let mut dma = DmaInterconnect::new(&unit);
        let launch = |dma: &mut DmaInterconnect, now: u64, hpus| {
            dma.choose_launch(1, Cycle(now), hpus).inspect(|_| _ = dma.copy(1, Cycle(now), from, L1))
        };
        let chosen = [0b1011, 0b1011, 0b1011, 0b1011, 0b0100].map(|hpus| launch(&mut dma, 0, hpus));
        assert_eq!(chosen, [Some(0), Some(1), Some(3), Some(0), Some(2)]);
        assert_eq!(dma.choose_launch(0, Cycle(0), 0b1000), Some(3), "another cluster has turns of its own");
        for _ in 5..unit.dma.queue {
            assert_eq!(launch(&mut dma, 0, 0b0100), Some(2));
        }
        for (now, launched) in [(1, None), (2, None), (3, Some(3))] {
            dma.step(Cycle(now), |_| now == 2, |_| {});
            assert_eq!(launch(&mut dma, now, 0b1001), launched, "cycle {now}");
        }
    }

    /// Packets and copies share the L2 channels in a cycle, even if the copy is the last one.
    #[test]
    fn a_channel_has_one_beat_in_a_cycle() {
        let mut dma = DmaInterconnect::new(&unit());
        let packet = Range { address: Arena::start(Place::Packet), size: 64 };
        dma.copy(0, Cycle(0), packet, HANDLER);
        dma.start(1, Cycle(0), Transfer { owner: Owner::Packet(0), from: packet, to: L1 + Pspin::L1_SPAN });
        let mut landed = Vec::new();
        for now in 1..4 {
            dma.step(Cycle(now), |_| true, |transfer| landed.push((now, transfer.cluster)));
        }
        assert_eq!(landed, [(1, 0), (2, 1)]);
    }

    /// Copies of two clusters to one L1 alternate; copies to different L1s move in parallel.
    #[test]
    fn an_l1_takes_a_beat_a_cycle() {
        for (other, last) in [(L1 + 4096, 4), (L1 + Pspin::L1_SPAN, 2)] {
            let mut dma = DmaInterconnect::new(&unit());
            let own = |cluster: u32| Range { address: L1 + (2 + cluster) * Pspin::L1_SPAN, size: 128 };
            for (cluster, to) in [(2, L1), (3, other), (2, L1 + 512)] {
                dma.copy(cluster, Cycle(0), own(u32::from(cluster) - 2), to);
            }
            let mut beats = Vec::new();
            for now in 1..100 {
                dma.step(
                    Cycle(now),
                    |beat| {
                        beats.push((now, beat.write.unwrap() >= other));
                        true
                    },
                    |_| {},
                );
            }
            let of_other: Vec<u64> = beats.iter().filter(|(_, is_other)| *is_other).map(|(now, _)| *now).collect();
            assert_eq!((of_other[1], beats.len()), (last, 6), "{beats:?}");
        }
    }
}
