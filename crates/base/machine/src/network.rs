//! The network between the cards.

use sim::{Time, TimePerByte};

use crate::transport::{Flow, Transport};

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
    pub gap_per_byte: TimePerByte,
    /// `g_ns`: LogGP's g, the gap between two messages at a port.
    pub gap: Time,
    /// `injection`: how long a message occupies the sending port.
    pub injection: Injection,
    /// `reception`: when a packet can be received.
    pub reception: Reception,
    /// `mtu_bytes`: largest payload of a packet.
    pub mtu: u32,
    /// `retransmit_ns`: time from the loss of a packet until its card sends it again.
    pub retransmit: Time,
    /// `retries`: how often a card sends a packet again before it gives its message up.
    pub retries: u32,
    /// `[network.fabric]`; a machine of the model "fabric" has it.
    pub fabric: Option<Fabric>,
    /// `[network.switch]`; switches have no handlers without it.
    pub switch_cards: SwitchCards,
}

/// `[network.switch]`: switches that run handlers (sPIN §7). Every key may be omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SwitchCards {
    /// `handlers`: names of the switches with an accelerator, as reports print them; `*` stands for any characters.
    /// Default: none.
    pub handlers: Vec<String>,
    /// `hpus`: number of HPUs of each such accelerator (only of the kind "sc17"). Default: as many as those of the hosts'
    /// cards have.
    pub hpus: Option<u32>,
    /// `speedup`: how many times the bandwidth of a link the port between a switch and its accelerator has. Default: 1.
    pub speedup: Option<u32>,
}

impl SwitchCards {
    /// The inverse bandwidth between a switch and its accelerator, where a link has this one.
    pub fn gap_per_byte(&self, of_link: TimePerByte) -> TimePerByte {
        TimePerByte::from_fs_per_byte(of_link.as_fs_per_byte() / u64::from(self.speedup.unwrap_or(1)))
    }
}

impl Network {
    /// The time after which a card that has got no answer from another one gives it up.
    pub fn patience(&self) -> Time {
        self.retransmit * (u64::from(self.retries) + 1)
    }
}

/// How packets travel. A model with parameters of its own reads them from the table with its name, `[network.NAME]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NetworkModel {
    /// "latency": every packet arrives after the latency of its path, as if links had no load (sPIN §4.2).
    Latency,
    /// "fabric": packets queue for links, in buffers of limited size.
    Fabric,
}

/// How long a message of s bytes occupies the sending port. Only the port's next packet depends on it: the last byte has
/// left after s G in either case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Injection {
    /// "max": max(g, s G) for the first packet, s G for each other one (sPIN §4.4.2: packets arrive every max(g, s G)).
    Max,
    /// "sum": g + (s − 1) G for the whole message, as LogGP and LogGOPSim2 have it.
    Sum,
}

/// When the port of the target can begin to receive a packet (the model "latency" only; a fabric has its own rule).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reception {
    /// "cut-through": when the packet's first byte is there. So the time s G of its bytes counts once.
    CutThrough,
    /// "store-and-forward": (P − 1) G later, in which P is `mtu_bytes`, whatever the packet's size: the network of
    /// LogGOPSim2 passes on whole packets. So s G counts twice for a full packet.
    StoreAndForward,
}

/// How switches are connected. The model "latency" supports the first two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Topology {
    /// "fat-tree": folded Clos of switches of one radix.
    FatTree,
    /// "single-switch": one switch with as many ports as there are nodes.
    SingleSwitch,
    /// "dragonfly": groups of routers, all connected with each other.
    Dragonfly,
    /// "torus": rings of switches in each dimension.
    Torus,
    /// A path with a `/` or a `.`: a network in the DOT language.
    File(String),
}

/// `[network.fabric]`: links with queues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fabric {
    /// `buffer_bytes`: size of a buffer; with "credits" and "pfc" each virtual channel of a link has one, with "drop" and
    /// "trim" each output port.
    pub buffer: u64,
    /// `flow`: what happens when a buffer is full.
    pub flow: Flow,
    /// `routing`: how a packet chooses among equally short paths.
    pub routing: Routing,
    /// `seed`: seed of the choices by hash.
    pub seed: u64,
    /// The shape of the topology.
    pub shape: Shape,
    /// Acknowledgements, pause frames, trimmed packets, and what slows down senders.
    pub transport: Transport,
}

impl Fabric {
    /// The values of the machines that come with spinkit. 64 KiB are some hundred nanoseconds at 400 Gbit/s, several
    /// times the round trip of a link.
    pub const USUAL: Fabric = Fabric {
        buffer: 65_536,
        flow: Flow::Credits,
        routing: Routing::Ecmp,
        seed: 0,
        shape: Shape { taper: None, dims: None, concentration: None, dragonfly: None },
        transport: Transport::USUAL,
    };
}

/// The shape of a topology; every key belongs to one topology and may be omitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// `taper` of a fat tree: number of hosts of a leaf switch for each of its uplinks. Default: 1, full bisection.
    pub taper: Option<u32>,
    /// `dims` of a torus: lengths of its dimensions. Default: three dimensions of lengths as equal as possible.
    pub dims: Option<Vec<u32>>,
    /// `concentration` of a torus: number of hosts of a switch. Default: 1.
    pub concentration: Option<u32>,
    /// `dragonfly`: hosts of a router, routers of a group, links of a router to other groups and, if not the maximum,
    /// groups. Default: the smallest balanced dragonfly.
    pub dragonfly: Option<Vec<u32>>,
}

/// How a packet chooses among equally short paths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routing {
    /// "ecmp": a hash of its sender and receiver decides, so packets of a pair keep their order.
    Ecmp,
    /// "adaptive": it takes the shortest queue at each switch; a hash decides between equal ones. Packets may overtake
    /// each other.
    Adaptive,
}
