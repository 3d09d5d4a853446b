// SPDX-License-Identifier: Apache-2.0
//! State of a fabric, and its interface to the hosts.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use sim::Time;
use sim::memory::HugePageSlice;

use super::answers::Answers;
use super::credit::Credits;
use super::link::{Kind, LinkState};
use super::packet::{Hash, Mark, NewPacket, Packet};
use super::parameters::{Flow, Parameters, Routing};
use super::queues::Queues;
use super::statistics::Crossing;
use crate::losses::{Fate, Loss, LossyPlace};
use crate::slab::Slab;
use crate::topology::Link;
use crate::{NetError, Topology};

/// An event of a fabric, in 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A packet's head reaches its output port.
    Hop(u32),
    /// Credit of a virtual channel returns.
    Credit(u32),
    /// A lost packet must be retransmitted.
    Retransmit(u32),
    /// The last byte of a control packet, or of a packet that causes one, arrives at its host.
    Delivered(u32),
    /// A link with queued packets becomes free.
    Free(u32),
    /// A pause frame for a virtual channel reaches the channel's sender.
    Pause(u32),
    /// A resume frame for a virtual channel reaches the channel's sender.
    Resume(u32),
}

/// Interface of a fabric to an event queue and the ports of the hosts.
pub(crate) trait Edge {
    /// Schedules an event, which the fabric [handles](Fabric::handle) at `at`. Simultaneous events are in the order of
    /// their [keys](crate::order).
    fn schedule(&mut self, at: Time, key: u64, event: Event);
    /// Reports credit for the packet with this token, and that its host's link is free at `free`. Returns the departure
    /// time of the packet.
    #[inline]
    fn leaves(&mut self, _token: u32, now: Time, free: Time, _kind: Kind) -> Time {
        now.max(free)
    }
    /// Like [`leaves`](Edge::leaves), for a control packet that this host sends autonomously.
    #[inline]
    fn answers(&mut self, _host: u32, now: Time, free: Time, _bytes: u32, _kind: Kind) -> Time {
        now.max(free)
    }
    /// Reports the time of a packet on its host's link.
    fn left(&mut self, left: Left);
    /// Reports the time of a packet on the link to its receiver.
    fn arrives(&mut self, arrival: Arrival);
    /// Reports that a packet damaged by a link was discarded at `at`.
    fn lost(&mut self, token: u32, at: Time);
    /// Returns true if this simulation has this host or switch.
    #[inline(always)]
    fn has_vertex(&self, _vertex: u32) -> bool {
        true
    }
    /// Returns true if this simulation has the sending end of this link.
    #[inline(always)]
    fn has_link(&self, _link: u32) -> bool {
        true
    }
    /// Passes a packet, with the packet that it is about, to the simulation of a switch; `joined` is the time at which
    /// its head has passed the switch.
    fn send_packet(&mut self, _vertex: u32, _packet: Packet, _subject: Option<Packet>) {}
    /// Passes a packet to the simulation of its host, which retransmits it at the time `joined`.
    fn send_back(&mut self, _packet: Packet) {}
    /// Passes credit to the simulation of the sending end of a link.
    fn return_credit(&mut self, _link: u32, _credit: ReturnedCredit) {}
    /// Passes a pause or resume frame to the simulation of the sending end of a link.
    fn send_frame(&mut self, _link: u32, _frame: Frame) {}
}

/// Credit that returns to a channel at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReturnedCredit {
    pub channel: u32,
    pub at: Time,
    pub bytes: u32,
}

/// A frame that pauses or resumes a channel at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    pub channel: u32,
    pub at: Time,
    pub event: Event,
}

/// A packet on its host's link.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Left {
    pub token: u32,
    /// Departure of the first byte.
    pub start: Time,
    /// Departure of the last byte.
    pub end: Time,
    pub bytes: u32,
    /// Rate and latency of the link.
    pub kind: Kind,
}

/// A packet on the link to its receiver.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub token: u32,
    /// Arrival of the first byte.
    pub first: Time,
    /// Arrival of the last byte.
    pub last: Time,
}

/// Rounding of times with fractions of picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rounding {
    /// Up: a link is occupied for at least the time of a packet's bytes.
    Up,
    /// Down: a link never delays a train of packets that arrives at its own rate; the sending port keeps the
    /// remainders.
    Down,
}

/// Returns the ranges of numbers below `count` for which `has` is true.
pub(crate) fn ranges(count: u32, has: impl Fn(u32) -> bool) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for number in (0..count).filter(|number| has(*number)).map(|number| number as usize) {
        match ranges.last_mut() {
            Some(last) if last.end == number => last.end += 1,
            _ => ranges.push(number..number + 1),
        }
    }
    ranges
}

/// Simulation of a packet network, or of some of its hosts and switches.
#[derive(Debug)]
pub(crate) struct Fabric {
    pub(super) topology: Arc<Topology>,
    pub(super) parameters: Parameters,
    pub(super) hosts: u32,
    pub(super) classes: u8,
    /// Number of virtual channels of a link.
    pub(super) vcs: u32,
    pub(super) time_out: Time,
    /// Minimum latency of the links.
    pub(super) least_latency: Time,
    pub(super) kinds: Vec<Kind>,
    pub(super) links: HugePageSlice<LinkState>,
    /// Credits of all virtual channels.
    pub(super) credits: Credits,
    /// Number of packets lost at each link.
    pub(super) drops: Vec<u64>,
    pub(super) packets: Slab<Packet>,
    pub(super) sent_packets: u64,
    /// Number of packets of each host so far, for adaptive routing.
    numbers: Vec<u32>,
    pub(super) resent: u64,
    pub(super) hops: u64,
    /// Times of packets on links, if recorded.
    pub(super) crossings: Option<Vec<Crossing>>,
    /// State of the control packets.
    pub(super) answers: Answers,
    /// Queues of the links, if packets wait in queues.
    pub(super) queues: Queues,
    /// Links that damage packets, with the number of each loss and its state.
    lossy: BTreeMap<u32, Vec<(usize, Fate)>>,
}

impl Fabric {
    /// Creates an empty fabric.
    ///
    /// # Errors
    /// If a parameter is invalid.
    pub fn new(topology: Topology, parameters: Parameters, rounding: Rounding) -> Result<Fabric, NetError> {
        Fabric::of_vertices(topology.into(), parameters, rounding, |_| true)
    }

    /// Creates an empty fabric for a simulation of the hosts and switches for which `has` is true.
    ///
    /// # Errors
    /// If a parameter is invalid.
    pub fn of_vertices(
        topology: Arc<Topology>,
        parameters: Parameters,
        rounding: Rounding,
        has: impl Fn(u32) -> bool,
    ) -> Result<Fabric, NetError> {
        parameters.check()?;
        let vertices = ranges(topology.hosts() + topology.switches(), has);
        let own = topology.links_of(&vertices);
        let kind = |link: &Link| Kind {
            gap_per_byte: link.gap_per_byte.unwrap_or(parameters.gap_per_byte),
            latency: link.latency.unwrap_or(parameters.wire),
            rounding: if rounding == Rounding::Up { 999 } else { 0 },
        };
        let mut kinds: Vec<Kind> = Vec::new();
        for link in topology.links() {
            let kind = kind(link);
            // Links of one kind are usually consecutive.
            if kinds.last() != Some(&kind) {
                kinds.push(kind);
            }
        }
        kinds.sort_unstable();
        kinds.dedup();
        // SAFETY: a link of zero bytes is valid.
        let mut links = unsafe { HugePageSlice::partly_filled(LinkState::UNUSED, topology.links().len(), &own) };
        for range in &own {
            for (state, link) in links[range.clone()].iter_mut().zip(&topology.links()[range.clone()]) {
                let kind = kinds.partition_point(|other| *other < kind(link)) as u32;
                *state = LinkState { to: link.to, kind, ..*state };
            }
        }
        let classes = if parameters.routing == Routing::Adaptive { topology.classes() } else { 1 };
        let vcs = topology.vcs(classes);
        let of_channels: Vec<_> = own.iter().map(|own| own.start * vcs as usize..own.end * vcs as usize).collect();
        let credits = match parameters.flow {
            Flow::Credits => Credits::new(links.len() * vcs as usize, &of_channels),
            _ => Credits::new(0, &[]),
        };
        let queues = match parameters.has_queues() {
            true => Queues::new(&parameters, links.len(), vcs, &kinds)?,
            false => Queues::default(),
        };
        // Maximum time of a packet that is not lost: at each link, a full queue, its own bytes and the latencies.
        let slowest = kinds.iter().map(|kind| kind.gap_per_byte).max().unwrap_or_default();
        let latency = kinds.iter().map(|kind| kind.latency).max().unwrap_or_default();
        let least_latency = kinds.iter().map(|kind| kind.latency).min().unwrap_or_default();
        let numbers = if parameters.routing == Routing::Adaptive { topology.hosts() as usize } else { 0 };
        let queue = slowest.time(parameters.buffer.saturating_add(2 * u64::from(parameters.mtu)));
        let link = queue.saturating_add(latency).saturating_add(parameters.switch);
        // A packet must not be retransmitted while its acknowledgement is in flight.
        let ways = if parameters.transport.ack > 0 { 2 } else { 1 };
        let time_out = link.as_ps().checked_mul(ways * u64::from(topology.longest_path()));
        Ok(Fabric {
            hosts: topology.hosts(),
            classes,
            vcs,
            least_latency,
            numbers: vec![0; numbers],
            time_out: time_out.map_or(Parameters::LONGEST, Time::from_ps).min(Parameters::LONGEST),
            credits,
            packets: Slab::new(Packet::NEW),
            sent_packets: 0,
            resent: 0,
            hops: 0,
            drops: vec![0; if parameters.flow == Flow::Drop { links.len() } else { 0 }],
            crossings: None,
            lossy: BTreeMap::new(),
            answers: Answers::new(&parameters, links.len()),
            queues,
            kinds,
            links,
            topology,
            parameters,
        })
    }

    /// Damages packets on links from now on: they cross the link and are discarded at its end, as by a checksum error.
    ///
    /// # Errors
    /// If a link does not exist.
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

    /// Returns the number of packets lost on a link by each loss, with the number of the loss.
    pub fn lost(&self) -> impl Iterator<Item = (usize, u64)> {
        self.lossy.values().flatten().map(|(number, fate)| (*number, fate.lost))
    }

    /// Returns true if a link damages the packet that crosses it now.
    #[inline]
    pub(super) fn damages(&mut self, link: u32) -> bool {
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

    /// Returns the recorded times of packets on links, in the order of assignment.
    pub fn crossings(&self) -> &[Crossing] {
        self.crossings.as_deref().unwrap_or_default()
    }

    /// Returns the names of a link's start and end vertices.
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

    /// Returns the number of packet hops over links so far.
    pub fn packet_hops(&self) -> u64 {
        self.hops
    }

    /// Returns the packets. Their hosts may link them into lists until they leave.
    pub fn packets(&mut self) -> &mut Slab<Packet> {
        &mut self.packets
    }

    #[inline]
    pub fn kind(&self, link: u32) -> &Kind {
        &self.kinds[self.links[link as usize].kind as usize]
    }

    /// Returns the link from a host to its switch.
    #[inline]
    pub fn link_of(&self, host: u32) -> u32 {
        self.topology.first(host)
    }

    /// Returns the time from which the link of a host is free.
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

    /// Returns the sender of an event's first packet, or host 0 if that packet no longer exists.
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
        let number = if self.is_adaptive() { self.next_number(from) } else { 0 };
        let hash = Hash::new(self.parameters.seed, from, to, number);
        self.sent_packets += 1;
        self.packets.insert(Packet { token, from, to, bytes, hash, ..Packet::NEW })
    }

    /// Returns the number of the next packet of a host, from 1.
    pub(super) fn next_number(&mut self, host: u32) -> u64 {
        let number = &mut self.numbers[host as usize];
        *number = number.wrapping_add(1);
        u64::from(*number)
    }

    /// Returns the bytes of a packet on links.
    #[inline]
    pub(super) fn size(&self, packet: &Packet) -> u32 {
        if packet.marks.has(Mark::Trimmed) { self.parameters.transport.trim.header } else { packet.bytes }
    }

    #[inline]
    pub(super) fn is_adaptive(&self) -> bool {
        self.parameters.routing == Routing::Adaptive
    }
}
