use sim::Time;

use crate::{Hops, NetError, Tree};

/// The network of the sPIN paper (§4.2): a packet is delayed by each switch and wire of its path, and never by other
/// packets.
#[derive(Clone, Debug)]
pub struct Latency {
    tree: Tree,
    switch: Time,
    wire: Time,
}

impl Latency {
    /// The network `parameters` with `nodes` nodes.
    ///
    /// # Errors
    /// When the topology cannot have that many nodes.
    pub fn new(parameters: &machine::Network, nodes: usize) -> Result<Latency, NetError> {
        let tree = match &parameters.topology {
            machine::Topology::FatTree => Tree::fat_tree(parameters.radix, nodes)?,
            machine::Topology::SingleSwitch => Tree::single_switch(nodes)?,
            other => return Err(NetError::NoLatency { topology: other.name().to_owned() }),
        };
        Ok(Latency { tree, switch: parameters.switch, wire: parameters.wire })
    }

    /// The time from the moment that a byte leaves the card of `from` until it is at the card of `to`. A message of a
    /// node to itself turns around in its card and uses no wire: [`Time::ZERO`].
    pub fn between(&self, from: usize, to: usize) -> Time {
        let Hops { switches, wires } = self.path(from, to);
        self.switch * u64::from(switches) + self.wire * u64::from(wires)
    }

    /// The switches and wires between two nodes.
    pub fn path(&self, from: usize, to: usize) -> Hops {
        self.tree.hops(from, to)
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.tree.nodes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// sPIN §4.2.
    fn sc17(nodes: usize) -> Latency {
        let parameters = machine::Network {
            model: machine::NetworkModel::Latency,
            topology: machine::Topology::FatTree,
            radix: 36,
            switch: Time::from_ns(50),
            wire: Time::from_ps(33_400),
            gap_per_byte: sim::TimePerByte::from_fs_per_byte(20_000),
            gap: Time::from_ps(6_700),
            mtu: 4096,
            fabric: None,
        };
        Latency::new(&parameters, nodes).unwrap()
    }

    #[test]
    fn latencies_of_the_paper() {
        let network = sc17(2);
        assert_eq!(network.between(0, 0), Time::ZERO);
        assert_eq!(network.between(0, 1), Time::from_ps(50_000 + 2 * 33_400)); // 116.8 ns
        let network = sc17(11_664); // 36³/4: three levels, leaves of 18, pods of 324
        assert_eq!(network.between(0, 17), Time::from_ps(116_800));
        assert_eq!(network.between(17, 18), Time::from_ps(3 * 50_000 + 4 * 33_400));
        assert_eq!(network.between(323, 324), Time::from_ps(5 * 50_000 + 6 * 33_400));
        assert_eq!(network.between(11_663, 0), Time::from_ps(450_400));
    }
}
