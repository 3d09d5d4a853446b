//! The inbound engine (§III-A): it writes packets into a ring in the L2 packet buffer, requests handlers for them, and frees them by
//! the unit's feedback, in any order.

use std::collections::VecDeque;
use std::rc::Rc;

use machine::Pspin as Config;
use machine::pspin::Overload;
use pspin_unit::her::{Busy, ExecutionContext, Feedback, Her, Range};
use pspin_unit::memory::{Allocation, Arena, Place, Ring};
use pspin_unit::{Cycle, Unit};
use rustc_hash::FxHashMap;
use sim::{Clock, Time};

/// A packet that arrives from the network, and what the match-action table says about it.
#[derive(Clone, Debug)]
pub struct Arrival {
    /// When its first byte arrives. Packets arrive in the order in which they are given; one that would arrive before the packet
    /// in front of it is complete arrives behind it.
    pub at: Time,
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The number of its message, which tells its home cluster.
    pub message: u32,
    /// Whether it is the last of its message.
    pub is_last: bool,
    /// The number of its bytes that are copied to L1.
    pub transfer: u32,
    /// What its message is processed with.
    pub context: Rc<ExecutionContext>,
    /// A number of the caller.
    pub user: u64,
}

/// What became of packets. `arrived` is the sum of `fed_back`, the drops, and what is inside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets whose first byte has arrived.
    pub arrived: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets that the unit has fed back.
    pub fed_back: u64,
    /// Packets that were dropped because L2 had no room.
    pub dropped_l2: u64,
    /// Packets that were dropped because the message queues had no room.
    pub dropped_queues: u64,
    /// Packets that were dropped because too many messages were in progress.
    pub dropped_messages: u64,
    /// Packets that were dropped because they are empty or longer than the unit takes.
    pub dropped_size: u64,
    /// Packets that were marked because they had to wait (`accelerator.overload = "ecn"`).
    pub marked: u64,
    /// Packets that had to wait for room.
    pub waited: u64,
}

impl Counts {
    /// All packets that were dropped.
    pub fn dropped(&self) -> u64 {
        self.dropped_l2 + self.dropped_queues + self.dropped_messages + self.dropped_size
    }
}

/// A packet that the unit is done with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// The number of the caller.
    pub user: u64,
    /// When its first byte arrived.
    pub arrived: Cycle,
    /// When its last byte was in L2.
    pub written: Cycle,
    /// When the unit took its request.
    pub submitted: Cycle,
    /// The length of the packet.
    pub bytes: u32,
}

/// What the inbound engine waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Waits {
    /// Nothing but packets that come, and requests that are not ready yet.
    No,
    /// Something in the unit has to happen before it can go on.
    Unit,
    /// The next cycle: the unit takes a request in each.
    Cycle,
}

/// A packet in L2.
struct Stored {
    piece: Allocation,
    arrived: Cycle,
    written: Cycle,
    submitted: Cycle,
    bytes: u32,
    user: u64,
}

/// A packet in L2 whose request waits.
struct Waiting {
    /// When all of it is in L2.
    ready: Cycle,
    her: Her,
    has_waited: bool,
}

/// A message that has a queue of the unit.
#[derive(Clone, Copy)]
struct Holder {
    message: u32,
    /// When its first request was accepted: one with the same number may have had the queue before.
    since: Cycle,
    /// Its last packet has been accepted.
    has_ended: bool,
}

/// The inbound engine.
pub struct Inbound {
    config: Rc<Config>,
    clock: Clock,
    ring: Ring,
    /// Packets that have not arrived, in order, each with the least time from its beginning to that of the next one.
    wire: VecDeque<(Arrival, Time)>,
    /// When the wire is free for the next packet.
    wire_free: Time,
    /// Whether the first of `wire` has been counted as one that waits.
    has_waited: bool,
    /// Packets whose requests have not been accepted, in order.
    requests: VecDeque<Waiting>,
    /// The message that has each queue of the unit.
    holders: Vec<Option<Holder>>,
    /// Packets in L2, by the number that the unit gets for them.
    stored: Vec<Option<Stored>>,
    free: Vec<usize>,
    /// Packets in L2 of each message, and whether its last one is among them or has been.
    messages: FxHashMap<u32, (u32, bool)>,
    /// Bytes of packets in L2, and the most that there were.
    in_use: (u32, u32),
    counts: Counts,
}

impl Inbound {
    /// An engine with an empty ring.
    pub fn new(config: Rc<Config>, clock: Clock) -> Inbound {
        Inbound {
            ring: Ring::new(config.l2_packet.bytes, config.cluster.slot),
            clock,
            wire: VecDeque::new(),
            wire_free: Time::ZERO,
            has_waited: false,
            requests: VecDeque::new(),
            holders: vec![None; config.mpq.queues as usize],
            stored: Vec::new(),
            free: Vec::new(),
            messages: FxHashMap::default(),
            in_use: (0, 0),
            counts: Counts::default(),
            config,
        }
    }

    /// What became of packets so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Number of packets that have not arrived.
    pub fn coming(&self) -> usize {
        self.wire.len()
    }

    /// Number of packets in L2.
    pub fn inside(&self) -> usize {
        self.stored.len() - self.free.len()
    }

    /// The most bytes of L2 that packets had at a time.
    pub fn peak_bytes(&self) -> u32 {
        self.in_use.1
    }

    /// A packet will arrive behind those that were given before, and the next one no sooner than `gap` after the beginning of
    /// this one.
    pub fn push(&mut self, packet: Arrival, gap: Time) {
        self.wire.push_back((packet, gap));
    }

    /// The first cycle that does not begin before a time.
    fn cycle(&self, time: Time) -> Cycle {
        let cycles = self.clock.cycles(time);
        Cycle(if self.clock.time(cycles) < time { cycles + 1 } else { cycles })
    }

    /// The first cycle after `now` in which a packet arrives or a request is ready; never without such.
    pub fn next_after(&self, now: Cycle) -> Cycle {
        let arrival = self.wire.front().map(|(packet, _)| self.cycle(packet.at.max(self.wire_free)));
        let request = self.requests.partition_point(|request| request.ready <= now);
        let request = self.requests.get(request).map(|request| request.ready);
        [arrival, request].into_iter().flatten().filter(|at| *at > now).min().unwrap_or(Cycle::NEVER)
    }

    /// Does what is due in the unit's next cycle. Returns what it waits for.
    pub fn step(&mut self, unit: &mut impl Unit) -> Waits {
        let mut waits = Waits::No;
        while let Some((packet, _)) = self.wire.front()
            && self.cycle(packet.at.max(self.wire_free)) <= unit.now()
        {
            if !self.receive(unit) {
                waits = Waits::Unit;
                break;
            }
        }
        waits.max(self.request(unit))
    }

    /// The first packet of the wire arrives. Returns `false` when it has to wait.
    fn receive(&mut self, unit: &mut impl Unit) -> bool {
        let (now, packet) = (unit.now(), &self.wire[0].0);
        let size = packet.bytes.len() as u32;
        let known = self.messages.get(&packet.message);
        let is_over = known.is_none() && self.messages.len() >= self.config.inbound.message_ids as usize;
        let fits = size > 0 && size <= self.config.limits.max_packet && size <= self.config.l2_packet.bytes;
        let piece = if fits && !is_over { self.ring.allocate(size) } else { None };
        let Some(piece) = piece else {
            return if fits && self.config.units.overload != Overload::Drop {
                self.wait();
                false
            } else {
                let cause = match () {
                    () if !fits => &mut self.counts.dropped_size,
                    () if is_over => &mut self.counts.dropped_messages,
                    () => &mut self.counts.dropped_l2,
                };
                *cause += 1;
                drop(self.take(now));
                true
            };
        };
        let packet = self.take(now);
        self.in_use.0 += piece.bytes;
        self.in_use.1 = self.in_use.1.max(self.in_use.0);
        let address = Arena::start(Place::Packet) + piece.start;
        let ready = unit.write_packet(now, address, &packet.bytes).expect("the ring is as large as the packet buffer");
        let written = Cycle(ready.0 - u64::from(self.config.inbound.write_cycles));
        let stored = Stored { piece, arrived: now, written, submitted: Cycle::NEVER, bytes: size, user: packet.user };
        let place = self.free.pop().unwrap_or(self.stored.len());
        if place == self.stored.len() {
            self.stored.push(None);
        }
        self.stored[place] = Some(stored);
        let message = self.messages.entry(packet.message).or_default();
        message.0 += 1;
        let her = Her {
            message: packet.message,
            flow: packet.message,
            eom: packet.is_last,
            packet: Range { address, size },
            transfer: packet.transfer.min(size),
            context: packet.context,
            user: place as u64,
        };
        self.requests.push_back(Waiting { ready, her, has_waited: false });
        true
    }

    /// Takes the first packet from the wire, which is free again when its last byte has arrived and the gap has passed.
    fn take(&mut self, now: Cycle) -> Arrival {
        let (packet, gap) = self.wire.pop_front().expect("the caller has seen it");
        let begin =
            packet.at.max(self.wire_free).max(if self.has_waited { self.clock.time(now.0) } else { Time::ZERO });
        let bytes = self.config.inbound.gap_per_byte.time(packet.bytes.len() as u64);
        self.wire_free = begin.saturating_add(bytes.max(gap));
        self.has_waited = false;
        self.counts.arrived += 1;
        self.counts.bytes += packet.bytes.len() as u64;
        packet
    }

    /// The first packet of the wire has to wait.
    fn wait(&mut self) {
        if !self.has_waited {
            self.has_waited = true;
            self.count_wait();
        }
    }

    fn count_wait(&mut self) {
        self.counts.waited += 1;
        self.counts.marked += u64::from(self.config.units.overload == Overload::Ecn);
    }

    /// The place in `holders` of the queue of a message.
    fn queue(&self, message: u32) -> usize {
        message as usize % self.holders.len()
    }

    /// The first request that is ready in cycle `now` and need not wait for the queue of another message. Its message may be what
    /// the others wait for, so they let it pass. What is dropped rather than kept waiting lets nobody pass.
    fn next_request(&mut self, now: Cycle) -> Option<usize> {
        let ready = self.requests.partition_point(|request| request.ready <= now);
        if self.config.units.overload == Overload::Drop {
            return (ready > 0).then_some(0);
        }
        for index in 0..ready {
            let message = self.requests[index].her.message;
            if self.holders[self.queue(message)].is_none_or(|holder| holder.message == message) {
                return Some(index);
            }
            if !std::mem::replace(&mut self.requests[index].has_waited, true) {
                self.count_wait();
            }
        }
        None
    }

    /// Submits the next request. Returns what it, or those behind it, wait for.
    fn request(&mut self, unit: &mut impl Unit) -> Waits {
        let now = unit.now();
        let is_ready = |requests: &VecDeque<Waiting>| requests.front().is_some_and(|request| request.ready <= now);
        let Some(index) = self.next_request(now) else {
            return if is_ready(&self.requests) { Waits::Unit } else { Waits::No };
        };
        let Some(Waiting { ready, her, has_waited }) = self.requests.remove(index) else { return Waits::No };
        let next = |requests: &VecDeque<Waiting>| if is_ready(requests) { Waits::Cycle } else { Waits::No };
        let place = her.user as usize;
        let (message, eom) = (her.message, her.eom);
        match unit.submit(her) {
            Ok(()) => {
                if let Some(stored) = &mut self.stored[place] {
                    stored.submitted = now;
                }
                if let Some(known) = self.messages.get_mut(&message) {
                    known.1 |= eom;
                }
                let queue = self.queue(message);
                // Behind its last packet, the number is that of another message.
                let holder = self.holders[queue].filter(|holder| holder.message == message && !holder.has_ended);
                let since = holder.map_or(now, |holder| holder.since);
                self.holders[queue] = Some(Holder { message, since, has_ended: eom });
                next(&self.requests)
            }
            Err((Busy::Cells | Busy::Queue, _)) if self.config.units.overload == Overload::Drop => {
                self.counts.dropped_queues += 1;
                self.release(place, message, eom);
                next(&self.requests)
            }
            Err((busy, her)) => {
                if busy != Busy::Cycle && !has_waited {
                    self.count_wait();
                }
                let has_waited = has_waited || busy != Busy::Cycle;
                self.requests.insert(index, Waiting { ready, her, has_waited });
                if busy == Busy::Cycle { Waits::Cycle } else { Waits::Unit }
            }
        }
    }

    /// A message has ended of which a request was accepted in this cycle: its queue is free, unless another one has it already.
    fn leave(&mut self, message: u32, accepted: Cycle) {
        let queue = self.queue(message);
        self.holders[queue].take_if(|holder| holder.message == message && holder.since <= accepted);
    }

    /// Frees the place of a packet.
    fn release(&mut self, place: usize, message: u32, ends: bool) -> Option<Stored> {
        let stored = self.stored.get_mut(place)?.take()?;
        self.free.push(place);
        self.in_use.0 -= stored.piece.bytes;
        self.ring.free(stored.piece);
        if let Some(known) = self.messages.get_mut(&message) {
            known.0 -= 1;
            known.1 |= ends;
            if *known == (0, true) {
                self.messages.remove(&message);
            }
        }
        Some(stored)
    }

    /// The unit is done with a packet, which is freed.
    pub fn feedback(&mut self, feedback: &Feedback) -> Option<Done> {
        if let (true, Some(Some(stored))) = (feedback.last, self.stored.get(feedback.user as usize)) {
            self.leave(feedback.message, stored.submitted);
        }
        let Stored { arrived, written, submitted, bytes, user, .. } =
            self.release(feedback.user as usize, feedback.message, feedback.last)?;
        self.counts.fed_back += 1;
        Some(Done { user, arrived, written, submitted, bytes })
    }

    /// The unit has given up a message of which it has no packet.
    pub fn forget(&mut self, message: u32) {
        self.leave(message, Cycle::NEVER);
        if let Some(known) = self.messages.get_mut(&message) {
            known.1 = true;
            if known.0 == 0 {
                self.messages.remove(&message);
            }
        }
    }
}
