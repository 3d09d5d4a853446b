//! The card: injection, packet reception, matching, DMA, and what completes an operation.
//!
//! One [`Card`] a node. The simulator calls [`Card::handle`] with the events that the card scheduled through its
//! [`Ports`], and the functions of [`crate::api`] for the host's library calls.

mod close;
pub(crate) mod complete;
mod receive;
mod send;

use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use abi::portals::NiFail;
use machine::Machine;
use sim::{Pipe, Time, Train};

use crate::message::{Header, MessageId, OpToken, Packet, Response};
use crate::portals::{Delivery as Taken, Placement, Portals, TriggeredOp, default_limits};
use crate::ports::{Departure, PacketId, Ports, Slice, Track};
use crate::region::Region;
use crate::spin::{HostTransfer, Spin, SpinMessage};
use crate::stats::{HandlerStats, Stats};

/// Something that happens at a card.
#[derive(Debug)]
pub enum CardEvent {
    /// A message from host memory enters the send queue.
    Send(Box<Outgoing>),
    /// A packet's data has come from host memory.
    Fetched(Box<Fetch>),
    /// The port will soon be free for packets whose data is still in host memory.
    Refill,
    /// The first of the blocked packets departs.
    Departs(Departure),
    /// The last byte of a message has left.
    Sent(Sent),
    /// The first byte of a packet is at the port.
    Arrive(Box<Packet>),
    /// A packet is in the card and matched.
    Received(Box<Packet>),
    /// A DMA write has reached host memory.
    Written(Box<HostWrite>),
    /// The target's operands of an atomic are read, or have come from host memory.
    Atomic(Box<AtomicWork>),
    /// The result of an atomic is in host memory.
    Moved(MessageId),
    /// A message is done, and so is the (empty) DMA write that says so.
    Complete(MessageId),
    /// The time of an event of the accelerator has come.
    Accelerator(accel::Event),
    /// The message of a handler that was blocked has left.
    CommandDone(accel::CommandId),
    /// A handler's DMA transfer is done.
    HostTransferDone(Box<HostTransfer>),
}

/// A message to be sent.
#[derive(Debug)]
pub struct Outgoing {
    /// Its header.
    pub header: Rc<Header>,
    /// Its data.
    pub source: Source,
    /// What its last byte completes.
    pub sent: Sent,
}

/// Where a message's data is.
#[derive(Debug)]
pub enum Source {
    /// In host memory.
    Host(Rc<Region>, u64),
    /// In the descriptor that the host handed over; it keeps its place in the send queue.
    Descriptor(Vec<u8>),
    /// On the card, which sends it at once.
    Card(Vec<u8>),
}

/// What the departure of a message's last byte completes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sent {
    /// Nothing that anybody waits for.
    Nothing,
    /// The SEND of an initiator's operation.
    Operation(OpToken),
    /// The same, once the news has crossed to the host.
    Told(OpToken),
    /// The answer to a get or a fetching atomic.
    Reply(MessageId),
}

/// A message whose packets come from host memory.
#[derive(Debug)]
struct Sending {
    header: Rc<Header>,
    /// What its last byte completes.
    sent: Sent,
    /// Where in host memory; `None` when its only packet came with the descriptor.
    from: Option<(Rc<Region>, u64)>,
    /// The bytes on their way through the DMA engine.
    train: Train,
    /// None of its packets may leave before.
    not_before: Time,
}

/// A packet on its way from host memory.
#[derive(Debug)]
pub struct Fetch {
    message: Rc<Sending>,
    offset: u64,
    /// The packet with its data, once that is read.
    packet: Option<Packet>,
}

/// A packet that is to leave.
#[derive(Debug)]
struct Leaving {
    content: Content,
    /// What its last byte completes.
    sent: Sent,
    /// What else is due when its last byte has left.
    then: Option<CardEvent>,
}

/// Where the data of a packet that is to leave is.
#[derive(Debug)]
enum Content {
    /// On the card.
    Packet(Packet),
    /// In host memory: the packet of a message that starts at this offset.
    Host(Rc<Sending>, u64),
}

/// A packet whose departure is fixed, and far enough off that its data may wait in host memory.
#[derive(Debug)]
struct Unread {
    message: Rc<Sending>,
    offset: u64,
    departure: Departure,
}

/// Data on its way to host memory.
#[derive(Debug)]
pub struct HostWrite {
    message: MessageId,
    region: Rc<Region>,
    offset: u64,
    data: Vec<u8>,
}

/// An atomic operation under way at its target.
#[derive(Debug)]
pub struct AtomicWork {
    message: MessageId,
    /// The initiator's data; once combined, what was at the target before.
    data: Vec<u8>,
    combined: bool,
}

/// A message that is being received.
#[derive(Debug)]
pub(crate) struct Inbound {
    pub header: Rc<Header>,
    /// Bytes that have not arrived.
    pub remaining: u64,
    /// DMA writes and replies under way.
    pub moving: u32,
    /// Whether any data went to host memory.
    pub deposited: bool,
    /// First thing that went wrong.
    pub fail: NiFail,
    /// Whether an answer with the data that was asked for, or without it, is on its way.
    pub answered: bool,
    pub sink: Sink,
}

#[derive(Debug)]
pub(crate) enum Sink {
    /// The data is thrown away.
    Nowhere,
    Entry(Box<Delivery>),
    /// The reply to an operation of this node.
    Operation(OpToken, Response),
}

/// A request that an entry has taken.
#[derive(Debug)]
pub(crate) struct Delivery {
    /// What the entry promised it.
    pub taken: Taken,
    /// Handlers' work.
    pub spin: Option<Box<SpinMessage>>,
}

impl Delivery {
    /// Where the message went, and how much of it.
    pub fn outcome(&self) -> Placement {
        let placement = self.taken.placement;
        let mlength = self.spin.as_ref().map_or(placement.mlength, |spin| spin.moved(placement));
        Placement { mlength, ..placement }
    }
}

/// What a card knows of a message of which packets arrive.
#[derive(Debug)]
enum Channel {
    /// The header packet has not arrived.
    Early(EarlyPackets),
    /// The header packet is being matched until then.
    Matching(Time, EarlyPackets),
    /// The header packet has been matched.
    Open(Box<Inbound>),
}

/// Packets that have overtaken their header packet. The card holds as many, of all messages together, as its packet buffer
/// has slots.
#[derive(Debug, Default)]
struct EarlyPackets {
    /// In the order of their arrival.
    held: Vec<Packet>,
    /// Offset and bytes of the packets for which there was no room.
    lost: Vec<(u64, u64)>,
}

/// Work that an rdma card leaves to the CPU.
#[derive(Debug)]
pub enum Completion {
    /// A message has arrived; the CPU matches it and acts.
    Arrived(Box<ArrivedMessage>),
    /// An operation of the CPU has progressed.
    Operation(OpToken, Option<Response>),
    /// A triggered operation is due; the CPU starts it.
    Triggered(u8, TriggeredOp),
}

/// A message that is in host memory.
#[derive(Debug)]
pub struct ArrivedMessage(pub(crate) Inbound);

/// One node's network card.
pub struct Card {
    pub(crate) machine: Rc<Machine>,
    pub(crate) portals: Portals,
    pub(crate) spin: Spin,
    pub(crate) stats: Stats,
    /// Stands for [`Stats::handlers`]: few, and found by comparing pointers.
    handler_stats: Vec<(Rc<str>, HandlerStats)>,
    channels: HashMap<MessageId, Channel>,
    /// Number of packets that are held because they have overtaken their header packet.
    early_packets: u32,
    /// The most of these that it holds.
    early_limit: u32,
    completions: VecDeque<Completion>,
    rx: Pipe,
    dma: Pipe,
    /// When the last packet of the host's send queue has its data: later ones may not overtake it.
    send_ready: Time,
    /// In the order in which they leave.
    unread: VecDeque<Unread>,
    /// Packets for which the network has no room, in the order in which they will leave.
    blocked: VecDeque<Leaving>,
    messages: u64,
}

impl Card {
    /// The card of `node` in a network of `nodes`, serving a process with this user id.
    pub fn new(machine: Rc<Machine>, node: u32, nodes: u32, uid: u32) -> Card {
        let spin = Spin::new(&machine);
        let offered = default_limits(machine.network.mtu, &machine.accelerator);
        Card {
            portals: Portals::new(node, nodes, uid, offered, !machine.nic.matches_on_card()),
            early_limit: spin.accelerator.packet_buffers(),
            spin,
            stats: Stats::default(),
            handler_stats: Vec::new(),
            channels: HashMap::new(),
            early_packets: 0,
            completions: VecDeque::new(),
            rx: Pipe::default(),
            dma: Pipe::default(),
            send_ready: Time::ZERO,
            unread: VecDeque::new(),
            blocked: VecDeque::new(),
            messages: 0,
            machine,
        }
    }

    /// Handles an event whose time has come.
    pub fn handle(&mut self, event: CardEvent, ports: &mut impl Ports) {
        match event {
            CardEvent::Send(outgoing) => self.send(*outgoing, ports),
            CardEvent::Fetched(fetch) => self.fetched(*fetch, ports),
            CardEvent::Refill => self.refill(ports),
            CardEvent::Departs(departure) => self.departs(departure, ports),
            CardEvent::Sent(sent) => self.sent(sent, ports),
            CardEvent::Arrive(packet) => self.arrive(packet, ports),
            CardEvent::Received(packet) => self.received(*packet, ports),
            CardEvent::Written(write) => self.written(*write, ports),
            CardEvent::Atomic(work) => self.combine(*work, ports),
            CardEvent::Moved(message) => self.moved(message, ports),
            CardEvent::Complete(message) => self.complete(message, ports),
            CardEvent::Accelerator(event) => self.accelerator_event(event, ports),
            CardEvent::CommandDone(command) => self.command_done(command, 0, ports),
            CardEvent::HostTransferDone(transfer) => self.host_transfer_done(*transfer, ports),
        }
    }

    /// The memory of the host that messages may write: of every entry and every memory descriptor.
    pub fn exposed(&self) -> impl Iterator<Item = &Region> {
        self.portals.interfaces.iter().flatten().flat_map(|interface| {
            let entries = interface.entries.iter().map(|(_, entry)| &*entry.region);
            entries.chain(interface.mds.iter().map(|(_, md)| &*md.region))
        })
    }

    /// Counts from now on which source lines handlers run.
    pub fn set_profiling(&mut self) {
        self.spin.accelerator.set_profiling();
    }

    /// What the card has done so far.
    pub fn stats(&self) -> Stats {
        let mut stats = self.stats.clone();
        stats.flow_control = self.portals.flow_control;
        (stats.rx_busy, stats.dma_busy) = (self.rx.busy(), self.dma.busy());
        for (name, handler) in &self.handler_stats {
            stats.handlers.entry(name.to_string()).or_default().merge(handler);
        }
        stats.hpu_busy = self.spin.accelerator.busy();
        stats.profile = self.spin.accelerator.profile();
        stats
    }

    /// The next piece of work for the CPU (rdma cards), left in the queue.
    pub fn next_completion(&self) -> Option<&Completion> {
        self.completions.front()
    }

    /// Lets the CPU do the next piece of work; its time is charged by the caller.
    pub fn process_completion(&mut self, ports: &mut impl Ports) {
        match self.completions.pop_front() {
            Some(Completion::Arrived(arrived)) => self.finish_delivery(arrived.0, ports),
            Some(Completion::Operation(token, response)) => self.finish_operation(token, response, ports),
            Some(Completion::Triggered(interface, op)) => {
                self.portals.fire(interface, op);
                self.apply(ports);
            }
            None => {}
        }
    }

    /// The counts of a handler.
    pub(crate) fn handler_stats(&mut self, name: &Rc<str>) -> &mut HandlerStats {
        let known = self.handler_stats.iter().position(|(other, _)| Rc::ptr_eq(other, name));
        let index = known.unwrap_or_else(|| {
            self.handler_stats.push((name.clone(), HandlerStats::default()));
            self.handler_stats.len() - 1
        });
        &mut self.handler_stats[index].1
    }

    pub(crate) fn host_completes(&self) -> bool {
        !self.machine.nic.matches_on_card()
    }

    pub(crate) fn next_message_id(&mut self) -> MessageId {
        self.messages += 1;
        u64::from(self.portals.node) << 40 | self.messages
    }

    /// Reserves the DMA engine for `bytes`; returns when the last byte has crossed in one direction.
    pub(crate) fn dma_write(
        &mut self,
        bytes: u64,
        name: &str,
        packet: Option<PacketId>,
        ports: &mut impl Ports,
    ) -> Time {
        let dma = &self.machine.dma;
        let (start, end) = self.dma.reserve(ports.now(), bytes, dma.gap_per_byte, Time::ZERO);
        let done = end + dma.latency;
        if bytes > 0 && ports.tracing() {
            ports.slice(Slice { track: Track::Dma, start, end, name, packet, bytes: Some(bytes) });
        }
        self.stats.dma_bytes += bytes;
        done
    }

    /// As [`dma_write`](Card::dma_write) for a read: the request crosses first (sPIN App. C.3.2: "we pay two DMA
    /// latencies to read the data").
    pub(crate) fn dma_read(
        &mut self,
        bytes: u64,
        name: &str,
        packet: Option<PacketId>,
        ports: &mut impl Ports,
    ) -> Time {
        self.dma_write(bytes, name, packet, ports) + self.machine.dma.latency
    }
}

/// The library's calls that concern only Portals objects.
impl Deref for Card {
    type Target = Portals;

    fn deref(&self) -> &Portals {
        &self.portals
    }
}

impl DerefMut for Card {
    fn deref_mut(&mut self) -> &mut Portals {
        &mut self.portals
    }
}
