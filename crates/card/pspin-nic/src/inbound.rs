// SPDX-License-Identifier: Apache-2.0
//! Inbound engine (§III-A): writes packets into a ring in the L2 packet buffer, requests handlers for them, and frees
//! them on the unit's feedback, in any order.

use std::collections::VecDeque;
use std::rc::Rc;

use machine::Pspin as Config;
use machine::pspin::Overload;
use pspin_unit::her::{Busy, ExecutionContext, Feedback, Her, Range};
use pspin_unit::memory::{Allocation, Arena, Place, Ring};
use pspin_unit::{Cycle, Unit};
use rustc_hash::FxHashMap;
use sim::{Clock, Time};
use slab::Slab;

/// Packet arriving from the network, with the verdict of the match-action table.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// Arrival time of its first byte. Packets must be pushed in order of arrival; a packet waits until the one in
    /// front of it is complete.
    pub at: Time,
    /// Bytes of the packet.
    pub bytes: Vec<u8>,
    /// Message number, which selects the home cluster.
    pub message: u32,
    /// Set for the last packet of its message.
    pub is_last: bool,
    /// Number of its bytes copied to L1.
    pub transfer: u32,
    /// Execution context of its message.
    pub context: Rc<ExecutionContext>,
    /// Tag of the caller.
    pub user: u64,
}

/// Packet counts by outcome. `arrived` is the sum of `fed_back`, the drops, and the packets inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets whose first byte has arrived.
    pub arrived: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that the unit fed back.
    pub fed_back: u64,
    /// Packets dropped because L2 was full.
    pub dropped_l2: u64,
    /// Packets dropped because the message queues were full.
    pub dropped_queues: u64,
    /// Packets dropped because too many messages were in progress.
    pub dropped_messages: u64,
    /// Packets dropped because they are empty or exceed the unit's packet size.
    pub dropped_size: u64,
    /// Packets marked because they had to wait (`accelerator.overload = "ecn"`).
    pub marked: u64,
    /// Packets that had to wait for room.
    pub waited: u64,
}

impl Counts {
    /// Number of dropped packets.
    pub fn dropped(&self) -> u64 {
        self.dropped_l2 + self.dropped_queues + self.dropped_messages + self.dropped_size
    }
}

/// Packet that the unit finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// Tag of the caller.
    pub user: u64,
    /// Arrival cycle of its first byte.
    pub arrived: Cycle,
    /// Cycle at which its last byte was in L2.
    pub written: Cycle,
    /// Cycle at which the unit accepted its request.
    pub submitted: Cycle,
    /// Length of the packet in bytes.
    pub bytes: u32,
    /// Tenant of its context.
    pub tenant: u32,
}

/// Reason for which the inbound engine is idle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// Waits for arrivals or for requests that are not ready yet.
    No,
    /// Waits for progress in the unit.
    Unit,
    /// Waits for the next cycle: the unit accepts one request per cycle.
    Cycle,
}

/// Packet in L2.
struct Stored {
    piece: Allocation,
    arrived: Cycle,
    written: Cycle,
    submitted: Cycle,
    bytes: u32,
    user: u64,
    tenant: u32,
}

/// Packet in L2 whose request is pending.
struct Waiting {
    /// Cycle at which all of it is in L2.
    ready: Cycle,
    her: Her,
    has_waited: bool,
}

/// Message that holds a queue of the unit.
#[derive(Clone, Copy)]
struct Holder {
    message: u32,
    /// Cycle at which its first request was accepted; distinguishes it from an earlier holder with the same number.
    since: Cycle,
    /// Set once its last packet is accepted.
    has_ended: bool,
}

/// Progress of a message.
#[derive(Clone, Copy, Default)]
struct Progress {
    /// Number of its packets in L2.
    inside: u32,
    /// Set once its last packet is or was in L2.
    has_last: bool,
}

/// Packets of one tenant; of all, unless the scheduler separates them.
#[derive(Default)]
struct Lane {
    /// Packets on the wire, in order, each with its number among all packets and the least time from its beginning to that
    /// of the next one.
    wire: VecDeque<(u64, Arrival, Time)>,
    /// Set once the first packet of `wire` is counted as waiting.
    has_waited: bool,
    /// Packets whose requests are pending, in order.
    requests: VecDeque<Waiting>,
    /// Bytes of packets in L2.
    bytes: u32,
    weight: u64,
}

/// Inbound engine.
pub struct Inbound {
    config: Rc<Config>,
    clock: Clock,
    ring: Ring,
    /// Lanes by tenant, or one for all; the wire pauses each separately.
    lanes: Vec<Lane>,
    is_apart: bool,
    /// Number of packets pushed.
    pushed: u64,
    /// Lane whose request is submitted next.
    turn: usize,
    /// Time at which the wire is free for the next packet.
    wire_free: Time,
    /// Message that holds each queue of the unit.
    holders: Vec<Option<Holder>>,
    /// Packets in L2, by the NIC number passed to the unit.
    stored: Slab<Stored>,
    /// Messages with packets in L2, and messages whose last packet has not arrived, by number.
    messages: FxHashMap<u32, Progress>,
    /// Bytes of packets in L2.
    bytes_in_use: u32,
    /// Peak of `bytes_in_use`.
    peak_bytes: u32,
    counts: Counts,
}

impl Inbound {
    /// Creates an engine with an empty ring.
    pub fn new(config: Rc<Config>, clock: Clock) -> Inbound {
        let is_apart = config.sharing.separated().is_some();
        let ring = if is_apart { Ring::scattered } else { Ring::new };
        Inbound {
            ring: ring(config.l2_packet.bytes, config.cluster.slot),
            clock,
            lanes: vec![Lane { weight: 1, ..Lane::default() }],
            is_apart,
            pushed: 0,
            turn: 0,
            wire_free: Time::ZERO,
            holders: vec![None; config.mpq.queues as usize],
            stored: Slab::new(),
            messages: FxHashMap::default(),
            bytes_in_use: 0,
            peak_bytes: 0,
            counts: Counts::default(),
            config,
        }
    }

    /// Returns the packet counts so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Number of packets that have not arrived.
    pub fn coming(&self) -> usize {
        self.lanes.iter().map(|lane| lane.wire.len()).sum()
    }

    /// Number of packets in L2.
    pub fn inside(&self) -> usize {
        self.stored.len()
    }

    /// Peak bytes of L2 in use.
    pub fn peak_bytes(&self) -> u32 {
        self.peak_bytes
    }

    /// Queues a packet behind those pushed before; the next one begins at least `gap` after the beginning of this one.
    pub fn push(&mut self, packet: Arrival, gap: Time) {
        let index = if self.is_apart { packet.context.tenant as usize } else { 0 };
        if self.lanes.len() <= index {
            self.lanes.resize_with(index + 1, || Lane { weight: 1, ..Lane::default() });
        }
        let lane = &mut self.lanes[index];
        lane.weight = packet.context.share.weight.max(1).into();
        lane.wire.push_back((self.pushed, packet, gap));
        self.pushed += 1;
    }

    /// Returns the first cycle that does not begin before `time`.
    fn cycle(&self, time: Time) -> Cycle {
        let cycles = self.clock.cycles(time);
        Cycle(if self.clock.time(cycles) < time { cycles + 1 } else { cycles })
    }

    /// Returns the first cycle after `now` with an arrival or a ready request, or `Cycle::NEVER`.
    pub fn next_after(&self, now: Cycle) -> Cycle {
        let next = |lane: &Lane| {
            let arrival = lane.wire.front().map(|(_, packet, _)| self.cycle(packet.at.max(self.wire_free)));
            let request = lane.requests.partition_point(|request| request.ready <= now);
            let request = lane.requests.get(request).map(|request| request.ready);
            [arrival, request].into_iter().flatten().filter(|at| *at > now).min()
        };
        self.lanes.iter().filter_map(next).min().unwrap_or(Cycle::NEVER)
    }

    /// Performs the work due in the unit's next cycle. Returns the reason for idling.
    pub fn step(&mut self, unit: &mut impl Unit) -> Waits {
        let mut waits = Waits::No;
        while let Some(lane) = self.arriving(unit.now()) {
            if !self.receive(lane, unit) {
                waits = Waits::Unit;
                break;
            }
        }
        if self.is_apart && self.lanes.iter().any(|lane| lane.has_waited) {
            waits = Waits::Unit;
        }
        waits.max(self.request(unit))
    }

    /// Returns the lane of the packet that arrives next, if it is there in cycle `now`. Packets arrive in the order in
    /// which they were pushed, but a lane whose tenant uses its part of L2 pauses.
    fn arriving(&mut self, now: Cycle) -> Option<usize> {
        if !self.is_apart {
            let (_, packet, _) = self.lanes[0].wire.front()?;
            return (self.cycle(packet.at.max(self.wire_free)) <= now).then_some(0);
        }
        let mut first: Option<(u64, usize)> = None;
        for index in 0..self.lanes.len() {
            let Some((number, packet, _)) = self.lanes[index].wire.front() else { continue };
            let (number, size) = (*number, packet.bytes.len() as u32);
            if self.cycle(packet.at.max(self.wire_free)) > now {
                continue;
            }
            if self.config.units.overload != Overload::Drop && self.is_over(index, size) {
                self.wait(index);
            } else if first.is_none_or(|(least, _)| number < least) {
                first = Some((number, index));
            }
        }
        first.map(|(_, index)| index)
    }

    /// Returns true if a packet of `size` bytes exceeds the part of L2 of its tenant beside those with packets here or on
    /// the wire.
    fn is_over(&self, index: usize, size: u32) -> bool {
        let lane = &self.lanes[index];
        if !self.is_apart || lane.bytes == 0 {
            return false;
        }
        let busy = |lane: &&Lane| lane.bytes > 0 || !lane.wire.is_empty();
        let weights: u64 = self.lanes.iter().filter(busy).map(|lane| lane.weight).sum();
        let part = u64::from(self.config.l2_packet.bytes) * lane.weight / weights.max(1);
        u64::from(lane.bytes) + u64::from(size) > part
    }

    /// Receives the first packet of a lane. Returns `false` when it has to wait.
    fn receive(&mut self, lane: usize, unit: &mut impl Unit) -> bool {
        let (now, packet) = (unit.now(), &self.lanes[lane].wire[0].1);
        let size = packet.bytes.len() as u32;
        let known = self.messages.get(&packet.message);
        let is_over = known.is_none() && self.messages.len() >= self.config.inbound.message_ids as usize;
        let fits = size > 0 && size <= self.config.limits.max_packet && size <= self.config.l2_packet.bytes;
        let has_part = !self.is_over(lane, size);
        let piece = if fits && !is_over && has_part { self.ring.allocate(size) } else { None };
        let Some(piece) = piece else {
            return if fits && self.config.units.overload != Overload::Drop {
                self.wait(lane);
                false
            } else {
                let cause = match () {
                    () if !fits => &mut self.counts.dropped_size,
                    () if is_over => &mut self.counts.dropped_messages,
                    () => &mut self.counts.dropped_l2,
                };
                *cause += 1;
                drop(self.take(lane, now));
                true
            };
        };
        let packet = self.take(lane, now);
        self.lanes[lane].bytes += piece.bytes;
        self.bytes_in_use += piece.bytes;
        self.peak_bytes = self.peak_bytes.max(self.bytes_in_use);
        let address = Arena::start(Place::Packet) + piece.start;
        let ready = unit.write_packet(now, address, &packet.bytes).expect("the ring is as large as the packet buffer");
        let written = Cycle(ready.0 - u64::from(self.config.inbound.write_cycles));
        let tenant = packet.context.tenant;
        let stored =
            Stored { piece, arrived: now, written, submitted: Cycle::NEVER, bytes: size, user: packet.user, tenant };
        let place = self.stored.insert(stored);
        let message = self.messages.entry(packet.message).or_default();
        message.inside += 1;
        let her = Her {
            message: packet.message,
            flow: packet.message,
            eom: packet.is_last,
            packet: Range { address, size },
            transfer: packet.transfer.min(size),
            context: packet.context,
            user: place as u64,
        };
        self.lanes[lane].requests.push_back(Waiting { ready, her, has_waited: false });
        true
    }

    /// Takes the first packet from the wire, which is free again after its last byte and the gap.
    fn take(&mut self, lane: usize, now: Cycle) -> Arrival {
        let lane = &mut self.lanes[lane];
        let (_, packet, gap) = lane.wire.pop_front().expect("the caller has seen it");
        let begin =
            packet.at.max(self.wire_free).max(if lane.has_waited { self.clock.time(now.0) } else { Time::ZERO });
        let bytes = self.config.inbound.gap_per_byte.time(packet.bytes.len() as u64);
        self.wire_free = begin.saturating_add(bytes.max(gap));
        lane.has_waited = false;
        self.counts.arrived += 1;
        self.counts.bytes += packet.bytes.len() as u64;
        packet
    }

    /// Records that the first packet of the wire has to wait.
    fn wait(&mut self, lane: usize) {
        if !std::mem::replace(&mut self.lanes[lane].has_waited, true) {
            self.count_wait();
        }
    }

    fn count_wait(&mut self) {
        self.counts.waited += 1;
        self.counts.marked += u64::from(self.config.units.overload == Overload::Ecn);
    }

    /// Index in `holders` of a message's queue.
    fn queue(&self, message: u32) -> usize {
        message as usize % self.holders.len()
    }

    /// Returns the index of the first request that is ready in cycle `now` and whose queue is free. Other messages may
    /// depend on its message, so they let it pass. With dropping instead of waiting, no request passes another.
    fn next_request(&mut self, lane: usize, now: Cycle) -> Option<usize> {
        let ready = self.lanes[lane].requests.partition_point(|request| request.ready <= now);
        if self.config.units.overload == Overload::Drop {
            return (ready > 0).then_some(0);
        }
        for index in 0..ready {
            let message = self.lanes[lane].requests[index].her.message;
            if self.holders[self.queue(message)].is_none_or(|holder| holder.message == message) {
                return Some(index);
            }
            if !std::mem::replace(&mut self.lanes[lane].requests[index].has_waited, true) {
                self.count_wait();
            }
        }
        None
    }

    /// Submits the next request of a tenant, in turn. Returns the reason for which it, or a request behind it, waits.
    fn request(&mut self, unit: &mut impl Unit) -> Waits {
        if !self.is_apart {
            return self.request_of(0, unit);
        }
        let (count, mut waits) = (self.lanes.len(), Waits::No);
        let turn = self.turn;
        for lane in (0..count).map(|index| (turn + index) % count) {
            let accepted = self.lanes[lane].requests.len();
            waits = waits.max(self.request_of(lane, unit));
            if self.lanes[lane].requests.len() < accepted {
                self.turn = (lane + 1) % count;
                // The unit accepts one request per cycle.
                let is_ready = |lane: &Lane| lane.requests.front().is_some_and(|request| request.ready <= unit.now());
                return if self.lanes.iter().any(is_ready) { Waits::Cycle } else { waits };
            }
            if waits == Waits::Cycle {
                break;
            }
        }
        waits
    }

    /// Submits the next request of a lane. Returns the reason for which it, or a request behind it, waits.
    fn request_of(&mut self, lane: usize, unit: &mut impl Unit) -> Waits {
        let now = unit.now();
        let is_ready = |requests: &VecDeque<Waiting>| requests.front().is_some_and(|request| request.ready <= now);
        let Some(index) = self.next_request(lane, now) else {
            return if is_ready(&self.lanes[lane].requests) { Waits::Unit } else { Waits::No };
        };
        let Some(Waiting { ready, her, has_waited }) = self.lanes[lane].requests.remove(index) else {
            return Waits::No;
        };
        let next = |requests: &VecDeque<Waiting>| if is_ready(requests) { Waits::Cycle } else { Waits::No };
        let place = her.user as usize;
        let (message, eom) = (her.message, her.eom);
        match unit.submit(her) {
            Ok(()) => {
                if let Some(stored) = self.stored.get_mut(place) {
                    stored.submitted = now;
                }
                if let Some(known) = self.messages.get_mut(&message) {
                    known.has_last |= eom;
                }
                let queue = self.queue(message);
                // After its last packet, the number belongs to another message.
                let holder = self.holders[queue].filter(|holder| holder.message == message && !holder.has_ended);
                let since = holder.map_or(now, |holder| holder.since);
                self.holders[queue] = Some(Holder { message, since, has_ended: eom });
                next(&self.lanes[lane].requests)
            }
            Err((Busy::Cells | Busy::Queue, _)) if self.config.units.overload == Overload::Drop => {
                self.counts.dropped_queues += 1;
                self.release(place, message, eom);
                next(&self.lanes[lane].requests)
            }
            Err((busy, her)) => {
                if busy != Busy::Cycle && !has_waited {
                    self.count_wait();
                }
                let has_waited = has_waited || busy != Busy::Cycle;
                self.lanes[lane].requests.insert(index, Waiting { ready, her, has_waited });
                if busy == Busy::Cycle { Waits::Cycle } else { Waits::Unit }
            }
        }
    }

    /// Releases the queue of an ended message, one request of which was accepted in cycle `accepted`, unless another
    /// message already holds the queue.
    fn leave(&mut self, message: u32, accepted: Cycle) {
        let queue = self.queue(message);
        self.holders[queue].take_if(|holder| holder.message == message && holder.since <= accepted);
    }

    /// Frees the slot of a packet.
    fn release(&mut self, place: usize, message: u32, ends: bool) -> Option<Stored> {
        let stored = self.stored.try_remove(place)?;
        self.bytes_in_use -= stored.piece.bytes;
        let lane = if self.is_apart { stored.tenant as usize } else { 0 };
        self.lanes[lane].bytes -= stored.piece.bytes;
        self.ring.free(stored.piece);
        if let Some(known) = self.messages.get_mut(&message) {
            known.inside -= 1;
            known.has_last |= ends;
            if known.inside == 0 && known.has_last {
                self.messages.remove(&message);
            }
        }
        Some(stored)
    }

    /// Frees a packet that the unit finished.
    pub fn feedback(&mut self, feedback: &Feedback) -> Option<Done> {
        if let (true, Some(stored)) = (feedback.last, self.stored.get(feedback.user as usize)) {
            self.leave(feedback.message, stored.submitted);
        }
        let Stored { arrived, written, submitted, bytes, user, tenant, .. } =
            self.release(feedback.user as usize, feedback.message, feedback.last)?;
        self.counts.fed_back += 1;
        Some(Done { user, arrived, written, submitted, bytes, tenant })
    }

    /// Forgets a message that the unit gave up and that has no packet there.
    pub fn forget(&mut self, message: u32) {
        self.leave(message, Cycle::NEVER);
        if let Some(known) = self.messages.get_mut(&message) {
            known.has_last = true;
            if known.inside == 0 {
                self.messages.remove(&message);
            }
        }
    }
}
