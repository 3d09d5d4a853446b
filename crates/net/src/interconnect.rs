use sim::{Pipe, Rate, Time};

use crate::{Latency, NetError};

/// What cards send packets through: their sending ports and the network between them.
///
/// A card [injects](Interconnect::inject) one packet at a time and learns when it leaves; by then it
/// [hands over](Interconnect::transmit) the packet itself. The packet arrives when its *first* byte reaches the receiving
/// port, which belongs to the receiving card. A packet of a node to itself turns around in the card and meets no link.
#[derive(Debug)]
pub struct Interconnect {
    ports: Vec<Pipe>,
    gap_per_byte: Rate,
    latency: Latency,
}

/// A packet that a card would like to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Injection {
    /// Node that sends.
    pub from: u32,
    /// Node that receives.
    pub to: u32,
    /// Bytes of data. A packet without data, such as an acknowledgement, occupies no link.
    pub bytes: u64,
    /// Least time until the port's next packet (LogGP's g for the first packet of a message).
    pub gap: Time,
}

/// When a packet leaves its card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Number by which the interconnect knows the packet.
    pub ticket: u32,
    /// When its first byte leaves.
    pub start: Time,
    /// When its last byte has left.
    pub end: Time,
}

impl Interconnect {
    /// The interconnect of a machine with `nodes` nodes.
    ///
    /// # Errors
    /// When the topology cannot have that many nodes.
    pub fn new(parameters: &machine::Network, nodes: usize) -> Result<Interconnect, NetError> {
        let latency = Latency::new(parameters, nodes)?;
        Ok(Interconnect { ports: vec![Pipe::default(); nodes], gap_per_byte: parameters.gap_per_byte, latency })
    }

    /// Reserves the sending port for a packet. Packets of a card leave in the order of their injection.
    pub fn inject(&mut self, now: Time, packet: Injection) -> Option<Departure> {
        let Injection { from, bytes, gap, .. } = packet;
        let (start, end) = self.ports[from as usize].reserve(now, bytes, self.gap_per_byte, gap);
        Some(Departure { ticket: 0, start, end })
    }

    /// When the first byte of a packet is at the card of `to`.
    pub fn transmit(&mut self, from: u32, to: u32, departure: Departure) -> Time {
        departure.start + self.latency.between(from as usize, to as usize)
    }

    /// How long the sending port of a node was, or is already bound to be, occupied.
    pub fn port_busy(&self, node: usize) -> Time {
        self.ports[node].busy()
    }

    /// Number of nodes.
    pub fn nodes(&self) -> usize {
        self.ports.len()
    }
}
