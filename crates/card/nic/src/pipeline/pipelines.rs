// SPDX-License-Identifier: Apache-2.0
//! State of a card's pipelines.

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

/// Pipelines of a card, and the Portals objects that they serve.
#[repr(C)] // see `Nic`
pub struct Pipeline {
    /// Machine.
    pub machine: Rc<Machine>,
    /// Time at which the last packet of the host's send queue has its data: later packets may not overtake it.
    pub(super) send_ready: Time,
    /// Statistics.
    pub stats: Counts,
    /// DMA engine.
    pub dma: DmaEngine,
    messages: u64,
    /// True if the card has a host with memory; false for a switch.
    pub has_host: bool,
    /// True if the host's process was killed, which also removes its memory.
    pub process_is_dead: bool,
    /// State for a lossy network.
    pub(crate) losses: Option<Box<Losses>>,
    /// Portals objects of the node's process.
    pub portals: Portals,
    /// Work for the CPU (rdma cards).
    pub completions: VecDeque<Completion>,
    /// Packets with a fixed departure whose data is not yet read, in departure order.
    pub(super) unread: VecDeque<Unread>,
    /// Packets blocked by the network, in departure order.
    pub(super) blocked: VecDeque<Leaving>,
}

/// State of a card in a lossy network.
#[derive(Debug, Default)]
pub struct Losses {
    /// Messages of this card that it abandoned after repeated loss of packets.
    pub given_up: FxHashSet<MessageId>,
    /// Latest sequence number for each target ([`crate::message::Packet::place`]).
    pub(super) places: FxHashMap<u32, u64>,
}

impl Pipeline {
    /// Creates the pipelines of an idle card.
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

    /// Returns the number of this card's next message.
    pub fn upcoming_message_id(&self) -> MessageId {
        u64::from(self.portals.node) << COUNT_BITS | (self.messages + 1)
    }

    /// Allocates the number of this card's next message.
    pub fn next_message_id(&mut self) -> MessageId {
        let id = self.upcoming_message_id();
        self.messages += 1;
        id
    }

    /// Returns true if the CPU, not the card, notifies the program of completed messages.
    pub fn host_completes(&self) -> bool {
        !self.machine.nic.matches_on_card()
    }

    /// Counts a whole message as dropped.
    pub fn count_dropped(&mut self, reason: DropReason, header: &Header, ports: &mut impl Ports) {
        let bytes = header.data_length();
        let packets = bytes.div_ceil(u64::from(self.machine.network.mtu)).max(1);
        self.count_part(reason, header, Part { is_first: true, packets, bytes }, ports);
    }

    /// Counts a part of a message as dropped, and notifies an interested user.
    pub fn count_part(&mut self, reason: DropReason, header: &Header, part: Part, ports: &mut impl Ports) {
        if let Some(dropped) = drops::count(&mut self.stats.drops, reason, header, part, ports.now()) {
            ports.dropped(reason, dropped);
        }
    }
}
