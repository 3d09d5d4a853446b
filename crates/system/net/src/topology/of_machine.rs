// SPDX-License-Identifier: Apache-2.0
//! Topology of a machine file.

use std::fs;

use super::dragonfly::Dragonfly;
use super::graph::Topology;
use super::tiers;
use crate::NetError;

impl Topology {
    /// Builds the topology of a machine, with room for `hosts` hosts.
    ///
    /// # Errors
    /// If such a topology does not support that many hosts, or its file does not describe a network.
    pub fn of_machine(network: &machine::Network, hosts: usize) -> Result<Topology, NetError> {
        let shape = network.fabric.as_ref().map(|fabric| &fabric.shape);
        let topology = match &network.topology {
            machine::Topology::FatTree => {
                Topology::fat_tree(network.radix, shape.and_then(|shape| shape.taper).unwrap_or(1), hosts)?
            }
            machine::Topology::SingleSwitch => Topology::single_switch(hosts)?,
            machine::Topology::Dragonfly => {
                let given = shape.and_then(|shape| shape.dragonfly.as_deref());
                Topology::dragonfly(given.map_or(Ok(Dragonfly::for_hosts(hosts)), Dragonfly::from_numbers)?)?
            }
            machine::Topology::Torus => {
                let each = shape.and_then(|shape| shape.concentration).unwrap_or(1);
                let sides = shape.and_then(|shape| shape.dims.clone());
                Topology::torus(&sides.unwrap_or_else(|| even_sides(hosts, each)), each)?
            }
            machine::Topology::File(path) => {
                let text = fs::read_to_string(path)
                    .map_err(|error| NetError::Unreadable { path: path.clone(), why: error.to_string() })?;
                let parse = if tiers::is_topo(&text) { Topology::from_topo } else { Topology::from_dot };
                parse(&text).map_err(|error| {
                    // A position follows the name without a blank.
                    let blank = if matches!(error, NetError::Dot { .. } | NetError::Topo { .. }) { "" } else { " " };
                    NetError::File { path: path.clone(), what: format!("{blank}{error}") }
                })?
            }
        };
        if (topology.hosts() as usize) < hosts {
            let (topology, hosts, nodes) = (topology.description().to_owned(), topology.hosts(), hosts);
            return Err(NetError::TooFewHosts { topology, hosts, nodes });
        }
        Ok(topology)
    }
}

/// Returns the sides of a three-dimensional torus for `hosts` hosts, `each` of them at every switch.
fn even_sides(hosts: usize, each: u32) -> Vec<u32> {
    let switches = hosts.div_ceil(each.max(1) as usize);
    let side = |room: usize, root: f64| {
        let estimate = (room as f64).powf(1.0 / root).round() as usize;
        // Rounding must not make the torus too small.
        (estimate.max(1)..).find(|side| side.pow(root as u32) >= room).unwrap_or(room)
    };
    let first = side(switches, 3.0);
    let second = side(switches.div_ceil(first), 2.0);
    let third = switches.div_ceil(first * second);
    [first, second, third].map(|side| side as u32).to_vec()
}
