//! The network between the cards.

use sim::{Rate, Time};

/// `[network]`: links, switches and packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// `model`: how packets travel.
    pub model: NetworkModel,
    /// `topology`: how switches are connected.
    pub topology: Topology,
    /// `radix`: number of ports of a switch.
    pub radix: u32,
    /// `switch_ns`: time through a switch.
    pub switch: Time,
    /// `wire_ns`: time along a wire.
    pub wire: Time,
    /// `G_ps_per_byte`: inverse bandwidth of a link.
    pub gap_per_byte: Rate,
    /// `g_ns`: shortest time between the starts of two messages at a port.
    pub gap: Time,
    /// `mtu_bytes`: largest payload of a packet.
    pub mtu: u32,
}

/// How packets travel. A model with parameters of its own reads them from the table of its name, `[network.NAME]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkModel {
    /// "latency": every packet arrives after the latency of its path, as if links had no load (sPIN §4.2).
    Latency,
}

/// How switches are connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topology {
    /// "fat-tree": folded Clos of switches of one radix, full bisection.
    FatTree,
    /// "single-switch": one switch with as many ports as there are nodes.
    SingleSwitch,
}
