// SPDX-License-Identifier: Apache-2.0
//! The network between the cards.

use sim::{Time, TimePerByte};

use crate::transport::{Flow, Transport};

/// `[network]`: links, switches and packets.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// `model`: network model.
    pub model: NetworkModel,
    /// `topology`: connection of the switches.
    pub topology: Topology,
    /// `radix`: number of ports of a switch.
    pub radix: u32,
    /// `switch_ns`: latency of a switch.
    pub switch: Time,
    /// `wire_ns`: latency of a wire.
    pub wire: Time,
    /// `G_ps_per_byte`: inverse bandwidth of a link.
    pub gap_per_byte: TimePerByte,
    /// `g_ns`: LogGP's g, the gap between two messages at a port.
    pub gap: Time,
    /// `injection`: occupation of the sending port by a message.
    pub injection: Injection,
    /// `reception`: start of the reception of a packet.
    pub reception: Reception,
    /// `mtu_bytes`: largest payload of a packet.
    pub mtu: u32,
    /// `retransmit_ns`: time from the loss of a packet to its retransmission.
    pub retransmit: Time,
    /// `retries`: maximum number of retransmissions of a packet before the card aborts its message.
    pub retries: u32,
    /// `[network.fabric]`; required by the model "fabric".
    pub fabric: Option<Fabric>,
    /// `[network.switch]`; without it, switches have no handlers.
    pub switch_cards: SwitchCards,
}

/// `[network.switch]`: switches that run handlers (sPIN §7). Every key is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCards {
    /// `handlers`: names of the switches with an accelerator, as in reports; `*` matches any characters. Default: none.
    pub handlers: Vec<String>,
    /// `hpus`: number of HPUs of each such accelerator (only of the kind "sc17"). Default: the number in the hosts'
    /// cards.
    pub hpus: Option<u32>,
    /// `speedup`: bandwidth of the port between a switch and its accelerator, in multiples of a link's. Default: 1.
    pub speedup: Option<u32>,
}

impl SwitchCards {
    /// Returns the inverse bandwidth between a switch and its accelerator; `of_link` is that of a link.
    pub fn gap_per_byte(&self, of_link: TimePerByte) -> TimePerByte {
        TimePerByte::from_fs_per_byte(of_link.as_fs_per_byte() / u64::from(self.speedup.unwrap_or(1)))
    }
}

impl Network {
    /// Returns the time after which a card without an answer aborts.
    pub fn patience(&self) -> Time {
        self.retransmit * (u64::from(self.retries) + 1)
    }
}

/// Network model. A model with its own parameters reads them from the table `[network.NAME]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkModel {
    /// "latency": every packet arrives after the latency of its path, without contention (sPIN §4.2).
    Latency,
    /// "fabric": packets queue for links, in buffers of limited size.
    Fabric,
}

/// Occupation of the sending port by a message of s bytes. It delays only the port's next packet: the last byte leaves
/// after s G in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// "max": max(g, s G) for the first packet, s G for each other one (sPIN §4.4.2: packets arrive every max(g, s G)).
    Max,
    /// "sum": g + (s − 1) G for the whole message, as LogGP and LogGOPSim2 have it.
    Sum,
}

/// Time at which the target's port can begin to receive a packet (the model "latency" only; a fabric has its own rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// "cut-through": when the packet's first byte arrives, so its serialisation time s G counts once.
    CutThrough,
    /// "store-and-forward": (P − 1) G later, where P is `mtu_bytes`, for any packet size: the network of LogGOPSim2
    /// forwards whole packets. So s G counts twice for a full packet.
    StoreAndForward,
}

/// Connection of the switches. The model "latency" supports the first two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// "fat-tree": folded Clos of switches of one radix.
    FatTree,
    /// "single-switch": one switch with one port for each node.
    SingleSwitch,
    /// "dragonfly": groups of routers; every group is connected to every other.
    Dragonfly,
    /// "torus": rings of switches in each dimension.
    Torus,
    /// A path with a `/` or a `.`: a network in the DOT language.
    File(String),
}

/// `[network.fabric]`: links with queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// `buffer_bytes`: size of a buffer: one for each virtual channel of a link with "credits" and "pfc", one for each
    /// output port with "drop" and "trim".
    pub buffer: u64,
    /// `flow`: flow control of full buffers.
    pub flow: Flow,
    /// `routing`: choice among equally short paths.
    pub routing: Routing,
    /// `seed`: seed of the path hash.
    pub seed: u64,
    /// Shape of the topology.
    pub shape: Shape,
    /// Acknowledgements, pause frames, trimmed packets, and rate control.
    pub transport: Transport,
}

impl Fabric {
    /// Values of the machines that spinkit ships. 64 KiB are 1.3 µs at 400 Gbit/s, several times the round trip of a
    /// link.
    pub const USUAL: Fabric = Fabric {
        buffer: 65_536,
        flow: Flow::Credits,
        routing: Routing::Ecmp,
        seed: 0,
        shape: Shape { taper: None, dims: None, concentration: None, dragonfly: None },
        transport: Transport::USUAL,
    };
}

/// Shape of a topology; every key belongs to one topology and is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// `taper` of a fat tree: hosts of a leaf switch for each of its uplinks. Default: 1, full bisection.
    pub taper: Option<u32>,
    /// `dims` of a torus: lengths of its dimensions. Default: three dimensions of nearly equal length.
    pub dims: Option<Vec<u32>>,
    /// `concentration` of a torus: hosts of a switch. Default: 1.
    pub concentration: Option<u32>,
    /// `dragonfly`: hosts of a router, routers of a group, global links of a router and, if not the maximum, groups.
    /// Default: the smallest balanced dragonfly.
    pub dragonfly: Option<Vec<u32>>,
}

/// Choice among equally short paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// "ecmp": a hash of sender and receiver, so packets of a pair stay in order.
    Ecmp,
    /// "adaptive": the shortest queue at each switch; a hash breaks ties. Packets may overtake each other.
    Adaptive,
}
