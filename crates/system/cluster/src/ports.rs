// SPDX-License-Identifier: Apache-2.0
//! A card's access to the cluster: event queue, network, host memory and user messages.

use std::rc::Rc;

use net::{Injection, Interconnect};
use nic::{
    Departure, DropReason, Drops, Header, MemoryFault, NicEvent, Notice, Packet, Ports, Printed, Slice, Timeline, Track,
};
use sim::{EventQueue, SharedBandwidth, Time, TimePerByte};

use crate::event::Event;
use crate::failure::InternalError;
use crate::memory::HostMemory;
use crate::outlet::{Outlet, for_card};
use crate::places::Places;
use crate::user_messages::Messages;

/// Access of one node's card to the cluster.
pub struct CardPorts<'a, E, M> {
    pub(crate) now: Time,
    /// Rank that uses the card, or index of a switch's card.
    pub(crate) rank: u32,
    pub(crate) node: u32,
    /// True if the card is dead: no packet leaves it.
    pub(crate) is_dead: bool,
    /// True if ranks live in real time, and may call at any time.
    pub(crate) is_live: bool,
    pub(crate) places: &'a mut Places,
    /// Names of the nodes' processes; empty for "rank N".
    pub(crate) names: &'a [String],
    pub(crate) memory: &'a mut M,
    /// Bandwidth of the host's memory, if card and CPU share it.
    pub(crate) bandwidth: Option<&'a mut SharedBandwidth>,
    pub(crate) queue: &'a mut EventQueue<Event<E>>,
    pub(crate) interconnect: &'a mut Interconnect<Box<Packet>>,
    pub(crate) notices: &'a mut Vec<(u32, Notice)>,
    pub(crate) timeline: &'a mut Timeline,
    pub(crate) messages: &'a mut Messages,
    pub(crate) failure: &'a mut Option<InternalError>,
}

impl<E, M> CardPorts<'_, E, M> {
    /// Returns true if the card belongs to a host, false if it belongs to a switch.
    fn has_host(&self) -> bool {
        (self.rank as usize) < self.places.ranks()
    }

    /// Returns the rank of the process with this index on the card.
    fn rank_of(&self, process: u32) -> u32 {
        self.places.beside(self.rank as usize).get(process as usize).copied().unwrap_or(self.rank)
    }
}

impl<E, M: HostMemory> Ports for CardPorts<'_, E, M> {
    fn now(&self) -> Time {
        self.now
    }

    fn horizon(&self) -> Time {
        if self.is_live { self.now } else { self.queue.peek_time().unwrap_or(Time::MAX) }
    }

    fn schedule(&mut self, at: Time, event: NicEvent) {
        self.queue.push(at, Event::Card(self.rank, event));
    }

    fn inject(&mut self, target: u32, bytes: u64, gap: Time) -> Option<Departure> {
        let packet = Injection { from: self.node, to: self.places.node(target as usize) as u32, bytes, gap };
        let departure = self.interconnect.inject(self.now, packet, &mut Outlet(self.queue, self.places)).map(for_card);
        if departure.is_none() {
            self.places.block(self.rank);
        }
        departure
    }

    fn transmit(&mut self, departure: Departure, packet: Box<Packet>) {
        if self.is_dead {
            return;
        }
        let target = self.places.node(packet.header.target as usize) as u32;
        let Departure { ticket, start, end } = departure;
        let departure = net::Departure { ticket, start, end };
        self.interconnect.transmit(self.node, target, departure, packet, &mut Outlet(self.queue, self.places));
    }

    fn give_up(&mut self, header: Rc<Header>, place: u64) {
        self.queue.push(self.now, Event::Card(header.target, NicEvent::GivenUp(header, place)));
    }

    fn is_lossy(&self) -> bool {
        self.interconnect.is_lossy()
    }

    fn read_host(&mut self, addr: u64, out: &mut [u8]) -> Result<(), MemoryFault> {
        match self.has_host() {
            true => self.memory.read(self.rank, addr, out),
            false => Err(MemoryFault { addr, len: out.len() as u64 }),
        }
    }

    fn write_host(&mut self, addr: u64, bytes: &[u8]) -> Result<(), MemoryFault> {
        match self.has_host() {
            true => self.memory.write(self.rank, addr, bytes),
            false => Err(MemoryFault { addr, len: bytes.len() as u64 }),
        }
    }

    fn memory_rate(&mut self, rate: TimePerByte, bytes: u64, start: impl FnOnce() -> Time) -> TimePerByte {
        match &mut self.bandwidth {
            Some(bandwidth) => bandwidth.reserve(self.now, start(), bytes, rate),
            None => rate,
        }
    }

    fn notify(&mut self, notice: Notice) {
        if self.has_host() {
            self.notices.push((self.rank, notice));
        }
    }

    fn name_of(&self, node: u32) -> String {
        match self.interconnect.switches().get((node as usize).wrapping_sub(self.places.ranks())) {
            Some(switch) => format!("switch {switch}"),
            None => self.names.get(node as usize).cloned().unwrap_or_else(|| format!("rank {node}")),
        }
    }

    fn warn(&mut self, message: String) {
        self.messages.warn(self.now, message);
    }

    fn dropped(&mut self, reason: DropReason, drops: Drops) {
        self.messages.dropped(reason, &drops);
    }

    fn found(&mut self, process: u32, mistake: String) {
        self.messages.found(&self.name_of(self.rank_of(process)), &mistake);
    }

    fn print(&mut self, printed: Printed) {
        self.messages.print(&self.name_of(self.rank_of(printed.process)), &printed);
    }

    fn internal_error(&mut self, error: nic::InternalError) {
        self.failure.get_or_insert(InternalError { node: self.node, at: self.now, error });
    }

    fn tracing(&self) -> bool {
        self.timeline.is_on()
    }

    fn slice(&mut self, slice: Slice<'_>) {
        let rank = match slice.track {
            Track::Hpu { process, .. } => self.rank_of(process),
            _ => self.rank,
        };
        self.timeline.slice(rank as usize, slice);
    }
}
