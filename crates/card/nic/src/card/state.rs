use std::ops::{Deref, DerefMut, Range};
use std::rc::Rc;

use abi::portals::NiLimits;
use accel::Debugger;
use machine::Machine;
use sim::SerialResource;

use super::order::Orders;
use crate::pipeline::{Completion, Messages, Pipeline};
use crate::portals::{InternalError, Portals, default_limits};
use crate::ports::Ports;
use crate::region::Region;
use crate::spin::Spin;
use crate::stats::{HandlerStats, Stats};

/// One node's network card.
///
/// The simulator calls [`Nic::handle`] with the events that the card scheduled through its [`Ports`], and the functions
/// of [`crate::api`] for the host's library calls.
///
/// A large simulation waits for memory more than it computes, so the order of the fields is fixed, here and in the parts: what each
/// event needs begins a cache line and has few of them, and what few cards need lies in boxes that are made on first use.
#[repr(C, align(64))]
pub struct Nic {
    pub(crate) spin: Spin,
    pub(super) messages: Messages,
    /// The receiving port.
    pub(super) rx: SerialResource,
    pub(crate) pipeline: Pipeline,
    /// The order of the requests that arrive.
    pub(super) orders: Orders,
}

impl Nic {
    /// The card of `node` in a network of `nodes`, serving a process with this user id.
    pub fn new(machine: Rc<Machine>, node: u32, nodes: u32, uid: u32) -> Nic {
        let offered = default_limits(machine.network.mtu, &machine.accelerator);
        Nic::offering(Rc::new(offered), machine, node, nodes, uid)
    }

    /// The cards of some nodes in a network of `nodes`, as [`Nic::new`] makes them. They share what they have in common.
    pub fn all(machine: &Rc<Machine>, of: Range<u32>, nodes: u32, uid: u32) -> impl Iterator<Item = Nic> {
        let offered = Rc::new(default_limits(machine.network.mtu, &machine.accelerator));
        of.map(move |node| Nic::offering(offered.clone(), machine.clone(), node, nodes, uid))
    }

    fn offering(offered: Rc<NiLimits>, machine: Rc<Machine>, node: u32, nodes: u32, uid: u32) -> Nic {
        let portals = Portals::new(node, nodes, uid, offered, !machine.nic.matches_on_card());
        Nic {
            messages: Messages::default(),
            spin: Spin::new(machine.clone()),
            pipeline: Pipeline::new(machine, portals),
            rx: SerialResource::default(),
            orders: Orders::default(),
        }
    }

    /// The card of a switch: it has no host, so handlers cannot move data to and from host memory.
    pub fn of_switch(machine: Rc<Machine>, node: u32, nodes: u32, uid: u32) -> Nic {
        let mut card = Nic::new(machine, node, nodes, uid);
        card.pipeline.has_host = false;
        card
    }

    /// The memory of the host that messages may write: of every entry and every memory descriptor.
    pub fn exposed(&self) -> impl Iterator<Item = &Region> {
        self.interfaces.iter().flatten().flat_map(|interface| {
            let entries = interface.entries.iter().map(|(_, entry)| &entry.region);
            entries.chain(interface.mds.iter().map(|(_, md)| &md.region))
        })
    }

    /// Looks for data races of this card's handlers. Returns whether its kind can.
    pub fn sanitize(&mut self) -> bool {
        self.spin.accelerator.sanitize()
    }

    /// Attaches a debugger to the handlers of this card. Returns whether its kind can be debugged.
    pub fn attach(&mut self, debugger: Box<dyn Debugger>) -> bool {
        self.spin.accelerator.attach(debugger)
    }

    /// Lets the texts that handlers print take no time on the card.
    pub fn set_print_free(&mut self) {
        self.spin.accelerator.set_print_free();
    }

    /// Counts from now on which source lines handlers run.
    pub fn set_profiling(&mut self) {
        self.spin.accelerator.set_profiling();
    }

    /// What the card has done so far.
    pub fn stats(&self) -> Stats {
        let mut stats = self.pipeline.stats.stats();
        stats.flow_control = self.flow_control;
        stats.triggered_peak = self.triggered_peak;
        (stats.dma_bytes, stats.dma_busy) = (self.pipeline.dma.bytes(), self.pipeline.dma.busy());
        stats.rx_busy = self.rx.busy();
        for (name, handler) in self.spin.stats() {
            stats.handlers.entry(name.to_string()).or_default().merge(handler);
        }
        if let Some(accelerator) = self.spin.accelerator.made() {
            stats.packet_buffer_peak = accelerator.packet_buffer_peak();
            stats.hpu_busy = accelerator.busy();
            stats.profile = accelerator.profile();
        }
        stats
    }

    /// Messages, packets and payload bytes that the card has put on the wire, as [`Nic::stats`] has them.
    pub fn traffic(&self) -> [u64; 3] {
        let counts = &self.pipeline.stats;
        [counts.messages_sent, counts.packets_sent, counts.bytes_sent]
    }

    /// The counts of each handler that has run, by name, as [`Nic::stats`] has them.
    pub fn handler_stats(&self) -> impl Iterator<Item = (&str, &HandlerStats)> {
        self.spin.stats()
    }

    /// The next piece of work for the CPU (rdma cards), left in the queue.
    pub fn next_completion(&self) -> Option<&Completion> {
        self.pipeline.completions.front()
    }

    /// Ends the run when the card has met a state that cannot occur.
    pub(crate) fn check(&self, result: Result<(), InternalError>, ports: &mut impl Ports) {
        if let Err(error) = result {
            ports.internal_error(error);
        }
    }

    /// Does what a library call has left to the card.
    pub(crate) fn apply(&mut self, ports: &mut impl Ports) {
        let applied = self.pipeline.apply(ports);
        self.check(applied, ports);
    }
}

/// The library's calls that concern only Portals objects.
impl Deref for Nic {
    type Target = Portals;

    fn deref(&self) -> &Portals {
        &self.pipeline.portals
    }
}

impl DerefMut for Nic {
    fn deref_mut(&mut self) -> &mut Portals {
        &mut self.pipeline.portals
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use super::*;

    /// The bytes of a cache line.
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
        // The list of work and the messages that were given up, which each event looks at, share one line.
        let looked_at = [offset_of!(Nic, spin.work), offset_of!(Nic, messages.abandoned)];
        assert_eq!(looked_at.map(|offset| offset / LINE), [1; 2], "{looked_at:?}");
        assert_eq!(offset_of!(Nic, rx) / LINE, offset_of!(Nic, messages.channels) / LINE);
        assert_eq!(size_of::<Nic>() / LINE, 12);
    }
}
