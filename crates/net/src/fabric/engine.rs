use std::collections::BTreeMap;

use sim::Time;
use sim::memory::HugePageSlice;

use super::answers::{Answers, Signal};
use super::credit::Credits;
use super::link::{Kind, LinkState};
use super::packet::{Hash, Mark, NOWHERE, NewPacket, Packet, Role, Way};
use super::parameters::{Flow, Parameters, Routing};
use super::queues::Queues;
use super::route;
use super::statistics::Crossing;
use crate::losses::{Fate, Loss, LossyPlace};
use crate::slab::Slab;
use crate::topology::{Link, RouteState};
use crate::{NetError, Topology};

/// An event of a fabric, of 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet's head is at its output port.
    Hop(u32),
    /// Credit of a virtual channel has returned.
    Credit(u32),
    /// A lost packet is to be retransmitted.
    Retransmit(u32),
    /// The last byte of a packet that is answered, or of an answer, is at its host.
    Delivered(u32),
    /// A link whose packets wait in queues is free.
    Free(u32),
    /// A pause frame for a virtual channel has reached the channel's sender.
    Pause(u32),
    /// A frame that ends a pause has.
    Resume(u32),
}

/// The surroundings of a fabric: a queue of events, and the ports of the hosts.
pub(crate) trait Edge {
    /// Schedules an event, which the fabric [handles](Fabric::handle) at `at`.
    fn schedule(&mut self, at: Time, event: Event);
    /// Reports that there is credit for the packet with this token, and that its host's link is free at `free`. Returns
    /// when the packet leaves.
    #[inline]
    fn leaves(&mut self, _token: u32, now: Time, free: Time, _kind: Kind) -> Time {
        now.max(free)
    }
    /// Like [`leaves`](Edge::leaves), for a packet that this host sends by itself.
    #[inline]
    fn answers(&mut self, _host: u32, now: Time, free: Time, _bytes: u32, _kind: Kind) -> Time {
        now.max(free)
    }
    /// Reports the time of a packet on its host's link.
    fn left(&mut self, left: Left);
    /// Reports the time of a packet on the link to its receiver.
    fn arrives(&mut self, arrival: Arrival);
    /// Reports that a packet was discarded at `at`, because a link has damaged it.
    fn lost(&mut self, token: u32, at: Time);
}

/// A packet on its host's link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub token: u32,
    /// When its first byte leaves.
    pub start: Time,
    /// When its last byte leaves.
    pub end: Time,
    pub bytes: u32,
    /// The rate and latency of the link.
    pub kind: Kind,
}

/// A packet on the link to its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub token: u32,
    /// When its first byte arrives.
    pub first: Time,
    /// When its last byte arrives.
    pub last: Time,
}

/// How times are rounded that are not a whole number of picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Up: a link is occupied for at least the time of a packet's bytes.
    Up,
    /// Down: a link never delays a train of packets that arrives at its own rate; the sending port keeps the
    /// remainders.
    Down,
}

/// The simulation.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(super) topology: Topology,
    pub(super) parameters: Parameters,
    pub(super) hosts: u32,
    classes: u8,
    /// Number of virtual channels of a link.
    pub(super) vcs: u32,
    pub(super) time_out: Time,
    pub(super) kinds: Vec<Kind>,
    pub(super) links: HugePageSlice<LinkState>,
    /// The credits of each virtual channel of a link.
    pub(super) credits: Credits,
    /// The number of packets lost at each link.
    pub(super) drops: Vec<u64>,
    pub(super) packets: Slab<Packet>,
    pub(super) sent_packets: u64,
    pub(super) resent: u64,
    pub(super) hops: u64,
    /// The times of packets on links, if they are recorded.
    pub(super) crossings: Option<Vec<Crossing>>,
    /// Answers and notifications, if there are any.
    pub(super) answers: Answers,
    /// The queues of the links, if packets wait in queues.
    pub(super) queues: Queues,
    /// Links that damage packets, the number of the loss that says so, and the fate of their packets.
    lossy: BTreeMap<u32, Vec<(usize, Fate)>>,
}

impl Fabric {
    /// An empty fabric.
    ///
    /// # Errors
    /// When a parameter is impossible.
    pub fn new(topology: Topology, parameters: Parameters, rounding: Rounding) -> Result<Fabric, NetError> {
        parameters.check()?;
        let kind = |link: &Link| Kind {
            gap_per_byte: link.gap_per_byte.unwrap_or(parameters.gap_per_byte),
            latency: link.latency.unwrap_or(parameters.wire),
            rounding: if rounding == Rounding::Up { 999 } else { 0 },
        };
        let mut kinds: Vec<Kind> = topology.links().iter().map(kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut links = HugePageSlice::filled(LinkState::UNUSED, topology.links().len());
        for (state, link) in links.iter_mut().zip(topology.links()) {
            let kind = kinds.partition_point(|other| *other < kind(link)) as u32;
            *state = LinkState { to: link.to, kind, ..*state };
        }
        let classes = if parameters.routing == Routing::Adaptive { topology.classes() } else { 1 };
        let vcs = topology.vcs(classes);
        let channels = if parameters.flow == Flow::Credits { links.len() * vcs as usize } else { 0 };
        let queues = match parameters.has_queues() {
            true => Queues::new(&parameters, links.len(), vcs, &kinds)?,
            false => Queues::default(),
        };
        // The maximum time of a packet that is not lost: at each link, a full queue, its own bytes and the latencies.
        let slowest = kinds.iter().map(|kind| kind.gap_per_byte).max().unwrap_or_default();
        let latency = kinds.iter().map(|kind| kind.latency).max().unwrap_or_default();
        let queue = slowest.time(parameters.buffer.saturating_add(2 * u64::from(parameters.mtu)));
        let link = queue.saturating_add(latency).saturating_add(parameters.switch);
        // A packet that is acknowledged must not be sent again while its acknowledgement is on the way.
        let ways = if parameters.transport.ack > 0 { 2 } else { 1 };
        let time_out = link.as_ps().checked_mul(ways * u64::from(topology.longest_path()));
        Ok(Fabric {
            hosts: topology.hosts(),
            classes,
            vcs,
            time_out: time_out.map_or(Parameters::LONGEST, Time::from_ps).min(Parameters::LONGEST),
            credits: Credits::new(channels),
            packets: Slab::new(Packet::NEW),
            sent_packets: 0,
            resent: 0,
            hops: 0,
            drops: vec![0; if parameters.flow == Flow::Drop { links.len() } else { 0 }],
            crossings: None,
            lossy: BTreeMap::new(),
            answers: Answers::new(&parameters),
            queues,
            kinds,
            links,
            topology,
            parameters,
        })
    }

    /// Damages packets on links from now on: they cross the link and are discarded at its end, as by the check of their sum.
    ///
    /// # Errors
    /// When a link does not exist.
    pub fn set_losses(&mut self, losses: &[Loss], seed: u64) -> Result<(), NetError> {
        for (number, Loss { place, rate }) in losses.iter().enumerate() {
            let LossyPlace::Link { from, to } = place else { continue };
            let names = |link: &Link| (self.topology.name(link.from), self.topology.name(link.to));
            let links = self.topology.links().iter().enumerate();
            let found: Vec<usize> =
                links.filter(|(_, link)| names(link) == (from.clone(), to.clone())).map(|(number, _)| number).collect();
            if found.is_empty() {
                let example = self.topology.links().first().map(names).unwrap_or_default();
                return Err(NetError::NoLink { from: from.clone(), to: to.clone(), example });
            }
            for link in found {
                let fate = Fate::new(seed, number, link as u64, *rate);
                self.lossy.entry(link as u32).or_default().push((number, fate));
            }
        }
        Ok(())
    }

    /// The number of packets that each loss has taken on a link, by its number.
    pub fn lost(&self) -> impl Iterator<Item = (usize, u64)> {
        self.lossy.values().flatten().map(|(number, fate)| (*number, fate.lost))
    }

    /// Whether a link damages the packet that crosses it now.
    #[inline]
    fn damages(&mut self, link: u32) -> bool {
        !self.lossy.is_empty()
            && self
                .lossy
                .get_mut(&link)
                .is_some_and(|fates| fates.iter_mut().fold(false, |lost, (_, fate)| fate.loses() | lost))
    }

    /// Records the times of packets on links from now on.
    pub fn set_tracing(&mut self) {
        self.crossings = Some(Vec::new());
    }

    /// The recorded times of packets on links, in the order in which they were assigned.
    pub fn crossings(&self) -> &[Crossing] {
        self.crossings.as_deref().unwrap_or_default()
    }

    /// Names of the vertices where a link starts and ends.
    pub fn link_name(&self, link: u32) -> (String, String) {
        let Link { from, to, .. } = self.topology.links()[link as usize];
        (self.topology.name(from), self.topology.name(to))
    }

    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    pub fn parameters(&self) -> &Parameters {
        &self.parameters
    }

    /// Number of packets that passed a link, so far.
    pub fn packet_hops(&self) -> u64 {
        self.hops
    }

    /// The packets. Their hosts may put them into lists until they leave.
    pub fn packets(&mut self) -> &mut Slab<Packet> {
        &mut self.packets
    }

    #[inline]
    pub fn kind(&self, link: u32) -> &Kind {
        &self.kinds[self.links[link as usize].kind as usize]
    }

    /// The link of a host to its switch.
    #[inline]
    pub fn link_of(&self, host: u32) -> u32 {
        self.topology.first(host)
    }

    /// The time from which the link of a host is free.
    #[inline]
    pub fn free(&self, host: u32) -> Time {
        self.links[self.link_of(host) as usize].free
    }

    /// Occupies the link of a host until this time.
    pub fn occupy(&mut self, host: u32, end: Time) {
        let link = self.link_of(host);
        let free = &mut self.links[link as usize].free;
        *free = end.max(*free);
    }

    /// The host that has sent the first packet of an event; host 0 if there is no such packet any more.
    pub fn sender(&self, event: Event) -> u32 {
        let packet = match event {
            Event::Hop(packet) | Event::Retransmit(packet) | Event::Delivered(packet) => Some(packet),
            Event::Credit(channel) => self.credits[channel].first(),
            Event::Free(_) | Event::Pause(_) | Event::Resume(_) => None,
        };
        packet.map_or(0, |packet| self.packets[packet].from)
    }

    /// Creates a packet, which its host [injects](Fabric::inject) later.
    #[inline]
    pub fn packet(&mut self, packet: NewPacket) -> u32 {
        let NewPacket { from, to, bytes, token } = packet;
        let number = if self.parameters.routing == Routing::Adaptive { self.sent_packets + 1 } else { 0 };
        let hash = Hash::new(self.parameters.seed, from, to, number);
        self.sent_packets += 1;
        self.packets.insert(Packet { token, from, to, bytes, hash, ..Packet::NEW })
    }

    /// Queues a packet for its host's link. It leaves at once or, without credit, when the packets before it have left
    /// and there is credit.
    #[inline]
    pub fn inject(&mut self, now: Time, packet: u32, edge: &mut impl Edge) {
        let state = &mut self.packets[packet];
        state.joined = now;
        let from = state.from;
        self.join(now, self.topology.first(from), 0, packet, edge);
    }

    /// Handles an event at `now`. Returns what the hosts are to know, if there is anything.
    #[inline]
    #[must_use]
    pub fn handle(&mut self, now: Time, event: Event, edge: &mut impl Edge) -> Option<Signal> {
        match event {
            Event::Hop(packet) => self.hop(now, packet, edge),
            Event::Credit(channel) => self.credit_came(now, channel, edge),
            Event::Retransmit(packet) => {
                self.again(packet);
                if self.packets[packet].marks.is_news() {
                    return Some(Signal::Resend(packet));
                }
                self.inject(now, packet, edge);
            }
            Event::Delivered(packet) => return self.delivered(now, packet, edge),
            Event::Free(link) => self.is_free(now, link, edge),
            Event::Pause(channel) => self.queues.pause(now, channel),
            Event::Resume(channel) => self.resume(now, channel, edge),
        }
        None
    }

    /// Prepares a packet for being sent again.
    pub(super) fn again(&mut self, packet: u32) {
        self.resent += 1;
        let state = &mut self.packets[packet];
        (state.channel, state.state) = (NOWHERE, RouteState::default());
        state.marks.set(Mark::Congested, false);
    }

    /// The bytes of a packet on links.
    #[inline]
    pub(super) fn size(&self, packet: &Packet) -> u32 {
        if packet.marks.has(Mark::Trimmed) { self.parameters.transport.trim.header } else { packet.bytes }
    }

    #[inline]
    pub(super) fn is_adaptive(&self) -> bool {
        self.parameters.routing == Routing::Adaptive
    }

    /// Handles a packet whose head has passed a switch.
    #[inline]
    fn hop(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        let packet = &self.packets[id];
        if packet.marks.has(Mark::Damaged) {
            return self.discard(now, id, edge);
        }
        let Way { link, vc, class } = if self.is_adaptive() {
            route::adaptive(&self.topology, self.classes, &self.links, now, packet)
        } else {
            packet.way
        };
        let bytes = self.size(packet);
        let kind = *self.kind(link);
        let state = &mut self.links[link as usize];
        let queue = state.queue(now);
        let backlog = queue + kind.transmission(bytes);
        if self.parameters.flow == Flow::Drop && kind.bytes_in(backlog) > self.parameters.buffer {
            return self.lose(now, link, id, edge);
        }
        state.counts.see(backlog);
        if self.answers.has_marks() {
            self.mark(id, kind.bytes_in(queue));
        }
        let packet = &mut self.packets[id];
        packet.joined = now;
        packet.state.class = class;
        self.join(now, link, vc, id, edge);
    }

    /// Puts a packet at the end of a queue, or onto the link.
    #[inline]
    pub(super) fn join(&mut self, now: Time, link: u32, vc: u8, id: u32, edge: &mut impl Edge) {
        if self.queues.are_used() {
            return self.enqueue(now, link, vc, id, edge);
        }
        let channel = link * self.vcs + u32::from(vc);
        let has_buffer = self.parameters.flow == Flow::Credits && self.links[link as usize].to >= self.hosts;
        if has_buffer {
            let bytes = self.packets[id].bytes;
            let is_waited_for = self.credits[channel].is_waited_for();
            if is_waited_for || !self.credits.take(channel, now, bytes, self.parameters.buffer) {
                if let Some(last) = self.credits[channel].wait(id) {
                    self.packets[last].next = id;
                }
                let transmission = self.kind(link).transmission(bytes);
                self.links[link as usize].blocked += transmission;
                return self.wake(channel, edge);
            }
        }
        self.transmit(now, link, channel, id, edge);
    }

    /// Sends a packet over its link, for which it has credit.
    #[inline]
    pub(super) fn transmit(&mut self, now: Time, link: u32, channel: u32, id: u32, edge: &mut impl Edge) {
        self.hops += 1;
        let is_damaged = self.damages(link);
        let bytes = self.size(&self.packets[id]);
        let packet = &mut self.packets[id];
        let &mut Packet { token, from, channel: came, kind: came_by, marks, .. } = packet;
        let is_from_host = came == NOWHERE;
        let is_news = marks.is_news();
        let state = &mut self.links[link as usize];
        let kind = self.kinds[state.kind as usize];
        let transmission = kind.transmission(bytes);
        let start = if is_from_host {
            match is_news {
                true => edge.leaves(token, now, state.free, kind),
                false => edge.answers(from, now, state.free, bytes, kind),
            }
        } else if came_by == state.kind {
            now.max(state.free)
        } else {
            let arrival = self.kinds[came_by as usize].transmission(bytes);
            now.max(state.free).max(packet.joined + arrival.saturating_sub(transmission))
        };
        let end = start + transmission;
        state.free = end;
        state.counts.add(start - packet.joined, transmission, bytes);
        if let Some(crossings) = &mut self.crossings {
            crossings.push(Crossing { link, from: packet.from, to: packet.to, bytes, start, end });
        }
        let (to, its_kind) = (state.to, state.kind);
        if to < self.hosts {
            let (first, last) = (start + kind.latency, end + kind.latency);
            if is_damaged {
                self.damaged(last, id, edge);
            } else {
                if is_news && !marks.has(Mark::Trimmed) {
                    edge.arrives(Arrival { token, first, last });
                }
                match self.answers.are_sent() {
                    true => edge.schedule(last, Event::Delivered(id)),
                    false => _ = self.packets.remove(id),
                }
            }
        } else {
            packet.marks.set(Mark::Damaged, is_damaged);
            (packet.channel, packet.kind, packet.at) = (channel, its_kind, to);
            if is_from_host {
                packet.sent = start;
            } else {
                packet.state.hops += 1;
            }
            if self.parameters.routing == Routing::Ecmp {
                let way = route::fixed(&self.topology, to, &self.packets[id]);
                self.packets[id].way = way;
            }
            edge.schedule(start + kind.latency + self.parameters.switch, Event::Hop(id));
        }
        if is_from_host {
            if is_news {
                edge.left(Left { token, start, end, bytes, kind });
            }
        } else if self.parameters.flow == Flow::Credits {
            let back = end + self.kinds[came_by as usize].latency;
            self.credits.give(came, now, back, bytes);
            self.wake(came, edge);
        }
    }

    /// Schedules a check of a channel's queue for the return of the next credit, if any packet waits.
    #[inline]
    fn wake(&mut self, channel: u32, edge: &mut impl Edge) {
        if let Some(at) = self.credits.next_wake(channel) {
            edge.schedule(at, Event::Credit(channel));
        }
    }

    fn credit_came(&mut self, now: Time, channel: u32, edge: &mut impl Edge) {
        let link = channel / self.vcs;
        self.credits[channel].woken(now);
        while let Some(id) = self.credits[channel].first() {
            let Packet { bytes, next, .. } = self.packets[id];
            if !self.credits.take(channel, now, bytes, self.parameters.buffer) {
                return self.wake(channel, edge);
            }
            self.credits[channel].stop_waiting(next);
            let transmission = self.kind(link).transmission(bytes);
            let blocked = &mut self.links[link as usize].blocked;
            *blocked = blocked.saturating_sub(transmission);
            self.transmit(now, link, channel, id, edge);
        }
    }

    /// Discards a packet that its last link has damaged. Its room is free again when its tail is there.
    fn discard(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        let Packet { bytes, channel, kind, .. } = self.packets[id];
        let kind = self.kinds[kind as usize];
        let end = now + kind.transmission(bytes);
        if self.parameters.flow == Flow::Credits {
            self.credits.give(channel, now, end + kind.latency, bytes);
            self.wake(channel, edge);
        }
        self.damaged(end, id, edge);
    }

    /// A link has damaged a packet, which is found at `at`.
    fn damaged(&mut self, at: Time, id: u32, edge: &mut impl Edge) {
        let Packet { token, marks, .. } = self.packets[id];
        if marks.is_news() {
            self.packets.remove(id);
            edge.lost(token, at);
        } else {
            self.lose_answer(at, id, edge);
        }
    }

    fn lose(&mut self, now: Time, link: u32, id: u32, edge: &mut impl Edge) {
        self.drops[link as usize] += 1;
        match self.packets[id].marks.role() {
            Role::Data => self.retransmit(now, id, edge),
            _ => self.lose_answer(now, id, edge),
        }
    }

    /// Sends a packet of data again after its time-out.
    pub(super) fn retransmit(&mut self, now: Time, id: u32, edge: &mut impl Edge) {
        /// The maximum number of times that the time-out doubles.
        const MOST_DOUBLINGS: u8 = 10;
        let packet = &mut self.packets[id];
        let time_out = self.time_out * (1 << packet.losses.min(MOST_DOUBLINGS));
        packet.losses = packet.losses.saturating_add(1);
        edge.schedule(now.max(packet.sent + time_out), Event::Retransmit(id));
    }
}
