use sim::Time;

use super::answers::Counts;

/// Statistics of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkReport {
    /// Name of the vertex where it starts.
    pub from: String,
    /// Name of the vertex where it ends.
    pub to: String,
    /// Fraction of the time in which it transmitted.
    pub utilization: f64,
    /// Packets that passed it.
    pub packets: u64,
    /// Bytes of data of these packets.
    pub bytes: u64,
    /// Packets that were lost because its queue was full.
    pub drops: u64,
    /// Maximum number of bytes in its queue, including the packet that is on its way onto the link. Links of hosts have
    /// no queue: packets wait in the host.
    pub longest_queue: u64,
    /// Bytes in its queue, averaged over time.
    pub mean_queue: f64,
}

/// The traffic of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Name of the vertex where it starts.
    pub from: String,
    /// Name of the vertex where it ends.
    pub to: String,
    /// Packets that passed it.
    pub packets: u64,
    /// Bytes of data of these packets.
    pub bytes: u64,
}

/// Statistics of a fabric.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// Description of the topology.
    pub description: String,
    /// Number of hosts.
    pub hosts: u32,
    /// Number of switches.
    pub switches: u32,
    /// Number of links, counted in each direction.
    pub links: usize,
    /// Number of packets.
    pub packets: u64,
    /// Sum of the numbers of links that the packets passed.
    pub packet_hops: u64,
    /// Number of packets lost.
    pub drops: u64,
    /// Number of retransmitted packets.
    pub resent: u64,
    /// Packets that the network's ends sent by themselves, and what switches did to packets.
    pub answers: Counts,
    /// Mean utilization of all links.
    pub mean_utilization: f64,
    /// The link with the longest queue, if any had one.
    pub longest_queue: Option<LinkReport>,
    /// The links with the highest utilization, the highest first.
    pub busiest: Vec<LinkReport>,
}

/// The time of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Number of the link.
    pub link: u32,
    /// The host that has sent the packet.
    pub from: u32,
    /// The host that receives it.
    pub to: u32,
    /// Bytes of data.
    pub bytes: u32,
    /// When its first byte is put on the link.
    pub start: Time,
    /// When its last byte has been put on the link.
    pub end: Time,
}
