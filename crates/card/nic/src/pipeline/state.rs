use std::collections::VecDeque;
use std::rc::Rc;

use machine::Machine;
use rustc_hash::{FxHashMap, FxHashSet};
use sim::Time;

use super::dma::DmaEngine;
use super::rx::Completion;
use crate::drops::{self, DropReason, Part};
use crate::event::{Leaving, Unread};
use crate::message::{COUNT_BITS, Header, MessageId};
use crate::portals::Portals;
use crate::ports::Ports;
use crate::stats::Counts;

/// The pipelines of a card, and the Portals objects for which they work.
#[repr(C)] // see `Nic`
pub struct Pipeline {
    /// The machine.
    pub machine: Rc<Machine>,
    /// When the last packet of the host's send queue has its data: later ones may not overtake it.
    pub(super) send_ready: Time,
    /// What the card has counted.
    pub stats: Counts,
    /// The DMA engine.
    pub dma: DmaEngine,
    messages: u64,
    /// Whether there is a host, with memory; a switch has none.
    pub has_host: bool,
    /// Whether the host's process has been killed, and its memory is gone with it.
    pub process_is_dead: bool,
    /// What there is to know where packets may be lost.
    pub(crate) losses: Option<Box<Losses>>,
    /// The Portals objects of the node's process.
    pub portals: Portals,
    /// Work for the CPU (rdma cards).
    pub completions: VecDeque<Completion>,
    /// Packets whose departure is fixed and whose data has not been read, in the order in which they leave.
    pub(super) unread: VecDeque<Unread>,
    /// Packets for which the network has no room, in the order in which they will leave.
    pub(super) blocked: VecDeque<Leaving>,
}

/// What a card knows of its packets where some may be lost.
#[derive(Debug, Default)]
pub struct Losses {
    /// Messages of this card that it has given up, because their packets were lost again and again.
    pub given_up: FxHashSet<MessageId>,
    /// For each target, the place of the last packet to it ([`crate::message::Packet::place`]).
    pub(super) places: FxHashMap<u32, u64>,
}

impl Pipeline {
    /// The pipelines of a card that has done nothing.
    pub fn new(machine: Rc<Machine>, portals: Portals) -> Pipeline {
        Pipeline {
            portals,
            has_host: true,
            process_is_dead: false,
            dma: DmaEngine::new(machine.dma.clone()),
            stats: Counts::default(),
            completions: VecDeque::new(),
            send_ready: Time::ZERO,
            unread: VecDeque::new(),
            blocked: VecDeque::new(),
            losses: None,
            messages: 0,
            machine,
        }
    }

    /// The number that the next message of this card will have.
    pub fn upcoming_message_id(&self) -> MessageId {
        u64::from(self.portals.node) << COUNT_BITS | (self.messages + 1)
    }

    /// Numbers the next message that this card sends.
    pub fn next_message_id(&mut self) -> MessageId {
        let id = self.upcoming_message_id();
        self.messages += 1;
        id
    }

    /// Whether the CPU, and not the card, tells the program of the ends of messages.
    pub fn host_completes(&self) -> bool {
        !self.machine.nic.matches_on_card()
    }

    /// Counts a message as dropped as a whole.
    pub fn count_dropped(&mut self, reason: DropReason, header: &Header, ports: &mut impl Ports) {
        let bytes = header.data_length();
        let packets = bytes.div_ceil(u64::from(self.machine.network.mtu)).max(1);
        self.count_part(reason, header, Part { is_first: true, packets, bytes }, ports);
    }

    /// Counts a part of a message as dropped, and tells the user who wants to know.
    pub fn count_part(&mut self, reason: DropReason, header: &Header, part: Part, ports: &mut impl Ports) {
        if let Some(dropped) = drops::count(&mut self.stats.drops, reason, header, part, ports.now()) {
            ports.dropped(reason, dropped);
        }
    }
}
