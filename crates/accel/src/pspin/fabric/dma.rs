//! The DMA engines of the clusters and the interconnect that they share (§III-C).
//!
//! Each engine has two queues, one for packets and one for the transfers of handlers, and moves a beat a cycle, from both in
//! turn. Each direction of each L2 memory gives all engines together one beat a cycle.

use std::collections::VecDeque;

use machine::Pspin;

use crate::pspin::arbiter::RoundRobin;
use crate::pspin::cycle::Cycle;
use crate::pspin::her::Range;
use crate::pspin::memory::{Arena, Place};

/// The number of a handler's transfer in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferId(pub u32);

/// The purpose of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// A task's packet is copied to L1; the place of the task in its cluster.
    Packet(u8),
    /// A handler has asked for it.
    Handler(TransferId),
}

/// A copy between memories.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Its purpose.
    pub owner: Owner,
    /// The bytes.
    pub from: Range,
    /// Where they go.
    pub to: u32,
}

/// A transfer whose last beat has been read.
#[derive(Clone, Copy, Debug)]
pub struct Landed {
    /// The cluster.
    pub cluster: u16,
    /// The transfer.
    pub transfer: Transfer,
    /// When all of it is at its destination.
    pub at: Cycle,
}

/// The channels of L2 memories: reading and writing packets, reading and writing handler memory; then what stays in L1.
const CHANNELS: usize = 4;

struct Queue {
    transfers: VecDeque<Transfer>,
    /// The address of the next beat of the first one, and the number of beats that are left.
    next: u32,
    left: u32,
    /// Beats that its latency counts in addition, because it has fewer than `least_beats`.
    padding: u32,
    /// Whether its next beat needs a channel, by number.
    channels: [bool; CHANNELS],
}

struct Engine {
    /// Packets, and the transfers of handlers.
    queues: [Queue; 2],
    turn: usize,
    /// The latest transfer of a handler that was started, and those that have landed later than the oldest one in flight.
    last: u32,
    landed: Vec<(TransferId, Cycle)>,
    /// All transfers of handlers before this one have landed.
    first: u32,
}

/// The engines of all clusters.
pub struct DmaInterconnect {
    engines: Vec<Engine>,
    /// The engines that have packets, and those that have transfers of handlers.
    packets: u64,
    handlers: u64,
    arbiter: RoundRobin,
    beat: u32,
    latency: u64,
    least_beats: u32,
    queue: usize,
    /// The next beat is not read before this cycle.
    from: Cycle,
}

impl DmaInterconnect {
    /// Engines without transfers.
    pub fn new(unit: &Pspin) -> DmaInterconnect {
        let queue = || Queue { transfers: VecDeque::new(), next: 0, left: 0, padding: 0, channels: [false; CHANNELS] };
        let engine = |_| Engine { queues: [queue(), queue()], turn: 0, last: 0, landed: Vec::new(), first: 1 };
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

    /// The size of a beat in bytes.
    #[inline]
    pub fn beat(&self) -> u32 {
        self.beat
    }

    /// The next cycle in which a beat can be read.
    #[inline]
    pub fn wake(&self) -> Cycle {
        if self.packets | self.handlers == 0 { Cycle::NEVER } else { self.from }
    }

    /// Starts to copy a packet of at least one byte, behind those of the same cluster. Its first beat is read in the next cycle.
    #[inline]
    pub fn start(&mut self, cluster: u16, now: Cycle, transfer: Transfer) {
        self.push(cluster, now, 0, transfer);
    }

    /// Starts a transfer of at least one byte for a handler. Returns `None` when the queue is full.
    pub fn copy(&mut self, cluster: u16, now: Cycle, from: Range, to: u32) -> Option<TransferId> {
        let engine = &mut self.engines[usize::from(cluster)];
        if engine.queues[1].transfers.len() >= self.queue {
            return None;
        }
        engine.last = engine.last.wrapping_add(1);
        let id = TransferId(engine.last);
        self.push(cluster, now, 1, Transfer { owner: Owner::Handler(id), from, to });
        Some(id)
    }

    /// Whether a handler's transfer is done in cycle `now`.
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
        let shift = self.beat.trailing_zeros();
        queue.next = from.address >> shift << shift;
        queue.left = ((from.address + (from.size.max(1) - 1)) >> shift) - (from.address >> shift) + 1;
        queue.padding = self.least_beats.saturating_sub(queue.left);
        if index == 0 {
            queue.channels = [true, false, false, false];
            return;
        }
        let is = |address: u32, place: Place| {
            let start = Arena::start(place);
            address >= start && (place == Place::Packet || address < Arena::start(Place::Packet))
        };
        queue.channels = [
            is(from.address, Place::Packet),
            is(to, Place::Packet),
            is(from.address, Place::Handler),
            is(to, Place::Handler),
        ];
    }

    /// Moves the beats of cycle `now`. `is_taken` tells whether another port has the bank of a word in L2, `moved` learns for each
    /// beat from where it is read, and when it is written to where, and `landed` the transfers that end.
    pub fn step(
        &mut self,
        now: Cycle,
        mut is_taken: impl FnMut(u32) -> bool,
        mut moved: impl FnMut(u32, Cycle, u32),
        mut landed: impl FnMut(Landed),
    ) {
        self.from = now + 1_u64;
        let (mut taken, mut waiting) = ([false; CHANNELS], self.packets | self.handlers);
        let mut first = None;
        while let Some(cluster) = self.arbiter.choice(waiting) {
            waiting &= !(1 << cluster);
            // Packets alone all need the same channel.
            let only_packets = self.handlers == 0;
            let index = if only_packets { Some(0) } else { self.choose(cluster as usize, &taken) };
            let Some(index) = index else { continue };
            let queue = &self.engines[cluster as usize].queues[index];
            if (queue.channels[0] || queue.channels[2]) && is_taken(queue.next) {
                continue;
            }
            first.get_or_insert(cluster);
            for (taken, needs) in taken.iter_mut().zip(queue.channels) {
                *taken |= needs;
            }
            self.move_beat(cluster, index, now, &mut moved, &mut landed);
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
    fn move_beat(
        &mut self,
        cluster: u32,
        index: usize,
        now: Cycle,
        moved: &mut impl FnMut(u32, Cycle, u32),
        landed: &mut impl FnMut(Landed),
    ) {
        let engine = &mut self.engines[cluster as usize];
        engine.turn = 1 - index;
        let queue = &mut engine.queues[index];
        let Some(transfer) = queue.transfers.front().copied() else { return };
        let offset = queue.next.saturating_sub(transfer.from.address);
        moved(queue.next, now + (self.latency - 1), transfer.to + offset);
        queue.next += self.beat;
        queue.left -= 1;
        if queue.left == 0 {
            let at = now + self.latency + queue.padding;
            queue.transfers.pop_front();
            self.begin(cluster as u16, index);
            self.land(cluster as usize, transfer.owner, now, at);
            landed(Landed { cluster: cluster as u16, transfer, at });
        }
    }

    /// The queue from which an engine moves a beat, if one can.
    fn choose(&self, cluster: usize, taken: &[bool; CHANNELS]) -> Option<usize> {
        let engine = &self.engines[cluster];
        let is_free = |queue: &Queue| {
            !queue.transfers.is_empty() && !queue.channels.iter().zip(taken).any(|(needs, taken)| *needs && *taken)
        };
        let order = [engine.turn, 1 - engine.turn];
        order.into_iter().find(|index| is_free(&engine.queues[*index]))
    }

    /// Remembers when a handler's transfer is done.
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
