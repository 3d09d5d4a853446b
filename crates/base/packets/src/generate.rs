// SPDX-License-Identifier: Apache-2.0
//! Generates packets for experiments: messages of UDP packets with given sizes, rate and number of flows.

use etherparse::PacketBuilder;
use sim::random;
use thiserror::Error;

use crate::frame::Link;

/// Parameters of the generated packets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// First header of each packet.
    pub link: Link,
    /// Number of messages. Messages of one flow follow each other; the flows send concurrently, in turn.
    pub messages: u32,
    /// Number of packets of each message.
    pub packets: u32,
    /// Packet sizes including all headers. Each packet of a message takes the next size, cyclically.
    pub sizes: Vec<u32>,
    /// Number of flows, at most 65,536; each has its own source address and port.
    pub flows: u32,
    /// Packet rate.
    pub pace: Pace,
    /// Seed of the contents.
    pub seed: u64,
}

/// Time between the starts of two packets: the bytes of the first at a rate, plus a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Femtoseconds per byte; 0 for an unlimited rate.
    pub fs_per_byte: u64,
    /// Gap between two packets, in picoseconds.
    pub gap_ps: u64,
    /// Additional gap before each message except the first, in picoseconds.
    pub message_gap_ps: u64,
}

/// A generated packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// Arrival time of the first byte, in picoseconds.
    pub at_ps: u64,
    /// Bytes.
    pub bytes: Vec<u8>,
}

/// Size of the label at the start of each payload, big-endian: message number, packet number within the message, and
/// number of packets of the message.
pub const LABEL_BYTES: u32 = 12;

/// Destination UDP port of all packets.
pub const PORT: u16 = 9_330;

/// Error of an invalid load.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    /// A size is too small or too large.
    #[error(
        "packets of {size} bytes: {least} to {most} are possible, of which {LABEL_BYTES} number the packet and the rest are headers and data"
    )]
    Size {
        /// Size.
        size: u32,
        /// Minimum size.
        least: u32,
        /// Maximum size.
        most: u32,
    },
    /// The list of sizes is empty.
    #[error("packets need at least one size")]
    NoSize,
    /// The number of flows is out of range.
    #[error("{0} flows: 1 to 65536 are possible")]
    Flows(u32),
}

/// Generates packets in time order.
#[derive(Clone, Debug)]
pub struct Generator {
    load: Load,
    /// Index of the next packet among all.
    next: u64,
    at_fs: u128,
}

impl Generator {
    /// Creates a generator.
    ///
    /// # Errors
    /// [`LoadError`] if a size or the number of flows is out of range.
    pub fn new(load: Load) -> Result<Generator, LoadError> {
        let headers = header_bytes(load.link);
        // The length of an IPv4 packet has 16 bits.
        let (least, most) = (headers + LABEL_BYTES, 65_535 + headers - header_bytes(Link::Ip));
        if let Some(size) = load.sizes.iter().find(|size| !(least..=most).contains(*size)) {
            return Err(LoadError::Size { size: *size, least, most });
        }
        if load.sizes.is_empty() {
            return Err(LoadError::NoSize);
        }
        if !(1..=65_536).contains(&load.flows) {
            return Err(LoadError::Flows(load.flows));
        }
        Ok(Generator { load, next: 0, at_fs: 0 })
    }

    /// Returns the message, and the packet within it, of the packet with index `index`. Flows take turns, and each
    /// sends its messages in sequence.
    fn place(&self, index: u64) -> (u64, u64) {
        let (flows, packets) = (u64::from(self.load.flows), u64::from(self.load.packets));
        let round = index / (flows * packets);
        // The last round has fewer messages than flows.
        let active = (u64::from(self.load.messages) - round * flows).min(flows);
        let within = index % (flows * packets);
        (round * flows + within % active, within / active)
    }
}

fn header_bytes(link: Link) -> u32 {
    match link {
        Link::Ethernet => 14 + 20 + 8,
        Link::Ip | Link::Payload(_) => 20 + 8,
    }
}

impl Iterator for Generator {
    type Item = Generated;

    fn next(&mut self) -> Option<Generated> {
        let load = &self.load;
        if self.next >= u64::from(load.messages) * u64::from(load.packets) {
            return None;
        }
        let (message, packet) = self.place(self.next);
        if packet == 0 && self.next > 0 {
            self.at_fs += u128::from(load.pace.message_gap_ps) * 1_000;
        }
        #[expect(clippy::cast_possible_truncation, reason = "the index is below the number of sizes")]
        let size = load.sizes[(packet % load.sizes.len() as u64) as usize];
        let bytes = packet_bytes(load, message, packet, size);
        let at_ps = u64::try_from(self.at_fs / 1_000).unwrap_or(u64::MAX);
        self.at_fs += u128::from(load.pace.fs_per_byte) * u128::from(size) + u128::from(load.pace.gap_ps) * 1_000;
        self.next += 1;
        Some(Generated { at_ps, bytes })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "a load has a u32 of messages and of packets, and a u16 of flows")]
fn packet_bytes(load: &Load, message: u64, packet: u64, size: u32) -> Vec<u8> {
    let mut payload = vec![0; (size - header_bytes(load.link)) as usize];
    let mut state = load.seed ^ (message << 32 | packet).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in payload.chunks_mut(8) {
        let bytes = random::next(&mut state).to_le_bytes();
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
    payload[..4].copy_from_slice(&(message as u32).to_be_bytes());
    payload[4..8].copy_from_slice(&(packet as u32).to_be_bytes());
    payload[8..12].copy_from_slice(&load.packets.to_be_bytes());
    let flow = (message % u64::from(load.flows)) as u16;
    let [high, low] = flow.to_be_bytes();
    let (source, destination) = ([10, 0, high, low], [10, 255, 0, 1]);
    let mut bytes = Vec::with_capacity(size as usize);
    let built = match load.link {
        // Locally administered addresses.
        Link::Ethernet => PacketBuilder::ethernet2([2, 0, 0, 0, high, low], [2, 0, 0, 1, 0, 1])
            .ipv4(source, destination, 64)
            .udp(10_000_u16.wrapping_add(flow), PORT)
            .write(&mut bytes, &payload),
        Link::Ip | Link::Payload(_) => PacketBuilder::ipv4(source, destination, 64)
            .udp(10_000_u16.wrapping_add(flow), PORT)
            .write(&mut bytes, &payload),
    };
    built.expect("a vector takes everything, and the size is within the limits of IPv4 and UDP");
    bytes
}
