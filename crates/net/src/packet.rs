//! A packet-level simulation of a [`Topology`]: messages become packets, packets queue for links.
//!
//! - **Switches cut through.** What counts of a packet is its head: it meets the wire's latency and the switching delay,
//!   joins the first-come-first-served queue of its output port, and leaves when the link is free, its bytes following at
//!   the link's rate. So a message pays its bytes once and the path's latency once, as in the sPIN paper's network (§4.2)
//!   and LogGP. A blocked packet is held as a whole (virtual cut-through). Before a faster link the head waits until the
//!   tail cannot fall behind.
//! - **Credits.** With [`Flow::Credits`] every lane of every link has a buffer at its far end. A packet leaves only when
//!   there is room for it, else all of its lane wait behind it; the room comes back one wire latency after the packet's
//!   tail has left that buffer. Nothing is lost, and congestion spreads backwards. Lanes and routes are such that no link
//!   can come to wait for itself (see the topologies).
//! - **Drop.** With [`Flow::Drop`] each output port of a switch has a buffer, and what finds no room is lost. The sending
//!   card sends it again after a time-out that no packet on its way can reach, twice as long with each further loss.
//!   Acknowledgements have no weight.
//!
//! A hop is one event. When a packet's head is at a port, all that decides when it leaves is known, unless it lacks
//! credit: then the return of credit is an event too.

mod card;
mod credit;
mod prefetch;
mod route;
mod slab;
mod stats;

pub use stats::{LinkReport, Report};

use sim::memory::Large;
use sim::{EventQueue, Rate, Time};

use crate::topology::{Link, Trail};
use crate::{NetError, Topology};
use card::{Card, Transfer};
use credit::Credits;
use route::{Hash, Way};
use slab::Slab;
use stats::Counts;

/// How links and switches behave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Inverse bandwidth of a link (G)
    pub gap_per_byte: Rate,
    /// Latency of a link
    pub wire: Time,
    /// Time of a packet's head through a switch
    pub switch: Time,
    /// Largest packet in bytes
    pub mtu: u32,
    /// Least time between the starts of two messages at a card, beyond the bytes after the first (g)
    pub gap: Time,
    /// Bytes of a buffer: of a link's lane with credits, of a switch's output port with drop
    pub buffer: u64,
    /// What happens when it is full
    pub flow: Flow,
    /// How a packet chooses among equally short ways
    pub routing: Routing,
    /// Of the choices by hash
    pub seed: u64,
}

/// What happens when a buffer is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Packets wait for credit.
    Credits,
    /// Packets are lost, and sent again by the card.
    Drop,
}

/// How a packet chooses among equally short ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// By a hash of its sender and receiver: packets of a pair keep their order.
    Ecmp,
    /// Each packet at each switch takes the shortest queue, of equal ones by a hash of the packet. Packets may overtake.
    Adaptive,
}

/// Something that happens in the network. 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A card goes on sending.
    Card(u32),
    /// A packet's head is at its output port.
    Hop(u32),
    /// Credit of a lane has come back.
    Credit(u32),
    /// The last byte of a message has left its card.
    Sent(u32),
    /// The last byte of a message has arrived.
    Arrived(u32),
    /// A lost packet is to be sent again.
    Again(u32),
}

/// What the network tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notice {
    /// The last byte of the message with this token has left its card. Only if asked for.
    Sent(u32),
    /// All of the message with this token has arrived.
    Arrived(u32),
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Host that sends.
    pub from: u32,
    /// Host that receives. A message to the same host turns around in its card and meets no link.
    pub to: u32,
    /// Size; an empty message costs what one of a byte costs.
    pub bytes: u64,
    /// What [`Notice`]s call it.
    pub token: u32,
    /// Whether to tell when it has left.
    pub tell_sent: bool,
    /// Goes before all other messages of the card, between two packets, and pays no gap: the card's own answers. Of one
    /// packet.
    pub is_urgent: bool,
}

/// No channel: the packet is still in its card.
const NOWHERE: u32 = u32::MAX;

// What a hop needs is in as few lines of the cache as can be: a packet, a link and a credit have one each.

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Packet {
    transfer: u32,
    to: u32,
    bytes: u32,
    hash: Hash,
    /// The channel by which it came and whose buffer it fills, or [`NOWHERE`].
    channel: u32,
    /// The kind of that link, and the vertex at its end.
    kind: u32,
    at: u32,
    /// Who waits behind it for credit, or in its card.
    next: u32,
    /// How it will leave where it is, if that is known before its head is through the switch: without a choice.
    way: Way,
    trail: Trail,
    losses: u8,
    /// When it joined the queue where it is.
    joined: Time,
    /// When it left its card.
    sent: Time,
}

impl Packet {
    const NEW: Packet = Packet {
        transfer: 0,
        to: 0,
        bytes: 0,
        hash: Hash::NONE,
        channel: NOWHERE,
        kind: 0,
        at: 0,
        next: 0,
        way: Way { link: 0, lane: 0, class: 0 },
        trail: Trail { hops: 0, class: 0 },
        losses: 0,
        joined: Time::ZERO,
        sent: Time::ZERO,
    };
}

/// A link.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Wire {
    /// Until when it is taken.
    free: Time,
    /// How long those packets will take it that wait for credit.
    held: Time,
    to: u32,
    /// Its place among the kinds.
    kind: u32,
    counts: Counts,
}

impl Wire {
    const UNUSED: Wire = Wire { free: Time::ZERO, held: Time::ZERO, to: 0, kind: 0, counts: Counts::NONE };
}

/// What all links of a kind have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Kind {
    gap_per_byte: Rate,
    latency: Time,
}

impl Kind {
    /// How long so many bytes take a link.
    #[inline]
    fn transmission(&self, bytes: u32) -> Time {
        self.gap_per_byte.time(u64::from(bytes))
    }

    /// The bytes that take it so long.
    fn bytes_in(&self, time: Time) -> u64 {
        let rate = self.gap_per_byte.as_fs_per_byte();
        if rate == 0 { 0 } else { (u128::from(time.as_ps()) * 1000 / u128::from(rate)).try_into().unwrap_or(u64::MAX) }
    }
}

/// The simulation.
#[derive(Debug)]
pub struct PacketNetwork {
    topology: Topology,
    parameters: Parameters,
    hosts: u32,
    classes: u8,
    lanes: u32,
    time_out: Time,
    kinds: Vec<Kind>,
    wires: Large<Wire>,
    /// By channel: a lane of a link.
    credits: Credits,
    /// By link, packets lost.
    drops: Vec<u64>,
    cards: Large<Card>,
    packets: Slab<Packet>,
    transfers: Slab<Transfer>,
    sent_packets: u64,
    resent: u64,
    hops: u64,
}

/// No latency is longer.
const LONGEST: Time = Time::from_ns(1_000_000_000);

impl PacketNetwork {
    /// An empty network.
    ///
    /// # Errors
    /// When a parameter is impossible.
    pub fn new(topology: Topology, parameters: Parameters) -> Result<PacketNetwork, NetError> {
        parameters.check()?;
        let kind = |link: &Link| Kind {
            gap_per_byte: link.gap_per_byte.unwrap_or(parameters.gap_per_byte),
            latency: link.latency.unwrap_or(parameters.wire),
        };
        let mut kinds: Vec<Kind> = topology.links().iter().map(kind).collect();
        kinds.sort_unstable();
        kinds.dedup();
        let mut wires = Large::filled(Wire::UNUSED, topology.links().len());
        for (wire, link) in wires.iter_mut().zip(topology.links()) {
            let kind = kinds.partition_point(|other| *other < kind(link)) as u32;
            *wire = Wire { to: link.to, kind, ..*wire };
        }
        let classes = if parameters.routing == Routing::Adaptive { topology.classes() } else { 1 };
        let lanes = topology.lanes(classes);
        let channels = if parameters.flow == Flow::Credits { wires.len() * lanes as usize } else { 0 };
        // Longer than any packet that is not lost can take: at each link, a full queue, its own bytes and the latencies.
        let slowest = kinds.iter().map(|kind| kind.gap_per_byte).max().unwrap_or_default();
        let latency = kinds.iter().map(|kind| kind.latency).max().unwrap_or_default();
        let queue = slowest.time(parameters.buffer.saturating_add(2 * u64::from(parameters.mtu)));
        let link = queue.saturating_add(latency).saturating_add(parameters.switch);
        let time_out = link.as_ps().checked_mul(u64::from(topology.longest_path()));
        let hosts = topology.hosts();
        Ok(PacketNetwork {
            hosts,
            classes,
            lanes,
            time_out: time_out.map_or(LONGEST, Time::from_ps).min(LONGEST),
            credits: Credits::new(channels),
            cards: Large::filled(Card::IDLE, hosts as usize),
            packets: Slab::new(Packet::NEW),
            transfers: Slab::new(Transfer::NEW),
            sent_packets: 0,
            resent: 0,
            hops: 0,
            drops: vec![0; if parameters.flow == Flow::Drop { wires.len() } else { 0 }],
            kinds,
            wires,
            topology,
            parameters,
        })
    }

    /// The topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Packets that passed a link, so far.
    pub fn packet_hops(&self) -> u64 {
        self.hops
    }

    #[inline]
    fn kind(&self, link: u32) -> &Kind {
        &self.kinds[self.wires[link as usize].kind as usize]
    }

    /// What happens at `now`, as the queue gave it back.
    #[inline]
    pub fn handle<E: From<Event>>(&mut self, now: Time, event: Event, queue: &mut EventQueue<E>) -> Option<Notice> {
        match event {
            Event::Hop(packet) => self.hop(now, packet, queue),
            Event::Card(host) => self.card_goes_on(now, host, queue),
            Event::Credit(channel) => self.credit_came(now, channel, queue),
            Event::Again(packet) => self.send_again(now, packet, queue),
            Event::Sent(transfer) => return Some(Notice::Sent(self.transfers[transfer].token)),
            Event::Arrived(transfer) => return Some(Notice::Arrived(self.transfers.remove(transfer).token)),
        }
        None
    }

    /// A packet's head is through a switch.
    #[inline]
    fn hop<E: From<Event>>(&mut self, now: Time, id: u32, queue: &mut EventQueue<E>) {
        let packet = &self.packets[id];
        let Way { link, lane, class } = if self.is_adaptive() { self.choose(now, packet) } else { packet.way };
        let bytes = packet.bytes;
        let kind = *self.kind(link);
        let wire = &mut self.wires[link as usize];
        let backlog = wire.queue(now) + kind.transmission(bytes);
        if self.parameters.flow == Flow::Drop && kind.bytes_in(backlog) > self.parameters.buffer {
            return self.lose(now, link, id, queue);
        }
        wire.counts.see(backlog);
        let packet = &mut self.packets[id];
        packet.joined = now;
        packet.trail.class = class;
        self.join(now, link, lane, id, queue);
    }

    /// Puts a packet at the end of a queue, or on the link.
    #[inline]
    fn join<E: From<Event>>(&mut self, now: Time, link: u32, lane: u8, id: u32, queue: &mut EventQueue<E>) {
        let channel = link * self.lanes + u32::from(lane);
        let has_buffer = self.parameters.flow == Flow::Credits && self.wires[link as usize].to >= self.hosts;
        if has_buffer {
            let bytes = self.packets[id].bytes;
            let is_waited_for = self.credits[channel].is_waited_for();
            if is_waited_for || !self.credits.take(channel, now, bytes, self.parameters.buffer) {
                if let Some(last) = self.credits[channel].wait(id) {
                    self.packets[last].next = id;
                }
                let transmission = self.kind(link).transmission(bytes);
                self.wires[link as usize].held += transmission;
                return self.wake(channel, queue);
            }
        }
        self.transmit(now, link, channel, id, queue);
    }

    /// Sends a packet that may go over its link.
    #[inline]
    fn transmit<E: From<Event>>(&mut self, now: Time, link: u32, channel: u32, id: u32, queue: &mut EventQueue<E>) {
        self.hops += 1;
        let packet = &mut self.packets[id];
        let &mut Packet { transfer, bytes, channel: came, kind: came_by, .. } = packet;
        let is_from_card = came == NOWHERE;
        let wire = &mut self.wires[link as usize];
        let kind = self.kinds[wire.kind as usize];
        let transmission = kind.transmission(bytes);
        let mut start = now.max(wire.free);
        if !is_from_card && came_by != wire.kind {
            let arrival = self.kinds[came_by as usize].transmission(bytes);
            start = start.max(packet.joined + arrival.saturating_sub(transmission));
        }
        let end = start + transmission;
        wire.free = end;
        wire.counts.add(start - packet.joined, transmission, bytes);
        if wire.to < self.hosts {
            self.packets.remove(id);
            self.arrive(transfer, end + kind.latency, queue);
        } else {
            let to = wire.to;
            (packet.channel, packet.kind, packet.at) = (channel, wire.kind, to);
            if is_from_card {
                packet.sent = start;
            } else {
                packet.trail.hops += 1;
            }
            if self.parameters.routing == Routing::Ecmp {
                let way = self.fixed_way(to, &self.packets[id]);
                self.packets[id].way = way;
            }
            queue.push(start + kind.latency + self.parameters.switch, Event::Hop(id).into());
        }
        if is_from_card {
            self.card_sent(transfer, end, queue);
        } else if self.parameters.flow == Flow::Credits {
            let back = end + self.kinds[came_by as usize].latency;
            self.credits.give(came, now, back, bytes);
            self.wake(came, queue);
        }
    }

    /// Counts a packet of a message that will have arrived in full at `at`.
    fn arrive<E: From<Event>>(&mut self, id: u32, at: Time, queue: &mut EventQueue<E>) {
        let transfer = &mut self.transfers[id];
        transfer.on_the_way -= 1;
        transfer.latest = transfer.latest.max(at);
        if transfer.on_the_way == 0 && transfer.is_sent() {
            queue.push(transfer.latest, Event::Arrived(id).into());
        }
    }

    /// Has a lane's queue looked at when the next credit is back, if anybody waits.
    #[inline]
    fn wake<E: From<Event>>(&mut self, channel: u32, queue: &mut EventQueue<E>) {
        if let Some(at) = self.credits.next_wake(channel) {
            queue.push(at, Event::Credit(channel).into());
        }
    }

    fn credit_came<E: From<Event>>(&mut self, now: Time, channel: u32, queue: &mut EventQueue<E>) {
        let link = channel / self.lanes;
        self.credits[channel].woken(now);
        while let Some(id) = self.credits[channel].first() {
            let Packet { bytes, next, .. } = self.packets[id];
            if !self.credits.take(channel, now, bytes, self.parameters.buffer) {
                return self.wake(channel, queue);
            }
            self.credits[channel].stop_waiting(next);
            let transmission = self.kind(link).transmission(bytes);
            let held = &mut self.wires[link as usize].held;
            *held = held.saturating_sub(transmission);
            self.transmit(now, link, channel, id, queue);
        }
    }

    fn lose<E: From<Event>>(&mut self, now: Time, link: u32, id: u32, queue: &mut EventQueue<E>) {
        /// The time-out does not double for ever.
        const MOST_DOUBLINGS: u8 = 10;
        self.drops[link as usize] += 1;
        let packet = &mut self.packets[id];
        let time_out = self.time_out * (1 << packet.losses.min(MOST_DOUBLINGS));
        packet.losses = packet.losses.saturating_add(1);
        queue.push(now.max(packet.sent + time_out), Event::Again(id).into());
    }

    fn send_again<E: From<Event>>(&mut self, now: Time, id: u32, queue: &mut EventQueue<E>) {
        self.resent += 1;
        let packet = &mut self.packets[id];
        packet.channel = NOWHERE;
        packet.trail = Trail::default();
        let from = self.transfers[packet.transfer].from;
        self.hurry(from, id);
        self.kick(now, from, queue);
    }
}

impl Parameters {
    fn check(&self) -> Result<(), NetError> {
        let wrong = |parameter, what: String| Err(NetError::Parameter { parameter, what });
        if self.mtu == 0 || self.mtu > 1 << 30 {
            return wrong("mtu", format!("must be 1 to 2^30 bytes, is {}", self.mtu));
        }
        if self.buffer < u64::from(self.mtu) {
            return wrong("buffer", format!("must hold a packet of {} bytes (mtu), is {}", self.mtu, self.buffer));
        }
        for (parameter, time) in [("link-latency", self.wire), ("switch-latency", self.switch), ("g", self.gap)] {
            if time > LONGEST {
                return wrong(parameter, format!("must be at most a second, is {time}"));
            }
        }
        if self.gap_per_byte > Rate::from_fs_per_byte(1_000_000_000_000) {
            return wrong("G", "must be at most 1000000 ns a byte (1 kB/s)".into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
