// SPDX-License-Identifier: Apache-2.0
//! Contention-free network model.

use machine::Reception;
use sim::Time;

use crate::{Hops, NetError, Tree};

/// The network of the sPIN paper (§4.2): each switch and wire of its path delays a packet, but other packets never do.
#[derive(Clone, Debug)]
pub struct Latency {
    tree: Tree,
    switch: Time,
    wire: Time,
    /// Store-and-forward delay of a packet before it enters the network.
    stored: Time,
}

impl Latency {
    /// Creates the network of `nodes` nodes with `parameters`.
    ///
    /// # Errors
    /// If the topology does not support that many nodes.
    pub fn new(parameters: &machine::Network, nodes: usize) -> Result<Latency, NetError> {
        let tree = match &parameters.topology {
            machine::Topology::FatTree => Tree::fat_tree(parameters.radix, nodes)?,
            machine::Topology::SingleSwitch => Tree::single_switch(nodes)?,
            other => return Err(NetError::NoLatency { topology: other.name().to_owned() }),
        };
        let stored = match parameters.reception {
            Reception::CutThrough => Time::ZERO,
            Reception::StoreAndForward => parameters.gap_per_byte.time(u64::from(parameters.mtu) - 1),
        };
        Ok(Latency { tree, switch: parameters.switch, wire: parameters.wire, stored })
    }

    /// Returns the time from a byte's departure from the card of `from` to its arrival at the card of `to`. A message
    /// of a node to itself turns around in its card and uses no wire: [`Time::ZERO`].
    pub fn between(&self, from: usize, to: usize) -> Time {
        let Hops { switches, wires } = self.path(from, to);
        self.switch * u64::from(switches) + self.wire * u64::from(wires)
    }

    /// Returns the time from the departure of a packet's first byte until the card of `to` can begin to receive it: the
    /// latency of a byte and, under store-and-forward, the time of a full packet. A packet of a node to itself is not
    /// stored.
    pub fn of_packet(&self, from: usize, to: usize) -> Time {
        self.between(from, to) + if from == to { Time::ZERO } else { self.stored }
    }

    /// Returns the switches and wires between two nodes.
    pub fn path(&self, from: usize, to: usize) -> Hops {
        self.tree.hops(from, to)
    }

    /// Returns the number of nodes.
    pub fn nodes(&self) -> usize {
        self.tree.nodes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the network of sPIN §4.2.
    fn sc17(nodes: usize, reception: Reception) -> Latency {
        let parameters = machine::Network {
            model: machine::NetworkModel::Latency,
            topology: machine::Topology::FatTree,
            radix: 36,
            switch: Time::from_ns(50),
            wire: Time::from_ps(33_400),
            gap_per_byte: sim::TimePerByte::from_fs_per_byte(20_000),
            gap: Time::from_ps(6_700),
            injection: machine::Injection::Max,
            reception,
            mtu: 4096,
            retransmit: Time::from_ns(16_384),
            retries: 7,
            fabric: None,
            switch_cards: machine::SwitchCards::default(),
        };
        Latency::new(&parameters, nodes).unwrap()
    }

    #[test]
    fn latencies_of_the_paper() {
        let network = sc17(2, Reception::CutThrough);
        assert_eq!(network.between(0, 0), Time::ZERO);
        assert_eq!(network.between(0, 1), Time::from_ps(50_000 + 2 * 33_400)); // 116.8 ns
        let network = sc17(11_664, Reception::CutThrough); // 36³/4: three levels, leaves of 18, pods of 324
        assert_eq!(network.between(0, 17), Time::from_ps(116_800));
        assert_eq!(network.between(17, 18), Time::from_ps(3 * 50_000 + 4 * 33_400));
        assert_eq!(network.between(323, 324), Time::from_ps(5 * 50_000 + 6 * 33_400));
        assert_eq!(network.between(11_663, 0), Time::from_ps(450_400));
        assert_eq!(network.of_packet(11_663, 0), Time::from_ps(450_400));
    }

    /// LogGOPSim2 delays every packet by 4095 bytes at 20 ps.
    #[test]
    fn a_stored_packet_comes_a_full_packet_later() {
        let network = sc17(2, Reception::StoreAndForward);
        assert_eq!(network.between(0, 1), Time::from_ps(116_800));
        assert_eq!(network.of_packet(0, 1), Time::from_ps(81_900 + 116_800));
        assert_eq!(network.of_packet(1, 1), Time::ZERO);
    }
}
