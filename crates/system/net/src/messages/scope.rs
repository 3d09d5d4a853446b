// SPDX-License-Identifier: Apache-2.0
//! Scope of a simulation: the whole network or a part of it, with parcels for the simulations of the other parts.

use std::fmt::Debug;
use std::sync::Arc;

use sim::Time;

use super::in_flight::{Announcement, InFlightMessage};
use crate::fabric::{Frame, Packet, ReturnedCredit};
use crate::partition::Partition;
use crate::slab::{NOBODY, Slab};

/// Hosts, switches and links of a simulation.
#[allow(private_interfaces, reason = "the methods are for this crate")]
pub trait Scope: Debug {
    /// Returns true if the simulation has this host or switch.
    fn has_vertex(&self, vertex: u32) -> bool;
    /// Returns true if the simulation has the sending end of this link.
    fn has_link(&self, link: u32) -> bool;
    /// Passes a packet, with the packet that it is about, to the simulation of a switch.
    fn send_packet(
        &mut self,
        _vertex: u32,
        _packet: Packet,
        _subject: Option<Packet>,
        _messages: &Slab<InFlightMessage>,
    ) {
    }
    /// Passes a packet that must be retransmitted to the simulation of its host.
    fn send_back(&mut self, _packet: Packet, _messages: &Slab<InFlightMessage>) {}
    /// Passes credit to the simulation of the sending end of a link.
    fn return_credit(&mut self, _link: u32, _credit: ReturnedCredit) {}
    /// Passes a pause or resume frame to the simulation of the sending end of a link.
    fn send_frame(&mut self, _link: u32, _frame: Frame) {}
    /// Announces a message to the simulation of its receiver.
    fn announce(&mut self, _announcement: Announcement) {}
    /// Reports to the simulation of a sender that its message with this number has arrived.
    fn is_received(&mut self, _from: u32, _origin: u32) {}
}

/// The whole network.
#[derive(Clone, Copy, Debug)]
pub struct Whole;

impl Scope for Whole {
    #[inline(always)]
    fn has_vertex(&self, _: u32) -> bool {
        true
    }

    #[inline(always)]
    fn has_link(&self, _: u32) -> bool {
        true
    }
}

/// Parcels for another part: effects of a window there, after its end.
#[derive(Debug, Default)]
pub struct Parcels {
    pub(super) announcements: Vec<Announcement>,
    /// Packets under way. The packet that an answer is about follows it.
    pub(super) packets: Vec<Packet>,
    /// Lost packets, for retransmission.
    pub(super) returned: Vec<Packet>,
    pub(super) credits: Vec<ReturnedCredit>,
    pub(super) frames: Vec<Frame>,
    /// Messages that have arrived.
    pub(super) received: Vec<u32>,
}

impl Parcels {
    /// Returns the number of parcels.
    pub fn len(&self) -> usize {
        let Parcels { announcements, packets, returned, credits, frames, received } = self;
        announcements.len() + packets.len() + returned.len() + credits.len() + frames.len() + received.len()
    }

    /// Returns true without parcels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A part of the network.
#[derive(Debug)]
pub struct Part {
    partition: Arc<Partition>,
    me: u8,
    /// For each part, the parcels for it.
    out: Vec<Parcels>,
    /// Earliest time of a parcel since it was last asked for.
    earliest: Time,
    /// For each part, the numbers of announced messages here by their numbers there.
    announced: Vec<Vec<u32>>,
}

impl Part {
    /// Creates part `me` of a partition.
    pub(super) fn new(partition: Arc<Partition>, me: usize) -> Part {
        let parts = partition.parts();
        let out = std::iter::repeat_with(Parcels::default).take(parts).collect();
        Part { partition, me: me as u8, out, earliest: Time::MAX, announced: vec![Vec::new(); parts] }
    }

    pub(super) fn take_earliest(&mut self) -> Time {
        std::mem::replace(&mut self.earliest, Time::MAX)
    }

    pub(super) fn swap_parcels(&mut self, to: usize, parcels: &mut Parcels) {
        std::mem::swap(&mut self.out[to], parcels);
    }

    /// Records the number of a message announced by another part.
    pub(super) fn is_announced(&mut self, from: usize, origin: u32, message: u32) {
        let numbers = &mut self.announced[from];
        if numbers.len() <= origin as usize {
            numbers.resize(origin as usize + 1, NOBODY);
        }
        numbers[origin as usize] = message;
    }

    /// Returns true if the token of a packet is a number here, but its sender is elsewhere.
    fn is_announced_here(&self, packet: &Packet) -> bool {
        packet.marks.is_news() && self.has_vertex(packet.to) && !self.has_vertex(packet.from)
    }

    /// Converts the token of a packet that comes from another part: at the receiver's, it is the message's number there,
    /// otherwise that at the sender's.
    pub(super) fn accept(&self, packet: Packet) -> Packet {
        if !self.is_announced_here(&packet) {
            return packet;
        }
        let from = self.partition.of_vertex(packet.from);
        Packet { token: self.announced[usize::from(from)][packet.token as usize], ..packet }
    }

    /// Converts the token of a packet for another part.
    fn leaving(&self, packet: Packet, messages: &Slab<InFlightMessage>) -> Packet {
        if !self.is_announced_here(&packet) {
            return packet;
        }
        Packet { token: messages[packet.token].origin, ..packet }
    }

    fn parcels_of_vertex(&mut self, vertex: u32) -> &mut Parcels {
        &mut self.out[usize::from(self.partition.of_vertex(vertex))]
    }

    fn parcels_of_link(&mut self, link: u32) -> &mut Parcels {
        &mut self.out[usize::from(self.partition.of_link(link))]
    }
}

#[allow(private_interfaces, reason = "the methods are for this crate")]
impl Scope for Part {
    #[inline(always)]
    fn has_vertex(&self, vertex: u32) -> bool {
        self.partition.of_vertex(vertex) == self.me
    }

    #[inline(always)]
    fn has_link(&self, link: u32) -> bool {
        self.partition.of_link(link) == self.me
    }

    fn send_packet(&mut self, vertex: u32, packet: Packet, subject: Option<Packet>, messages: &Slab<InFlightMessage>) {
        let packet = self.leaving(packet, messages);
        self.earliest = self.earliest.min(packet.joined);
        let packets = &mut self.parcels_of_vertex(vertex).packets;
        packets.push(packet);
        packets.extend(subject);
    }

    fn send_back(&mut self, packet: Packet, messages: &Slab<InFlightMessage>) {
        let packet = self.leaving(packet, messages);
        self.earliest = self.earliest.min(packet.joined);
        self.parcels_of_vertex(packet.from).returned.push(packet);
    }

    fn return_credit(&mut self, link: u32, credit: ReturnedCredit) {
        self.earliest = self.earliest.min(credit.at);
        self.parcels_of_link(link).credits.push(credit);
    }

    fn send_frame(&mut self, link: u32, frame: Frame) {
        self.earliest = self.earliest.min(frame.at);
        self.parcels_of_link(link).frames.push(frame);
    }

    fn announce(&mut self, announcement: Announcement) {
        self.parcels_of_vertex(announcement.to).announcements.push(announcement);
    }

    fn is_received(&mut self, from: u32, origin: u32) {
        self.parcels_of_vertex(from).received.push(origin);
    }
}
