//! Packets for experiments: messages of UDP packets of given sizes, at a given rate, from a number of flows.

use etherparse::PacketBuilder;
use thiserror::Error;

use crate::frame::Link;

/// What is generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// What each packet begins with.
    pub link: Link,
    /// The number of messages. Messages of one flow follow each other, the flows send at the same time, in turn.
    pub messages: u32,
    /// The number of packets of each message.
    pub packets: u32,
    /// The sizes of packets with all headers; each packet of a message takes the next, and after the last the first.
    pub sizes: Vec<u32>,
    /// The number of flows, at most 65,536; each has its own source address and port.
    pub flows: u32,
    /// How fast packets follow each other.
    pub pace: Pace,
    /// Decides the contents.
    pub seed: u64,
}

/// The time between the beginnings of two packets: that of the bytes of the first at a rate, and a gap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pace {
    /// Femtoseconds for each byte; 0 is an unlimited rate.
    pub fs_per_byte: u64,
    /// Picoseconds between two packets.
    pub gap_ps: u64,
    /// Picoseconds more in front of each message but the first.
    pub message_gap_ps: u64,
}

/// A packet that was generated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Generated {
    /// When its first byte arrives, in picoseconds.
    pub at_ps: u64,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The first payload bytes of each packet, big-endian: the number of its message, the number of its packet within the message,
/// and the number of packets of the message.
pub const LABEL_BYTES: u32 = 12;

/// The UDP port to which all packets are sent.
pub const PORT: u16 = 9_330;

/// The error of a load that cannot be generated.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum LoadError {
    /// A size is too small or too large.
    #[error(
        "packets of {size} bytes: {least} to {most} are possible, of which {LABEL_BYTES} number the packet and the rest are headers and data"
    )]
    Size {
        /// The size.
        size: u32,
        /// The smallest that is possible.
        least: u32,
        /// The largest that is possible.
        most: u32,
    },
    /// There is no size.
    #[error("packets need at least one size")]
    NoSize,
    /// The number of flows is out of range.
    #[error("{0} flows: 1 to 65536 are possible")]
    Flows(u32),
}

/// Generates packets in the order of time.
#[derive(Clone, Debug)]
pub struct Generator {
    load: Load,
    /// The packet of all that is next.
    next: u64,
    at_fs: u128,
}

impl Generator {
    /// A generator of a load.
    ///
    /// # Errors
    /// [`LoadError`] when a size or the number of flows is out of range.
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

    /// The message and the packet within it that come at place `index` of all: flows take turns, and each sends its messages one
    /// after the other.
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
        let size = load.sizes[(packet % load.sizes.len() as u64) as usize];
        let bytes = packet_bytes(load, message, packet, size);
        let at_ps = u64::try_from(self.at_fs / 1_000).unwrap_or(u64::MAX);
        self.at_fs += u128::from(load.pace.fs_per_byte) * u128::from(size) + u128::from(load.pace.gap_ps) * 1_000;
        self.next += 1;
        Some(Generated { at_ps, bytes })
    }
}

fn packet_bytes(load: &Load, message: u64, packet: u64, size: u32) -> Vec<u8> {
    let mut payload = vec![0; (size - header_bytes(load.link)) as usize];
    let mut random = load.seed ^ (message << 32 | packet).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in payload.chunks_mut(8) {
        let bytes = split_mix(&mut random).to_le_bytes();
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

/// The next number of SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut value = *state;
    value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}
