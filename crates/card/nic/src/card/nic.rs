// SPDX-License-Identifier: Apache-2.0
//! The network card of one node.

use std::ops::Range;
use std::rc::Rc;

use abi::portals::NiLimits;
use accel::sc17::Quota;
use sim::SerialResource;

use super::order::Orders;
use crate::accelerator::CardModel;
use crate::pipeline::{Completion, Messages, Pipeline};
use crate::portals::{InternalError, Portals, default_limits};
use crate::ports::Ports;
use crate::region::Region;
use crate::spin::{Spin, Work};
use crate::stats::{HandlerStats, Stats};

/// Network card of one node.
///
/// The simulator calls [`Nic::handle`] with the events that the card scheduled through its [`Ports`], and the functions
/// of [`crate::api`] for the host's library calls.
///
/// A large simulation is bound by memory latency, so the order of the fields is fixed, here and in the parts: the data
/// of each event starts a cache line and spans few of them, and data that few cards need is boxed and created on first
/// use.
#[repr(C, align(64))]
pub struct Nic {
    pub(crate) spin: Spin,
    pub(super) messages: Messages,
    /// Receiving port.
    pub(super) rx: SerialResource,
    pub(crate) pipeline: Pipeline,
    /// Order of the arriving requests.
    pub(super) orders: Orders,
}

impl Nic {
    /// Creates the card of `node` in a network of `nodes`, for a process with this user id.
    pub fn new(model: Rc<CardModel>, node: u32, nodes: u32, uid: u32) -> Nic {
        let machine = model.machine();
        let offered = default_limits(machine.network.mtu, &machine.accelerator);
        Nic::offering(Rc::new(offered), model, node, nodes, uid)
    }

    /// Creates the cards of the nodes `of` in a network of `nodes`, like [`Nic::new`] but with shared constant data.
    pub fn all(model: &Rc<CardModel>, of: Range<u32>, nodes: u32, uid: u32) -> impl Iterator<Item = Nic> {
        let machine = model.machine();
        let offered = Rc::new(default_limits(machine.network.mtu, &machine.accelerator));
        of.map(move |node| Nic::offering(offered.clone(), model.clone(), node, nodes, uid))
    }

    fn offering(offered: Rc<NiLimits>, model: Rc<CardModel>, node: u32, nodes: u32, uid: u32) -> Nic {
        let machine = model.machine().clone();
        let portals = Portals::new(node, nodes, uid, offered, !machine.nic.matches_on_card());
        Nic {
            messages: Messages::default(),
            spin: Spin::new(model, node),
            pipeline: Pipeline::new(machine, portals),
            rx: SerialResource::default(),
            orders: Orders::default(),
        }
    }

    /// Creates the card of a switch: without a host, so handlers cannot access host memory.
    pub fn of_switch(model: Rc<CardModel>, node: u32, nodes: u32, uid: u32) -> Nic {
        let mut card = Nic::new(model, node, nodes, uid);
        card.pipeline.has_host = false;
        card
    }

    /// Returns the host memory that messages may write: that of every entry and memory descriptor.
    pub fn exposed(&self) -> impl Iterator<Item = &Region> {
        self.portals().interfaces.iter().flatten().flat_map(|interface| {
            let entries = interface.entries.iter().map(|(_, entry)| &entry.region);
            entries.chain(interface.mds.iter().map(|(_, md)| &md.region))
        })
    }

    /// Divides the card's accelerator among the processes that share the card, by these quotas.
    pub fn divide(&mut self, quotas: &[Quota]) {
        self.spin.accelerator.divide(quotas);
    }

    /// Hands the engines of a card, with all their reservations, over to another process of the node. A process keeps its
    /// Portals objects, its messages and its statistics.
    pub fn hand_over(&mut self, next: &mut Nic) {
        next.rx.follow(&self.rx);
        next.pipeline.dma.follow(&self.pipeline.dma);
        std::mem::swap(&mut self.spin.accelerator, &mut next.spin.accelerator);
        std::mem::swap(&mut self.spin.work, &mut next.spin.work);
        let process = next.portals().index();
        if let Some(accelerator) = next.spin.accelerator.made_mut() {
            accelerator.serve(process);
        }
    }

    /// Returns the index of the process, among those that share the card, for which the accelerator has queued work.
    pub fn awaited(&self) -> Option<u32> {
        self.spin.work.front().map(Work::process)
    }

    /// Returns the statistics of the card so far.
    pub fn stats(&self) -> Stats {
        self.stats_beside(self)
    }

    /// Returns the statistics of a process whose card's engines are handed over to `holder`.
    pub fn stats_beside(&self, holder: &Nic) -> Stats {
        let mut stats = Stats { counts: self.pipeline.stats.clone(), ..Stats::default() };
        stats.flow_control = self.portals().flow_control;
        stats.triggered_peak = self.portals().triggered_peak;
        (stats.dma_bytes, stats.dma_busy) = (self.pipeline.dma.bytes(), self.pipeline.dma.busy());
        stats.rx_busy = self.rx.busy();
        for (name, handler) in self.spin.stats() {
            stats.handlers.entry(name.to_string()).or_default().merge(handler);
        }
        if let Some(accelerator) = holder.spin.accelerator.made() {
            let process = self.portals().index();
            stats.packet_buffer_peak = accelerator.packet_buffer_peak();
            stats.hpu_memory_peak = accelerator.memory_peak(process);
            stats.hpu_busy = accelerator.busy(process);
            stats.profile = accelerator.profile(process);
        }
        stats
    }

    /// Returns the sent messages, packets and payload bytes, as in [`Nic::stats`].
    pub fn traffic(&self) -> [u64; 3] {
        let counts = &self.pipeline.stats;
        [counts.messages_sent, counts.packets_sent, counts.bytes_sent]
    }

    /// Returns the statistics of each handler by name, as in [`Nic::stats`].
    pub fn handler_stats(&self) -> impl Iterator<Item = (&str, &HandlerStats)> {
        self.spin.stats()
    }

    /// Returns the Portals objects of the card.
    pub fn portals(&self) -> &Portals {
        &self.pipeline.portals
    }

    /// Returns the Portals objects of the card, for calls that change only these.
    pub fn portals_mut(&mut self) -> &mut Portals {
        &mut self.pipeline.portals
    }

    /// Returns the next work item of the CPU (rdma cards), without removing it.
    pub fn next_completion(&self) -> Option<&Completion> {
        self.pipeline.completions.front()
    }

    /// Ends the run if the card reached an impossible state.
    pub(crate) fn check(&self, result: Result<(), InternalError>, ports: &mut impl Ports) {
        if let Err(error) = result {
            ports.internal_error(error);
        }
    }

    /// Executes the effects of a library call on the card.
    pub(crate) fn apply(&mut self, ports: &mut impl Ports) {
        let applied = self.pipeline.apply(ports);
        self.check(applied, ports);
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// Bytes of a cache line.
    const LINE: usize = 64;

    #[test]
    fn what_each_event_needs_begins_a_cache_line() {
        let begins = [
            offset_of!(Nic, messages.channels),
            offset_of!(Nic, pipeline),
            offset_of!(Nic, pipeline.dma),
            offset_of!(Nic, pipeline.portals.interfaces),
            offset_of!(Nic, pipeline.portals.operations),
        ];
        assert_eq!(begins.map(|offset| offset % LINE), [0; 5], "{begins:?}");
        // The work list and the abandoned messages, which each event reads, share one line.
        let looked_at = [offset_of!(Nic, spin.work), offset_of!(Nic, messages.abandoned)];
        assert_eq!(looked_at.map(|offset| offset / LINE), [1; 2], "{looked_at:?}");
        assert_eq!(offset_of!(Nic, rx) / LINE, offset_of!(Nic, messages.channels) / LINE);
        assert_eq!(size_of::<Nic>() / LINE, 12);
    }
}
