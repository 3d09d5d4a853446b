//! The card: injection, packet reception, matching, DMA, and what completes an operation.
//!
//! One [`Card`] a node. The simulator calls [`Card::handle`] with the events that the card scheduled through its
//! [`Ports`], and the functions of [`crate::api`] for the host's library calls.

mod close;
mod complete;
mod receive;
mod send;

use std::collections::{HashMap, VecDeque};
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use machine::Machine;
use sim::{Pipe, Time};

pub(crate) use complete::report_internal;

pub use crate::event::CardEvent;
use crate::event::{Leaving, Unread};
use crate::message::{MessageId, OpToken, Response};
use crate::portals::{Portals, TriggeredOp, default_limits};
use crate::ports::{PacketId, Ports, Slice, Track};
use crate::region::Region;
use crate::rx::{Channel, RxMessage};
use crate::spin::Spin;
use crate::stats::{HandlerStats, Stats};

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
pub struct ArrivedMessage(pub(crate) RxMessage);

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
            CardEvent::ResponseDone(message) => self.response_done(message, ports),
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
