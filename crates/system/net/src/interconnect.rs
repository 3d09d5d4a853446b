// SPDX-License-Identifier: Apache-2.0
//! The network as cards see it, with one of two models.

use sim::{SerialResource, Time, TimePerByte};

use crate::cards::CardFabric;
use crate::fabric::{Crossing, Event, Fabric, Parameters, Report, Rounding, Traffic};
use crate::injection::{Departure, Injection, Outlet};
use crate::losses::{Loss, LossyPlace, PathLosses};
use crate::{Latency, NetError, Topology};

/// The interconnect of the cards: their sending ports and the network between them.
///
/// A card [injects](Interconnect::inject) one packet at a time and is notified of its departure, at once or, if the
/// network has no room for it, later; by then it [passes on](Interconnect::transmit) the packet itself. The packet
/// arrives when the receiving port can begin to receive it: with its *first* byte, except under store-and-forward. A
/// packet of a node to itself turns around in the card: it occupies the sending port as usual and uses no link. `P` is
/// the packet type.
#[derive(Debug)]
pub struct Interconnect<P> {
    ports: Vec<SerialResource>,
    model: Model<P>,
    losses: PathLosses,
    is_lossy: bool,
    gap_per_byte: TimePerByte,
    /// Names of the switches with handlers, which are the last nodes.
    switches: Vec<String>,
}

#[derive(Debug)]
enum Model<P> {
    Latency(Latency),
    Fabric(Box<CardFabric<P>>),
}

impl<P> Interconnect<P> {
    /// Creates the interconnect of a machine with `nodes` nodes, followed by its switches with handlers as further
    /// nodes.
    ///
    /// # Errors
    /// If the topology does not support that many nodes, or its file does not describe a network; if a switch with
    /// handlers does not exist.
    pub fn new(parameters: &machine::Network, nodes: usize) -> Result<Interconnect<P>, NetError> {
        let cards = &parameters.switch_cards;
        let mut switches = Vec::new();
        let model = match parameters.model {
            machine::NetworkModel::Latency => Model::Latency(Latency::new(parameters, nodes)?),
            machine::NetworkModel::Fabric => {
                let mut topology = Topology::of_machine(parameters, nodes)?;
                let first = topology.hosts();
                if !cards.handlers.is_empty() {
                    topology = topology.with_cards(&cards.handlers, cards.gap_per_byte(parameters.gap_per_byte))?;
                    switches.extend((0..topology.cards()).map(|card| topology.switch_of(first + card)));
                }
                let fabric = Fabric::new(topology, Parameters::of_machine(parameters), Rounding::Down)?;
                Model::Fabric(Box::new(CardFabric::new(fabric, nodes as u32, first)?))
            }
        };
        let ports = vec![SerialResource::default(); nodes + switches.len()];
        Ok(Interconnect {
            ports,
            switches,
            gap_per_byte: parameters.gap_per_byte,
            losses: PathLosses::default(),
            is_lossy: false,
            model,
        })
    }

    /// Loses packets from now on. Equal seeds lose the same packets.
    ///
    /// # Errors
    /// If a link or a node does not exist.
    pub fn set_losses(&mut self, losses: &[Loss], seed: u64) -> Result<(), NetError> {
        let nodes = self.nodes();
        for loss in losses {
            if let LossyPlace::Path { from, to } = loss.place
                && let Some(node) = [from, to].into_iter().flatten().find(|node| *node as usize >= nodes)
            {
                return Err(NetError::NoNode { node, nodes });
            }
        }
        match &mut self.model {
            Model::Fabric(fabric) => fabric.fabric.set_losses(losses, seed)?,
            Model::Latency(_) => {
                let is_link = |loss: &&Loss| matches!(loss.place, LossyPlace::Link { .. });
                if let Some(Loss { place: LossyPlace::Link { from, to }, .. }) = losses.iter().find(is_link) {
                    return Err(NetError::NoLinks { from: from.clone(), to: to.clone() });
                }
            }
        }
        self.losses = PathLosses::new(losses, seed);
        self.is_lossy = !losses.is_empty();
        Ok(())
    }

    /// Returns true if [`set_losses`](Interconnect::set_losses) made it lose packets.
    pub fn is_lossy(&self) -> bool {
        self.is_lossy
    }

    /// Returns the number of packets lost by each of the `losses` losses passed to
    /// [`set_losses`](Interconnect::set_losses).
    pub fn lost(&self, losses: usize) -> Vec<u64> {
        let mut sums = vec![0; losses];
        let on_links = match &self.model {
            Model::Latency(_) => None,
            Model::Fabric(fabric) => Some(fabric.fabric.lost()),
        };
        for (number, lost) in self.losses.lost().chain(on_links.into_iter().flatten()) {
            sums[number] += lost;
        }
        sums
    }

    /// Injects a packet. Returns its departure, or `None` if the network has no room for it: then the packet is
    /// *blocked*, and [`Outlet::departs`] follows. Packets of a card to other nodes leave in injection order.
    pub fn inject(&mut self, now: Time, packet: Injection, outlet: &mut impl Outlet<P>) -> Option<Departure> {
        let Injection { from, to, bytes, gap } = packet;
        if let Model::Fabric(fabric) = &mut self.model
            && from != to
        {
            return fabric.inject(now, packet, &mut self.ports, &mut self.losses, outlet);
        }
        let (start, end) = self.ports[from as usize].reserve(now, bytes, self.gap_per_byte, gap);
        Some(Departure { ticket: 0, start, end })
    }

    /// Accepts a departing packet, at `departure.start` at the latest.
    pub fn transmit(&mut self, from: u32, to: u32, departure: Departure, packet: P, outlet: &mut impl Outlet<P>) {
        match &mut self.model {
            Model::Latency(latency) => {
                let at = departure.start + latency.of_packet(from as usize, to as usize);
                match self.losses.loses(from, to) {
                    true => outlet.lost(at, from, packet),
                    false => outlet.arrives(at, to, packet),
                }
            }
            Model::Fabric(_) if from == to => outlet.arrives(departure.start, to, packet),
            Model::Fabric(fabric) => fabric.transmit(departure.ticket, packet, outlet),
        }
    }

    /// Handles an event at `now`.
    pub fn handle(&mut self, now: Time, event: Event, outlet: &mut impl Outlet<P>) {
        // The latency model has no events.
        if let Model::Fabric(fabric) = &mut self.model {
            fabric.handle(now, event, &mut self.ports, &mut self.losses, outlet);
        }
    }

    /// Returns the sender of an event's packet.
    pub fn sender(&self, event: Event) -> u32 {
        match &self.model {
            Model::Latency(_) => 0,
            Model::Fabric(fabric) => fabric.fabric.sender(event),
        }
    }

    /// Returns the occupied and already reserved time of a node's sending port.
    pub fn port_busy(&self, node: usize) -> Time {
        self.ports[node].busy()
    }

    /// Returns statistics of the links up to `end`, with at most `busiest` links of highest utilization; `None` if the
    /// model has no links.
    pub fn report(&self, end: Time, busiest: usize) -> Option<Report> {
        match &self.model {
            Model::Latency(_) => None,
            Model::Fabric(fabric) => Some(fabric.fabric.report(end, busiest)),
        }
    }

    /// Records the times of packets on links from now on.
    pub fn set_tracing(&mut self) {
        if let Model::Fabric(fabric) = &mut self.model {
            fabric.fabric.set_tracing();
        }
    }

    /// Returns the recorded times of packets on links, in the order of assignment.
    pub fn crossings(&self) -> &[Crossing] {
        match &self.model {
            Model::Latency(_) => &[],
            Model::Fabric(fabric) => fabric.fabric.crossings(),
        }
    }

    /// Returns the names of a link's start and end vertices.
    pub fn link_name(&self, link: u32) -> Option<(String, String)> {
        match &self.model {
            Model::Latency(_) => None,
            Model::Fabric(fabric) => Some(fabric.fabric.link_name(link)),
        }
    }

    /// Returns the names of the switches with handlers: the last nodes, in this order.
    pub fn switches(&self) -> &[String] {
        &self.switches
    }

    /// Returns the number of links of the shortest path between two nodes; `None` if the model has no links.
    pub fn distance(&self, from: u32, to: u32) -> Option<u32> {
        match &self.model {
            Model::Latency(_) => None,
            Model::Fabric(fabric) => Some(fabric.distance(from, to)),
        }
    }

    /// Returns packets and bytes of each used link; `None` if the model has no links.
    pub fn traffic(&self) -> Option<Vec<Traffic>> {
        match &self.model {
            Model::Latency(_) => None,
            Model::Fabric(fabric) => Some(fabric.fabric.traffic()),
        }
    }

    /// Returns the number of nodes, including switches with handlers.
    pub fn nodes(&self) -> usize {
        self.ports.len()
    }
}
