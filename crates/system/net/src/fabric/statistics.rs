// SPDX-License-Identifier: Apache-2.0
//! Statistics of a fabric and its links.

use sim::Time;

use super::answers::Counts;

/// Statistics of a link.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkReport {
    /// Name of the start vertex.
    pub from: String,
    /// Name of the end vertex.
    pub to: String,
    /// Fraction of the time in which the link transmitted.
    pub utilization: f64,
    /// Packets on the link.
    pub packets: u64,
    /// Bytes of data of these packets.
    pub bytes: u64,
    /// Packets lost because the queue was full.
    pub drops: u64,
    /// Maximum number of bytes in the queue, including the packet being transmitted. Links of hosts have no queue:
    /// packets wait in the host.
    pub longest_queue: u64,
    /// Bytes in the queue, averaged over time.
    pub mean_queue: f64,
}

/// Traffic of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traffic {
    /// Name of the start vertex.
    pub from: String,
    /// Name of the end vertex.
    pub to: String,
    /// Packets on the link.
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
    /// Sum of the numbers of links crossed by the packets.
    pub packet_hops: u64,
    /// Number of packets lost.
    pub drops: u64,
    /// Number of retransmitted packets.
    pub resent: u64,
    /// Counts of control packets, and of packets that switches modified.
    pub answers: Counts,
    /// Mean utilization of all links.
    pub mean_utilization: f64,
    /// Link with the longest queue, if any.
    pub longest_queue: Option<LinkReport>,
    /// Links with the highest utilization, highest first.
    pub busiest: Vec<LinkReport>,
}

/// Time of a packet on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Number of the link.
    pub link: u32,
    /// Sender of the packet.
    pub from: u32,
    /// Receiver of the packet.
    pub to: u32,
    /// Bytes of data.
    pub bytes: u32,
    /// Start of the first byte's transmission.
    pub start: Time,
    /// End of the last byte's transmission.
    pub end: Time,
}
